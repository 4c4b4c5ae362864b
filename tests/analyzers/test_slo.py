"""Objectives: attainment and goodput against a plain loop, and one cause for each request that missed."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import objectives as slo
from analyzers.serving.objective_causes import CAUSES
from errors import QuestionError
from errors.options import parse_options
from runs.tables import MemoryTables
from tests.analyzers.served_worlds import START_NS, world

S = 1_000_000_000
MADE = world(n=240, rate=10, seed=3, fail_every=40, preempt_every=60)


def ask(tables, **options):
    return slo.analyze(tables, {}, parse_options(slo.OPTIONS, options))


def _loop(made, ttft_s=None, tpot_s=None, e2e_s=None, itl_s=None) -> np.ndarray:
    """Which requests are good, one at a time."""
    good = []
    for i, times in enumerate(made.truth["times"]):
        if made.truth["fails"][i]:
            good.append(False)
            continue
        times = np.round(np.array(times) * 1e9) / 1e9
        arrival = np.round(made.truth["arrival"][i] * 1e9) / 1e9
        gaps = np.diff(times)
        kept = ttft_s is None or times[0] - arrival <= ttft_s
        kept &= e2e_s is None or times[-1] - arrival <= e2e_s
        kept &= tpot_s is None or not len(gaps) or (times[-1] - times[0]) / len(gaps) <= tpot_s
        kept &= itl_s is None or not len(gaps) or np.percentile(gaps, 99) <= itl_s
        good.append(bool(kept))
    return np.array(good)


seconds = st.one_of(st.none(), st.floats(0.005, 10.0))


@settings(deadline=None, max_examples=40)
@given(seconds, seconds, seconds, seconds)
def test_attainment_and_goodput_are_those_of_a_loop(ttft, tpot, e2e, itl):
    objectives = {"ttft_s": ttft, "tpot_s": tpot, "e2e_s": e2e, "itl_s": itl}
    if all(v is None for v in objectives.values()):
        return
    result = ask(MADE.tables, **{n: v for n, v in objectives.items() if v is not None})
    good = _loop(MADE, **objectives)
    assert result.attainment == pytest.approx(good.mean())
    assert result.goodput_per_s == pytest.approx(good.sum() / result.load.duration_s)
    assert result.attainment_of_completed == pytest.approx(good.sum() / 234)
    assert sum(result.misses.values()) == (~good).sum() and result.misses["failed"] == 6
    assert set(result.misses) <= set(CAUSES)
    json.dumps(result.to_dict(), allow_nan=False)


def test_curves_and_surface_are_exact():
    chosen = {"ttft_s": 0.8, "tpot_s": 0.03, "e2e_s": 4.0}
    result = ask(MADE.tables, **chosen)
    for row in result.curves.to_dict("records"):
        # just below and above: a request at the threshold is in time, but for the last bit of a quotient
        low, high = (
            _loop(MADE, **{**chosen, row["objective"]: row["threshold_s"] * (1 + e)}).mean() for e in (-1e-9, 1e-9)
        )
        assert low - 1e-12 <= row["attainment"] <= high + 1e-12 and high - low <= 3 / 240
    at = result.curves[(result.curves["objective"] == "tpot_s") & (result.curves["threshold_s"] == 0.03)]
    assert at["attainment"].item() == pytest.approx(result.attainment)
    table = result.surface
    assert table.loc[0.8, 0.03] == pytest.approx(result.attainment)
    rng = np.random.default_rng(0)
    for x, y in zip(rng.choice(table.index, 12), rng.choice(table.columns, 12), strict=True):
        want = _loop(MADE, ttft_s=x * (1 + 1e-9), tpot_s=y * (1 + 1e-9), e2e_s=4.0).mean()
        assert table.loc[x, y] == pytest.approx(want)


def test_each_objective_alone():
    result = ask(MADE.tables, ttft_s=0.8, tpot_s=0.03)
    assert result.each == pytest.approx(
        {"ttft_s": _loop(MADE, ttft_s=0.8).mean(), "tpot_s": _loop(MADE, tpot_s=0.03).mean()}
    )


def test_tenants_have_their_own_attainment():
    result = ask(MADE.tables, ttft_s=0.8)
    good = _loop(MADE, ttft_s=0.8)
    assert result.tenants.set_index("tenant")["attainment"].to_dict() == pytest.approx(
        {"batch": good[::2].mean(), "chat": good[1::2].mean()}
    )


def one(queue=0.1, prefill=0.2, decode=1.0, tokens=11, status="completed", **more):
    """One request's columns, from its parts in seconds."""
    stamps = np.cumsum([0, queue, prefill, decode])
    arrival, scheduled, first, last = (START_NS + round(t * S) for t in stamps)
    return {
        "id": "x",
        "arrival_ns": arrival,
        "scheduled_ns": scheduled,
        "first_token_ns": first,
        "last_token_ns": last,
        "prompt_tokens": 100,
        "output_tokens": tokens,
        "status": status,
    } | more


def cause(*requests, iterations=None, **objectives) -> str:
    """Why the first of these missed."""
    columns = {n: [r.get(n) for r in requests] for n in {k for r in requests for k in r}}
    columns["id"] = [f"r{i}" for i in range(len(requests))]
    result = ask(MemoryTables({"requests": columns} | ({"iterations": iterations} if iterations else {})), **objectives)
    return dict(zip(result.missed["id"], result.missed["cause"], strict=True)).get("r0", "")


