"""Docs: at the right of the top bar of every page, to what the docs say of that page."""

import html

import streamlit as st

from app.manual import address
from app.menu import Page

STYLE = """<style>
[data-testid="stToolbar"] { padding-right: 4rem; }
[data-testid="stElementContainer"]:has(.cl-docs) { position: absolute; }
.cl-docs { position: fixed; top: 1.1rem; right: 1.25rem; z-index: 999991; font-size: 0.875rem; line-height: 1.6; }
.cl-docs a { color: inherit; text-decoration: none; }
.cl-docs a:hover, .cl-docs a:focus-visible { text-decoration: underline; }
</style>"""


def docs_link(page: Page) -> None:
    """The link; it takes no room on the page."""
    st.html(f'{STYLE}<div class="cl-docs"><a href="{html.escape(address(page))}" target="_self">Docs</a></div>')
