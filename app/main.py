"""The dashboard: its pages, in the order of the menu."""

import streamlit as st

from app.components.brand import ICON, LOGO
from app.components.header import RUN_PAGES

PAGES: tuple[tuple[str, str, str, str], ...] = (  # file, title, icon, what it is for
    ("pages/library.py", "Runs", ":material/folder_open:", "Every run in this store; search, tag, add."),
    ("pages/ledger.py", "Ledger", ":material/account_tree:", "Where did every chip-second of a run go?"),
    ("pages/steps.py", "Steps", ":material/show_chart:", "How long did each step take, and which were kept?"),
    ("pages/definitions.py", "Definitions", ":material/menu_book:", "What each account and each mark means."),
)


def main() -> None:
    st.set_page_config(page_title="Chipledger", page_icon=ICON, layout="wide")
    st.logo(LOGO, size="large")
    pages = [
        st.Page(file, title=title, icon=icon, help=help, default=number == 0,
                visibility="hidden" if file in RUN_PAGES else "visible")  # fmt: skip
        for number, (file, title, icon, help) in enumerate(PAGES)
    ]
    st.navigation(pages, position="top").run()


main()
