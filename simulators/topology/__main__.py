"""`python -m simulators.topology` compiles the searches of the topology lab, so that the first question need not."""

from simulators.topology import build
from simulators.topology.cuts.bisection import bisection
from simulators.topology.search import hop_counts, hops_from

network = build("boardfly:64")
hop_counts(network)
hops_from(network, 0)
bisection(network)
