"""Scaling: how well a job grows with its chips, what is lost to what, and how far its curve may be trusted."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components.actions import copy_link
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import open_workspace
from app.components.downloads import downloads
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.option import by_name, field, in_address
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.pages.scaling import SCALING_PAGE
from app.pages.scaling.figure import efficiency
from app.pages.several import SEVERAL
from app.whatif.scaling.answers import ScalingAnswer, find
from app.whatif.scaling.asked import OPTIONS, Asked
from app.whatif.scaling.wording import prediction
from app.whatif.scaling.wording import verdict as said
from errors import QuestionError
from errors import format as fmt
from simulators.training.terms import SCALING_TERMS

NAME = "scaling"
EXAMPLE = {  # MLPerf Training v5.0, Llama 3.1 405B on H100
    "points": "512:13841:276480,2048:3801:291840,2432:3628:323456,2560:3020:282240,8192:1179:322560",
    "at": "16384",
}
MISLED = {  # MaxText 32B on TPU v5e-256, its documentation: MFU of 66.86 % on one slice to 60.40 % on 32, as times
    "points": "256:1,512:1.0316,1024:1.0431,2048:1.0501,4096:1.0739,8192:1.1070",
    "kind": "weak",
    "at": "16384,50944",
}
_OPTIONS = by_name(OPTIONS)


def page() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Scaling", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption(
        "Times at several numbers of chips in; what is left of the ideal out, and how far that may be carried on."
    )
    if not (st.query_params.get("points") or st.query_params.get("runs")):
        st.query_params.update(EXAMPLE)
    if dict(st.query_params) == EXAMPLE:
        st.caption("An example: published times of Llama 3.1 405B on H100 (MLPerf Training v5.0).")
    if dict(st.query_params) == MISLED:
        st.caption(
            "A case in which a curve misleads: MaxText 32B on TPU v5e, from its published MFU on 1 to 32 slices. On "
            "199 slices two thirds of the ideal was reported, far below any curve through these points: it is not told."
        )
    try:
        asked = Asked(**in_address(OPTIONS))
        result = find(asked, open_workspace())
    except QuestionError as e:
        notice(e, library=False)
        form()
        return
    verdict(said(result))
    show(result, asked)
    form()
    if asked.runs:
        named = {"runs": asked.runs}
        st.page_link(SEVERAL.file, label="These runs beside one another", icon=SEVERAL.icon, query_params=named)
    st.page_link(
        SCALING_PAGE.file, label="A case in which a curve misleads", icon=":material/quiz:", query_params=dict(MISLED)
    )
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown("\n".join(f"- {md(note)}" for note in result.notes))
        terms_list(SCALING_TERMS)


def show(result: ScalingAnswer, asked: Asked) -> None:
    """The picture, what the curve says, and the points."""
    fit = "" if result.curve is None else f"The curve misses a point by at most {fmt.share(result.curve.worst)}."
    st.markdown(f"**What is left of the ideal?** Dots were measured; the band is where the curve may run. {md(fit)}")
    figure = efficiency(result)
    chart(figure, "efficiency", NAME, said(result))
    for line in (*map(prediction, result.predicted), *result.refused):
        if line not in said(result):
            st.markdown(md(line))
    rows = pd.DataFrame(result.to_dict()["rows"])
    with st.expander(f"Evidence: {fmt.count(len(rows), 'point')}", icon=":material/table:"):
        draw_table(rows.dropna(axis="columns", how="all"))
        entered = {n: v for n, v in vars(asked).items() if v is not None}
        downloads(rows, NAME, f"/api/whatif/scaling?{urlencode(entered)}", lambda: standalone(figure, "Scaling", NAME))


def form() -> None:
    """The points and what to reckon; sent, it writes everything into the address."""
    now = st.query_params
    with st.form("scaling", border=True):
        entered = {"points": field(_OPTIONS["points"], now.get("points"), lines=True)}
        for name, column in zip(("runs", "kind", "at"), st.columns([2, 1, 1]), strict=True):
            with column:
                entered[name] = field(_OPTIONS[name], now.get(name))
        if not st.form_submit_button("Hold them side by side", type="primary", icon=":material/calculate:"):
            return
    st.query_params.from_dict({n: v.strip() for n, v in entered.items() if v.strip()})
    st.rerun()


if __name__ == "__main__":
    page()
