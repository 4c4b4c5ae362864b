"""Which rank a device of a trace is, and which ranks take part in its collectives.

A rank is the global number of a device, as JAX counts devices (`jax.devices()[i].id`; CPU devices, whose identifiers
have holes, by process): not the place that a program gives it, which may be another (see
`collectors.device.hlo.assignment`).
"""

from typing import NamedTuple

import numpy as np

from collectors.device.hlo.assignment import Assignment
from collectors.device.hlo.shapes import Collective, Groups
from collectors.device.xplane.ops import CPU_DEVICES_PER_PROCESS
from collectors.device.xplane.planes import PlaneIndex, Value
from collectors.device.xplane.wire import varint

LOCAL_CHIP, GLOBAL_CHIP, GLOBAL_CORE = 4, 5, 6  # fields of a TPU plane's `core_details`
_SLICE = 100_000  # JAX numbers the devices of several slices from multiples of it
UNKNOWN = "?"


def core_details(stats: dict[str, Value]) -> dict[int, int]:
    """Integer fields of a TPU plane's `core_details` by number; fields that are 0 are not written."""
    raw = stats.get("core_details")
    if not isinstance(raw, bytes) or not raw:
        return {}
    data, pos, found = np.frombuffer(raw, np.uint8), 0, {LOCAL_CHIP: 0, GLOBAL_CHIP: 0, GLOBAL_CORE: 0}
    while pos < len(data):
        tag, pos = varint(data, pos, len(data))
        if pos < 0 or tag & 7:
            break
        value, pos = varint(data, pos, len(data))
        if pos < 0:
            break
        found[int(tag) >> 3] = int(value)
    return found


def device_numbers(details: dict[int, dict[int, int]], known: set[int]) -> dict[int, int]:
    """Global number of each TPU device, by `core_details` of the planes; `known`: devices that programs name.

    That of its core; of its chip where two cores of a chip are one device, so that only even cores have planes.
    """
    chips = {d: found[GLOBAL_CHIP] for d, found in details.items()}
    cores = {d: found[GLOBAL_CORE] for d, found in details.items()}
    apart = len(set(chips.values())) == len(chips)
    first, second = cores, chips
    if apart and any(cores.values()) and all(cores[d] == 2 * chips[d] for d in details):
        first, second = chips, cores
    named = [set(numbers.values()) <= known for numbers in (first, second)]
    return second if apart and named == [False, True] else first


class Participants(NamedTuple):
    """Who takes part in a collective: `ranks`, and their `places` in the program's own order, comma-separated.

    Null where nothing is told; `?` for each rank that is not known. `places` is null where it is as `ranks`.
    """

    ranks: str | None
    places: str | None = None


class Ranks:
    """The ranks of one capture's devices."""

    def __init__(
        self, devices: list[tuple[PlaneIndex, dict[str, Value]]], stand_ins: set[int], assignment: Assignment | None
    ):
        """`devices`: planes with their stats; `stand_ins`: ordinals of host threads that stand in for devices;
        `assignment`: of the program with the most devices."""
        known = set(assignment.order) if assignment else set()
        self.rank: dict[int, int] = {}  # by device number
        self._identifier: dict[int, int] = {}  # by device number, as programs call it
        self._cpu: list[int] = []
        told = ((index.plane.device, core_details(stats)) for index, stats in devices)
        details = {device: found for device, found in told if device is not None and found}
        if details:
            slices = {identifier // _SLICE for identifier in known}
            base = slices.pop() * _SLICE if len(slices) == 1 else 0
            numbers = device_numbers(details, {identifier - base for identifier in known})
            self.rank = {device: base + number for device, number in numbers.items()}
            self._identifier = dict(self.rank)
        elif devices:
            numbers = {i.plane.device for i, _ in devices if i.plane.device is not None}
            # GPU planes tell no global number; where the program runs on just these, theirs are it.
            self._identifier = {d: d for d in numbers} if numbers == known else {}
        elif stand_ins:
            self._cpu = sorted({d % CPU_DEVICES_PER_PROCESS for d in stand_ins | known})
            for ordinal in stand_ins:
                device = ordinal % CPU_DEVICES_PER_PROCESS
                self._identifier[device] = ordinal
                self.rank[device] = self._rank_of(ordinal)

    def _rank_of(self, identifier: int) -> int:
        """The rank of a device by its identifier. CPU ranks assume that all processes have as many devices."""
        if not self._cpu:
            return identifier
        process, device = divmod(identifier, CPU_DEVICES_PER_PROCESS)
        return process * len(self._cpu) + self._cpu.index(device) if device in self._cpu else identifier

    def order(self, assignment: Assignment) -> list[int]:
        """Ranks in a program's own order."""
        return [self._rank_of(identifier) for identifier in assignment.order]

    def of(self, what: Collective, device: int | None, assignment: Assignment | None) -> Participants:
        """The devices that take part in a device's own instance of a collective.

        Without the program's assignment, its numbers say nothing of devices, unless all of them take part.
        """
        own = self._identifier.get(device) if device is not None else None
        if what.devices is not None and assignment is not None and own is not None:
            group = next((g for g in what.devices if own in g), None)
            if group is None and what.kind == "permute" and own in assignment.place:
                group = (own,)  # nobody sends to it or hears from it
            if group is not None:
                ranks = _text(self._rank_of(i) for i in group)
                places = _text(assignment.place.get(i, UNKNOWN) for i in group)
                return Participants(ranks, None if places == ranks else places)
        return Participants(everybody(what.groups))


def everybody(groups: Groups | None) -> str | None:
    """What is known of a collective's ranks from a program's own numbers: all of them, how many, or nothing."""
    if not groups:
        return None
    sizes = {len(g) for g in groups}
    if len(groups) == 1 and sorted(groups[0]) == list(range(len(groups[0]))):
        return _text(groups[0])
    return _text([UNKNOWN] * sizes.pop()) if len(sizes) == 1 else UNKNOWN


def _text(values) -> str:
    return ",".join(map(str, values))
