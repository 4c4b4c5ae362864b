"""Which device each event, segment and block is of, and where each block lies."""

from dataclasses import dataclass

import numpy as np

from collectors.device.memory_snapshot.shapes import (
    ALLOCATED,
    BLOCK_ROWS,
    EVENTS,
    INACTIVE,
    LISTS,
    NONE,
    PENDING,
    ROOT_SEGMENTS,
    ROOT_TRACES,
    SEGMENT_ROWS,
)
from collectors.device.memory_snapshot.state import State
from collectors.device.memory_snapshot.timeline import MOST_BYTES

MOST_DEVICES = 1024
NOWHERE = -1


@dataclass(frozen=True)
class Placed:
    """`event_device`, `segment_device`: NOWHERE for what belongs to no device. Of blocks, in the order of the file:
    `block_segment` (its row, NOWHERE), `address`, `size`, `requested` (as placed where it is not told), `held`: whether
    it is not free. `odd`: segments and blocks without address or with a size that cannot be."""

    event_device: np.ndarray
    segment_device: np.ndarray
    block_segment: np.ndarray
    address: np.ndarray
    size: np.ndarray
    requested: np.ndarray
    held: np.ndarray
    odd: int

    @property
    def devices(self) -> list[int]:
        found = np.union1d(np.unique(self.event_device), np.unique(self.segment_device))
        return [int(d) for d in found if d != NOWHERE]

    def blocks_of(self, device: int) -> np.ndarray:
        """Rows of the blocks of a device."""
        return np.flatnonzero(np.append(self.segment_device, NOWHERE)[self.block_segment] == device)


def placed(state: State) -> Placed:
    """Where everything belongs; only what lies in the snapshot's own lists does."""
    rows, c, m = state.rows, state.counters, state.machine
    lists = int(c[LISTS])
    place = np.where(m.list_value[:lists] == c[ROOT_TRACES], m.list_place[:lists], NOWHERE)
    place = np.where((c[ROOT_TRACES] >= 0) & (place < MOST_DEVICES), place, NOWHERE).astype(np.int32)
    in_list = rows.event_list[: c[EVENTS]]
    event_device = np.where(in_list >= 0, place[in_list] if lists else NOWHERE, NOWHERE)

    segment = rows.segment[: c[SEGMENT_ROWS]]
    fine = (rows.segment_list[: c[SEGMENT_ROWS]] == c[ROOT_SEGMENTS]) & (segment[:, 0] >= 0)
    fine &= (segment[:, 0] < MOST_DEVICES) & (segment[:, 2] >= 0) & (segment[:, 2] < MOST_BYTES) & (segment[:, 1] >= 0)
    segment_device = np.where(fine, segment[:, 0], NOWHERE)

    block, of_list = rows.block[: c[BLOCK_ROWS]], rows.block_list[: c[BLOCK_ROWS]]
    owner = np.full(lists + 1, NOWHERE, np.int64)
    owner[segment[fine, 3]] = np.flatnonzero(fine)
    owner[-1] = NOWHERE  # where a segment without blocks wrote
    mine = owner[of_list]
    size = block[:, 1]
    sized = (size >= 0) & (size < MOST_BYTES) & np.isin(block[:, 3], (ALLOCATED, PENDING, INACTIVE))
    address = _addresses(block[:, 0], np.where(sized, size, 0), mine, segment)
    sized &= address >= 0
    requested = np.where((block[:, 2] >= 0) & (block[:, 2] <= size), block[:, 2], size)
    return Placed(
        event_device=event_device,
        segment_device=segment_device,
        block_segment=np.where(sized, mine, NOWHERE),
        address=address,
        size=size,
        requested=requested,
        held=np.isin(block[:, 3], (ALLOCATED, PENDING)),
        odd=int((~fine).sum() + ((mine != NOWHERE) & ~sized).sum()),
    )


def _addresses(told: np.ndarray, size: np.ndarray, segment_of: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Where each block lies: as told, else (older snapshots) behind those before it in its segment."""
    if not len(told) or (told != NONE).all():
        return told
    before = np.cumsum(size) - size
    first = np.r_[True, segment_of[1:] != segment_of[:-1]]
    offset = before - np.maximum.accumulate(np.where(first, before, 0))
    base = np.append(segment[:, 1], NOWHERE)[segment_of]  # there may be blocks and no segment
    return np.where(told != NONE, told, np.where(base >= 0, base + offset, -1))
