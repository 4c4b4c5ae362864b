"""What stands still and what stops a job: each is found, none is told twice, and what happened is not ruled out."""

import math

import pytest

from app.questions import question
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.whatif.checkpoint.asked import Asked
from app.whatif.checkpoint.plan import plan
from collectors.ingest import ingest
from errors import QuestionError
from errors import format as fmt
from tests.app import made_runs
from tests.app.made_runs import S
from tests.collectors import flight_dumps, snapshots


def hanging(place, hung):
    """A job of 200 steps of ten seconds, of which these take 50 minutes."""
    took = [(3000 if n in hung else 10) * S for n in range(200)]
    run = made_runs.write(place.store, f"hung {hung}", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


@pytest.mark.parametrize("hung", [(120,), (120, 150)])
def test_a_step_that_hung_is_found_and_no_hang_is_ruled_out(place, hung):
    result = hanging(place, hung)
    (found,) = (f for f in result.findings if f.cause == "hang")
    beyond = len(hung) * 2990 * 4
    assert found.likely == pytest.approx(beyond) and found.gain.low <= beyond <= found.gain.high
    assert found.where.steps == hung and "50 min" in found.title and "10.0 s" in found.title
    assert result.ledger.amount("hang") == pytest.approx(found.likely)
    assert "hang" not in {out.cause for out in result.ruled_out}
    assert FINDINGS.verdict(result).startswith("Step 120 hung" if len(hung) == 1 else "2 steps hung")


def test_a_hang_below_the_floor_is_ruled_out_for_what_it_took(place):
    took = [(1300 if n == 120 else 10) * S for n in range(8000)]
    run = made_runs.write(place.store, "long", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    (out,) = (out for out in result.ruled_out if out.cause == "hang")
    assert not result.findings and "1.59 %" in out.why


def ended(place, cause, finished=False):
    """A job of 200 steps that a line of its log tells the end of, after which nothing is started."""
    steps = made_runs.step_columns([10 * S] * 200)
    end = steps["start_ns"][-1] + 10 * S
    life = {"kind": ["job"], "start_ns": [steps["start_ns"][0]], "end_ns": [end if finished else None]}
    said = {"ts_ns": [end + S], "attempt": [0], "host": ["h0"], "cause": [cause], "severity": ["error"]}
    said |= {"text": ["RESOURCE_EXHAUSTED"], "offset": [0], "order": [0], "source": ["train.log"]}
    life |= {"attempt": [0], "order": [0], "source": ["train.log"]}
    tables = {"steps": steps, "lifecycle": life, "evidence": said}
    run = made_runs.write(place.store, f"{cause} {finished}", tables, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("device_memory", "It ran out of memory 1 time on h0, and the job was not started again."),
        ("preemption", "Its machines were taken away 1 time, and the job was not started again."),
        ("numerics", "The loss became no number 1 time, and the job was not started again."),
    ],
)
def test_what_ended_a_job_is_found_though_it_cost_nothing_that_is_told(place, cause, said):
    result = ended(place, cause)
    (found,) = result.findings
    assert found.title == said and found.gain is None and found.confidence == 0.95
    assert not any("no interruption" in out.why for out in result.ruled_out)
    assert FINDINGS.verdict(result).startswith(f"{said} What that costs in chip time cannot be told.")


def test_an_end_of_which_no_line_tells_why_is_not_told_and_an_ended_job_rules_out(place):
    result = ended(place, "process_exit")
    assert not result.findings
    gaps = [gap for gap in result.not_told if gap.causes == ("interruption",)]
    assert [gap.why for gap in gaps] == ["no line of a log tells why it ended"]
    assert not any("no interruption" in out.why for out in result.ruled_out)
    done = ended(place, "device_memory", finished=True)
    assert not done.findings and "out_of_memory" in {out.cause for out in done.ruled_out}


def test_stops_without_times_that_lost_no_step_are_found_by_their_cause(place):
    steps = made_runs.step_columns([10 * S] * 150, attempt=[n // 50 for n in range(150)])
    steps |= {"start_ns": [None] * 150}
    said = {"step": [49, 99], "attempt": [0, 1], "cause": ["device_memory"] * 2, "severity": ["error"] * 2}
    said |= {"text": ["OOM"] * 2, "offset": [0, 1], "order": [0, 1], "source": ["train.log"] * 2}
    run = made_runs.write(place.store, "untimed", {"steps": steps, "evidence": said}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    (found,) = result.findings
    assert found.title == "It ran out of memory 2 times, and no step had to be taken again."
    assert not any("no interruption" in out.why for out in result.ruled_out)


def test_stops_of_a_job_of_which_no_step_was_read_are_not_said_to_have_lost_none(place):
    begun = [made_runs.START_NS + k * 7200 * S for k in range(2)]
    life = {"kind": ["job"] * 2, "start_ns": begun, "end_ns": [at + 3600 * S for at in begun], "attempt": [0, 1]}
    life |= {"detail": ['{"scheduler": "slurm", "outcome": "interrupted"}', '{"scheduler": "slurm"}']}
    life |= {"order": [0, 1], "source": ["sacct.txt"] * 2}
    said = {"ts_ns": [begun[0] + 3600 * S], "attempt": [0], "host": ["n1"], "cause": ["host"], "severity": ["error"]}
    said |= {"text": ["State=NODE_FAIL"], "offset": [0], "order": [0], "source": ["sacct.txt"]}
    run = made_runs.write(place.store, "accounted", {"lifecycle": life, "evidence": said}, {"chips": 4})
    (found,) = ask(FINDINGS, run, {}, place.registry).findings
    assert found.title == "Machines failed 1 time on n1, and nothing tells which steps that lost."


def stopped(place, name, attempts, *, down_s=60, restore_s=0, lost=0, steps=120, save_every=0, lines=(), facts=None):
    """A job of steps of ten seconds that is stopped after every so many and started again, on 32 chips.

    `lines`: (attempt, cause, host) of what a log tells of its end."""
    taken, life, said, now, step = [], [], [], made_runs.START_NS, 0
    for k in range(attempts):
        last = k == attempts - 1
        begun = now
        life.append(("accelerator_initialization", now, now + 20 * S, k, None))
        now += 20 * S
        if k and restore_s:
            life.append(("checkpoint_restore", now, now + restore_s * S, k, None))
            now += restore_s * S
        for _ in range(steps):
            taken.append((step, now, k))
            now, step = now + 10 * S, step + 1
            if save_every and step % save_every == 0:
                life.append(("checkpoint_save", now, now + 60 * S, k, step))
                now += 60 * S
        life.append(("job", begun, now if last else None, k, None))
        said += [(now + S, k, cause, host) for at, cause, host in lines if at == k]
        now, step = now + down_s * S, step - (0 if last else lost)
    columns = {
        "steps": dict(zip(("step", "start_ns", "attempt"), map(list, zip(*taken, strict=True)), strict=True)),
        "lifecycle": dict(
            zip(("kind", "start_ns", "end_ns", "attempt", "step"), map(list, zip(*life, strict=True)), strict=True)
        ),
    }
    columns["steps"]["dur_ns"] = [10 * S] * len(taken)
    if said:
        names = ("ts_ns", "attempt", "cause", "host")
        columns["evidence"] = dict(zip(names, map(list, zip(*said, strict=True)), strict=True))
        columns["evidence"] |= {"severity": ["error"] * len(said), "text": ["a line"] * len(said)}
    for table in columns.values():
        n = len(next(iter(table.values())))
        table |= {"order": list(range(n)), "source": ["train.log"] * n}
    run = made_runs.write(place.store, name, columns, {"chips": 32, **(facts or {})})
    return run, ask(FINDINGS, run, {}, place.registry)


def cost(place, run):
    """Chip-seconds that all stops took together, as Interruptions tells it."""
    return float(ask(question("interruptions"), run, {}, place.registry).rows["lost_s"].sum()) * 32


def test_what_a_slow_restore_takes_is_not_given_back_again_by_coming_back_sooner(place):
    run, result = stopped(place, "slow restores", 6, restore_s=900, save_every=40)
    given = {f.cause: f.likely for f in result.findings}
    assert given["slow_restore"] > 0.8 * 5 * 900 * 32
    assert sum(given.values()) <= cost(place, run) + result.ledger.amount("checkpoint_save")
    assert "slow_restart" not in given and "slow_restart" in {f.cause for f in result.explained}
    _, other = stopped(place, "slow starts", 6, down_s=1200)
    (found,) = other.findings
    assert found.cause == "slow_restart" and found.draws[""] < 1e-6


def test_stops_that_likely_are_a_bad_hosts_are_given_back_once(place):
    lines = [(k, "hbm", "h7") for k in range(0, 20, 2)]
    run, result = stopped(place, "a bad host", 21, down_s=200, lost=10, lines=lines, facts={"chips_per_host": 4})
    (found,) = (f for f in result.findings if f.cause == "bad_host")
    assert found.likely == pytest.approx(cost(place, run))  # ten stops name it, and no line of ten others another
    assert found.draws[""] < 1e-6
    assert result.joint[-1] <= cost(place, run) * (1 + 1e-9)
    assert "h7 failed 10 times" in found.title and "no line names a host" in found.title


@pytest.mark.parametrize("every", [2, 4, 10])
def test_saving_less_often_gives_back_saves_less_the_steps_that_failures_then_lose(place, every):
    """By what saves and lost steps cost together over the same work, at the interval that is and at the best one."""
    run, result = stopped(place, f"saves {every}", 11, steps=400, save_every=every)
    (found,) = (f for f in result.findings if f.cause == "frequent_checkpoints")
    told = ask(question("checkpoints"), run, {}, place.registry)
    save_s, mttf_s, now_s = told.save.mean_s, told.mttf.mean_s, told.interval_s
    best_s = math.sqrt(2 * save_s * mttf_s) - save_s
    now, then = (save_s / t + t / 2 / mttf_s for t in (now_s, best_s))
    assert found.likely == pytest.approx((now - then) * told.kept_s * 32, rel=0.25)
    assert found.gain.low <= (now - then) * told.kept_s * 32 <= found.gain.high
    assert found.likely < result.ledger.amount("checkpoint_save") * (1 - now_s / best_s)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"attempts": 1, "steps": 3000, "save_every": 600}, "nothing failed that lost the work between two"),
        (
            {"attempts": 3, "steps": 3000, "save_every": 900, "lost": 1},
            "failures happened to lose less than that costs",
        ),
        ({"attempts": 3, "steps": 900, "save_every": 120, "lost": 1}, "at an interval near the best"),
    ],
)
def test_only_saves_that_are_near_the_best_interval_are_told_to_be(place, job, why):
    run, result = stopped(place, why, **job)
    told = ask(question("checkpoints"), run, {}, place.registry)
    best_s = math.sqrt(2 * told.save.mean_s * (told.mttf.mean_s or told.mttf.low_s)) - told.save.mean_s
    outs = {out.cause: out.why for out in result.ruled_out}
    assert why in outs["rare_checkpoints"] and outs["rare_checkpoints"] == outs["slow_checkpoint"]
    assert ("near the best" in why) is (best_s / 1.5 <= told.interval_s <= 1.5 * best_s)


