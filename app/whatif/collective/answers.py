"""A collective on a topology as built or broken, with what failures mean for a job and what hides it behind compute."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app import topologies
from app.whatif.collective.asked import Asked, axes_of, failures_of, size_of
from catalog.chips import chip
from simulators.collectives import Collective, collective
from simulators.collectives.cost import PASSES
from simulators.collectives.graph import links_of_chips
from simulators.collectives.rings import least_message_bytes
from simulators.collectives.rules import critical_tokens, pod_bytes_per_s, pod_flops_per_s
from simulators.topology.network import Network

if TYPE_CHECKING:
    from app.workspace import Workspace

PRINTED = "Bandwidths printed for a pod count each chip's links one way: no array is gathered at that rate."


@dataclass(frozen=True)
class CollectiveAnswer:
    """`truth`: what the failures mean for a job. `peak_flops_per_s`: BF16 of one chip, None where no chip is named.

    `links_per_chip`: on average; all links have `link_bytes_per_s` where that is one number, else None.
    """

    result: Collective
    failures: tuple[str, ...]
    truth: tuple[str, ...]
    peak_flops_per_s: float | None
    links_per_chip: float
    chips: int

    @property
    def link_bytes_per_s(self) -> float | None:
        rates = set(self.result.settings.value.link_bytes_per_s.values())
        return rates.pop() if len(rates) == 1 else None

    @property
    def critical_tokens(self) -> float | None:
        """Tokens per chip from which gradients that are gathered or reduced this way hide behind the backward pass."""
        cost = self.result.cost
        if self.peak_flops_per_s is None or self.result.kind not in PASSES or not cost.seconds_per_byte:
            return None
        return critical_tokens(self.peak_flops_per_s, PASSES[self.result.kind] / cost.seconds_per_byte)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.truth, *self.result.notes, PRINTED)

    def to_dict(self) -> dict[str, Any]:
        rate, peak = self.link_bytes_per_s, self.peak_flops_per_s
        hop_s, per_chip = self.result.settings.value.hop_s, self.links_per_chip
        return self.result.to_dict() | {
            "failures": list(self.failures),
            "truth": list(self.truth),
            "critical_tokens_per_chip": self.critical_tokens,
            "links_per_chip": per_chip,
            "least_message_bytes": None if rate is None else least_message_bytes(rate, hop_s),
            "pod_oneway_bytes_per_s": None if rate is None else pod_bytes_per_s(self.chips, per_chip, rate),
            "pod_bf16_flops_per_s": None if peak is None else pod_flops_per_s(self.chips, peak),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What is sent, as `simulators.collectives.collective` has it; rates and times that are None: the catalogue's."""

    kind: str
    array_bytes: float
    axes: tuple[str, ...] = ()
    shards: int = 1
    rates: str = "docs"
    link_bytes_per_s: float | None = None
    hop_s: float | None = None
    dcn_bytes_per_s: float | None = None
    routing: str = "shortest"
    sharp: bool = False


def answered(asked: Asked, place: "Workspace | None") -> CollectiveAnswer:
    """Raises QuestionError or InputError."""
    failures, truth = failures_of(asked.fail), ()
    sent = Sent(
        kind=asked.kind,
        array_bytes=size_of(asked.bytes),
        axes=axes_of(asked.axes),
        shards=asked.shards,
        rates=asked.rates,
        link_bytes_per_s=asked.link_bytes_per_s,
        hop_s=asked.hop_s,
        dcn_bytes_per_s=asked.dcn_bytes_per_s,
        routing=asked.routing,
        sharp=asked.sharp == "yes",
    )
    _, network = topologies.network(asked.topology, place)
    if failures:
        after = topologies.broken(network, failures)
        network, truth = after.network, after.truth
    return on(network, sent, failures, truth)


def on(network: Network, sent: Sent, failures: tuple[str, ...] = (), truth: tuple[str, ...] = ()) -> CollectiveAnswer:
    """The same on a network that is at hand."""
    result = collective(network, **vars(sent))
    peak = chip(network.chip).value("bf16_flops_per_s") if network.chip else None
    links = links_of_chips(network).sum(axis=1)
    return CollectiveAnswer(result, failures, truth, peak, float(links.mean()), network.chips_alive)
