"""Checkpoint planner: how often to save, from numbers alone; all of them in the address."""

from urllib.parse import urlencode

import streamlit as st

from app.components.actions import copy_link
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.pages.checkpoint_planner.elastic_claim import elastic_claim
from app.pages.checkpoint_planner.inputs import given, plan_inputs
from app.pages.checkpoint_planner.view import plan_view
from app.whatif.checkpoint.asked import OPTIONS, Asked
from app.whatif.checkpoint.plan import plan
from app.whatif.checkpoint.wording import verdict as plan_verdict
from errors import QuestionError
from simulators.checkpointing_terms import TERMS

EXAMPLE = {"save_s": "60", "mttf_s": "10800", "restart_s": "300"}  # what is shown before anybody entered a number


def planner() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Checkpoint planner", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption(
        "How often to save a checkpoint, for a job that does not exist yet. Of a run that does, its own page "
        "“Checkpoints” starts from what it measured."
    )
    if not any(st.query_params.get(o.name) for o in OPTIONS if not o.of_run):
        st.query_params.update(EXAMPLE)  # so that the address says what is shown
    try:
        entered = given()
        made = plan(Asked(**entered))
    except QuestionError as e:
        notice(e, library=False)
        plan_inputs(Asked(), {})
        return
    verdict(plan_verdict(made))
    plan_inputs(Asked(), {}, {"mttf_s": made.job.mttf_s})
    plan_view(made, "checkpoint-plan", f"/api/whatif/checkpoint?{urlencode(entered)}")
    beyond(plan_verdict(made))
    elastic_claim()
    with st.expander("How this is computed", icon=":material/function:"):
        for note in made.notes:
            st.markdown(f"- {md(note)}")
        terms_list(TERMS)


if __name__ == "__main__":
    planner()
