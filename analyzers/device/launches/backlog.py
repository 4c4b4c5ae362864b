"""Until when devices have something to run, whatever their host does meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzers.device.activity import WORK
from analyzers.device.launches.seen import Launched, launched
from analyzers.intervals import Spans, spans
from runs.tables import Tables, frame


@dataclass(frozen=True)
class Backlog:
    """`called`: when each call that launched something began, in order; `done`: when devices were done with all that
    was launched up to it. ns since the epoch, on the host's clock; empty where nothing tells what launched what."""

    called: np.ndarray
    done: np.ndarray

    @classmethod
    def of(cls, ran: Sequence[Launched]) -> "Backlog":
        """Of devices that one host feeds."""
        called = np.concatenate([np.zeros(0, np.int64), *(one.call_start[one.known] for one in ran)])
        done = np.concatenate([np.zeros(0, np.int64), *(one.end[one.known] for one in ran)])
        order = np.argsort(called, kind="stable")
        return cls(called[order], np.maximum.accumulate(done[order]))

    def after(self, taken: Spans) -> Spans:
        """What is left of each of these spans once devices are done with what was launched before it."""
        if not len(self.called):
            return taken
        before = np.searchsorted(self.called, taken.start) - 1
        free = np.where(before >= 0, self.done[np.maximum(before, 0)], taken.start)
        return spans(np.clip(free, taken.start, taken.end), taken.end)


def ran_in(tables: Tables, capture: int, start_ns: int) -> list[Launched]:
    """What each device executed that a capture shows at work."""
    ops = frame(tables, "ops", ["device", "role"], [("capture", "==", capture)])
    devices = sorted(int(device) for device in ops["device"][ops["role"].isin(WORK)].dropna().unique())
    return [launched(tables, capture, start_ns, device) for device in devices]
