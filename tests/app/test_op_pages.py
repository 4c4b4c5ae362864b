"""The pages Roofline and Operations: their words, figures, choices in the address, and what they say without data."""

import json
import math
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from analyzers.device import operations as ops
from analyzers.device import roofline
from analyzers.device.roofline import BOUNDS
from app import theme
from app.cli import main
from app.components.op_choice import found
from app.figures.op_categories import LOOKS, look
from app.questions.operations import figure as draw_ops
from app.questions.operations import words as ops_words
from app.questions.roofline import figure as draw
from app.questions.roofline import words as roofline_words
from runs.schema import OP_CATEGORIES
from tests.analyzers.op_tables import PEAK, V5P, WIDE, ask_with, op_tables
from tests.app import made_runs
from tests.app.test_pages import ODD, opened, words

MS = 1e6
STEPS = {
    "capture": [0] * 10,
    "host": ["h"] * 10,
    "step": list(range(10)),
    "start_ns": list(range(10)),
    "dur_ns": [96_000_000] * 10,
}


def timed(op: str, ms: float, **more) -> dict:
    return {"op": op, "total_ns": ms * MS, "self_ns": ms * MS, "count": 10, **more}


ROWS = [  # ten steps of 96 ms, of which the roofs need 41 ms
    timed("fusion.123", 600, flops=1e9, bytes=WIDE * 0.02, source="src/model.py:88", shape="bf16[8]"),
    timed("dot.1", 260, category="matmul", flops=PEAK * 0.013, bytes=1e6, source="src/model.py:90"),
    timed("copy.1", 50, category="copy", flops=0.0, bytes=WIDE * 0.003, module="jit_g"),
    timed("all-reduce.1", 50, category="collective", flops=1e6, bytes=1e9),
]
ODD_ROW = timed(ODD, 1, flops=1e9, bytes=1e6, source=ODD, shape=ODD)


def ask(question, rows=ROWS, facts=V5P, steps=True, **options):
    return ask_with(question, rows, facts, {"steps": STEPS} if steps else None, **options)


def compiled(question):
    rows = [{**r, "self_ns": None, "total_ns": None, "cycles": 1e5} for r in ROWS]
    return ask(question, rows, V5P | {"outcome": "compiled"}, steps=False)


def tables(rows) -> dict:
    return {**op_tables(rows), "steps": STEPS, "captures": {"capture": [0], "host": ["h"], "start_ns": [0]}}


@pytest.fixture
def run(place):
    return made_runs.write(place.store, "traced", tables([*ROWS, ODD_ROW]), V5P)


@pytest.fixture
def program(place):
    rows = [{**r, "self_ns": None, "total_ns": None, "device": None, "host": None} for r in ROWS]
    return made_runs.write(place.store, "compiled", op_tables(rows), V5P | {"outcome": "compiled"}, kind="compiled")


def test_the_sentence_says_what_binds_what_is_to_gain_and_where():
    assert roofline_words.verdict(ask(roofline)) == (
        "68 % of device time is memory-bound; at the roofs the operations of a step would take 41.0 ms instead of "
        "96.0 ms. Most is to gain at fusion.123 (model.py:88): 62 % of device time at 33 % of its roof."
    )
    assert "the operations of a device would take 410 ms instead of 960 ms" in roofline_words.verdict(
        ask(roofline, steps=False)
    )


def test_the_sentence_of_a_program_that_never_ran_promises_no_time():
    assert roofline_words.verdict(compiled(roofline)) == (
        "64 % of the least time of this program is memory-bound; at the roofs its operations take 360 ms a step, one "
        "after another."
    )
    assert ops_words.verdict(compiled(ops)).startswith("fusion.123 (model.py:88) takes 56 % of the least time")


def test_the_longest_operation_is_named_with_its_line_and_roof():
    assert ops_words.verdict(ask(ops)) == (
        "fusion.123 (model.py:88) takes 62 % of device time at 33 % of its roof. By kind: fusion 62 %, matmul 27 %, "
        "copy 5 %."
    )
    assert ops_words.verdict(ask(ops, by="category")) == "fusion takes 62 % of device time at 33 % of its roof."
    assert "of its roof" not in ops_words.verdict(ask(ops, [ROWS[3]]))  # a collective has none


