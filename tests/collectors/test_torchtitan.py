"""torchtitan's standard output; every line here was written for these tests."""

from datetime import UTC, datetime, timedelta

import pytest

from analyzers.lost import interruptions
from analyzers.time import ledger
from collectors.training import torchtitan
from errors import InputError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.collectors.reading import read, source_of

S = 1_000_000_000
BEGIN = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
MESH = "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=4, cp=1, tp=2, ep=2, etp=1"
BATCH = "Trainer is initialized with local batch size 2, global batch size 8, gradient accumulation steps 1, "
BATCH += "sequence length 4096, total steps 1000 (warmup 200)"
CHIP = "CUDA capacity: NVIDIA H100 with 95.00GiB memory"
MODEL = "Model llama3 8B size: 8,030,261,248 total parameters"
PEAK = "Peak FLOPS used for computing MFU: 9.890e+14"
SAVED = "Finished saving the checkpoint (or staging if async is enabled)in {} seconds."
TOKENS = 8 * 4096 / 8  # of a step and device


def said(second: float, text: str, rank: str = "[rank0]:") -> str:
    at = BEGIN + timedelta(seconds=second)
    return f"{rank}[titan] {at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} - root - INFO - {text}\n"


def step(n: int, took: float, loss: float = 3.25, more: str = "  tflops: 400.00  mfu: 40.44%") -> str:
    memory = "grad_norm:  1.2500  memory: 66.91GiB(37.51%)"
    return f"step: {n:2}  loss: {loss:8.5f}  {memory}  tps: {round(TOKENS / took):,}{more}"


def coloured(text: str) -> str:
    return text.replace("step:", "\x1b[36mstep:").replace("loss:", "\x1b[32mloss:").replace("tps:", "\x1b[34mtps:")


HEAD = "".join(said(n, text) for n, text in enumerate((MESH, CHIP, MODEL, PEAK, BATCH, "Training starts at step 1")))
RUN = (
    HEAD
    + said(25, step(1, 25))
    + said(35, step(10, 10 / 9))
    + said(40, SAVED.format("5.00"))
    + said(50, step(20, 1.5))
    + said(50.5, "validate step: 20  loss:  3.50000  memory: 66.91GiB(37.51%)  tps: 9,000")
)


def log(tmp_path, text, name="train.log"):
    return read(torchtitan, source_of(tmp_path, text, name))


@pytest.mark.parametrize("dress", [str, coloured])
def test_a_run(tmp_path, dress):
    text = dress(RUN)
    assert torchtitan.sniff(source_of(tmp_path, text)) == 0.9
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(1, 21)) and set(got.column("steps", "attempt")) == {0}
    took = [ns / S for ns in got.column("steps", "dur_ns")]
    # from where training began; the mean as tps has it; that mean less the save of 5 s, which it includes
    assert took == pytest.approx([20] + [10 / 9] * 9 + [1.0] * 10, rel=1e-3)
    ends = {
        s: (start + dur) / S - BEGIN.timestamp()
        for s, start, dur in zip(*(got.column("steps", c) for c in ("step", "start_ns", "dur_ns")), strict=True)
    }
    assert {n: ends[n] for n in (1, 10, 20)} == pytest.approx({1: 25, 10: 35, 20: 50})
    assert ends[11] == pytest.approx(41, abs=0.01)  # behind the save
    assert [x for x in got.column("steps", "loss") if x is not None] == [3.25] * 3
    # FLOPs are of a step, whatever it waited for: the rate times the mean as printed
    flops = got.column("steps", "model_flops_per_chip")
    assert flops[0] == pytest.approx(400e12 * 25, rel=1e-2) and flops[-1] == pytest.approx(400e12 * 1.5, rel=1e-3)
    assert got.column("steps", "tokens_per_s_per_chip")[-1] == pytest.approx(TOKENS / 1.0, rel=1e-3)
    [save] = got.rows["lifecycle"]
    assert (save["kind"], save["step"], save["attempt"]) == ("checkpoint_save", 10, 0)
    assert [save[c] / S - BEGIN.timestamp() for c in ("start_ns", "end_ns")] == pytest.approx([35, 40])
    values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values["memory", 10] == (66.91, "GiB") and values["memory share", 10] == (37.51, "%")
    assert values["mfu", 20] == (40.44, "%") and values["eval/loss", 20] == (3.5, None)
    assert got.facts == {
        "chips": 8,
        "parallelism": {"data": 4, "tensor": 2, "expert": 2},
        "chip": "NVIDIA H100",
        "parameters": 8_030_261_248.0,
        "per_device_batch_size": 2,
        "global_batch": 8,
        "gradient_accumulation_steps": 1,
        "sequence_length": 4096,
        "planned_steps": 1000,
    }


