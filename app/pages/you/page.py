"""You: name, role, groups, for whom you usually add runs, and the way out."""

import streamlit as st

from app import sharing
from app.components.current import open_workspace
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import verdict
from app.identity.asking import who
from app.identity.base import Identity, Role
from app.pages.people import PEOPLE
from app.workspace import Workspace
from errors import ChipledgerError

OPEN = "Nobody is asked who they are here: whoever reaches this server may do everything."
KNOWN_BY = {
    "oidc": "You signed in with your organisation's account.",
    "proxy": "The proxy before this server says who you are.",
    "token": "You ask with an API token.",
}
MAY = {
    Role.NOBODY: "You may see nothing here.",
    Role.VIEWER: "You may look at runs, compare them and ask.",
    Role.UPLOADER: "You may look at runs, add them, and change what is said of them.",
    Role.ADMIN: "You may do everything, see the runs of every group, and let others in.",
}


def page() -> None:
    st.set_page_config(page_title="You · Chipledger")
    st.subheader("You", anchor=False)
    asks, place = who(), open_workspace()
    if asks.how in ("open", "server"):
        verdict(OPEN)
        st.markdown("`chipledger serve --identity FILE` has people sign in: the docs say how, under For a team.")
        return
    article = "an" if asks.role in (Role.UPLOADER, Role.ADMIN) else "a"
    verdict(f"You are {md(asks.name)}, {article} {asks.role.word}.")
    st.markdown(f"{MAY[asks.role]} {KNOWN_BY.get(asks.how, '')}")
    _groups(asks)
    if asks.role >= Role.UPLOADER:
        _usual(place, asks)
    with st.container(horizontal=True):
        if asks.how == "oidc":
            st.link_button("Sign out", "/logout", icon=":material/logout:")
        if asks.role is Role.ADMIN:
            st.page_link(PEOPLE.file, label=PEOPLE.title, icon=PEOPLE.icon)


def _groups(asks: Identity) -> None:
    st.markdown("**Your groups**: beside what all see, you see the runs of these.")
    if asks.groups:
        st.markdown(" ".join(f":gray-badge[{md(group)}]" for group in sorted(asks.groups)))
    else:
        st.caption("You are in none.")


def _usual(place: Workspace, asks: Identity) -> None:
    """For whom they add runs where they say nothing else."""
    now = sharing.usual_group(place)
    choices = ["", *sorted(asks.groups | ({now} if now else set()))]
    st.markdown("**Who sees the runs that you add**, where you say nothing else with an upload.")
    chosen = st.selectbox(
        "Who sees the runs that you add",
        choices,
        index=choices.index(now),
        format_func=lambda group: f"members of {group}, and admins" if group else sharing.ALL,
        key="usual group",
        label_visibility="collapsed",
        width=420,
    )
    if now and now not in asks.groups and not asks.sees_all:
        st.warning(f"You are no longer in {md(now)}: choose another before you add a run.", icon=":material/info:")
    if chosen is not None and chosen != now:
        try:
            sharing.set_usual_group(place, chosen)
        except ChipledgerError as e:
            notice(e, library=False)
            return
        st.rerun()


if __name__ == "__main__":
    page()
