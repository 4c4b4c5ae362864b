"""Compiled pairing of a device's events: from when to when each block was held, and what was held after each event."""

import numpy as np

from collectors.device.memory_snapshot.keeping import kernel, part
from collectors.device.memory_snapshot.shapes import ALLOC, FREE_COMPLETED

BEFORE = -1  # a block's beginning: it was held when the history begins
UNTOLD = -1  # a stack that nobody recorded
ODD_ALLOC, ODD_FREE, ODD_LIVE, LIVES, COUNTS = range(5)


@part
def slot_of(keys, used, addr):
    """Where an address stands, or would, in the table."""
    mask = keys.shape[0] - 1
    h = np.uint64(addr) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((h >> np.uint64(20)) & np.uint64(mask))
    while used[slot] and keys[slot] != addr:
        slot = (slot + 1) & mask
    return slot


@kernel
def pair(action, addr, size, stack, live, live_stack, keys, used, held, life, life_stack, counts):
    """Fills `life`, a row for each block: bytes, bytes as placed (-1: not told), index of the event that made it, and
    of that which freed it (the number of events: none did), address.

    `live`: address, requested size and size of what is held at the snapshot. `keys`, `used`, `held`: a table of
    addresses, empty, with the row of the block that is open there, else -1. A block that is given twice without being
    freed ends where it is given again; one that is freed twice ended at the first; one that nothing frees and that is
    not there in the end is left out (bytes 0). Each is counted.
    """
    n, rows = action.shape[0], 0
    for i in range(n):
        if action[i] == ALLOC:
            slot = slot_of(keys, used, addr[i])
            if used[slot] and held[slot] >= 0:
                counts[ODD_ALLOC] += 1
                life[held[slot], 3] = i
            keys[slot], used[slot], held[slot] = addr[i], 1, rows
            life[rows, 0], life[rows, 1], life[rows, 2], life[rows, 3], life[rows, 4] = size[i], -1, i, n, addr[i]
            life_stack[rows] = stack[i]
            rows += 1
        elif action[i] == FREE_COMPLETED:
            slot = slot_of(keys, used, addr[i])
            if used[slot] and held[slot] >= 0:
                life[held[slot], 3] = i
            elif used[slot]:
                counts[ODD_FREE] += 1
            else:
                life[rows, 0], life[rows, 1], life[rows, 2], life[rows, 3], life[rows, 4] = size[i], -1, -1, i, addr[i]
                life_stack[rows] = UNTOLD
                rows += 1
            keys[slot], used[slot], held[slot] = addr[i], 1, -1
    for i in range(live.shape[0]):
        slot = slot_of(keys, used, live[i, 0])
        if used[slot] and held[slot] >= 0:
            row = held[slot]
            held[slot] = -1
        else:
            counts[ODD_LIVE] += used[slot]
            row = rows
            rows += 1
            life[row, 2], life[row, 3], life[row, 4] = BEFORE, n, live[i, 0]
            life_stack[row] = live_stack[i]
            keys[slot], used[slot], held[slot] = live[i, 0], 1, -1
        life[row, 0], life[row, 1] = live[i, 1], live[i, 2]
    for slot in range(keys.shape[0]):
        if used[slot] and held[slot] >= 0:  # given, never freed, and not there in the end
            counts[ODD_ALLOC] += 1
            life[held[slot], 0] = 0
    counts[LIVES] = rows


@kernel
def levels(life, rows, level):
    """What is held before the first event, and after each: `level`, one longer than there are events."""
    n = level.shape[0] - 1
    level[:] = 0
    for i in range(rows):
        level[life[i, 2] + 1] += life[i, 0]
        if life[i, 3] < n:
            level[life[i, 3] + 1] -= life[i, 0]
    for i in range(n):
        level[i + 1] += level[i]
