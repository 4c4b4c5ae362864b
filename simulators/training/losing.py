"""Why a layout loses against another: which account of the step is larger, and by how much.

A layout costs, in chip-seconds of a step, n times the step's seconds, and each account its part of that: what is larger
adds up to what it costs more. Prices weigh the chip-seconds of different chips. Both are of the same batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from simulators.training.plan import Planned

KINDS: Mapping[str, str] = {
    "useful_maths": "peak",
    "below_roofline": "roofline",
    "recomputation": "memory",
    "exposed_communication": "network",
    "device_idle": "bubbles",
    "idle_launching": "launch",
    "padding": "roofline",
    "pipeline_bubble": "bubbles",
}
OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Larger:
    """`account`: the one that is larger by the most, `by` so much; `total`: all accounts together, which may be less
    than `by` where others are smaller."""

    account: str
    by: float
    total: float

    @property
    def kind(self) -> str:
        """What it is called for: memory, network, bubbles, launch, roofline, peak; of an account that a run alone has,
        what waits for its hosts or what it does not tell: other."""
        return KINDS.get(self.account, OTHER)


def larger(loser: Planned, winner: Planned, weight: float = 1.0, winners: float = 1.0) -> Larger | None:
    """What the loser takes more, each account's chip-seconds of a step times its side's weight; None: no account is
    larger."""
    mine, theirs = loser.accounts, winner.accounts
    more = {
        name: weight * loser.chips * mine.get(name, 0.0) - winners * winner.chips * theirs.get(name, 0.0)
        for name in dict.fromkeys((*KINDS, *mine, *theirs))
    }
    name = max(more, key=more.__getitem__)
    if more[name] <= 0:
        return None
    return Larger(account=name, by=more[name], total=sum(more.values()))
