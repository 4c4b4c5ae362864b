"""Checkpoints: how often does a job save, how often should it, and what would each cure give back?"""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from analyzers.lost.checkpoints import CheckpointsResult
from app import format as fmt
from app.components.answering import answering
from app.components.current import current_run
from app.components.downloads import csv_bytes
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.notice import notice
from app.components.price import price
from app.components.verdict import verdict
from app.pages.checkpoint_planner.elastic_claim import elastic_claim
from app.pages.checkpoint_planner.inputs import given, plan_inputs
from app.pages.checkpoint_planner.page import planner
from app.pages.checkpoint_planner.view import plan_view
from app.questions.asking import ask
from app.questions.checkpoints import CHECKPOINTS
from app.questions.checkpoints.words import lost
from app.whatif.checkpoint.asked import Asked
from app.whatif.checkpoint.plan import inputs, plan
from app.whatif.checkpoint.wording import verdict as plan_verdict
from errors import QuestionError


def page() -> None:
    if not (st.query_params.get("run") or st.session_state.get("last_run")):
        planner()
        return
    run, extras, place = current_run()
    with header(run, extras):
        actions = st.container()
    with answering("Reading saves and failures", lambda: howto(run, (), (), CHECKPOINTS.inputs)):
        result = ask(CHECKPOINTS, run, {}, place.registry)
    with actions:
        price(run, result.usd_per_chip_hour, place.registry)
    known, basis, _ = inputs(Asked(), result)
    try:
        entered = given()
        made = plan(Asked(**entered), result)
    except QuestionError as e:
        verdict(lost(result))
        figures_row(figures(result))
        notice(e, library=False)
        st.markdown("**Enter what is not known** to see the best interval.")
        plan_inputs(known, basis)
        made = None
    else:
        verdict(plan_verdict(made))
        figures_row(figures(result))
        plan_inputs(known, basis)
        asked = urlencode({"run": run.run_id} | entered)
        plan_view(made, f"{run.manifest.name}-checkpoints", f"/api/whatif/checkpoint?{asked}")
    evidence(result)
    elastic_claim()
    howto(run, CHECKPOINTS.terms, (*result.notes, *(made.notes if made else ())), CHECKPOINTS.inputs)


def figures(result: CheckpointsResult) -> list[Figure]:
    """What the run measured of saves and failures."""
    save, mttf = result.save, result.mttf
    rested = f"{fmt.count(mttf.count, 'failure')} in {fmt.duration(mttf.exposure_s)} at risk: the time held less waits"
    between = f"{fmt.duration(mttf.low_s)} to {fmt.duration(mttf.high_s)}" if mttf.high_s else "no failure: a bound"
    mean = fmt.duration(mttf.mean_s) if mttf.mean_s else f"> {fmt.duration(mttf.low_s)}"
    often = f" By all the time held: one every {fmt.duration(result.held_s / mttf.count)}." if mttf.count else ""
    cost = result.saves_s + result.redone_s + result.restarts_s
    kinds = {True: "synchronous", False: "written in the background", None: "kind not recorded"}[result.synchronous]
    return [
        Figure(
            "A save blocks",
            fmt.duration(save.median_s),
            f"Median of {save.count:,} ({kinds}); 90th percentile {fmt.duration(save.p90_s)}.",
            "measured",
        ),
        Figure(
            "Between saves",
            fmt.duration(result.interval_s),
            "Median time from the end of a save to the next of "
            f"its attempt, from {result.interval_source or 'nothing recorded'}.",
            "measured",
        ),
        Figure("Mean time to failure", mean, rested + f" for machines. 95 % interval: {between}.{often}", "derived"),
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
            fmt.share(cost / result.held_s if result.held_s else None),
            f"Saves {fmt.duration(result.saves_s)}, steps taken again {fmt.duration(result.redone_s)}, restarts "
            f"{fmt.duration(result.restarts_s)}, of {fmt.duration(result.held_s)} held.",
            "derived",
        ),
    ]


def evidence(result: CheckpointsResult) -> None:
    """The saves and the failures that the figures rest on."""
    for what, rows in (("save", result.saves), ("failure", result.stops)):
        with st.expander(f"Evidence: {fmt.count(len(rows), what)}", icon=":material/table:"):
            head = rows.head(5000)
            times = {c: pd.to_datetime(head[c], unit="ns", utc=True) for c in rows.columns if c.endswith("_ns")}
            st.dataframe(head.assign(**times).rename(columns=lambda c: c.removesuffix("_ns")), hide_index=True)
            st.download_button(
                "CSV",
                lambda rows=rows: csv_bytes(rows),
                f"{what}s.csv",
                "text/csv",
                icon=":material/download:",
                on_click="ignore",
                key=f"csv {what}",
            )


if __name__ == "__main__":
    page()
