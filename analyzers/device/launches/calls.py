"""Calls that launch: how long each keeps its thread, how long until the device begins, and what it was for."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.launches.seen import Launched

COLUMNS = (
    "call",
    "launches",
    "executions",
    "call_s",
    "call_median_s",
    "call_max_s",
    "delay_median_s",
    "delay_p99_s",
    "execution_s",
    "execution_median_s",
    "shorter_executions",
)


def calls(ran: list[Launched]) -> pd.DataFrame:
    """One row per call by name, the most executions first; see COLUMNS.

    delay: from the end of the call to the start on the device, 0 where the device began before the call returned; where
    earlier work kept the device busy, it holds that. `shorter_executions`: those that took less than their call, of
    launches of one execution. A graph's call is counted once, by its first execution.
    """
    rows = _rows(ran)
    out = []
    for number, name in enumerate(rows.names):
        mine = rows.call == number
        single, mine = mine & ~rows.graph, np.flatnonzero(mine)
        first = mine if not rows.graph[mine].any() else mine[rows.begins(mine)]
        took, delay, lasted = rows.took[first], rows.delay[first], rows.ran[mine]
        out.append(
            {
                "call": name,
                "launches": len(first),
                "executions": len(mine),
                "call_s": took.sum() / 1e9,
                "call_median_s": np.median(took) / 1e9,
                "call_max_s": took.max() / 1e9,
                "delay_median_s": np.median(delay) / 1e9,
                "delay_p99_s": np.percentile(delay, 99) / 1e9,
                "execution_s": lasted.sum() / 1e9,
                "execution_median_s": np.median(lasted) / 1e9,
                "shorter_executions": int((rows.ran[single] < rows.took[single]).sum()),
            }
        )
    return pd.DataFrame(out, columns=list(COLUMNS)).sort_values("executions", ascending=False, ignore_index=True)


@dataclass(frozen=True)
class _Rows:
    """Executions of which the call is known; `call`: its number among `names`. Times in ns, see `calls`."""

    names: list[str]
    call: np.ndarray
    capture: np.ndarray
    thread: np.ndarray
    begin: np.ndarray
    took: np.ndarray
    delay: np.ndarray
    ran: np.ndarray
    graph: np.ndarray

    def begins(self, some: np.ndarray) -> np.ndarray:
        """Which of some executions are the first of their call."""
        told = {"capture": self.capture[some], "begin": self.begin[some], "thread": self.thread[some]}
        return ~pd.DataFrame(told).duplicated().to_numpy()


def _rows(ran: list[Launched]) -> _Rows:
    at = [np.flatnonzero(part.known) for part in ran]
    known = [
        np.array([*part.calls, ""], dtype=object)[np.unique(part.call[a])] for part, a in zip(ran, at, strict=True)
    ]
    names = sorted({name for some in known for name in some})
    place = {name: number for number, name in enumerate(names)}
    number = [np.array([place.get(name, -1) for name in (*part.calls, "")], dtype=np.int64) for part in ran]

    def gathered(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name)[a] for part, a in zip(ran, at, strict=True)])

    begin, end, start = gathered("call_start"), gathered("call_end"), gathered("start")
    return _Rows(
        names=names,
        call=np.concatenate([of[part.call[a]] for of, part, a in zip(number, ran, at, strict=True)]),
        capture=np.repeat([part.capture for part in ran], [len(a) for a in at]),
        thread=gathered("thread"),
        begin=begin,
        took=end - begin,
        delay=np.maximum(start - end, 0),
        ran=gathered("end") - start,
        graph=gathered("graph"),
    )
