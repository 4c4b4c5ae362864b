"""Steps: how long each took, how fast it was, which were kept and which cannot be true."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analyzers.base import Facts
from analyzers.flops.precision import bounded, peaks
from analyzers.held import held
from analyzers.serving.server_start import refuse_of_a_server
from analyzers.time.history import History, without_steps
from analyzers.time.job_past import steps_taken
from analyzers.time.step_changes import step_changes
from analyzers.time.step_patterns import StepPattern, step_pattern
from analyzers.time.steps_alone import alone_ns
from analyzers.time.useful import tokens_of_steps
from errors import QuestionError
from errors.options import Option
from runs.tables import Tables, frame

OPTIONS: tuple[Option, ...] = ()
ONE_MEAN = "Each step took the mean over all of them: nothing tells each one's time, nor which was the best."
COLUMNS = [
    "attempt",
    "step",
    "start_ns",
    "dur_s",
    "kept",
    "first",
    "implausible",
    "tokens_per_s_per_chip",
    "tflops_per_s_per_chip",
    "loss",
]


@dataclass(frozen=True, kw_only=True)
class StepsResult:
    """`rows`: one row per step taken, in order of time, with columns

    attempt, step, start_ns (nullable), dur_s, kept (False: taken again later), first (of its attempt: includes
    compilation), implausible ("" or why it cannot be true), tokens_per_s_per_chip, tflops_per_s_per_chip, loss.

    `hosts`: one row per host and profiled step: host, step, dur_s; per device (`host/device`) where each device took
    the step at a time of its own.
    `tflops_per_s_per_chip` (in JSON job_tflops_per_s_per_chip) is by the job's own count of FLOPs; by a convention of
    one's choice the question `mfu` tells it.
    `pattern`: that steps grow, that every n-th is longer, or that they changed for good; None where none of it shows.
    `chips`: that wait in each step.
    Summary figures use kept, plausible steps that did not hang and are not the first of their attempt; None where
    unknown.
    """

    rows: pd.DataFrame
    hosts: pd.DataFrame
    steps: int
    median_step_s: float | None
    best_step_s: float | None
    tokens_per_s_per_chip: float | None
    tflops_per_s_per_chip: float | None
    pattern: StepPattern | None = None
    chips: int = 1
    notes: tuple[str, ...] = field(default=())

    @property
    def excess_chip_seconds(self) -> float | None:
        """What the pattern cost all chips."""
        return None if self.pattern is None else self.pattern.excess_s * self.chips

    def to_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "median_step_s": self.median_step_s,
            "best_step_s": self.best_step_s,
            "tokens_per_s_per_chip": self.tokens_per_s_per_chip,
            "job_tflops_per_s_per_chip": self.tflops_per_s_per_chip,
            "pattern": self.pattern and {**self.pattern.to_dict(), "excess_chip_seconds": self.excess_chip_seconds},
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> StepsResult:
    """Every step taken. Raises QuestionError where no input tells of steps."""
    judged = bounded(facts, peaks(tables, facts, {}))
    past = steps_taken(tables, judged)
    if not len(past.rows):
        refuse_of_a_server(tables, facts, "a server takes no training steps")
        raise QuestionError(
            without_steps(tables),
            advice="Add a training log with step lines, goodput entries, or a profile with StepTraceAnnotation.",
        )
    rows = _seconds(tables, judged, past)
    rows["tflops_per_s_per_chip"] = rows["model_flops_per_chip"] / rows["dur_s"] / 1e12
    if (tokens := tokens_of_steps(tables, facts, rows["step"])) is not None:  # a log's own seconds leave some out
        rate = pd.Series(tokens, index=rows.index) / rows["dur_s"].where(rows["dur_s"] > 0).astype(float)
        rows["tokens_per_s_per_chip"] = rate.fillna(rows["tokens_per_s_per_chip"].astype(float))
    usual = _usual(rows)
    one_mean = past.averaged and len(usual) > 1 and usual["dur_s"].nunique() == 1  # it tells of no best one
    return StepsResult(
        rows=rows[COLUMNS],
        hosts=_hosts(tables),
        steps=int(rows["step"].nunique()),
        median_step_s=_number(usual["dur_s"].median()),
        best_step_s=None if one_mean else _number(usual["dur_s"].min()),
        tokens_per_s_per_chip=_rate(usual, "tokens_per_s_per_chip"),
        tflops_per_s_per_chip=_rate(usual, "tflops_per_s_per_chip"),
        pattern=step_pattern(step_changes(tables, facts)),
        chips=held(tables, facts).counted,
        notes=(*_notes(rows, past), *([ONE_MEAN] if one_mean else [])),
    )


def median_step_s(tables: Tables, facts: Facts) -> float | None:
    """Seconds of a usual step, the same for all questions; None where no input tells of one."""
    facts = bounded(facts, peaks(tables, facts, {}))
    past = steps_taken(tables, facts)
    return _number(_usual(_seconds(tables, facts, past))["dur_s"].median()) if len(past.rows) else None


def _seconds(tables: Tables, facts: Facts, past: History) -> pd.DataFrame:
    """Steps and how long each took, less the pauses that the job recorded."""
    return past.rows.assign(dur_s=alone_ns(tables, facts, past).astype("Float64") / 1e9)


def _usual(rows: pd.DataFrame) -> pd.DataFrame:
    """Kept, plausible steps that did not hang and are not the first of their attempt, if there are any such."""
    good = rows[rows["kept"] & (rows["implausible"] == "") & (rows["hung_ns"] == 0) & rows["dur_s"].notna()]
    usual = good[~good["first"].astype(bool)]
    return usual if len(usual) else good


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _rate(rows: pd.DataFrame, column: str) -> float | None:
    """The average over time, not over steps: a rate times its step's seconds, summed, by the seconds."""
    rows = rows[rows[column].notna()]
    seconds = float(rows["dur_s"].sum())
    return float((rows[column] * rows["dur_s"]).sum()) / seconds if seconds else None


def _hosts(tables: Tables) -> pd.DataFrame:
    steps = frame(tables, "steps", ["host", "step", "start_ns", "dur_ns", "capture", "device"])
    steps = steps.dropna(subset=["host", "capture", "dur_ns"]).sort_values(["host", "start_ns"])
    return pd.DataFrame(
        {
            "host": steps["host"].astype(str).where(steps["device"].isna(), _places(steps)),
            "step": steps["step"],
            "start_ns": steps["start_ns"],
            "dur_s": steps["dur_ns"].astype("Float64") / 1e9,
        }
    ).reset_index(drop=True)


def _places(steps: pd.DataFrame) -> pd.Series:
    return steps["host"].astype(str) + "/" + steps["device"].astype(str)


def _notes(rows: pd.DataFrame, past: History) -> tuple[str, ...]:
    notes = [f"Steps are taken from {past.origin}.", *past.notes]
    if count := int((~rows["kept"].astype(bool)).sum()):
        were, they = ("step was", "it is") if count == 1 else ("steps were", "they are")
        notes.append(f"{count:,} {were} taken again after a restart; {they} not in the figures.")
    if count := int((rows["implausible"] != "").sum()):
        notes.append(f"{count} printed steps cannot be true and are not in the figures.")
    if not past.timed:
        notes.append("The input carries no times of day: steps are drawn in the order of the log.")
    return tuple(notes)