@pytest.mark.parametrize("head, took", [(HEAD, 1.0), (said(5, "Training starts at step 1"), 1.8)])
def test_a_save_before_a_validation_is_not_in_what_is_counted_anew_behind_it(tmp_path, head, took):
    """Of the time between the lines, where nothing else tells it, the save is taken off all the same."""
    saved, validated = SAVED.format("5.00"), "validate step: 10  loss:  3.50000  memory: 66.91GiB(37.51%)  tps: 9,000"
    text = head + said(25, step(1, 20)) + said(35, step(10, 10 / 9)) + said(40, saved) + said(48, validated)
    got = log(tmp_path, text + said(58, step(20, 1.0)))
    assert [ns / S for ns in got.column("steps", "dur_ns")[-10:]] == pytest.approx([took] * 10, rel=1e-3)
    rates = got.column("steps", "tokens_per_s_per_chip")[-10:]
    assert head != HEAD or rates == pytest.approx([TOKENS / took] * 10, rel=1e-3)


def test_of_ranks_without_names_a_step_is_entered_once(tmp_path):
    """As `srun --label` shows them: of each task, which is a node, all ranks print, some a little otherwise."""
    text = "".join(
        said(10 * n, step(n, 10, more=f"  tflops: 400.0{rank}  mfu: 40.44%"), f"{node}: ")
        for n in (1, 2, 3)
        for node in (0, 1)
        for rank in range(4)
    )
    assert torchtitan.sniff(source_of(tmp_path, text)) == 0.9
    got = log(tmp_path, text)
    assert [(r["host"], r["step"]) for r in got.rows["steps"]] == [(h, n) for n in (1, 2, 3) for h in ("0", "1")]
    assert set(got.column("steps", "attempt")) == {0} and "step lines (18)" in got.reasons()
    assert [d and d / S for d in got.column("steps", "dur_ns")] == [None, None, 10, 10, 10, 10]  # between the lines


def test_without_batch_and_mesh_steps_take_the_time_between_their_lines(tmp_path):
    got = log(tmp_path, said(0, step(10, 1)) + said(12, step(20, 1.2)))
    assert got.column("steps", "step") == list(range(10, 21))
    assert got.column("steps", "dur_ns") == [None] + [round(1.2 * S)] * 10
    assert got.column("steps", "model_flops_per_chip")[1:] == pytest.approx([400e12 * 1.2] * 10)


def test_without_flops_they_follow_from_utilisation_and_the_peak_that_the_log_names(tmp_path):
    text = "".join(said(0, t) for t in (MESH, PEAK, BATCH)) + said(9, step(7, 2, more="  mfu: 40.00%"))
    assert log(tmp_path, text).column("steps", "model_flops_per_chip") == pytest.approx([0.4 * 9.89e14 * 2], rel=1e-3)
    unknown = text.replace("mfu: 40.00%", "mfu: N/A")
    assert log(tmp_path, unknown).column("steps", "model_flops_per_chip") == [None]


@pytest.mark.parametrize("announced", [True, False])
def test_a_restart(tmp_path, announced):
    again = said(100, "Training starts at step 11") if announced else ""
    text = RUN + again + said(120, step(11, 20)) + said(121, step(12, 1)) + said(122, step(13, 1))
    got = log(tmp_path, text)
    assert got.column("steps", "attempt") == [0] * 20 + [1] * 3
    assert got.column("steps", "step")[20:] == [11, 12, 13]


def test_a_restart_at_the_very_step_is_one_however_the_clock_runs(tmp_path):
    for later in (600, -600):
        text = said(1000, step(1990, 1)) + said(1000, step(1990, 1)) + said(1000 + later, step(1990, 2))
        assert log(tmp_path, text).column("steps", "attempt") == [0, 1]


