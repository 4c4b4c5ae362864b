"""What one input lends another: step lines their numbers to marked steps, a profile its times to lines without any."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analyzers.time.step_streams import NS_PER_S

LENT = ("dur_ns", "tokens_per_s_per_chip", "model_flops_per_chip", "loss")
NEAR_NS = 60 * NS_PER_S  # a line tells of the mark of its step that lies so near, or within the step's own duration
SPEED = 0.5  # a profile saw the steps of a log if they took as long, within this share
DRIFT = 0.2  # two captures lie in one stretch of lines if the time between them is that of the lines, within this


def add_lines(steps: pd.DataFrame, lines: pd.DataFrame) -> None:
    """Give each marked step what its step line printed: the line nearest in time, else the line at the same place.

    Without times both are in order: a stretch of lines begins at the first marked step of its number after the stretch
    before, in a later attempt if it is one, and goes on for as long as both do, restarts at the next step included.
    """
    if not len(lines):
        return
    pairs = _nearest(steps, lines) if lines["start_ns"].notna().all() else np.zeros((0, 2), dtype=np.int64)
    if len(pairs) < len(lines) / 2:
        pairs = np.concatenate([*_in_order(steps, lines), np.zeros((0, 2), dtype=np.int64)])
    for column in LENT:
        steps.loc[steps.index[pairs[:, 0]], column] = lines[column].iloc[pairs[:, 1]].array


def _nearest(steps: pd.DataFrame, lines: pd.DataFrame) -> np.ndarray:
    """(place of a mark, place of the line nearest to it) of the same step."""
    columns = {
        name: x.to_numpy(dtype=np.int64)
        for name, x in (
            ("mark", steps["step"]),
            ("at", steps["start_ns"]),
            ("line", lines["step"]),
            ("then", lines["start_ns"]),
            ("took", lines["dur_ns"]),
        )
    }
    marks = pd.DataFrame({"step": columns["mark"], "at": columns["at"], "mark": np.arange(len(steps))})
    told = pd.DataFrame({"step": columns["line"], "at": columns["then"], "line": np.arange(len(lines))})
    both = pd.merge_asof(
        marks.sort_values("at", kind="stable"),
        told.sort_values("at", kind="stable"),
        on="at",
        by="step",
        direction="nearest",
    ).dropna(subset="line")
    mark, line = (both[c].to_numpy(dtype=np.int64) for c in ("mark", "line"))
    apart = np.abs(columns["then"][line] - columns["at"][mark])
    order = np.argsort(apart, kind="stable")
    order = order[(apart <= np.maximum(columns["took"][line], NEAR_NS))[order]]
    _, first = np.unique(line[order], return_index=True)  # of several marks that a line lies near, the nearest
    return np.column_stack((mark[order][first], line[order][first]))


def _in_order(steps: pd.DataFrame, lines: pd.DataFrame) -> Iterator[np.ndarray]:
    """The same by place alone, stretch by stretch of lines."""
    mark, line = (x["step"].to_numpy(dtype=np.int64) for x in (steps, lines))
    segment = steps["segment"].to_numpy(dtype=np.int64)
    by_step = np.argsort(mark, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(mark) <= 0) + 1, len(mark))
    opens = np.flatnonzero(np.diff(lines["segment"].to_numpy(dtype=np.int64), prepend=-1))
    after, used = 0, -1
    for a, b in zip(opens, np.append(opens[1:], len(line)), strict=True):
        low, high = np.searchsorted(mark[by_step], [line[a], line[a] + 1])
        at = by_step[low:high]
        at = at[at >= after]
        later = at[segment[at] > used] if a and line[a] != line[a - 1] + 1 else at
        at = later if len(later) else at
        if not len(at):
            continue
        run = mark[at[0] : ends[np.searchsorted(ends, at[0], side="right")]]
        where = np.searchsorted(run, line[a:b])
        same = run[np.minimum(where, len(run) - 1)] == line[a:b]
        pairs = np.column_stack((at[0] + where[same], np.arange(a, b)[same]))
        after, used = int(pairs[-1, 0]) + 1, int(segment[pairs[-1, 0]])
        yield pairs


def anchor(steps: pd.DataFrame, seen: pd.DataFrame) -> bool:
    """Give untimed step lines times of day: their durations laid end to end, each stretch so that the steps that a
    capture saw start when they did there. Returns whether any capture did.

    A capture saw one stretch: the last that holds its steps and took as long for them, but for those that later
    captures saw. A stretch that none saw follows the one before it (the first ones end where the next begins), and
    none begins before the one before it has ended.
    """
    took = steps["dur_ns"].to_numpy(dtype=np.int64)
    laid = np.cumsum(took) - took
    segment = steps["segment"].to_numpy(dtype=np.int64)
    number = steps["step"].to_numpy(dtype=np.int64)
    shifts: dict[int, int] = {}
    limit = int(segment.max())
    for _, one in sorted(seen.groupby("capture"), key=lambda x: -int(x[1]["start_ns"].min())):
        starts = one.drop_duplicates("step").set_index("step")
        held = np.isin(number, starts.index)
        for k in np.unique(segment[held & (segment <= limit)])[::-1].tolist():
            mine = np.flatnonzero((segment == k) & held)
            if not _as_fast(took[mine], starts["dur_ns"].reindex(number[mine])):
                continue
            gap = np.sort(starts["start_ns"].reindex(number[mine]).to_numpy(dtype=np.int64) - laid[mine])
            shift = int(gap[len(gap) // 2])
            if k in shifts and abs(shift - shifts[k]) > DRIFT * took[segment == k].sum():
                continue  # the same numbers at another time: an earlier attempt's
            shifts.setdefault(k, shift)
            limit = k
            break
    if not shifts:
        return False
    steps["start_ns"] = pd.array(laid + _in_turn(shifts, int(segment.max()) + 1)[segment], dtype="Int64")
    return True


def _as_fast(took: np.ndarray, seen: pd.Series) -> bool:
    known = seen.notna().to_numpy() & (took > 0)
    if not known.any():
        return True
    ratio = seen.to_numpy(dtype=float, na_value=np.nan)[known] / took[known]
    return bool(abs(float(np.median(ratio)) - 1) <= SPEED)


def _in_turn(shifts: dict[int, int], stretches: int) -> np.ndarray:
    """How far each stretch, laid end to end with the others, is moved: never less than the one before it, so that none
    begins before that has ended."""
    first = min(shifts)
    out = np.full(stretches, shifts[first], dtype=np.int64)
    for k in range(first + 1, stretches):
        out[k] = max(out[k - 1], shifts.get(k, out[k - 1]))
    return out
