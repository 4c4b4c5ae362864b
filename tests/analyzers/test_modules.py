"""Modules: sums of a tree by hand, layers folded, waste as operations tell it, exposed communication by instants."""

import json
import random

import numpy as np
import pytest

from analyzers.device import operations as ops
from analyzers.device.modules import modules
from analyzers.device.modules.tree import UNTOLD
from app.questions.modules import words
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.op_tables import PEAK, V5P, WIDE, ask_with, op_tables
from tests.conftest import seeds

MS = 1e6
SUMS = (
    "seconds",
    "forward_seconds",
    "backward_seconds",
    "recompute_seconds",
    "other_pass_seconds",
    "at_roof_seconds",
    "wasted_seconds",
    "communication_seconds",
    "unknown_seconds",
    "exposed_communication_seconds",
    "executions",
)


def ask(rows, facts=V5P, more=None, **options):
    return ask_with(modules, rows, facts, more, **options)


def timed(scope, ms, op="dot", **more):
    return {"scope": scope, "op": op, "total_ns": ms * MS, "self_ns": ms * MS, **more}


def by_path(result):
    return {r["path"]: r for r in result.rows.to_dict("records")}


def drawn(rng, count=40):
    """Operations in a tree of layers, of every kind, some of no module."""
    rows = []
    for n in range(count):
        depth = rng.randint(0, 4)
        names = [rng.choice(["a", "b%2F", f"layer_{rng.randint(0, 3)}"]) for _ in range(depth)]
        kind = rng.choice(["matmul", "copy", "collective", "fusion"])
        cost = {} if rng.random() < 0.3 else {"flops": PEAK * rng.random() * 1e-3, "bytes": WIDE * rng.random() * 1e-3}
        rows.append(
            timed(
                "/".join(names) or None,
                rng.choice([0.0, 0.2, 1.0, rng.random() * 5]),
                op=rng.choice(["dot", "add", f"x{n}"]),
                category=kind,
                count=rng.randint(1, 4),
                shape=rng.choice([None, "f32[2]"]),
                direction=rng.choice([None, "forward", "backward", "recompute"]),
                module=rng.choice(["jit_f", "jit_g"]),
                **cost,
            )
        )
    return rows


@pytest.mark.parametrize("seed", seeds(30))
def test_time_and_executions_of_every_module_are_those_of_its_operations(seed):
    rows = drawn(random.Random(seed))
    told = by_path(ask(rows, fold="none"))
    every = {p for r in rows if r["scope"] for p in _prefixes(r["scope"])}
    assert every == {p for p, r in told.items() if p and r["told"]}
    for path, row in told.items():
        if not row["told"]:
            continue
        mine = [r for r in rows if path == "" or (r["scope"] and (r["scope"] + "/").startswith(path + "/"))]
        assert row["seconds"] == pytest.approx(sum(r["self_ns"] for r in mine) / 1e9, rel=1e-9, abs=1e-15)
        assert row["own_seconds"] == pytest.approx(
            sum(r["self_ns"] for r in mine if r["scope"] == path) / 1e9, rel=1e-9, abs=1e-15
        )
        for pass_ in ("forward", "backward", "recompute"):
            by_hand = sum(r["self_ns"] for r in mine if r["direction"] == pass_) / 1e9
            assert row[f"{pass_}_seconds"] == pytest.approx(by_hand, rel=1e-9, abs=1e-15)
    untold = sum(r["self_ns"] for r in rows if not r["scope"]) / 1e9
    assert told.get(UNTOLD, {"seconds": 0.0})["seconds"] == pytest.approx(untold, rel=1e-9, abs=1e-15)


def _prefixes(scope):
    names = scope.split("/")
    return ["/".join(names[: i + 1]) for i in range(len(names))]


@pytest.mark.parametrize("fold", ["none", "layers"])
@pytest.mark.parametrize("seed", seeds(30))
def test_children_and_what_is_its_own_make_up_a_module(seed, fold):
    result = ask(drawn(random.Random(seed)), fold=fold, depth=random.Random(seed).choice([1, 2, 12]))
    rows = result.rows
    for row in rows.to_dict("records"):
        within = rows[rows["parent"] == row["path"]]
        assert row["seconds"] == pytest.approx(row["own_seconds"] + within["seconds"].sum(), rel=1e-9, abs=1e-15)
        for key in SUMS:
            assert row[key] + 1e-12 >= within[key].sum() and row[key] >= 0
        for parts in (SUMS[1:5], SUMS[5:9]):
            assert sum(row[k] for k in parts) == pytest.approx(row["seconds"], rel=1e-9, abs=1e-12)
    assert rows["path"].is_unique