def test_saves_whose_distance_is_not_known_rule_nothing_out(place):
    _, result = stopped(place, "one save each", 5, steps=400, save_every=400)
    saves = {"frequent_checkpoints", "rare_checkpoints", "slow_checkpoint"}
    assert not saves & {out.cause for out in result.ruled_out}
    assert any(saves == {*gap.causes} and "how far apart" in gap.why for gap in result.not_told)


@pytest.mark.parametrize("attempts", [1, 10])
def test_what_starting_up_takes_an_attempt_is_of_each_start_that_steps_tell_of(place, attempts):
    """First steps of 100 s, no start of the job recorded but in its steps, which are taken half a minute later."""
    took = [(100 if n % 20 == 0 and n < 20 * attempts else 10) * S for n in range(20 * attempts)]
    steps = made_runs.step_columns(took, attempt=[n // 20 for n in range(20 * attempts)])
    steps["start_ns"] = [at + 30 * S * (n // 20) for n, at in enumerate(steps["start_ns"])]
    run = made_runs.write(place.store, f"cold {attempts}", {"steps": steps}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    (told,) = (f for f in (*result.findings, *result.explained) if f.cause == "cold_cache")
    assert told.title.startswith("Start-up and compiling take 1 min 30 s an attempt")


def surviving(place, name, cause=None, slices=False, restore_s=0):
    """Four times a hundred steps of one start of the job: between them it goes back by 60, which it restores after a
    save of a minute, or goes on without slices after 700 s, twenty back."""
    taken, life, said, now, step = [], [], [], made_runs.START_NS, 0
    for k in range(4):
        for _ in range(100):
            taken.append((step, now))
            now, step = now + 10 * S, step + 1
        if k < 3:
            step -= 20 if slices else 60
            said.append(now - 3 * S)
            if slices:
                life += [("elastic_slice_down", now, now + 600 * S)]
                life += [("elastic_reinitialization", now + 600 * S, now + 700 * S)]
                now += 700 * S
            if restore_s:
                life += [("checkpoint_save", now, now + 60 * S)]
                life += [("checkpoint_restore", now + 60 * S, now + (60 + restore_s) * S)]
                now += (60 + restore_s) * S
    life.append(("job", made_runs.START_NS, now))
    steps, events = ([list(c) for c in zip(*rows, strict=True)] for rows in (taken, life))
    columns = {
        "steps": {"step": steps[0], "start_ns": steps[1], "dur_ns": [10 * S] * 400, "attempt": [0] * 400},
        "lifecycle": dict(zip(("kind", "start_ns", "end_ns"), events, strict=True)) | {"attempt": [0] * len(life)},
    }
    if cause:
        columns["evidence"] = {"ts_ns": said, "attempt": [0] * 3, "cause": [cause] * 3, "severity": ["error"] * 3}
        columns["evidence"] |= {"text": ["a line"] * 3, "host": ["h1"] * 3}
    for table in columns.values():
        n = len(next(iter(table.values())))
        table |= {"order": list(range(n)), "source": ["train.log"] * n}
    run = made_runs.write(place.store, name, columns, {"chips": 32})
    return run, ask(FINDINGS, run, {}, place.registry)


@pytest.mark.parametrize(
    ("told", "cause", "title"),
    [
        ({"cause": "numerics"}, "nan_rollback", "The loss became no number 3 times, and training went back: 30 min of"),
        ({}, "interruption", "Steps were taken again 3 times without a start of the job, and no line of a log tells"),
        ({"slices": True}, "interruption", "Slices were lost 3 times and training went on, and no line of a log tells"),
        ({"slices": True, "cause": "hbm"}, "hardware", "Machines failed 3 times on h1: 35 min to be back and 10 min"),
        ({"slices": True, "cause": "disk"}, "hardware", "A disk or file system failed 3 times on h1: 35 min to be"),
        ({"slices": True, "cause": "maintenance"}, "planned_stop", "Slices were taken away 3 times for maintenance"),
    ],
)
def test_what_training_survived_is_found_with_what_it_cost(place, told, cause, title):
    run, result = surviving(place, f"{told}", **told)
    (found,) = result.findings
    assert found.cause == cause and found.title.startswith(title)
    assert found.likely == pytest.approx(cost(place, run)) and found.draws[""] < 1e-6
    lost = ("wasted_progress", "elastic_slice_down", "elastic_reinitialization")
    assert found.likely == pytest.approx(sum(result.ledger.amount(name) for name in lost))
    assert not any("no interruption" in out.why for out in result.ruled_out)


def test_a_restore_in_place_is_given_back_once(place):
    run, result = surviving(place, "restored in place", cause="numerics", restore_s=900)
    given = {f.cause: f.likely for f in result.findings}
    assert given["slow_restore"] > 0.8 * 3 * 900 * 32
    assert sum(given.values()) <= cost(place, run) * (1 + 1e-9)
    assert cost(place, run) == pytest.approx(3 * (900 + 600) * 32)


def test_a_hang_among_slower_steps_is_no_part_of_what_these_cost(place):
    took = [(3000 if n == 350 else 6 if n >= 300 else 5) * S for n in range(500)]
    run = made_runs.write(place.store, "hung and slow", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    given = {f.cause: f.likely for f in result.findings}
    assert given == pytest.approx({"hang": 2995 * 4, "step_change": 199 * 4})
    pattern = ask(question("steps"), run, {}, place.registry).pattern
    assert pattern.excess_s == pytest.approx(199) and (pattern.first_step, pattern.last_step) == (300, 499)


def test_slower_steps_give_back_no_more_than_the_ledger_holds_of_them(place):
    """Steps begin 50 s apart and are said to take 100 s each: the finding gave back all of the chip time."""
    apart = [1] * 100 + [50] * 60
    steps = made_runs.step_columns([s * S for s in apart])
    steps["dur_ns"] = [s * S * (2 if s == 50 else 1) for s in apart]
    life = {"kind": ["job"], "start_ns": [steps["start_ns"][0]], "end_ns": [steps["start_ns"][0] + sum(apart) * S]}
    life |= {"attempt": [0], "order": [0], "source": ["train.log"]}
    run = made_runs.write(place.store, "overlapping", {"steps": steps, "lifecycle": life}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    (found,) = (f for f in result.findings if f.cause == "step_change")
    assert result.ledger.amount("productive") == pytest.approx(sum(apart) * 4)
    assert found.likely == pytest.approx(60 * 99 * 4 * sum(apart) / (100 + 60 * 100), rel=0.01)


def test_findings_and_the_planner_tell_one_best_interval(place):
    """Findings told sqrt(2 C M) - C, the planner of the same run the exact one, some saves' two thirds longer."""
    run, result = stopped(place, "one interval", 11, steps=400, save_every=2)
    (found,) = (f for f in result.findings if f.cause == "frequent_checkpoints")
    told = ask(question("checkpoints"), run, {}, place.registry)
    best = fmt.duration(plan(Asked(), told).intervals["optimal"])
    assert f"the best interval is {best}." in found.title
    assert best != fmt.duration(math.sqrt(2 * told.save.mean_s * told.mttf.mean_s) - told.save.mean_s)


def test_what_ended_a_job_before_its_first_step_is_said_where_nothing_else_is(place):
    causes = ["process_exit", "device_memory", "device_memory", "nic"]
    said = {
        "ts_ns": [S, 2 * S, 3 * S, 4 * S],
        "attempt": [0] * 4,
        "cause": causes,
        "severity": ["error"] * 3 + ["info"],
    }
    said |= {"text": ["Traceback", "<b>Used 18.25G of 15.75G hbm", "again", "link"], "offset": [0] * 4}
    said |= {"order": [0, 1, 2, 3], "source": ["train.log"] * 4}
    run = made_runs.write(place.store, "never began", {"evidence": said}, {"chips": 4})
    with pytest.raises(QuestionError, match="nothing tells where the chip time went") as error:
        ask(FINDINGS, run, {}, place.registry)
    told = "Its log tells of a failure: Accelerator out of memory (2 lines, the first of them '<b>Used 18.25G of"
    assert told in str(error.value)


@pytest.mark.parametrize("late", [2, None])
def test_what_flight_recorders_tell_is_said_where_nothing_else_is(place, tmp_path, late):
    files = []
    for rank in range(3):
        done = {"state": "completed", "time_discovered_completed_ns": flight_dumps.T0, "retired": True}
        entries = [flight_dumps.entry("all_reduce", seq=n, **done) for n in (1, 2)]
        entries += [flight_dumps.entry("all_reduce", seq=3)] if late is not None and rank != late else []
        files.append(tmp_path / f"nccl_trace_rank_{rank}")
        files[-1].write_bytes(flight_dumps.pickled(flight_dumps.dump({"0": [0, 1, 2]}, entries)))
    run = place.store.get(ingest(files, place.store).run_id)
    with pytest.raises(QuestionError, match="nothing tells where the chip time went") as error:
        ask(FINDINGS, run, {}, place.registry)
    assert ("had not completed, and name rank 2 as the reason: see `hangs`" in str(error.value)) == (late is not None)
    assert ("hangs" in str(error.value)) == (late is not None)


def test_what_held_memory_is_said_to_be_told_where_nothing_else_is(place, tmp_path):
    (tmp_path / "snapshot.pickle").write_bytes(snapshots.small())
    run = place.store.get(ingest([tmp_path / "snapshot.pickle"], place.store).run_id)
    with pytest.raises(QuestionError, match="What held memory is told by `memory`"):
        ask(FINDINGS, run, {}, place.registry)


def losing(place, name, losses, attempt=None):
    """A job of steps of ten seconds with these losses."""
    steps = made_runs.step_columns([10 * S] * len(losses)) | {"loss": losses}
    if attempt:
        steps |= attempt
    run = made_runs.write(place.store, name, {"steps": steps}, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


@pytest.mark.parametrize("none", [math.nan, math.inf])
def test_steps_after_which_the_loss_is_no_number_are_found_with_what_they_took(place, none):
    result = losing(place, "lost", [2.0] * 150 + [none] * 50)
    (found,) = (f for f in result.findings if f.cause == "nan_rollback")
    assert found.title == "The loss is no number from step 150 to the end: 50 steps that trained nothing."
    assert found.likely == pytest.approx(result.ledger.amount("productive") / 4)
    assert found.gain.low <= 50 * 10 * 4 <= found.gain.high * 1.01
    assert (found.where.steps.first, found.where.steps.last) == (150, 199)
    assert "nan_rollback" not in {out.cause for out in result.ruled_out}


@pytest.mark.parametrize(
    "losses",
    [
        [2.0] * 100 + [math.nan] * 50 + [2.0] * 50,  # it recovers
        [math.nan if n % 3 else 2.0 for n in range(199)] + [2.0],
        [2.0] * 191 + [math.nan] * 9,  # too few to be sure
        [None] * 200,
        [2.0] * 150 + [None] * 50,  # not told is no number that is none
    ],
)
def test_single_losses_that_are_no_numbers_are_no_finding(place, losses):
    assert not [f for f in losing(place, "well", losses).findings if f.cause == "nan_rollback"]


def test_of_losses_that_are_told_now_and_then_the_last_counts(place):
    told = [(2.0 if n < 150 else math.nan) if n % 5 == 0 else None for n in range(200)]
    (found,) = (f for f in losing(place, "now and then", told).findings if f.cause == "nan_rollback")
    assert "from step 150 to the end: 50 steps" in found.title


def test_steps_that_were_taken_again_with_a_loss_are_not_lost(place):
    numbers = [*range(200), *range(150, 200)]
    again = {"step": numbers, "attempt": [0] * 200 + [1] * 50}
    result = losing(place, "again", [2.0] * 150 + [math.nan] * 50 + [2.0] * 50, again)
    assert not [f for f in result.findings if "to the end" in f.title]


def test_of_steps_that_were_lost_no_loss_counts(place):
    """Of thirty losses that are no numbers at its end the job that was started again took eight steps."""
    numbers = [*range(180), *range(100, 158)]
    again = {"step": numbers, "attempt": [0] * 180 + [1] * 58}
    result = losing(place, "fewer", [2.0] * 150 + [math.nan] * 30 + [2.0] * 50 + [math.nan] * 8, again)
    assert not [f for f in result.findings if "to the end" in f.title]


def test_steps_that_a_later_save_held_are_not_of_saves_too_far_apart(place):
    """Stopped after 640 steps, of which 600 were saved; then training went on from this save, or from one before."""
    job = {"attempts": 2, "steps": 640, "save_every": 200, "lines": [(0, "user", None)]}
    told, rare = {}, {}
    for back_to in (600, 200):
        run, result = stopped(place, f"back to {back_to}", lost=640 - back_to, **job)
        told[back_to] = ask(question("checkpoints"), run, {}, place.registry)
        rare[back_to] = [f for f in result.findings if f.cause == "rare_checkpoints"]
        passed = ["a later save held: training went on from an earlier one" in f.title for f in result.findings]
        assert any(passed) is (back_to == 200)
    redone = told[200].redone_s
    assert told[600].stops["passed_over_s"].sum() == 0 and not rare[200]
    assert told[200].stops["passed_over_s"].sum() == pytest.approx(redone * (600 - 200) / 440, rel=0.01)
    assert any("the job went on from an earlier one" in note for note in told[200].notes)
