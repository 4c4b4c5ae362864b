"""What a page is about where it may be a run or a model alone: chosen at its head, kept in the address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import streamlit as st

from app.components.actions import copy_link
from app.components.current import choose, chosen, current_run, open_workspace
from app.components.header import header
from app.components.howto import howto, terms_list
from app.components.notice import notice
from app.components.option import shown
from app.components.text import md
from app.pages.definitions import DEFINITIONS
from app.questions.asking import ModelSubject, Subject
from app.questions.base import Question
from app.workspace import Workspace
from catalog.models import Model, model, models, parameters
from catalog.terms import Term
from errors import ChipledgerError
from errors import format as fmt
from runs.run import Run

FIRST = "llama3.1-8b"  # what a page shows before anybody chose
RUN = "run"  # in the list: back to the run last looked at


@dataclass(frozen=True)
class About:
    """What is asked about, and where its answers are found. `model`: put in the place of the run's own, or None."""

    subject: Subject
    place: Workspace
    model: str | None = None

    @property
    def run(self) -> Run | None:
        return self.subject if isinstance(self.subject, Run) else None

    @property
    def its_run(self) -> Run:
        """Of a page that is about a run alone. Raises TypeError where it is about a model: a defect."""
        if self.run is None:
            raise TypeError(f"{self.name} is no run")
        return self.run

    @property
    def name(self) -> str:
        return self.subject.manifest.name if isinstance(self.subject, Run) else self.subject.name

    def answer(self, question: Question[Any], options: Mapping[str, object]) -> str:
        """Address of the JSON answer."""
        if isinstance(self.subject, Run):
            path = f"/api/runs/{self.subject.run_id}/show/{question.name}"
        else:
            path = f"/api/models/{quote(self.subject.name)}/show/{question.name}"
        return path + (f"?{urlencode(options)}" if options else "")


def model_or_run() -> About:
    """What the address names: a run (`run=`), a model (`model=`), or a run as if it were of that model.

    Where it names neither: the run last looked at, else a model to begin with. Its head is drawn. A model that is in
    no catalogue is told, and the page ends.
    """
    place = open_workspace()
    wanted = st.query_params.get("model")
    try:
        found = model(wanted or FIRST)
    except ChipledgerError as e:
        _choice(None)
        notice(e, library=False)
        st.stop()
    if st.query_params.get("run") or (st.session_state.get("last_run") and not wanted):
        run, extras, place = current_run()
        with header(run, extras):
            _choice(found.name if wanted else RUN)
        return About(run, place, found.name if wanted else None)
    if not wanted:
        st.query_params["model"] = found.name  # so that the address says what is shown
    _model_head(found)
    return About(ModelSubject(found.name, found.name), place)


def explained(about: About, terms: Sequence[Term], notes: Sequence[str], inputs: Sequence[str]) -> None:
    """How this is computed; of a run also which input would tell more."""
    if about.run:
        howto(about.run, terms, notes, inputs)
        return
    with st.expander("How this is computed", icon=":material/function:"):
        for note in notes:
            st.markdown(f"- {md(note)}")
        terms_list(terms)
        st.page_link(DEFINITIONS.file, label="All definitions", icon=":material/menu_book:")


def pick(label: str, name: str, options: dict[str, str], default: str, width: int | str = "stretch") -> str:
    """A list of which one is chosen, kept in the address; `options`: {value in the address: text in the list}."""
    now = chosen(name, list(options), default)
    key = shown(name, now)
    st.selectbox(
        label,
        list(options),
        format_func=options.__getitem__,
        key=key,
        width=width,
        on_change=lambda: choose(name, st.session_state[key], default),
    )
    return now


def _choice(now: str | None) -> None:
    """The list of what else the page could be about. The choices made for one subject do not stay for the next."""
    run = st.query_params.get("run")
    back = run or st.session_state.get("last_run")
    names = ([RUN] if back else []) + list(models())

    def changed() -> None:
        choice = st.session_state["about"]
        st.query_params.clear()
        if back and (run or choice == RUN):
            st.query_params["run"] = back
        if choice and choice != RUN:
            st.query_params["model"] = choice

    if st.session_state.get("about") != now:
        st.session_state["about"] = now if now in names else None
    st.selectbox(
        "About",
        names,
        index=0 if now in names else None,
        key="about",
        on_change=changed,
        width=260,
        format_func=lambda n: n if n != RUN else "As this run has it" if run else "The run last opened",
        label_visibility="collapsed",
        placeholder="Choose a model",
    )


def _model_head(found: Model) -> None:
    """Name, size and source of the model, the list of others, and the permalink."""
    st.set_page_config(page_title=f"{found.name} · Chipledger")
    name, right = st.columns([3, 2], vertical_alignment="center")
    name.subheader(md(found.name), anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        _choice(found.name)
        copy_link()
    counts = parameters(found)
    facts = [
        "model of the catalogue, no run",
        fmt.count(found.layers, "layer"),
        f"{fmt.number(counts.total / 1e9)} billion parameters",
        f"d_model {found.d_model:,}",
        f"vocabulary {found.vocab:,}",
    ]
    st.markdown(" · ".join(md(f) for f in facts))
