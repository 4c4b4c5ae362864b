"""Padding: how much of the matrix unit's work is done on nothing, and which dimension would pay most."""

import streamlit as st

from analyzers.flops.padding import PaddingResult
from app import format as fmt
from app.components.chart import chart
from app.components.figures_row import Figure, figures_row
from app.components.model_picker import About, explained, model_or_run
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import verdict
from app.questions.asking import ask
from app.questions.padding import PADDING
from app.questions.padding.controls import controls
from app.questions.padding.evidence import evidence
from app.questions.padding.figure import bands, gains, heat, shares
from app.questions.padding.words import band, software, unit_words
from app.questions.padding.words import verdict as padding_verdict
from errors import ChipledgerError, QuestionError


def page() -> None:
    view(model_or_run())


@st.fragment
def view(about: About) -> None:
    """Everything below the head: a choice draws it again and leaves the head alone."""
    top = st.container()
    try:
        given = controls(about)
        with st.spinner("Figuring the padding"):
            result = ask(PADDING, about.subject, given, about.place.registry)
    except QuestionError as e:
        st.info(md(e), icon=":material/info:")
        explained(about, PADDING.terms, (), ("captures",))
        return
    except ChipledgerError as e:
        notice(e)
        explained(about, PADDING.terms, (), ("captures",))
        return
    with top:
        verdict(padding_verdict(result))
        figures_row(figures(result))
    name = f"{about.name}-padding"
    st.markdown(
        "**Where the matrix unit's FLOPs go.** Width is a product's part of them, height the part that is "
        "useful; hatched: lost only if the product runs as printed."
    )
    picture = shares(result)
    chart(picture, f"shares {name}", name, padding_verdict(result))
    left, right = st.columns(2)
    with left:
        ends = "from best case to as printed" if result.unit.side else "with the best and the worst tile"
        st.markdown(f"**The tax, {ends}.**")
        chart(bands(compared(about, given, result)), f"bands {name}", f"{name}-tax", "The tax and its band.")
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
    evidence(about, result, given, name, picture)
    explained(about, PADDING.terms, result.notes, ("captures",))


def figures(result: PaddingResult) -> list[Figure]:
    """Tax, efficiency, the products that lose, time in products, and memory."""
    wasteful = float(result.rows.loc[result.rows["efficiency"] < 0.9, "share"].sum())
    shown = [
        Figure(
            "Padding tax",
            band(result.tax_optimistic, result.tax),
            PADDING.meaning("Padding tax") + f" From B, at best, to A, as printed, on {unit_words(result.unit)}.",
            result.basis,
        ),
        Figure(
            "Useful part",
            band(result.efficiency, result.efficiency_optimistic),
            PADDING.meaning("Matmul efficiency"),
            result.basis,
        ),
        Figure(
            "FLOPs in wasteful products",
            fmt.share(wasteful),
            "Part of the useful FLOPs in products of which A leaves less than 90 % of the unit.",
            result.basis,
        ),
    ]
    if result.time_share is not None:
        shown.append(
            Figure(
                "Time in products",
                fmt.share(result.time_share),
                "Part of the device operations' own time in matrix products and the fusions around them.",
                "derived",
            )
        )
    if result.hbm:
        shown.append(
            Figure(
                "HBM padding",
                fmt.share(result.hbm.tax),
                f"{PADDING.meaning('HBM padding')} Counted: {result.hbm.counted}.",
                "derived",
            )
        )
    elif result.tiles and result.tiles[0].wave_efficiency is not None:
        low, high = (f(t.wave_efficiency for t in result.tiles) for f in (min, max))
        shown.append(
            Figure(
                "Whole waves",
                band(low, high),
                "Tiles / (waves x multiprocessors): what of the last wave of tiles works, over the tile sizes.",
                result.basis,
            )
        )
    return shown


def unit_kindly(result: PaddingResult) -> str:
    return result.unit.kindly if result.unit.side else "depending on the tile"


def compared(about: About, given: dict, result: PaddingResult) -> list[tuple[str, float, float]]:
    """The tax as asked, before what-ifs, and on the other matrix unit."""
    what = ", changed" if result.before else ""
    entries = [(f"{unit_name(result)}{what}", result.tax_optimistic, result.tax)]
    if result.before:
        entries.append((f"{unit_name(result)}, own dimensions", result.before[1], result.before[0]))
    for side in (128, 256):
        if side != result.unit.side:
            other = ask(PADDING, about.subject, {**given, "mxu": str(side)}, about.place.registry)
            entries.append((f"{unit_name(other)}{what}", other.tax_optimistic, other.tax))
    return entries


def unit_name(result: PaddingResult) -> str:
    return f"MXU {result.unit.side}" if result.unit.side else "GPU tiles"


if __name__ == "__main__":
    page()
