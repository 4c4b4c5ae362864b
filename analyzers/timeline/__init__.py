"""The timeline of a run: every event that it holds, lane by lane, drawn from no more than a screen shows.

    lanes     what stands where (`lanes.py`, `traced.py`), rows within them so that no event covers another
    tiles     levels of bins over the events (`pyramid.py`), and what a window shows of them (`window.py`)

It is made lane by lane (`building.py`), that of a run with very many events by several processes or machines
(`spread/`). That of a run with many events is kept as files beside its tables (`stored.py`)
and read as memory maps; that of few, of tables in memory, or of a store that cannot be written stays in memory.

Shown is what is stored: of every level the events and the time of its bins sum to those of the events (`sums`).
"""

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from analyzers.base import Facts
from analyzers.timeline import stored
from analyzers.timeline.building import EVENTS, build
from analyzers.timeline.columns import InFiles, InMemory, joined
from analyzers.timeline.progress import making
from analyzers.timeline.record import Row, Timeline
from errors import InputError
from errors.options import Option
from runs.machine import processors
from runs.spread.choosing import LOCAL, configured, engine_of
from runs.spread.engine import Engine, EngineError
from runs.tables import ParquetTables, Tables

__all__ = ["OPTIONS", "Row", "Timeline", "TimelineResult", "analyze", "large", "timeline"]

OPTIONS: tuple[Option, ...] = ()
_log = logging.getLogger(__name__)
MANY = 2_000_000  # of more, several processes make it: to start them takes seconds
FEW = 200_000  # rows of events, or fewer, are worked out anew by each process: that takes a fraction of a second


def large(tables: Tables, few: int = FEW) -> bool:
    """Whether its timeline is kept as files, and takes a while to be made."""
    return isinstance(tables, ParquetTables) and sum(tables.rows(name) for name in EVENTS) > few


def timeline(tables: Tables, facts: Facts, few: int = FEW) -> Timeline:
    """Raises QuestionError where nothing of the run has a place in time."""
    if isinstance(tables, ParquetTables) and large(tables, few):
        kept = tables.derived
        key = stored.key_of(tables, facts)
        with making(tables.state):
            found = kept.get(key, stored.read, partial(_in_files, tables, facts, key)) if kept else None
        if found is not None:
            return found
    with making(getattr(tables, "state", None)):
        return _in_memory(tables, facts)


def _in_files(tables: Tables, facts: Facts, key: str, folder: Path) -> None:
    """By workers, where there are many events; where they cannot, and of fewer, by this process."""
    if isinstance(tables, ParquetTables) and sum(tables.rows(name) for name in EVENTS) > MANY:
        for begun in engines(tables):
            if _by_workers(tables, facts, key, folder, begun):
                return
    _by_this_process(tables, facts, folder)


def engines(tables: ParquetTables) -> Iterator[Callable[[], Engine]]:
    """Whose workers are asked, one after the other: those of the cluster that the machine's settings name, where they
    see the store, and processes of this machine."""
    if (cluster := configured()) not in ("", LOCAL) and tables.in_a_folder:
        yield partial(engine_of, cluster)
    if processors() > 1:
        yield partial(engine_of, LOCAL)


def _by_workers(tables: ParquetTables, facts: Facts, key: str, folder: Path, begun: Callable[[], Engine]) -> bool:
    """Whether they could."""
    from analyzers.timeline.spread.asking import spread

    with tempfile.TemporaryDirectory(dir=folder.parent) as above:
        try:
            with begun() as engine:
                spread(tables, facts, key, Path(above), folder, engine)
        except InputError as e:
            if not isinstance(e, EngineError):
                if gone := tables.gone():  # a worker knows of its files alone
                    raise gone from e
                raise
            _log.warning("workers do not make the timeline of a run, which goes on without them: %s", e)
            return False
    return True


def _by_this_process(tables: Tables, facts: Facts, folder: Path) -> None:
    """What is put down first lies beside, and is gone afterwards."""
    into = InFiles(folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        put_down = InFiles(Path(beside))
        try:
            built = build(tables, facts, put_down, into)
            stored.write(folder, built, joined(into, folder / stored.WHOLE))
        finally:
            put_down.close()
            into.close()


def _in_memory(tables: Tables, facts: Facts) -> Timeline:
    into = InMemory()
    built = build(tables, facts, InMemory(), into)
    return replace(stored.timeline_of(built, into.whole), held_bytes=into.held_bytes)


@dataclass(frozen=True, kw_only=True)
class TimelineResult:
    """The lanes of a run, and what is stored beside what the levels hold."""

    timeline: Timeline
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        of = self.timeline
        seconds = of.tick_ps / 1e12
        sums = list(of.tiles.sums())
        return {
            "origin_ns": of.origin_ns if of.dated else None,
            "first_to_last_event_s": of.span * seconds,
            "tick_ps": of.tick_ps,
            "events_stored": of.stored,
            "events_in_tiles": min((events for _, events, _ in sums), default=of.events) - of.strips,
            "account_stretches": of.strips,
            "levels": [
                {"bin_s": (1 << shift) * seconds, "events": n, "busy_s": busy * seconds} for shift, n, busy in sums
            ],
            "lanes": [
                {
                    "group": row.lane.group,
                    "host": row.lane.host,
                    "device": row.lane.device,
                    "line": row.lane.line,
                    "role": row.lane.role,
                    "rows": row.rows,
                    "events": row.events,
                    "busy_s": row.busy_ticks * seconds,
                    "start_s": row.start * seconds,
                    "end_s": row.end * seconds,
                }
                for row in of.lanes
            ],
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> TimelineResult:
    of = timeline(tables, facts)
    return TimelineResult(timeline=of, notes=of.notes)
