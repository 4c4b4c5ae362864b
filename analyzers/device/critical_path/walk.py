"""The chains of all steps: where each begins, and its links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzers.device.critical_path.binding import bound
from analyzers.device.critical_path.kernels import walk
from analyzers.device.critical_path.kinds import (
    BEFORE,
    CODE,
    EXECUTION,
    HELD,
    LAUNCH,
    NOTHING,
    ON_DEVICE,
    ON_THREAD,
    RETURN,
    RETURNING,
)
from analyzers.device.critical_path.lanes import Executions, Lane
from analyzers.device.critical_path.threads import PARTS, Thread
from analyzers.device.launches.feeding import BETWEEN_KERNELS
from analyzers.device.launches.launches import DELAYED, UNEXPLAINED
from errors import QuestionError

MOST_LINKS = 12_000_000  # what memory bounds
PLAIN = {LAUNCH: DELAYED, RETURN: RETURNING, HELD: BETWEEN_KERNELS, NOTHING: UNEXPLAINED}


@dataclass(frozen=True)
class Chain:
    """What everything waited for. `how`, `before` and `stream` (numbers of executions), `rule`: as in `binding.Bound`;
    `call` and `thread`: begin of the call that launched each execution and its thread's number. `feeder`: by lane the
    number of the thread that takes the steps. `first`, `until`, `kind`, `which`, `thread_rule`: `Waited` of all
    threads, one after another."""

    how: np.ndarray
    before: np.ndarray
    rule: np.ndarray
    call: np.ndarray
    thread: np.ndarray
    feeder: np.ndarray
    first: np.ndarray
    until: np.ndarray
    kind: np.ndarray
    which: np.ndarray
    thread_rule: np.ndarray
    stream: np.ndarray


def chain(
    lanes: list[Lane],
    ran: Executions,
    told: np.ndarray,
    found: list[Thread],
    number: Mapping[tuple[int, str], int],
    feeders: Sequence[int],
) -> Chain:
    """`told`: by execution the one that its stream was told to wait for, -1 where none."""
    parts = []
    for lane in lanes:
        own = told[lane.ids]
        mine = bound(lane.ran, ran.start[lane.ids], np.where(own >= 0, own - lane.first, -1))
        numbers = np.array([*(number[lane.capture, name] for name in lane.ran.threads), -1], np.int64)
        before = np.where(mine.before >= 0, mine.before + lane.first, -1)
        stream = np.where(mine.stream >= 0, mine.stream + lane.first, -1)
        parts.append((mine.how, before, mine.rule, lane.ran.call_start, numbers[lane.ran.thread], stream))
    how, before, rule, call, thread, stream = (
        np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)
    )
    waited = [t.waited for t in found]
    until, kind, which, rules = (
        np.concatenate([getattr(w, f) for w in waited]).astype(np.int64) for f in ("until", "kind", "which", "rule")
    )
    return Chain(
        how=how,
        before=before,
        rule=rule,
        call=call,
        thread=thread,
        feeder=np.array(feeders, np.int64),
        first=np.concatenate([[0], np.cumsum([len(w.until) for w in waited])]).astype(np.int64),
        until=until,
        kind=kind,
        which=which,
        thread_rule=rules,
        stream=stream,
    )


def starts(lane: Lane, number: int, ran: Executions, c: Chain, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Where the chains of these windows of a lane start, as `kernels.walk` takes them: within what then ran and ends
    last; else before what began next; else on the thread that takes the steps."""
    first, after = lane.ids.start, lane.ids.stop
    ends, starts = ran.end[lane.ids], lane.ran.start
    latest = _latest(ends)
    k = np.searchsorted(starts, end, side="left")
    x = np.where(k > 0, latest[np.maximum(k - 1, 0)], -1)
    running = (x >= 0) & (ends[np.maximum(x, 0)] >= end)
    following = first + k < after
    out = np.empty((len(end), 6), np.int64)
    out[:, 0] = np.where(running, ON_DEVICE, np.where(following, BEFORE, ON_THREAD))
    out[:, 1] = np.where(running, first + x, np.where(following, first + k, c.feeder[number]))
    last, next_ = ends[np.maximum(x, 0)], ran.start[lane.ids][np.minimum(k, after - first - 1)]
    out[:, 2] = np.where(running, last, np.where(following, next_, end))
    out[:, 3] = out[:, 2] - end
    out[:, 4], out[:, 5] = end - begin, number
    return out


def _latest(end: np.ndarray) -> np.ndarray:
    """Of each position, which of all up to it ends last."""
    most = np.maximum.accumulate(end)
    return np.maximum.accumulate(np.where(end == most, np.arange(len(end)), 0))


def walked(rows: np.ndarray, ran: Executions, c: Chain) -> np.ndarray:
    """Links (path, what, which, lane, rule, begin, end) of the chains from `rows`, each backwards from its end."""
    room = min(max(4 * len(ran.start), 1024), MOST_LINKS)
    while True:
        links = np.empty((room, 7), np.int64)
        count = walk(
            rows, ran.start, ran.end, ran.lane, ran.transfer, ran.last, c.how, c.before, c.rule, c.call, c.thread,
            c.feeder, c.first, c.until, c.kind, c.which, c.thread_rule, links,
        )  # fmt: skip
        if count >= 0:
            return links[:count]
        if count < -1 or room >= MOST_LINKS:
            raise QuestionError(
                "the steps of this run lie over one another so often that their paths have no end",
                expected="steps of a device that follow one another",
                advice="Ask for the window `operations`.",
            )
        room = min(4 * room, MOST_LINKS)


@dataclass(frozen=True)
class Pieces:
    """Links cut by kind: which link, the code of its kind (`kinds.CODE`), and its ns; of a link together its length."""

    link: np.ndarray
    kind: np.ndarray
    ns: np.ndarray


def pieces(links: np.ndarray, ran: Executions, found: list[Thread]) -> Pieces:
    """What passes in each link."""
    what, which = links[:, 1], links[:, 2]
    width = links[:, 6] - links[:, 5]
    kind = np.full(len(links), -1)
    executed = what == EXECUTION
    kind[executed] = ran.kind[which[executed]]
    for code, plain in PLAIN.items():
        kind[what == code] = CODE[plain]
    whole = np.flatnonzero(kind >= 0)
    parts = [(whole, kind[whole], width[whole])]
    hosts = np.flatnonzero(kind < 0)
    codes = np.array([*(CODE[part] for part in PARTS), CODE[UNEXPLAINED]])
    for number in np.unique(which[hosts]).tolist():
        mine = hosts[which[hosts] == number]
        part = found[number].work.between(links[mine, 5], links[mine, 6])
        part = np.column_stack([part, width[mine] - part.sum(axis=1)])
        row, column = np.nonzero(part)
        parts.append((mine[row], codes[column], part[row, column]))
    return Pieces(*(np.concatenate(column) for column in zip(*parts, strict=True)))
