"""What the job did while its chips drew power: when it ran, its steps, the tokens of these or of requests."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.intervals import NOTHING, Spans, spans, union
from analyzers.time.history import history
from analyzers.time.useful import tokens_of_steps
from errors import QuestionError
from runs.tables import Tables, frame

TRAINED, GENERATED = "trained", "generated"


@dataclass(frozen=True)
class Work:
    """`span`: from when to when the job ran, None where nothing tells. `steps`: start_ns, dur_ns and, where known,
    tokens of a chip, of steps with a time. `generated`: tokens of requests answered within the span."""

    span: tuple[int, int] | None
    steps: pd.DataFrame
    generated: int = 0

    @property
    def in_steps(self) -> Spans:
        start = self.steps["start_ns"].to_numpy(dtype=np.int64)
        return union(spans(start, start + self.steps["dur_ns"].to_numpy(dtype=np.int64))) if len(start) else NOTHING


NO_STEPS = pd.DataFrame({"start_ns": [], "dur_ns": [], "tokens": []})


def work_of(tables: Tables, facts: Facts) -> Work:
    steps = _steps(tables, facts)
    life = frame(tables, "lifecycle", ["kind", "start_ns", "end_ns"])
    jobs = life[life["kind"] == "job"]
    edges = [
        *steps["start_ns"].tolist(),
        *(steps["start_ns"] + steps["dur_ns"]).tolist(),
        *jobs["start_ns"].dropna().astype("int64").tolist(),
        *jobs["end_ns"].dropna().astype("int64").tolist(),
    ]
    if not len(steps) and tables.rows("requests"):
        begin, end, generated = _requests(tables)
        if begin is not None and end is not None:
            return Work((min([begin, *edges]), max([end, *edges])), steps, generated)
    if len(edges) < 2 or min(edges) >= max(edges):
        return Work(None, steps)
    return Work((int(min(edges)), int(max(edges))), steps)


def _steps(tables: Tables, facts: Facts) -> pd.DataFrame:
    """Steps with a time of day and a duration."""
    if not tables.rows("steps"):
        return NO_STEPS
    try:
        past = history(tables, facts)
    except QuestionError:
        return NO_STEPS
    rows = past.rows.dropna(subset=["start_ns", "dur_ns"]) if past.timed else past.rows.head(0)
    if not len(rows):
        return NO_STEPS
    tokens = tokens_of_steps(tables, facts, rows["step"])
    found = rows[["start_ns", "dur_ns"]].astype("int64").reset_index(drop=True)
    return found.assign(tokens=np.nan if tokens is None else tokens).sort_values("start_ns", ignore_index=True)


def _requests(tables: Tables) -> tuple[int | None, int | None, int]:
    rows = frame(tables, "requests", ["arrival_ns", "last_token_ns", "output_tokens"])
    told = rows.dropna(subset=["arrival_ns", "last_token_ns"])
    if not len(told):
        return None, None, 0
    return int(told["arrival_ns"].min()), int(told["last_token_ns"].max()), int(told["output_tokens"].fillna(0).sum())
