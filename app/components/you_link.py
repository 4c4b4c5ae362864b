"""Who is signed in: at the right of the top bar of every page, to the page about them."""

import html

import streamlit as st

from app.identity.asking import who
from app.pages.you import YOU

SHOWN = 24  # characters of a name
STYLE = """<style>
[data-testid="stToolbar"] { padding-right: 15rem; }
[data-testid="stElementContainer"]:has(.cl-you) { position: absolute; }
.cl-you { position: fixed; top: 1.1rem; right: 4.25rem; z-index: 999991; font-size: 0.875rem; line-height: 1.6; }
.cl-you a { color: inherit; text-decoration: none; }
.cl-you a:hover, .cl-you a:focus-visible { text-decoration: underline; }
</style>"""


def you_link() -> None:
    """The link; nothing where nobody is asked who they are."""
    asks = who()
    if asks.how in ("open", "server") or not asks.name:
        return
    name = asks.name if len(asks.name) <= SHOWN else f"{asks.name[: SHOWN - 1]}…"
    says = html.escape(f"{asks.name}, {asks.role.word}")
    link = f'<a href="/{YOU.path}" target="_self" title="{says}">{html.escape(name)}</a>'
    st.html(f'{STYLE}<div class="cl-you">{link}</div>')
