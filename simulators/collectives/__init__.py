"""How long collectives take on a network: `collective`, and the formulas that it uses, one file for each idea.

rings          axes of a mesh or torus: pure formulas     over_axes      the same on a network, whole or broken
general, trees any network, by its links and loads        graph          what is looked up of a network
switched       GPUs under packet switches                 hierarchical   several slices over the DCN
settings       rates, latencies and their bands           rules          critical tokens, printed rates of pods
cost           phases: latency and seconds for each byte  model          the answer, and its band
"""

from simulators.collectives.cost import KINDS, NAMES
from simulators.collectives.model import Collective, collective

__all__ = ["KINDS", "NAMES", "Collective", "collective"]
