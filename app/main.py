"""The dashboard: its pages, in the order of the menu."""

import streamlit as st

from app.components.brand import ICON, LOGO
from app.pages.all import every_page
from app.serve.settled import settle


def main() -> None:
    st.set_page_config(page_title="Chipledger", page_icon=ICON, layout="wide")
    st.logo(LOGO, size="large")
    pages = [
        st.Page(
            page.file,
            title=page.title,
            icon=page.icon,
            help=page.asks,
            url_path=page.path,
            default=number == 0,
            visibility="visible" if page.in_menu else "hidden",
        )
        for number, page in enumerate(every_page())
    ]
    st.navigation(pages, position="top").run()
    settle()


main()
