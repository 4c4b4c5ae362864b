"""Single figures of one side, out of the answers that pages show of its run."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from analyzers.difference.figures import of_steps
from analyzers.difference.step_time import StepTimes
from analyzers.program.choosing import blind, listed
from app.questions.base import Question
from app.questions.collectives import COLLECTIVES
from app.questions.goodput import GOODPUT
from app.questions.interruptions import INTERRUPTIONS
from app.questions.memory import MEMORY
from app.questions.mfu import MFU
from errors import ChipledgerError
from runs.run import Run

Asked = Callable[[Question[Any], Run, dict[str, Any]], Any]
"""The answer to a question, None where there is none."""


def figures_of(run: Run, steps: StepTimes | None, device_steps: int, asked: Asked) -> Mapping[str, float]:
    """By the names of `analyzers.difference.figures.KINDS`; `device_steps`: those that profiles show."""
    found: dict[str, float | None] = dict(of_steps(steps))
    if run.manifest.tables.get("modules"):
        found |= _program(run)
    if run.manifest.tables.get("collectives") or run.manifest.kind == "compiled":
        found |= _collectives(asked(COLLECTIVES, run, {}), device_steps)
    peak, known = peak_told(asked(MEMORY, run, {}))
    if known:
        found[_PEAKS[known]] = peak
    for question, key, name in (
        (GOODPUT, "goodput_share", "goodput_share"),
        (INTERRUPTIONS, "count", "interruptions"),
        (MFU, "mfu", "mfu"),
    ):
        answer = asked(question, run, {})
        found[name] = None if answer is None else answer.to_dict().get(key)
    return {name: float(value) for name, value in found.items() if value is not None and value == value}


def peak_told(answer: Any) -> tuple[float | None, str]:
    """(bytes at the peak, how they are known); none of a formula, which tells of the model and not of the run."""
    if answer is None or answer.subject == "formula":
        return None, ""
    return answer.peak_bytes, answer.peak_basis


_PEAKS = {"measured": "memory_peak_bytes", "modelled": "memory_planned_bytes"}


def _program(run: Run) -> dict[str, float | None]:
    """Of the program that took longest; of one that nobody timed, of the one with most FLOPs. No FLOPs of one that
    holds kernels of which nobody tells them."""
    try:
        rows = listed(run.tables)
    except ChipledgerError:
        return {}
    (longest,) = rows.fillna(0.0).nlargest(1, ["seconds", "flops"]).index
    row = rows.loc[longest]
    told = {f"program_{name}": row[column] for name, column in _OF_PROGRAM.items() if pd.notna(row[column])}
    if row["variant"] in blind(run.tables):
        told.pop("program_flops", None)
    return told


_OF_PROGRAM = {"operations": "instructions", "flops": "flops", "bytes": "bytes"}


def _collectives(answer: Any, device_steps: int) -> dict[str, float | None]:
    """Of a step and device; of a program that nobody ran, of one run of it."""
    if answer is None or not len(answer.rows) or (answer.measured and not device_steps):
        return {}
    rows, per = answer.rows, device_steps if answer.measured else 1
    told = rows.dropna(subset=["message_bytes"])
    found: dict[str, float | None] = {}
    if len(told) == len(rows):
        found["collective_bytes"] = float((told["message_bytes"] * told["count"]).sum()) / per
    if answer.measured and rows["matched"].astype(bool).all():
        for column, name in (("transfer_s", "collective_transfer_s"), ("wait_s", "collective_wait_s")):
            found[name] = float(pd.to_numeric(rows[column]).sum()) / per
    return found
