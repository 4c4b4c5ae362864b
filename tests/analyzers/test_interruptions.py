"""Interruptions against jobs whose history is known to the second, and against the bundled reference run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.lost import interruptions
from analyzers.time import ledger
from catalog.causes import CAUSES
from errors import QuestionError
from errors.options import parse_options
from reference.fleet import plans
from runs.run import facts_of
from runs.tables import MemoryTables
from simulators.fleet import host_name, simulate
from tests.analyzers.stopped_jobs import COMPILE_S, EPOCH, INIT_S, STEP_S, Attempt, Job, S
from tests.bundled import bundled

REFERENCE = Path(__file__).parents[2] / "reference" / "runs"
STARTUP_S = INIT_S + COMPILE_S - STEP_S
NAMES = [c.name for c in CAUSES.values() if not c.symptom and c.name != "unknown"]


def ask(tables, facts=None, **options):
    facts = {"chips": 64, "chips_per_host": 8} if facts is None else facts
    return interruptions.analyze(tables, facts_of(facts), parse_options(interruptions.OPTIONS, options))


def line(cause, host="h7", after_s=3.0, severity="error"):
    return (after_s, cause, host, severity, f"{host}: {cause}")


def test_one_interruption_to_the_second():
    lines = [line("hbm"), line("collective_timeout", "h1", 40.0)]
    job = Job([Attempt(20, lost=5, down_s=100, lines=lines), Attempt(30)])
    result = ask(job.tables(), usd_per_chip_hour=3.6)
    (row,) = result.rows.to_dict("records")
    assert (row["kind"], row["attempt"], row["last_step"], row["resumed_step"]) == ("restart", 0, 19, 15)
    assert row["down_s"] == pytest.approx(100) and row["detect_s"] == pytest.approx(40)
    assert row["wait_s"] == pytest.approx(60) and row["startup_s"] == pytest.approx(STARTUP_S)
    assert row["accelerator_initialization_s"] == pytest.approx(INIT_S)
    assert row["program_startup_s"] == pytest.approx(COMPILE_S - STEP_S)
    assert row["lost_steps"] == 5 and row["wasted_s"] == pytest.approx(4 * STEP_S)  # the fifth died as it began
    assert row["lost_s"] == pytest.approx(100 + STARTUP_S + 4 * STEP_S)
    assert row["chip_hours"] == pytest.approx(row["lost_s"] * 64 / 3600) and row["usd"] == row["chip_hours"] * 3.6
    assert row["back_s"] == pytest.approx(100 + INIT_S + COMPILE_S + 4 * STEP_S)  # steps 15 to 19 again, then step 20
    assert (row["cause"], row["host"], row["confidence"]) == ("hbm", "h7", "certain")
    assert (row["text"], row["source"], row["offset"], row["lines"]) == ("h7: hbm", "syslog", 0, 2)
    assert row["evidence_ns"] == job.last_sign[0] + 3 * S and not row["planned"]


def many(n=420):
    """Attempts that each die of a known cause; what is expected of each: (cause, confidence, host)."""
    rng = np.random.default_rng(0)
    attempts, expected = [], []
    for k in range(n):
        cause, host = NAMES[k % len(NAMES)], f"n{int(rng.integers(200)):03d}"
        cascade = [line("process_exit", "n998", 25.0), line("collective_timeout", "n997", 30.0)]
        decoy = line("host_cpu", "n996", -400.0)  # long before the end: it is not it
        if k % 7 == 0:
            lines, told = [decoy], ("unknown", "unknown", None)
        elif k % 11 == 0:
            lines, told = [decoy, *cascade], ("process_exit", "guess", None)
        elif k % 13 == 0:
            lines, told = [line(cause, host, 3.0, "warning"), *cascade], (cause, "likely", host)
        elif k % 17 == 0:  # two families within five seconds: the first counts, and is not sure
            other = "hang" if CAUSES[cause].family != "hang" else "nic"
            lines, told = [line(other, "n995", 6.0), line(cause, host, 3.0)], (cause, "likely", host)
        elif k % 19 == 0:  # near the end, but before it
            lines, told = [line(cause, host, -60.0)], (cause, "likely", host)
        else:
            later = line("software", "n994", 20.0)
            lines, told = [decoy, *cascade, later, line(cause, host, 3.0)], (cause, "certain", host)
        attempts.append(Attempt(int(rng.integers(50, 70)), int(rng.integers(1, 20)), int(rng.integers(40, 900)), lines))
        expected.append(told)
    return Job([*attempts, Attempt(40)]), expected


def test_hundreds_of_known_interruptions():
    job, expected = many()
    result = ask(job.tables())
    rows = result.rows
    assert len(rows) == result.count == 420 and rows["attempt"].tolist() == list(range(420))
    found = list(zip(rows["cause"], rows["confidence"], rows["host"].where(rows["host"].notna(), None), strict=True))
    assert found == expected
    for k, a in enumerate(job.attempts[:-1]):
        row = rows.iloc[k]
        assert row["down_s"] == pytest.approx(a.down_s)
        usual_s = STEP_S / 49  # the step that died as it began shortens a usual one by its share
        assert row["startup_s"] == pytest.approx(STARTUP_S, abs=usual_s)
        assert row["lost_steps"] == a.lost and row["wasted_s"] == pytest.approx((a.lost - 1) * STEP_S)
    planned = sum(CAUSES[c].family in ("maintenance", "scheduler", "user") for c, *_ in expected)
    assert (result.planned, result.unplanned) == (planned, 420 - planned)
    last = (
        EPOCH
        + (
            sum(a.down_s for a in job.attempts[:-1])
            + sum(INIT_S + COMPILE_S + (a.steps - 2) * STEP_S for a in job.attempts[:-1])
        )
        * S
    )
    assert job.begun[-1] == last
    held = (last - EPOCH) / S + INIT_S + COMPILE_S + 39 * STEP_S
    assert result.held_s == pytest.approx(held) and result.mttf.mean_s == pytest.approx(held / 420)
    assert result.rate.mean == pytest.approx(1000 * 86_400 * result.unplanned / (8 * held))
    assert result.gaps_s == pytest.approx(np.diff([EPOCH, *job.last_sign[:-1]]) / S)
    assert result.causes["count"].sum() == 420 and result.causes["share"].sum() == pytest.approx(1)
    answer = result.to_dict()
    json.dumps(answer, allow_nan=False)
    assert [a["start_ns"] for a in answer["attempts"]] == job.begun
    assert [a["finished"] for a in answer["attempts"]] == [False] * 420 + [True]


def test_a_lemon_is_found_among_hosts():
    causes = ["nic", "accelerator", "hbm"]
    attempts = [Attempt(30, 2, 60, [line(causes[k % 3], "bad" if k % 8 == 0 else f"n{k}")]) for k in range(80)]
    result = ask(Job([*attempts, Attempt(30)]).tables(), {"chips": 4096, "chips_per_host": 8})
    assert result.hosts[result.hosts["lemon"]]["host"].tolist() == ["bad"]
    assert result.hosts.iloc[0]["failures"] == 10 and "Faulty accelerator" in result.hosts.iloc[0]["causes"]
    software = [Attempt(30, 2, 60, [line("software", "rank0-host")]) for _ in range(30)]
    innocent = ask(Job([*software, Attempt(30)]).tables(), {"chips": 4096, "chips_per_host": 8})
    assert not innocent.hosts["lemon"].any() and innocent.hosts.iloc[0]["count"] == 30
    unknown = ask(Job([*attempts, Attempt(30)]).tables(), {"chips": 4096})
    assert unknown.lemons is None and not unknown.hosts["lemon"].any()
    assert any("chips_per_host" in n for n in unknown.notes)


def test_a_run_without_evidence_knows_no_cause():
    result = ask(Job([Attempt(20, 3), Attempt(20, 3), Attempt(20)]).tables())
    assert result.rows["cause"].tolist() == ["unknown", "unknown"] and result.rows["text"].isna().all()
    assert result.rows["detect_s"].isna().all() and result.rows["down_s"].tolist() == pytest.approx([100, 100])
    assert any("No log line tells" in n for n in result.notes)
    assert result.to_dict()["interruptions"][0]["evidence"] is None


def test_a_job_without_interruption():
    result = ask(Job([Attempt(50)]).tables())
    assert result.count == 0 and result.mttf.mean_s is None
    assert result.mttf.low_s == pytest.approx(result.held_s / 3.6889, rel=1e-4)
    json.dumps(result.to_dict(), allow_nan=False)


def test_an_attempt_that_never_took_a_step_costs_only_its_time():
    job = Job([Attempt(20, lost=5, down_s=100), Attempt(20)])
    columns = job.columns()
    between = job.begun[1] - 50 * S  # started in vain half-way through the downtime
    for name, value in zip(columns["lifecycle"], ("job", between, None, 1, 99), strict=True):
        columns["lifecycle"][name].append(value)
    result = ask(MemoryTables(columns))
    first, second = result.rows.to_dict("records")
    assert first["down_s"] + second["down_s"] == pytest.approx(100) and second["last_step"] == 19
    assert (first["lost_steps"], second["lost_steps"]) == (5, 0)  # the first stop lost them
    assert first["wasted_s"] == pytest.approx(4 * STEP_S) and second["wasted_s"] == 0
    assert second["startup_s"] == pytest.approx(STARTUP_S)
    assert first["back_ns"] == second["back_ns"]


def test_an_end_that_a_log_explains_counts_and_another_does_not():
    dead = Job(
        [
            Attempt(20),
        ],
        end=False,
    )
    assert ask(dead.tables()).count == 0 and any("still runs" in n for n in ask(dead.tables()).notes)
    dead = Job([Attempt(20, lines=[line("accelerator", after_s=12.0)])], end=False)
    result = ask(dead.tables())
    assert (result.count, result.rows.iloc[0]["kind"], result.rows.iloc[0]["cause"]) == (1, "final", "accelerator")
    assert result.rows["restart_ns"].isna().all() and result.to_dict()["interruptions"][0]["down_s"] is None
    both = Job([Attempt(20, 4, lines=[line("nic")]), Attempt(20, lines=[line("power", after_s=12.0)])], end=False)
    assert ask(both.tables()).rows["cause"].tolist() == ["nic", "power"]
    finished = Job([Attempt(20, lines=[line("accelerator", after_s=-30.0)])])
    assert ask(finished.tables()).count == 0


WATCHDOG = (
    "[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9) ran for 600012 milliseconds before"
)


@pytest.mark.parametrize(
    ("after_s", "text", "held_s"),
    [
        (605.0, f"{WATCHDOG} timing out.", 605.0),
        (640.0, "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 600000ms for recv", 640.0),
        (605.0 + 8 * 3600, f"{WATCHDOG} timing out.", None),  # dated in another zone
        (605.0, "Timed out waiting 1800000ms for recv operation to complete", None),  # it began before
        (605.0, "NCCL watchdog timeout", None),  # it does not say how long it waited
    ],
)
def test_chips_are_held_for_as_long_as_ranks_waited_before_the_job_was_given_up(after_s, text, held_s):
    def told(attempts):
        return ask(Job(attempts, end=False).tables())

    before = told([Attempt(20)]).held_s
    lines = [(after_s, "collective_timeout", None, None, text)]
    result = told([Attempt(20, lines=lines)])
    row = result.to_dict()["interruptions"][0]
    assert (row["kind"], row["cause"], row["down_s"]) == ("final", "collective_timeout", held_s)
    assert result.held_s == pytest.approx(before + (held_s or 0.0))
    again = told([Attempt(20, down_s=2_000, lines=lines), Attempt(20)])  # started again: held until then anyway
    plain = told([Attempt(20, down_s=2_000), Attempt(20)])
    assert again.rows["down_s"].iloc[0] == plain.rows["down_s"].iloc[0] and again.held_s == plain.held_s


def test_what_watches_machines_tells_of_the_last_end_only_near_to_it():
    """An exporter of GPUs goes on when the job has ended: an Xid of an hour later did not end it."""
    for after_s, attempt, count in ((12.0, None, 1), (3600.0, None, 0), (3600.0, 0, 1)):
        columns = Job([Attempt(20, lines=[line("accelerator", after_s=after_s)])], end=False).columns()
        columns["evidence"]["attempt"] = [attempt]
        assert ask(MemoryTables(columns)).count == count
    columns = Job([Attempt(20, down_s=7200, lines=[line("nic", after_s=3600.0)]), Attempt(20)]).columns()
    columns["evidence"]["attempt"] = [None]
    assert ask(MemoryTables(columns)).rows["cause"].tolist() == ["nic"]  # before the next start it may be why


@pytest.mark.parametrize(
    ("cause", "text", "after_s", "count"),
    [
        ("collective_timeout", f"{WATCHDOG} timing out.", 605.0, 1),
        ("time_limit", "slurmstepd: error: *** JOB 7 ON n1 CANCELLED DUE TO TIME LIMIT ***", 7200.0, 1),
        ("host", "slurmstepd: error: *** JOB 7 CANCELLED DUE TO NODE FAILURE ***", 420.0, 1),
        ("software", 'DCGM_FI_DEV_XID_ERRORS{gpu="3"} 31', 3600.0, 0),  # of the next job on that machine
    ],
)
def test_what_a_file_of_its_own_tells_of_a_job_belongs_to_its_end_whenever_it_was_written(cause, text, after_s, count):
    """As a launcher's output beside a log of steps: it tells of no attempt, and may come long after the last step."""
    columns = Job([Attempt(20, lines=[(after_s, cause, None, "error", text)])], end=False).columns()
    columns["evidence"]["attempt"] = [None]
    assert ask(MemoryTables(columns)).rows["cause"].tolist() == [cause] * count


