"""Serving planner: which setup serves a traffic cheapest within its objectives, and why each of the others loses."""

from collections.abc import Sequence
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components.actions import copy_link
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import open_workspace
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.pages.serving_planner.figure import costs, pools
from app.pages.serving_planner.form import EXAMPLE, asked, serving_form
from app.whatif.serving_plan.answers import ServingPlan, find
from app.whatif.serving_plan.asked import Asked
from app.whatif.serving_plan.wording import verdict as plan_verdict
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from runs.kept import Answers
from simulators.serving.planner import Choice
from simulators.serving.terms import TERMS

_plans = Answers(64 << 20)


def planner() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Serving planner", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption("Model, traffic and objectives in; setups out, the cheapest first. Everything here is modelled.")
    if "model" not in st.query_params:
        st.query_params.update(EXAMPLE)  # so that the address says what is shown
    place = open_workspace()
    runs = {
        r.run_id: r.manifest.name
        for r in place.store.listing()[0]
        if r.manifest.kind == "serving" and r.manifest.tables.get("requests") and r.manifest.fact("chip")
    }
    try:
        now = asked()
        made = planned(now, place)
    except QuestionError as e:
        notice(e, library=False)
        serving_form(st.query_params, runs)
        return
    verdict(plan_verdict(made))
    show(made, now)
    beyond(plan_verdict(made))
    serving_form(vars(now), runs)
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in made.notes))
        terms_list(TERMS)


def planned(now: Asked, place: Workspace) -> ServingPlan:
    """The plan, computed once for its options, with a bar that moves meanwhile."""
    for name in ("model", "on", "input", "output", "rate"):
        if getattr(now, name) is None:
            raise QuestionError(f"nothing was entered for {name!r}", advice="Fill it in below, then press Plan.")
    bar = st.empty()
    run = place.store.find(now.calibrate) if now.calibrate else None

    def told(share: float, what: str) -> None:
        bar.progress(share, f"Simulating {what}")

    stored = place.store.listing()[0]
    key = (now, tuple(r.run_id for r in stored))
    made = _plans.get(key, lambda: find(now, run, told, stored))
    bar.empty()
    return made


def show(made: ServingPlan, now: Asked) -> None:
    """Figures, what each setup costs, two pools where they were asked for, and every setup with its reason."""
    name, best = "serving-plan", made.plan.best
    if best is not None:
        figures_row(
            [
                Figure("Chips", f"{best.chips:,}", "Of the setup that wins.", "modelled"),
                Figure(
                    "A replica bears",
                    f"{fmt.number(best.rate_per_replica)}/s",
                    "Requests within the objectives.",
                    "modelled",
                ),
                Figure(
                    "First token", fmt.duration(best.seen["ttft_s"]), "At that load, at the percentile.", "modelled"
                ),
                Figure(
                    "A token every", fmt.duration(best.seen["tpot_s"]), "At that load, at the percentile.", "modelled"
                ),
                Figure(
                    "Per million tokens", fmt.usd(best.usd_per_million), "Generated tokens, chips alone.", "modelled"
                ),
            ]
        )
        st.markdown(
            f"**What does each setup cost?** {_order(made.plan.choices)}Filled: simulated; hollow: reckoned. Whiskers: "
            "from the fastest to the slowest efficiencies assumed."
        )
        chart(costs(made.plan.choices), "costs", name, plan_verdict(made))
    if made.pools is not None:
        st.markdown("**Would prefill and decode on machines of their own bear more?** The same chips, split both ways.")
        chart(pools(made.pools), "pools", f"{name}-pools", plan_verdict(made))
    table = pd.DataFrame(made.to_dict()["choices"]).drop(columns=["band", "stand_ins"])
    if best is not None and best.usd_per_hour is not None:
        table["tips_at_usd_per_chip_hour"] = (best.usd_per_hour / table["chips"].where(table["feasible"])).round(4)
    with st.expander(
        f"Evidence: {fmt.count(len(table), 'setup')}, each with its reason",
        icon=":material/table:",
        expanded=best is None,
    ):
        first = ["name", "chips", "why", "usd_per_hour", "usd_per_million_output_tokens"]
        draw_table(table[[*first, *(c for c in table.columns if c not in first)]])
        downloads(
            table,
            name,
            f"/api/whatif/serving-plan?{urlencode({n: v for n, v in vars(now).items() if v is not None})}",
            lambda: standalone(costs(made.plan.choices), "Serving plan", name),
        )


def _order(choices: Sequence[Choice]) -> str:
    """Why bars do not grow from one kind of chip to the next, where they do not."""
    unpriced = {c.setup.chip.name for c in choices if c.feasible and c.usd_per_hour is None}
    if len({c.setup.chip.name for c in choices if c.feasible}) < 2 or not unpriced:
        return ""
    return "Chips without a price come kind by kind: their numbers alone tell of no cost. "


if __name__ == "__main__":
    planner()
