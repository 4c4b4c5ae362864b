"""What returns and calls of host threads wait for, for a replay: on the path or not."""

from dataclasses import dataclass

import numpy as np

from analyzers.device.critical_path.kinds import FOR_EXECUTION, FOR_NOTHING, FOR_THREAD, RULE
from analyzers.device.critical_path.lanes import Executions, Lane
from analyzers.device.critical_path.threads import Thread, ordered_by_return
from analyzers.device.critical_path.walk import Chain

_SYNCHRONISED = (RULE["synchronisation"], RULE["synchronisation_last"])
Edges = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def edges(source: np.ndarray, target: np.ndarray, slack: np.ndarray, spends: np.ndarray | None = None) -> Edges:
    """From node to node, with the slack that there was (ns, 0 or less), and whose execution it is (-1: none)."""
    return source, target, slack, np.full(len(source), -1) if spends is None else spends


@dataclass(frozen=True)
class Returns:
    """All at which a thread waited, or would have had to: `Waited` of all threads, those of thread n from `first[n]` to
    `first[n + 1]`, by their return. `thread`: of each."""

    first: np.ndarray
    thread: np.ndarray
    until: np.ndarray
    since: np.ndarray
    kind: np.ndarray
    which: np.ndarray
    rule: np.ndarray


def returns(found: list[Thread]) -> Returns:
    """Of all threads."""
    parts = [ordered_by_return([t.waited, t.passed]) for t in found]
    lengths = [len(p.until) for p in parts]
    columns = [np.concatenate([getattr(p, f) for p in parts]) for f in ("until", "since", "kind", "which", "rule")]
    thread = np.repeat(np.arange(len(parts)), lengths)
    return Returns(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), thread, *columns)


def thread_edges(
    lanes: list[Lane], ran: Executions, c: Chain, found: list[Thread], r: Returns, root: int
) -> list[Edges]:
    """Nodes: ends of executions from n on, calls from 2 n on, returns from 3 n on; `root` never moves.

    A call that did not have to wait is taken to need as long after what it asked for as the longest return did.
    """
    n, entry = len(ran.start), np.arange(len(r.until))
    device, other = entry[r.kind == FOR_EXECUTION], entry[r.kind == FOR_THREAD]
    least = np.where(r.kind == FOR_NOTHING, r.until - r.since, 0)  # what a return needs of its own
    least[device] = r.until[device] - ran.end[r.which[device]]
    out = [_after_thread(r, least, 3 * n, root)]
    out.append(edges(n + r.which[device], 3 * n + device, np.zeros(len(device), np.int64)))
    out.append(_after(r, r.which[other], r.until[other], 3 * n + other, 3 * n, root))
    calls = np.flatnonzero(c.thread >= 0)
    out.append(_after(r, c.thread[calls], c.call[calls], 2 * n + calls, 3 * n, root))
    longest = int(least[device].max(initial=0))
    return [*out, *_synchronised(lanes, ran, found, r, np.where(r.kind == FOR_NOTHING, longest, least))]


def _after_thread(r: Returns, least: np.ndarray, base: int, root: int) -> Edges:
    """Each return after the one before it on its thread, what the thread did in between, and its own least time."""
    entry = np.arange(len(r.until))
    follows = np.concatenate([np.zeros(min(len(entry), 1), bool), r.thread[1:] == r.thread[:-1]])
    before = np.where(follows, r.until[np.maximum(entry - 1, 0)], r.since)
    ready = before + np.maximum(r.since - before, 0) + least
    return edges(np.where(follows, base + entry - 1, root), base + entry, ready - r.until)


def _after(r: Returns, thread: np.ndarray, when: np.ndarray, target: np.ndarray, base: int, root: int) -> Edges:
    """What comes on a thread at an instant, after its last return; where there was none it does not move."""
    source = np.full(len(thread), root)
    for number in np.unique(thread).tolist():
        low, high = int(r.first[number]), int(r.first[number + 1])
        mine = thread == number
        at = low + np.searchsorted(r.until[low:high], when[mine], side="right") - 1
        source[mine] = np.where(at >= low, base + at, root)
    return edges(source, target, np.zeros(len(thread), np.int64))


def _synchronised(
    lanes: list[Lane], ran: Executions, found: list[Thread], r: Returns, least: np.ndarray
) -> list[Edges]:
    """Returns wait for whatever of any stream had ended by then: if what they waited for ends sooner, for that."""
    n, out = len(ran.start), []
    capture = np.array([t.capture for t in found])[r.thread] if len(r.thread) else r.thread
    for lane in lanes:
        mine = np.flatnonzero((capture == lane.capture) & np.isin(r.rule, _SYNCHRONISED))
        for number in range(len(lane.ran.streams)):
            ids = lane.first + np.flatnonzero(lane.ran.stream == number)
            if not len(ids):
                continue
            ids = ids[np.argsort(ran.end[ids], kind="stable")]
            at = np.searchsorted(ran.end[ids], r.until[mine], side="right") - 1
            entry, which = mine[at >= 0], ids[at[at >= 0]]
            passed = r.until[entry] - ran.end[which]
            out.append(edges(n + which, 3 * n + entry, np.minimum(passed, least[entry]) - passed))
    return out
