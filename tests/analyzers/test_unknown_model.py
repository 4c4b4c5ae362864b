"""A model that the catalogue does not have makes no question less answerable than no model at all."""

from functools import cache
from typing import Any

import pytest

from analyzers.base import Facts
from app.questions import QUESTIONS
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import Tables
from tests.analyzers.load_tests import open_loop, summaries
from tests.analyzers.rank_worlds import RankWorld
from tests.analyzers.served_worlds import world
from tests.analyzers.worlds import World

SERVED = world(n=60, fail_every=12)
RUNS = {
    "training": World(executed_flops=3e12, matmuls={"m": [100], "k": [100], "n": [100], "batch": [1], "count": [1]}),
    "ranks": RankWorld(slow={3: 0.1}),
    "engine": SERVED,
}
TABLES = {name: run.tables if name == "engine" else run.tables() for name, run in RUNS.items()} | {
    "requests": SERVED.without_passes,
    "loads": summaries(open_loop([1.0, 40, 80, 120], capacity=90.0)),
}
CHIPS = {"chip": "TPU v5p", "chips": 4}
NAMES = ["our-own-13b", "Llama", {"layers": 3, "name": "half a description"}]


def answered(asked: Any, tables: Tables, facts: Facts) -> bool:
    try:
        asked.analyze(tables, facts, parse_options(asked.options, {})).to_dict()
    except QuestionError:
        return False
    return True


@cache
def of_no_model(run: str) -> list[Any]:
    """The questions that have an answer where no model is named."""
    return [a for a in QUESTIONS if answered(a, TABLES[run], facts_of(CHIPS))]


@pytest.mark.parametrize("name", NAMES, ids=str)
@pytest.mark.parametrize("run", TABLES)
def test_a_name_makes_not_less_possible_than_none(run, name):
    named = facts_of({**CHIPS, "model": name})
    fewer = [a.name for a in of_no_model(run) if not answered(a, TABLES[run], named)]
    assert fewer == []
