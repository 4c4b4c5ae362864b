"""The list with its search: drawn again by itself, without the rest of the page."""

from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.components.current import choose, chosen
from app.components.keys import LISTED
from app.components.option import control
from app.components.text import md
from app.identity.base import Role
from app.identity.may import changing, may
from app.library.changes import InBin, binned
from app.library.rows import Library, library
from app.pages.library import shown as form
from app.pages.library.acting import WHOLE, at_once, then, told
from app.pages.library.dialogs import asking
from app.pages.library.runs_table import runs_table
from app.pages.library.searching import choose_columns, filters, saved
from app.pages.library.welcome import legend
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from errors.options import Option

SEARCH = Option(
    "q",
    str,
    None,
    "words, and fields such as chip:v5p, mfu<30, tag:prod, -tag:old, is:starred, added>=2026-10; all must hold",
    label="Search",
)
SHOWN = 50  # runs at first; more on demand
TOLD = 3  # damaged runs that are told above the list
RUNS, ARCHIVE, BIN = "", "archive", "bin"


@dataclass
class Listed:
    """What is listed: by the address, but for the bundled runs while these are hidden."""

    place: Workspace
    demo: set[str] = field(init=False)
    hidden: bool = field(init=False)

    def __post_init__(self) -> None:
        self.demo, self.hidden = self.place.demo.ids(), self.place.demo.hidden()

    @property
    def view(self) -> str:
        return chosen("view", (RUNS, ARCHIVE, BIN), RUNS)

    @property
    def in_bin(self) -> bool:
        return self.view == BIN

    def found(self, limit: int | None = -1) -> Library:
        """Raises QuestionError for a search that cannot be, InputError where the store cannot be read."""
        query = st.query_params.get("q", "").strip()
        asked = f"is:archived {query}" if self.view == ARCHIVE else query
        if limit == -1:
            st.session_state[LISTED] = asked, form.chosen_sort()
        return library(
            self.place,
            asked,
            sort=form.chosen_sort(),
            limit=st.session_state.setdefault("shown", SHOWN) if limit == -1 else limit,
        )


def listed(shown: Listed, first: list[Library], pending: bool) -> None:
    """The search and what it finds. `first`: found already, for the first drawing. `pending`: it is drawn again by
    itself until the numbers of the runs that it shows are there."""
    if st.session_state.pop(WHOLE, False):
        st.rerun()
    if shown.in_bin:
        _bin(shown)
        return
    fields = _search(shown)
    try:
        found = first.pop() if first else shown.found()
    except QuestionError as e:
        st.markdown(f":orange[:material/error: {md(e)}]")
        return
    if is_over(pending, found):
        st.rerun()
    with fields:
        filters(found.facets)
        saved(shown.place)
        choose_columns()
    _damage(found)
    _counted(shown, found)
    _table(shown, found)


def _search(shown: Listed) -> DeltaGenerator:
    """The field, kept in the address; returns the place for what stands beside it."""

    def anew(_: object) -> None:
        st.session_state["shown"] = SHOWN

    field_, beside = st.columns([5, 4], vertical_alignment="center")
    with field_:
        control(
            SEARCH,
            empty="Search: a name, or chip:v5p mfu<30 tag:prod",
            hidden=True,
            icon=":material/search:",
            key="search",
            entered=anew,
        )
    return beside.container(horizontal=True)


def _damage(found: Library) -> None:
    """What is wrong with damaged runs: a few one by one, many by their number; each row says its own."""
    problems = list(found.damaged.values())
    more = f"{len(problems):,} runs are damaged. `chipledger doctor --verify` lists what of each."
    for text in [md(p) for p in problems] if len(problems) <= TOLD else [more]:
        st.warning(text, icon=":material/info:")


