"""The panel "Break it": parts that fail, what that means for a job, and what the network is without them."""

import pandas as pd
import streamlit as st

from app import topologies
from app.components.chart import chart
from app.components.current import open_workspace
from app.components.downloads import downloads
from app.components.text import md
from app.figures.base import standalone
from app.pages.topology.failures_figure import before_and_after
from app.pages.topology.lab import MOST_FAILURES, Lab, report
from app.topologies.failures_words import moved, table
from errors import ChipledgerError, QuestionError
from errors import format as fmt
from simulators.topology.failures import FAILS, breakable, fail
from simulators.topology.report import Report

MEANINGS = dict(FAILS)
REFUSED = "lab_failure_refused"
HELP = "A number, or several: `5,7,9`. A link by its two ends: `12-13`. Chips at random with a seed: `20@7`."


def panel(lab: Lab) -> None:
    _choose(lab)
    if refused := st.session_state.pop(REFUSED, None):
        st.warning(md(refused), icon=":material/info:")
    if not lab.failures:
        st.info(
            "Nothing has failed yet. Break a part to see what it means for the job that runs there, what takes "
            "the part's place, and how far the ways around it are.",
            icon=":material/info:",
        )
        return
    _failed(lab)
    before = topologies.report(lab.spec.text, (), open_workspace())
    after = report(lab)
    _meaning(after)
    _hops(lab, before, after)


def _choose(lab: Lab) -> None:
    """Which part fails, and which of them."""
    parts = breakable(lab.network)
    with st.form("lab_break", border=False):
        what, which, press = st.columns([1.4, 1.4, 1], vertical_alignment="bottom")
        what.selectbox(
            "What fails",
            list(parts),
            key="lab_fail_what",
            format_func=lambda p: _title(p, parts[p]),
            help="; ".join(f"**{p}**: {MEANINGS[p]}" for p in parts),
        )
        which.text_input("Which", key="lab_fail_which", placeholder="0", help=HELP)
        press.form_submit_button(
            "Break it", icon=":material/heart_broken:", type="primary", on_click=_break, args=(lab,)
        )


def _title(part: str, count: int) -> str:
    if part == "random":
        return "chips at random"
    named = {"ocs": "optical switch", "nvswitch": "NVLink switch"}.get(part, part)
    return f"{named} ({_range(count)})"


def _range(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1:,}"


def _break(lab: Lab) -> None:
    """Adds the failure to the address, if the network has such a part."""
    what, which = st.session_state["lab_fail_what"], st.session_state["lab_fail_which"].strip()
    default = {"link": "-".join(map(str, lab.network.links[0])) if len(lab.network.links) else "", "random": "1"}
    added = f"{what}={which or default.get(what, '0')}"
    try:
        if len(lab.failures) >= MOST_FAILURES:
            raise QuestionError(
                f"{MOST_FAILURES} failures at once are enough", advice="One may name several parts: chip=5,7,9."
            )
        broken = fail(lab.network, (*lab.failures, added))
    except ChipledgerError as e:
        st.session_state[REFUSED] = str(e)
        return
    st.query_params["fail"] = list(dict.fromkeys(f.text for f in broken.failures))


def _failed(lab: Lab) -> None:
    """What failed, each with a button that mends it."""
    row = st.container(horizontal=True, vertical_alignment="center")
    for number, text in enumerate(lab.failures):
        row.button(
            md(text.replace("=", " ", 1)),
            key=f"lab_mend_{number}_{text}",
            icon=":material/close:",
            help="Mend it",
            on_click=_mend,
            args=(lab.failures, number),
        )
    if len(lab.failures) > 1:
        row.button("Mend all", key="lab_mend_all", type="tertiary", on_click=_mend, args=((), None))


def _mend(failures: tuple[str, ...], number: int | None) -> None:
    kept = [f for i, f in enumerate(failures) if i != number]
    if kept:
        st.query_params["fail"] = kept
    else:
        st.query_params.pop("fail", None)


def _meaning(after: Report) -> None:
    """What it means for a job, and what takes the part's place."""
    told = after.after
    st.markdown("**What it means for the job**")
    st.markdown("\n".join(f"{i}. {md(sentence)}" for i, sentence in enumerate(told["truth"], 1)))
    lost = " and ".join(fmt.count(told[k], w) for k, w in (("lost_chips", "chip"), ("lost_links", "link")) if told[k])
    place = f" What takes its place: {told['spare']}." if told["spare"] else ""
    st.caption(md(f"Lost: {lost or 'switches alone'}.{place}"))


def _hops(lab: Lab, before: Report, after: Report) -> None:
    """Hops, loads and islands before and after, drawn and as a table."""
    st.markdown(f"**How far are the ways around it?** {md(moved(before, after))}")
    figure = before_and_after(before, after)
    chart(figure, f"failures {lab.spec.text} {lab.failures}", "failures", moved(before, after))
    told = table(before, after)
    st.table({head or "After the failures": [row[i] for row in told.rows] for i, head in enumerate(told.head)})
    name = "topology-failures"
    rows = pd.DataFrame(told.rows, columns=["quantity", "before", "after"])
    downloads(rows, name, lab.answer, lambda: standalone(figure, f"{lab.spec.text} after failures", name))
