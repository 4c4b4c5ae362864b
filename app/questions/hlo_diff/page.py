"""Two programs side by side: what is the same, what changed, and which differences cost most."""

import contextlib
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from analyzers.program.choosing import listed
from analyzers.program.difference import DifferenceResult
from analyzers.program.rows import dicts
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control, in_address
from app.components.question_page import Told, question_page
from app.questions.hlo_diff import HLO_DIFF
from app.questions.hlo_diff.figure import BARS, differences, measure, strips
from app.questions.hlo_diff.words import names, status
from errors import ChipledgerError
from errors import format as fmt
from runs.run import Run

_OPTIONS = by_name(HLO_DIFF.options)
MOST_RUNS = 200  # newest runs that are offered


def page() -> None:
    question_page(HLO_DIFF, "Matching operations", figures, body, options=_options, otherwise=_own, apart=True)


def _options(about: About) -> dict[str, object]:
    """The other run and the programs, from the address."""
    _other_run(about)
    return in_address([o for o in HLO_DIFF.options if o.name != "top"])


def _other_run(about: About) -> None:
    """A list of the runs that keep programs."""
    runs = [r for r in about.place.store.runs()[:MOST_RUNS] if r.manifest.tables.get("modules")]
    texts = {r.run_id: f"{r.manifest.name} ({r.run_id[:6]})" for r in runs if r.run_id != about.its_run.run_id}
    unset = "Compare with: this run's own programs"
    control(_OPTIONS["other_run"], texts=texts, unset=unset, hidden=True, entered=lambda _: choose("other", ""))


def _own(run: Run, _: Mapping[str, Any]) -> None:
    """A list of the run's own programs, where it has several and none is chosen yet."""
    with contextlib.suppress(ChipledgerError):
        programs = listed(run.tables)["program"]
        if len(programs) > 1 and not st.query_params.get("other_run"):
            texts = {p: p for p in programs}
            control(_OPTIONS["other"], texts=texts, unset="Choose a program of this run", width=340)


def figures(result: DifferenceResult) -> list[Figure]:
    """How many operations are how, and what is matched."""
    least = [result.matched[f"bytes_{s}_share"] for s in "ab"]
    known = [v for v in least if v is not None]
    only = result.count("only_a") + result.count("only_b")
    return [
        Figure("Unchanged", f"{result.count('unchanged'):,}", HLO_DIFF.meaning("Unchanged operations"), "derived"),
        Figure("Changed", f"{result.count('changed'):,}", HLO_DIFF.meaning("Changed operations"), "derived"),
        Figure("Only in one", f"{only:,}", HLO_DIFF.meaning("Only in one"), "derived"),
        Figure(
            "Bytes matched", fmt.share(min(known)) if known else fmt.NO_VALUE, HLO_DIFF.meaning("Matched"), "derived"
        ),
    ]


def body(told: Told[DifferenceResult]) -> None:
    """Which programs, how much of each is how, and the largest differences."""
    result = told.result
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first, second = ({p: p for p in found} for found in (result.programs_a, result.programs_b))
        control(_OPTIONS["program"], result.program_a, texts=first, width=300, label="First program")
        control(_OPTIONS["other"], result.program_b, texts=second, width=300)
    a, b = names(result)
    st.markdown("**How much of each is the same.**")
    chart(strips(result), "diff strips", f"{told.name}-status", told.verdict)
    drawn = differences(result)
    if drawn is None:
        st.info(f"No operation differs in {measure(result)}.", icon=":material/info:")
    else:
        what = "time" if measure(result) == "seconds" else "bytes"
        st.markdown(f"**The largest differences in {what}**, at most {BARS}: to the right more in the second program.")
        chart(drawn, "diff bars", told.name, told.verdict)
    if len(result.by_change):
        st.markdown("**What changed.** An operation counts under each of its changes.")
        draw_table(_changes(result.by_change))
    rows = result.pairs.assign(changes=[status(r) for r in dicts(result.pairs)])
    told.evidence(rows, fmt.count(len(rows), "operation"), drawn, f"{a} and {b}")


def _changes(rows: pd.DataFrame) -> pd.DataFrame:
    told: dict[str, Any] = {"Change": rows["change"], "Operations": rows["rows"]}
    for key, words in (("seconds", fmt.duration), ("bytes", fmt.size), ("flops", fmt.flops)):
        for side, name in (("a", "first"), ("b", "second")):
            values = rows[f"{key}_{side}"]
            if values.notna().any():
                title = {"seconds": "Time", "bytes": "Bytes", "flops": "FLOPs"}[key]
                told[f"{title}, {name}"] = [words(None if pd.isna(v) else float(v)) for v in values]
    return pd.DataFrame(told)


if __name__ == "__main__":
    page()
