"""What shortening an operation would give: all that waits replayed with that operation taking no time. Modelled.

Every known wait is kept, on the path or off it, with the slack that it had in the trace, and each instant moves by

    moved(v) = max over what v waits for, u, of moved(u) + slack(u, v) - what the wait became shorter

Only differences on one clock and within one collective enter: no clock is compared with another. Where an execution or
a call did not wait for something it could have waited for (a busy stream, a launch on its way), it is taken to need as
long after it as is the most on its device: so the gain is one that known waits leave, its low end. The high end is the
operation's whole time on critical paths: no more can be won while delays of launches and returns stay as they were.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.critical_path.kernels import ordered, replayed
from analyzers.device.critical_path.kinds import FED, FOLLOWS, LAUNCHED
from analyzers.device.critical_path.lanes import Executions, Lane
from analyzers.device.critical_path.returns import Edges, edges, returns, thread_edges
from analyzers.device.critical_path.threads import Thread
from analyzers.device.critical_path.told import Told
from analyzers.device.critical_path.walk import Chain

FIRST = 5
COLUMNS = ("operation", "category", "alone_low_s", "alone_high_s", "together_low_s", "together_high_s")


@dataclass(frozen=True)
class Graph:
    """Edges by source: those of node n are `first[n]` to `first[n + 1]`. `spends`: the execution whose time an edge is,
    -1 where it is none. Nodes: starts of executions, ends, calls, returns of threads, meetings,
    and one that never moves."""

    order: np.ndarray
    first: np.ndarray
    target: np.ndarray
    slack: np.ndarray
    spends: np.ndarray


def graph(lanes: list[Lane], ran: Executions, c: Chain, found: list[Thread], events: Told) -> Graph:
    """All that is known of what waits for what. O(n log n)."""
    r = returns(found)
    n, m = len(ran.start), len(r.until)
    root = 4 * n + m
    parts = [*_starts(lanes, ran, c, events), *_ends(ran, n, m), *thread_edges(lanes, ran, c, found, r, root)]
    source, target, slack, spends = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    nodes = root + 1
    order = np.argsort(source, kind="stable")
    source, target, slack, spends = source[order], target[order], np.minimum(slack[order], 0), spends[order]
    first = np.searchsorted(source, np.arange(nodes + 1))
    turn = ordered(first, target, np.bincount(target, minlength=nodes))
    return Graph(turn, first, target, slack, spends)


def _starts(lanes: list[Lane], ran: Executions, c: Chain, events: Told) -> list[Edges]:
    """What starts wait for: the stream, what was told or inferred, and the call."""
    n, out = len(ran.start), []
    for lane in lanes:
        ids = np.arange(lane.ids.start, lane.ids.stop)
        bound = np.isin(c.how[ids], (FOLLOWS, FED))
        held = ids[bound]
        out.append(edges(n + c.before[held], held, np.zeros(len(held), np.int64)))
        follows = held[c.how[held] == FOLLOWS]
        gap = int((ran.start[follows] - ran.end[c.before[follows]]).max(initial=0))
        late = ids[(c.stream[ids] >= 0) & ~(bound & (c.stream[ids] == c.before[ids]))]
        told = (events.held >= lane.ids.start) & (events.held < lane.ids.stop)
        for which, ahead in ((late, c.stream[late]), (events.held[told], events.ahead[told])):
            passed = ran.start[which] - ran.end[ahead]
            out.append(edges(n + ahead, which, np.minimum(passed, gap) - passed))
        known = ids[lane.ran.known]
        delay = ran.start[known] - c.call[known]
        launch = c.how[known] == LAUNCHED
        longest = int(delay[launch].max(initial=0))
        out.append(edges(2 * n + known, known, np.where(launch, 0, np.minimum(delay, longest) - delay)))
    return out


def _ends(ran: Executions, n: int, m: int) -> list[Edges]:
    """What ends wait for: the execution itself; of a collective over ranks the last of them."""
    ids = np.arange(n)
    alone, met = ids[ran.transfer < 0], ids[ran.transfer >= 0]
    waited = ran.end[met] - ran.start[met] - ran.transfer[met]
    meeting = 3 * n + m + ran.meeting[met]
    zero = np.zeros(n, np.int64)
    return [
        edges(alone, n + alone, zero[: len(alone)], alone),
        edges(met, meeting, -waited),
        edges(meeting, n + met, zero[: len(met)], met),
    ]


def gains(
    g: Graph, lanes: list[Lane], ran: Executions, ends: np.ndarray, on_path: np.ndarray, inside: np.ndarray
) -> pd.DataFrame:
    """What the FIRST operations most on paths would give at most, each alone and the first so many together (see
    COLUMNS): seconds by which the lanes' last windows would end sooner, added up. `ends`: of these windows; `on_path`:
    ns by operation; `inside`: ns of each execution within the windows."""
    most = [int(n) for n in np.argsort(-on_path, kind="stable")[:FIRST] if on_path[n] > 0]
    spent = np.where(ran.transfer >= 0, np.minimum(ran.transfer, inside), inside)
    out = []
    for number, op in enumerate(most):
        alone = _sooner(g, lanes, ran, ends, spent, [op])
        together = _sooner(g, lanes, ran, ends, spent, most[: number + 1]) if number else alone
        high, all_high = float(on_path[op]), float(on_path[most[: number + 1]].sum())
        told = ran.operations.iloc[op]
        ns = (min(alone, high), high, min(together, all_high), all_high)
        out.append((told["op"], told["category"], *(x / 1e9 for x in ns)))
    return pd.DataFrame(out, columns=list(COLUMNS))


def _sooner(g: Graph, lanes: list[Lane], ran: Executions, ends: np.ndarray, spent: np.ndarray, ops: list[int]) -> float:
    """Ns, summed over lanes, by which all that was begun in their windows would be done sooner."""
    gone = np.where(np.isin(ran.op, ops), spent, 0)
    moved = replayed(g.order, g.first, g.target, g.slack, np.where(g.spends >= 0, gone[g.spends], 0))
    moved = moved[len(ran.start) : 2 * len(ran.start)]
    total = 0.0
    for lane, end in zip(lanes, ends.tolist(), strict=True):
        begun = ran.start[lane.ids] < end
        if begun.any():
            was = ran.end[lane.ids][begun]
            total += float(was.max() - (was + moved[lane.ids][begun]).max())
    return total
