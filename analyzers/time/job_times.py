"""When the job was started and when it ended, by whoever of several inputs and hosts told of it, and by which clock."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from analyzers.time.source_clocks import NEAR_NS, meeting
from analyzers.time.step_streams import NS_PER_S
from runs.tables import Tables, frame

AHEAD_NS = 60 * NS_PER_S  # an event named this much later than it was written cannot be: its clock was wrong
APART_FROM_STEPS = ("queued", "data_loading")  # waiting for machines may end long before; a profile tells its fetches
BEFORE_STEPS = ("accelerator_initialization", "training_preparation", "checkpoint_restore")
NEVER = np.iinfo(np.int64).max
NONE = np.zeros(0, dtype=np.int64)
CUT_SHORT = '"outcome": "interrupted"'  # in the detail of a job's row: something ended it before it was done
BY_SCHEDULER = '"scheduler": '  # likewise: who gave it the machines tells of it
ONE_START_NS = 300 * NS_PER_S  # two inputs that tell of a start within this time, no step between, tell of one start


@dataclass(frozen=True)
class Jobs:
    """When the job was started and when it ended: sorted, without repeats, ns since the epoch. `cut`: those of the ends
    at which a scheduler says that something cut it short."""

    starts: np.ndarray
    ends: np.ndarray
    cut: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def own_ends(self) -> np.ndarray:
        """Ends to which the job came by itself."""
        return np.setdiff1d(self.ends, self.cut)


def job_times(
    tables: Tables,
    now_ns: int | None = None,
    shifts: Mapping[str, int] | None = None,
    without: tuple[str, ...] = (),
    step_ns: np.ndarray | None = None,
) -> Jobs:
    """Starts and ends of the job itself, up to `now_ns`, each once, whoever of several inputs and hosts told of it.

    `shifts`, `without`: see History. `step_ns`: when steps began: two starts with a step between them are two.
    """
    columns = ["kind", "start_ns", "end_ns", "host", "source", "logged_ns", "end_logged_ns", "detail"]
    rows = frame(tables, "lifecycle", columns, [("kind", "==", "job")])
    rows = rows[~rows["source"].isin(list(without))]
    of_host, source = rows["host"].notna(), rows["source"].astype(str)
    of_part = of_host & source.isin(source[~of_host])  # the input tells of the job as a whole, too
    rows = rows.assign(cut=rows["detail"].astype(str).str.contains(CUT_SHORT, regex=False))
    found, cut = [], np.zeros(0, dtype=np.int64)
    for at, logged in (("start_ns", "logged_ns"), ("end_ns", "end_logged_ns")):
        told = rows[rows[at].notna() & ((at == "start_ns") | ~of_part)]
        told = told[~from_the_future(told[at], told[logged])]
        times = moved(told, at, shifts)
        teller = pd.factorize(pd.MultiIndex.from_frame(told[["source", "host"]].astype(str)))[0]
        if at == "start_ns":
            times = _starts_once(times, teller, step_ns, _holds(told, times))
        else:
            cut = np.unique(times[told["cut"].to_numpy(dtype=bool)])
            times = np.unique(times)
        found.append(times if now_ns is None else times[times <= now_ns])
    starts, ends = found
    return Jobs(starts, ends, cut)


def _holds(told: pd.DataFrame, times: np.ndarray) -> np.ndarray:
    """Until when a scheduler says that it held the machines for the start in each row: nobody else starts the job
    meanwhile. Where no scheduler tells it, until ONE_START_NS later."""
    by = told["detail"].astype(str).str.contains(BY_SCHEDULER, regex=False).to_numpy(dtype=bool)
    ends = told["end_ns"].to_numpy(dtype=np.int64, na_value=NEVER)
    moved_by = np.where(ends < NEVER, times - told["start_ns"].to_numpy(dtype=np.int64), 0)
    return np.where(by, ends + moved_by, times + ONE_START_NS)


def moved(rows: pd.DataFrame, column: str, shifts: Mapping[str, int] | None) -> np.ndarray:
    """A column of times by the job's clock: each plus the shift of its row's source."""
    times = rows[column].to_numpy(dtype=np.int64)
    if not shifts:
        return times
    return times + rows["source"].astype(str).map(shifts).fillna(0).to_numpy(dtype=np.int64)


def of_the_job(
    rows: pd.DataFrame, shifts: Mapping[str, int] | None = None, without: Collection[str] = ()
) -> pd.DataFrame:
    """Rows of `lifecycle` by the job's clock, without those of inputs that are another job's. `shifts`, `without`: the
    shifts and the strangers of a History."""
    if without:
        rows = rows[~rows["source"].isin(list(without))]
    if not shifts:
        return rows
    by = rows["source"].astype(str).map(shifts).fillna(0).to_numpy(dtype=np.int64)
    return rows.assign(**{at: rows[at] + by for at in ("start_ns", "end_ns") if at in rows})


def _starts_once(times: np.ndarray, teller: np.ndarray, step_ns: np.ndarray | None, until: np.ndarray) -> np.ndarray:
    """Starts in order, without those that another teller told of shortly before (up to its `until`), no step having
    begun since."""
    if not len(times) or (teller == teller[0]).all():
        return np.unique(times)
    steps = np.sort(step_ns) if step_ns is not None else np.zeros(0, dtype=np.int64)
    order = np.argsort(times, kind="stable")
    before = np.searchsorted(steps, times[order], side="right").tolist()
    kept: list[int] = []
    told_by: set[int] = set()
    at_step = -1
    same = 0
    for at, who, reached, held in zip(
        times[order].tolist(), teller[order].tolist(), before, until[order].tolist(), strict=True
    ):
        if kept and at <= same and reached == at_step and who not in told_by:
            told_by.add(who)
            same = max(same, held) if held > at + ONE_START_NS else same
            continue
        kept.append(at)
        told_by, at_step, same = {who}, reached, held
    return np.unique(np.array(kept, dtype=np.int64))


def begun_times(
    tables: Tables, now_ns: int | None, shifts: Mapping[str, int] | None, without: tuple[str, ...]
) -> np.ndarray:
    """When what a job does before its first step began, sorted. `shifts`, `without`: see History."""
    where = [("kind", "in", BEFORE_STEPS)]
    rows = of_the_job(frame(tables, "lifecycle", ["kind", "start_ns", "source"], where), None, without)
    times = np.sort(moved(rows[rows["start_ns"].notna()], "start_ns", shifts))
    return times if now_ns is None else times[times <= now_ns]


def with_starts_told(
    starts: np.ndarray, step_ns: np.ndarray, attempt: np.ndarray, begun_ns: np.ndarray = NONE
) -> np.ndarray:
    """The starts, and of each further attempt before which, since the last step, none was recorded, its first sign:
    what it did before its first step, of `begun_ns`, else that step."""
    opens = np.flatnonzero(np.diff(attempt) > 0) + 1
    low, high = (np.searchsorted(starts, step_ns[at], side="right") for at in (opens - 1, opens))
    opens = opens[low == high]
    following = np.append(begun_ns, NEVER)[np.searchsorted(begun_ns, step_ns[opens - 1], side="right")]
    return np.unique(np.concatenate((starts, np.minimum(following, step_ns[opens]))))


def attempt_of(step_ns: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The attempt of each step, from 0: a job whose first start was cut off had begun before its first step."""
    cut_off = len(starts) == 0 or len(step_ns) > 0 and int(step_ns.min()) < int(starts[0])
    return np.searchsorted(starts, step_ns, side="right") - (0 if cut_off else 1)


