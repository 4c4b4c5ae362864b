"""Which devices the numbers in a collective's groups stand for.

A program numbers its replicas and partitions; on which devices they run is told by its device assignment, and need not
be in the order of the devices: JAX follows the wires, so that partitions 0, 1, 2, 3 of a v5e 2x2 run on devices
0, 1, 3, 2. What the numbers of a group are depends on the operation, as XLA's GetCollectiveOpGroupMode has it:

    channel and global identifiers    replica x partitions + partition
    channel alone                     partitions, in each replica, of an all-to-all, a permute or a broadcast;
                                      replicas, with all of their partitions, of the others
    no channel                        replicas, in each partition
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from collectors.device.hlo.shapes import MAX_GROUP_DEVICES, Groups

_BY_PARTITION = ("all-to-all", "permute", "broadcast")


@dataclass(frozen=True)
class Assignment:
    """Device identifiers by partition, then replica."""

    table: Groups

    @property
    def partitions(self) -> int:
        return len(self.table)

    @property
    def replicas(self) -> int:
        return len(self.table[0])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Devices in the program's own order: replica after replica, partition by partition. Mesh axes count by it."""
        return tuple(part[r] for r in range(self.replicas) for part in self.table)

    @cached_property
    def place(self) -> dict[int, int]:
        """Where each device stands in that order."""
        return {device: n for n, device in enumerate(self.order)}


def assignment_of(module: Any) -> Assignment | None:
    """The device assignment of an HloModuleProto; None where it has none, or one that cannot be."""
    said = module.device_assignment
    table = tuple(tuple(part.replica_device_ids) for part in said.computation_devices)
    devices = [d for part in table for d in part]
    if not table or not table[0] or len(devices) > MAX_GROUP_DEVICES or len({len(part) for part in table}) != 1:
        return None
    return Assignment(table) if len(set(devices)) == len(devices) and min(devices) >= 0 else None


def devices_of(
    groups: Groups | None, kind: str, channel: bool, everywhere: bool, assignment: Assignment | None
) -> Groups | None:
    """Groups of device identifiers; None where the program does not tell them.

    `groups`: as the operation has them, None for all together; `channel`: whether it has a channel; `everywhere`:
    whether its numbers are global identifiers.
    """
    if assignment is None:
        return None
    table, order = assignment.table, assignment.order
    parts, replicas = range(assignment.partitions), range(assignment.replicas)
    by_partition = channel and kind in _BY_PARTITION
    if groups is None and by_partition:
        return tuple(tuple(part[r] for part in table) for r in replicas)
    if groups is None:
        return (order,) if channel or assignment.replicas == 1 else table
    if any(n < 0 for g in groups for n in g):
        return None
    largest = max((n for g in groups for n in g), default=0)
    # A program of one replica has no replicas to tell apart: there, numbers beyond it can only be partitions.
    if everywhere or (assignment.replicas == 1 and largest > 0):
        return _looked_up(groups, order)
    if by_partition:
        found = [_looked_up(groups, tuple(table[p][r] for p in parts)) for r in replicas]
    elif channel:
        wide = tuple(tuple(r * assignment.partitions + p for r in g for p in parts) for g in groups)
        found = [_looked_up(wide, order)]
    else:
        found = [_looked_up(groups, table[p]) for p in parts]
    whole = [f for f in found if f is not None]
    return tuple(g for f in whole for g in f) if len(whole) == len(found) else None


def _looked_up(groups: Groups, devices: tuple[int, ...]) -> Groups | None:
    if any(n >= len(devices) for g in groups for n in g):
        return None
    return tuple(tuple(devices[n] for n in g) for g in groups)