def test_what_watches_machines_tells_of_the_last_end_while_its_chips_were_held():
    lines = [line("accelerator", after_s=500.0), (605.0, "collective_timeout", None, None, f"{WATCHDOG} timing out.")]
    columns = Job([Attempt(20, lines=lines)], end=False).columns()
    columns["evidence"]["attempt"] = [None, None]
    assert ask(MemoryTables(columns)).rows["cause"].tolist() == ["accelerator"]


def test_slices_lost_and_steps_taken_again_in_place_are_listed_and_not_counted():
    job = Job([Attempt(40)])
    columns = job.columns()
    starts, numbers = columns["steps"]["start_ns"], columns["steps"]["step"]
    for i in range(20, 40):  # after 20 steps a slice is lost for 200 s, and training goes back 4 steps
        starts[i] += 200 * S
        numbers[i] -= 4
    columns["lifecycle"]["end_ns"][-1] += 200 * S
    lost_at = starts[19] + STEP_S * S
    rows = (
        ("elastic_slice_down", lost_at, lost_at + 150 * S, 0, 98),
        ("elastic_reinitialization", lost_at + 150 * S, lost_at + 200 * S, 0, 99),
    )
    for row in rows:
        for name, value in zip(columns["lifecycle"], row, strict=True):
            columns["lifecycle"][name].append(value)
    result = ask(MemoryTables(columns))
    (stop,) = result.rows.to_dict("records")
    assert (result.count, result.survived, stop["kind"]) == (0, 1, "elastic")
    assert stop["down_s"] == pytest.approx(200) and stop["lost_steps"] == 4
    without = {**columns, "lifecycle": {k: v[:-2] for k, v in columns["lifecycle"].items()}}
    (stop,) = ask(MemoryTables(without)).rows.to_dict("records")
    assert stop["kind"] == "rollback" and stop["lost_steps"] == 4 and stop["down_s"] == pytest.approx(200)


