"""The calendar of a job: every instant from its first start to its last sign of life under one heading.

Headings, later ones winning where they overlap:

    other                      inside an attempt, but nothing says what it was
    infrastructure_recovery    after the last sign of life of an interrupted attempt, until the next starts or the chips
                               were given back, or, of the last, for as long as its ranks waited before it was given
                               up (`stood.py`); inside an attempt from the last step before steps are taken again until
                               the first of those
    wasted_progress / kept     steps, by whether a later segment took them again
    hang                       what a step that hung (analyzers.time.hangs) took beyond a usual one
    program_startup            the first step of a segment beyond the median of its other steps
    data_loading ... elastic   intervals that the job recorded; inside a step, fetching data is left to the step,
                               because only a profile can tell whether the device waited for it

Chips are held from each start of the job to its end, or, where it was interrupted and nothing tells when that took the
chips from it, to its next start; of the last attempt to its last sign of life, or until its ranks gave up waiting.
Waiting for
machines (`queued`) is no part of it: nothing is held, and it is no sign of life.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analyzers.intervals import Painting, Spans, common, paint, spans
from analyzers.time.attempts import NEVER, Interruption, as_ns, attempts_of, interruptions_of
from analyzers.time.history import History
from analyzers.time.job_times import Jobs, from_the_future, job_times, of_the_job
from analyzers.time.stood import stood_until
from analyzers.time.whole_seconds import SECOND_NS
from runs.tables import Tables, frame

# in painting order: a later heading wins
HEADINGS = (
    "outside",
    "other",
    "infrastructure_recovery",
    "kept",
    "wasted_progress",
    "hang",
    "program_startup",
    "data_loading",
    "training_preparation",
    "accelerator_initialization",
    "eval",
    "custom",
    "checkpoint_save",
    "checkpoint_restore",
    "elastic_reinitialization",
    "elastic_scale_up",
    "elastic_slice_down",
)
CODE = {name: i for i, name in enumerate(HEADINGS)}
RECORDED = HEADINGS[CODE["data_loading"] :]
INSIDE_STEPS = ("custom", "checkpoint_save")  # what has no end there may cover steps that were taken
RECENT, SOON = 10, 1.5  # steps that tell a usual one; how many usual steps later is still the same step
NO_STEP_READ = "no step was read"


@dataclass(frozen=True)
class Calendar:
    """`painting` labels each instant with an index into HEADINGS; `outside` lies between a job's end and its rerun.

    `custom`: instants of each custom event, where the heading `custom` won. `loading_in_steps`: fetches inside steps.
    `open_ended`: recorded intervals that have no end. `attempts`: from each start of the job to its end or to the next
    start. `finished`: whether each of them ended by itself; `ended`: whether its end was recorded, be it that something
    cut it short. `last_sign_ns`: the last event or step end of each.
    `steps`: rows of the history that have a time of day, in order of time, with `end_ns`.
    `notes`: what was left out, and why. `why_no_steps`: where `steps` holds none.
    """

    painting: Painting
    custom: dict[str, Spans]
    loading_in_steps: Spans
    interruptions: tuple[Interruption, ...]
    open_ended: int
    attempts: Spans
    finished: np.ndarray
    ended: np.ndarray
    last_sign_ns: np.ndarray
    steps: pd.DataFrame
    notes: tuple[str, ...] = ()
    why_no_steps: str = ""

    @property
    def start_ns(self) -> int:
        return int(self.painting.edges[0])

    @property
    def end_ns(self) -> int:
        return int(self.painting.edges[-1])


def calendar(tables: Tables, past: History, now_ns: int | None = None) -> Calendar | None:
    """The calendar, or None where no input gives the job times of day.

    `now_ns`: what lies after it is not looked at, and a job that has not ended is taken to hold its chips until then.
    """
    life, notes = _events(tables, past, now_ns)
    steps = _timed_steps(past)
    jobs = past.jobs or job_times(tables, now_ns)
    life, offline = _without_offline(life, steps, jobs, past.averaged)
    if not len(steps) and not life["start_ns"].notna().any():
        return None
    times = [steps["start_ns"], life["start_ns"], life["end_ns"]]
    if past.origin == "step lines":
        times.append(steps["start_ns"] + steps["dur_ns"])
    signs = np.sort(np.concatenate([as_ns(t.dropna()) for t in times]), kind="stable")
    signs = signs[~np.isin(signs, np.setdiff1d(jobs.cut, jobs.starts))] if len(jobs.cut) else signs
    if len(jobs.starts) == 0 or jobs.starts[0] > signs[0]:
        jobs = replace(jobs, starts=np.concatenate(([signs[0]], jobs.starts)))

    recorded, open_ended = _recorded(life, signs, jobs.starts)
    steps = steps.assign(end_ns=_step_ends(steps, jobs, signs))
    attempts = attempts_of(jobs, signs, steps, now_ns)
    ended = now_ns is not None or attempts.ended[-1]
    if not ended and (given_up := stood_until(tables, past, int(attempts.last[-1]))) is not None:
        attempts = attempts.until(given_up)
    loading = recorded.pop("data_loading", spans())
    inside = _inside(loading, steps)
    kept = steps["kept"].to_numpy(dtype=bool)
    layers = [
        ("other", attempts.windows),
        ("infrastructure_recovery", _gaps_inside(steps)),
        ("infrastructure_recovery", attempts.recovery),
        ("kept", _spans(steps, kept)),
        ("wasted_progress", _spans(steps, ~kept)),
        ("hang", _hangs(steps)),
        ("program_startup", _first_step_starts(steps)),
        ("data_loading", spans(loading.start[~inside], loading.end[~inside])),
        *((kind, recorded[kind]) for kind in RECORDED if kind in recorded),
        ("outside", attempts.between),
    ]
    final = int(attempts.windows.end.max(initial=jobs.starts[0] + 1))
    painting = paint(int(jobs.starts[0]), final, [(CODE[kind], x) for kind, x in layers], ground=CODE["other"])
    return Calendar(
        painting=painting,
        custom=_custom(life, painting),
        loading_in_steps=spans(loading.start[inside], loading.end[inside]),
        interruptions=interruptions_of(attempts, steps),
        open_ended=open_ended,
        attempts=Spans(jobs.starts, attempts.end),
        finished=attempts.finished,
        ended=attempts.ended,
        last_sign_ns=attempts.last,
        steps=steps,
        notes=(*past.notes, *notes, *offline),
        why_no_steps="" if len(steps) else why_no_steps(past),
    )


def why_no_steps(past: History) -> str:
    """Why a calendar has no steps, as a clause."""
    if not len(past.rows):
        return NO_STEP_READ
    if past.origin == "profile":
        return f"only a profile shows steps, {len(past.rows):,} of them"
    return "the steps that were read carry no times of day"


def no_steps(past: History) -> str:
    """What a note says of a calendar without steps."""
    why = why_no_steps(past)
    dated = "with dates" if len(past.rows) and past.origin != "profile" else "that prints its steps"
    return (
        f"{why[0].upper()}{why[1:]}: which part of the time held went into steps, and which of them were kept, "
        f"cannot be told. Add a log {dated}, or the job's goodput log."
    )


def between_said(days: Calendar) -> str:
    """Why the time between a job's end and its next start is not counted."""
    if (days.ended & ~days.finished)[:-1].any():
        return "Between its attempts the job held no chips, as the scheduler tells: that time is not counted."
    return (
        "The job ended and was started again under the same name: the time between is not counted, as nothing says "
        "that the chips were held."
    )