def strangers(tables: Tables, known: tuple[str, ...], first_ns: int, last_ns: int) -> tuple[str, ...]:
    """Inputs that record events of the job but no step, and nothing at any moment of the time of the steps nor within
    an hour of it: their clock is another."""
    if tables.rows("lifecycle") == 0:
        return ()
    sources = set(pc.unique(tables.arrow("lifecycle", ["source"])["source"]).to_pylist()) - {None, *known}
    if not sources:
        return ()
    where = [("source", "in", sorted(sources)), ("kind", "not in", APART_FROM_STEPS)]
    life = frame(tables, "lifecycle", ["start_ns", "end_ns", "source"], where)
    ranges = {"": (first_ns - NEAR_NS, last_ns + NEAR_NS)}
    for name, one in life.groupby(life["source"].astype(str)):
        signs = one[["start_ns", "end_ns"]].stack().dropna()
        if len(signs):
            ranges[str(name)] = int(signs.min()), int(signs.max())
    return meeting(ranges)[1]


def told_apart(strangers: tuple[str, ...]) -> list[str]:
    if not strangers:
        return []
    return [
        f"{', '.join(strangers)}: what it records lies at no moment within an hour of the job's steps: timed by "
        "another clock or another job's, left out."
    ]


def from_the_future(times: pd.Series, logged: pd.Series) -> np.ndarray:
    """Which events name a time well after they were written. If the clock that names is ahead as a rule, by more than
    that rule."""
    ahead = times.to_numpy(dtype=np.int64) - logged.fillna(times).to_numpy(dtype=np.int64)
    if not len(ahead) or ahead.max() <= AHEAD_NS:
        return np.zeros(len(ahead), dtype=bool)
    return ahead > max(float(np.median(ahead)), 0.0) + AHEAD_NS
