"""A pause that comes back and has no name: what it may be is not ruled out."""

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.app import made_runs
from tests.app.made_runs import S

NAMES = {"evaluation", "logging"}


def told(place, every):
    """What is found about a job of steps of a second, of which one in so many takes three."""
    took = [3 * S if every and n % every == 0 and n else S for n in range(80)]
    run = made_runs.write(place.store, f"every {every}", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


def test_what_a_nameless_pause_may_be_is_not_ruled_out(place):
    result = told(place, 8)
    assert "periodic_pause" in {f.cause for f in result.findings}
    (gap,) = (gap for gap in result.not_told if "no event names" in gap.why)
    assert {*gap.causes} == NAMES and not NAMES & {out.cause for out in result.ruled_out}
    assert not any("no event names" in gap.why for gap in told(place, 0).not_told)
