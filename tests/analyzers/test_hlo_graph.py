"""The neighbourhood of an operation: bounded, laid out in rows, and what opening a fusion leaves of it."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.program import graph, heap, hlo
from analyzers.program.layered import laid_out, spread
from analyzers.program.wiring import Wiring, neighbourhood
from errors import QuestionError
from errors.options import parse_options
from runs.programs import Program
from runs.tables import MemoryTables
from tests import hlo_programs as made


class Kept:
    """The programs of a run, by file."""

    def __init__(self, *programs: Program):
        self.programs = {f"hlo/{n}": p for n, p in enumerate(programs)}

    def of(self, file: str) -> Program:
        return self.programs[file]

    def other(self, run: str):
        raise QuestionError(f"no run {run}")

    @property
    def tables(self) -> MemoryTables:
        names = list(self.programs)
        columns = {"capture": [0] * len(names), "program": list(range(len(names))), "file": names}
        columns |= {"name": [p.name for p in self.programs.values()], "instructions": list(range(len(names)))}
        return MemoryTables({"modules": columns})


def ask(analyzer, kept: Kept, **options):
    return analyzer.analyze(kept.tables, {}, parse_options(analyzer.OPTIONS, options), kept)


edges_of = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30)


@settings(max_examples=200, deadline=None)
@given(edges_of)
def test_every_edge_leads_down_and_bends_once_in_each_row_between(edges):
    layout = laid_out(12, edges)
    down = laid_out(12, [(min(e), max(e)) for e in edges if e[0] != e[1]])
    assert len(layout.corners) == len(edges) and len(layout.x) == 12
    ordered = [(min(e), max(e)) for e in edges if e[0] != e[1]]
    for (a, b), corners in zip(ordered, down.corners, strict=True):
        assert [row for row, _ in corners] == list(range(down.row[a] + 1, down.row[b]))
    for row in set(layout.row):
        places = sorted(x for x, r in zip(layout.x, layout.row, strict=True) if r == row)
        assert all(b - a >= 1 - 1e-9 for a, b in itertools.pairwise(places))


def test_a_chain_is_a_line_and_a_fork_is_even():
    chain = laid_out(3, [(0, 1), (1, 2)])
    assert chain.row == (0, 1, 2) and len(set(chain.x)) == 1
    fork = laid_out(3, [(0, 1), (0, 2)])
    assert abs(fork.x[1] - fork.x[2]) == 1 and fork.x[0] == (fork.x[1] + fork.x[2]) / 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_places_are_the_nearest_that_keep_their_distance(wanted, dice):
    found = spread(wanted)
    assert all(b - a >= 1 - 1e-9 for a, b in itertools.pairwise(found))
    least = sum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))
    for _ in range(60):
        other = [x + dice.uniform(-0.5, 0.5) for x in found]
        if all(b - a >= 1 for a, b in itertools.pairwise(other)):
            assert sum((a - b) ** 2 for a, b in zip(other, wanted, strict=True)) >= least - 1e-9


@settings(max_examples=30, deadline=None)
@given(made.plans(), st.integers(0, 5), st.integers(1, 12), st.data())
def test_a_graph_is_bounded_and_says_what_it_leaves_out(plan, levels, nodes, data):
    kept = Kept(made.program(plan))
    names = kept.of("hlo/0").frame("instructions")["name"]
    op = data.draw(st.sampled_from(list(names)))
    result = ask(graph, kept, op=op, levels=levels, nodes=nodes)
    assert result.op == op and len(result.nodes) <= nodes
    assert result.nodes["distance"].abs().max() <= levels
    assert set(result.edges["maker"]) | set(result.edges["user"]) <= set(result.nodes["op"])
    wiring = Wiring(kept.of("hlo/0"))
    number = int(np.flatnonzero(names == op)[0])
    assert len(result.nodes) + result.more == len(within(wiring, number, levels))
    for row in result.nodes.to_dict("records"):
        at = int(np.flatnonzero(names == row["op"])[0])
        drawn = result.edges[result.edges["user"] == row["op"]]["maker"].nunique()
        assert drawn + row["operands_left"] == len({m for m, _ in wiring.makers(at)})


def within(wiring: Wiring, number: int, levels: int) -> set[int]:
    """By brute force: all that feeds it in so many levels, and all that uses it."""
    found = {number}
    for step in (lambda n: [m for m, _ in wiring.makers(n)], wiring.users):
        edge = {number}
        for _ in range(levels):
            edge = {m for n in edge for m in step(n)}
            found |= edge
    return found


@settings(max_examples=80, deadline=None)
@given(made.plans())
def test_opening_everything_leaves_only_plain_operations_wired_as_the_values_run(plan):
    program = made.program(plan)
    rows = program.frame("instructions")
    opened = [n for n, o in enumerate(rows["opcode"]) if o in ("fusion", "while")]
    wiring = Wiring(program, opened)
    plain = [n for n in range(len(rows)) if n not in wiring.opened]
    for n in plain:
        for maker, _ in wiring.makers(n):
            assert maker not in wiring.opened
            assert n in wiring.users(maker)
    entry = rows["computation"] == program.entry
    for n in plain:  # a parameter inside stands for what is given
        if rows["opcode"][n] == "parameter" and not entry[n]:
            assert wiring.users(n) == []


def test_a_fusion_that_is_opened_gives_way_to_what_is_in_it():
    inner = [{"opcode": "parameter"}, {"opcode": "negate", "operands": [0]}, {"opcode": "add", "operands": [1, 0]}]
    plan = [
        {"opcode": "parameter"},
        {"opcode": "fusion", "operands": [0], "inner": inner},
        {"opcode": "multiply", "operands": [1, 1]},
    ]
    kept = Kept(made.program(plan))
    names = {
        n.split(".")[0]: n for n in kept.of("hlo/0").frame("instructions")["name"] if not n.startswith("parameter")
    }
    closed = ask(graph, kept, op=names["multiply"], levels=3)
    assert set(closed.nodes["opcode"]) == {"parameter", "fusion", "multiply"}
    opened = ask(graph, kept, op=names["multiply"], levels=3, open=names["fusion"])
    assert set(opened.nodes["opcode"]) == {"parameter", "negate", "add", "multiply"}
    assert set(zip(opened.edges["maker"], opened.edges["user"], strict=True)) >= {
        (names["negate"], names["add"]),
        (names["add"], names["multiply"]),
    }
    inside = ask(graph, kept, op=names["negate"])
    assert inside.computation_kind == "fusion" and inside.called_by == (names["fusion"],)
    assert inside.more == 0 and len(inside.nodes) == 3  # its parameter and its user: the fusion is closed
    with pytest.raises(QuestionError, match="holds no other operations"):
        ask(graph, kept, open=names["negate"])
    with pytest.raises(QuestionError, match="no operation 'nothing'"):
        ask(graph, kept, op="nothing")


def test_the_nearest_and_heaviest_are_kept():
    plan = [{"opcode": "parameter"}, *({"opcode": "negate", "operands": [0], "side": 4 + n} for n in range(6))]
    program = made.program(plan)
    weight = np.arange(7.0)
    kept, more = neighbourhood(Wiring(program), 0, 1, 3, ("operands", "users"), weight)
    assert list(kept) == [0, 6, 5] and more == 4


def test_text_is_searched_in_all_fields_and_counted_in_each():
    plan = [
        {"opcode": "parameter"},
        {"opcode": "add", "operands": [0, 0], "op_name": "layer/ADD", "side": 4},
        {"opcode": "negate", "operands": [1], "op_name": "layer/neg", "side": 4},
        {"opcode": "add", "operands": [1, 2], "side": 8},
    ]
    kept = Kept(made.program(plan))
    found = ask(hlo, kept, q="add f32[4")
    assert found.hits["opcode"].to_list() == ["add"] and found.hits["op_name"].to_list() == ["layer/ADD"]
    assert found.hits_in == {"name": 1, "opcode": 1, "shape": 1, "op_name": 1, "source": 0}
    line = int(found.hits["line"].iat[0])
    assert "add(" in ask(hlo, kept, line=line, lines=1).lines[0]
    assert len(ask(hlo, kept, q="add").hits) == 2 and len(ask(hlo, kept, q="nowhere").hits) == 0
    with pytest.raises(QuestionError, match="line 900"):
        ask(hlo, kept, line=900)
    at = ask(hlo, kept, op=str(found.hits["name"].iat[0]))
    assert at.at == line and any("add(" in text for text in at.lines)


def test_programs_of_one_name_are_told_apart_and_the_one_with_the_operation_is_opened():
    one = made.program([{"opcode": "parameter"}, {"opcode": "negate", "operands": [0]}])
    two = made.program(
        [{"opcode": "parameter"}, {"opcode": "add", "operands": [0, 0]}, {"opcode": "negate", "operands": [1]}]
    )
    kept = Kept(one, two)
    labels = ask(hlo, kept).programs["program"].to_list()
    assert labels == ["jit_made", "jit_made (2)"]
    add = next(n for n in two.frame("instructions")["name"] if n.startswith("add"))
    assert ask(graph, kept, op=add).op == add
    assert ask(graph, kept, op=add, program="jit_made").program in labels
    with pytest.raises(QuestionError, match="no program 'other'"):
        ask(hlo, kept, program="other")
    with pytest.raises(QuestionError, match="without the compiler's buffer assignment"):
        ask(heap, kept)
    with pytest.raises(QuestionError, match="no program is kept"):
        hlo.analyze(MemoryTables({}), {}, parse_options(hlo.OPTIONS, {}), kept)


def test_a_long_program_is_answered_in_bounds():
    dice = random.Random(3)
    plan = [{"opcode": "parameter"}]
    plan += [{"opcode": "add", "operands": [dice.randrange(n), dice.randrange(n)]} for n in range(1, 3000)]
    kept = Kept(made.program(plan))
    result = ask(graph, kept, levels=12, nodes=200)
    assert len(result.nodes) == 200 and result.more > 0
    assert len(ask(hlo, kept, lines=5000).lines) <= 5000
