"""The plan of the checkpoints page, and the saves and failures that it rests on."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from analyzers.lost.checkpoints import CheckpointsResult
from app.components.columns import draw_table
from app.components.downloads import csv_bytes
from app.components.notice import notice
from app.components.question_page import SHOWN_ROWS, Told
from app.pages.checkpoint_planner.elastic_claim import elastic_claim
from app.pages.checkpoint_planner.inputs import plan_inputs
from app.pages.checkpoint_planner.view import plan_view
from app.questions.checkpoints.planned import Planned
from app.whatif.checkpoint.asked import Asked
from app.whatif.checkpoint.plan import inputs
from errors import format as fmt


def pictures(told: Told[Planned]) -> None:
    """The inputs of the plan with what it gives, or what it lacks; and the evidence."""
    answer = told.result
    known, basis, _ = inputs(Asked(), answer.result)
    if answer.lacks is not None:
        notice(answer.lacks, library=False)
        st.markdown("**Enter what is not known** to see the best interval.")
    plan_inputs(known, basis)
    if answer.plan is not None:
        asked = urlencode({"run": told.run.run_id, **answer.entered})
        plan_view(answer.plan, told.name, f"/api/whatif/checkpoint?{asked}")
    evidence(answer.result)
    elastic_claim()


def evidence(result: CheckpointsResult) -> None:
    """The saves and the failures that the figures rest on."""
    for what, rows in (("save", result.saves), ("failure", result.stops)):
        with st.expander(f"Evidence: {fmt.count(len(rows), what)}", icon=":material/table:"):
            head = rows.head(SHOWN_ROWS)
            times = {c: pd.to_datetime(head[c], unit="ns", utc=True) for c in rows.columns if c.endswith("_ns")}
            draw_table(head.assign(**times).rename(columns=lambda c: c.removesuffix("_ns")))
            st.download_button(
                "CSV",
                lambda rows=rows: csv_bytes(rows),
                f"{what}s.csv",
                "text/csv",
                icon=":material/download:",
                on_click="ignore",
                key=f"csv {what}",
            )