def test_lines_without_a_time_belong_by_their_attempt():
    job = Job([Attempt(20, 5, lines=[line("hbm")]), Attempt(20, 5, lines=[line("nic")]), Attempt(20)])
    columns = job.columns()
    columns["evidence"]["ts_ns"] = [None, None]
    result = ask(MemoryTables(columns))
    assert result.rows["cause"].tolist() == ["hbm", "nic"] and set(result.rows["confidence"]) == {"likely"}
    columns["evidence"]["attempt"] = [None, None]
    lost = ask(MemoryTables(columns))
    assert set(lost.rows["cause"]) == {"unknown"} and any("say neither when nor" in n for n in lost.notes)


@pytest.mark.parametrize(
    ("cause", "severity", "told"),
    [("software", None, "software"), ("process_exit", "error", "requeue"), ("software", "warning", "requeue")],
)
def test_that_a_job_was_put_back_into_the_queue_is_not_why_it_failed(cause, severity, told):
    """A traceback has no time; the scheduler's account, which tells what became of the job, has."""
    lines = [line(cause, severity=severity), line("requeue", after_s=60.0)]
    columns = Job([Attempt(20, 5, lines=lines), Attempt(20)]).columns()
    columns["evidence"]["ts_ns"][0] = None
    assert ask(MemoryTables(columns)).rows["cause"].tolist() == [told]


