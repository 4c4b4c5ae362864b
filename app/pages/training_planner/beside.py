"""On the planner's page, where a run is what it starts from: the run's step and what became of it."""

import pandas as pd
import streamlit as st

from app.components.chart import chart
from app.components.columns import draw_table
from app.components.text import md
from app.pages.training_planner.beside_figure import differences, two_ledgers
from app.whatif.training.answers import TrainingPlan
from app.whatif.training.beside import PortedPlan
from app.whatif.training.beside_wording import DUST
from app.whatif.training.phrases import what


def beside(made: TrainingPlan, name: str) -> None:
    """Nothing for a plan that starts from no run."""
    if not isinstance(made, PortedPlan):
        return
    choice, other = made.carried
    rows = other.step.rows
    how = "the least time that its program can take" if made.run.compiled else f"as it was {made.run.how}"
    st.markdown(
        f"**What becomes of each account of the step?** {md(made.run.name)}, {how}, and carried over to "
        f"{md(what(choice))}, which is modelled."
    )
    was = "at its least" if made.run.compiled else "as it was"
    before, after = (was, f"{made.run.chips:,} {made.run.chip.name}"), ("carried over", what(choice))
    chart(two_ledgers(rows, before, after), "ledgers", f"{name}-beside", "The step before and after, by account.")
    if changed := [r for r in rows if abs(r.change_s) >= DUST * other.step.before_s]:
        chart(differences(changed), "changes", f"{name}-changes", "What each account takes more or less.")
    told = other.to_dict(made.run)["beside"]
    with st.expander(f"Evidence: {len(told)} accounts of the step", icon=":material/table:"):
        draw_table(pd.DataFrame(told))
