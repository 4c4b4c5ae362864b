"""Link loads against listing every path of every pair, and against what has to add up."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import QuestionError
from simulators.topology import build, flow, kernels
from simulators.topology.loads import PATTERNS, TooMany, by_routing, link_loads, routings, usual_routing
from simulators.topology.network import KIND_OF
from simulators.topology.patterns import pairs
from simulators.topology.search import hop_counts
from simulators.topology.spec import Spec
from simulators.topology.systems.lattice_network import lattice_network
from tests.simulators.topology_graphs import all_paths, broken, network, plain_loads

ALL_HOPS = "ordered pairs of chips per directed link"


def carried(found) -> float:
    return float(found.forward.sum() + found.backward.sum())


def hops_in_all(net, routing="shortest") -> int:
    counts = hop_counts(net, routing).counts
    return int(counts @ np.arange(len(counts)))


@settings(deadline=None, max_examples=50)
@given(net=broken())
def test_loads_are_those_of_all_paths_listed(net):
    found, (forward, backward) = link_loads(net), plain_loads(net)
    assert found.forward == pytest.approx(forward) and found.backward == pytest.approx(backward)
    assert carried(found) == pytest.approx(hops_in_all(net))
    assert found.unit == ALL_HOPS


@settings(deadline=None, max_examples=40)
@given(net=broken(), pattern=st.sampled_from(sorted(set(PATTERNS) - {"all_to_all"})), seed=st.integers(0, 9))
def test_patterns_of_pairs_are_those_of_all_paths_listed(net, pattern, seed):
    found = link_loads(net, pattern, seed=seed)
    listed = list(zip(*(ends.tolist() for ends in pairs(net, pattern, seed)), strict=True))
    forward, backward = plain_loads(net, listed)
    assert found.forward == pytest.approx(forward) and found.backward == pytest.approx(backward)


@pytest.mark.parametrize("spec", ["torus:4x5", "torus:2x3x4", "torus:4x4x8:twisted", "torus:3x6x6:twisted"])
def test_one_chip_stands_for_all_where_all_see_the_same(spec):
    net = build(spec)
    found, plain = link_loads(net), link_loads(replace(net, lattice=None))
    assert found.forward == pytest.approx(plain.forward) and found.backward == pytest.approx(plain.backward)


@pytest.mark.parametrize("spec", ["torus:4x5", "mesh:3x4x2", "torus:2x2", "ring of lines"])
@pytest.mark.parametrize("pattern", ["all_to_all", "ring", "shift", "transpose", "random"])
def test_dimension_order_walks_axis_by_axis(spec, pattern):
    half = Spec(text=spec, kind="torus", chip=None, chips=24, dims=(4, 6), wraps=(False, True))
    net = lattice_network(half) if spec == half.text else build(spec)
    lattice = net.lattice
    lines = {
        (axis, *ends): row for row, (axis, ends) in enumerate(zip(lattice.links()[1], net.links.tolist(), strict=True))
    }
    expected = np.zeros((2, len(net.links)))
    every = np.ndindex(net.chips, net.chips)
    for a, b in every if pattern == "all_to_all" else zip(*pairs(net, pattern), strict=True):
        here = list(np.unravel_index(a, lattice.dims))
        for axis, k in enumerate(lattice.dims):
            to = int(np.unravel_index(b, lattice.dims)[axis])
            ahead, back = (to - here[axis]) % k, (here[axis] - to) % k
            ways = [(1, ahead)] if to > here[axis] else [(-1, back)]
            if lattice.wraps[axis]:
                ways = [(way, n) for way, n in ((1, ahead), (-1, back)) if n == min(ahead, back)]
            for way, steps in ways:
                at = list(here)
                for _ in range(steps):
                    u = lattice.index(np.array([at]))[0]
                    at[axis] = (at[axis] + way) % k
                    v = lattice.index(np.array([at]))[0]
                    row = lines[(axis, u, v)] if way > 0 else lines[(axis, v, u)]
                    expected[0 if way > 0 else 1, row] += 1 / len(ways)
            here[axis] = to
    found = link_loads(net, pattern, "dimension_order")
    assert found.forward == pytest.approx(expected[0]) and found.backward == pytest.approx(expected[1])


def test_the_busiest_link_of_even_axes_is_the_closed_form():
    for spec, most in (("torus:8x8x16", 1024 * 16 / 8), ("mesh:8x8x16", 1024 * 16 / 4), ("v5e:8x16", 128 * 16 / 8)):
        assert link_loads(build(spec), routing="dimension_order").max == pytest.approx(most)


def test_at_most_one_optical_link_on_every_way():
    """The optical links on a shortest such way of a pair share alike, and before and after them every path does."""
    net = build("boardfly:96")
    net = net.without(np.arange(net.nodes) == 37, np.arange(len(net.links)) % 40 == 7)
    optical = net.link_kind == KIND_OF["ocs"]
    inside = replace(net, links=net.links[~optical], link_kind=net.link_kind[~optical], link_parts={})
    rows = np.flatnonzero(~optical)
    chips = np.flatnonzero(net.alive)
    local = {
        (a, b): all_paths(inside, a, b)
        for g in range(3)
        for a, b in product(range(32 * g, 32 * g + 32), repeat=2)
        if net.alive[a] and net.alive[b]
    }
    expected, hops = np.zeros((2, len(net.links))), {}

    def send(a, b, share):
        for way in local[a, b]:
            for row, forward in way:
                expected[0 if forward else 1, rows[row]] += share / len(local[a, b])

    ends = [
        (row, way, *net.links[row][:: 1 if way == 0 else -1].tolist())
        for row in np.flatnonzero(optical)
        for way in (0, 1)
    ]
    for a, b in product(chips.tolist(), repeat=2):
        if a // 32 == b // 32:
            if a != b and local[a, b]:
                hops[len(local[a, b][0])] = hops.get(len(local[a, b][0]), 0) + 1
                send(a, b, 1.0)
            continue
        over = [
            (len(local[a, x][0]) + 1 + len(local[y, b][0]), row, way, x, y)
            for row, way, x, y in ends
            if x // 32 == a // 32 and y // 32 == b // 32 and local[a, x] and local[y, b]
        ]
        best = [o for o in over if o[0] == min(over)[0]]
        hops[best[0][0]] = hops.get(best[0][0], 0) + 1
        for _, row, way, x, y in best:
            expected[way, row] += 1 / len(best)
            send(a, x, 1 / len(best))
            send(y, b, 1 / len(best))
    found = link_loads(net, routing="one_ocs")
    assert found.forward == pytest.approx(expected[0]) and found.backward == pytest.approx(expected[1])
    assert hop_counts(net, "one_ocs").to_dict() == {str(h): n for h, n in sorted(hops.items())}


def test_every_slice_has_the_pattern_to_itself():
    net, one = build("v5e:4x8:slices=5"), build("v5e:4x8")
    for pattern in PATTERNS:
        for routing in routings(net):
            found = link_loads(net, pattern, routing).forward.reshape(5, -1)
            assert (found == link_loads(one, pattern, routing).forward).all()


def test_what_a_network_offers():
    assert routings(build("boardfly:64")) == ("shortest", "one_ocs")
    assert usual_routing(build("mesh:3x3")) == usual_routing(build("v5e:4x4:slices=3")) == "dimension_order"
    twisted = build("torus:4x4x8:twisted")
    assert usual_routing(twisted) == "shortest"
    with pytest.raises(QuestionError, match="whole tori and meshes without a twist"):
        link_loads(twisted, routing="dimension_order")
    with pytest.raises(QuestionError, match="no pattern 'gather'; expected all_to_all or ring"):
        link_loads(twisted, "gather")


def test_a_ring_loads_each_link_once_each_way_and_is_rerouted_after_a_failure():
    net = build("torus:4x4x8:twisted")
    assert set(link_loads(net, "ring").forward) == {1.0}
    left = net.without(np.zeros(net.nodes, bool), np.arange(len(net.links)) == 0)
    assert carried(link_loads(left, "ring")) == 2 * len(net.links) + 2 * 2  # three hops in place of one, both ways


@pytest.mark.parametrize("pattern", ["shift", "transpose", "random"])
def test_every_chip_sends_and_receives_at_most_once(pattern):
    sources, to = pairs(build("mesh:5x7"), pattern, 4)
    assert len(set(sources)) == len(sources) == len(set(to)) and set(sources) == set(to) and (sources != to).all()


def test_by_kind_and_the_busiest_link():
    found = link_loads(build("boardfly:64"))
    assert list(found.by_kind()) == ["copper", "board", "ocs"]
    assert found.max == max(most for _, _, most in found.by_kind().values())
    assert link_loads(build("torus:1x1")).max == 0 and link_loads(build("torus:1x1")).by_kind() == {}


def test_what_would_take_too_long_is_refused_and_the_rest_is_still_told(monkeypatch):
    monkeypatch.setattr(flow, "MOST_STEPS", 1000)
    mesh = replace(build("mesh:12x12"), spec="again")
    with pytest.raises(TooMany, match="144 senders over 264 links"):
        link_loads(mesh)
    assert list(by_routing(mesh)) == ["dimension_order"]
    assert by_routing(replace(mesh, lattice=None)) == {}
    assert list(by_routing(replace(build("torus:6x6"), spec="again"))) == ["dimension_order", "shortest"]


def test_more_paths_than_numbers_can_count_still_share_alike():
    links = [e for i in range(0, 3300, 3) for e in ((i, i + 1), (i, i + 2), (i + 1, i + 3), (i + 2, i + 3))]
    net = network(3301, links)
    forward, _ = kernels_flow(net, 0, 3300)
    assert forward == pytest.approx(0.5)


def kernels_flow(net, a, b):
    from simulators.topology.flow import flow

    found = flow(net, np.array([a]), np.array([b]))
    assert len(kernels._flows.forms) == 1
    return found
