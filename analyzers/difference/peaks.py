"""Whether memory at its peak is another in B, told from peaks that each run shows again and again.

Samples of each device are cut into PARTS equal parts in their order; the first, in which a job starts, is left out.
Each part has a peak. Where each device holds as much in each of its parts, to FLOOR, its peak is its program's:

    range = least peak of B / greatest of A - 1  to  greatest of B / least of A - 1,  FLOOR wider on either side

FLOOR is what two starts of one program are taken to differ by, as of a step. Where the parts of a device differ by
more, its memory follows its data, and three peaks do not tell what the next start will hold.
"""

import pandas as pd

from analyzers.difference.step_time import FLOOR

PARTS, LEAST = 4, 16  # parts of the samples of a device, and samples


def peaks(samples: pd.DataFrame) -> tuple[float, ...] | None:
    """Bytes at the peak of each settled part of each device; none of a device of fewer than LEAST samples. None where
    the parts of a device differ by more than FLOOR. `samples` as `MemoryResult` has them."""
    found = list[float]()
    for _, rows in samples.groupby(["host", "device", "allocator"], dropna=False, sort=False):
        used = rows["used_bytes"].astype(float).to_numpy()
        if len(used) < LEAST:
            continue
        cuts = [len(used) * n // PARTS for n in range(1, PARTS + 1)]
        mine = [float(used[a:b].max()) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
        if max(mine) > min(mine) * (1 + FLOOR):
            return None
        found += mine
    return tuple(found)


def peak_range(a: tuple[float, ...] | None, b: tuple[float, ...] | None) -> tuple[float, float] | str:
    """Of B over A less 1; why that cannot be told."""
    if a is None or b is None:
        return "the memory of a device reaches other peaks over a run, so that a few of them do not tell"
    if not a or not b or min(a) <= 0:
        return f"not both sampled a device {LEAST} times or more"
    return min(b) / max(a) - 1 - FLOOR, max(b) / min(a) - 1 + FLOOR
