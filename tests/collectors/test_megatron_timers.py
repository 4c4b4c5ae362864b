"""Megatron's printed timers, by each of its --timing-log-option."""

import pytest

from tests.collectors.test_megatron import EVERY, START, at, log, new


def timed(head, line, name, ms):
    """Two iterations with a save between them, and a timer, printed by these forms."""
    return (
        new(0, 1, 1000.0)
        + "saving checkpoint at iteration       1 to /ckpt in torch_dist format\n"
        + head
        + line.format(name=f"{name} ".ljust(48, "."), ms=ms)
        + new(5, 2, 1000.0)
    )


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("(min, max) time across ranks (ms):\n", "    {name}: (3999.00, {ms:.2f})\n"),
        ("max time across ranks (ms):\n", "    {name}: {ms:.2f}\n"),
        ("3: max time across ranks (ms):\n", "3:     {name}: {ms:.2f}\n"),
    ],
    ids=["minmax", "max", "max, behind a prefix"],
)
def test_the_longest_of_all_ranks_is_what_a_save_took(tmp_path, head, line):
    [saved] = log(tmp_path, timed(head, line, "save-checkpoint", 4000.0)).rows["lifecycle"]
    assert (saved["kind"], saved["start_ns"], saved["end_ns"]) == ("checkpoint_save", at(5, 0, 500), at(5, 4, 500))
    got = log(tmp_path, timed(head, line, "forward-backward", 1500.25))
    assert ("timers/forward-backward", 1500.25, "ms") in {
        (r["name"], r["value"], r["unit"]) for r in got.rows["scalars"]
    }


def test_a_number_after_dots_is_no_timer_where_no_head_says_so(tmp_path):
    dump = f"  {'evaluate '.ljust(48, '.')}: 4000\n"
    assert "lifecycle" not in log(tmp_path, new(0, 1, 1000.0) + dump + new(1, 2, 1000.0)).rows
    again = "max time across ranks (ms):\n" + START + EVERY + new(2, 1, 1000.0) + dump + new(3, 2, 1000.0)
    assert "lifecycle" not in log(tmp_path, new(0, 1, 1000.0) + again).rows