def _counted(shown: Listed, found: Library) -> None:
    """How many there are, and the way to those that are elsewhere."""
    readable = found.found - sum(not row.readable for row in found.rows)
    some = found.found < found.total
    said = fmt.count(readable, "archived run" if shown.view == ARCHIVE else "run")
    said += f" of {found.total:,}" if some and shown.view != ARCHIVE else ""
    if unread := found.found - readable:
        said += f", and {unread:,} that cannot be read"
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.caption(said)
    with right.container(horizontal=True, horizontal_alignment="right"):
        elsewhere(shown, found.archived)


def is_over(pending: bool, found: Library) -> bool:
    """Whether the page is to be drawn anew, because the list need look again by itself no more, or from now on: not
    while something is asked."""
    return pending != any(row.pending for row in found.rows) and not asking()


def elsewhere(shown: Listed, archived: int = 0) -> None:
    """The way to the runs that are not listed here."""
    _views(shown, archived)
    demo_switch(shown)


def _views(shown: Listed, archived: int) -> None:
    """The way to the archive and the bin, where there is anything, and back."""
    lying = len(binned(shown.place))
    for view, label, icon, many in (
        (RUNS, "All runs", "arrow_back", 1),
        (ARCHIVE, f"Archive ({archived:,})", "archive", archived),
        (BIN, f"Bin ({lying:,})", "delete", lying),
    ):
        if many and view != shown.view and st.button(label, type="tertiary", icon=f":material/{icon}:"):
            choose("view", view)
            st.rerun()


def demo_switch(shown: Listed) -> None:
    """Hides the runs that came with the product, or brings them back."""
    back = shown.hidden
    label, icon = ("Bring the demo back", "visibility") if back else ("Hide the demo", "visibility_off")
    if (
        shown.demo
        and may(Role.UPLOADER)
        and st.button(label, type="tertiary", icon=f":material/{icon}:", key="demo switch")
    ):
        _hide_demo(shown, not back)
        st.rerun()


@changing("hide the demo's runs, or bring them back")
def _hide_demo(shown: Listed, hidden: bool) -> None:
    shown.place.demo.hide(hidden)


def _table(shown: Listed, found: Library) -> None:
    columns, sort = form.chosen_columns(), form.chosen_sort()
    if not found.found:
        st.info(
            "No run matches. Words are looked for in name, kind, chip, model, topology, group and tags.",
            icon=":material/search:",
        )
    elif form.TIME in columns:
        legend()
    _draw(
        shown,
        {
            "columns": form.heads(columns),
            "usual": columns == form.USUAL,
            "sort": {"by": sort.removeprefix("-"), "up": not sort.startswith("-")},
            "rows": [form.drawn(row, columns) for row in found.rows],
            "bulk": form.offered(form.BULK_ARCHIVED if shown.view == ARCHIVE else form.BULK),
            "told": told(),
        },
    )
    more = found.found - len(found.rows)
    if more > 0 and st.button(f"Show {min(SHOWN, more)} more"):
        st.session_state["shown"] += SHOWN
        st.rerun(scope="fragment")


def _draw(shown: Listed, given: dict[str, object]) -> None:
    runs_table(given, at_once(shown.place))
    then(shown.place)


def _bin(shown: Listed) -> None:
    """What was deleted, until it goes for good."""
    lying: list[InBin] = binned(shown.place)
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.markdown(f"**Bin**: {fmt.count(len(lying), 'run')}. Each goes for good after 30 days.")
    with right.container(horizontal=True, horizontal_alignment="right"):
        _views(shown, 0)
    if not lying and told() is None:
        st.info("The bin is empty.", icon=":material/delete:")
        return
    wanted = st.session_state.setdefault("shown", SHOWN)
    _draw(
        shown,
        {
            "columns": [{"key": key, "title": title, "sort": "", "hover": ""} for key, title in form.BIN_COLUMNS],
            "usual": True,
            "sort": None,
            "rows": [form.binned_row(one) for one in lying[:wanted]],
            "bulk": form.acts(form.BINNED),
            "told": told(),
        },
    )
    if len(lying) > wanted and st.button(f"Show {min(SHOWN, len(lying) - wanted)} more"):
        st.session_state["shown"] += SHOWN
        st.rerun(scope="fragment")
