"""How long steps wait for their input: requests drawn and walked one by one, on hosts that all wait for the slowest.

The walk is bounded, whatever is asked, by letting one drawn thing stand for several that are alike:

    a request  for g in a row where a reader has many of a batch to ask for and BUDGET is too small to walk each:
               lognormal with the mean and the variance of the sum of g
    a reader   for s side by side where there are more than SIDE_BY_SIDE: files of s times the bytes on the wire
    a host     for h alike: of each batch its slowest request is the slowest of all h hosts' requests

The second half of the walked steps counts. What cannot be in the long run (`Pipe.least_batch_s`) is held: a buffer that
was filled while nobody looked does not count as supply.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from simulators.storage.kernel import walk
from simulators.storage.pipe import Pipe

BUDGET = 50_000  # requests that are walked: some 10 ms
SIDE_BY_SIDE, IN_A_ROW, HOSTS = 128, 4, 16  # readers and hosts that are walked, and requests of a batch for each reader
LEAST_BATCHES, MOST_BATCHES = 32, 256
NOBODY = 0.01  # of a step: who waits less waits for nothing that is worth mending
BLOCKS = 8  # of steps, whose means tell how sure the mean is


@dataclass(frozen=True)
class Waits:
    """Of steps that follow each other for long: mean wait of one, with its standard error. `first_s`: until the first
    batch is there."""

    wait_s: float
    error_s: float
    first_s: float


@lru_cache(maxsize=4096)
def waits(pipe: Pipe, step_s: float, seed: int = 0) -> Waits:
    """How long a step of `step_s` waits for its input. All requests are drawn from `seed`."""
    drawn = _Drawn.of(pipe)
    rng = np.random.default_rng(seed)
    begins = walk(
        drawn.latencies(rng),
        drawn.need,
        drawn.of_batch,
        drawn.row * pipe.transfer_s,
        drawn.row * drawn.side * pipe.wire_s,
        pipe.decode_s / drawn.files_a_batch,
        drawn.readers,
        pipe.prefetch,
        step_s,
    )
    waited = np.maximum(np.diff(begins) - step_s, 0.0)
    late = waited[len(waited) // 2 :]
    means = [float(block.mean()) for block in np.array_split(late, BLOCKS)]
    mean = max(float(late.mean()), pipe.least_batch_s - step_s)
    error = float(np.std(means, ddof=1)) / math.sqrt(BLOCKS)
    return Waits(mean, error, float(begins[0]))


def stands_for_several(pipe: Pipe) -> bool:
    """Whether one drawn thing stands for several: then waits are told less surely."""
    drawn = _Drawn.of(pipe)
    return max(drawn.row, drawn.side, drawn.stand if pipe.sigma > 0 else 1) > 1


def nobody_waits(pipe: Pipe, step_s: float, seed: int = 0) -> bool:
    """Whether a step waits less than NOBODY of itself."""
    most = NOBODY * step_s
    return pipe.least_batch_s - step_s <= most and waits(pipe, step_s, seed).wait_s <= most


@dataclass(frozen=True)
class _Drawn:
    """What is walked for a pipe: see the module. `row`, `side`, `stand`: requests in a row, readers side by side and
    hosts that one stands for; `need`, `of_batch`: as the kernel has them."""

    pipe: Pipe
    readers: int
    row: float
    side: float
    hosts: int
    stand: float
    need: np.ndarray
    of_batch: np.ndarray

    @classmethod
    def of(cls, pipe: Pipe) -> "_Drawn":
        readers = min(pipe.in_flight, SIDE_BY_SIDE)
        side = max(1.0, pipe.in_flight / SIDE_BY_SIDE)
        files = pipe.files / side
        least = max(LEAST_BATCHES, 3 * pipe.prefetch + 16, math.ceil(8 / files))
        spread = pipe.sigma > 0
        hosts = min(pipe.hosts if spread else 1, HOSTS)
        # what is walked as one is on the wire and decoded as one: no more in a row than BUDGET asks for
        row = max(1.0, min(files / (IN_A_ROW * readers), hosts * least * files / BUDGET))
        files /= row
        hosts = int(min(hosts, max(1, BUDGET // (least * files))))
        walked = BUDGET if spread else BUDGET // 4  # a steady walk repeats itself
        most = max(least, min(MOST_BATCHES, int(walked / (hosts * files))))
        need = np.ceil(np.arange(1, most + 1) * files - 1e-9).astype(np.int64)
        of_batch = np.searchsorted(need, np.arange(need[-1]), side="right").astype(np.int64)
        return cls(pipe, readers, row, side, hosts, pipe.hosts / hosts, need, of_batch)

    @property
    def files_a_batch(self) -> float:
        return self.pipe.files / (self.row * self.side)

    def latencies(self, rng: np.random.Generator) -> np.ndarray:
        """Seconds until the first byte of each file that is walked, one row a host."""
        pipe, files = self.pipe, len(self.of_batch)
        if pipe.sigma == 0:
            return np.full((self.hosts, files), self.row * pipe.latency_s)
        sigma = math.sqrt(math.log1p(math.expm1(pipe.sigma**2) / self.row))
        normal = rng.standard_normal((self.hosts, files))
        self._slowest(normal, rng)
        return self.row * pipe.mean_latency_s * np.exp(sigma * normal - sigma**2 / 2)

    def _slowest(self, normal: np.ndarray, rng: np.random.Generator) -> None:
        """Put into each batch of each host the slowest request of those that it stands for."""
        alike = self.stand * self.side
        if alike <= 1:
            return
        starts = np.searchsorted(self.of_batch, np.unique(self.of_batch))
        ends = np.append(starts[1:], len(self.of_batch))
        for start, end in zip(starts, ends, strict=True):
            part = normal[:, start:end]
            others = (alike - 1) * (end - start)
            of_others = -ndtri(-np.expm1(np.log(rng.random(len(part))) / others))
            at = part.argmax(axis=1), np.arange(len(part))
            part[at[1], at[0]] = np.maximum(part[at[1], at[0]], of_others)


def warm() -> None:
    """Walk once, so that the first question need not wait for the compiler."""
    waits(Pipe(batch_bytes=1e6, file_bytes=1e5, readers=4, latency_s=0.05), 1.0)
