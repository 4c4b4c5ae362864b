"""The least of what can be turned at which nobody waits: readers, batches fetched ahead, bytes of a file; and what a
store, a network and decoders must give at least."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from errors.format import upwards
from simulators.storage.pipe import Pipe
from simulators.storage.waiting import NOBODY, nobody_waits

MOST_READERS, MOST_PREFETCH = 65_536, 64
AHEAD = (4, 8, 16, 32)  # batches ahead that are tried with more readers, where neither alone is enough


@dataclass(frozen=True)
class Needed:
    """None: no number of it alone is enough.

    readers, prefetch, file_bytes   the least at which nobody waits, all else as it is
    together                        where neither readers nor prefetch alone is enough: readers and batches ahead
    requests_per_s, store_bytes_per_s, host_bytes_per_s   what steps ask for that never wait: of the whole job, of the
                                    whole job, and of a host
    in_flight                       requests of a host in flight on average then (Little's law)
    """

    readers: int | None
    prefetch: int | None
    file_bytes: float | None
    together: tuple[int, int] | None
    requests_per_s: float
    store_bytes_per_s: float
    host_bytes_per_s: float
    in_flight: float


def needed(pipe: Pipe, step_s: float, seed: int = 0) -> Needed:
    """What steps of `step_s` need, so that none waits. The walk is a drawn one, so that what is found holds as the
    question itself is answered: more than there is where somebody waits, no more than there is where nobody does."""
    fed = nobody_waits(pipe, step_s, seed)

    def enough(**change: float) -> bool:
        return nobody_waits(replace(pipe, **change), step_s, seed)

    host = pipe.batch_bytes / step_s
    in_flight = pipe.files / step_s * (pipe.mean_latency_s + pipe.transfer_s)
    few = int(min(max(1.0, math.floor(in_flight / (1 + NOBODY))), MOST_READERS))

    def readers(ahead: int) -> int | None:
        useful = max(few, min(MOST_READERS, math.ceil(max(ahead, 1) * pipe.files)))
        return _least(lambda n: enough(readers=n, prefetch=ahead), few, pipe.readers, useful, fed)

    least = readers(pipe.prefetch)
    prefetch = _least(lambda n: enough(prefetch=n), 0, pipe.prefetch, MOST_PREFETCH, fed)
    both = None
    if least is None and prefetch is None:
        tried = ((n, ahead) for ahead in AHEAD if ahead > pipe.prefetch and (n := readers(ahead)) is not None)
        both = next(tried, None)
    return Needed(
        readers=least,
        prefetch=prefetch,
        together=both,
        file_bytes=_least_file_bytes(pipe, step_s, seed),
        requests_per_s=pipe.hosts * pipe.files / step_s,
        store_bytes_per_s=pipe.hosts * host,
        host_bytes_per_s=host,
        in_flight=in_flight,
    )


def _least(enough: Callable[[int], bool], floor: int, now: int, most: int, fed: bool) -> int | None:
    """The least number from `floor` to `most` that is enough, if more is never worse; None where none is. `now` is
    known to be enough (`fed`) or not to be."""
    below, above = floor - 1, now
    if not fed:
        below, above = max(now, below), max(now + 1, floor)
        while above <= most and not enough(above):
            below, above = above, max(above + 1, min(2 * above, most))
        if above > most:
            return None
    while above - below > max(1, above // 50):
        middle = (below + above) // 2
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above


def _least_file_bytes(pipe: Pipe, step_s: float, seed: int) -> float | None:
    """The least size of a file at which nobody waits, to a tenth: from that of now by doublings up to a batch, then
    between the last two. Larger files are fewer requests, until too few of them are in flight. Of three digits, as
    sizes are told: a size near one that is enough need not be."""

    def enough(size: float) -> bool:
        return nobody_waits(replace(pipe, file_bytes=size), step_s, seed)

    below = above = pipe.file_bytes
    while not enough(above):
        if above >= pipe.batch_bytes:
            return None
        below, above = above, upwards(min(2 * above, pipe.batch_bytes))
    while above > 1.1 * below:
        middle = upwards(math.sqrt(below * above))
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above
