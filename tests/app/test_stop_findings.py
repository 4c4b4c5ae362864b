"""What stands still and what stops a job: each is found, none is told twice, and what happened is not ruled out."""

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.app import made_runs
from tests.app.made_runs import S


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
