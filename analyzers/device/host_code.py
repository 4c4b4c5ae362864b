"""In which function hosts were while devices stood idle for code that no event marks, from the calls of Python that a
profile holds."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.activity import activities
from analyzers.device.host_work import HOST_CODE, STEPS, ThreadWork
from analyzers.intervals import NOTHING, Spans, joined, length, outside, overlap_with, union
from runs.tables import Tables, frame

MOST = 0.5  # of the time: a function in which less passed is one of many
MOST_CAPTURES = 64
LONGEST = 80  # characters of a name that are told
_JAX = re.compile(r"^\$(?P<file><[^>\n]*>|[^\s]+?)(?::(?P<line>\d+))? (?P<function>[^\n]+)$")
_TORCH = re.compile(r"^(?P<file>[^\n]*\.py)\((?P<line>\d+)\): (?P<function>[^\n]*)$")


@dataclass(frozen=True)
class HotCode:
    """`function`: the innermost in which at least half of the time passed, `file` (empty: compiled code) and `line`:
    where it begins; `caller`: the innermost around it that is Python's, with its place. `share`: of that time."""

    function: str
    file: str
    line: int
    caller: "HotCode | None"
    share: float

    @property
    def text(self) -> str:
        place = f"{self.function} ({self.file}:{self.line})" if self.file else self.function
        return place if self.caller is None else f"{place}, called by {self.caller.text}"

    @property
    def places(self) -> list[str]:
        """`file:line` of each that has one, the innermost first."""
        mine = [f"{self.file}:{self.line}"] if self.file else []
        return mine + (self.caller.places if self.caller else [])


def hot_code(tables: Tables) -> HotCode | None:
    """None where no calls are in the profile, or where no function takes half of the time."""
    busy = _busy(tables)
    captures = frame(tables, "captures", ["capture", "host", "start_ns"]).dropna().head(MOST_CAPTURES)
    inside, whole = pd.Series(dtype=np.int64), 0
    for capture, host, start_ns in captures.itertuples(index=False):
        mine = ThreadWork(tables, int(capture), int(start_ns))
        work = mine.of(STEPS)
        if not work:
            continue
        marked = union(joined([*(s for kind, s in work.items() if kind != HOST_CODE), busy.get(str(host), NOTHING)]))
        idle = outside(work[HOST_CODE], marked)
        calls = mine.calls(STEPS)
        there = overlap_with(idle, Spans(calls["start"].to_numpy(), calls["end"].to_numpy()))
        inside = inside.add(pd.Series(there).groupby(calls["op"].to_numpy()).sum(), fill_value=0)
        whole += length(idle)
    return _hottest(inside / whole) if whole else None


def _hottest(share: pd.Series) -> HotCode | None:
    """Of the share of the time that passed in each function and in what it called."""
    hot = share[share >= MOST].sort_values()
    found = [one for name, part in hot.items() if (one := _frame(str(name), float(min(part, 1.0)))) is not None]
    if not found:
        return None
    callers = [one for one in found[1:] if one.file]
    if found[0].file or not callers:
        return found[0]
    return HotCode(found[0].function, "", 0, callers[0], found[0].share)


def _frame(name: str, share: float) -> HotCode | None:
    match = _TORCH.match(name) or _JAX.match(name)
    if match is None:
        return None
    file, line = match["file"].rpartition("/")[2], int(match["line"] or 0)
    return HotCode(match["function"][:LONGEST], file[-LONGEST:] if line else "", line, None, share)


def _busy(tables: Tables) -> dict[str, Spans]:
    """When any device of a host worked."""
    found: dict[str, Spans] = {}
    for one in activities(tables):
        held = (found.get(one.host, NOTHING), one.computation, one.communication, one.memory)
        found[one.host] = union(joined(held))
    return found
