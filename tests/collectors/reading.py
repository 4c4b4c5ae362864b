"""Reading bytes with a collector, as tests want the result: rows as dictionaries, facts by name."""

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from collectors.base import Fact, Lost, Rows, Source
from collectors.reading import job_ran
from runs.schema import SCHEMAS


@dataclass
class Read:
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    ran: list[dict[str, int]] = field(default_factory=list)  # what a run does not keep: on how many chips, and when
    lost: list[Lost] = field(default_factory=list)
    batches: int = 0

    def column(self, table: str, name: str) -> list[Any]:
        return [row[name] for row in self.rows.get(table, [])]

    def reasons(self) -> str:
        return "; ".join(f"{lost.what}: {lost.reason}" for lost in self.lost)


def source_of(folder: Path, data: bytes | str, name: str = "input") -> Source:
    path = folder / "input"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return Source(path, name)


def read(collector: ModuleType, source: Source) -> Read:
    """Everything the collector yields, each item checked against the seam."""
    result = Read()
    for item in collector.read(source):
        if isinstance(item, Rows):
            assert item.batch.schema.equals(SCHEMAS[item.table].arrow)
            item.batch.validate(full=True)
            result.rows.setdefault(item.table, []).extend(item.batch.to_pylist())
            result.batches += 1
        elif isinstance(item, Fact) and item.name == job_ran.NAME:
            result.ran.append(item.value)
        elif isinstance(item, Fact):
            result.facts[item.name] = item.value
        else:
            assert isinstance(item, Lost)
            result.lost.append(item)
    return result
