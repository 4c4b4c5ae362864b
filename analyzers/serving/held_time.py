"""From when to when the chips of a serving run were held, and what of it is known without passes and answers."""

import numpy as np

from analyzers.intervals import Spans, spans, union
from analyzers.serving.loads import loads
from analyzers.serving.served import Served
from analyzers.serving.yearless import in_their_year
from analyzers.time.source_clocks import meeting
from errors import QuestionError
from errors import format as fmt
from runs.tables import Tables, frame

STARTUP = ("accelerator_initialization", "training_preparation")  # kinds of `lifecycle`


def span_of(
    tables: Tables, asked: Served | None, told: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[int, int, tuple[str, ...]]:
    """First and last sign of the engine, ns since the epoch, and what had to be left out.

    The first of passes, requests, samples and recorded phases that has times sets the clock; one that does not meet it
    at any moment runs on another (a log that counts from its start) and says nothing of when.
    """
    sampled = frame(tables, "engine", ["ts_ns", "source"])
    life = frame(
        tables, "lifecycle", ["start_ns", "end_ns"], [("kind", "!=", "queued")]
    )  # it holds nothing while it waits
    ranges = {
        "passes of the engine": [edge for start, end in told for edge in (start.min(), end.max())],
        "requests": [*_request_signs(asked), *(_dead_loads(tables) if asked is not None else ())],
        "samples of the engine": in_their_year(tables, sampled)["ts_ns"].dropna().tolist(),
        "recorded phases": [*life["start_ns"].dropna(), *life["end_ns"].dropna()],
    }
    known = {what: (int(min(signs)), int(max(signs))) for what, signs in ranges.items() if signs}
    held, left_out = meeting(known, near=("recorded phases",))
    first, last = held or (0, 0)
    notes = [f"The {what} were timed by another clock: they are left out of the time held." for what in left_out]
    if last <= first:
        raise QuestionError(
            "no input says when the engine ran, so chip time cannot be counted",
            advice="Add records with times of day: vLLM's detailed result, an engine log, or scrapes of /metrics.",
        )
    return first, last, tuple(notes)


def _request_signs(asked: Served | None) -> list[int]:
    """Every time of day that a request tells, those that cannot be left out: they must not stretch what was held."""
    if asked is None:
        return []
    believed = asked.rows[asked.rows["out_of"] == ""]
    told = ("arrival_ns", "scheduled_ns", "first_token_ns", "last_token_ns")
    times = [at for column in told for at in believed[column].dropna().tolist()]
    ends = (believed["arrival_ns"] + (believed["e2e_s"] * 1e9).round().astype("Int64")).dropna()
    return [*times, *ends.tolist()]


def _dead_loads(tables: Tables) -> list[int]:
    """Start and end of each load of which nothing was answered: its requests say when they came, and no more."""
    rows = loads(tables)
    rows = rows[(rows["completed"] == 0).fillna(False).to_numpy(dtype=bool)].dropna(subset=["start_ns", "duration_s"])
    starts = rows["start_ns"].astype("int64")
    return [*starts, *(starts + (rows["duration_s"] * 1e9).round().astype("int64"))]


def perhaps_open(asked: Served | None, end: int) -> tuple[Spans, tuple[str, ...]]:
    """(when requests were open that failed and do not say when, a sentence). Each is taken to have been open for at
    most as long as the longest that tells its end; where none does, until the end."""
    if asked is None:
        return spans(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)), ()
    rows = asked.rows
    endless = ~rows["completed"] & rows["arrival_ns"].notna() & rows["last_token_ns"].isna()
    begun = rows.loc[endless, "arrival_ns"].to_numpy(dtype=np.int64)
    longest = float(asked.timed["e2e_s"].max()) if len(asked.timed) else np.nan
    until = np.full(len(begun), end) if np.isnan(longest) else np.minimum(begun + round(longest * 1e9), end)
    failed = fmt.count(len(begun), "request failed and does", "requests failed and do")
    said = f"{failed} not say when: while any was open is no idle time, and not known."
    return union(spans(begun, np.maximum(until, begun))), (said,) if len(begun) else ()


def starts_of(tables: Tables) -> Spans:
    """Phases before the engine could serve, as far as they were recorded."""
    rows = frame(tables, "lifecycle", ["kind", "start_ns", "end_ns"]).dropna()
    rows = rows[rows["kind"].astype(str).isin(STARTUP).to_numpy()]
    return union(spans(rows["start_ns"].to_numpy(dtype=np.int64), rows["end_ns"].to_numpy(dtype=np.int64)))
