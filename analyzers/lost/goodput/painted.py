"""A job's calendar painted by bucket, and what it says of attempts and of goodput over time."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.intervals import Painting, Spans, paint
from analyzers.lost.goodput.buckets import ASYNC, BUCKET, BUCKETS, CUSTOM
from analyzers.time.calendar import CODE, HEADINGS, Calendar

OUTSIDE, KEPT, CUSTOM_CODE = CODE["outside"], CODE["kept"], CODE["custom"]


@dataclass(frozen=True)
class Painted:
    """A painting whose labels are HEADINGS and, from len(HEADINGS) on, `names` of custom events."""

    painting: Painting
    names: tuple[str, ...]

    @property
    def labels(self) -> int:
        return len(HEADINGS) + len(self.names)

    def until(self, at: np.ndarray) -> np.ndarray:
        """Nanoseconds of each label up to each instant: one row per instant, one column per label."""
        edges, label, width = self.painting.edges, self.painting.label, self.painting.width
        cell = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(label) - 1)
        into = np.clip(at, edges[0], edges[-1]) - edges[cell]
        out = np.zeros((len(at), self.labels), dtype=np.int64)
        for code in np.unique(label):
            here = label == code
            before = np.cumsum(np.where(here, width, 0)) - np.where(here, width, 0)
            out[:, code] = before[cell] + np.where(here[cell], into, 0)
        return out

    def only(self, keep: Spans) -> "Painted":
        """The same with all that lies outside `keep` labelled as outside."""
        edges = self.painting.edges
        lost = paint(int(edges[0]), int(edges[-1]), [(1, keep)]).spans(0)
        cuts = np.clip(np.concatenate((lost.start, lost.end)), edges[0], edges[-1])
        new = np.unique(np.concatenate((edges, cuts)))
        label = self.painting.label[np.clip(np.searchsorted(edges, new[:-1], side="right") - 1, 0, None)]
        inside = np.searchsorted(lost.start, new[:-1], side="right") > np.searchsorted(lost.end, new[:-1], side="right")
        return Painted(Painting(new, np.where(inside, OUTSIDE, label)), self.names)


def painted(days: Calendar) -> Painted:
    """The calendar's painting with custom events told apart, by name in capitals as the library has them."""
    names = tuple(dict.fromkeys(n.upper() for n in days.custom))
    layers = [(len(HEADINGS) + names.index(n.upper()), x) for n, x in days.custom.items()]
    if not layers:
        return Painted(days.painting, ())
    edges, label = days.painting.edges, days.painting.label
    cuts = np.unique(np.concatenate((edges, *(np.concatenate(x) for _, x in layers))))
    label = label[np.searchsorted(edges, cuts[:-1], side="right") - 1]
    for code, x in layers:
        here = np.searchsorted(x.start, cuts[:-1], side="right") > np.searchsorted(x.end, cuts[:-1], side="right")
        label = np.where(here, code, label)
    return Painted(Painting(cuts, label), names)


def by_attempt(days: Calendar, held: Painted) -> pd.DataFrame:
    """One row per attempt, up to the start of the next."""
    start, end = days.attempts
    ns = held.until(end) - held.until(start)
    rows = {
        "attempt": np.arange(len(start)),
        "start_ns": start,
        "end_ns": end,
        "outcome": np.where(days.finished, "finished", "interrupted").astype(object),
    }
    if not days.ended[-1]:
        rows["outcome"][-1] = "no end recorded"
    at = days.steps["start_ns"].to_numpy(dtype=np.int64)
    number = days.steps["step"].to_numpy(dtype=np.int64, na_value=-1)
    begin, after = np.searchsorted(at, start), np.searchsorted(at, np.append(start[1:], np.iinfo(np.int64).max))
    some = after > begin
    for name, where in (("first_step", begin), ("last_step", after - 1)):
        values = np.append(number, -1)[np.clip(where, 0, len(number))]
        rows[name] = pd.array(np.where(some, values, -1), dtype="Int64")
    table = pd.DataFrame(rows)
    table.loc[~some, ["first_step", "last_step"]] = pd.NA
    seconds = in_columns(ns)
    table["goodput_share"] = np.divide(
        seconds["productive"], seconds["total_s"], out=np.full(len(start), np.nan), where=seconds["total_s"] > 0
    )
    return pd.concat((table, pd.DataFrame(seconds).rename(columns={"productive": "productive_s"})), axis=1)


def in_columns(ns: np.ndarray) -> dict[str, np.ndarray]:
    """Seconds by `productive`, bucket and `total_s` from rows of nanoseconds by label."""
    out = {"productive": ns[:, KEPT] / 1e9}
    for bucket in BUCKETS:
        if bucket == CUSTOM:
            named = ns[:, [CUSTOM_CODE, CODE["eval"], CODE["hang"]]].sum(axis=1)
            out[bucket] = (named + ns[:, len(HEADINGS) :].sum(axis=1)) / 1e9
        elif bucket != ASYNC:
            out[bucket] = ns[:, [CODE[h] for h, b in BUCKET.items() if b == bucket]].sum(axis=1) / 1e9
    out["total_s"] = (ns.sum(axis=1) - ns[:, OUTSIDE]) / 1e9
    return out


def over_time(held: Painted, start: int, end: int, bins: int, rolling_s: float) -> pd.DataFrame:
    """Seconds by bucket in equal stretches, and the shares up to the end of each: from the start, and rolling."""
    bins = max(1, min(bins, end - start))
    edges = start + (np.arange(bins + 1) * ((end - start) / bins)).astype(np.int64)
    edges[-1] = end
    until = held.until(edges)
    back = held.until(np.maximum(edges[1:] - round(rolling_s * 1e9), start))
    table = pd.DataFrame({"start_ns": edges[:-1], "end_ns": edges[1:], **in_columns(np.diff(until, axis=0))})
    for name, ns in (
        ("share", np.diff(until, axis=0)),
        ("cumulative_share", until[1:] - until[0]),
        ("rolling_share", until[1:] - back),
    ):
        total = ns.sum(axis=1) - ns[:, OUTSIDE]
        table[name] = np.divide(ns[:, KEPT], total, out=np.full(bins, np.nan), where=total > 0)
    return table
