"""Runs the compiled searches of the topology lab once, so that the first question need not wait for the compiler."""

from simulators.topology import build
from simulators.topology.cuts.bisection import bisection
from simulators.topology.search import hop_counts, hops_from


def warm() -> None:
    network = build("boardfly:64")
    hop_counts(network)
    hops_from(network, 0)
    bisection(network)
