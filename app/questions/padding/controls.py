"""The choices of the padding page: whose products, which matrix unit, and the dimensions to try. All in the address."""

from typing import Any

import streamlit as st

from analyzers.flops.model_changes import changed
from analyzers.flops.padding import OPTIONS, PaddingResult
from analyzers.subject import model_of
from app.components.current import choose
from app.components.model_picker import About
from app.components.option import UNSET, by_name, control
from app.questions.asking import ask
from app.questions.padding import PADDING
from catalog.chips import chips
from catalog.matmuls import valid_tp
from catalog.models import Model, model
from errors import QuestionError

SOURCES = {"program": "Its programs", "model": "Model's dimensions"}
SEQS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 1 << 20)
HEAD_DIMS = (32, 64, 80, 96, 128, 160, 192, 256, 512)
TPS = (1, 2, 4, 8, 16, 32, 64)
TRIED = ("seq", "tp", "head_dim", "d_ff", "d_model", "vocab")
BLOCKS = ("64", "128", "256", "512")
_OPTIONS = by_name(OPTIONS)


def controls(about: About) -> dict[str, Any]:
    """Draws them; returns the options that differ from what would be asked anyway.

    Raises QuestionError where neither programs nor a model are known.
    """
    known = _model(about)
    programs = about.run and not about.model and about.run.manifest.tables.get("matmuls")
    sources = [s for s, there in (("program", programs), ("model", known)) if there]
    top = st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom")
    given: dict[str, Any] = {"model": about.model} if about.run and about.model else {}
    with top:
        if len(sources) > 1:
            texts = {s: SOURCES[s] for s in sources}
            given["source"] = control(_OPTIONS["source"], sources[0], texts=texts, buttons=True)
        elif sources:
            given["source"] = sources[0]
        if not about.run:
            texts = {name: name for name in chips()}
            chip = control(_OPTIONS["chip"], texts=texts, unset="No chip named", width=240)
            given |= {"chip": chip} if chip else {}
    base = ask(PADDING, about.subject, given, about.place.registry)
    units = {"128": "MXU 128", "256": "MXU 256"} | ({} if base.unit.side else {UNSET: "GPU tiles"})
    own = str(base.unit.side) if base.unit.side else None
    with top:
        unit = control(_OPTIONS["mxu"], own, texts=units, buttons=True)
    given |= {} if unit == own else {"mxu": unit}
    if base.source == "model" and known:
        given |= _tried(base, known)
    with top:
        given |= _software(base)
    return given


def _software(base: PaddingResult) -> dict[str, Any]:
    """Padding that software adds: blocks of expert tokens, compiled lengths of a server."""
    given = {}
    with st.popover("Blocks and buckets", icon=":material/view_column:"):
        if base.source == "model" and (base.rows["name"] == "moe_up").any():
            texts = {b: f"{b} tokens" for b in BLOCKS}
            block = control(_OPTIONS["group_block"], texts=texts, unset="Not rounded up")
            given |= {"group_block": block} if block else {}
        text = control(_OPTIONS["buckets"], empty="128, 256, 512")
        given |= {"buckets": text} if text else {}
    return given


def _tried(base: PaddingResult, known: Model) -> dict[str, int]:
    """The dimensions put in place of the model's own."""
    own = base.choices
    columns = st.columns([1, 1, 1, 1, 1, 1, 0.8], vertical_alignment="bottom")
    found: dict[str, int] = {}
    lists = {
        "seq": sorted({*SEQS, own["seq"]}),
        "tp": [t for t in sorted({*TPS, own["tp"]}) if valid_tp(known, t)],
        "head_dim": [h for h in sorted({*HEAD_DIMS, own["head_dim"]}) if _fits(known, h)],
    }
    for column, (name, values) in zip(columns, lists.items(), strict=False):
        texts = {str(v): f"{v:,} (own)" if name == "head_dim" and v == own[name] else f"{v:,}" for v in values}
        with column:
            found[name] = control(_OPTIONS[name], own[name], texts=texts)
    for column, name in zip(columns[3:6], ("d_ff", "d_model", "vocab"), strict=True):
        with column:
            found[name] = control(_OPTIONS[name], own[name], step=64, always=True)
    different = {n: v for n, v in found.items() if v != own[n]}
    with columns[6]:
        st.button("Reset", icon=":material/restart_alt:", disabled=not different, on_click=_reset, width="stretch")
    return different


def _reset() -> None:
    for name in TRIED:
        choose(name, "")


def _fits(known: Model, head_dim: int) -> bool:
    try:
        changed(known, {"head_dim": head_dim})
    except QuestionError:
        return False
    return True


def _model(about: About) -> Model | None:
    """The model where one is known that can be; what is wrong with one that cannot is said by the answer."""
    facts = about.run.manifest.facts if about.run else about.subject.facts
    try:
        return model(about.model) if about.model else model_of(facts)
    except QuestionError:
        return None
