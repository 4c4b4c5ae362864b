"""Docs: at the right of the top bar of every page, to what the docs say of that page. Before it, where somebody signed
in, the way out."""

import html

import streamlit as st

from app.identity.asking import who
from app.manual import address
from app.menu import Page

STYLE = """<style>
[data-testid="stToolbar"] { padding-right: ROOM; }
[data-testid="stElementContainer"]:has(.cl-docs) { position: absolute; }
.cl-docs { position: fixed; top: 1.1rem; right: 1.25rem; z-index: 999991; font-size: 0.875rem; line-height: 1.6; }
.cl-docs a { color: inherit; text-decoration: none; }
.cl-docs .cl-out { margin-right: 1rem; }
.cl-docs a:hover, .cl-docs a:focus-visible { text-decoration: underline; }
</style>"""


def docs_link(page: Page) -> None:
    """The links; they take no room on the page."""
    out, room = _sign_out(), "9rem" if who().how == "oidc" else "4rem"
    link = f'<a href="{html.escape(address(page))}" target="_self">Docs</a>'
    st.html(f'{STYLE.replace("ROOM", room)}<div class="cl-docs">{out}{link}</div>')


def _sign_out() -> str:
    """Of whoever signed in here: elsewhere there is nothing to leave."""
    asks = who()
    if asks.how != "oidc":
        return ""
    said = html.escape(f"{asks.name}, {asks.role.word}")
    return f'<a class="cl-out" href="/logout" target="_self" title="{said}">Sign out</a>'
