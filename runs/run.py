"""A run: one folder, written once and never changed, with its manifest and its tables."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from errors import InputError
from runs.schema import SCHEMA_VERSION
from runs.tables import ParquetTables

MANIFEST = "run.json"
KINDS = ("training", "serving", "rl", "compiled", "simulated")


@dataclass(frozen=True)
class FactValue:
    """Something known of the run as a whole; `basis` is measured, derived, published or declared."""

    value: Any
    basis: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What `run.json` holds.

    `facts`: chip, chips, model, topology, precision, parallelism, peak_flops_per_s, job_name, ...
    `sources`: name, sha256, bytes and collector of every input file.
    `tables`: rows by table. `warnings`: what could not be read, each a sentence.
    """

    run_id: str
    name: str
    kind: str
    created_ns: int
    facts: dict[str, FactValue] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION

    def fact(self, name: str, default: Any = None) -> Any:
        return self.facts[name].value if name in self.facts else default

    @property
    def simulated(self) -> bool:
        return self.kind == "simulated" or bool(self.fact("simulated", False))

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @staticmethod
    def from_json(text: str, where: str) -> "Manifest":
        """Raises InputError where the text is no manifest of a version that this program reads."""
        try:
            data = json.loads(text)
            version = data["schema_version"]
            facts = {n: FactValue(**f) for n, f in data.pop("facts").items()}
            manifest = Manifest(facts=facts, **data)
        except (ValueError, KeyError, TypeError) as e:
            raise InputError(f"not a run manifest ({e})", where=where, advice="Ingest the inputs again.") from e
        if version > SCHEMA_VERSION:
            raise InputError(
                f"written by a newer version (schema {version}, this one reads up to {SCHEMA_VERSION})",
                where=where, advice="Upgrade Chipledger.",
            )  # fmt: skip
        return manifest


@dataclass(frozen=True)
class Run:
    """A stored run."""

    folder: Path

    @cached_property
    def manifest(self) -> Manifest:
        path = self.folder / MANIFEST
        return Manifest.from_json(path.read_text(), where=self.folder.name + "/" + MANIFEST)

    @property
    def run_id(self) -> str:
        return self.folder.name

    @cached_property
    def tables(self) -> ParquetTables:
        return ParquetTables(self.folder / "tables")

    def blob(self, name: str) -> Path:
        """The path of a kept file, such as an HLO module. Raises InputError for a name outside the run."""
        root = (self.folder / "blobs").resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise InputError(f"blob name {name!r} leaves the run's folder")
        return path


def facts_of(values: Mapping[str, Any], basis: str = "declared", source: str = "") -> dict[str, FactValue]:
    """Facts from plain values, all with one basis and source."""
    return {n: FactValue(v, basis, source) for n, v in values.items() if v is not None}
