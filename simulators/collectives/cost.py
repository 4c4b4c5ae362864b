"""What a collective costs as phases, each with a latency and seconds for each byte: any size follows at once."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from errors import QuestionError
from simulators.collectives.rings import Time, crossover_bytes

KINDS: tuple[tuple[str, str], ...] = (
    ("all_gather", "every chip ends with the whole array, of which each began with a part"),
    ("reduce_scatter", "every chip ends with its part of the sum of as many arrays"),
    ("all_reduce", "every chip ends with the sum of as many arrays: a reduce-scatter, then an all-gather"),
    ("all_to_all", "every chip sends each other one a part of its own part, as mixtures of experts do"),
    ("permute", "every chip sends its part to the next, as pipelines and ring attention do"),
)
"""(name, meaning)."""

NAMES = tuple(name for name, _ in KINDS)
PASSES = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}  # times that the array crosses the network
ENDS = ("value", "low", "high")
"""What a cost stands for: the model's number, or an end of its band."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is assumed of the parts. `link_bytes_per_s`: kind of link -> bytes/s one way; `hop_s`: to cross one link.

    `dcn_bytes_per_s`: a chip's share of the data-centre network one way, None where not needed; `dcn_hop_s`: to cross
    that network.
    """

    link_bytes_per_s: Mapping[str, float]
    hop_s: float
    dcn_bytes_per_s: float | None = None
    dcn_hop_s: float = 0.0

    @property
    def across_bytes_per_s(self) -> float:
        """`dcn_bytes_per_s` where several slices need it. Raises QuestionError where it is not known."""
        if self.dcn_bytes_per_s is None:
            raise QuestionError(
                "how fast a chip is over the data-centre network is not known",
                expected="bytes/s of the data-centre network, one way of one chip",
            )
        return self.dcn_bytes_per_s


@dataclass(frozen=True)
class Phase:
    """A part of a collective, after those before it. `one_byte`: its time for an array of one byte."""

    name: str
    one_byte: Time


@dataclass(frozen=True)
class Cost:
    """`algorithm`: in a few words. `pipelined`: phases overlap, so that the longest counts; else one after another."""

    phases: tuple[Phase, ...]
    algorithm: str
    pipelined: bool = False

    @property
    def latency_s(self) -> float:
        """Time of an array so small that its bytes count nothing."""
        return sum(p.one_byte.latency_s for p in self.phases)

    @property
    def seconds_per_byte(self) -> float:
        """What another byte costs where the array is large."""
        return sum(p.one_byte.bandwidth_s for p in self.phases)

    @property
    def crossover_bytes(self) -> float | None:
        """The array whose bandwidth takes as long as its hops; None where no byte crosses a link."""
        return crossover_bytes(Time(self.latency_s, self.seconds_per_byte))

    def seconds(self, array_bytes: float | np.ndarray) -> float | np.ndarray:
        """Seconds of one array, or of many sizes at once."""
        sizes = np.asarray(array_bytes, float)
        total = np.zeros_like(sizes)
        for phase in self.phases:
            hops, moving = phase.one_byte.latency_s, phase.one_byte.bandwidth_s * sizes
            seconds = np.maximum(hops, moving) if phase.one_byte.overlapped else hops + moving
            total = np.maximum(total, seconds) if self.pipelined else total + seconds
        return total if total.ndim else float(total)

    def bound(self, array_bytes: float) -> str:
        """latency or bandwidth: whichever term is the longer."""
        return "bandwidth" if self.seconds_per_byte * array_bytes >= self.latency_s else "latency"


def one(name: str, time: Time, algorithm: str) -> Cost:
    """A cost of a single phase."""
    return Cost((Phase(name, time),), algorithm)
