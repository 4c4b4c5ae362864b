"""The choices of the speculation page: acceptance, draft length, its cost, chip, context. All in the address."""

from typing import Any

import streamlit as st

from analyzers.serving.speculation import OPTIONS
from analyzers.subject import chip_of, model_of
from app.components.model_picker import About
from app.components.option import by_name, control
from catalog.chips import chips
from errors import QuestionError

ACCEPTANCES = tuple(f"{i / 20:g}" for i in range(2, 20)) + ("0.98",)
COSTS = ("0", "0.01", "0.02", "0.05", "0.1", "0.15", "0.2", "0.3", "0.5")
CONTEXTS = (0, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
CHIP, ACCEPTANCE, DRAFT, COST, CONTEXT = "TPU v6e", 0.8, 5, 0.05, 2048
MOST_DRAFT = 1000
_OPTIONS = by_name(OPTIONS)


def controls(about: About) -> dict[str, Any]:
    """Draws them; returns the options that differ from what the run itself tells."""
    run = about.run is not None
    given: dict[str, Any] = {"model": about.model} if run and about.model else {}
    columns = st.columns(5, vertical_alignment="bottom")
    with columns[0]:
        own = "As measured" if run else None
        texts = {a: a for a in ACCEPTANCES}
        given["acceptance"] = control(_OPTIONS["acceptance"], None if run else ACCEPTANCE, texts=texts, unset=own)
    with columns[1]:
        lengths = {str(k): f"{k}" for k in range(1, 17)} if run else None
        draft = control(_OPTIONS["draft"], None if run else DRAFT, texts=lengths, unset="As it is", step=1, always=True)
        given["draft"] = None if draft is None else min(draft, MOST_DRAFT)
    with columns[2]:
        texts = {c: f"{c} of a step" for c in COSTS}
        own = "As the run tells" if run else None
        given["cost"] = control(_OPTIONS["cost"], None if run else COST, texts=texts, unset=own)
    with columns[3]:
        own = (_known_chip(about) or "No chip named") if run else None
        given["chip"] = control(_OPTIONS["chip"], None if run else CHIP, texts={c: c for c in chips()}, unset=own)
    with columns[4]:
        own = "As the run's requests" if run else None
        texts = {str(c): f"{c:,} tokens" for c in CONTEXTS}
        given["context"] = control(
            _OPTIONS["context"], None if run else CONTEXT, texts=texts, unset=own, label=_OPTIONS["context"].label
        )
    return {name: value for name, value in given.items() if value is not None}


def _known_chip(about: About) -> str | None:
    chip = chip_of(about.run.manifest.facts) if about.run else None
    return chip.name if chip else None


def model_known(about: About) -> bool:
    """Whether the subject's model is known, so that a batch can be told."""
    if about.run is None or about.model:
        return True
    try:
        return model_of(about.run.manifest.facts) is not None
    except QuestionError:
        return False
