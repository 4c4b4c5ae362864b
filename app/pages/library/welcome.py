"""What greets somebody who has never been here: what this is, three runs to begin with, and what the bars mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import theme
from app.components.by_itself import by_itself
from app.components.howto import PROFILE
from app.components.price import assumed
from app.components.text import md
from app.questions.asking import glimpse, price_of
from app.questions.base import Question
from app.questions.findings import FINDINGS
from app.questions.interruptions import INTERRUPTIONS
from app.questions.latency import LATENCY
from app.questions.ledger import LEDGER
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.run import Run

LINE = (
    "**Every chip-second accounted for.** Drop the profiles and logs of a training or serving job, and see where its "
    "time and money went."
)


@dataclass(frozen=True, kw_only=True)
class Start:
    """A bundled run to begin with: `run` is what it is called, `first` the question whose page tells most of it."""

    run: str
    title: str
    icon: str
    says: str
    first: Question[Any]


STARTS = (
    Start(
        run="reference-training",
        title="A training job that ran",
        icon="model_training",
        says="JAX over four processes, with faults planted in it: a slow rank, a loader that stalls, two crashes.",
        first=FINDINGS,
    ),
    Start(
        run="54 days on 16,384 accelerators",
        title="54 days on 16,384 GPUs, simulated",
        icon="dns",
        says="Failures drawn from what was published of the training of Llama 3 405B.",
        first=INTERRUPTIONS,
    ),
    Start(
        run="reference-serving",
        title="A model that was served",
        icon="forum",
        says="Requests to an engine with continuous batching, more of them than it could bear.",
        first=LATENCY,
    ),
)
LOOK_AGAIN_SECONDS = 2.0  # while a ledger is computed
BARS = (  # of the list: what each part of a bar is, and the account that lends its colour
    ("Useful maths", ["useful_maths"]),
    ("Other time of kept steps", ["below_roofline"]),
    ("Cannot be told", ["unattributed"]),
    ("Lost, waiting or idle", ["badput"]),
)


_PART = (
    '<span style="white-space:nowrap;margin-right:1.2rem"><span style="display:inline-block;width:.8rem;height:.8rem;'
    'border-radius:2px;vertical-align:-1px;margin-right:.4rem;{paint}"></span>{title}</span>'
)


def greet(place: Workspace, runs: Sequence[Run], own: int) -> None:
    """The line that says what this is and, where bundled runs are shown, three of them to begin with: cards, or one
    line for who has runs of their own."""
    named = {r.written.name: r for r in runs}
    found = [(start, named[start.run]) for start in STARTS if start.run in named]
    if own:
        _folded(found)
        return
    st.markdown(LINE)
    for column, (start, run) in zip(st.columns(len(found)) if found else (), found, strict=True):
        with column.container(border=True, height="stretch"):
            _card(start, run, place)


def _folded(found: Sequence[tuple[Start, Run]]) -> None:
    if not found:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.caption("Examples:", width="content")
        for start, run in found:
            st.page_link(start.first.file, query_params={"run": run.run_id}, label=start.title, width="content")


def _card(start: Start, run: Run, place: Workspace) -> None:
    st.markdown(f"**:material/{start.icon}: {md(start.title)}**")
    size = _size(run, place)
    by_itself(_said, None if size else LOOK_AGAIN_SECONDS)(start, run, place)
    st.page_link(
        start.first.file,
        query_params={"run": run.run_id},
        label=f"Look at this first: {start.first.title}",
        icon=":material/arrow_forward:",
    )


def _said(start: Start, run: Run, place: Workspace) -> None:
    """What it is, and how large once that is known."""
    st.caption(md(f"{start.says} {_size(run, place)}".strip()))


def _size(run: Run, place: Workspace) -> str:
    """How much chip time it held and what that cost, once that is known."""
    try:
        result = glimpse(LEDGER, run, place.registry)
    except ChipledgerError:
        return ""
    if result is None:
        return ""
    held, price = result.ledger.chip_seconds, price_of(run, place.registry)
    if price is None:
        return f"{fmt.chip_time(held)}."
    said = " at an assumed price" if assumed(run, place.registry) else ""
    return f"{fmt.chip_time(held)}, {fmt.usd(held / 3600 * price)}{said}."


def legend() -> None:
    """What the colours of the bars mean."""
    parts = "".join(_PART.format(paint=_paint(path), title=title) for title, path in BARS)
    st.html(f'<div style="font-size:.875rem">Chip time: {parts}</div>')


def _paint(path: Sequence[str]) -> str:
    colour = theme.colour(path)
    if not theme.pattern(path):
        return f"background:{colour}"
    return f"background:repeating-linear-gradient(135deg,{colour} 0 3px,#8884 3px 5px);outline:1px solid #8886"


def teach(offered: bool) -> None:
    """An empty store teaches. `offered`: the bundled runs are not loaded yet, and can be."""
    st.markdown("#### No runs yet")
    st.markdown(
        "Add what your job already writes: **profiles** (`*.xplane.pb`, `*.pt.trace.json`), **goodput entries** (a "
        "Cloud Logging export or `goodput.jsonl`), **training logs** with step lines. Together they close one ledger; "
        "each alone gives a part of it."
        + (" Or look at runs that are bundled here: `chipledger demo`." if offered else "")
    )
    st.markdown("No profile yet? Capture a few usual steps:")
    st.code(PROFILE, language="python")
    st.markdown("From a shell, the same upload is")
    st.code("chipledger ingest profile/ train.log goodput.jsonl --name my-run", language="shell")
