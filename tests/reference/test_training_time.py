"""Overlap, collectives and input of the bundled run, against plain arithmetic and against what was truly done to it."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from analyzers.device import input, overlap
from analyzers.ranks import collectives
from analyzers.time import ledger
from errors.options import parse_options
from tests.bundled import bundled

FOLDER = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training"
TRUTH = json.loads((FOLDER.parent / "training.truth.json").read_text())
CHIPS = 4
NOT_COMPUTING = {"collective", "control", "copy", "infeed", "outfeed", "host", "annotation"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, "training")


@pytest.fixture(scope="module")
def ask(run):
    def answer(question, **options):
        return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))

    return answer


def injected(what):
    return [i for i in TRUTH["injections"] if i["what"] == what]


def swept(spans):
    """Time covered at least once, by counting how many are open."""
    edges = sorted([(a, 1) for a, b in spans] + [(b, -1) for a, b in spans])
    open_, last, total = 0, 0, 0
    for at, change in edges:
        total += (at - last) if open_ > 0 else 0
        open_, last = open_ + change, at
    return total


def test_computing_and_communication_by_counting_edges(run, ask):
    """Over all operations of each device, so that no window matters."""
    captures = {r["capture"]: r for r in run.tables.arrow("captures").to_pylist()}
    ops = {
        (o["capture"], o["op_id"]): o
        for o in run.tables.arrow("ops").to_pylist()
        if o["role"] == "compute" and o["device"] is not None
    }
    computing, talking = defaultdict(list), defaultdict(list)
    for e in run.tables.arrow("op_events").to_pylist():
        op = ops.get((e["capture"], e["op_id"]))
        if op is None:
            continue
        begun = captures[e["capture"]]["start_ns"]
        span = begun + e["start_ps"] // 1000, begun + (e["start_ps"] + e["dur_ps"]) // 1000
        if op["category"] == "collective":
            talking[op["host"]].append(span)
        elif op["category"] not in NOT_COMPUTING:
            computing[op["host"]].append(span)
    rows = ask(overlap, window="operations").devices.set_index("host")
    assert set(rows.index) == set(computing) == {f"vm/{n}" for n in range(CHIPS)}
    for host, row in rows.iterrows():
        assert round(row["compute_s"] * 1e9) == swept(computing[host])
        assert round(row["communication_s"] * 1e9) == swept(talking[host])
        both = swept(computing[host]) + swept(talking[host]) - swept(computing[host] + talking[host])
        assert round(row["overlapped_s"] * 1e9) == both


def test_the_straggler_is_idle_while_the_others_communicate(ask):
    (late,) = injected("straggler")
    rows = ask(overlap).devices.set_index("host")
    slow = f"vm/{late['process']}"
    others = rows.drop(index=slow)
    extra_s = late["total_s"]
    assert rows.loc[slow, "idle_s"] - others["idle_s"].median() == pytest.approx(extra_s, rel=0.05)
    assert others["exposed_s"].median() - rows.loc[slow, "exposed_s"] == pytest.approx(extra_s, rel=0.1)
    usual = ask(overlap, step=late["first_step"])
    assert usual.timeline_step == late["first_step"]


def test_what_ranks_waited_in_collectives(ask):
    (late,) = injected("straggler")
    result = ask(collectives)
    assert result.totals["wait_s"] >= (CHIPS - 1) * late["total_s"]
    assert result.totals["wait_s"] + result.totals["transfer_s"] == pytest.approx(result.totals["total_s"])
    assert set(result.rows["axis"]) == {"model", "data", "data+model"}
    over_data = result.rows[result.rows["axis"] == "data"].iloc[0]
    assert (over_data["kind"], over_data["bytes"], over_data["group_size"]) == ("all-reduce", 3_670_020, 2)


def test_the_stalls_are_the_steps_that_were_stalled(ask):
    stall_s = sum(i["total_s"] for i in injected("input_stall"))
    (planned,) = TRUTH["plan"]["stalls"]
    result = ask(input)
    assert result.verdict == "stalls" and result.input_bound is False
    assert result.stalls["step"].tolist() == list(range(planned["first"], planned["last"] + 1))
    assert result.waited_s == pytest.approx(stall_s, rel=0.05)
    assert result.slope == pytest.approx(1.0, abs=0.1)


def test_the_ledger_and_the_input_agree(ask):
    assert ask(input).waited_s == pytest.approx(ask(ledger).ledger.amount("input_wait"), rel=0.01)
