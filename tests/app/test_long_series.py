"""Very many steps as density, percentiles and points: held to a loop over the steps."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from app.figures.long_series import (
    BEYOND,
    LEAST_WIDTH,
    LONG,
    MOST,
    PERCENTILES,
    STRETCHES,
    is_long,
    long_series,
    other_steps,
    said_of,
    standing_out,
    stretches,
)
from tests.conftest import seeds


def world(seed: int, count: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    step = np.sort(chance.choice(count * 3, count, replace=False)) + int(chance.integers(-5, 10**6))
    y = chance.lognormal(2, chance.choice([1e-4, 0.05, 0.8]), count)
    y[chance.random(count) < 0.01] *= 9
    y[chance.random(count) < 0.002] = np.nan
    return pd.DataFrame({"step": step, "y": y})


def hovers(rows: pd.DataFrame) -> list[str]:
    return [f"{step}" for step in rows["step"]]


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("log", [False, True])
def test_percentiles_and_what_stands_out_are_those_of_a_loop(seed, log):
    rows = world(seed, 3000 + seed)
    told = rows.dropna()
    found = stretches(told["step"].to_numpy(), told["y"].to_numpy(), log)
    assert len(found.counts) <= STRETCHES and found.counts.sum() == len(told)
    out = 0
    for n, count in enumerate(found.counts):
        begin = found.first + n * found.width
        y = told["y"][told["step"].between(begin, begin + found.width - 1)].to_numpy()
        assert len(y) == count
        if not count:
            assert np.isnan(found.percentiles[:, n]).all()
            continue
        p = np.percentile(y, PERCENTILES)
        assert found.percentiles[:, n] == pytest.approx(p)
        width = max(p[3] - p[1], LEAST_WIDTH * abs(p[2]))
        out += int(((y > p[3] + BEYOND * width) | (y < p[1] - BEYOND * width)).sum())
    shown, beyond = standing_out(found, rows)
    assert beyond == out and len(shown) == min(out, MOST)
    assert found.cells.sum() == len(told) - out  # each step is shaded or a point, none is both


def test_of_more_than_fit_the_furthest_out_are_kept_and_the_rest_is_counted():
    rows = pd.DataFrame({"step": range(100_000), "y": 1.0})
    rows.loc[::20, "y"] = 2.0 + np.arange(5000) / 5000
    series = long_series(rows, "s", hovers)
    (points,) = [t for t in series.traces if (t.name or "").startswith("stands out")]
    assert len(points.x) == MOST and points.name == "stands out (5,000)"
    assert min(points.y) == pytest.approx(2 + (5000 - MOST) / 5000)
    assert f"the {MOST:,} furthest out of 5,000." in series.words


def test_the_figure_says_what_it_is_and_stays_small():
    rows = world(1, 60_000)
    series = long_series(rows, "s", hovers)
    figure = go.Figure()
    assert said_of(figure) == ""
    series.draw(figure)
    assert said_of(figure).startswith("Each column is a stretch of 375 steps: the thick line is its median")
    assert len(figure.to_json()) < 400_000
    assert all(len(t.x) <= max(MOST, STRETCHES + 1) for t in figure.data)


def test_steps_that_are_told_apart_are_counted_and_drawn_where_they_stand_out():
    rows = pd.DataFrame({"step": range(50_000), "y": 1.0})
    found = stretches(rows["step"].to_numpy(), rows["y"].to_numpy())
    lost = pd.DataFrame({"step": [5, 6, 7], "y": [1.0, 1.001, 4.0]})
    drawn = other_steps(found, lost, "lost", "#000", "circle", hovers)
    assert list(drawn.x) == [7] and drawn.name == "lost (3; 1 stand out)"
    assert other_steps(found, lost.iloc[:0], "lost", "#000", "circle", hovers) is None


def test_a_series_without_spread_or_of_one_value_stands():
    for y in (0.0, 5.0, -1.0):
        rows = pd.DataFrame({"step": [7] * 10, "y": y})
        assert long_series(rows, "s", hovers, log=True).words.endswith("No step stands out.")


def test_a_few_thousand_steps_are_a_line():
    assert not is_long(LONG) and is_long(LONG + 1)
