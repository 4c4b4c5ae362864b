"""The choices of the memory page: which program, or how a model is spread and what it keeps. All in the address."""

from typing import Any

import streamlit as st

from analyzers.device.memory import OPTIONS, MemoryResult
from app.components.model_picker import About
from app.components.option import by_name, control
from app.questions.asking import ask
from app.questions.memory import MEMORY
from catalog.chips import chips

CHIP = "v5p"
SEQS = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
SHARED = {"batch": 1, "fsdp": 64, "dp": 1, "tp": 1, "pp": 1}  # how many of each, before anybody chose
SPLITS = {"no": "TP alone", "yes": "TP with sequence parallelism"}
_OPTIONS = by_name(OPTIONS)
REMAT = {"none": "Keep everything", "selective": "Selective", "full": "Full recomputation"}
RECIPES = {
    "mixed": "Mixed, 18 bytes a parameter",
    "float32": "float32, 16 bytes",
    "bfloat16": "bfloat16, 8 bytes",
}


def controls(about: About) -> dict[str, Any]:
    """Draws them: of a run its programs, of a model how it is spread; returns the options to ask with."""
    if about.run is None or about.model is not None:
        return formula_controls(about)
    program = program_control(ask(MEMORY, about.subject, {}, about.place.registry))
    return {"program": program} if program else {}


def formula_controls(about: About) -> dict[str, Any]:
    """Draws how a model is spread; returns the options to ask with."""
    given: dict[str, Any] = {"model": about.model} if about.model else {}
    top = st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom")
    with top:
        given["remat"] = control(_OPTIONS["remat"], "full", texts=REMAT, buttons=True)
        given["sequence_parallel"] = control(_OPTIONS["sequence_parallel"], "no", texts=SPLITS, buttons=True)
    columns = st.columns(8, vertical_alignment="bottom")
    with columns[0]:
        given["chip"] = control(_OPTIONS["chip"], _known_chip(), texts={name: name for name in chips()})
    with columns[1]:
        given["seq"] = control(_OPTIONS["seq"], 8192, texts={str(s): f"{s:,}" for s in SEQS})
    for column, (name, default) in zip(columns[2:7], SHARED.items(), strict=True):
        with column:
            given[name] = control(_OPTIONS[name], default, step=1, always=True)
    with columns[7]:
        given["recipe"] = control(_OPTIONS["recipe"], "mixed", texts=RECIPES)
    return given


def _known_chip() -> str:
    return next((name for name in chips() if name.lower().endswith(CHIP)), next(iter(chips())))


def program_control(result: MemoryResult) -> str | None:
    """A list of the run's programs; the one chosen, or None where there is no other."""
    names = list(dict.fromkeys(result.programs["name"].astype(str).head(50)))
    if len(names) < 2:
        return None
    return control(_OPTIONS["program"], names[0], texts={name: name for name in names}, width=320)
