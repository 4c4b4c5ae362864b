"""What is asked before something is done with runs: another name, tags, a group, notes, whether they go for good."""

from collections.abc import Callable
from functools import wraps

import streamlit as st

from app import sharing
from app.components.ask_facts import WHO
from app.components.held import held
from app.components.notes import notes_of
from app.components.notice import notice
from app.components.text import md
from app.identity.asking import who
from app.identity.base import Role
from app.identity.may import may
from app.library import changes
from app.library.table import table
from app.pages.library.tags import edit_tags, parse_changes
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.shelf import NAME_LENGTH

About = Callable[[Workspace, list[str]], None]
ASKING = "asking more"  # in the session, from when one is opened until it is closed, or the page is drawn anew


def asking() -> bool:
    """Whether one is open: to draw the page anew would close it, with what was typed."""
    return bool(st.session_state.get(ASKING))


def opened() -> None:
    """One is open from now on."""
    st.session_state[ASKING] = True


def closed() -> None:
    """None is open any more."""
    st.session_state.pop(ASKING, None)


def _telling(draw: About) -> About:
    """What is wrong is told in the dialog."""

    @wraps(draw)
    def within(place: Workspace, ids: list[str]) -> None:
        try:
            draw(place, ids)
        except ChipledgerError as e:
            notice(e, library=False)

    return within


@st.dialog("Rename", on_dismiss=closed)
@_telling
def rename(place: Workspace, ids: list[str]) -> None:
    run = place.store.find(ids[0])
    name, stored = run.manifest.name, run.written.name
    with st.form("rename", border=False):
        after = st.text_input("Name", name, max_chars=NAME_LENGTH, key=f"rename {ids[0]}")
        if name != stored:
            st.caption(f"It was stored as {md(stored)}; an empty name gives it that one back.")
        if st.form_submit_button("Save", type="primary", **held()):
            changes.rename(place, run.run_id, after, who=st.session_state.get(WHO, ""), was=name)
            st.rerun()


@st.dialog("Group", on_dismiss=closed)
@_telling
def group(place: Workspace, ids: list[str]) -> None:
    """The group of runs, one that there is or a new one."""
    known = table(place).groups()
    now = {row.group for row in table(place).addressed(ids)}
    at = known.index(next(iter(now))) if len(now) == 1 and now <= set(known) else None
    st.caption(f"Of {fmt.count(len(ids), 'run')}. A group is a project, or project/experiment.")
    asked = st.selectbox(
        "Group",
        known,
        index=at,
        accept_new_options=True,
        placeholder="Choose one, or type project/experiment",
        key=f"group {','.join(ids)[:200]}",
    )
    buttons = st.container(horizontal=True)
    if buttons.button("Save", type="primary", disabled=not asked or not may(Role.UPLOADER)):
        changes.move_to_group(place, ids, asked or "")
        st.rerun()
    if any(now) and buttons.button("Take out of the group", **held()):
        changes.move_to_group(place, ids, "")
        st.rerun()


@st.dialog("Who sees it", on_dismiss=closed)
@_telling
def share(place: Workspace, ids: list[str]) -> None:
    """The groups of people whose members see runs; none: all do."""
    asks, each = who(), [sharing.groups_of(place, run) for run in ids]
    now, alike = sorted({group for groups in each for group in groups}), all(groups == each[0] for groups in each)
    seen = f"seen by {md(sharing.seen_by(now))}" if alike else "not all seen by the same people"
    st.caption(f"{fmt.count(len(ids), 'run')}, {seen}. Choose none for {sharing.ALL}.")
    groups = st.multiselect(
        "Groups of people",
        sorted({*now, *asks.groups, *(place.shares.known() if asks.sees_all else ())}),
        default=now if alike else [],
        accept_new_options=asks.sees_all,
        placeholder=sharing.ALL[:1].upper() + sharing.ALL[1:],
        key=f"share {','.join(ids)[:200]}",
    )
    if not alike:
        st.caption("What you choose takes the place of what each has now.")
    if st.button("Save", type="primary", key="share save"):
        sharing.share(place, ids, groups)
        st.rerun()


@st.dialog("Tags", on_dismiss=closed)
@_telling
def tags(place: Workspace, ids: list[str]) -> None:
    """All tags of one run; of several those to set or to take away."""
    if len(ids) == 1:
        edit_tags(place.store.find(ids[0]), place.registry)
        return
    st.caption(f"Of {fmt.count(len(ids), 'run')}; all other tags stay.")
    with st.form("tag many", border=False):
        text = st.text_area("One tag a line: key=value to set it, -key to take it away", key="tag many text")
        if st.form_submit_button("Save", type="primary", **held()):
            changes.tag_many(place, ids, parse_changes(text))
            st.rerun()


@st.dialog("Notes", width="large", on_dismiss=closed)
@_telling
def note(place: Workspace, ids: list[str]) -> None:
    run = place.store.find(ids[0])
    st.markdown(f"**{md(run.manifest.name)}**")
    notes_of(run, place, "dialog")


@st.dialog("Delete for good", on_dismiss=closed)
@_telling
def gone(place: Workspace, ids: list[str]) -> None:
    st.markdown(f"{fmt.count(len(ids), 'run')} with all notes and tags will be gone. This cannot be undone.")
    if st.button("Delete for good", type="primary", key="gone for good", **held(least=Role.ADMIN)):
        changes.bin_many(place, ids, who=st.session_state.get(WHO, ""), now=True)
        st.rerun()


ABOUT: dict[str, About] = {"rename": rename, "group": group, "share": share, "tags": tags, "note": note, "gone": gone}
