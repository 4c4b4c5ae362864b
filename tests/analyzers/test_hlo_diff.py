"""Two programs: the same one by other names and numbers differs in nothing, and a change is found where it was made."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.program import difference
from analyzers.program.matching import matched
from analyzers.program.sides import Side
from app.questions.hlo_diff import HLO_DIFF
from app.questions.hlo_diff.figure import strips
from app.questions.hlo_diff.words import _least
from errors import QuestionError
from errors.options import parse_options
from tests import hlo_programs as made
from tests.analyzers.test_hlo_graph import Kept


def diff(a, b):
    kept = Kept(a, b)
    names = kept.tables.arrow("modules", ["name"])["name"].to_pylist()
    first, second = ("jit_made", "jit_made (2)") if names[0] == names[1] else names
    # the one with more instructions by number is listed first: it is the second of these
    return difference.analyze(
        kept.tables, {}, parse_options(difference.OPTIONS, {"program": second, "other": first}), kept
    )


@settings(max_examples=60, deadline=None)
@given(made.plans(), st.integers(0, 1 << 20))
def test_a_program_and_itself_renumbered_and_in_another_order_differ_in_nothing(plan, seed):
    for other in (made.program(plan), made.program(plan, seed)):
        result = diff(made.program(plan), other)
        assert result.to_dict()["same"], result.pairs[["status", "changes", "op_a", "op_b"]]
        assert result.matched.get("flops_a_share") in (None, 1.0)
        assert len(result.by_change) == 0


@settings(max_examples=50, deadline=None)
@given(made.plans(), made.plans(), st.integers(0, 1 << 20))
def test_every_operation_of_both_sides_is_told_of_once(plan, other, seed):
    one, two = made.program(plan), made.program(other, seed)
    result = diff(one, two)
    a, b = Side(one), Side(two)
    pairs = result.pairs
    assert result.totals["flops_a"] == sum(a.total(u, "flops") for u in a.units)
    assert result.totals["bytes_b"] == sum(b.total(u, "bytes") for u in b.units)
    for side, s in (("a", a), ("b", b)):
        mine = pairs[pairs["status"].isin(("unchanged", "changed", f"only_{side}"))]
        assert set(mine[f"op_{side}"].dropna()) == {s.of["name"][u] for u in s.units}
    assert set(pairs["status"]) <= set(difference.STATUSES)
    assert all(set(c) <= set(difference.CHANGES) for c in pairs["changes"])
    assert result.by_status["rows"].sum() == len(pairs)
    forth, back = matched(a, b)
    assert set(forth) <= set(a.units) and set(back) <= set(b.units)


STEP = [
    {"opcode": "parameter"},
    {"opcode": "parameter"},
    {"opcode": "add", "operands": [0, 1], "op_name": "f/add"},
    {"opcode": "subtract", "operands": [2, 1], "op_name": "f/sub"},
    {
        "opcode": "while",
        "operands": [3],
        "op_name": "f/loop",
        "trips": 4,
        "inner": [{"opcode": "parameter"}, {"opcode": "multiply", "operands": [0, 0], "op_name": "f/mul"}],
    },
    {"opcode": "negate", "operands": [4], "op_name": "f/neg"},
]


def changed(**at):
    """STEP with one operation changed, and what the difference says: {opcode: changes}."""
    plan = copy.deepcopy(STEP)
    number = at.pop("number")
    plan[number] |= at
    pairs = diff(made.program(STEP), made.program(plan, 7)).pairs
    assert set(pairs["status"]) <= {"unchanged", "changed"}
    return {op.split(".")[0]: c for op, c in zip(pairs["op_a"], pairs["changes"], strict=True) if c}


def test_each_kind_of_change_is_named():
    assert changed(number=2, layout=[0, 1]) == {"add": ("layout",)}
    assert changed(number=2, side=16) == {"add": ("shape",)}
    assert changed(number=4, trips=5) == {"multiply": ("count",), "parameter": ("count",)}
    assert changed(number=3, operands=[1, 2]) == {"subtract": ("operands",)}
    inner = [{"opcode": "parameter"}, {"opcode": "multiply", "operands": [0, 0], "op_name": "f/mul", "side": 4}]
    assert changed(number=4, inner=inner) == {"while": ("body",), "multiply": ("shape",)}


def test_what_only_one_has_is_only_there_and_the_rest_is_unchanged():
    plan = [*STEP, {"opcode": "maximum", "operands": [5, 5], "op_name": "f/new"}]
    result = diff(made.program(STEP), made.program(plan))
    assert result.count("only_b") == 1 and result.count("only_a") == 0 and result.count("changed") == 0
    assert result.pairs[result.pairs["status"] == "only_b"]["op_b"].iat[0].startswith("maximum")
    assert result.matched["flops_a_share"] == 1.0 and result.matched["flops_b_share"] < 1


def test_an_operation_taken_up_by_a_fusion_stands_beside_it():
    apart = [
        {"opcode": "parameter"},
        {"opcode": "negate", "operands": [0], "op_name": "f/neg", "side": 8},
        {"opcode": "add", "operands": [1, 1], "op_name": "f/add", "side": 8},
    ]
    inner = [{"opcode": "parameter"}, *({**told, "operands": told["operands"]} for told in apart[1:])]
    fused = [{"opcode": "parameter"}, {"opcode": "fusion", "operands": [0], "inner": inner, "op_name": "f/add"}]
    pairs = diff(made.program(apart), made.program(fused)).pairs
    told = {
        a.split(".")[0]: (b.split(".")[0], c)
        for a, b, c in zip(pairs["op_a"], pairs["op_b"], pairs["changes"], strict=True)
    }
    assert told["add"][0] == told["negate"][0] == "fusion"
    assert told["negate"][1] == ("fusion",) and "opcode" in told["add"][1]
    assert set(pairs["status"]) == {"changed", "unchanged"}


def test_there_must_be_something_to_compare_with():
    kept = Kept(made.program(STEP))
    with pytest.raises(QuestionError, match="nothing is chosen to compare"):
        difference.analyze(kept.tables, {}, parse_options(difference.OPTIONS, {}), kept)


KERNEL = {"opcode": "custom-call", "operands": [1], "op_name": "f/kernel"}
ADDED = [{"opcode": "parameter"}, {"opcode": "add", "operands": [0, 0], "op_name": "f/add"}]
ALONE = [{"opcode": "parameter"}, {**KERNEL, "operands": [0]}]


@pytest.mark.parametrize(
    "one, other, flops, shares, least",
    [
        (ADDED, [*ADDED, KERNEL], (64.0, 64.0), (1.0, None), None),
        ([*ADDED, KERNEL], ADDED, (64.0, 64.0), (None, 1.0), None),
        ([*ADDED, KERNEL], [*ADDED, KERNEL], (64.0, 64.0), (1.0, 1.0), 1.0),
        (ALONE, ADDED, (None, 64.0), (None, 0.0), None),
        (ADDED, ADDED, (64.0, 64.0), (1.0, 1.0), 1.0),
    ],
)
def test_kernels_whose_flops_nobody_tells_are_not_none(one, other, flops, shares, least):
    result = diff(made.program(one), made.program(other, 3))
    told = result.to_dict()
    assert tuple(told["totals"][f"flops_{s}"] for s in "ab") == flops
    assert tuple(told["matched"][f"flops_{s}_share"] for s in "ab") == shares
    assert _least(result, "flops") == least
    untold = [("first", KERNEL in one or one is ALONE), ("second", KERNEL in other)]
    for side, (name, has) in zip("ab", untold, strict=True):
        assert any(f"the FLOPs of the {name} program are without them" in n for n in result.notes) == has
        found = [p[f"flops_{side}"] for p in told["pairs"] if str(p[f"op_{side}"]).startswith("custom-call")]
        assert found == [None] * has
    labels = [label for bar in strips(result).data for label in bar["y"]]
    assert ("FLOPs that are told, second" in labels) == (KERNEL in other)


def test_programs_that_move_alike_do_at_least_what_is_told():
    twice = [*ADDED, {"opcode": "multiply", "operands": [1, 1], "op_name": "f/mul"}]
    one, other = made.program([*ADDED, {**KERNEL, "operands": [1, 1]}]), made.program(twice)
    said = HLO_DIFF.verdict(diff(one, other))
    assert "the second does 128 FLOPs, the first at least 64.0 FLOPs" in str(said)
