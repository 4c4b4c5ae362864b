"""Bisections against every cut tried, against known widths, and against what proves them."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from simulators.topology import build
from simulators.topology.cuts import bisection as module
from simulators.topology.cuts.bisection import bisection
from simulators.topology.cuts.bounds import flow_bound, spectral_bound, spectrum
from simulators.topology.cuts.search import search
from tests.simulators.topology_graphs import broken, network


def crossing(net, side) -> int:
    """Links between the sides; each switch stands where that costs least."""
    best = len(net.links)
    for placed in np.ndindex(*(2,) * net.switches):
        whole = np.concatenate([side, np.array(placed, bool)])
        best = min(best, int(np.count_nonzero(whole[net.links[:, 0]] != whole[net.links[:, 1]])))
    return best


def least(net) -> int:
    """The smallest cut into halves, all of them tried."""
    chips = np.flatnonzero(net.alive[: net.chips])
    cuts = []
    for half in combinations(chips, len(chips) // 2):
        side = np.zeros(net.chips, bool)
        side[list(half)] = True
        cuts.append(crossing(net, side))
    return min(cuts)


@settings(deadline=None, max_examples=60)
@given(net=broken(chips=8))
def test_any_small_graph_with_failures(net):
    found = bisection(net)
    chips = net.chips_alive
    if chips < 2:
        assert found.links is None and not found.exact and found.side is None
        return
    true = least(net)
    assert found.low <= true <= found.links
    assert crossing(net, found.side) == found.links
    assert abs(2 * np.count_nonzero(found.side) - chips) <= 1 and not found.side[~net.alive[: net.chips]].any()
    assert found.exact == found.basis.startswith("exact")
    assert flow_bound(net) <= true
    value, _ = spectrum(net)
    assert spectral_bound(value, chips) <= true


@pytest.mark.parametrize(
    "spec, links",
    [
        ("torus:8x8x16", 128),
        ("torus:16x24x24", 768),
        ("mesh:8x8x16", 64),
        ("v5e:8x16", 16),
        ("torus:2x2", 4),
        ("mesh:2x2x4", 4),
        ("torus:8", 2),
        ("torus:1x6", 2),
        ("nvl:72", 18 * 36),
        ("h100:8", 18 * 4),
        ("mi300x:8", 16),
    ],
)
def test_known_widths_are_proved(spec, links):
    net = build(spec)
    found = bisection(net)
    assert (found.links, found.low, found.exact) == (links, links, True)
    assert np.count_nonzero(found.side) == net.chips // 2


@pytest.mark.parametrize("spec, links", [("torus:4x4x4", 32), ("mesh:4x5", 5), ("mesh:4x4x4", 16), ("torus:4x6x3", 24)])
def test_the_search_finds_what_the_closed_form_says(spec, links):
    net = replace(build(spec), lattice=None)
    assert bisection(build(spec)).links == links
    found, side = search(net, spectrum(net)[1])
    assert found == links == crossing(net, side)


def test_odd_axes_are_bounded_from_both_sides():
    net = build("mesh:5x5")  # by hand: two rows and half of the third, 5 + 1 links
    found = bisection(net)
    assert (found.links, found.low, found.basis) == (6, 6, "exact: the cut found meets the flow bound")
    found = bisection(build("torus:5x5"))  # by hand: such a cut on both sides
    assert (found.links, found.low) == (12, 11)
    assert "at least 11 by the flow bound" in found.basis
    assert bisection(build("torus:3x3")).links == least(build("torus:3x3"))


def test_all_cuts_tried_and_the_search_agree(monkeypatch):
    rng = np.random.default_rng(5)
    for n in (7, 10, 13):
        ends = rng.integers(0, n, (3 * n, 2))
        net = network(n, [(int(a), int(b)) for a, b in ends if a != b])
        tried = bisection(net)
        assert tried.basis == module.TRIED and tried.links == least(net)
        assert search(net, spectrum(net)[1])[0] == tried.links
        assert flow_bound(net) <= tried.links and spectral_bound(spectrum(net)[0], n) <= tried.links


@pytest.mark.parametrize("spec", ["torus:4x4x8:twisted", "torus:3x6x6:twisted", "torus:2x3x4", "torus:5"])
def test_waves_have_the_eigenvalues_of_the_matrix(spec):
    net = build(spec)
    waves, _ = spectrum(net)
    matrix, _ = spectrum(replace(net, lattice=None))
    assert waves == pytest.approx(matrix)


def test_a_large_network_that_is_no_lattice_has_no_eigenvalue_but_vectors():
    net = replace(build("torus:6x10x12"), lattice=None)
    value, vectors = spectrum(net)
    assert value is None and vectors.shape == (720, 3)
    assert search(net, vectors)[0] == 120 == bisection(net).low


def test_slices_are_cut_one_by_one_and_the_weakest_counts():
    net = build("v5e:4x4:slices=3")
    found = bisection(net)
    assert found.links == 4 and found.exact and "of one slice" in found.basis
    assert found.side.reshape(3, 16).sum(axis=1).tolist() == [8, 8, 8]
    row = np.flatnonzero((net.links == (16 + 4, 16 + 8)).all(axis=1))
    left = net.without(np.zeros(net.nodes, bool), np.isin(np.arange(len(net.links)), row))
    assert bisection(left).links == 3 and "the weakest" in bisection(left).basis


def test_pieces_with_no_link_between_them_need_no_cut():
    net = network(20, [(i, i + 1) for i in range(19) if i != 9])
    assert bisection(net).links == 0 and bisection(net).exact