def test_a_log_without_times_of_day_tells_of_steps_alone():
    steps = [*range(30), *range(20, 50)]
    columns = {
        "step": steps,
        "dur_ns": [5 * S] * 60,
        "attempt": [0] * 30 + [1] * 30,
        "order": list(range(60)),
        "source": ["train.log"] * 60,
    }
    said = {"attempt": [0], "cause": ["software"], "text": ["RuntimeError"], "severity": ["error"], "order": [0]}
    result = ask(MemoryTables({"steps": columns, "evidence": said}))
    (row,) = result.rows.to_dict("records")
    assert (row["lost_steps"], row["wasted_s"], row["cause"]) == (10, pytest.approx(50), "software")
    assert row["confidence"] == "likely" and result.held_s is None and result.mttf.mean_s is None
    json.dumps(result.to_dict(), allow_nan=False)


def test_what_is_asked_must_make_sense():
    with pytest.raises(QuestionError, match="nothing tells when this job was started"):
        ask(MemoryTables({}))
    with pytest.raises(QuestionError, match="chips_per_host=0"):
        ask(Job([Attempt(5)]).tables(), chips_per_host=0)
    with pytest.raises(QuestionError, match="usd_per_chip_hour=-1"):
        ask(Job([Attempt(5)]).tables(), usd_per_chip_hour=-1.0)