@pytest.mark.parametrize("seed", seeds(25))
def test_modules_and_operations_are_one_story(seed):
    rows = drawn(random.Random(seed))
    whole = ask(rows).rows.iloc[0]
    for by in ops.BY:
        told = ask_with(ops, rows, V5P, by=by)
        assert told.device_seconds == pytest.approx(whole["seconds"], rel=1e-9)
        assert told.rows["wasted_seconds"].sum() == pytest.approx(whole["wasted_seconds"], rel=1e-9, abs=1e-12)


def test_waste_is_what_roofs_do_not_need_and_the_rest_is_told_apart():
    rows = [
        timed("m/a", 20, "dot.1", category="matmul", flops=PEAK * 0.005, bytes=1e6),
        timed("m/b", 10, "all-reduce", category="collective", flops=1e6, bytes=1e9),
        timed("m", 4, "call", category="custom-call"),
        timed("m/c", 1, "fast", category="matmul", flops=PEAK * 0.01, bytes=1.0),
    ]
    told = by_path(ask(rows))
    assert [told["m/a"][k] for k in SUMS[5:9]] == pytest.approx([0.005, 0.015, 0, 0])
    assert [told["m"][k] for k in SUMS[5:9]] == pytest.approx([0.005, 0.015, 0.010, 0.005])
    assert told["m/a"]["wasted_share"] == pytest.approx(0.75)
    assert told["m"]["flops"] == pytest.approx(PEAK * 0.015 + 1e6)
    assert np.isnan(by_path(ask([timed("m", 4, "call", category="custom-call")]))["m"]["flops"])


def layer(n, ms=10.0):
    return [
        timed(f"net/layer_{n}/attn", ms, "dot", category="matmul", shape="f32[8]"),
        timed(f"net/layer_{n}/mlp/Linear_{2 * n}", 5, "up"),
        timed(f"net/layer_{n}/mlp/Linear_{2 * n + 1}", 3, "down"),
    ]


def test_layers_are_folded_and_what_differs_within_them_is_not():
    rows = [r for n in range(4) for r in layer(n)]
    told = by_path(ask(rows))
    folded = told["net/layer_[0-3]"]
    assert folded["copies"] == 4 and folded["seconds"] == pytest.approx(0.072)
    assert told["net/layer_[0-3]/mlp/Linear_*#1"]["seconds"] == pytest.approx(0.020)
    assert told["net/layer_[0-3]/mlp/Linear_*#2"]["seconds"] == pytest.approx(0.012)
    assert folded["slowest_copy"] is None  # they are alike
    assert folded["least_copy_seconds"] == pytest.approx(folded["longest_copy_seconds"]) == pytest.approx(0.018)
    assert "net/layer_2/mlp/Linear_4" in by_path(ask(rows, fold="none"))


def test_a_slow_layer_is_named_where_it_stands_out_and_its_excess_counts():
    rows = [r for n in range(6) for r in layer(n, 30.0 if n == 2 else 10.0)]
    result = ask(rows)
    assert by_path(result)["net/layer_[0-5]"]["slowest_copy"] == "net/layer_2"
    assert "Of the 6 alike modules net / layer_[0-5], layer_2 takes 2.11 times as long as the median" in words.verdict(
        result
    )
    much = [*rows, timed("elsewhere", 10_000)]
    assert by_path(ask(much))["net/layer_[0-5]"]["slowest_copy"] is None  # nothing beside all time
    assert (
        by_path(ask([r for n in (2, 3) for r in layer(n, 30.0 if n == 2 else 10.0)]))["net/layer_[2-3]"]["slowest_copy"]
        is None
    )  # of two nobody is the slow one


def test_layers_of_another_kind_are_folded_apart():
    rows = [r for n in range(4) for r in layer(n)]
    rows += [timed(f"net/layer_{n}/conv/{k}", 1, f"op{k}") for n in (4, 5, 6) for k in "abcde"]
    assert {"net/layer_[0-3]", "net/layer_[4-6]"} <= set(by_path(ask(rows)))


