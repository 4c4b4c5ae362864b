"""From an account to the page that explains it, and back."""

import streamlit as st

from app import theme
from app.components.header import pages_of
from runs.run import Run

PAGES: dict[str, tuple[str, str]] = {  # account: the page that says why, and what it says
    "useful_maths": ("questions/mfu/page.py", "How the useful maths was counted, and against which peak"),
    "padding": ("questions/padding/page.py", "Which matrix products pad, and which dimension would pay most"),
    "recomputation": ("questions/memory/page.py", "What recomputing saves in memory"),
    "below_roofline": ("questions/roofline/page.py", "Which operations run below their roof"),
    "exposed_communication": ("questions/overlap/page.py", "What is hidden behind computing, and what is not"),
    "exposed_copies": ("questions/overlap/page.py", "When the devices only copied"),
    "straggler_wait": ("questions/stragglers/page.py", "Which rank made the others wait, and why"),
    "input_wait": ("questions/input/page.py", "Whether the run is bound by its input"),
    "data_loading": ("questions/input/page.py", "Whether the run is bound by its input"),
    "infrastructure_recovery": ("questions/interruptions/page.py", "What stopped the job, why, and what followed"),
    "wasted_progress": ("questions/interruptions/page.py", "Which interruptions lost these steps, and why"),
    "checkpoint_save": ("questions/checkpoints/page.py", "How often a save would pay"),
    "checkpoint_restore": ("questions/checkpoints/page.py", "What a restart costs, by part, and what would shorten it"),
    "accelerator_initialization": (
        "questions/checkpoints/page.py",
        "What a restart costs, by part, and what would shorten it",
    ),
    "training_preparation": (
        "questions/checkpoints/page.py",
        "What a restart costs, by part, and what would shorten it",
    ),
    "program_startup": ("questions/checkpoints/page.py", "What a restart costs, by part, and what would shorten it"),
    "prefill": ("questions/latency/page.py", "How long prompts waited and took to be read"),
    "decode": ("questions/latency/page.py", "How fast tokens followed one another"),
    "missed_objective": ("questions/objectives/page.py", "Which requests came too late, and why"),
    "failed_requests": ("questions/latency/page.py", "Which requests failed, and what they cost"),
    "bucket_padding": ("questions/engine/page.py", "How full the passes were"),
    "rejected_speculation": ("questions/speculation/page.py", "Whether drafting pays"),
    "preemption_recompute": ("questions/engine/page.py", "When requests were preempted, and why"),
    "scheduling": ("questions/engine/page.py", "What the engine ran and queued over time"),
    "no_requests": ("questions/engine/page.py", "When the engine was empty"),
    "device_idle": ("questions/overlap/page.py", "When the devices were idle"),
}


def why(run: Run, path: tuple[str, ...]) -> None:
    """A link to the page that explains the account at this path; nothing where none does."""
    page, question = PAGES.get(theme.known(path), ("", ""))
    if page in pages_of(run):
        st.page_link(page, label=question, icon=":material/arrow_forward:", query_params={"run": run.run_id})
