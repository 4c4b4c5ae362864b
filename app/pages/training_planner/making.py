"""The panel "Make it real": what creates the chips, configures a framework, compiles it and plans checkpoints."""

from typing import Any

import streamlit as st

from app.components.current import switch
from app.components.text import md
from app.pages.checkpoint_planner import CHECKPOINT_PLANNER
from app.questions.compiled import COMPILED
from app.whatif.training.answers import TrainingPlan
from app.whatif.training.asked import MAKES
from app.whatif.training.phrases import axes, what
from errors import format as fmt

TITLES = {
    "maxtext": "MaxText",
    "megatron": "Megatron-LM",
    "torchtitan": "TorchTitan",
    "gke": "GKE",
    "xpk": "xpk",
    "pathways": "Pathways",
    "queued": "Queued resource",
    "slurm": "Slurm",
    "compile": "Compile it",
    "checkpoint": "Checkpoints",
}


def make_it_real(made: TrainingPlan) -> None:
    """The text of the tool that is chosen, of those that have one; the others say why not."""
    st.markdown(f"**What makes it real?** {md(what(made.first))} as {md(axes(made.first))}.")
    can = {name: TITLES[name] for name in MAKES if "text" in made.make[name]}
    tool = switch("Tool", "make", can, next(iter(can)))
    _text(tool, made.make[tool])
    lacks = [made.make[name]["unavailable"] for name in MAKES if "text" not in made.make[name]]
    st.caption(md(" ".join(dict.fromkeys(lacks))))


def _text(tool: str, made: dict[str, Any]) -> None:
    if "node_pool" in made:
        st.markdown("First the node pools, then the workload:")
        st.code(made["node_pool"], language="bash")
    if "interval_s" in made:
        st.markdown(f"Save every {fmt.duration(made['interval_s'])}: {fmt.share(made['goodput'])} of the time is kept.")
    st.code(made["text"], language=made["language"])
    if tool == "compile":
        st.page_link(COMPILED.file, label="Compile it here", icon=":material/build:", query_params=made["query"])
    if tool == "checkpoint":
        st.caption(f"A checkpoint of master weights and moments takes {fmt.size(made['bytes'])}.")
        st.page_link(
            CHECKPOINT_PLANNER.file,
            label="Open the checkpoint planner with these numbers",
            icon=":material/save:",
            query_params=made["query"],
        )
