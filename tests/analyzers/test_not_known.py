"""Any column of a table not known, wholly or here and there, and tables that are empty or of one row: a question has
an answer of finite numbers, or one sentence that says why not."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from analyzers.base import Facts
from app.questions import QUESTIONS
from app.questions.base import Question
from errors import ChipledgerError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import Tables
from tests.analyzers.changed_tables import ArrowTables, arrow_tables, shuffled, without_values
from tests.analyzers.test_same_answers import WORLDS
from tests.bundled import bundled

BUNDLED = Path(__file__).parents[2] / "reference" / "runs"
ROWS = 120  # of a bundled run's table: the first of them, which belong together
NO_NUMBER = re.compile(r"\b(nan|inf|NaT)\b|<NA>|(?<=[a-z] )None\b")
Subject = tuple[dict[str, pa.Table], Facts]


class Watched(ArrowTables):
    """Tables that note what was read of them."""

    def __init__(self, tables: Mapping[str, pa.Table]):
        super().__init__(tables)
        self.read: set[tuple[str, str]] = set()

    def arrow(self, name: str, columns: Any = None, where: Any = None) -> pa.Table:
        found = super().arrow(name, columns, where)
        self.read |= {(name, c) for c in found.column_names} | {(name, w[0]) for w in where or ()}
        return found


def wrong(asked: Question, tables: Tables, facts: Facts) -> str:
    """What is wrong with the answer; "" where nothing is."""
    try:
        result = asked.analyze(tables, facts, parse_options(asked.options, {}))
        json.dumps(result.to_dict(), allow_nan=False)
        said = [asked.verdict(result), *(str(cell) for row in asked.table(result).rows for cell in row)]
    except ChipledgerError as e:
        return "" if str(e).strip() and "\n" not in str(e) else f"not one sentence: {str(e)!r}"
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:120]}"
    return next((f"told as a number: {text[:120]}" for text in said if NO_NUMBER.search(text)), "")


SMALL = (
    "a job, its log and its profiles",
    "a late rank",
    "pipelines",
    "an engine",
    "a load test",
    "a job that stopped",
)
TAKEN = ("compiled-llama3.1-8b-v5p", "serving-client", "training")
EVERY = {"a load test": 3, "pipelines": 9, "an engine": 17, "serving-client": 17, "compiled-llama3.1-8b-v5p": 17}
SPARSE = 97  # one change in so many is tried, where no other number is told: what is slow to ask is asked less often


def half(rows: int) -> np.ndarray:
    """Every other row."""
    return np.arange(rows) % 2 == 1


def changes(rows: Mapping[str, pa.Table], read: set[tuple[str, str]]) -> Iterator[tuple[str, Callable[[], Tables]]]:
    """Every change of what a question reads, with words for it; the tables are made when they are asked for."""
    yield "rows in another order", lambda: shuffled(rows)
    for name in sorted({table for table, _ in read} & rows.keys()):
        yield f"{name} empty", lambda name=name: ArrowTables({**rows, name: rows[name].slice(0, 0)})
        yield f"one row of {name}", lambda name=name: ArrowTables({**rows, name: rows[name].slice(0, 1)})
    for name, column in sorted(read):
        if name in rows and rows[name][column].null_count < rows[name].num_rows:
            yield f"{name}.{column} not known", lambda at=(name, column): without_values(rows, *at)
            yield f"{name}.{column} half known", lambda at=(name, column): without_values(rows, *at, half)


def all_wrong(rows: Mapping[str, pa.Table], facts: Facts, every: int) -> list[str]:
    """What goes wrong in any question when one in `every` of its changes is made, and with none."""
    found, place = [], 0
    for asked in QUESTIONS:
        watched = Watched(rows)
        found.append((asked.name, "as it is", wrong(asked, watched, facts)))
        for what, tables in changes(rows, watched.read):
            place += 1
            if place % every == 0:
                found.append((asked.name, what, wrong(asked, tables(), facts)))
    return [f"{name}: {what}: {trouble}" for name, what, trouble in found if trouble]


@pytest.mark.parametrize("world", SMALL)
def test_made_runs(world):
    tables, facts = WORLDS[world]
    assert all_wrong(arrow_tables(tables), facts_of(facts), EVERY.get(world, SPARSE)) == []


@pytest.mark.parametrize("folder", TAKEN)
def test_bundled_runs(tmp_path_factory, folder):
    run = bundled(tmp_path_factory, folder)
    rows = {name: table.slice(0, ROWS) for name, table in arrow_tables(run.tables).items()}
    assert all_wrong(rows, run.manifest.facts, EVERY.get(folder, SPARSE)) == []
