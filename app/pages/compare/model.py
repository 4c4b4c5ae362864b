"""A job beside what the model of training says of its step: the body of the page Compare where B is the model."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from analyzers.difference.terms import TERMS
from app.comparing import modelled_words as words
from app.comparing.modelled import EXPECTED, SAME, BesideModel, Row, beside_model
from app.comparing.options import WHATIF
from app.components.answering import answering
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import howto
from app.components.verdict import beyond, verdict
from app.pages.compare import model_figure as draw
from app.workspace import Workspace
from errors import format as fmt
from runs.run import Run

LABEL = "What the model of training says"
INPUTS = ("steps", "captures", "facts")


def beside(run: Run, place: Workspace) -> None:
    """The setup that is asked of, verdict, figures, both steps by account, and the rows."""
    setup = _setup()
    with answering("Asking the model of training", lambda: howto(run, TERMS, (), INPUTS)):
        found = beside_model(run.run_id, setup, place)
    said = words.verdict(found)
    verdict(said)
    figures_row(figures(found))
    name = f"{run.manifest.name}-beside-the-model"
    if found.rows:
        alone = " What is hatched is the run's alone: the model has no term for it."
        st.markdown(
            "**Where do the two differ?** Above the run, below the model."
            + (alone if any(r.modelled_s is None for r in found.rows) else "")
        )
        chart(draw.by_account(found), "accounts", name, said)
    rows = pd.DataFrame([_row(r) for r in found.rows])
    if len(rows):
        with st.expander(f"Evidence: accounts of a step ({len(rows):,})", icon=":material/table:"):
            draw_table(rows)
            downloads(rows, name, f"/api/compare?{urlencode({'a': run.run_id, WHATIF.name: setup})}", None)
    beyond(said)
    howto(run, TERMS, found.notes, INPUTS)


def _setup() -> str:
    """What the address says, in a field that writes it there."""
    key, now = "beside_setup", st.query_params.get(WHATIF.name, SAME)
    st.text_input(
        "Of which setup",
        now,
        key=key,
        width=340,
        help=f"{EXPECTED[:1].upper()}{EXPECTED[1:]}.",
        on_change=lambda: choose(WHATIF.name, st.session_state[key].strip() or SAME, SAME),
    )
    return now


def figures(found: BesideModel) -> list[Figure]:
    """Both steps, the change, and whether the run lies where the model says that a step lies."""
    step, planned = found.step, f"{fmt.duration(found.low_s)} to {fmt.duration(found.high_s)}"
    return [
        Figure(f"Step, {found.run.how}", fmt.duration(step.a), "Of the run.", "derived"),
        Figure("Step, modelled", fmt.duration(step.b), f"The model's published range: {planned}.", "modelled"),
        Figure("Modelled over the run", words.signed(step.change), f"Range of the model: {planned}.", "modelled"),
    ]


def _row(row: Row) -> dict[str, object]:
    return {
        "account": words.title(row.account),
        "run_s": row.measured_s,
        "modelled_s": row.modelled_s,
        "change_s": row.change_s,
        "how": row.how,
    }
