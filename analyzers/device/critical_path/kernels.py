"""The walk back along what each thing waited for, compiled."""

import numpy as np

from analyzers.device.critical_path.kinds import (
    BEFORE,
    EXECUTION,
    FED,
    FEEDER,
    FOLLOWS,
    FOR_EXECUTION,
    HELD,
    LAUNCH,
    LAUNCHED,
    NOTHING,
    ON_DEVICE,
    ON_THREAD,
    RETURN,
    RULE,
    THREAD,
)
from runs.compiled import compiler

_compiled = compiler(__package__)()
_LAST_RANK, _FEEDER, _THREAD = RULE["last_rank"], RULE["feeder"], RULE["thread"]
_NO_RULE = -1
_FULL, _ENDLESS = -1, -2
_STILL = np.iinfo(np.int64).min  # of a node that nothing has moved yet
_ROUNDS = 50  # chains may pass everything so often, all together: steps that overlap, or a circle, take more


@_compiled
def _told(links, count, path, what, which, lane, rule, begin, end, skip, left):  # pragma: no cover - compiled
    """Enter what lies from `begin` to `end`, but for `skip` ns at its end and beyond `left` ns: (count, skip, left)."""
    length = end - begin
    if length <= skip:
        return count, skip - max(length, 0), left
    width = min(length - skip, left)
    links[count] = (path, what, which, lane, rule, end - skip - width, end - skip)
    return count + 1, np.int64(0), left - width


@_compiled
def walk(
    starts, start, end, lane, transfer, last, how, before, rule, call, thread, feeder, first, until, kind, which,
    thread_rule, links,
):  # fmt: skip  # pragma: no cover - compiled
    """Fill `links` (rows: path, what, which, lane, rule, begin, end) with the chains from `starts` (rows: where, which,
    at, skip, budget, lane): `skip` ns from there are left out, then `budget` ns are told. Returns how many links, or
    _FULL where they are more than there is room for, _ENDLESS where they go round and round.

    A chain takes no more turns than there are things to wait for: what waits for itself is not told.
    """
    count = np.int64(0)
    turns = 2 * (len(start) + len(until)) + 8
    most = _ROUNDS * turns + 1_000_000
    for path in range(len(starts)):
        where, node, at, skip, left, here = starts[path]
        came, lead = np.int64(_NO_RULE), np.int64(_NO_RULE)
        for _ in range(turns):
            if left <= 0:
                break
            most -= 1
            if most < 0:
                return _ENDLESS
            if count + 3 > len(links):
                return _FULL
            had = count
            if where == ON_DEVICE:
                here = lane[node]
                cut = start[node]
                if transfer[node] >= 0:
                    cut = max(cut, end[node] - transfer[node])
                because = lead if lead >= 0 else came
                count, skip, left = _told(links, count, path, EXECUTION, node, here, because, cut, at, skip, left)
                at = cut
                if transfer[node] >= 0 and last[node] != node:
                    node = last[node]
                    at, here = start[node], lane[node]
                    lead = np.int64(_LAST_RANK)
                    had = count
                where = BEFORE
            elif where == BEFORE:
                because = lead if lead >= 0 else rule[node]
                came = np.int64(rule[node])
                if how[node] == FOLLOWS or how[node] == FED:
                    ahead = before[node]
                    what, whom = HELD, node
                    if how[node] == FED:
                        what, whom = FEEDER, feeder[here]
                        because = lead if lead >= 0 else np.int64(_FEEDER)
                    done = end[ahead]
                    count, skip, left = _told(links, count, path, what, whom, here, because, done, at, skip, left)
                    node, at, where = ahead, done, ON_DEVICE
                elif how[node] == LAUNCHED:
                    begin = call[node]
                    count, skip, left = _told(links, count, path, LAUNCH, node, here, because, begin, at, skip, left)
                    node, at, where = thread[node], begin, ON_THREAD
                    came = np.int64(_THREAD)
                else:
                    break
            else:
                low, high = first[node], first[node + 1]
                entry = low + np.searchsorted(until[low:high], at, side="right") - 1
                begin = at - left - skip if entry < low else until[entry]
                because = lead if lead >= 0 else came
                count, skip, left = _told(links, count, path, THREAD, node, here, because, begin, at, skip, left)
                if entry < low:
                    break
                at, node, came = begin, which[entry], np.int64(thread_rule[entry])
                if kind[entry] == FOR_EXECUTION:
                    done = end[node]
                    count, skip, left = _told(links, count, path, RETURN, node, here, came, done, at, skip, left)
                    at, where = done, ON_DEVICE
            if count > had:
                lead = np.int64(_NO_RULE)
        if left > 0:
            if count + 1 > len(links):
                return _FULL
            at -= skip
            links[count] = (path, NOTHING, -1, here, _NO_RULE, at - left, at)
            count += 1
    return count


def ordered(first: np.ndarray, target: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Nodes in an order in which each comes after all that it waits for; edges of node n go to `target[first[n]:
    first[n + 1]]`, `missing` counts what each waits for. What waits for itself is left out."""
    order = np.empty(len(missing), np.int64)
    return order[: _ordered(first, target, missing, order)]


@_compiled
def _ordered(first, target, missing, order):  # pragma: no cover - compiled
    """Fill `order`, and empty `missing`; returns how many."""
    count = np.int64(0)
    for node in range(len(missing)):
        if missing[node] == 0:
            order[count] = node
            count += 1
    done = np.int64(0)
    while done < count:
        node = order[done]
        done += 1
        for edge in range(first[node], first[node + 1]):
            missing[target[edge]] -= 1
            if missing[target[edge]] == 0:
                order[count] = target[edge]
                count += 1
    return count


def replayed(
    order: np.ndarray, first: np.ndarray, target: np.ndarray, slack: np.ndarray, sooner: np.ndarray
) -> np.ndarray:
    """How much each node moves (ns, 0 or less) where edges take as long as they did less `sooner`: the latest of what
    it waits for, each with the slack that it had."""
    moved = np.full(len(first) - 1, _STILL)
    _replayed(order, first, target, slack, sooner, moved)
    return moved


@_compiled
def _replayed(order, first, target, slack, sooner, moved):  # pragma: no cover - compiled
    for node in order:
        if moved[node] == _STILL:
            moved[node] = 0  # it waits for nothing
        for edge in range(first[node], first[node + 1]):
            moved[target[edge]] = max(moved[target[edge]], moved[node] + slack[edge] - sooner[edge])
    for node in range(len(moved)):
        if moved[node] == _STILL:
            moved[node] = 0
