"""A plan for checkpoints on a page: the curve with where the job stands, and what each cure would give back."""

import pandas as pd
import streamlit as st

from app.components.chart import chart
from app.components.columns import NUMBER, draw_table
from app.components.downloads import downloads
from app.components.text import md
from app.figures.base import standalone
from app.pages.checkpoint_planner.figure import given_back, over_interval
from app.whatif.checkpoint.plan import Plan
from app.whatif.checkpoint.wording import TITLES, points, verdict
from errors import format as fmt
from simulators.checkpointing import goodput


def plan_view(plan: Plan, name: str, answer: str) -> None:
    """The two pictures with their table. `name`: of saved files; `answer`: address of the JSON."""
    check = plan.check
    st.markdown(
        "**Goodput over the interval between saves.** Too often costs saves, too rarely costs steps taken again. "
        f"Checked by drawing {check.failures:,} failures: {fmt.share(check.goodput, 4)} ± "
        f"{200 * check.standard_error:.2g} points where the formula says "
        f"{fmt.share(float(goodput(plan.job, plan.measured.interval)), 4)}. ○ modelled."
    )
    curve = over_interval(plan)
    chart(curve, "curve", name, verdict(plan))
    bars = given_back(plan)
    if bars is not None:
        st.markdown("**What each cure would give back**, one at a time. They overlap: do not add them up. ○ modelled.")
        chart(bars, "cures", f"{name}-cures", "What each cure would give back.")
    with st.expander("Each cure with what it assumes", icon=":material/table:", expanded=False):
        rows = table(plan)
        draw_table(
            rows,
            hide_index=True,
            columns={
                "Assumed": st.column_config.TextColumn(width="large"),
                "Chip-hours": st.column_config.NumberColumn(format=NUMBER),
                "Dollars": st.column_config.NumberColumn(format=f"${NUMBER}"),
            },
        )
        for title, why in plan.cures.left_out:
            st.markdown(f"- {md(TITLES[title])}: not told, {md(why)}.")
        downloads(rows, name, answer, lambda: standalone(bars or curve, name, name))


def table(plan: Plan) -> pd.DataFrame:
    """One row per cure, the most helpful first."""
    rows = pd.DataFrame(
        [
            {
                "Cure": TITLES[c.name],
                "Gives back": points(c.gain),
                "From": points(c.low),
                "To": points(c.high),
                "Chip-hours": c.chip_hours,
                "Dollars": c.usd,
                "Assumed": c.assumption,
            }
            for c in plan.cures.offered
        ],
        columns=["Cure", "Gives back", "From", "To", "Chip-hours", "Dollars", "Assumed"],
    )
    return rows.dropna(axis="columns", how="all") if len(rows) else rows
