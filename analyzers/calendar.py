"""The calendar of a job: every instant from its first start to its last sign of life under one heading.

Headings, later ones winning where they overlap:

    other                      inside an attempt, but nothing says what it was
    infrastructure_recovery    after the last sign of life of an interrupted attempt, until the next starts
    wasted_progress / kept     steps, by whether a later segment took them again
    program_startup            the first step of a segment beyond the median of its other steps
    data_loading ... elastic   intervals that the job recorded; inside a step, fetching data is left to the step,
                               because only a profile can tell whether the device waited for it

Chips are held from each start of the job to its end, or, where it was interrupted, to its next start.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.history import History, job_starts
from analyzers.intervals import Painting, Spans, paint, spans
from runs.tables import Tables, frame

# in painting order: a later heading wins
HEADINGS = (
    "outside", "other", "infrastructure_recovery", "kept", "wasted_progress", "program_startup", "data_loading",
    "training_preparation", "accelerator_initialization", "eval", "custom", "checkpoint_save", "checkpoint_restore",
    "elastic_reinitialization", "elastic_scale_up", "elastic_slice_down",
)  # fmt: skip
CODE = {name: i for i, name in enumerate(HEADINGS)}
RECORDED = HEADINGS[CODE["data_loading"] :]


@dataclass(frozen=True)
class Interruption:
    """An attempt that ended without the job ending: what was lost and until when."""

    attempt: int
    last_sign_ns: int
    restart_ns: int
    last_step: int | None
    resumed_step: int | None
    wasted_steps: int


@dataclass(frozen=True)
class Calendar:
    """`painting` labels each instant with an index into HEADINGS; `outside` lies between a job's end and its rerun.

    `custom`: instants of each custom event, where the heading `custom` won. `loading_in_steps`: fetches inside steps.
    `open_ended`: recorded intervals that have no end.
    """

    painting: Painting
    custom: dict[str, Spans]
    loading_in_steps: Spans
    interruptions: tuple[Interruption, ...]
    open_ended: int

    @property
    def start_ns(self) -> int:
        return int(self.painting.edges[0])

    @property
    def end_ns(self) -> int:
        return int(self.painting.edges[-1])


def calendar(tables: Tables, past: History) -> Calendar | None:
    """The calendar, or None where no input gives the job times of day."""
    life = frame(tables, "lifecycle", ["kind", "start_ns", "end_ns", "host", "detail", "order"])
    life = life[life["host"].isna()]  # per-host intervals belong to that host's profile
    steps = past.rows[past.rows["start_ns"].notna()] if past.origin != "profile" else past.rows[:0]
    if not len(steps) and not life["start_ns"].notna().any():
        return None
    times = [steps["start_ns"], life["start_ns"], life["end_ns"]]
    if past.origin == "step lines":
        times.append(steps["start_ns"] + steps["dur_ns"])
    signs = np.sort(np.concatenate([_ns(t.dropna()) for t in times]))
    starts = job_starts(tables)
    if len(starts) == 0 or starts[0] > signs[0]:
        starts = np.concatenate(([signs[0]], starts))
    ends = _ns(life[(life["kind"] == "job") & life["end_ns"].notna()]["end_ns"])

    recorded, open_ended = _recorded(life, signs)
    steps = steps.assign(end_ns=_step_ends(steps, starts, ends, signs))
    windows, recovery, gaps, interruptions = _attempts(starts, ends, signs, steps)
    final = int(windows.end.max(initial=starts[0] + 1))
    first_steps, loading = _first_step_starts(steps), recorded.pop("data_loading", spans())
    inside = _inside(loading, steps)
    layers = [
        ("other", windows),
        ("infrastructure_recovery", recovery),
        ("kept", _spans(steps[steps["kept"]])),
        ("wasted_progress", _spans(steps[~steps["kept"].astype(bool)])),
        ("program_startup", first_steps),
        ("data_loading", spans(loading.start[~inside], loading.end[~inside])),
        *((kind, recorded[kind]) for kind in RECORDED if kind in recorded),
        ("outside", gaps),
    ]
    painting = paint(int(starts[0]), final, [(CODE[kind], x) for kind, x in layers], ground=CODE["other"])
    return Calendar(
        painting=painting,
        custom=_custom(life, painting),
        loading_in_steps=spans(loading.start[inside], loading.end[inside]),
        interruptions=interruptions,
        open_ended=open_ended,
    )


def _ns(column: pd.Series) -> np.ndarray:
    return column.to_numpy(dtype=np.int64)


def _spans(steps: pd.DataFrame) -> Spans:
    return spans(_ns(steps["start_ns"]), _ns(steps["end_ns"]))


def _recorded(life: pd.DataFrame, signs: np.ndarray) -> tuple[dict[str, Spans], int]:
    """Recorded intervals by heading, and how many never ended. A phase without an end is entered up to the next
    event of any kind; a custom event without one is left out, since it may cover steps that were taken."""
    life = life[life["kind"].isin(RECORDED) & life["start_ns"].notna()]
    unended = life["end_ns"].isna()
    life = life[~unended | (life["kind"] != "custom")]
    start = _ns(life["start_ns"])
    never = life["end_ns"].isna().to_numpy()
    following = np.searchsorted(signs, start, side="right")
    end = np.where(never, signs[np.minimum(following, len(signs) - 1)], _ns(life["end_ns"].fillna(0)))
    kind = life["kind"].astype(str).to_numpy()
    return {k: spans(start[kind == k], end[kind == k]) for k in np.unique(kind)}, int(unended.sum())


def _step_ends(steps: pd.DataFrame, starts: np.ndarray, ends: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Where each step ends. The last of a segment, if nothing tells: after a usual step, but not past the next
    start of the job, its end, or, where it was interrupted, the last sign of life."""
    start = _ns(steps["start_ns"])
    known = steps["dur_ns"].notna().to_numpy()
    dur = _ns(steps["dur_ns"].fillna(0))
    usual = int(np.median(dur[known & ~steps["first"].to_numpy(dtype=bool)])) if (known & ~steps["first"]).any() else 0
    after = np.append(starts, np.iinfo(np.int64).max)[np.searchsorted(starts, start, side="right")]
    ending = np.append(np.sort(ends), np.iinfo(np.int64).max)[np.searchsorted(np.sort(ends), start, side="right")]
    clean = ending <= after
    last_sign = signs[np.maximum(np.searchsorted(signs, after, side="left") - 1, 0)]
    kept = steps["kept"].to_numpy(dtype=bool)
    limit = np.where(clean, ending, np.where(kept & (after < np.iinfo(np.int64).max), after, last_sign))
    return np.where(known, np.minimum(start + dur, after), np.minimum(start + usual, np.maximum(limit, start)))


