"""Models: what the catalogue knows of each, and which of them fit a matrix unit badly."""

from urllib.parse import quote

import pandas as pd
import streamlit as st

from analyzers.flops.padding import PaddingResult
from app.components.actions import copy_link
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import open_workspace, switch
from app.components.downloads import downloads
from app.components.verdict import verdict
from app.figures.base import standalone
from app.pages.models.figure import taxes
from app.questions.asking import ModelSubject, ask
from app.questions.padding import PADDING
from app.workspace import Workspace
from catalog.flops import flops_per_token
from catalog.models import models, parameters
from errors import format as fmt

SIDES = {"256": "MXU 256 (v6e, 7x)", "128": "MXU 128 (v2 to v5p)"}
SEQ = 8192  # tokens; what the field compares at
LITTLE = 0.01  # a tax below it is not worth a change


def page() -> None:
    place = open_workspace()
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Models", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    head = st.container()
    side = switch("Matrix unit", "mxu", SIDES, "256")
    with st.spinner("Counting matrix products"):
        found = {name: padding(name, side, place) for name in models()}
    rows = table(found)
    said = sentence(found, side)
    with head:
        verdict(said)
    st.markdown(
        "**How much work padding adds**, from the best choice of operands to products as printed: forward, "
        f"{SEQ:,} tokens, one device."
    )
    figure = taxes({name: (r.tax_optimistic, r.tax) for name, r in found.items()})
    chart(figure, f"taxes {side}", f"padding-mxu{side}", said)
    links(rows)
    downloads(rows, "models", "/api/catalog/models", lambda: standalone(figure, f"Padding, MXU {side}", "models"))


def padding(name: str, side: str, place: Workspace) -> PaddingResult:
    return ask(PADDING, ModelSubject(name, name), {"seq": str(SEQ), "mxu": side}, place.registry)


def sentence(found: dict[str, PaddingResult], side: str) -> str:
    """Which model pads most, and how many hardly pad."""
    worst = max(found, key=lambda name: found[name].tax)
    little = sum(r.tax < LITTLE for r in found.values())
    most = found[worst]
    return (
        f"On a matrix unit of {side} x {side}, {worst} pads most: {fmt.share(most.tax_optimistic)} to "
        f"{fmt.share(most.tax)} more work. {little} of {len(found)} models pad less than 1 %."
    )


def table(found: dict[str, PaddingResult]) -> pd.DataFrame:
    """One row per model: sizes, FLOPs of a token by the exact causal count, and the tax."""
    rows = []
    for name, model in models().items():
        counts = parameters(model)
        rows.append(
            {
                "model": name,
                "parameters": counts.total,
                "active_parameters": counts.active_matmul,
                "layers": model.layers,
                "d_model": model.d_model,
                "heads": model.attention[0].heads,
                "head_dim": model.attention[0].head_dim,
                "vocab": model.vocab,
                "flops_per_token": flops_per_token(model, SEQ).total,
                "tax_optimistic": found[name].tax_optimistic,
                "tax": found[name].tax,
            }
        )
    return pd.DataFrame(rows)


def links(rows: pd.DataFrame) -> None:
    """The table, each model with the way to its pages."""
    shown = pd.DataFrame(
        {
            "Model": rows["model"],
            "Parameters (billion)": rows["parameters"] / 1e9,
            "Met by a token (billion)": rows["active_parameters"] / 1e9,
            "Layers": rows["layers"],
            "d_model": rows["d_model"],
            "Heads": rows["heads"],
            "head_dim": rows["head_dim"],
            "GFLOPs per token": rows["flops_per_token"] / 1e9,
            "Padding": [f"/padding?model={quote(n)}" for n in rows["model"]],
            "Memory": [f"/memory?model={quote(n)}" for n in rows["model"]],
            "Compile": [f"/compile?model={quote(n)}" for n in rows["model"]],
        }
    )
    number = st.column_config.NumberColumn
    draw_table(
        shown,
        hide_index=True,
        height=min(35 * (len(shown) + 1) + 3, 760),
        columns={
            "Parameters (billion)": number(format="%.3g", help="Matrices and embeddings."),
            "Met by a token (billion)": number(format="%.3g", help="Weights that one token is multiplied with."),
            "GFLOPs per token": number(
                format="%.3g", help=f"Forward and backward, exact causal count, sequences of {SEQ:,} tokens."
            ),
            **{
                name: st.column_config.LinkColumn(display_text="open", width="small")
                for name in ("Padding", "Memory", "Compile")
            },
        },
    )


if __name__ == "__main__":
    page()