USUAL = [one() for _ in range(9)]


@pytest.mark.parametrize(
    ("request_", "objectives", "why"),
    [
        (one(status="failed"), {"e2e_s": 9.0}, "failed"),
        (one(queue=2.0), {"ttft_s": 1.0}, "queue"),
        (one(queue=1.5, prefill=1.6), {"ttft_s": 1.0}, "queue"),
        (one(queue=0.1, prefill=1.6), {"ttft_s": 1.0}, "prefill"),
        (one(queue=2.0, scheduled_ns=None), {"ttft_s": 1.0}, "first_token"),
        (one(queue=2.0, decode=9.0), {"ttft_s": 1.0, "tpot_s": 0.2}, "queue"),
        (one(decode=9.0), {"tpot_s": 0.2}, "decode"),
        (one(decode=9.0, preemptions=1), {"tpot_s": 0.2}, "preempted"),
        (one(decode=9.0, preemptions=1, gaps_ns=[8 * S, *[S // 9] * 9]), {"tpot_s": 0.2}, "preempted"),
        (one(decode=9.0, preemptions=1, gaps_ns=[9 * S // 10] * 10), {"tpot_s": 0.2}, "decode"),
        (one(queue=3.0), {"e2e_s": 2.0}, "queue"),
        (one(queue=1.0, decode=1.0), {"e2e_s": 1.5}, "queue"),
        (one(decode=9.0), {"e2e_s": 2.0}, "decode"),
        (one(prefill=1.9), {"e2e_s": 2.0}, "prefill"),
        (one(prefill=1.9, scheduled_ns=None), {"e2e_s": 2.0}, "first_token"),
        (one(decode=10.0, tokens=101), {"e2e_s": 2.0}, "length"),
        (one(decode=10.0, tokens=101), {"e2e_s": 2.0, "tpot_s": 0.15}, "length"),
        (one(first_token_ns=None), {"ttft_s": 1.0}, "unknown"),
        (one(last_token_ns=START_NS - S), {"e2e_s": 1.0}, "unknown"),
        (one(tokens=1, decode=0.0), {"tpot_s": 0.001}, ""),
        (one(), {"ttft_s": 0.4, "tpot_s": 0.11, "e2e_s": 1.4}, ""),
    ],
)
def test_each_miss_has_its_cause(request_, objectives, why):
    assert cause(request_, *USUAL, **objectives) == why


@pytest.mark.parametrize(("prefill", "why"), [(8.0, "stalled_by_prefill"), (0.09, "decode")])
def test_tokens_that_waited_for_the_prompts_of_others(prefill, why):
    """Nine passes of 0.13 s that generate and one that reads a prompt beside it, for `prefill` seconds more. Allowed
    are 1.2 s."""
    slow = one(decode=1.3 + prefill)
    begin = slow["first_token_ns"] / 1e9
    lengths = [0.13] * 9 + [0.13 + prefill]
    starts = begin + np.concatenate([[0], np.cumsum(lengths)[:-1]])
    iterations = {
        "start_ns": [round(s * S) for s in starts],
        "dur_ns": [round(x * S) for x in lengths],
        "prefill_tokens": [0] * 9 + [4000],
        "decode_requests": [1] * 10,
    }
    assert cause(slow, *USUAL, iterations=iterations, tpot_s=0.12) == why


def test_what_is_not_known_gives_a_range():
    columns = {n: [one(first_token_ns=None)[n], one()[n]] for n in one()}
    result = ask(MemoryTables({"requests": columns | {"id": ["a", "b"]}}), ttft_s=1.0)
    assert (result.attainment, result.attainment_high, result.misses) == (0.5, 1.0, {"unknown": 1})
    assert any("at least what is said" in n for n in result.notes)


def test_what_cannot_be_asked_is_told():
    with pytest.raises(QuestionError, match=r"at least one of ttft_s.*ttft_s=.*tpot_s="):
        ask(MADE.tables)
    with pytest.raises(QuestionError, match="above 0"):
        ask(MADE.tables, ttft_s=0.0)
    with pytest.raises(QuestionError, match="no single requests of a load 'x'"):
        ask(MADE.tables, ttft_s=1.0, stage="x")
    with pytest.raises(QuestionError, match="single requests"):
        ask(MemoryTables({"stages": {"stage": ["a"], "completed": [3], "order": [0], "source": ["x"]}}), ttft_s=1.0)
    dark = {n: [one()[n]] for n in one()} | {"first_token_ns": [None]}
    with pytest.raises(QuestionError, match="tells its TTFT"):
        ask(MemoryTables({"requests": dark}), ttft_s=1.0)


def test_the_suggestion_is_the_rounded_90th_percentile():
    rows = ask(MADE.tables, e2e_s=1.0).load.served.timed
    found = slo.suggested(rows)
    for name, value in found.items():
        exact = np.quantile(rows[name].astype(float).dropna(), 0.9)
        assert exact <= value <= exact * 1.1 and float(f"{value:.2g}") == value