def _first_step_starts(steps: pd.DataFrame) -> Spans:
    """The part of each segment's first step beyond the median of its other steps (of all steps, if it has none)."""
    dur = _ns(steps["end_ns"]) - _ns(steps["start_ns"])
    first = steps["first"].to_numpy(dtype=bool)
    segment = steps["segment"].to_numpy(dtype=np.int64)
    if not (~first).any():
        return spans()
    usual = pd.Series(dur[~first]).groupby(segment[~first]).median()
    expected = pd.Series(segment[first]).map(usual).fillna(float(np.median(dur[~first]))).to_numpy()
    start = _ns(steps["start_ns"])[first]
    return spans(start, start + dur[first] - expected.astype(np.int64))


def _inside(loading: Spans, steps: pd.DataFrame) -> np.ndarray:
    """Which fetches began inside a step."""
    if not len(steps):
        return np.zeros(len(loading.start), dtype=bool)
    order = np.argsort(_ns(steps["start_ns"]), kind="stable")
    start, end = _ns(steps["start_ns"])[order], _ns(steps["end_ns"])[order]
    at = np.searchsorted(start, loading.start, side="right") - 1
    return (at >= 0) & (loading.start < end[np.maximum(at, 0)])


def _attempts(
    starts: np.ndarray, ends: np.ndarray, signs: np.ndarray, steps: pd.DataFrame
) -> tuple[Spans, Spans, Spans, tuple[Interruption, ...]]:
    """Attempts with their recoveries, the gaps after a finished job, and the interruptions."""
    window_end, recovery, gaps, interruptions = [], [], [], []
    step_end = _ns(steps["end_ns"])
    step_start = _ns(steps["start_ns"])
    for k, start in enumerate(starts):
        following = int(starts[k + 1]) if k + 1 < len(starts) else None
        mine = (step_start >= start) & (step_start < (following if following is not None else np.iinfo(np.int64).max))
        seen = signs[(signs >= start) & (signs < following)] if following is not None else signs[signs >= start]
        last = int(max([start, *seen[-1:], *step_end[mine]]))
        finished = ends[(ends >= start) & (ends <= (following if following is not None else np.iinfo(np.int64).max))]
        if following is None:
            window_end.append(int(finished[-1]) if len(finished) else last)
        elif len(finished):
            window_end.append(int(finished[-1]))
            gaps.append((int(finished[-1]), following))
        else:
            last = min(last, following)
            window_end.append(following)
            recovery.append((last, following))
            numbers = steps["step"].to_numpy(dtype=np.int64)
            resumed = numbers[step_start >= following]
            lost = mine & ~steps["kept"].to_numpy(dtype=bool)
            interruptions.append(
                Interruption(
                    attempt=k,
                    last_sign_ns=last,
                    restart_ns=following,
                    last_step=int(numbers[mine][-1]) if mine.any() else None,
                    resumed_step=int(resumed[0]) if len(resumed) else None,
                    wasted_steps=int(lost.sum()),
                )
            )
    return spans(starts, window_end), _pairs(recovery), _pairs(gaps), tuple(interruptions)


def _pairs(pairs: list[tuple[int, int]]) -> Spans:
    return spans([a for a, _ in pairs], [b for _, b in pairs])


def _custom(life: pd.DataFrame, painting: Painting) -> dict[str, Spans]:
    """Instants under the heading `custom` by event name; where two overlap, the name that came first has them."""
    won = painting.spans(CODE["custom"])
    events = life[life["kind"] == "custom"].dropna(subset=["start_ns", "end_ns"]).sort_values("start_ns", kind="stable")
    label = events["detail"].fillna("unnamed").astype(str)
    start, end = _ns(events["start_ns"]), _ns(events["end_ns"])
    first, last = int(painting.edges[0]), int(painting.edges[-1])
    lost = paint(first, last, [(1, won)]).spans(0)
    names = list(dict.fromkeys(label))
    layers = [(i + 1, spans(start[label == n], end[label == n])) for i, n in enumerate(names)]
    by_name = paint(first, last, [*layers[::-1], (0, lost)])
    return {n: by_name.spans(i + 1) for i, n in enumerate(names) if len(by_name.spans(i + 1).start)}
