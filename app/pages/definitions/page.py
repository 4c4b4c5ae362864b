"""Definitions: what each account, each mark and each name means, from where the program itself takes them."""

import html
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from app import theme
from app.components.option import control
from app.components.text import md
from app.pages.definitions.glossary import Group, found, groups
from catalog.terms import Term
from errors import format as fmt
from errors.options import Option
from runs.accounts import ACCOUNTS

FIND = Option("find", str, None, "part of a name or of what it means", label="Find a name")
STYLE = Path(__file__).with_suffix(".css")


def page() -> None:
    st.html(STYLE)
    st.subheader("Definitions", anchor=False)
    st.markdown(
        "A ledger enters every chip-second paid for in exactly one account. The parts of an account sum to it; none is "
        "negative; what no input tells is entered as unattributed, never left out and never spread over the others."
    )
    wanted = control(FIND, empty="MFU, knee, goodput …") or ""
    if not wanted:
        accounts()
    terms(found(wanted, groups()), wanted)


def accounts() -> None:
    """The accounts of ledgers, and how a number is known."""
    st.markdown("##### Accounts")
    st.html(_table(ACCOUNTS))
    st.markdown("##### How a number is known")
    st.markdown("\n".join(f"- {m.glyph} **{md(m.word)}**: {md(m.meaning)}" for m in theme.BASES.values()))


def terms(shown: tuple[Group, ...], wanted: str) -> None:
    """The glossary, one group after the other: of a search what it found, each with the page that it belongs to."""
    st.markdown("##### Glossary")
    held = [name for name in ACCOUNTS if wanted and _told_by_account(name, wanted)]
    if held:
        st.html(_table(held))
    if wanted and not shown and not held:
        st.info(f"Nothing here is called or explained so: {md(wanted)}.", icon=":material/search_off:")
    for group in shown:
        head = f"{group.title}: {fmt.count(len(group.terms), 'term')}"
        with st.expander(
            md(head), icon=group.page.icon if group.page else ":material/menu_book:", expanded=_open(group, wanted)
        ):
            if group.page is not None and group.page.file:
                st.page_link(group.page.file, label=f"{group.page.title}: {group.page.asks}", icon=group.page.icon)
            elif group.page is not None:
                st.caption(f"{md(group.page.asks)} Asked on the command line and over the API.")
            st.html("<dl class='cl-terms'>" + "".join(_term(t) for t in group.terms) + "</dl>")


def _open(group: Group, wanted: str) -> bool:
    return bool(wanted) or group.page is None


def _told_by_account(name: str, wanted: str) -> bool:
    told = f"{ACCOUNTS[name].title} {ACCOUNTS[name].meaning}".casefold()
    return all(word in told for word in wanted.casefold().split())


def _term(term: Term) -> str:
    """One term: name, meaning, and below it formula, unit and source."""
    facts = [
        *([f"<code>{html.escape(term.formula)}</code>"] if term.formula else []),
        *([f"Unit: {html.escape('a share' if term.unit == '1' else term.unit)}"] if term.unit else []),
        *([f"Source: {html.escape(term.source)}"] if term.source else []),
    ]
    below = f"<div>{' · '.join(facts)}</div>" if facts else ""
    return f"<dt>{html.escape(term.name)}</dt><dd>{html.escape(term.meaning)}{below}</dd>"


def _table(names: Iterable[str]) -> str:
    return f"<table class='cl-accounts'>{''.join(map(_row, names))}</table>"


def _row(name: str) -> str:
    """One account: its colour as on every figure, title, meaning."""
    fill = theme.colour([name])
    if theme.pattern([name]) == "/":
        fill = f"repeating-linear-gradient(135deg, {fill} 0 4px, #8c8c8c 4px 5px)"
    elif theme.pattern([name]):
        fill = f"radial-gradient(circle at 3px 3px, rgba(0,0,0,0.45) 1px, transparent 1.5px) 0 0 / 6px 6px, {fill}"
    kind = ACCOUNTS[name]
    return (
        f"<tr><td><span style='background:{fill}'></span></td>"
        f"<td>{html.escape(kind.title)}</td><td>{html.escape(kind.meaning)}</td></tr>"
    )


if __name__ == "__main__":
    page()
