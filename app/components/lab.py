"""What every part of the topology lab is about: the topology asked for, as built, and as it is after failures."""

from dataclasses import dataclass

from simulators.topology.network import Network
from simulators.topology.spec import Spec


@dataclass(frozen=True)
class Lab:
    """`network`: without faults; `broken`: after the `failures` of the address, the same object where there are none.

    `failures` as written in the address, such as ("chip=5", "link=3-4"). `route`: the two chips whose way is shown.
    """

    spec: Spec
    network: Network
    broken: Network
    failures: tuple[str, ...] = ()
    route: tuple[int, int] | None = None
