"""The numbers that a plan for checkpoints rests on: each an input, kept in the address under the name of its option."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import streamlit as st

from app import format as fmt
from app import theme
from app.components.current import choose
from app.whatif.checkpoint import KNOWN


@dataclass(frozen=True)
class Field:
    """An input: option name with underscores, label with unit, what it means, whether it is a time in seconds."""

    name: str
    label: str
    meaning: str
    time: bool = True


MAIN = (
    Field("save_s", "A save (s)", "From the beginning of a save until the checkpoint is safe."),
    Field("mttf_s", "Mean time to failure (s)", "Of the whole job: time at risk by failures."),
    Field("wait_s", "Waiting for machines (s)", "From a failure to having machines again."),
    Field("restart_s", "Restarting (s)", "From having machines to training: initialisation, restore, compilation."),
    Field("interval_s", "Work between saves (s)", "As it is now; empty: not known."),
)
MORE = (
    Field("blocked_s", "Blocking part of a save (s)", "If it is written in the background; empty: all of it."),
    Field("nodes", "Nodes", "Of the job: for spares, and for a rate of failures by node.", False),
    Field("failures_per_1000_node_days", "Failures per 1,000 node-days", "Instead of a mean time to failure.", False),
    Field("slices", "Slices", "What elastic training goes on without one of.", False),
    Field("resume_s", "A pause of elastic training (s)", "To go on with fewer slices, and to take one in again."),
    Field("chips", "Chips", "Of the job.", False),
    Field("span_s", "Time the gains are for (s)", "Such as the time that the job is to run."),
    Field("usd_per_chip_hour", "Dollars per chip-hour", "Gives the gains a price.", False),
)
LARGEST = 1e12


def given() -> dict[str, float]:
    """The numbers in the address; what is none there is left out."""
    found = {}
    for name in KNOWN:
        try:
            value = float(st.query_params.get(name, ""))
        except ValueError:
            continue
        if 0 <= value <= LARGEST:
            found[name] = value
    return found


def plan_inputs(
    known: Mapping[str, float], basis: Mapping[str, str], follows: Mapping[str, float] = MappingProxyType({})
) -> None:
    """A row of inputs and, in a popover, the rest. `known`: what holds unless something is entered, with its basis;
    `follows`: what follows from other inputs where it is not entered itself."""
    row = st.columns([*[1] * len(MAIN), 0.6], vertical_alignment="bottom")
    for column, field in zip(row, MAIN, strict=False):
        with column:
            _input(field, known.get(field.name), basis.get(field.name), follows.get(field.name))
    with row[-1].popover("More", icon=":material/tune:"):
        for field in MORE:
            _input(field, known.get(field.name), basis.get(field.name))
    entered = given()
    if entered and known and st.button("Back to what the run measured", icon=":material/undo:", type="tertiary"):
        for name in entered:
            choose(name, "")
        st.rerun()


def _input(field: Field, known: float | None, basis: str | None, follows: float | None = None) -> None:
    now = given().get(field.name, known)
    key = f"plan_{field.name}"
    if field.name not in given() and basis is not None:
        mark = theme.mark(basis)
        label, how = f"{field.label} {mark.glyph}", f" \n\n{mark.glyph} {mark.word}: {mark.meaning}."
    else:
        label, how = f"{field.label}" + (" ◇" if now is not None else ""), ""
    if st.session_state.get(key) != now:
        st.session_state[key] = now

    def changed() -> None:
        value = st.session_state[key]
        choose(field.name, "" if value is None or value == known else f"{value:.12g}")
        if field.name == "failures_per_1000_node_days" and value is not None:
            choose("mttf_s", "")  # one of the two; the one entered last
        if field.name == "mttf_s" and value is not None:
            choose("failures_per_1000_node_days", "")

    words = f" Now {fmt.duration(now)}." if field.time and now else ""
    empty = "–" if follows is None else f"{follows:.6g}, by the rate"
    st.number_input(
        label,
        min_value=0.0,
        max_value=LARGEST,
        value=None,
        format="%.6g",
        key=key,
        on_change=changed,
        help=field.meaning + words + how,
        placeholder=empty,
    )
