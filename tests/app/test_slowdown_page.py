"""The page of the what-if slowdown: what it says first, what the address chooses, what is drawn."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analyzers.ranks import slowdown
from app.questions.slowdown import figure as draw
from app.questions.slowdown import words as said
from app.theme import contrast
from errors.options import parse_options
from runs.run import facts_of
from tests.analyzers.pipelines import MS, Pipelines
from tests.app import made_runs
from tests.app.test_pages import opened, words

SLOW = Pipelines(
    dp=2,
    stages=4,
    microbatches=8,
    steps=4,
    forward=lambda step, d, s, mb: 10 * MS * (3 if (d, s) == (1, 2) else 1),
    backward=lambda step, d, s, mb: 20 * MS * (3 if (d, s) == (1, 2) else 1),
)
LONG = Pipelines(dp=2, stages=4, microbatches=8, steps=2, forward=lambda step, d, s, mb: 10 * MS * (2 if s == 3 else 1))


def ask(world, facts=None, **options):
    return slowdown.analyze(world.tables(), facts_of(facts or {}), parse_options(slowdown.OPTIONS, options))


@pytest.fixture
def run(place):
    return made_runs.write(place.store, "pipeline", {"pipeline": SLOW.rows()}, {"chips": 64})


def test_the_page(place, run):
    at = opened("questions/slowdown/page.py", run=run.run_id)
    assert not at.exception and not at.warning
    result = ask(SLOW, {"chips": 64})
    assert "Its slow worker (data rank 1, stage 2) costs" in words(at)
    assert at.metric[0].value == f"{result.s:.2f}"
    assert len(at.dataframe[0].value) == 8


@pytest.mark.parametrize(("view", "rows"), [("stages", 4), ("types", 8), ("steps", 4), ("timeline", None)])
def test_the_address_chooses_the_view(place, run, view, rows):
    at = opened("questions/slowdown/page.py", run=run.run_id, view=view)
    assert not at.exception and not at.warning
    assert rows is None or len(at.dataframe[0].value) == rows


def test_the_address_chooses_step_and_rank(place, run):
    at = opened("questions/slowdown/page.py", run=run.run_id, view="timeline", step="2", dp_rank="0")
    assert not at.exception and "Step 2 on data-parallel rank 0" in words(at)
    at.selectbox(key="pick_step").set_value("3").run()
    assert at.query_params["step"] in ("3", ["3"]) and "Step 3 on data-parallel rank 0" in words(at)
    for wrong in ({"step": "999"}, {"dp_rank": "7"}, {"step": "x"}):
        at = opened("questions/slowdown/page.py", run=run.run_id, view="timeline", **wrong)
        assert not at.exception and at.info
    assert not opened("questions/slowdown/page.py", run=run.run_id, view="nothing").exception


def test_a_run_without_a_pipeline_is_told_what_would_bring_it(place):
    at = opened("questions/slowdown/page.py", run=made_runs.interrupted(place.store).run_id)
    assert not at.exception
    assert "this run has no pipeline operations" in words(at) and "dp_rank, stage, rank, step" in words(at)


def test_what_is_said_of_a_slow_worker():
    result = ask(SLOW, {"chips": 64})
    measured = float(result.per_step["measured_s"].sum() / result.per_step["t_ideal_s"].sum())
    text = said.verdict(result)
    assert result.over_ideal == pytest.approx(measured) and text.startswith(f"Steps take {measured:.2f} times their")
    assert f"{100 * (1 - 1 / measured):.0f} % of 64 chips' time is lost." in text
    assert text.endswith("Its slow worker (data rank 1, stage 2) costs 100 % of that.")
    assert "1 chip's time is lost." in said.verdict(ask(SLOW, {"chips": 1}))


def test_the_headline_is_measured_time_over_ideal_time_and_s_is_a_figure_of_its_own():
    """Launch delays of 4 %: S leaves them out, the chips do not."""
    result = ask(LONG)
    slower = replace(result, over_ideal=1.32, s=1.27)
    text = said.verdict(slower)
    assert text.startswith("Steps take 1.32 times their ideal time (S, without launch delays: 1.27): 24 % of ")
    rows = dict(said.table(slower).rows)
    assert rows["step time over ideal time"] == "1.32" and rows["slowdown S, without launch delays"] == "1.27"
    assert result.over_ideal == pytest.approx(result.s * result.launch_slowdown)


def test_lengths_are_named_beside_a_long_last_stage():
    """The last stage takes twice as long, and micro-batches differ: both hold, both are said."""
    lengths = np.random.default_rng(0).uniform(0.2, 1.8, (6, 4, 6))
    world = Pipelines(
        dp=4,
        stages=4,
        microbatches=6,
        steps=6,
        forward=lambda step, d, s, mb: round(10 * MS * lengths[step, d, mb] * (3 if s == 3 else 1)),
        backward=lambda step, d, s, mb: round(20 * MS * lengths[step, d, mb] * (3 if s == 3 else 1)),
    )
    result = ask(world)
    assert result.cause == "last stage" and result.causes == ("last stage", "sequence imbalance")
    text = said.verdict(result).whole
    assert "Its last stage costs" in text and "Beside that its micro-batches differ in length: forward and" in text
    assert result.to_dict()["causes"] == ["last stage", "sequence imbalance"]
    assert "differ in length" not in said.verdict(ask(LONG))


def test_what_is_said_of_stages_pauses_lengths_and_nothing():
    result = ask(LONG)
    assert said.verdict(result).startswith(f"Steps take {result.over_ideal:.2f} times their ideal time")
    assert f"it computes {result.shares.stage_ratio:.2f} times as long as the others" in said.verdict(result)
    assert "Its last stage costs 100 % of that" in said.verdict(result)
    assert "Its stage 3 costs" in said.verdict(replace(result, cause="stage"))
    assert said.verdict(ask(Pipelines())).startswith("Nothing slows this job down")
    assert "Its micro-batches differ in length" in said.verdict(
        replace(result, cause="sequence imbalance", shares=replace(result.shares, correlation=0.97))
    )
    assert "Ranks that pause at different times to collect garbage cost 90 % of that" in said.verdict(
        replace(result, cause="garbage collection", shares=replace(result.shares, gc=0.9))
    )
    assert "No worker, stage or pause explains most of it" in said.verdict(replace(result, cause="unknown"))
    untrusted = {**result.validity, "trusted": False, "replay_error": 0.12}
    assert "cannot be told: replaying the trace misses its step times by 12 %" in said.verdict(
        replace(result, validity=untrusted, cause="unknown")
    )


def test_many_slow_workers_are_counted():
    result = replace(ask(SLOW), worst=tuple((d, 2) for d in range(6)))
    assert "6 slowest workers (data rank 0, stage 2; data rank 1, stage 2; data rank 2, stage 2 and 3 others)" in (
        said.verdict(result)
    )


def test_parts_in_words():
    assert [said.part(v) for v in (None, 1.0017, 0.0314, -0.0012, -0.12)] == ["–", "100 %", "3 %", "0 %", "−12 %"]


def test_the_terminal_shows_the_same():
    result = ask(SLOW)
    rows = dict(said.table(result).rows)
    assert rows["slowdown S, without launch delays"] == f"{result.s:.2f}"
    assert rows["slowest worker"] == "data rank 1, stage 2"
    assert rows["cause"] == "worker"


def test_the_heat_map_holds_every_worker():
    result = ask(SLOW)
    figure = draw.mesh(result)
    z = np.array(figure.data[0].z, dtype=float)
    assert z.shape == (2, 4)
    assert z[1, 2] == pytest.approx(min(result.by_dp_rank[1], result.by_stage[2]))
    assert figure.data[1].text[6] == f"{z[1, 2]:.2f}"
    for at in np.linspace(0, 1, 21):  # every label reads on its cell
        mixed = [round(a * (1 - at) + b * at) for a, b in zip(_rgb(draw.EVEN), _rgb(draw.SLOW), strict=True)]
        assert contrast(draw._ink(at), "#" + "".join(f"{c:02X}" for c in mixed)) >= 4.5


def _rgb(colour):
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def test_bars_are_what_each_part_alone_costs():
    result = ask(LONG)
    assert list(draw.stages(result).data[0].x) == pytest.approx([100 * s - 100 for s in result.by_stage.values()])
    drawn = draw.types(result).data[0]
    assert list(drawn.y)[0] == "forward-compute" and list(drawn.x) == sorted(drawn.x, reverse=True)


def test_the_timeline_is_the_step_as_measured_and_evenly():
    result = ask(SLOW, step=1, dp_rank=1)
    figure = draw.timeline(result)
    bars = [(y, base, x) for trace in figure.data for y, base, x in zip(trace.y, trace.base, trace.x, strict=True)]
    measured = max(base + x for y, base, x in bars if y < 4)
    even = max(base + x for y, base, x in bars if y > 4)
    unit = 1e3  # ms
    assert measured == pytest.approx(float(result.per_step.set_index("step").measured_s[1]) * unit, rel=2e-3)
    assert even == pytest.approx(result.t_ideal_s * unit, rel=2e-3)
    busy = sum(
        x for trace in figure.data if trace.name == "backward" for y, x in zip(trace.y, trace.x, strict=True) if y == 2
    )
    assert busy == pytest.approx(8 * 60)
    assert {"waiting for peers", "forward", "backward", "communication"} <= {t.name for t in figure.data}


def test_figures_stay_small_however_large_the_run():
    result = ask(SLOW)
    places = [(d, p) for d in range(4096) for p in range(16)]
    large = replace(
        result,
        by_dp_rank=dict.fromkeys(range(4096), 1.2),
        by_stage=dict.fromkeys(range(64), 1.1),
        workers=pd.DataFrame(places, columns=["dp_rank", "stage"]).assign(s=np.linspace(2, 1, len(places))),
        per_step=pd.concat([result.per_step] * 20_000).assign(step=range(80_000)),
        timeline=pd.concat([result.timeline] * 500, ignore_index=True),
    )
    for figure in (draw.mesh(large), draw.stages(large), draw.steps(large), draw.timeline(large)):
        assert len(figure.to_json()) < 1_000_000


def test_answers_are_json():
    assert json.loads(json.dumps(ask(SLOW).to_dict(), allow_nan=False))["cause"] == "worker"
