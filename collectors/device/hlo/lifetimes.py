"""From when to when values are in device memory, and whether the backward pass needs them, by the framework's names."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any

ALLOC, FREE, SHARE = 0, 1, 2
BACKWARD = b"transpose("  # what JAX calls the operations of a gradient
_PASSING = (b"get-tuple-element", b"tuple", b"bitcast", b"copy", b"copy-start", b"copy-done")
_DEEP = 64  # steps from a value to who uses it, however it is passed on


def lifetimes(trace: Any) -> list[tuple[int, int, int]]:
    """(value, event after which it is in memory, event after which it is gone), events counted from 1.

    A value that shares the place of another keeps that one in memory. What is never freed is gone after the last event.
    """
    users: Counter[int] = Counter()
    owner: dict[int, int] = {}
    since: dict[int, int] = {}
    found: list[tuple[int, int, int]] = []
    for n, event in enumerate(trace.events, 1):
        value = event.buffer_id
        if event.kind == FREE:
            holder = owner.pop(value, value)
            users[holder] -= 1
            if users[holder] == 0 and holder in since:
                found.append((holder, since.pop(holder), n))
            continue
        if event.kind not in (ALLOC, SHARE):
            continue
        holder = event.share_with_canonical_id if event.kind == SHARE else value
        owner[value] = holder
        users[holder] += 1
        if users[holder] == 1:
            since[holder] = n
    last = len(trace.events) + 1
    return found + [(value, start, last) for value, start in since.items()]


class Backward:
    """Which values the backward pass of a program needs, of its instructions."""

    def __init__(self, instructions: Iterable[Any]):
        self._instructions = list(instructions)

    @cached_property
    def _users(self) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        for instruction in self._instructions:
            for operand in set(instruction.operand_ids):
                found.setdefault(operand, []).append(instruction)
        return found

    @cached_property
    def _names(self) -> set[bytes]:
        return {i.name for i in self._instructions if BACKWARD in i.metadata.op_name}

    def needing(self, trace: Any, makers: dict[int, Any]) -> set[int]:
        """Values that an operation of the backward pass uses, or during whose life it makes another. `makers`: the
        instruction of each value that is asked about."""
        makes = [n for n, e in enumerate(trace.events, 1) if e.kind != FREE and e.instruction_name in self._names]
        spans = {value: (start, end) for value, start, end in lifetimes(trace) if value in makers}
        meanwhile = {v for v, (start, end) in spans.items() if bisect_right(makes, start) < bisect_right(makes, end)}
        return meanwhile | {value for value in spans if self._used(makers[value])}

    def _used(self, maker: Any) -> bool:
        waiting, seen = [maker], {maker.id}
        for _ in range(_DEEP):
            users = [u for i in waiting for u in self._users.get(i.id, ()) if u.id not in seen]
            if not users:
                return False
            if any(BACKWARD in u.metadata.op_name for u in users):
                return True
            seen.update(u.id for u in users)
            waiting = [u for u in users if u.opcode in _PASSING]
        return True  # who knows
