"""Evaluations in MaxText logs, beside the lines of the steps that were taken before and after them."""

import pytest

from tests.collectors.test_maxtext import S, log, ns


def lined(*told):
    """Lines of the minute 05:06, each (second, text)."""
    return "".join(f"2026-03-04T05:06:{second:06.3f}Z {text}\n" for second, text in told)


def trained(step, seconds):
    """A step of 200 TFLOP and 8,000 tokens, with its time as printed."""
    return f"completed step: {step}, seconds: {seconds:.3f}, TFLOP/s/device: {200 / seconds:.3f}, Tokens/s/device: " + (
        f"{8000 / seconds:.3f}, loss: 2.000"
    )


@pytest.mark.parametrize("said", ["", ", seconds: 5.000"])
@pytest.mark.parametrize("hosts", [1, 4])
def test_steps_that_are_printed_behind_an_evaluation_were_taken_before_it(tmp_path, said, hosts):
    """MaxText prints a step once the next was begun, and the time of the one behind an evaluation includes it. All of
    it was told to have run while steps were taken, and each step behind one to take 14 s in place of 2."""
    told = [(0, trained(17, 2.0)), (9, f"Completed eval step 0{said}"), (14, f"Completed eval step 1{said}")]
    told += [(14, "eval metrics after step: 19, loss=3.000"), (14, trained(18, 2.0)), (14, trained(19, 2.0))]
    told += [(16, trained(20, 14.0)), (18, trained(21, 2.0))]
    lines = sorted((second + 0.003 * host, n, text) for n, (second, text) in enumerate(told) for host in range(hosts))
    got = log(tmp_path, lined(*((second, text) for second, _, text in lines)))
    [row] = got.rows["lifecycle"]
    assert row["start_ns"] == pytest.approx(ns(2026, 3, 4, 5, 6, 4), abs=S // 50)
    assert row["end_ns"] == pytest.approx(ns(2026, 3, 4, 5, 6, 14), abs=S // 50)
    begun = ns(2026, 3, 4, 5, 6, 0)
    for step in got.rows["steps"]:
        start_s = {17: -2, 18: 0, 19: 2, 20: 14, 21: 16}[step["step"]]
        assert step["start_ns"] - begun == pytest.approx(start_s * S, abs=S // 50), step["step"]
        assert step["dur_ns"] == pytest.approx(2 * S, abs=S // 50)
        assert step["model_flops_per_chip"] == pytest.approx(200e12, rel=1e-3)
        assert step["tokens_per_s_per_chip"] == pytest.approx(4000, rel=0.01)
        assert step["attempt"] == 0


def test_an_evaluation_that_several_hosts_tell_of_ends_once(tmp_path):
    """The last steps that other hosts tell of are no part of the next one: it was told to begin with them."""
    told = [(0, trained(1, 2.0)), (2, "Completed eval step 0"), (2.001, "eval metrics after step: 1, loss=3.000")]
    told += [(2.002, "Completed eval step 0"), (4, trained(2, 2.0)), (6, trained(3, 2.0))]
    told += [(8, "Completed eval step 0"), (8.001, "eval metrics after step: 3, loss=3.000")]
    got = log(tmp_path, lined(*told))
    begun = ns(2026, 3, 4, 5, 6, 0)
    assert [(r["start_ns"] - begun, r["step"]) for r in got.rows["lifecycle"]] == [(0, 1), (6 * S, 3)]


@pytest.mark.parametrize("lags", [(0, 3), (0, 5, 8), (0, 0.3, 6)])
def test_hosts_that_name_themselves_nowhere_and_lag_by_seconds_tell_of_one_evaluation(tmp_path, lags):
    """It was told to begin with the line of the last host that came to its step, and again where that one ended it."""
    steps = [(2 * n if n < 5 else 2 * n + 10, trained(n, 2.0)) for n in range(10)]
    evals = [(8 + 2 * k, "Completed eval step 0") for k in (1, 2, 3, 4, 5)]
    told = [*steps, *evals, (18.01, "eval metrics after step: 4, loss=3.000")]
    lines = sorted((second + lag, text) for second, text in told for lag in lags)
    got = log(tmp_path, lined(*lines))
    begun = ns(2026, 3, 4, 5, 6, 0)
    [row] = got.rows["lifecycle"]
    assert (row["start_ns"] - begun) / S == 8 and (row["end_ns"] - begun) / S == pytest.approx(18, abs=0.4)
    assert set(got.column("steps", "attempt")) == {0}


def test_steps_that_are_taken_again_after_an_evaluation_are_not_moved_before_it(tmp_path):
    told = [(0, trained(17, 2.0)), (9, "Completed eval step 0"), (14, "eval metrics after step: 19, loss=3.000")]
    again = [(42, trained(17, 2.0)), (44, trained(18, 2.0)), (46, trained(19, 2.0)), (51, "Completed eval step 0")]
    got = log(tmp_path, lined(*told, *again, (56, told[-1][1]), (58, trained(20, 2.0))))
    begun = ns(2026, 3, 4, 5, 6, 0)
    assert [(t - begun) / S for t in got.column("steps", "start_ns")] == [-2, 40, 42, 44, 56]
    assert [((r["start_ns"] - begun) / S, (r["end_ns"] - begun) / S) for r in got.rows["lifecycle"]] == [
        (0, 14),
        (46, 56),
    ]