def _spans(steps: pd.DataFrame, mine: np.ndarray) -> Spans:
    return spans(as_ns(steps["start_ns"])[mine], as_ns(steps["end_ns"])[mine])


def _timed_steps(past: History) -> pd.DataFrame:
    steps = past.rows[past.rows["start_ns"].notna()] if past.origin != "profile" else past.rows[:0]
    if (np.diff(as_ns(steps["start_ns"])) < 0).any():
        steps = steps.sort_values("start_ns", kind="stable")
    return steps.reset_index(drop=True)


def _events(tables: Tables, past: History, now_ns: int | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """What the job recorded of itself, by its own clock, times that cannot be cleared, and what was cleared.

    A host's own fetches belong to its profile. What else hosts tell one by one blocks the job for as long as any of
    them was blocked.
    """
    columns = ["kind", "start_ns", "end_ns", "host", "detail", "logged_ns", "end_logged_ns"]
    elsewhere = past.shifts or past.strangers
    life = frame(tables, "lifecycle", [*columns, "source"] if elsewhere else columns)
    if elsewhere:
        life = of_the_job(life, past.shifts, past.strangers)
    kind = life["kind"].astype("category").cat
    of_host = life["host"].notna().to_numpy()
    dropped = np.array([k == "queued" for k in kind.categories] + [True])[kind.codes]
    loading = np.array([k == "data_loading" for k in kind.categories] + [False])[kind.codes]
    life = life[~dropped & ~(of_host & loading)]
    notes, false = [], 0
    for at, logged in (("start_ns", "logged_ns"), ("end_ns", "end_logged_ns")):
        told = life[at].notna().to_numpy()
        bad = from_the_future(life.loc[told, at], life.loc[told, logged])
        false += int(bad.sum())
        late = as_ns(life.loc[told, at]) > now_ns if now_ns is not None else np.zeros(len(bad), dtype=bool)
        if (bad | late).any():
            life.loc[life.index[told][bad | late], at] = pd.NA
    if false:
        notes.append(
            f"{false:,} {'event names' if false == 1 else 'events name'} a time more than a minute after "
            "being written: left out."
        )
    return life, tuple(notes)


def _without_offline(
    life: pd.DataFrame, steps: pd.DataFrame, jobs: Jobs, averaged: bool
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Events without the evaluations that held nothing up, and how many those were: during which the job took whole
    steps (told one by one: times that are means hide where a pause was), or which began after it had ended."""
    of_eval = (life["kind"] == "eval").to_numpy(dtype=bool) & life["start_ns"].notna().to_numpy()
    if not of_eval.any():
        return life, ()
    start, end = as_ns(life["start_ns"][of_eval]), as_ns(life["end_ns"][of_eval].fillna(0))
    timed = steps[steps["dur_ns"].notna()]
    begun, done = as_ns(timed["start_ns"]), as_ns(timed["start_ns"]) + as_ns(timed["dur_ns"])
    rounded = np.where(end % SECOND_NS == 0, SECOND_NS, 0)  # of stamps to the second, steps may lie so much beside
    beside = np.append(done, NEVER)[np.searchsorted(begun, start + rounded)] <= end - rounded
    beside &= not averaged
    after = np.searchsorted(jobs.starts, start) == len(jobs.starts)
    after &= (start >= (jobs.ends[-1] if len(jobs.ends) else NEVER)) & (start >= begun.max(initial=0))
    out = beside | after
    if not out.any():
        return life, ()
    lasted = float(np.maximum(end - start, 0)[out].sum()) / 1e9
    count = int(out.sum())
    said = (
        f"{count:,} {'evaluation' if count == 1 else 'evaluations'} ran offline, while steps were taken or after "
        f"the job had ended ({lasted:,.1f} s in all): none of it is time that the job lost."
    )
    return life.drop(index=life.index[of_eval][out]), (said,)


def _recorded(life: pd.DataFrame, signs: np.ndarray, starts: np.ndarray) -> tuple[dict[str, Spans], int]:
    """Recorded intervals by heading, and how many never ended. A phase without an end is entered up to the next event
    of its attempt; where there is none, nothing tells when it ended. A custom event or a save without an end is left
    out, since it may cover steps that were taken."""
    kind = life["kind"].astype("category").cat
    code = np.array([CODE.get(k, -1) if k in RECORDED else -1 for k in kind.categories] + [-1])[kind.codes]
    started = (code >= 0) & life["start_ns"].notna().to_numpy()
    never = life["end_ns"].isna().to_numpy()
    unended = int((started & never).sum())
    mine = started & ~(never & np.isin(code, [CODE[k] for k in INSIDE_STEPS]))
    start, never = as_ns(life["start_ns"][mine]), never[mine]
    end = as_ns(life["end_ns"][mine].fillna(0))
    if never.any():
        begun = start[never]
        following = np.append(signs, NEVER)[np.searchsorted(signs, begun, side="right")]
        next_start = np.append(starts, NEVER)[np.searchsorted(starts, begun, side="right")]
        end[never] = np.where(following < next_start, following, begun)
    code = code[mine]
    return {HEADINGS[k]: spans(start[code == k], end[code == k]) for k in np.unique(code)}, unended


def _step_ends(steps: pd.DataFrame, jobs: Jobs, signs: np.ndarray) -> np.ndarray:
    """Where each step ends. The last of a segment, if nothing tells: after a usual step (the median of the ten before
    it), but not past the next step, the next start of the job, or its end; and not past the last sign of life, unless
    the job went on after this step or ended by itself: both prove that the step was done. Where the job ended soon
    after a usual step, it ended with that step."""
    start = as_ns(steps["start_ns"])
    known = steps["dur_ns"].notna().to_numpy()
    end = start + as_ns(steps["dur_ns"].fillna(0))
    first, kept = steps["first"].to_numpy(dtype=bool), steps["kept"].to_numpy(dtype=bool)
    next_start = np.append(jobs.starts, NEVER)[np.searchsorted(jobs.starts, start, side="right")]
    if len(jobs.cut):
        next_start = np.minimum(next_start, np.append(jobs.cut, NEVER)[np.searchsorted(jobs.cut, start, side="right")])
    end, own_ends = np.minimum(end, next_start), jobs.own_ends
    if not known.all():
        at, after = start[~known], next_start[~known]
        ending = np.append(own_ends, NEVER)[np.searchsorted(own_ends, at, side="right")]
        last_sign = signs[np.maximum(np.searchsorted(signs, after, side="left") - 1, 0)]
        proven = kept[~known] & (after < NEVER)
        limit = np.where((ending <= after) & (ending < NEVER), ending, np.where(proven, after, last_sign))
        limit = np.minimum(limit, np.append(start[1:], NEVER)[~known])
        usual = _usual_before(end - start, known & ~first, np.flatnonzero(~known))
        with_it = (ending <= after) & (limit == ending) & (ending - at <= SOON * usual)
        end[~known] = np.where(with_it, ending, np.minimum(at + usual, np.maximum(limit, at)))
    return end


def _usual_before(took: np.ndarray, usual: np.ndarray, at: np.ndarray) -> np.ndarray:
    """For each position the median of the last ten steps before it that are `usual`; of all, where there are fewer."""
    known = took[usual]
    before = np.concatenate(([0], np.cumsum(usual)))[at]
    out = np.full(len(at), int(np.median(known)) if len(known) else 0, dtype=np.int64)
    some = before >= RECENT
    if some.any():
        out[some] = np.median(known[before[some][:, None] - np.arange(1, RECENT + 1)], axis=1).astype(np.int64)
    return out


def startup_ns(steps: pd.DataFrame, took: np.ndarray) -> np.ndarray:
    """For each step that took so many ns, how long it started up: what the first of a segment takes beyond the median
    of its other steps (of all steps, if it has none); 0 for all others, and where there are no others."""
    first = steps["first"].to_numpy(dtype=bool)
    segment = steps["segment"].to_numpy(dtype=np.int64)
    out = np.zeros(len(steps), dtype=np.int64)
    if first.all():
        return out
    usual = pd.Series(took[~first]).groupby(segment[~first]).median()
    expected = pd.Series(segment[first]).map(usual).fillna(float(np.median(took[~first]))).to_numpy()
    out[first] = np.maximum(took[first] - expected.astype(np.int64), 0)
    return out


def _first_step_starts(steps: pd.DataFrame) -> Spans:
    """The first part of each step that started up."""
    start = as_ns(steps["start_ns"])
    return spans(start, start + startup_ns(steps, as_ns(steps["end_ns"]) - start))


def _hangs(steps: pd.DataFrame) -> Spans:
    """The last part of each step that hung."""
    end = as_ns(steps["end_ns"])
    return spans(np.maximum(end - as_ns(steps["hung_ns"]), as_ns(steps["start_ns"])), end)


def _gaps_inside(steps: pd.DataFrame) -> Spans:
    """From the end of the last step before steps are taken again inside an attempt to the first of those."""
    start, end = as_ns(steps["start_ns"]), as_ns(steps["end_ns"])
    attempt = steps["attempt"].to_numpy(dtype=np.int64, na_value=0)
    number = steps["step"].to_numpy(dtype=np.int64, na_value=-1)
    back = np.flatnonzero((np.diff(attempt) == 0) & (np.diff(number) <= 0))
    return spans(end[back], start[back + 1])


def _inside(loading: Spans, steps: pd.DataFrame) -> np.ndarray:
    """Which fetches began inside a step."""
    if not len(steps):
        return np.zeros(len(loading.start), dtype=bool)
    start, end = as_ns(steps["start_ns"]), as_ns(steps["end_ns"])
    at = np.searchsorted(start, loading.start, side="right") - 1
    return (at >= 0) & (loading.start < end[np.maximum(at, 0)])


def _custom(life: pd.DataFrame, painting: Painting) -> dict[str, Spans]:
    """Instants under the heading `custom` by event name; where two overlap, the event that began first has them."""
    events = life[(life["kind"] == "custom").to_numpy(dtype=bool)]
    events = events.dropna(subset=["start_ns", "end_ns"]).sort_values("start_ns", kind="stable")
    start, end = as_ns(events["start_ns"]), as_ns(events["end_ns"])
    taken = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1])) if len(end) else end
    begin = np.maximum(start, taken)
    code, names = pd.factorize(events["detail"].fillna("unnamed").astype(str))
    mine = end > begin
    piece, owner = common(Spans(begin[mine], end[mine]), painting.spans(CODE["custom"]))
    code = code[mine][owner]
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    parts = ((n, order[a:b]) for n, a, b in zip(names, bounds[:-1], bounds[1:], strict=True) if b > a)
    return {str(n): Spans(piece.start[at], piece.end[at]) for n, at in parts}