@pytest.mark.parametrize(
    ("line", "chips", "parallelism"),
    [
        ("Building 1-D device mesh with ['dp_shard'], [8]", 8, {"data": 8}),
        (
            "Building 3-D device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 8]",
            64,
            {"data": 4, "pipeline": 2, "tensor": 8},
        ),
        ("Building device mesh with parallelism: pp=2, dp=2, cp=2, tp=1", 8, {"data": 2, "pipeline": 2, "context": 2}),
        ("Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=1, cp=1, tp=1", 1, None),
    ],
)
def test_a_mesh(tmp_path, line, chips, parallelism):
    facts = log(tmp_path, said(0, line)).facts
    assert (facts["chips"], facts.get("parallelism")) == (chips, parallelism)


def test_a_line_that_the_file_ends_in_gives_no_half_of_a_number(tmp_path):
    whole = said(0, step(1, 1)) + said(1, step(2, 1))
    cut = log(tmp_path, whole[: whole.rindex("tps: ") + len("tps: 4,0")])
    assert cut.column("steps", "tokens_per_s_per_chip") == [TOKENS, None]


def test_a_log_that_never_trained_says_what_is_missing(tmp_path):
    with pytest.raises(InputError, match="no training step in it"):
        log(tmp_path, said(0, "Starting job: Llama 3 8B training"))


def test_two_saves_between_two_lines_are_both_taken_off_and_told_of_by_all_ranks_once(tmp_path):
    ranks = ("[rank0]:", "[rank1]:")
    text = HEAD + "".join(said(35, step(10, 1), rank) for rank in ranks)
    for at in (40, 47):
        text += "".join(said(at + n / 10, SAVED.format(f"{5 + n / 10:.2f}"), rank) for n, rank in enumerate(ranks))
    got = log(tmp_path, text + "".join(said(57, step(20, 2.2), rank) for rank in ranks))
    saves = [(r["start_ns"] / S, r["end_ns"] / S) for r in got.rows["lifecycle"]]
    begin = BEGIN.timestamp()
    assert saves == [(begin + 35, begin + 40), (begin + 42, begin + 47)]
    last = [r for r in got.rows["steps"] if r["step"] == 20 and r["host"] == "rank0"]
    assert [r["dur_ns"] / S for r in last] == pytest.approx([1.2], rel=1e-2)


def test_what_is_restored_before_training_begins_again_is_of_the_attempt_after(tmp_path):
    restored = said(100, "Finished loading the checkpoint in 6.50 seconds.")
    got = log(tmp_path, RUN + restored + said(101, "Training starts at step 21") + said(121, step(21, 20)))
    told = [(r["kind"], r["attempt"], r["step"]) for r in got.rows["lifecycle"]]
    assert told == [("checkpoint_save", 0, 10), ("checkpoint_restore", 1, None)]


STARTED, COMPLETED = "Starting job: Llama 3 8B training", "Training completed"


def jobs(got) -> list[tuple[float | None, float | None]]:
    """When each start of the job was and when it was done, in s since BEGIN."""
    rows = [r for r in got.rows["lifecycle"] if r["kind"] == "job"]
    return [tuple(at and at / S - BEGIN.timestamp() for at in (r["start_ns"], r["end_ns"])) for r in rows]


def test_when_the_job_was_started_and_that_it_was_done(tmp_path):
    """Each rank says so; a start that fails before its first step says so once more."""
    first = "".join(said(at, STARTED, rank) for at, rank in ((-90, "[rank0]:"), (-70, "[rank1]:"), (-65, "[rank2]:")))
    again = said(200, STARTED) + said(320, STARTED) + said(400, "Training starts at step 11") + said(420, step(20, 2))
    text = first + RUN + again + said(421, "Sleeping 2 seconds for other ranks to complete") + said(423, COMPLETED)
    assert jobs(log(tmp_path, text)) == [(-90, None), (200, None), (320, 423)]
    assert jobs(log(tmp_path, text + "Fatal Python error: Aborted\n")) == [(-90, None), (200, None), (320, 423)]
    assert jobs(log(tmp_path, RUN + said(60, COMPLETED))) == [(None, 60)] and jobs(log(tmp_path, RUN)) == []


