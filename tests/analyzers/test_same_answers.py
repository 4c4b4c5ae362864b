"""The same rows in another order, in other files, from hosts, servers and captures of other names: the same answers."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from analyzers.base import Facts
from app.questions import QUESTIONS
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables, Tables
from tests.analyzers import served_worlds
from tests.analyzers.changed_tables import (
    ArrowTables,
    arrow_tables,
    in_pieces,
    names_of,
    renamed,
    renumbered,
    shuffled,
)
from tests.analyzers.load_tests import open_loop, summaries
from tests.analyzers.pipelines import Pipelines
from tests.analyzers.rank_worlds import RankWorld
from tests.analyzers.stopped_jobs import Attempt, Job
from tests.analyzers.worlds import World

SAME = 1e-9  # relative: sums in another order round otherwise
LATE = {(2, n): 30.0 for n in range(10, 20)}
V5P = {"chip": "TPU v5p", "chips": 4}
SERVED = {**V5P, "model": "llama3.1-8b"}


def two_servers() -> MemoryTables:
    """One trace of traffic on two engines, each with passes of its own."""
    one, two = (served_worlds.world(n=80, seed=n, fail_every=16, preempt_every=30) for n in (1, 2))
    tables = {}
    for name in ("requests", "iterations"):
        a, b = getattr(one, name), getattr(two, name)
        tables[name] = {column: [*a[column], *b[column]] for column in a}
        tables[name]["replica"] = ["engine 0"] * len(a["order" if name == "iterations" else "id"]) + ["engine 1"] * len(
            b["order" if name == "iterations" else "id"]
        )
    return MemoryTables(tables)


WORLDS: Mapping[str, tuple[Tables, dict[str, Any]]] = {
    "a job, its log and its profiles": (
        World(jitter_ms=1, stall_ms={12: 80, 20: 120}, extra_ms=LATE, executed_flops=3e12, remat_share=0.1).tables(),
        V5P,
    ),
    "profiles alone": (World(jitter_ms=1, extra_ms=LATE, executed_flops=3e12).tables(goodput=False), V5P),
    "clocks that differ": (World(jitter_ms=1, clock_ns=(0, 3_000_000_000, -700_000_000, 10**6)).tables(), V5P),
    "a late rank": (RankWorld(slow={3: 0.1}, traced=True, segments=3).tables(), {"chip": "H100", "chips": 8}),
    "steps told by repetition": (RankWorld(slow={3: 0.1}, numbered=False, cell=4, segments=4).tables(), {}),
    "pipelines": (Pipelines().tables(), {}),
    "an engine": (served_worlds.world(n=120, fail_every=10, preempt_every=30).tables, SERVED),
    "two engines": (two_servers(), SERVED),
    "requests alone": (served_worlds.world(n=120, fail_every=10).without_passes, SERVED),
    "a load test": (summaries(open_loop([1.0, 20, 40, 60, 80, 120], capacity=90.0)), {"chips": 4}),
    "a job that stopped": (Job([Attempt(50, lost=5), Attempt(60, lost=9, down_s=500), Attempt(40)]).tables(), V5P),
}


def answers(tables: Tables, facts: Facts) -> dict[str, Any]:
    """By question the answer as JSON reads it, or the sentence that says why there is none."""
    said = {}
    for asked in QUESTIONS:
        try:
            result = asked.analyze(tables, facts, parse_options(asked.options, {}))
            said[asked.name] = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        except QuestionError as e:
            said[asked.name] = str(e)
    return said


def differences(a: Any, b: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ. Lists of entries and of names are told in the order of names: as sets."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            yield from differences(a.get(key), b.get(key), f"{path}/{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for n, (x, y) in enumerate(zip(ordered(a), ordered(b), strict=True)):
            yield from differences(x, y, f"{path}/{n}")
    elif all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b)):
        if not math.isclose(a, b, rel_tol=SAME, abs_tol=1e-12):
            yield f"{path}: {a} for {b}"
    elif a != b:
        yield f"{path}: {a!r} for {b!r}"


def ordered(values: list[Any]) -> list[Any]:
    return sorted(values, key=_key) if all(isinstance(v, dict | str) for v in values) else values


def _key(value: Any) -> str:
    """Numbers to five digits: those that round otherwise must not change places."""
    return json.dumps(json.loads(json.dumps(value, sort_keys=True), parse_float=lambda text: f"{float(text):.5g}"))


def told_back(said: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Answers with the first names put back in place of the other ones."""
    text = json.dumps(said)
    for name, other in names.items():
        text = text.replace(other, name)
    return json.loads(text)


def backwards(names: list[str], kind: str) -> dict[str, str]:
    """Other names, in the opposite order of the alphabet."""
    return {name: f"{kind}-{len(names) - n:03}q" for n, name in enumerate(names)}


@pytest.mark.parametrize("world", WORLDS)
def test_the_same_rows_give_the_same_answers(world):
    tables, facts = WORLDS[world][0], facts_of(WORLDS[world][1])
    rows = arrow_tables(tables)
    expected = answers(ArrowTables(rows), facts)
    other, names = told_otherwise(rows)
    for what, changed in (("rows in several batches", in_pieces(rows)), ("told otherwise", shuffled(other))):
        said = told_back(answers(changed, facts), names)
        wrong = [d for question in expected for d in differences(said[question], expected[question], question)]
        assert wrong == [], what


def told_otherwise(rows: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], dict[str, str]]:
    """Hosts, servers and files under other names (returned by their first ones), captures under other numbers."""
    captures = [c for table in rows.values() if "capture" in table.column_names for c in table["capture"].to_pylist()]
    last = max((c for c in captures if c is not None), default=0)
    rows = arrow_tables(renumbered(rows, "capture", lambda capture: last - capture))
    names: dict[str, str] = {}
    for column in ("host", "replica", "source"):
        mine = backwards(names_of(rows, column), column)
        rows, names = arrow_tables(renamed(rows, column, mine)), names | mine
    return rows, names
