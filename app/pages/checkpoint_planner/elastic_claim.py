"""A claim worked through: 15 % more goodput from elastic training at 49,152 chips. What would have to hold for it?"""

import pandas as pd
import streamlit as st

from app.components.columns import draw_table
from app.pages.checkpoint_planner import CHECKPOINT_PLANNER
from errors import format as fmt
from simulators.checkpointing import Job, goodput, mttf_of_nodes_s, optimal_s
from simulators.recovery import elastic_goodput, wait_for_gain
from simulators.training.claim import (
    CHIPS,
    CHIPS_PER_NODE,
    GAIN,
    RATES,
    RESTART_S,
    RESUME_S,
    SAVE_S,
    SLICES,
    WAITS_S,
)


def scenario() -> tuple[pd.DataFrame, dict[float, float | None]]:
    """Goodput with and without for each rate and wait, and the wait from which the gain is as claimed, by rate."""
    nodes = CHIPS / CHIPS_PER_NODE
    rows, needed = [], {}
    for rate in RATES:
        for wait_s in WAITS_S:
            job = Job(save_s=SAVE_S, mttf_s=mttf_of_nodes_s(nodes, rate), restart_s=RESTART_S, wait_s=wait_s)
            best = optimal_s(job)
            waiting = float(goodput(job, best))
            elastic = elastic_goodput(job, best, SLICES, RESUME_S)
            rows.append(
                {
                    "failures_per_1000_node_days": rate,
                    "mttf_s": job.mttf_s,
                    "wait_s": wait_s,
                    "goodput_waiting": waiting,
                    "goodput_elastic": elastic,
                    "gain": elastic - waiting,
                }
            )
        needed[rate] = wait_for_gain(job, SLICES, RESUME_S, GAIN)
    return pd.DataFrame(rows), needed


def elastic_claim() -> None:
    """The scenario with its assumptions, in an expander."""
    title = f"A claim worked through: +15 % from elastic training at {CHIPS:,} chips"
    with st.expander(title, icon=":material/quiz:"):
        rows, needed = scenario()
        low, high = (fmt.duration(needed[rate]) for rate in RATES)
        st.markdown(
            f"A talk claims 15 % more goodput from elastic training at {CHIPS:,} chips; no paper was found, so nothing "
            f"here confirms it. Under the assumptions below it takes replacements that come only after {low} (at "
            f"{RATES[0]:g} failures per 1,000 node-days) or {high} (at {RATES[1]:g}) for it to be true."
        )
        draw_table(
            pd.DataFrame(
                {
                    "Failures per 1,000 node-days": rows["failures_per_1000_node_days"],
                    "A failure every": rows["mttf_s"].map(fmt.duration),
                    "A replacement takes": rows["wait_s"].map(fmt.duration),
                    "Goodput, waiting": rows["goodput_waiting"].map(fmt.share),
                    "Goodput, elastic": rows["goodput_elastic"].map(fmt.share),
                    "Gain": rows["gain"].map(fmt.share),
                }
            ),
            hide_index=True,
        )
        st.markdown(
            f"Assumed: {CHIPS_PER_NODE} chips a node, failures independent; {SLICES} slices, one lost with each "
            f"failure; a save of {SAVE_S:g} s at the best interval; {RESTART_S:g} s to restart a job that waited; two "
            f"pauses of {RESUME_S:g} s, whatever the size of the job, for one that goes on; steps since the last save "
            "are lost either way. ○ modelled."
        )
        st.page_link(
            CHECKPOINT_PLANNER.file,
            label="Change these assumptions",
            icon=":material/tune:",
            query_params={
                "nodes": f"{CHIPS // CHIPS_PER_NODE}",
                "failures_per_1000_node_days": f"{RATES[0]:g}",
                "save_s": f"{SAVE_S:g}",
                "restart_s": f"{RESTART_S:g}",
                "wait_s": f"{WAITS_S[1]:g}",
                "resume_s": f"{RESUME_S:g}",
                "slices": f"{SLICES}",
                "chips": f"{CHIPS}",
                "span_s": "2592000",
            },
        )
