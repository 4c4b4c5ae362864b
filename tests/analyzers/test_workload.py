"""Arrivals and lengths of traffic: against processes whose shape is known, and sums done by hand."""

import json

import numpy as np
import pytest

from analyzers.serving import traffic as workload
from analyzers.serving.arrivals import chance_dip, chance_peak, gaps, in_flight, shape, window
from errors import QuestionError
from errors.options import parse_options
from runs.tables import MemoryTables

S = 1_000_000_000
START = 1_700_000_000 * S


def ask(columns, **options):
    tables = MemoryTables({"requests": columns})
    return workload.analyze(tables, {}, parse_options(workload.OPTIONS, options))


def trace(times_s, prompt=None, output=None, **more):
    n = len(times_s)
    return {
        "arrival_ns": [START + round(t * S) for t in times_s],
        "prompt_tokens": prompt or [100] * n,
        "output_tokens": output or [10] * n,
        **more,
    }


def shape_of(times) -> str:
    times = np.sort(times)
    return shape(gaps(times), [w for s in (1.0, 10.0, 60.0) if (w := window(times, s)) is not None])


@pytest.mark.parametrize("seed", range(8))
def test_processes_are_told_apart(seed):
    rng = np.random.default_rng(seed)
    even = np.arange(3000) / 5 + rng.uniform(0, 0.02, 3000)
    poisson = np.cumsum(rng.exponential(0.2, 5000))
    bursts = (np.cumsum(rng.exponential(10, 150))[:, None] + rng.uniform(0, 0.5, (150, 20))).ravel()
    rate = 5 * (1 + 0.8 * np.sin(np.arange(1000) / 100))  # the rate drifts over ten minutes
    drifting = np.concatenate([s + rng.uniform(0, 1, rng.poisson(r)) for s, r in enumerate(rate)])
    assert [shape_of(t) for t in (even, poisson, bursts)] == ["even", "poisson", "bursty"]
    assert shape_of(drifting) in ("drifting", "bursty") and window(np.sort(drifting), 60.0).dispersion > 10


def test_chance_holds_99_of_100_poisson_processes():
    """Ranges from the formulas against processes made at random: binomial noise of 400 trials is 0.5 %."""
    rng = np.random.default_rng(5)
    inside = peaks = dips = 0
    for _ in range(400):
        counts = rng.poisson(4.0, 200)
        times = np.repeat(np.arange(200.0), counts) + 0.5
        times = np.concatenate([[0.0], times, [200.0]])  # the window grid begins and ends at the true edges
        found = window(times, 1.0)
        inside += found.chance_low <= found.dispersion <= found.chance_high
        peaks += counts.max() <= chance_peak(4.0, 200)
        dips += counts.min() >= chance_dip(4.0, 200)
    assert 385 <= inside <= 400 and peaks >= 390 and dips >= 390


def test_a_window_by_hand():
    found = window(np.array([0.0, 0.1, 0.9, 1.0, 3.5, 4.2]), 1.0)
    counts = np.array([3, 1, 0, 1])
    assert (found.windows, found.mean_per_s, found.peak_per_s, found.peak_at_s) == (4, counts.mean(), 3.0, 0.0)
    assert found.peak_to_mean == 3 / counts.mean() and found.empty_share == 0.25 and found.dispersion is None
    many = np.repeat(np.arange(20.0), np.tile([1, 3], 10))
    counts = np.tile([1, 3], 10)[:19]  # the last window is not whole
    assert window(many, 1.0).dispersion == pytest.approx(counts.var() / counts.mean())
    assert window(np.array([0.0, 0.5]), 1.0) is None


def test_windows_of_a_long_trace_cost_no_memory_of_their_own():
    """A second of traffic, and one request ten years later: 3 x 10^8 windows of a second, all but two empty."""
    found = window(np.array([0.0, 0.5, 3.15e8]), 1.0)
    assert found.windows == 315_000_000 and found.empty_share == pytest.approx(1, abs=1e-8)


def test_gaps_use_the_standard_deviation_of_all():
    times = np.array([0.0, 1.0, 3.0, 3.0])
    found = gaps(times)
    assert (found.mean, found.cv, found.zero_share) == (1.0, pytest.approx(np.std([1, 2, 0])), 1 / 3)
    assert gaps(np.array([1.0])) is None and gaps(np.zeros(5)).cv is None


def test_gaps_that_are_all_alike_do_not_vary_by_what_their_sums_round_off():
    """A client that sends every 0.3 s, told to the millisecond: a CV of 1.2e-14 was told."""
    told = gaps(np.array([n * 300_000_000 / 1e9 for n in range(300)]))
    assert told is not None and (told.mean, told.std, told.cv, told.lag) == (0.3, 0, 0, 0)


