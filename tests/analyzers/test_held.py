"""Chips of a run: one number, whichever question, page or price asks for it."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analyzers.base import OPTION
from analyzers.held import held
from analyzers.lost import checkpoints, goodput, interruptions
from analyzers.lost.interruptions.fleet_rates import nodes_of
from analyzers.serving import load
from analyzers.time import ledger
from app.questions.checkpoints import words as checkpoint_words
from app.questions.interruptions import words as interruption_words
from app.summary import chips_text, run_dict
from collectors.ingest import ingest
from errors.options import parse_options
from runs.registry import Extras
from runs.run import FactValue, facts_of
from runs.schema import SCHEMAS
from runs.store import Store
from runs.tables import MemoryTables
from tests.analyzers.stopped_jobs import EPOCH, Attempt, Job

PRICE = {"usd_per_chip_hour": 3.0}


def profiled(hosts: int, devices: int, first: int = 0) -> dict:
    """Rows of `ops` of so many devices on each of so many hosts."""
    places = list(itertools.product(range(first, first + hosts), range(devices)))
    return {
        "capture": [h for h, _ in places],
        "op_id": list(range(len(places))),
        "host": [f"h{h}" for h, _ in places],
        "device": [d for _, d in places],
        "role": ["compute"] * len(places),
    }


def asked(question, tables, facts):
    return question.analyze(tables, facts_of(facts), parse_options(question.OPTIONS, {}))


@pytest.mark.parametrize(
    ("facts", "chips"),
    [({}, 8), ({"chips": 1}, 8), ({"chips": 64}, 64), ({"chip": "TPU v3"}, 4), ({"chip": "TPU v3", "chips": 3}, 4)],
)
def test_every_question_counts_the_same_chips(facts, chips):
    """A stop costs the same on every page: a profile of 8 devices beside whatever was stated."""
    job = Job([Attempt(60, 5, 100), Attempt(60)]).columns() | {"ops": profiled(2, 4)}
    tables = MemoryTables(job)
    answers = {
        q.__name__.rpartition(".")[2]: asked(q, tables, facts | PRICE) for q in (interruptions, checkpoints, goodput)
    }
    assert {name: a.chips for name, a in answers.items()} == dict.fromkeys(answers, chips)
    assert asked(ledger, tables, facts | PRICE).ledger.chips == chips
    stop = answers["interruptions"].rows.iloc[0]
    lost = answers["checkpoints"].to_dict()["lost"]
    parts = lost["restarts"]["usd"] + lost["redone"]["usd"]
    assert parts == pytest.approx(stop["lost_s"] * chips / 3600 * 3.0) == pytest.approx(stop["usd"])


def test_chips_that_nothing_tells_are_said_to_be_counted_as_one():
    tables = MemoryTables(Job([Attempt(60, 5, 100), Attempt(60)]).columns())
    found = held(tables, {})
    assert found.chips is None and found.counted == 1 and "counted as one" in found.notes[0]
    assert asked(goodput, tables, PRICE).chips is None and asked(interruptions, tables, PRICE).chips == 1


def test_what_is_asked_counts_as_asked():
    tables = MemoryTables({"ops": profiled(2, 4)})
    assert held(tables, {"chips": FactValue(2, "declared", OPTION)}).chips == 2
    assert held(tables, {"chips": FactValue(2, "declared", "chipledger.json")}).chips == 8
    one = {
        "requests": {
            "id": ["a"],
            "arrival_ns": [EPOCH],
            "last_token_ns": [EPOCH + 10**9],
            "output_tokens": [5],
            "prompt_tokens": [5],
            "status": ["completed"],
        }
    }
    assert asked(load, MemoryTables(one | {"ops": profiled(2, 4)}), {"chips": 4}).chips == 8


def test_only_lines_on_which_a_device_works_are_devices():
    ops = {
        "capture": [0] * 5,
        "op_id": list(range(5)),
        "host": ["a", "a", "b", None, "a"],
        "device": [0, 1, None, 2, 0],
        "role": ["compute", "host", "compute", "compute", "async"],
    }
    assert held(MemoryTables({"ops": ops}), {}).seen == 1


def test_hosts_of_two_core_chips_are_not_halved():
    """One of two hosts was profiled: its 8 devices are 4 of 8 chips, not all of them."""
    seen = [("h0", d) for d in range(8)]
    facts = facts_of({"chip": "TPU v3", "chips": 8})
    assert nodes_of(facts, 8, 2, seen, None).count == 2
    assert nodes_of(facts, 4, 2, seen, None).count == 1
    job = Job([Attempt(60, 5, 100), Attempt(60)]).columns() | {"ops": profiled(1, 8)}
    assert asked(interruptions, MemoryTables(job), {"chip": "TPU v3", "chips": 8}).nodes.count == 2


def written(folder, name, columns, table):
    folder.mkdir(exist_ok=True)
    rows = pa.Table.from_batches([SCHEMAS[table].batch(columns)])
    pq.write_table(rows, folder / f"{name}.parquet")


@pytest.fixture
def folder(tmp_path):
    """A folder of tables: two hosts of four devices each."""
    into = tmp_path / "in"
    captures = {"capture": [0, 1], "host": ["h0", "h1"], "start_ns": [EPOCH] * 2, "stop_ns": [EPOCH + 10**9] * 2}
    written(into, "captures", captures, "captures")
    written(into, "ops", profiled(2, 4), "ops")
    for name, columns in Job([Attempt(60, 5, 100), Attempt(60)]).columns().items():
        if len(next(iter(columns.values()))):
            written(into, name, columns, name)
    return into


@pytest.mark.parametrize(("stated", "chips", "warned"), [(None, 8, False), (4, 8, True), (256, 256, False)])
def test_the_manifest_the_list_and_the_ledger_tell_one_number(tmp_path, folder, stated, chips, warned):
    store = Store(tmp_path / "store")
    run = store.get(ingest([folder], store, chips=stated).run_id)
    assert run.manifest.fact("chips") == chips and run_dict(run, Extras())["chips"] == chips
    assert chips_text(run) == f"{chips} chips"
    answer = interruptions.analyze(run.tables, run.manifest.facts, parse_options(interruptions.OPTIONS, {}))
    assert answer.chips == chips
    assert any("counted as 8" in w for w in run.manifest.warnings) == warned
    words = (
        interruption_words.verdict(answer),
        checkpoint_words.verdict(
            checkpoints.analyze(run.tables, run.manifest.facts, parse_options(checkpoints.OPTIONS, {}))
        ),
    )
    assert all(words)
