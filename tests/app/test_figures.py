"""Figures hold the ledger's own numbers, and close as it does."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.time.steps import StepsResult
from app.figures.base import plain, reduced, standalone
from app.questions.ledger.accounts import opened, path_text
from app.questions.ledger.calendar import calendar
from app.questions.ledger.icicle import boxes, icicle
from app.questions.ledger.waterfall import falls, waterfall
from app.questions.steps.figure import best_scale, steps
from app.questions.steps.hosts import hosts
from runs.ledger import Account, Ledger
from tests.app import ledgers

names = st.text("abc.<&\\", min_size=1, max_size=4)


@st.composite
def accounts(draw, depth=3):
    name = draw(names)
    if depth == 0 or draw(st.booleans()):
        return Account(name=name, chip_seconds=draw(st.floats(0, 1e7)), basis="derived")
    parts = draw(st.lists(accounts(depth=depth - 1), max_size=4, unique_by=lambda a: a.name))
    return Account.total(name, parts) if parts else Account(name=name, chip_seconds=1.0, basis="derived")


@given(accounts())
def test_every_path_leads_back_to_its_account(root):
    for path, account in root.walk():
        assert opened(root, path_text(path))[-1] is account


@given(accounts())
def test_an_icicle_closes_on_every_row(root):
    drawn = boxes(root)
    for box in drawn:
        below = [b for b in drawn if b.path[:-1] == box.path]
        if below:
            assert math.fsum(b.width for b in below) == pytest.approx(box.width, rel=1e-9)
            assert min(b.start for b in below) == pytest.approx(box.start)
            ends = sorted((b.start, b.start + b.width) for b in below)
            assert all(nxt[0] == pytest.approx(end[1], abs=1e-3) for end, nxt in zip(ends, ends[1:], strict=False))


@given(accounts())
def test_a_waterfall_falls_to_nothing_or_to_what_was_kept(root):
    bars = falls(root)
    assert bars[0].start == root.chip_seconds
    level = bars[0].start
    for bar in bars[1:]:
        if bar.total:
            assert bar.start == pytest.approx(level, rel=1e-9, abs=1e-6)
        else:
            assert bar.start == pytest.approx(level, rel=1e-9, abs=1e-6)
            assert bar.end <= bar.start
            level = bar.end
    if root.children:
        last = bars[-1]
        assert last.total or level == pytest.approx(0, abs=1e-6 * max(root.chip_seconds, 1))


def test_the_icicle_draws_the_ledger_in_chip_hours():
    result = ledgers.usual()
    bar = icicle(result.ledger).data[0]
    drawn = dict(zip(bar.customdata, bar.x, strict=True))
    for path, account in result.ledger.account.walk():
        assert drawn[path_text(path)] == pytest.approx(account.chip_seconds / 3600)
    assert icicle(result.ledger).layout.xaxis.title.text == "chip-hours"
    assert "Useful maths<br>33.9 %" in bar.text


def test_an_opened_account_fills_the_width_below_its_ancestors():
    ledger = ledgers.usual().ledger
    drawn = boxes(ledger.account, "badput.custom")
    assert [b.account.name for b in drawn[:3]] == ["held", "badput", "custom"]
    assert {b.width for b in drawn[:3]} == {90 * 3600.0}
    assert drawn[3].account.name == "<b>evil</b> & $5 v1.2"
    assert opened(ledger.account, "badput.custom.<b>evil</b> & $5 v1\\.2")[-1] is drawn[3].account
    assert opened(ledger.account, "badput.nothing.here")[-1].name == "badput"


def test_names_from_inputs_are_escaped_in_figures():
    for figure in (icicle(ledgers.usual().ledger, "badput.custom"), waterfall(ledgers.usual().ledger)):
        bar, axis = figure.data[0], figure.layout.yaxis
        shown = "".join([*(bar.text or ()), *bar.hovertext, *(axis.ticktext or ())])
        assert "<b>evil" not in shown and "&lt;b&gt;evil&lt;/b&gt; &amp; $5" in shown
    page = standalone(icicle(ledgers.usual().ledger), "<script>evil</script>", "x")
    assert b"<script>evil" not in page and b'fetch("http' not in page
    assert plain("<i>&") == "&lt;i&gt;&amp;"


def test_the_waterfall_shows_dollars_and_amounts_of_its_bars():
    figure = waterfall(ledgers.usual(4.0).ledger)
    bar = figure.data[0]
    at = {c: (b, x) for c, b, x in zip(bar.customdata, bar.base, bar.x, strict=True)}
    assert at[""] == (0, pytest.approx(12400))
    assert at["productive"] == (0, pytest.approx(8680))
    assert at["productive.useful_maths"] == (0, pytest.approx(4200))
    assert at["badput.infrastructure_recovery"] == (pytest.approx(11200), pytest.approx(1200))
    assert any("$4,800" in h for h in bar.hovertext)


def test_a_part_is_named_with_what_it_is_a_part_of():
    texts = waterfall(ledgers.usual().ledger).layout.yaxis.ticktext
    assert "Straggler wait: waiting for host 7" in texts and "Straggler wait: no single rank" in texts
    assert "Unattributed: not profiled" in texts and "&lt;b&gt;evil&lt;/b&gt; &amp; $5 v1.2" in texts
    assert "<b>Chip time held</b>" in texts and "Checkpoint save" in texts


def test_nothing_to_draw_is_drawn_without_failing():
    assert len(icicle(ledgers.empty().ledger).data[0].x) == 1
    assert len(waterfall(ledgers.empty().ledger).data[0].x) == 1
    assert calendar(ledgers.empty()) is None
    five = Ledger(chips=1, account=Account(name="held", chip_seconds=5, basis="measured"))
    assert icicle(five).layout.xaxis.title.text == "chip-seconds"


def test_the_calendar_covers_the_job_without_gap_or_overlap():
    result = ledgers.usual()
    bar = calendar(result).data[0]
    spans = list(zip(bar.base, bar.x, strict=True))
    assert spans[0][0] == result.start_ns / 1e6
    for (a, width), (b, _) in zip(spans, spans[1:], strict=False):
        assert a + width == pytest.approx(b, abs=1)
    assert sum(spans[-1]) == pytest.approx(result.end_ns / 1e6, abs=1)


@settings(max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6) | st.just(math.nan), max_size=3000), st.integers(4, 400))
def test_a_reduced_series_keeps_its_extremes(values, points):
    values = np.array(values, dtype=float)
    kept = reduced(values, points)
    assert len(kept) <= points
    assert list(kept) == sorted(set(kept))
    if len(values) and not np.isnan(values).all():
        assert np.nanmax(values[kept]) == np.nanmax(values)
        assert np.nanmin(values[kept]) == np.nanmin(values)


def taken(n: int = 30, **columns) -> StepsResult:
    rows = pd.DataFrame(
        {
            "attempt": [0] * n,
            "step": range(n),
            "start_ns": [None] * n,
            "dur_s": [1.0] * n,
            "kept": [True] * n,
            "first": [i == 0 for i in range(n)],
            "implausible": [""] * n,
            "tokens_per_s_per_chip": [None] * n,
            "tflops_per_s_per_chip": [None] * n,
            "loss": [None] * n,
        }
        | columns
    )
    return StepsResult(
        rows=rows,
        hosts=pd.DataFrame({"host": [], "step": [], "dur_s": []}),
        steps=n,
        median_step_s=1.0,
        best_step_s=1.0,
        tokens_per_s_per_chip=None,
        tflops_per_s_per_chip=None,
    )


def test_steps_are_drawn_by_what_became_of_them():
    kept = [i not in (10, 11) for i in range(30)]
    false = ["" if i != 1 else "2,400 TFLOP/s <is> above the peak" for i in range(30)]
    durations = [30.0] + [1.0] * 29
    figure = steps(taken(kept=kept, implausible=false, dur_s=durations), "log")
    drawn = {t.name: t for t in figure.data}
    assert list(drawn["lost and taken again"].x) == [10, 11]
    assert list(drawn["first of its attempt"].y) == [30.0]
    assert list(drawn["cannot be true"].x) == [1]
    assert "&lt;is&gt;" in drawn["cannot be true"].hovertext[0]
    assert drawn["lost and taken again"].marker.symbol.endswith("open")
    assert len(drawn["kept"].x) == 26
    assert figure.layout.yaxis.type == "log"
    (median,) = [a for a in figure.layout.annotations if "median" in a.text]
    assert median.y == 0  # log10 of 1 s
    assert set(figure.layout.yaxis.ticktext) >= {"1", "2", "5", "10", "20"}
    assert best_scale(taken(dur_s=durations)) == "log"
    assert best_scale(taken()) == "linear"


def test_a_line_breaks_between_attempts_and_a_restart_is_marked():
    figure = steps(taken(attempt=[0] * 15 + [1] * 15, first=[i in (0, 15) for i in range(30)]))
    line = next(t for t in figure.data if t.name == "kept")
    assert np.isnan(np.array(line.y, dtype=float)).sum() == 1
    assert any(s.line.dash == "dot" and s.x0 == 15 for s in figure.layout.shapes)


def test_a_million_steps_become_few_points_and_keep_the_spike():
    n = 200_000
    durations = np.ones(n)
    durations[123_456] = 9.0
    figure = steps(taken(n, dur_s=durations))
    assert all(len(t.x) <= 2001 for t in figure.data)
    (spike,) = [t for t in figure.data if (t.name or "").startswith("stands out")]
    assert list(spike.x) == [123_456] and list(spike.y) == [9.0]
    assert len(figure.to_json()) < 2_000_000


def test_short_steps_are_drawn_in_milliseconds():
    result = taken(dur_s=[0.05] * 30)
    figure = steps(StepsResult(**{**vars(result), "median_step_s": 0.05}))
    assert figure.layout.yaxis.title.text == "step duration (ms)"
    assert figure.data[0].y[3] == pytest.approx(50)


def test_hosts_are_drawn_only_where_they_differ():
    def spread(slow):
        frame = pd.DataFrame(
            {"host": ["a"] * 10 + ["<b>"] * 10, "step": [*range(10)] * 2, "dur_s": [1.0] * 10 + [slow] * 10}
        )
        return StepsResult(**{**vars(taken()), "hosts": frame})

    assert hosts(spread(1.01)) is None
    assert hosts(taken()) is None
    figure = hosts(spread(1.5))
    assert list(figure.data[0].y) == ["&lt;b&gt;", "a"]
    assert list(figure.data[0].x) == [1.5, 1.0]
