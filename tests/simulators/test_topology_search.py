"""Hops and routes against scipy, against walks by hand and against each other's ways of counting."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings

from errors import QuestionError
from simulators.topology import build, kernels
from simulators.topology.network import KIND_OF
from simulators.topology.route import route
from simulators.topology.search import CLOSED_FORM, EVERY_CHIP, ONE_SEARCH, hop_counts, hops_from
from tests.simulators.topology_graphs import all_paths, broken, distances, network


def searched(net):
    """The same network, not known to be a lattice: every chip is searched from."""
    return replace(net, lattice=None)


@settings(deadline=None, max_examples=60)
@given(net=broken())
def test_hops_are_scipys_on_any_graph_with_failures(net):
    far = distances(net)
    met = far[np.isfinite(far) & (far > 0)].astype(int)
    found = hop_counts(net)
    assert found.to_dict() == {str(h): int(c) for h, c in zip(*np.unique(met, return_counts=True), strict=True)}
    assert found.unreachable == np.isinf(far).sum()
    assert found.diameter == (met.max() if len(met) else None)
    assert found.mean == (pytest.approx(met.mean()) if len(met) else None)


@pytest.mark.parametrize(
    "spec, basis",
    [
        ("torus:5x4", CLOSED_FORM),
        ("torus:2x3x2", CLOSED_FORM),
        ("mesh:3x4x2", CLOSED_FORM),
        ("v5e:8x16", CLOSED_FORM),
        ("torus:4x4x8:twisted", ONE_SEARCH),
        ("torus:3x6x6:twisted", ONE_SEARCH),
        ("boardfly:96", EVERY_CHIP),
    ],
)
def test_every_way_of_counting_gives_the_same(spec, basis):
    net = build(spec)
    found, plain = hop_counts(net), hop_counts(searched(net))
    assert (found.basis, plain.basis) == (basis, EVERY_CHIP)
    assert found.to_dict() == plain.to_dict()
    far = distances(net).astype(int)
    assert found.counts[1:].tolist() == np.bincount(far.ravel())[1:].tolist()
    assert hops_from(net, 3).tolist() == far[3].tolist()


def test_more_chips_than_one_pass_serves():
    net = build("mesh:40x60")
    assert net.chips > 4 * kernels.BATCH
    assert hop_counts(searched(net)).to_dict() == hop_counts(net).to_dict()


def test_a_long_chain_is_counted():
    n = 3_000
    found = hop_counts(network(n, [(i, i + 1) for i in range(n - 1)]))
    assert found.diameter == n - 1
    assert found.counts[1:].tolist() == [2 * (n - d) for d in range(1, n)]


def test_chips_that_failed_neither_count_nor_forward():
    net = network(4, [(0, 1), (1, 2), (2, 3)])
    found = hop_counts(net.without(np.array([False, True, False, False]), np.zeros(3, bool)))
    assert found.to_dict() == {"1": 2} and found.unreachable == 4 and not found.connected


def test_switches_are_crossed_and_counted_as_no_chip():
    found = hop_counts(network(3, [(0, 3), (1, 3), (2, 3)], switches=1))
    assert found.to_dict() == {"2": 6} and found.unreachable == 0


def test_one_chip_alone_has_no_diameter():
    found = hop_counts(build("torus:1x1x1"))
    assert (found.diameter, found.mean, found.to_dict(), found.connected) == (None, None, {}, True)


def test_equal_slices_are_counted_once_and_pairs_across_have_no_way():
    net, one = build("v5e:16x16:slices=199"), hop_counts(build("v5e:16x16"))
    found = hop_counts(net)
    assert found.to_dict() == {h: 199 * c for h, c in one.to_dict().items()}
    assert found.unreachable == net.chips * (net.chips - 256) and found.mean == one.mean


def test_a_slice_that_lost_a_chip_is_counted_by_itself():
    net = build("v5e:4x4:slices=3")
    dead = np.zeros(net.nodes, bool)
    dead[17] = True
    left = net.without(dead, np.zeros(len(net.links), bool))
    far = distances(left)
    met = far[np.isfinite(far) & (far > 0)].astype(int)
    assert hop_counts(left).counts.tolist() == np.bincount(met).tolist()


@settings(deadline=None, max_examples=40)
@given(net=broken())
def test_a_route_is_one_of_all_shortest_ways(net):
    chips = np.flatnonzero(net.alive[: net.chips])
    for a, b in [(int(a), int(b)) for a in chips[:2] for b in chips[-2:] if a != b]:
        ways = all_paths(net, a, b)
        if not ways:
            with pytest.raises(QuestionError, match=f"no way from {a} to {b}"):
                route(net, a, b)
            continue
        found = route(net, a, b)
        assert found.links in [tuple(row for row, _ in way) for way in ways]
        assert found.paths == len(ways) and found.hops == len(ways[0])
        assert (found.nodes[0], found.nodes[-1]) == (a, b)


def test_routes_go_along_the_earliest_axis_first():
    net = build("torus:4x4x6")
    found = route(net, 0, net.chips - 1 - 6)  # (0, 0, 0) to (3, 2, 5)
    assert net.coordinates[list(found.nodes)].tolist() == [[0, 0, 0], [3, 0, 0], [3, 1, 0], [3, 2, 0], [3, 2, 5]]
    assert found.paths == 2 * 4 * 3  # one of two ways around y, then any order of its two steps with x and z
    assert route(net, 0, net.chips - 1 - 6, "dimension_order").paths == 2
    with pytest.raises(QuestionError, match="has no routing one_ocs"):
        route(net, 0, 1, "one_ocs")


def test_a_boardfly_route_crosses_at_most_one_optical_link():
    net = build("boardfly:1024")
    longer = 0
    for a, b in np.random.default_rng(3).integers(0, net.chips, (40, 2)).tolist():
        short, one = route(net, a, b), route(net, a, b, "one_ocs")
        optical = [np.count_nonzero(net.link_kind[list(r.links)] == KIND_OF["ocs"]) for r in (short, one)]
        assert optical[1] <= 1 and one.hops >= short.hops
        assert (one.hops == short.hops) or optical[0] > 1
        longer += one.hops > short.hops
    assert longer


def test_ways_more_than_a_number_holds_are_said_to_be_unknown():
    diamonds = [e for i in range(0, 3300, 3) for e in ((i, i + 1), (i, i + 2), (i + 1, i + 3), (i + 2, i + 3))]
    found = route(network(3301, diamonds), 0, 3300)
    assert found.hops == 2200 and found.to_dict()["paths"] is None
    assert route(network(301, diamonds[:400]), 0, 300).paths == pytest.approx(2.0**100)


def test_errors_name_what_failed_and_what_lies_apart():
    net = build("v5e:4x4:slices=2")
    with pytest.raises(QuestionError, match="different slices"):
        route(net, 0, 20)
    with pytest.raises(QuestionError, match="has no node 99; expected 0 to 31"):
        hops_from(net, 99)
    dead = np.arange(net.nodes) == 3
    with pytest.raises(QuestionError, match="chip 3 .* has failed"):
        route(net.without(dead, np.zeros(len(net.links), bool)), 3, 4)
    with pytest.raises(QuestionError, match="no routing 'up_down'"):
        hop_counts(net, "up_down")


def test_kernels_are_compiled_once_for_every_network():
    """A second signature would be compiled in front of the first person who asks."""
    for spec in ("boardfly:64", "v5e:4x4:slices=2", "torus:4x4x8:twisted"):
        hop_counts(build(spec))
        route(build(spec), 0, prod((1, 3)))
    for kernel in (kernels._hops, kernels._counts):
        assert len(kernel.forms) == 1