def test_deeper_modules_count_to_the_last_level():
    told = by_path(ask([timed("a/b/c/d", 1), timed("a", 2)], depth=2))
    assert set(told) == {"", "a", "a/b"} and told["a/b"]["own_seconds"] == pytest.approx(0.001)
    deep = "/".join("x" for _ in range(500))
    assert max(r["depth"] for r in by_path(ask([timed(deep, 1)], depth=64)).values()) == 64
    with pytest.raises(QuestionError):
        ask([timed("a", 1)], depth=0)


def talking(rng):
    """Collectives and computing of one device, in ms that may overlap: (rows, tables, exposed ms by scope by hand)."""
    rows = [
        timed("m/a", 1, "all-reduce.1", category="collective"),
        timed(None, 1, "all-reduce.2", category="collective"),
        timed("m/b", 1, "dot", category="matmul"),
    ]
    events = [(rng.randint(0, 2), rng.randint(0, 40), rng.randint(1, 9)) for _ in range(12)]
    events.sort(key=lambda e: (e[1], -e[2]))
    tables = {
        "captures": {"capture": [0], "host": ["h"], "start_ns": [10**18], "stop_ns": [10**18 + 10**9]},
        "op_events": {
            "capture": [0] * len(events),
            "event": [*range(len(events))],
            "device": [0] * len(events),
            "op_id": [op for op, _, _ in events],
            "start_ps": [start * 10**9 for _, start, _ in events],
            "dur_ps": [took * 10**9 for _, _, took in events],
        },
    }
    by_hand = {"m/a": 0, None: 0}
    for ms in range(60):
        running = [op for op, start, took in events if start <= ms < start + took]
        if running and 2 not in running:
            by_hand["m/a" if running[0] == 0 else None] += 1
    return rows, tables, by_hand


@pytest.mark.parametrize("seed", seeds(30))
def test_exposed_communication_belongs_to_the_module_whose_collective_began_first(seed):
    rows, more, by_hand = talking(random.Random(seed))
    told = by_path(ask(rows, more=more))
    assert told["m/a"]["exposed_communication_seconds"] == pytest.approx(by_hand["m/a"] / 1e3)
    assert told[UNTOLD]["exposed_communication_seconds"] == pytest.approx(by_hand[None] / 1e3)
    whole = told[""]["exposed_communication_seconds"]
    assert whole == pytest.approx(sum(by_hand.values()) / 1e3)


@pytest.mark.parametrize("seed", seeds(25))
def test_exposed_communication_is_that_of_the_question_overlap(seed):
    from analyzers.device import overlap

    rows, more, _ = talking(random.Random(seed))
    tables = MemoryTables({**op_tables(rows), **more})
    there = overlap.analyze(tables, facts_of(V5P), parse_options(overlap.OPTIONS, {"window": "operations"}))
    whole = by_path(ask(rows, more=more))[""]["exposed_communication_seconds"]
    assert whole == pytest.approx(there.totals["exposed_s"])


def test_collectives_that_two_programs_name_alike_belong_each_to_its_own():
    """Both are one interval from their start to their done, which the operations of the device do not show."""
    ms, name = 1_000_000, "all-reduce-start.1"
    rows = [
        timed("train/layer", 1, name, category="collective", module="jit_train"),
        timed("eval/head", 1, name, category="collective", module="jit_eval"),
    ]
    begun, spans = 10**18, [("jit_train", 0, 10), ("jit_eval", 50, 53)]
    more = {
        "captures": {"capture": [0], "host": ["h"], "start_ns": [begun], "stop_ns": [begun + 100 * ms]},
        "op_events": {
            **{"capture": [0, 0], "event": [0, 1], "device": [0, 0], "op_id": [0, 1]},
            **{"start_ps": [start * ms * 1000 for _, start, _ in spans], "dur_ps": [ms * 1000] * 2},
        },
        "collectives": {
            **{"capture": [0, 0], "host": ["h", "h"], "device": [0, 0], "op": [name] * 2},
            **{"module": [module for module, _, _ in spans]},
            **{"start_ns": [begun + start * ms for _, start, _ in spans]},
            **{"end_ns": [begun + end * ms for _, _, end in spans]},
        },
    }

    def told(**options):
        return {p: r["exposed_communication_seconds"] for p, r in by_path(ask(rows, more=more, **options)).items()}

    every = told()
    assert (every["train/layer"], every["eval/head"], every[""]) == pytest.approx((0.010, 0.003, 0.013))
    assert told(module="jit_eval")[""] == pytest.approx(0.003)


