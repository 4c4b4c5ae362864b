"""A plan for checkpoints on a page: the curve with where the job stands, and what each cure would give back."""

import pandas as pd
import streamlit as st

from app import format as fmt
from app.components.chart import chart
from app.components.downloads import downloads
from app.components.text import md
from app.figures.base import standalone
from app.pages.checkpoint_planner.figure import given_back, over_interval
from app.whatif.checkpoint.plan import Plan
from app.whatif.checkpoint.wording import TITLES, points, verdict
from simulators.checkpointing import goodput

DEFINITIONS = (
    (
        "Goodput",
        "The share of time that becomes kept work: τ e^(−(C−b)/M) / ((M + D) e^(R/M) (e^((τ+b)/M) − 1)), "
        "with work between saves τ, a save safe after C of which b blocks, mean time to failure M, restart R, wait D "
        "(Daly, 2006, extended by D and by saves in the background).",
    ),
    ("Young", "√(2bM): the best interval to first order."),
    ("Daly", "√(2bM) (1 + √(b/2M)/3 + (b/2M)/9) − b: to higher order."),
    ("Best", "The greatest goodput by the exact formula: M (1 + W(−e^(−1−b/M))), W Lambert's function."),
    ("Mean time to failure", "Time at risk by failures; its interval is Garwood's, exact for Poisson counts."),
    (
        "Given back",
        "Goodput with a cure less goodput without, by the same model, times the time it speaks of: kept "
        "steps, saves, steps taken again and restarts. The range covers the interval of the mean time to failure and "
        "that of the assumption. Cures overlap: two save the same second only once, so they must not be added up.",
    ),
)


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
        st.dataframe(
            rows,
            hide_index=True,
            column_config={
                "Assumed": st.column_config.TextColumn(width="large"),
                "Chip-hours": st.column_config.NumberColumn(format="%.4g"),
                "Dollars": st.column_config.NumberColumn(format="$%,.2f"),
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
