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
