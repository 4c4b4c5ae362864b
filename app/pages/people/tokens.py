"""API tokens: made, told once, revoked."""

import time

import streamlit as st

from app.components.columns import draw_table
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import verdict
from app.identity import tokens as kept
from app.identity.base import Role
from app.identity.may import changing
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.token_book import Token

ROLES = tuple(role.word for role in (Role.VIEWER, Role.UPLOADER, Role.ADMIN))
LASTS = {"30 days": 30.0, "90 days": 90.0, "a year": 365.0, "does not expire": None}
VALID = "valid"


@changing("create a token", Role.ADMIN)
def create(name: str, place: Workspace, role: Role, days: float | None, groups: tuple[str, ...]) -> str:
    """What the token is: told to whoever made it, and never again."""
    return kept.create(place, name, role, days=days, groups=groups)[1]


@changing("revoke a token", Role.ADMIN)
def revoke(token_id: str, place: Workspace) -> Token:
    return kept.revoke(place, token_id)


def tokens(place: Workspace) -> None:
    """Those that there are, and a form for one more."""
    there, now_ns = kept.listed(place), time.time_ns()
    valid = [token for token in there if token.state_at(now_ns) == VALID]
    many = fmt.count(len(valid), "token") if valid else "No token"
    verdict(f"{many} can be used to ask this server.")
    st.markdown("**A new token**, for a program that asks: `Authorization: Bearer TOKEN`.")
    _new(place)
    if not there:
        return
    st.markdown("**All tokens**, the newest first. What a token is stands nowhere.")
    draw_table([_row(token, now_ns) for token in there], hide_index=True)
    if valid:
        _revoking(place, valid)


def _new(place: Workspace) -> None:
    with st.form("new token", border=False):
        left, middle, right = st.columns([3, 2, 2], vertical_alignment="bottom")
        name = left.text_input("Name", placeholder="ci", max_chars=100)
        role = middle.selectbox("Role", ROLES, index=ROLES.index(Role.UPLOADER.word))
        lasts = right.selectbox("How long", list(LASTS), index=1)
        groups = st.multiselect(
            "Groups whose runs it sees", place.shares.known(), accept_new_options=True, placeholder="None"
        )
        if not st.form_submit_button("Make it", type="primary", icon=":material/key:"):
            return
    try:
        text = create(name, place, Role[str(role).upper()], LASTS[str(lasts)], tuple(groups))
    except ChipledgerError as e:
        notice(e, library=False)
        return
    st.success("Keep it now: it is shown this once.", icon=":material/key:")
    st.code(text, language=None)


def _revoking(place: Workspace, valid: list[Token]) -> None:
    names = {token.token_id: f"{token.name} ({token.token_id})" for token in valid}
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    chosen = left.selectbox("Revoke", list(names), index=None, format_func=names.__getitem__, key="revoke token")
    if right.button("Revoke it", disabled=chosen is None, icon=":material/block:") and chosen:
        try:
            gone = revoke(chosen, place)
        except ChipledgerError as e:
            notice(e, library=False)
            return
        st.toast(f"{md(gone.name)} is good for nothing any more.")
        st.rerun()


def _row(token: Token, now_ns: int) -> dict[str, str]:
    return {
        "name": token.name,
        "id": token.token_id,
        "state": token.state_at(now_ns),
        "role": token.role,
        "groups": ", ".join(token.groups),
        "made by": token.made_by,
        "made": fmt.date(token.made_ns),
        "until": fmt.date(token.ends_ns) if token.ends_ns is not None else "does not expire",
        "last used": fmt.date(token.used_ns) if token.used_ns is not None else "never",
    }