attempt = st.builds(
    Attempt,
    steps=st.integers(1, 12),
    lost=st.integers(0, 14),
    down_s=st.integers(1, 500),
    lines=st.lists(
        st.tuples(
            st.floats(-50, 500),
            st.sampled_from([*NAMES, "process_exit"]),
            st.sampled_from(["a", None]),
            st.sampled_from(["error", "info", None]),
            st.just("text"),
        ),
        max_size=2,
    ),
)


@given(st.lists(attempt, min_size=1, max_size=8), st.booleans())
@settings(max_examples=30, deadline=None)
def test_no_second_is_counted_twice_and_the_ledger_agrees(attempts, end):
    deepest = 0
    for a in attempts:
        a.lost = min(a.lost, deepest + a.steps)
        deepest += a.steps - a.lost
    tables = Job(attempts, end).tables()
    result = ask(tables)
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.rows["lost_s"].sum() <= result.held_s + 1e-6
    assert len(result.rows) >= len(attempts) - 1
    book = ledger.analyze(tables, facts_of({"chips": 1}), {}).ledger
    assert result.rows["wasted_s"].sum() == pytest.approx(book.amount("wasted_progress"), abs=1e-6)
    assert result.rows["down_s"].sum() == pytest.approx(book.amount("infrastructure_recovery"), abs=1e-6)


