"""People and tokens, for admins: API tokens, who did something lately, the audit log, and the groups of runs."""

import streamlit as st

from app.components.columns import draw_table
from app.components.current import chosen, open_workspace, switch
from app.components.notice import notice
from app.components.verdict import verdict
from app.identity.asking import who
from app.identity.base import Role
from app.pages.people.log import audit_log, people_lately
from app.pages.people.tokens import tokens
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.live import PREFIX

OPEN = "Nobody is asked who they are here: there are no people, and tokens open nothing."
SHOW, FIRST = "show", "tokens"
PARTS = {FIRST: "Tokens", "people": "People lately", "audit": "Audit log", "groups": "Groups of runs"}


def page() -> None:
    st.set_page_config(page_title="People and tokens · Chipledger")
    st.subheader("People and tokens", anchor=False)
    asks, place = who(), open_workspace()
    if asks.how in ("open", "server"):
        verdict(OPEN)
        st.markdown("`chipledger serve --identity FILE` has people sign in: the docs say how, under For a team.")
        return
    if asks.role is not Role.ADMIN:
        st.info("This page is for admins.", icon=":material/info:")
        return
    drawn = {FIRST: tokens, "people": people_lately, "audit": audit_log, "groups": groups_of_runs}
    switch("Show", SHOW, PARTS, FIRST)
    try:
        drawn[chosen(SHOW, tuple(PARTS), FIRST)](place)
    except ChipledgerError as e:
        notice(e, library=False)


def groups_of_runs(place: Workspace) -> None:
    """How many runs each group has; a run of several counts with each."""
    shared = place.shares.all()
    counts: dict[str, int] = {}
    for run_id, groups in shared.items():
        for group in groups if place.store.kept(run_id) or run_id.startswith(PREFIX) else ():
            counts[group] = counts.get(group, 0) + 1
    if not counts:
        verdict("No run belongs to a group: all who are signed in see all runs.")
        return
    verdict(f"Runs belong to {fmt.count(len(counts), 'group')}; all who are signed in see the others.")
    st.markdown("**Runs of each group**; one that belongs to several counts with each, and a live run once.")
    draw_table([{"group": group, "runs": runs} for group, runs in sorted(counts.items())], hide_index=True)
    st.caption("Choose Who sees it in the library's menu of a run, or `chipledger share RUN --group GROUP`.")


if __name__ == "__main__":
    page()
