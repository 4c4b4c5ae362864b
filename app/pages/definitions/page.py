"""Definitions: what each account and each mark means, from where the program itself takes them."""

import html

import streamlit as st

from app import theme
from app.components.text import md
from runs.accounts import ACCOUNTS


def page() -> None:
    st.subheader("Definitions", anchor=False)
    st.markdown(
        "A ledger enters every chip-second paid for in exactly one account. The parts of an account sum to it; none is "
        "negative; what no input tells is entered as unattributed, never left out and never spread over the others."
    )
    st.markdown("##### Accounts")
    st.html("<table style='border-collapse:collapse'>" + "".join(_row(name) for name in ACCOUNTS) + "</table>")
    st.markdown("##### How a number is known")
    st.markdown("\n".join(f"- {m.glyph} **{md(m.word)}**: {md(m.meaning)}" for m in theme.BASES.values()))


def _row(name: str) -> str:
    """One account: its colour as on every figure, title, meaning."""
    fill = theme.colour([name])
    if theme.pattern([name]) == "/":
        fill = f"repeating-linear-gradient(135deg, {fill} 0 4px, #8c8c8c 4px 5px)"
    elif theme.pattern([name]):
        fill = f"radial-gradient(circle at 3px 3px, rgba(0,0,0,0.45) 1px, transparent 1.5px) 0 0 / 6px 6px, {fill}"
    kind = ACCOUNTS[name]
    return (
        f"<tr><td style='padding:6px 12px 6px 0'><span style='display:inline-block;width:28px;height:16px;"
        f"border:1px solid {theme.GREY};border-radius:3px;background:{fill}'></span></td>"
        f"<td style='padding:6px 16px 6px 0;white-space:nowrap;vertical-align:top'>"
        f"<b>{html.escape(kind.title)}</b></td>"
        f"<td style='padding:6px 0'>{html.escape(kind.meaning)}</td></tr>"
    )


if __name__ == "__main__":
    page()
