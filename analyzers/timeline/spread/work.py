"""What a worker does of a timeline. Each task leaves its columns as one file in a folder of its own."""

import contextlib
import pickle
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from analyzers.timeline.booked import device_strips
from analyzers.timeline.clock import Clock
from analyzers.timeline.columns import InFiles, InOne, Where, joined
from analyzers.timeline.gathered import PutDown, gathered
from analyzers.timeline.lanes import Part
from analyzers.timeline.placing import Numbers, Placing, Source, Stretches
from analyzers.timeline.pyramid import Chosen, Counted, Sums, counted, filled
from analyzers.timeline.stored import WHOLE, makers
from analyzers.timeline.traced import COLUMNS, PIECE_ROWS, placed_in_time
from runs.spread import left
from runs.spread.engine import EngineError
from runs.told import tables_told

BOOKED, WAITED, NUMBERS = "booked.pickle", "waited.pickle", "numbers.npy"


@dataclass(frozen=True, kw_only=True)
class Left:
    """What came of a task: where its columns lie in their file, and what is no column. One of three."""

    where: Where
    put_down: PutDown | None = None
    placed: "Placed | None" = None
    sums: Sums | None = None


@dataclass(frozen=True, kw_only=True)
class Placed:
    """`lanes`: of each, its first row counted from that of the first lane."""

    lanes: list[Numbers]
    rows: int
    kinds: set[int]
    counted: Counted


def stamp() -> str:
    """What makes timelines, as text: of another one the same task may become other columns."""
    libraries = f"pyarrow {pa.__version__}, pandas {pd.__version__}, numpy {np.__version__}"
    return f"analyzers {makers()[:16]}, {libraries}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def put_down(asked: dict[str, Any]) -> Left:
    """`files`: of `op_events`, of which the events are put down; or `devices`, of which the strips are."""
    return _left(asked, lambda into: left_down(_parts(asked), into))


def left_down(parts: Iterator[Part], into: InFiles) -> Left:
    """The columns are not joined yet."""
    return Left(where={}, put_down=gathered(parts, into))


def _parts(asked: dict[str, Any]) -> Iterator[Part]:
    tables = tables_told(asked["tables"])
    if "files" in asked:
        files = [(relative, groups and tuple(groups)) for relative, groups in asked["files"]]
        return placed_in_time(tables, tables.batches("op_events", COLUMNS, PIECE_ROWS, files))
    above = Path(asked["above"])
    with (above / asked["waited"]).open("rb") as f:
        waited = pickle.load(f)  # as in `left.before`: written by who asked, where it alone can write
    devices = tuple((host, device) for host, device in asked["devices"])
    return device_strips(tables, replace(_booked(above / BOOKED), devices=devices, waited=waited))


@lru_cache(maxsize=1)
def _booked(path: Path) -> Any:
    with path.open("rb") as f:
        return pickle.load(f)


def place(asked: dict[str, Any]) -> Left:
    """`sources`: folders of what was put down, with which number each name has; `stretches`: where events of the lanes
    lie there."""
    above, told = Path(asked["above"]), {name: np.array(of, np.int64) for name, of in asked["stretches"].items()}
    stretches = Stretches(asked["lanes"], told, np.array(asked["source"], np.int64))
    ranges = {name: (low, high) for name, (low, high) in asked["ranges"].items()}

    def made(into: InFiles) -> Left:
        with contextlib.ExitStack() as scope:
            sources = [
                Source(scope.enter_context(_columns(above / name)), np.load(above / name / NUMBERS))
                for name in asked["sources"]
            ]
            placing = Placing(stretches, sources, Clock(**asked["clock"]), ranges, into)
            lanes = placing.placed()
        first = into.take("first", [(0, into.length("first"))])
        placed = Placed(lanes=lanes, rows=len(first) - 1, kinds=placing.kinds, counted=counted(into, first))
        return Left(where={}, placed=placed)

    return _left(asked, made)


def sum_up(asked: dict[str, Any]) -> Left:
    """`placed`: the folder of what was placed; `chosen`: which levels; `begun`: how many events lie before its own."""
    folder, which = Path(asked["above"]) / asked["placed"], asked["chosen"]
    shifts, longs = tuple(which["shifts"]), tuple(which["longs"])
    chosen = Chosen(shifts=shifts, longs=longs, last=which["last"], events=which["events"])

    def made(into: InFiles) -> Left:
        placed = told_in(folder).placed
        assert placed is not None
        with _columns(folder) as columns:
            first = columns.take("first", [(0, columns.length("first"))])
            return Left(where={}, sums=filled(columns, first, placed.counted, chosen, into, asked["begun"]))

    return _left(asked, made)


def _left(asked: dict[str, Any], make: Callable[[InFiles], Left]) -> Left:
    """What a task makes, unless it was done before. `above`: the folder in which the folder `key` is made."""
    return leave(left.seen(Path(asked["above"]), "the making of the timeline"), asked["key"], make)


def leave(above: Path, key: str, make: Callable[[InFiles], Left]) -> Left:
    """As `_left`. Raises EngineError where it cannot be written."""
    done = above / key
    if (told := left.before(done)) is not None:
        return told
    try:
        with left.new(done) as folder:
            into = InFiles(folder)
            try:
                told = replace(make(into), where=joined(into, folder / WHOLE))
            finally:
                into.close()
            left.leave(folder, done, told)
            return left.before(done) or told
    except OSError as e:
        raise EngineError(f"a timeline cannot be written ({e.strerror or e})", where=str(above)) from e


@contextlib.contextmanager
def _columns(folder: Path) -> Generator[InOne]:
    columns = InOne(folder / WHOLE, told_in(folder).where)
    try:
        yield columns
    finally:
        columns.close()


def told_in(folder: Path) -> Left:
    told = left.before(folder)
    if told is None:
        raise EngineError("what another task left is gone", where=str(folder))
    return told
