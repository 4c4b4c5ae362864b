"""Checkpoints: how often does a job save, how often should it, and what would each cure give back?"""

import streamlit as st

from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.price import price_of_run
from app.components.question_page import How, joint_page
from app.pages.checkpoint_planner.page import planner
from app.questions.checkpoints import CHECKPOINTS
from app.questions.checkpoints.planned import Planned, planned
from app.questions.checkpoints.view import pictures
from errors import format as fmt


def page() -> None:
    if not (st.query_params.get("run") or st.session_state.get("last_run")):
        planner()
        return
    joint_page(
        CHECKPOINTS,
        "Reading saves and failures",
        figures,
        pictures,
        beside=price_of_run,
        asking=planned,
        verdict=lambda answer: answer.verdict,
        how=_how,
    )


def _how(about: About, answer: Planned | None) -> How:
    """What was measured, and what the plan rests on."""
    return How(CHECKPOINTS.terms, () if answer is None else answer.notes, CHECKPOINTS.inputs)


def figures(planned: Planned) -> list[Figure]:
    """What the run measured of saves and failures."""
    result = planned.result
    save, mttf = result.save, result.mttf
    rested = f"{fmt.count(mttf.count, 'failure')} in {fmt.duration(mttf.exposure_s)} at risk: the time held less waits"
    between = f"{fmt.duration(mttf.low_s)} to {fmt.duration(mttf.high_s)}" if mttf.high_s else "no failure: a bound"
    mean = fmt.duration(mttf.mean_s) if mttf.mean_s else f"> {fmt.duration(mttf.low_s)}"
    often = f" By all the time held: one every {fmt.duration(result.held_s / mttf.count)}." if mttf.count else ""
    cost = result.saves_s + result.redone_s + result.restarts_s
    share = cost / result.held_s if result.held_s else None
    kinds = {True: "synchronous", False: "written in the background", None: "kind not recorded"}[result.synchronous]
    return [
        Figure(
            "A save blocks",
            fmt.duration(save.median_s),
            f"Median of {save.count:,} ({kinds}); 90th percentile {fmt.duration(save.p90_s)}.",
            "measured",
            save.median_s,
            "less",
            kinds,
        ),
        Figure(
            "Between saves",
            fmt.duration(result.interval_s),
            "Median time from the end of a save to the next of "
            f"its attempt, from {result.interval_source or 'nothing recorded'}.",
            "measured",
        ),
        Figure(
            "Mean time to failure",
            mean,
            rested + f" for machines. 95 % interval: {between}.{often}",
            "derived",
            mttf.mean_s,
            "more",
        ),
        Figure(
            "Wait and restart",
            fmt.duration((result.wait.mean_s or 0) + (result.restart.mean_s or 0))
            if result.wait.count
            else fmt.NO_VALUE,
            f"Mean of a failure: {fmt.duration(result.wait.mean_s)} waiting for machines, "
            f"{fmt.duration(result.restart.mean_s)} restarting.",
            "derived",
        ),
        Figure(
            "Lost to both",
            fmt.share(share),
            f"Saves {fmt.duration(result.saves_s)}, steps taken again {fmt.duration(result.redone_s)}, restarts "
            f"{fmt.duration(result.restarts_s)}, of {fmt.duration(result.held_s)} held.",
            "derived",
            share,
            "less",
        ),
    ]


if __name__ == "__main__":
    page()
