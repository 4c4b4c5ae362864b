"""Where a page's report is taken from: one file with what the pages tell, made when it is asked for."""

import streamlit as st

HELP = "One file with the findings, the ledger, the largest losses and all definitions, which opens without a network."
OF_TWO = (
    "One file with what changed, what differs, each run by itself and all definitions, which opens without a network."
)


def report_buttons(address: str, help: str = HELP) -> None:
    """`address`: of the report over the API."""
    then = "&" if "?" in address else "?"
    with st.popover("Report", icon=":material/description:"):
        st.caption(help)
        st.link_button("Download as HTML", f"{address}{then}download=true", icon=":material/download:")
        st.link_button(
            "Download as Markdown", f"{address}{then}format=markdown&download=true", icon=":material/download:"
        )
        st.link_button("Look at it", address, icon=":material/open_in_new:")
