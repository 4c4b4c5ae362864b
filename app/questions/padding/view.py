"""The pictures of the padding page."""

import streamlit as st

from analyzers.flops.padding import PaddingResult
from app.components.chart import chart
from app.components.question_page import Told
from app.components.text import md
from app.questions.asking import ask
from app.questions.padding import PADDING
from app.questions.padding.evidence import evidence
from app.questions.padding.figure import bands, gains, heat, shares
from app.questions.padding.words import software


def pictures(told: Told[PaddingResult]) -> None:
    """Where the FLOPs go, the tax and its band, what changes would save, each dimension, and the products."""
    result, name = told.result, told.name
    st.markdown(
        "**Where the matrix unit's FLOPs go.** Width is a product's part of them, height the part that is "
        "useful; hatched: lost only if the product runs as printed."
    )
    picture = shares(result)
    chart(picture, f"shares {name}", name, told.verdict)
    left, right = st.columns(2)
    with left:
        ends = "from best case to as printed" if result.unit.side else "with the best and the worst tile"
        st.markdown(f"**The tax, {ends}.**")
        chart(bands(compared(told)), f"bands {name}", f"{name}-tax", "The tax and its band.")
    with right:
        if bars := gains(result):
            st.markdown(
                f"**What one change alone would save.** {md('Solid: in any case; hatched: ' + unit_kindly(result))}."
            )
            chart(bars, f"gains {name}", f"{name}-gains", " ".join(a.text for a in result.advice))
        else:
            st.markdown("**Nothing to change.** No single dimension would save 0.5 %.")
    st.markdown("\n".join(f"- {md(a.text)}" for a in result.advice))
    st.markdown("**Which dimension it is.** What each dimension alone leaves of the unit, and all three together.")
    chart(heat(result), f"heat {name}", f"{name}-dims", "Efficiency of each product by dimension.")
    for sentence in software(result):
        st.markdown(f"- {md(sentence)}")
    evidence(told, picture)


def unit_kindly(result: PaddingResult) -> str:
    return result.unit.kindly if result.unit.side else "depending on the tile"


def compared(told: Told[PaddingResult]) -> list[tuple[str, float, float]]:
    """The tax as asked, before what-ifs, and on the other matrix unit."""
    result = told.result
    what = ", changed" if result.before else ""
    entries = [(f"{unit_name(result)}{what}", result.tax_optimistic, result.tax)]
    if result.before:
        entries.append((f"{unit_name(result)}, own dimensions", result.before[1], result.before[0]))
    for side in (128, 256):
        if side != result.unit.side:
            other = ask(PADDING, told.about.subject, {**told.options, "mxu": str(side)}, told.place.registry)
            entries.append((f"{unit_name(other)}{what}", other.tax_optimistic, other.tax))
    return entries


def unit_name(result: PaddingResult) -> str:
    return f"MXU {result.unit.side}" if result.unit.side else "GPU tiles"