@pytest.mark.parametrize("row", range(4))
def test_every_operation_can_be_told_in_a_sentence(row):
    for result in (ask(roofline), compiled(roofline)):
        text = roofline_words.told(result.points.iloc[row].to_dict(), result)
        assert text.endswith(".") and "nan" not in text


def test_what_one_operation_reaches():
    result = ask(roofline)
    assert roofline_words.told(result.points.iloc[0].to_dict(), result) == (
        "fusion.123 (model.py:88): 62.5 % of device time. At 0.0181 FLOP/byte memory binds: it reaches 922 GB/s of "
        "2,760 GB/s (33.3 %). At the roof it would take 200 ms instead of 600 ms, over all devices."
    )


def test_points_stand_at_their_rates_under_the_roofs():
    result = ask(roofline)
    figure = draw.roofline(result, "jit_f/dot.1")
    markers = {t.name: t for t in figure.data if t.mode == "markers" and t.name}
    assert set(markers) == {"fusion", "matmul"}
    assert markers["matmul"].y[0] == pytest.approx(PEAK / 2) and markers["matmul"].customdata[0] == "jit_f/dot.1"
    areas = {name: (t.marker.size[0]) ** 2 for name, t in markers.items()}
    assert areas["fusion"] / areas["matmul"] == pytest.approx(600 / 260)
    line = next(t for t in figure.data if t.mode == "lines")
    assert max(line.y) == PEAK and line.y[0] == pytest.approx(WIDE * line.x[0])
    assert PEAK / WIDE in [pytest.approx(x) for x in line.x]
    ring = figure.data[-1]
    assert ring.x[0] == markers["matmul"].x[0] and ring.hoverinfo == "skip"
    low, high = (10**v for v in figure.layout.xaxis.range)
    assert low < min(markers["fusion"].x) and high > PEAK / WIDE
    texts = [a.text for a in figure.layout.annotations]
    assert "specified 459 TFLOP/s" in texts and "specified 2,760 GB/s" in texts


def test_what_computes_nothing_is_drawn_by_bandwidth():
    figure = draw.bandwidth(ask(roofline))
    assert [t.name for t in figure.data] == ["copy"]
    assert figure.data[0].x[0] == pytest.approx(WIDE * 0.6)
    assert draw.bandwidth(ask(roofline, ROWS[:2])) is None
    assert draw.roofline(ask(roofline, ROWS[2:])) is None


def test_a_program_that_never_ran_is_drawn_hollow_on_its_roof():
    figure = draw.roofline(compiled(roofline))
    dot = next(t for t in figure.data if t.name == "matmul")
    assert dot.y[0] == pytest.approx(PEAK) and dot.marker.symbol.endswith("-open")
    assert draw.bandwidth(compiled(roofline)) is None


def test_the_strip_adds_up_to_all_time():
    for figure in (draw.strip(ask(roofline)), draw_ops.strip(ask(ops)), draw_ops.strip(compiled(ops))):
        assert sum(t.x[0] for t in figure.data) == pytest.approx(100)


@pytest.mark.parametrize("by", ops.BY)
def test_bars_are_whole_with_the_roof_inside(by):
    result = ask(ops, by=by)
    figure = draw_ops.bars(result)
    bars = [t for t in figure.data if t.type == "bar"]
    ends = np.max([np.asarray(t.base) + np.asarray(t.x) for t in bars], axis=0)
    assert ends == pytest.approx((result.rows["self_seconds"] / 10 * 1e3).tolist())  # ms of a step
    if by == "op":
        roof = next(t for t in bars if t.name == "at the roof")
        assert roof.x[:2] == pytest.approx((20.0, 13.0))
    assert len(ops_words.table(result).rows) == len(result.rows)


def test_every_category_and_bound_has_a_look_and_words():
    assert set(LOOKS) == set(OP_CATEGORIES)
    assert len({look(c).symbol for c in OP_CATEGORIES}) == len(OP_CATEGORIES)
    assert look("never seen") == LOOKS["other"] == look(None)
    assert set(draw.BOUND_COLOURS) == set(BOUNDS) == set(roofline_words.SAID) == set(roofline_words.TITLES)
    for colour in draw.BOUND_COLOURS.values():
        assert theme.contrast(theme.text_on(colour), colour) >= 4.5


