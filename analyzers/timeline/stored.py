"""A timeline's files: columns (`columns.py`), and what is no column as `index.json`.

The index holds a checksum of itself, and of each column its length and when it was written: a file that was cut off,
exchanged or written to since is no column of it. It is written last.
"""

import hashlib
import json
import mmap
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.base import Facts
from analyzers.timeline.building import Built, Clock
from analyzers.timeline.columns import InFiles, path_of
from analyzers.timeline.lanes import PS_PER_NS, Lane
from analyzers.timeline.pyramid import Made, assembled
from analyzers.timeline.record import Row, Timeline
from errors.shapes import is_object
from runs.derived import DamagedError
from runs.tables import ParquetTables

INDEX = "index.json"
WIDE = ("name", "number", "capture", "event", "op")  # columns of a timeline beside those of its pyramid
ROW = tuple(f.name for f in fields(Row) if f.name != "lane")
LANE = tuple(f.name for f in fields(Lane))


def key_of(tables: ParquetTables, facts: Facts) -> str:
    """By what a timeline is kept: the tables as they lie there, the facts, and the text of all that makes it."""
    said = {name: (fact.value, fact.basis, fact.source) for name, fact in facts.items()}
    told = repr((tables.state, json.dumps(said, sort_keys=True, default=repr), _makers()))
    return "timeline-" + hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


@cache
def _makers() -> str:
    """A hash of what a timeline is made by: strips are the ledger's, so that any analyzer may change them."""
    digest, root = hashlib.sha256(), Path(__file__).parents[2]
    for pattern in ("analyzers/**/*.py", "runs/accounts.py", "runs/tables.py", "runs/*schema.py"):
        for file in sorted(root.glob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def write(folder: Path, built: Built, into: InFiles) -> None:
    """The index, once the columns are there."""
    into.close()
    columns = {}
    for name, kind in into.kinds.items():
        told = path_of(folder, name).stat()
        columns[name] = [kind.name, told.st_size, told.st_mtime_ns]
    body = {
        "columns": columns,
        "same": built.same,
        "events": into.length("start"),
        "made": asdict(built.made),
        "clock": asdict(built.clock),
        "names": built.names,
        "stored": built.stored,
        "strips": built.strips,
        "notes": built.notes,
        "lanes": [
            [[getattr(row.lane, n) for n in LANE], [getattr(row, n) for n in ROW]] for row in built.lanes
        ],
    }  # fmt: skip
    text = json.dumps(body)
    (folder / INDEX).write_text(f"{_sum(text)}\n{text}", encoding="utf-8")


def read(folder: Path) -> Timeline:
    """The timeline, its columns as memory maps. Raises DamagedError for files that are not what was written."""
    try:
        told, _, text = (folder / INDEX).read_text(encoding="utf-8").partition("\n")
        if told != _sum(text):
            raise DamagedError("another index")
        body = json.loads(text)
        columns = {name: _mapped(path_of(folder, name), *known) for name, known in body["columns"].items()}
        built = _built(body)
    except (ValueError, KeyError, TypeError, IndexError) as e:
        raise DamagedError(str(e)) from e
    return timeline_of(built, columns.__getitem__)


def _sum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _mapped(path: Path, kind: str, size: int, written_ns: int) -> NDArray[Any]:
    with path.open("rb") as file:
        told = path.stat()
        if (told.st_size, told.st_mtime_ns) != (size, written_ns):
            raise DamagedError(f"{path.name} is another")
        if not size:  # nothing can be mapped
            return np.zeros(0, kind)
        return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), kind)


def _built(body: dict[str, Any]) -> Built:
    if not is_object(body):
        raise DamagedError("no index")
    made = body["made"]
    lanes = [
        Row(Lane(**dict(zip(LANE, lane, strict=True))), **_numbers(dict(zip(ROW, row, strict=True))))
        for lane, row in body["lanes"]
    ]
    return Built(
        lanes=tuple(lanes),
        made=Made(tuple(made["levels"]), tuple(made["longs"]), tuple((s, e, b) for s, e, b in made["told"])),
        clock=Clock(**body["clock"]),
        names=tuple(body["names"]),
        stored=body["stored"],
        strips=body["strips"],
        notes=tuple(body["notes"]),
        same=body["same"],
    )


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "by_code": tuple((code, ticks) for code, ticks in row["by_code"])}


def timeline_of(built: Built, column: Callable[[str], NDArray[Any]]) -> Timeline:
    """`column`: one that was written, by its name."""
    tiles, clock = assembled(column, built.made), built.clock
    wide: dict[str, Any] = {
        n: np.broadcast_to(np.int32(built.same[n]), len(tiles.start)) if n in built.same else column(n) for n in WIDE
    }
    return Timeline(
        lanes=built.lanes,
        tiles=tiles,
        tick_ps=PS_PER_NS // clock.per_ns,
        origin_ns=clock.origin_ns + clock.begin // clock.per_ns,
        dated=clock.dated,
        names=built.names,
        **wide,
        stored=built.stored,
        strips=built.strips,
        notes=built.notes,
    )