def test_lengths_mix_and_shares():
    found = ask(trace(range(4), [512, 511, 0, 5000], [127, 128, 1, 128]))
    assert found.mix == {"short_both": 0.25, "heavy_prompt": 0.25, "heavy_output": 0.25, "heavy_both": 0.25}
    assert found.prompt_share == 6023 / (6023 + 384)
    assert found.prompt_tokens["p50"] == 511.5 and found.prompt_tokens["max"] == 5000
    cells = {(r.prompt_from, r.output_from): r.requests for r in found.joint.itertuples()}
    assert cells == {(512, 64): 1, (256, 128): 1, (0, 1): 1, (4096, 128): 1}
    assert ask(trace(range(2), [5, 6], [9, 10]), heavy_prompt=6, heavy_output=10).mix["heavy_both"] == 0.5


def test_rates_add_up_to_all_tokens_but_the_last_window():
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.exponential(0.5, 1000))
    prompt = rng.integers(1, 100, 1000)
    found = ask(trace(times, prompt.tolist()))
    whole = (times - times[0]) < len(found.rates) * found.rate_window_s
    assert (found.rates["prompt_tokens_per_s"] * found.rate_window_s).sum() == pytest.approx(prompt[whole].sum())
    assert (found.rates["requests_per_s"] * found.rate_window_s).sum() == pytest.approx(whole.sum())


def test_tenants():
    found = ask(trace(range(6), [10] * 3 + [20] * 3, tenant=["a", "a", "b", "a", None, "b"]))
    rows = {r["tenant"]: r for r in found.to_dict()["tenants"]}
    assert rows["a"] == {
        "tenant": "a",
        "requests": 3,
        "share": 0.5,
        "request_rate_per_s": 2 / 3,
        "cv": 1 / 3,
        "prompt_tokens": 40 / 3,
        "output_tokens": 10.0,
    }
    assert rows["not told"]["requests"] == 1 and rows["not told"]["cv"] is None


def test_requests_in_flight_by_hand():
    mean, peak, times, level = in_flight(np.array([0.0, 1.0, 2.0]), np.array([2.0, 3.0, 1.0]))
    assert (mean, peak) == (6 / 4, 2), "the first leaves at the moment at which the third arrives"
    assert dict(zip(times.tolist(), level.tolist(), strict=True))[4.0] == 0


def test_served_runs_have_their_requests_in_flight():
    ends = [2, 4, 3]
    found = ask(
        trace(
            range(3),
            last_token_ns=[START + e * S for e in ends],
            first_token_ns=[START + e * S - S // 2 for e in ends],
            status=["completed"] * 3,
        )
    )
    assert found.served and found.concurrency == {"mean": 6 / 4, "peak": 2}
    assert ask(trace(range(3))).concurrency is None


def test_what_failed_has_no_length():
    found = ask(trace(range(4), output=[10, 10, 0, 0], status=["completed", "completed", "failed", "aborted"]))
    assert found.failed == 2 and found.output_tokens["min"] == 10 and "that failed have no length" in found.notes[-1]


def test_stages_are_asked_for_one_by_one():
    columns = trace([0, 1, 2, 1000, 1001], stage=["a", "a", "a", "b", "b"])
    assert "2 loads of a test" in ask(columns).notes[0]
    assert ask(columns, stage="a").requests == 3
    with pytest.raises(QuestionError, match="no requests of a load 'c'; expected one of a, b"):
        ask(columns, stage="c")


def test_the_picture_of_several_loads_leaves_none_out():
    """A load shorter than a window, long after the others: most of its window is the end of the test."""
    found = ask(trace([0, 1, 2, 3601, 3602], stage=["a", "a", "a", "b", "b"]))
    assert found.rate_window_s > 1
    assert (found.rates["requests_per_s"] * found.rate_window_s).sum() == pytest.approx(5)
    assert found.rates["start_s"].iloc[-1] <= 3601


@pytest.mark.parametrize(
    ("times", "told"),
    [([0.0] * 50, "at_once"), ([0.0], "unknown"), ([0.0, 1.0], "unknown"), (np.arange(100.0), "even")],
)
def test_little_and_odd_traffic(times, told):
    found = ask(trace(list(times)))
    assert found.shape == told
    json.dumps(found.to_dict(), allow_nan=False)


def test_without_times_lengths_are_told():
    found = ask({"prompt_tokens": [1, 2], "output_tokens": [None, None], "arrival_ns": [None, None]})
    assert (found.gaps, found.prompt_share, found.mix, found.output_tokens) == (None, None, None, None)
    assert "No time of day" in found.notes[0] and found.prompt_tokens["mean"] == 1.5
    json.dumps(found.to_dict(), allow_nan=False)


def test_order_does_not_matter_and_missing_times_are_told():
    times = [3.0, 1.0, 2.0]
    columns = trace(times)
    columns["arrival_ns"][0] = None
    found = ask(columns)
    assert found.gaps.mean == 1.0 and "1 of 3 requests have no arrival time" in found.notes[0]


def test_no_requests_and_wrong_options():
    with pytest.raises(QuestionError, match="no requests"):
        workload.analyze(MemoryTables({}), {}, parse_options(workload.OPTIONS, {}))
    with pytest.raises(QuestionError, match="heavy_prompt=0"):
        ask(trace([0, 1]), heavy_prompt=0)