def test_a_part_of_a_run_can_be_asked():
    rows = [timed("a", 1), timed("b", 2, device=1), timed("c", 4, module="jit_g")]
    assert set(by_path(ask(rows, device=1))) == {"", "b"}
    assert set(by_path(ask(rows, module="jit_g"))) == {"", "c"}


def test_the_answer_fits_json_and_hostile_names_are_names():
    name = "<img src=x onerror=alert(1)>"
    result = ask([timed(f"{name}/b%2Fc", 1), timed(None, 1, category="copy")])
    said = result.to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert [r["name"] for r in said["modules"] if r["depth"] == 2 and r["told"]] == ["b/c"]
    assert said["told_share"] == pytest.approx(0.5)


def test_names_that_are_those_of_copies_together_lose_nothing():
    rows = [r for n in range(4) for r in layer(n)]
    rows += [timed("net/layer_[0-3]", 7), timed("net/layer_[0-3]'", 9), timed(UNTOLD, 11), timed("/", 13)]
    rows += [timed(f"net/layer_{n}/mlp/Linear_*", 1) for n in range(4)]
    result = ask(rows)
    told = by_path(result)
    assert result.rows["path"].is_unique
    assert told[""]["seconds"] == pytest.approx(sum(r["self_ns"] for r in rows) / 1e9)
    assert told["net/layer_[0-3]"]["seconds"] == pytest.approx(0.007)
    assert told["net/layer_[0-3]''"]["seconds"] == pytest.approx(0.076)
    assert told[UNTOLD]["seconds"] == pytest.approx(0.013)


def test_modules_without_number_have_an_end(monkeypatch):
    monkeypatch.setattr("analyzers.device.modules.tree.MOST_MODULES", 5)
    rows = [timed(f"m{n}/deep/er", 20 - n) for n in range(9)]
    result = ask(rows)
    assert len(result.rows) <= 1 + 5 + 2
    assert by_path(result)[""]["seconds"] == pytest.approx(sum(range(12, 21)) / 1e3)


def test_what_has_no_module_is_said_first_where_it_is_most():
    few = ask([timed(None, 60), timed("a", 30), timed("b", 10)])
    assert words.verdict(few).startswith("60.0 % of device time has no module told; most of the rest is in a, 30.0 %.")
    some = ask([timed(None, 10), timed("a", 80), timed("b", 10)])
    assert words.verdict(some).startswith("a takes 80.0 % of device time.")
    assert "10.0 % of the time has no module told" in words.verdict(some)
    assert "no module" not in words.verdict(ask([timed(None, 1), timed("a", 99)]))


def test_a_run_that_tells_no_module_says_so():
    result = ask([timed(None, 1), timed(None, 2, "copy", category="copy")])
    assert words.verdict(result).startswith("No operation of this run tells which module it came from.")
    assert {r["path"] for r in result.rows.to_dict("records")} == {"", UNTOLD, f"{UNTOLD}/fusion", f"{UNTOLD}/copy"}
    with pytest.raises(QuestionError, match="no operation"):
        ask([])


@pytest.mark.parametrize("seed", seeds(30))
def test_what_is_said_is_so(seed):
    """The module named holds more than half of each module around it, and no module within it does."""
    result = ask(drawn(random.Random(seed)))
    rows = result.rows[result.rows["told"]]
    for by in ("seconds", "wasted_seconds"):
        top = words.largest(result, by)
        if top is None:
            continue
        names = top["path"].split("/")
        for i in range(1, len(names)):
            around, inner = ("/".join(names[:k]) for k in (i, i + 1))
            values = rows.set_index("path")[by]
            assert values[inner] > 0.5 * values[around]
        assert not (rows[rows["parent"] == top["path"]][by] > 0.5 * top[by]).any()
        first = rows[rows["parent"] == ""]
        assert rows.set_index("path")[by][names[0]] == first[by].max()
    assert words.verdict(result).endswith(".") and "nan" not in words.verdict(result)
