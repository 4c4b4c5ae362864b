"""What is done with runs of the list when it is asked for: at once, with a way back, or in a dialog."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from analyzers.several.differing import LEAST, MOST
from app.components.ask_facts import WHO
from app.components.current import choose
from app.library import changes
from app.library.rows import NEWEST
from app.menu import kind_of
from app.pages.compare import COMPARE
from app.pages.library import dialogs
from app.pages.library.exporting import export
from app.pages.library.shown import chosen_sort, turned
from app.pages.several import SEVERAL
from app.questions.findings import FINDINGS
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from errors import format as fmt

ASKED = "what was asked"  # in the session, until it is done: the page may be drawn anew before the list is
TOLD = "what was done"  # in the session: what the list tells of the last thing that was done
WHOLE = "whole page"  # in the session: more than the list is to be drawn


@dataclass(frozen=True)
class Told:
    """What came of it. `back`: what undoes it, and for which runs; `wrong`: nothing was done."""

    text: str
    back: tuple[str, tuple[str, ...]] | None = None
    wrong: bool = False


def told() -> dict[str, object] | None:
    """As the table shows it."""
    said: Told | None = st.session_state.get(TOLD)
    return said and {"text": said.text, "undo": said.back is not None, "wrong": said.wrong}


def runs_of(ids: Sequence[object]) -> str:
    return fmt.count(len(ids), "run")


def at_once(place: Workspace) -> Callable[[str, list[str]], None]:
    """Does what needs no dialog, before the list is drawn anew."""

    def asked(act: str, ids: list[str]) -> None:
        st.session_state.pop(TOLD, None)
        if act in ELSEWHERE or act in DIALOGS:
            st.session_state[ASKED] = act, ids
        if act in DIALOGS:
            st.session_state[WHOLE] = True
        if act not in AT_ONCE:
            return
        try:
            said = AT_ONCE[act](place, ids)
        except ChipledgerError as e:
            said = Told(str(e), wrong=True)
        if said is not None:
            st.session_state[TOLD] = said

    def with_undo(act: str, ids: list[str]) -> None:
        before: Told | None = st.session_state.get(TOLD)
        if act == "undo" and before and before.back:
            act, ids = before.back[0], list(before.back[1])
        asked(act, ids)

    return with_undo


def _sort(place: Workspace, ids: list[str]) -> None:
    choose("sort", turned(ids[0], chosen_sort()), NEWEST)


def _star(place: Workspace, ids: list[str]) -> None:
    changes.star(place, ids)


def _unstar(place: Workspace, ids: list[str]) -> None:
    changes.star(place, ids, False)


def _archive(place: Workspace, ids: list[str]) -> Told:
    changes.archive(place, ids)
    return Told(f"Archived {runs_of(ids)}.", ("unarchive", tuple(ids)))


def _unarchive(place: Workspace, ids: list[str]) -> Told:
    changes.archive(place, ids, False)
    return Told(f"Took {runs_of(ids)} out of the archive.", ("archive", tuple(ids)))


def _delete(place: Workspace, ids: list[str]) -> Told:
    done = changes.bin_many(place, ids, who=st.session_state.get(WHO, ""))
    st.session_state[WHOLE] = True
    return Told(f"Deleted {runs_of(done)}.", ("restore", tuple(b.run_id for b in done)))


def _restore(place: Workspace, ids: list[str]) -> Told:
    done = changes.restore(place, ids)
    st.session_state[WHOLE] = True
    return Told(f"Brought back {runs_of(done)}.")


def _comparable(place: Workspace, ids: list[str]) -> None:
    """Raises QuestionError for what cannot be laid side by side."""
    if not LEAST <= len(ids) <= MOST:
        raise QuestionError(f"{runs_of(ids)} selected", expected=f"{LEAST} to {MOST} runs, laid side by side")


AT_ONCE: dict[str, Callable[[Workspace, list[str]], Told | None]] = {
    "sort": _sort,
    "compare": _comparable,
    "star": _star,
    "unstar": _unstar,
    "archive": _archive,
    "unarchive": _unarchive,
    "delete": _delete,
    "restore": _restore,
}


ELSEWHERE = ("open", "compare")
DIALOGS = ("export", *dialogs.ABOUT)


def then(place: Workspace) -> None:
    """Does what leads elsewhere, as soon as the list is drawn anew."""
    act, ids = _asked(ELSEWHERE)
    if act == "open":
        st.switch_page(FINDINGS.file, query_params={"run": ids[0]})
    elif act == "compare":
        _compare(place, ids)


def ask_more(place: Workspace, found: Callable[[], Sequence[str]]) -> None:
    """Opens the dialog that was asked for. `found`: all that the search finds, for who exports them.

    It is drawn with the whole page, before the list. Within the list, which is drawn again by itself, it would be lost
    where that comes before the browser has heard of it; and what stands in it would then be put behind nothing, which
    the browser refuses: the page would be dead.
    """
    act, ids = _asked(DIALOGS)
    if act:
        dialogs.opened()
    if act == "export":
        export(place, ids, found)
    elif act:
        dialogs.ABOUT[act](place, ids)


def _asked(acts: Sequence[str]) -> tuple[str, list[str]]:
    """What was asked for last, where it is one of these, and of which runs: told once."""
    act, ids = st.session_state.get(ASKED, ("", []))
    if act not in acts:
        return "", []
    del st.session_state[ASKED]
    return act, ids


def _compare(place: Workspace, ids: list[str]) -> None:
    """Two of a kind go to A or B, all others beside one another; of too many it was said so."""
    said: Told | None = st.session_state.get(TOLD)
    if said is not None and said.wrong:
        return
    if len(ids) == 2 and _two_alike(place, ids):
        st.switch_page(COMPARE.file, query_params={"run": ids[0], "with": ids[1]})
    st.switch_page(SEVERAL.file, query_params={"runs": ",".join(ids)})


def _two_alike(place: Workspace, ids: list[str]) -> bool:
    """Whether A or B can tell of both."""
    try:
        one, two = map(place.store.find, ids)
        return COMPARE.tells_of(one) and COMPARE.tells_of(two) and kind_of(one) == kind_of(two)
    except ChipledgerError:
        return False