def test_ticks_are_round_and_few():
    axis = draw._axis(1e9, 1e15, lambda v: draw._unit(v, "FLOP/s"))
    assert axis["ticktext"][0] == "1 GFLOP/s" and len(axis["tickvals"]) <= 12
    assert all(math.log10(v).is_integer() for v in axis["tickvals"])


def test_search_finds_by_any_words():
    rows = ask(ops).rows
    assert found(rows, "MODEL.py jit_f")["op"].tolist() == ["fusion.123", "dot.1"]
    assert found(rows, "bf16[8] (")["op"].tolist() == [] and found(rows, "bf16[8]")["op"].tolist() == ["fusion.123"]
    assert len(found(rows, "")) == len(rows) and not len(found(rows.head(0), "x"))


@pytest.mark.parametrize("page", ["questions/roofline/page.py", "questions/operations/page.py"])
def test_the_pages_stand_for_a_trace_a_program_and_a_log(place, run, program, page):
    at = opened(page, run=run.run_id)
    assert not at.exception and not at.warning and at.metric
    assert "of device time" in words(at)
    assert ODD not in "\n".join(m.value for m in (*at.markdown, *at.caption))
    at = opened(page, run=program.run_id)
    assert not at.exception and not at.warning and "of the least time of this program" in words(at)
    at = opened(page, run=made_runs.interrupted(place.store).run_id)
    assert not at.exception and "no operation of a device" in words(at)


def test_the_address_says_which_roof_operation_and_program(run):
    at = opened("questions/roofline/page.py", run=run.run_id, roof="reached", op="jit_f/fusion.123", module="jit_f")
    assert not at.exception and not at.warning
    assert "at the best rates of this run" in words(at)
    assert "At 0.0181 FLOP/byte memory binds" in words(at)
    next(b for b in at.button if b.label == "Close").click().run()
    assert not at.exception and "op" not in at.query_params
    at = opened("questions/roofline/page.py", run=run.run_id, op="no such", roof="wrong")
    assert not at.exception and not at.warning
    at = opened("questions/roofline/page.py", run=run.run_id, module="no such")
    assert not at.exception and "no operation with module 'no such'" in words(at)


def test_a_program_is_chosen_and_the_answer_is_of_it_alone(run):
    at = opened("questions/operations/page.py", run=run.run_id, q="fusion.123")
    assert "1 row. Choosing" in words(at)
    at.selectbox(key="pick_module").set_value("jit_g").run()
    assert not at.exception and "copy.1 takes 100 % of device time at 60 % of its roof" in words(at)
    at.selectbox(key="pick_module").set_value("").run()
    assert not at.exception and "fusion.123" in words(at)


def test_the_links_to_json_ask_what_the_page_asks(run, place):
    at = opened("questions/operations/page.py", run=run.run_id, by="source", module="jit_f")
    link = next(b for b in at.get("link_button") if b.proto.label == "JSON")
    address = urlsplit(link.proto.url)
    assert address.path == f"/api/runs/{run.run_id}/show/operations"
    assert parse_qs(address.query) == {"by": ["source"], "module": ["jit_f"]}


def test_the_command_line_prints_and_gives_the_contract(run, capsys):
    assert main(["show", run.run_id, "roofline"]) == 0
    assert "fusion.123" in capsys.readouterr().out
    assert main(["show", run.run_id, "ops", "--option", "by=category", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["run_id"] == run.run_id and said["rows"][0]["category"] == "fusion"


def test_operations_that_move_next_to_nothing_stand_at_the_edge_and_say_so():
    usual = [{**r, "bytes": 1e9} if r["op"] == "dot.1" else r for r in ROWS]
    result = ask(roofline, [*usual, {**usual[0], "op": "all.on.chip", "bytes": 4.0}])
    points = draw.drawn(result).set_index("op")
    edge = draw.EDGE * result.roof.ridge
    assert points.loc["all.on.chip", "flops_per_byte"] > edge
    assert points.loc["all.on.chip", "x"] == pytest.approx(edge)
    for op in ("fusion.123", "dot.1"):
        assert points.loc[op, "x"] == points.loc[op, "flops_per_byte"]
    assert any("at this edge" in a.text for a in draw.roofline(result).layout.annotations)
    assert not any("at this edge" in a.text for a in draw.roofline(ask(roofline, usual)).layout.annotations)
