"""The choices of the speculation page: acceptance, draft length, its cost, chip, context. All in the address."""

from typing import Any

import streamlit as st

from analyzers.subject import chip_of, model_of
from app.components.model_picker import About, enter, pick
from catalog.chips import chips
from errors import QuestionError

ACCEPTANCES = tuple(f"{i / 20:g}" for i in range(2, 20)) + ("0.98",)
COSTS = ("0", "0.01", "0.02", "0.05", "0.1", "0.15", "0.2", "0.3", "0.5")
CONTEXTS = (0, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
CHIP, ACCEPTANCE, DRAFT, COST = "TPU v6e", "0.8", 5, "0.05"
OWN = "own"


def controls(about: About) -> dict[str, Any]:
    """Draws them; returns the options that differ from what the run itself tells."""
    run = about.run is not None
    given: dict[str, Any] = {"model": about.model} if run and about.model else {}
    columns = st.columns(5, vertical_alignment="bottom")
    with columns[0]:
        own = {OWN: "As measured"} if run else {}
        now = pick("Chance of acceptance", "acceptance", own | {a: a for a in ACCEPTANCES}, OWN if run else ACCEPTANCE)
        given |= {} if now == OWN else {"acceptance": float(now)}
    with columns[1]:
        lengths = {OWN: "As it is"} | {str(k): f"{k}" for k in range(1, 17)}
        now = pick("Draft tokens", "draft", lengths, OWN) if run else str(enter("Draft tokens", "draft", DRAFT, 1))
        given |= {} if now == OWN else {"draft": min(int(now), 1000)}
    with columns[2]:
        own = {OWN: "As the run tells"} if run else {}
        now = pick("Cost of a draft step", "cost", own | {c: f"{c} of a step" for c in COSTS}, OWN if run else COST)
        given |= {} if now == OWN else {"cost": float(now)}
    with columns[3]:
        known = _known_chip(about)
        own = {OWN: known or "No chip named"} if run else {}
        now = pick("Chip", "chip", own | {c: c for c in chips()}, OWN if run else CHIP)
        given |= {} if now == OWN else {"chip": now}
    with columns[4]:
        own = {OWN: "As the run's requests"} if run else {}
        texts = own | {str(c): f"{c:,} tokens" for c in CONTEXTS}
        now = pick("Context", "context", texts, OWN if run else "2048")
        given |= {} if now == OWN else {"context": int(now)}
    return given


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