def test_the_bundled_reference_run(tmp_path_factory):
    truth = json.loads((REFERENCE / "training.truth.json").read_text())
    kills = [i for i in truth["injections"] if i["what"] == "kill"]
    run = bundled(tmp_path_factory, "training")
    result = interruptions.analyze(run.tables, run.manifest.facts, parse_options(interruptions.OPTIONS, {}))
    assert result.count == len(kills) == 2 and result.nodes.count == 4
    for row, kill in zip(result.rows.to_dict("records"), kills, strict=True):
        assert row["resumed_step"] == kill["next_first_step"] and row["last_step"] == kill["step"]
        assert row["lost_steps"] == len(kill["wasted_steps"]) + 1  # and the step that was running
        assert row["down_s"] == pytest.approx(kill["downtime_s"], abs=0.15)
        assert row["wasted_s"] == pytest.approx(kill["wasted_span_s"], abs=0.15)
        assert row["restart_ns"] == pytest.approx(kill["next_job_start_ns"], abs=0.2e9)


def test_the_simulated_fleet_against_its_truth():
    plan, _ = plans()
    fleet = simulate(plan)
    truth = {t["attempt"]: t for t in fleet.truth}
    result = ask(MemoryTables(fleet.tables), {"chip": "h100", "chips": 16_384})
    assert result.count == 466 and result.nodes.count == 2048
    assert result.held_s == pytest.approx(54 * 86_400)
    told = result.rows[result.rows["confidence"].isin(["certain", "likely"])]
    assert len(told) > 0.8 * 466
    for row in told.to_dict("records"):
        assert (row["cause"], row["host"]) == (truth[row["attempt"]]["cause"], truth[row["attempt"]]["host"])
    rest = result.rows[~result.rows["confidence"].isin(["certain", "likely"])]
    assert set(rest["family"]) == {"unknown"} and rest["host"].isna().all()
    assert sorted(result.hosts[result.hosts["lemon"]]["host"]) == sorted(host_name(h) for h in plan.lemons)
    assert (result.spread.word, result.trend.word) == ("yes", "none")
    noticed = result.rows.dropna(subset=["noticed_ns"])
    late = [int(n) - truth[a]["noticed_ns"] for n, a in zip(noticed["noticed_ns"], noticed["attempt"], strict=True)]
    assert np.abs(np.array(late) / S).max() < 5


def test_ten_thousand_interruptions_and_a_million_lines():
    rng = np.random.default_rng(2)
    plan = replace(plans()[0], days=1000, causes={"accelerator": 6000, "hbm": 3000, "software": 1000}, step_s=200.0)
    tables = dict(simulate(plan).tables)
    count = 1_000_000
    first, last = tables["steps"]["start_ns"][[0, -1]]
    said = {k: list(tables["evidence"][k]) for k in ("ts_ns", "cause", "text")}
    more = np.sort(rng.integers(first, last, count))
    causes = np.array(["network", "process_exit", "software"])[rng.integers(0, 3, count)]
    tables["evidence"] = {
        "ts_ns": [*said["ts_ns"], *more.tolist()],
        "cause": [*said["cause"], *causes.tolist()],
        "text": [*said["text"], *["a line of some log"] * count],
    }
    made = MemoryTables(tables)
    result = ask(made, {"chip": "h100", "chips": 16_384})
    assert result.count == 10_000 and len(json.dumps(result.to_dict(), allow_nan=False)) > 1_000_000
