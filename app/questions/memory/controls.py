"""The choices of the memory page: which program, or how a model is spread and what it keeps. All in the address."""

from typing import Any

import streamlit as st

from analyzers.device.memory import MemoryResult
from app.components.current import choose, switch
from app.components.model_picker import About, enter, pick
from catalog.chips import chips

CHIP = "v5p"
SEQS = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
REMAT = {"none": "Keep everything", "selective": "Selective", "full": "Full recomputation"}
RECIPES = {
    "mixed": "Mixed, 18 bytes a parameter",
    "float32": "float32, 16 bytes",
    "bfloat16": "bfloat16, 8 bytes",
}


def formula_controls(about: About) -> dict[str, Any]:
    """Draws how a model is spread; returns the options to ask with."""
    given: dict[str, Any] = {"model": about.model} if about.model else {}
    top = st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom")
    with top:
        given["remat"] = switch("What is kept", "remat", REMAT, "full")
        given["sequence_parallel"] = switch(
            "Sequence parallelism", "sequence_parallel", {"no": "TP alone", "yes": "TP with sequence parallelism"}, "no"
        )
    columns = st.columns(8, vertical_alignment="bottom")
    with columns[0]:
        given["chip"] = pick("Chip", "chip", {name: name for name in chips()}, _known_chip())
    with columns[1]:
        given["seq"] = int(pick("Sequence (tokens)", "seq", {str(s): f"{s:,}" for s in SEQS}, "8192"))
    numbers = (
        ("Sequences a device", "batch", 1),
        ("FSDP", "fsdp", 64),
        ("Data parallel", "dp", 1),
        ("Tensor parallel", "tp", 1),
        ("Pipeline stages", "pp", 1),
    )
    for column, (label, name, default) in zip(columns[2:7], numbers, strict=True):
        with column:
            given[name] = enter(label, name, default, 1)
    with columns[7]:
        given["recipe"] = pick("Precision", "recipe", RECIPES, "mixed")
    return given


def _known_chip() -> str:
    return next((name for name in chips() if name.lower().endswith(CHIP)), next(iter(chips())))


def program_control(result: MemoryResult) -> str | None:
    """A list of the run's programs; the one chosen, or None for the largest."""
    names = list(dict.fromkeys(result.programs["name"].astype(str).head(50)))
    if len(names) < 2:
        return None
    now = st.query_params.get("program")
    index = names.index(now) if now in names else 0

    def changed() -> None:
        choose("program", st.session_state["pick_program"], names[0])

    st.selectbox("Program", names, index=index, key="pick_program", on_change=changed, width=320)
    return names[index]
