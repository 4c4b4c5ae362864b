"""A claim worked through: 15 % more goodput from elastic training on 49,152 chips. Under which assumptions does it
hold?"""

import streamlit as st

from app.components.chart import chart
from app.components.text import md
from app.pages.goodput_planner import GOODPUT_PLANNER
from app.pages.goodput_planner.figure import when_elastic_pays
from app.pages.goodput_planner.form import CLAIM
from app.whatif.goodput import claim_words
from app.whatif.goodput.answers import GoodputPlan
from app.whatif.goodput.curves import over_failures


def claimed(made: GoodputPlan) -> None:
    """For an elastic job the map of its gain, with the lines of the claim; else the way to the scenario."""
    st.markdown(f"**When does elastic training pay?** {md(claim_words.INTRODUCED)}")
    if made.whole is not None:
        said = claim_words.held(made)
        st.markdown(md(said))
        chart(when_elastic_pays(made, over_failures(made)), "elastic", "elastic-gain", said)
        st.caption(md(claim_words.ASSUMED))
    st.page_link(
        GOODPUT_PLANNER.file, label="The claim with its assumptions", icon=":material/quiz:", query_params=dict(CLAIM)
    )
