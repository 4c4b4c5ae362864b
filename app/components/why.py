"""From an account to the page that explains it, and back."""

import streamlit as st

from app import theme
from app.components.header import pages_of
from runs.run import Run

PAGES: dict[str, tuple[str, str]] = {  # account: the page that says why, and what it says
    "useful_maths": ("pages/mfu.py", "How the useful maths was counted, and against which peak"),
    "padding": ("pages/padding.py", "Which matrix products pad, and which dimension would pay most"),
    "recomputation": ("pages/memory.py", "What recomputing saves in memory"),
    "below_roofline": ("pages/roofline.py", "Which operations run below their roof"),
    "exposed_communication": ("pages/overlap.py", "What is hidden behind computing, and what is not"),
    "exposed_copies": ("pages/overlap.py", "When the devices only copied"),
    "straggler_wait": ("pages/stragglers.py", "Which rank made the others wait, and why"),
    "input_wait": ("pages/input.py", "Whether the run is bound by its input"),
    "data_loading": ("pages/input.py", "Whether the run is bound by its input"),
    "infrastructure_recovery": ("pages/interruptions.py", "What stopped the job, why, and what followed"),
    "wasted_progress": ("pages/interruptions.py", "Which interruptions lost these steps, and why"),
    "checkpoint_save": ("pages/checkpoints.py", "How often a save would pay"),
    "checkpoint_restore": ("pages/checkpoints.py", "What a restart costs, by part, and what would shorten it"),
    "accelerator_initialization": ("pages/checkpoints.py", "What a restart costs, by part, and what would shorten it"),
    "training_preparation": ("pages/checkpoints.py", "What a restart costs, by part, and what would shorten it"),
    "program_startup": ("pages/checkpoints.py", "What a restart costs, by part, and what would shorten it"),
    "prefill": ("pages/latency.py", "How long prompts waited and took to be read"),
    "decode": ("pages/latency.py", "How fast tokens followed one another"),
    "missed_objective": ("pages/slo.py", "Which requests came too late, and why"),
    "failed_requests": ("pages/latency.py", "Which requests failed, and what they cost"),
    "bucket_padding": ("pages/engine.py", "How full the passes were"),
    "rejected_speculation": ("pages/speculation.py", "Whether drafting pays"),
    "preemption_recompute": ("pages/engine.py", "When requests were preempted, and why"),
    "scheduling": ("pages/engine.py", "What the engine ran and queued over time"),
    "no_requests": ("pages/engine.py", "When the engine was empty"),
    "device_idle": ("pages/overlap.py", "When the devices were idle"),
}


def why(run: Run, path: tuple[str, ...]) -> None:
    """A link to the page that explains the account at this path; nothing where none does."""
    page, question = PAGES.get(theme.known(path), ("", ""))
    if page in pages_of(run):
        st.page_link(page, label=question, icon=":material/arrow_forward:", query_params={"run": run.run_id})
