"""Megatron's printed timers, by each of its --timing-log-option."""

import pytest

from tests.collectors.test_megatron import DUMP, EVERY, START, S, at, log, new, old, timer


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


ALL = (
    "times across ranks (ms):\n  save-checkpoint:\n     rank  0: 3999.00\n     rank  1: 4000.00\n     rank 12: 812.50\n"
    "  forward-backward:\n     rank  0: 1500.25\n     rank 12: 1499.00\n"
)


@pytest.mark.parametrize("prefix", ["", "[default7]:", "3: "])
@pytest.mark.parametrize("end", ["", "WARNING: something else \n"])
def test_of_every_rank_the_longest_is_what_a_timer_took(tmp_path, prefix, end):
    block = "".join(f"{prefix}{line}\n" for line in ALL.splitlines())
    saving = "saving checkpoint at iteration       1 to /ckpt in torch_dist format\n"
    got = log(tmp_path, new(0, 1, 1000.0) + saving + block + end + new(5, 2, 1000.0) + "     rank  0: 9000.00\n")
    [saved] = got.rows["lifecycle"]
    assert (saved["kind"], saved["start_ns"], saved["end_ns"]) == ("checkpoint_save", at(5, 0, 500), at(5, 4, 500))
    assert [r["start_ns"] for r in got.rows["steps"]][1] == at(5, 4, 500)
    assert [(r["name"], r["value"]) for r in got.rows["scalars"] if "timers" in r["name"]] == [
        ("timers/forward-backward", 1500.25)
    ]


def test_timers_of_every_rank_at_the_end_of_a_log(tmp_path):
    assert log(tmp_path, new(0, 1, 1000.0) + ALL).rows["lifecycle"][0]["end_ns"] == at(5, 4, 500)


def test_a_number_after_dots_is_no_timer_where_no_head_says_so(tmp_path):
    dump = f"  {'evaluate '.ljust(48, '.')}: 4000\n"
    assert "lifecycle" not in log(tmp_path, new(0, 1, 1000.0) + dump + new(1, 2, 1000.0)).rows
    again = "max time across ranks (ms):\n" + START + EVERY + new(2, 1, 1000.0) + dump + new(3, 2, 1000.0)
    assert "lifecycle" not in log(tmp_path, new(0, 1, 1000.0) + again).rows


@pytest.mark.parametrize(("saved_s", "ran_on"), [(3, False), (3, True), (30, False), (30, True)])
def test_steps_of_lines_without_a_time_come_after_the_save_before_them(tmp_path, saved_s, ran_on):
    """Ten iterations of 1 s a line. Where the printed time cannot include a save, or steps took as long as ever without
    it, the timer had been stopped: steps were laid over the save, or told as short as what was left of their time."""
    text = (
        DUMP
        + "[before the start of training step] datetime: 2026-03-04 05:05:12 \n"
        + old(10, 1500.0)
        + old(20, 1000.0)
        + timer("save-checkpoint", saved_s * 1000)
        + old(30, 1000.0 + saved_s * 100 * ran_on)
        + old(40, 1000.0)
    )
    got = log(tmp_path, text)
    assert {r["dur_ns"] for r in got.rows["steps"][10:]} == {S}
    [saved] = [r for r in got.rows["lifecycle"] if r["kind"] == "checkpoint_save"]
    assert (saved["start_ns"], saved["end_ns"]) == (at(5, 37), at(5, 37 + saved_s))
    assert [got.rows["steps"][n]["start_ns"] for n in (19, 20, 30)] == [
        at(5, 36),
        at(5, 37 + saved_s),
        at(5, 47 + saved_s),
    ]


@pytest.mark.parametrize(("kind", "lines"), [("checkpoint_save", "save-checkpoint"), ("eval", "evaluate")])
@pytest.mark.parametrize("prefixes", [("[node-0]: ", "[node-1]: "), ("", "")], ids=["named", "nameless"])
def test_a_pause_that_two_hosts_of_one_log_time_is_one(tmp_path, kind, lines, prefixes):
    """Steps of 2 s, and 4 s before the sixth, whose printed time holds them: they were 8 s, and it 6 s."""
    text = EVERY + START
    for step in range(1, 9):
        ended, took = 2 * step + (4 if step > 5 else 0), 6000.0 if step == 6 else 2000.0
        for host, prefix in enumerate(prefixes):
            text += prefix + new(ended, step, took + host / 10)
        if step == 5:
            said = [prefix + line for prefix in prefixes for line in timer(lines, 4000.0).splitlines(keepends=True)]
            text += "".join(said)
    got = log(tmp_path, text)
    (pause,) = got.rows["lifecycle"]
    assert (pause["kind"], pause["start_ns"], pause["end_ns"]) == (kind, at(5, 10, 500), at(5, 14, 500))
    assert all(abs(ns - 2 * S) < S for ns in got.column("steps", "dur_ns"))
    assert "entered once" in got.reasons()


