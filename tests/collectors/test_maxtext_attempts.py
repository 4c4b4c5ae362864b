"""Attempts, hosts and lines that are told twice in MaxText's standard output."""

import pytest

from tests.collectors.test_maxtext import log, steps


def test_an_attempt_ends_where_the_step_number_drops(tmp_path):
    got = log(tmp_path, steps(0, 1, 2, 1, 2, 3, 0))
    assert got.column("steps", "attempt") == [0, 0, 0, 1, 1, 1, 2]
    assert got.column("steps", "order") == list(range(7))


def test_an_attempt_ends_where_a_restart_is_announced_even_if_no_step_repeats(tmp_path):
    text = (
        "Restoring checkpoint from gs://bucket/run/checkpoints/4.\n"  # before any step: no restart
        + steps(5, 6)
        + "Slice down event detected. Retrying.\nElastic attempt 2 out of 10\n"
        + "Restoring checkpoint from gs://bucket/run/checkpoints/6.\n"
        + steps(7, 8)
        + "Scale up requested. Retrying.\n"
        + steps(8)
    )
    assert log(tmp_path, text).column("steps", "attempt") == [0, 0, 1, 1, 2]


def test_a_line_printed_twice_counts_once(tmp_path):
    line = "completed step: 2, seconds: 1.000, loss: 2.000\n"
    got = log(tmp_path, steps(1) + line + line + line + steps(3))
    assert got.column("steps", "step") == [1, 2, 3]
    assert got.lost[0].what == "step lines (2)" and "repeats" in got.lost[0].reason


def test_the_same_step_with_other_numbers_is_kept(tmp_path):
    got = log(tmp_path, "completed step: 2, seconds: 1.000, loss: 2.0\ncompleted step: 2, seconds: 1.001, loss: 2.0\n")
    assert got.column("steps", "step") == [2, 2] and got.column("steps", "attempt") == [0, 0]


def test_hosts_that_name_themselves_are_told_apart(tmp_path):
    text = (
        "".join(
            f"[pod/job-{pod}/tpu] completed step: {n}, seconds: 1.00{pod}, loss: 2.000\n"
            for n in (4, 5)
            for pod in (0, 1)
        )
        + "[pod/job-1/tpu] completed step: 4, seconds: 1.500, loss: 2.000\n"
    )
    got = log(tmp_path, text)
    assert got.column("steps", "host") == ["job-0", "job-1", "job-0", "job-1", "job-1"]
    assert got.column("steps", "attempt") == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("prefix", "host"),
    [("worker-3  | ", "worker-3"), ("[20260102 03:04:05][rank-7/8][INFO] ", "rank-7"), ("12: ", "12"), ("", None)],
)
def test_host_prefixes(tmp_path, prefix, host):
    got = log(tmp_path, f"{prefix}completed step: 1, seconds: 1.000, loss: 2.000\n")
    assert got.column("steps", "host") == [host]


def test_two_hosts_in_one_file_make_no_restart(tmp_path):
    """Without a prefix that tells them apart, and with one of them two lines behind."""
    line = "{at} completed step: {n}, seconds: 2.00{host}, TFLOP/s/device: 100.000, loss: 2.000\n"
    lines = [(2 * n + host * 4.1, n, host) for n in range(20) for host in (0, 1)]
    text = "".join(
        line.format(at=f"2026-03-04T05:00:{at:09.6f}Z" if at < 60 else "", n=n, host=host)
        for at, n, host in sorted(lines)
    )
    got = log(tmp_path, text)
    assert len(got.rows["steps"]) == 40 and set(got.column("steps", "attempt")) == {0}


@pytest.mark.parametrize(("second", "attempts"), [(9, [0, 0]), (50, [0, 0, 1])])
def test_the_same_words_much_later_are_a_restart(tmp_path, second, attempts):
    """A line that a launcher writes twice comes at once; a step that is taken again, after a start of the job."""
    text = "".join(
        f"2026-03-04T05:06:{at:02d}Z {line}"
        for at, line in zip((5, 8, second), (steps(4), steps(5), steps(5)), strict=True)
    )
    got = log(tmp_path, text)
    assert got.column("steps", "attempt") == attempts
    assert ("word for word" in got.reasons()) is (len(attempts) == 2)
