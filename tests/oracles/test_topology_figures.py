"""Hops, loads, bisections and failures of networks, as counted by a plain breadth-first search outside this project.

Mean hops are over ordered pairs of different chips. A load is how many ordered pairs cross the busiest direction of a
link when every pair sends alike over all its shortest paths (dimension order on plain tori and meshes). Widths of plain
tori and meshes of even longest axis are cuts across it; those of twisted tori are the best cuts found by a search of
another program, above what the second eigenvalue of the graph's Laplacian allows: ceil(lambda2 * n / 4).
"""

import itertools

import numpy as np
import pytest

from simulators.topology import build
from simulators.topology.cuts.bisection import bisection
from simulators.topology.cuts.bounds import spectral_bound, spectrum
from simulators.topology.loads import link_loads, usual_routing
from simulators.topology.search import hop_counts
from simulators.topology.systems import boardfly

GRAPHS = (  # name, chips, links, diameter, mean hops, load of the busiest link, links of the bisection
    ("mesh:2x4", 8, 10, 4, 2.0, 8.0, 2),
    ("v5e:8x16", 128, 240, 15, 6.677165, 256.0, 16),  # its long axis alone is a ring
    ("torus:16x16", 256, 512, 16, 8.031373, 512.0, 32),
    ("mesh:2x4x4", 32, 64, 7, 3.096774, 32.0, 8),
    ("torus:4x4x4", 64, 192, 6, 3.047619, 32.0, 32),
    ("torus:16x8x4", 512, 1536, 14, 7.013699, 1024.0, 64),
    ("torus:8x12x16", 1536, 4608, 18, 9.005863, 3072.0, 192),
    ("mesh:8x8x16", 1024, 2752, 29, 10.572825, 4096.0, 64),
    ("torus:4x4x8:twisted", 128, 384, 6, 3.464567, 73.3333, 64),
    ("torus:8x8x16:twisted", 1024, 3072, 12, 6.975562, 1189.3333, 256),
)
LAMBDA2 = (  # name, second eigenvalue of the Laplacian, bound that follows, links of the best cut found
    ("torus:4x8x8", 0.5857864376269034, 38, 64),
    ("torus:4x8x8:twisted", 1.1715728752538086, 75, 128),
    ("torus:4x4x8:twisted", 1.7573593128807123, 57, 64),
)
HOPS = {  # pairs by hops: Boardfly of 32 and 36 groups, without and with the limit of one optical hop
    ("boardfly:1024", "shortest"): (6144, 29696, 88576, 277728, 478784, 164128, 2496),
    ("boardfly:1024", "one_ocs"): (6144, 29184, 77632, 203392, 381376, 280448, 69376),
    ("boardfly:1152:spare=no", "shortest"): (6732, 31680, 89820, 289872, 589788, 306360, 11700),
    ("boardfly:1152:spare=no", "one_ocs"): (6732, 31176, 78948, 215208, 460152, 417816, 115920),
}
LOADS = {  # least, mean and greatest load of each kind of link in a Boardfly of 1,024 chips, to one decimal
    "shortest": {
        "board": (407.9, 641.8, 868.9),
        "copper": (358.9, 717.3, 1027.4),
        "ocs": (615.3, 1175.1, 1553.0),
    },
    "one_ocs": {
        "board": (556.9, 824.7, 1101.3),
        "copper": (497.2, 881.2, 1463.9),
        "ocs": (428.0, 793.6, 1024.0),
    },
}
FAILED = (  # name, what fails (chips, or the first link along z), chips left, diameter, mean hops
    ("torus:4x4x4", "link", 64, 6, 3.048611),
    ("torus:4x4x4", 1, 63, 6, 3.047619),
    ("torus:4x4x8", "link", 128, 8, 4.032972),
    ("torus:4x4x8", 1, 127, 8, 4.032246),
    ("torus:8x8x16", 1, 1023, 16, 8.007923),
    ("boardfly:1024", 1, 1023, 7, 4.619618),
    ("boardfly:1024", boardfly.BOARD, 1020, 7, 4.622446),
    ("boardfly:1024", boardfly.GROUP, 992, 7, 4.623686),
)


@pytest.mark.parametrize("row", GRAPHS, ids=lambda row: row[0])
def test_tori_meshes_and_twisted_tori(row):
    name, chips, links, diameter, mean, load, width = row
    net = build(name)
    hops = hop_counts(net)
    assert (net.chips, len(net.links), hops.diameter) == (chips, links, diameter)
    assert hops.mean == pytest.approx(mean, abs=1e-6)
    assert link_loads(net, routing=usual_routing(net)).max == pytest.approx(load, abs=6e-5)
    assert bisection(net).links == width


@pytest.mark.parametrize("dims", [(4, 4, 8), (3, 6, 6), (4, 8, 8)])
def test_a_twisted_torus_is_what_its_definition_walks(dims):
    """Around an axis of length k both or the one axis of length 2k is shifted by k: walked here chip by chip."""
    short = min(dims)
    shift = [short if d == 2 * short else 0 for d in dims]

    def stepped(chip, axis, way):
        at = list(chip)
        at[axis] += way
        if dims[axis] == short and not 0 <= at[axis] < short:
            at = [x + way * s for x, s in zip(at, shift, strict=True)]
        return tuple(x % d for x, d in zip(at, dims, strict=True))

    first = (0, 0, 0)
    far, edge = {first: 0}, [first]
    while edge:
        near = [stepped(c, axis, way) for c, axis, way in itertools.product(edge, range(3), (1, -1))]
        edge = [c for c in dict.fromkeys(near) if c not in far]
        far |= dict.fromkeys(edge, 1 + max(far.values()))
    counted = np.bincount(list(far.values()))[1:] * int(np.prod(dims))
    assert list(hop_counts(build("torus:" + "x".join(map(str, dims)) + ":twisted")).to_dict().values()) == list(counted)


@pytest.mark.parametrize("name, lambda2, bound, width", LAMBDA2)
def test_spectral_bounds_stay_below_the_cuts_found(name, lambda2, bound, width):
    net = build(name)
    value, _ = spectrum(net)
    assert value is None or value == pytest.approx(lambda2, abs=1e-9)
    assert spectral_bound(lambda2, net.chips) == bound
    assert bisection(net).links == width


@pytest.mark.parametrize("name, routing", HOPS)
def test_pairs_by_hops_of_a_boardfly(name, routing):
    found = hop_counts(build(name), routing)
    assert tuple(found.to_dict().values()) == HOPS[name, routing]
    assert found.unreachable == 0


@pytest.mark.parametrize("routing", LOADS)
def test_all_to_all_loads_of_a_boardfly_by_kind_of_link(routing):
    found = link_loads(build("boardfly:1024"), routing=routing).by_kind()
    assert set(found) == set(LOADS[routing])
    for kind, numbers in LOADS[routing].items():
        assert found[kind] == pytest.approx(numbers, abs=0.0501)


@pytest.mark.parametrize("row", FAILED, ids=str)
def test_what_is_left_after_failures(row):
    name, what, chips, diameter, mean = row
    net = build(name)
    links = np.zeros(len(net.links), bool)
    if what == "link":
        links[np.flatnonzero(net.lattice.links()[1] == 2)[0]] = True
    left = net.without(np.arange(net.nodes) < (0 if what == "link" else what), links)
    found = hop_counts(left)
    assert (left.chips_alive, found.diameter, found.connected) == (chips, diameter, True)
    assert found.mean == pytest.approx(mean, abs=1e-6)