def test_one_host_may_evaluate_twice_after_its_last_step(tmp_path):
    """On the validation set, then on the test set; another host that prints steps times neither."""
    text = EVERY + START
    text += "".join(f"[node-{h}]: {new(2 * n, n, 2000.0 + h)}" for n in range(1, 6) for h in range(2))
    text += "".join(f"[node-0]: {line}" for ms in (4000.0, 3000.0) for line in timer("evaluate", ms).splitlines(True))
    took = [(r["end_ns"] - r["start_ns"]) / S for r in log(tmp_path, text).rows["lifecycle"]]
    assert took == [4.0, 3.0]


@pytest.mark.parametrize("included", [False, True])
def test_a_save_amid_the_iterations_of_a_line_lies_between_them(tmp_path, included):
    """Ten iterations of 1 s a line, and a save of 4 s after the fifth, which the log dates: 5 of the 10 s were told to
    lie under the save, and as much before the first of them to be nothing."""

    def behind(second, text):
        return "".join(f"2026-03-04T05:05:{second:02d}.500000Z {line}\n" for line in text.splitlines())

    text = (
        DUMP
        + new(0, 10, 1000.0)
        + behind(5, "saving checkpoint at iteration      15 to /ckpt in torch_dist format")
        + behind(9, timer("save-checkpoint", 4000.0))
        + new(14, 20, 1400.0 if included else 1000.0)
        + new(24, 30, 1000.0)
    )
    got = log(tmp_path, text)
    [saved] = got.rows["lifecycle"]
    assert (saved["start_ns"], saved["end_ns"]) == (at(5, 5, 500), at(5, 9, 500))
    starts = {r["step"]: r["start_ns"] for r in got.rows["steps"]}
    assert [starts[n] for n in range(11, 21)] == [at(5, s, 500) for s in (0, 1, 2, 3, 4, 9, 10, 11, 12, 13)]
    assert set(got.column("steps", "dur_ns")) == {S}


def test_whether_the_first_line_includes_a_save_is_told_by_when_training_began(tmp_path):
    for ms, each_ns in ((1000.0, S), (1400.0, S)):
        text = (
            DUMP
            + "[before the start of training step] datetime: 2026-03-04 05:04:46 \n"
            + timer("save-checkpoint", 4000.0)
            + new(0, 10, ms)
        )
        assert set(log(tmp_path, text).column("steps", "dur_ns")) == {each_ns}, ms


@pytest.mark.parametrize("began", ["2026-03-03 21:04:46", "2026-03-04 05:04:46", "2026-03-04 13:04:46"])
def test_when_training_began_is_told_by_the_clock_of_the_lines(tmp_path, began):
    """Lines dated by kubectl tell UTC, and the program the time of its own zone: of a job west of it the first steps
    were told to have taken the save as well."""
    text = (
        DUMP
        + f"2026-03-04T05:04:46.500000Z [before the start of training step] datetime: {began} \n"
        + timer("save-checkpoint", 4000.0)
        + new(0, 10, 1400.0)
    )
    assert set(log(tmp_path, text).column("steps", "dur_ns")) == {S}


@pytest.mark.parametrize("zone", ["2026-03-03 21", "2026-03-04 05", "2026-03-04 13"])
def test_starts_and_ends_of_the_program_are_by_the_clock_of_the_lines(tmp_path, zone):
    """A job west of Greenwich, dated by kubectl, was told to have begun eight hours before its steps."""
    moments = ((5, 40, "after megatron is initialized"), (5, 50, "before the start of training step"))
    initialised, began, ended = (
        f"2026-03-04T05:{minute:02d}:{second:02d}.000000Z [{what}] datetime: {zone}:{minute:02d}:{second:02d} \n"
        for minute, second, what in (*moments, (6, 20, "after training is done"))
    )
    step = f"2026-03-04T05:06:00.000000Z{new(0, 1, 1000.0)}".replace("2026-03-04 05:05:00", f"{zone}:06:00")
    got = log(tmp_path, f"{DUMP}time to initialize megatron (seconds): 30.0\n{initialised}{began}{step}{ended}")
    assert [(r["kind"], r["start_ns"], r["end_ns"]) for r in got.rows["lifecycle"]] == [
        ("accelerator_initialization", at(5, 10), at(5, 40)),
        ("training_preparation", at(5, 40), at(5, 50)),
        ("job", at(5, 10), at(6, 20)),
    ]
    assert not any("time zone" in lost.reason for lost in got.lost)


def test_rates_of_a_line_that_includes_a_save_are_of_all_its_time(tmp_path):
    """What is computed is the same with a save and without: 400 TFLOP of a step became 150 where the save took 5/8."""
    line = " iteration {}/ 1000 | elapsed time per iteration (ms): {} | {}: {} | TFLOPs: {} |\n"
    save = timer("save-checkpoint", 5000.0)
    for rate, said in (("samples per second", 8.0), ("tokens per gpu per second (tgs)", 8192.0)):
        text = "".join(line.format(n, 3000.0, rate, said, 400 / 3) for n in (1, 2)) + save
        got = log(tmp_path, EVERY + text + line.format(3, 8000.0, rate, said * 3 / 8, 400 / 8))
        assert got.column("steps", "dur_ns") == [3 * S] * 3
        assert got.column("steps", "model_flops_per_chip") == [pytest.approx(400e12)] * 3
        assert got.column("steps", "tokens_per_s_per_chip") == [pytest.approx(8192.0)] * 3