def test_hosts_whose_logs_stand_one_behind_the_other_tell_of_the_same_starts(tmp_path):
    def host(rank: str, late: float) -> str:
        told = ((0, STARTED), (5, "Training starts at step 1"), (20, step(10, 1)), (50, step(20, 1)))
        again = ((300, STARTED), (305, "Training starts at step 11"), (320, step(20, 1)), (330, COMPLETED))
        return "".join(said(at + late, text, rank) for at, text in (*told, *again))

    got = log(tmp_path, host("[rank0]:", 0) + host("[rank8]:", 0.5))
    assert jobs(got) == [(0, None), (300, 330.5)]
    assert {(r["host"], r["attempt"]) for r in got.rows["steps"]} == {(f"rank{n}", a) for n in (0, 8) for a in (0, 1)}


def test_a_validation_at_a_step_without_a_line_is_told_once(tmp_path):
    lines = [said(51, "validate step: 25  loss:  3.40000  memory: 66.91GiB(37.51%)  tps: 9,000")] * 4
    got = log(tmp_path, RUN + "".join(lines))
    assert [(r["step"], r["value"]) for r in got.rows["scalars"] if r["name"] == "eval/loss"] == [(20, 3.5), (25, 3.4)]


def pairs(at: str, n: int, end_to_end: float, loss: float = 3.25) -> str:
    rates = f"throughput(tps)={2048 / end_to_end:.6f} mfu(%)=1.750000 end_to_end(s)={end_to_end:.6f}"
    loading = "data_loading(s)=0.250000 data_loading(%)=0.125000"
    return f"[2026-03-04 {at}][I][fork/train:493:__main__] step={n} global_avg_loss={loss:.6f} {rates} {loading}\n"


def test_pairs_of_a_fork_tell_the_time_since_the_line_before_over_ten_steps(tmp_path):
    """Steps of 2 s, of which the first takes 30 s, in two runs."""
    run = (
        pairs("05:06:30", 1, 3.0)
        + pairs("05:06:48", 10, 1.8)
        + pairs("05:07:08", 20, 2.0)
        + pairs("05:07:29", 30, 2.04)
    )
    got = log(tmp_path, run + pairs("06:00:00", 1, 3.0) + pairs("06:00:18", 10, 1.8, 2.5))
    assert torchtitan.sniff(source_of(tmp_path, run)) == 0.9
    took = [ns / S for ns in got.column("steps", "dur_ns")]
    assert took == pytest.approx([30] + [2] * 19 + [2.04] * 10 + [30] + [2] * 9)
    assert got.column("steps", "attempt") == [0] * 30 + [1] * 10 and got.column("steps", "loss")[-1] == 2.5
    values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values["mfu", 20] == (1.75, "%") and values["end_to_end", 30] == (2.04, "s")
    assert values["data_loading", 1] == (0.25, "s") and values["data_loading share", 1] == (0.125, "%")
    assert ("loss", 1) not in values and ("tps", 1) not in values


def test_a_pair_at_the_end_of_the_file_may_be_cut(tmp_path):
    cut = pairs("05:06:48", 2, 2.0).partition("data_loading(s)=0.25")
    got = log(tmp_path, pairs("05:06:30", 1, 3.0) + cut[0] + cut[1])
    assert [r["name"] for r in got.rows["scalars"] if r["step"] == 2] == ["mfu", "end_to_end"]


def test_a_job_that_says_so_has_ended_and_one_that_is_appended_to_its_log_is_no_restart(tmp_path):
    """Ten minutes between two jobs, each of which was done, were an interruption."""
    done = said(50, "Training completed") + said(50, "Process group destroyed")
    later = "".join(said(650 + n * 10, step(n, 10)) for n in range(1, 5)) + said(700, "Training completed")
    got = log(tmp_path, HEAD + "".join(said(n * 10, step(n, 10)) for n in range(1, 5)) + done + later)
    begin = int(BEGIN.timestamp())
    ends = [(r["kind"], r["start_ns"], r["end_ns"] // S - begin, r["attempt"]) for r in got.rows["lifecycle"]]
    assert ends == [("job", None, 50, 0), ("job", None, 700, 1)]
    tables = MemoryTables({name: {c: got.column(name, c) for c in rows[0]} for name, rows in got.rows.items()})
    assert interruptions.analyze(tables, facts_of({"chips": 8}), {}).count == 0
    book = ledger.analyze(tables, facts_of({"chips": 8}), {}).ledger
    assert book.chip_seconds <= 8 * 100 and book.find("infrastructure_recovery") is None
