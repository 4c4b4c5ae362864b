"""A timeline's files: its columns (`columns.py`) one after the other in one, and what is no column as `index.json`.

One file, for a map holds one open as long as it is there, and a timeline has a hundred columns. The index holds a
checksum of itself, where each column lies, the length of the file and when it was written: one that was cut off,
exchanged or written to since is not the index's. It is written last.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.base import Facts
from analyzers.timeline.building import Built
from analyzers.timeline.clock import Clock
from analyzers.timeline.columns import Where, fitting
from analyzers.timeline.lanes import PS_PER_NS, Lane
from analyzers.timeline.pyramid import Made, assembled
from analyzers.timeline.record import Row, Timeline
from errors.shapes import is_object
from runs.derived import DamagedError
from runs.tables import ParquetTables

INDEX, WHOLE = "index.json", "columns"
WIDE = ("name", "number", "capture", "event", "op")  # columns of a timeline beside those of its pyramid
ROW = tuple(f.name for f in fields(Row) if f.name != "lane")
LANE = tuple(f.name for f in fields(Lane))


def key_of(tables: ParquetTables, facts: Facts) -> str:
    """By what a timeline is kept: the tables as they lie there, the facts, and the text of all that makes it."""
    said = {name: (fact.value, fact.basis, fact.source) for name, fact in facts.items()}
    told = repr((tables.state, json.dumps(said, sort_keys=True, default=repr), makers()))
    return "timeline-" + hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


@cache
def makers() -> str:
    """A hash of what a timeline is made by: strips are the ledger's, so that any analyzer may change them."""
    digest, root = hashlib.sha256(), Path(__file__).parents[2]
    for pattern in ("analyzers/**/*.py", "runs/accounts.py", "runs/tables.py", "runs/*schema.py"):
        for file in sorted(root.glob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def write(folder: Path, built: Built, columns: Where) -> None:
    """The index, once the columns are there. `columns`: where each lies in their file."""
    told = (folder / WHOLE).stat()
    body = {
        "columns": columns,
        "file": [told.st_size, told.st_mtime_ns],
        "same": built.same,
        "events": columns["start"][2],
        "made": asdict(built.made),
        "clock": asdict(built.clock),
        "names": built.names,
        "stored": built.stored,
        "strips": built.strips,
        "notes": built.notes,
        "kinds": built.kinds,
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
        whole = _mapped(folder / WHOLE, *body["file"])
        columns = {name: np.frombuffer(whole, kind, n, at) for name, (kind, at, n) in body["columns"].items()}
        return timeline_of(_built(body), columns.__getitem__)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError) as e:
        raise DamagedError(str(e)) from e


def _sum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _mapped(path: Path, size: int, written_ns: int) -> mmap.mmap:
    with path.open("rb") as file:
        told = os.fstat(file.fileno())
        if not size or (told.st_size, told.st_mtime_ns) != (size, written_ns):
            raise DamagedError(f"{path.name} is another")
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)


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
        kinds=tuple(body["kinds"]),
    )


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "by_code": tuple((code, ticks) for code, ticks in row["by_code"])}


def timeline_of(built: Built, column: Callable[[str], NDArray[Any]]) -> Timeline:
    """`column`: one that was written, by its name."""
    tiles, clock = assembled(column, built.made), built.clock
    wide: dict[str, Any] = {
        n: np.broadcast_to(fitting(v, v).type(v), len(tiles.start))
        if (v := built.same.get(n)) is not None
        else column(n)
        for n in WIDE
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
        kinds=built.kinds,
    )
