"""Collectives against independent arithmetic: simulated rings, brute-force loads, cuts, and what must follow."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import QuestionError
from simulators.collectives import NAMES, collective, general, hierarchical, over_axes, rings, switched
from simulators.collectives.cost import PASSES, Setting
from simulators.collectives.graph import flow, least_all_to_all
from simulators.collectives.shape import shape_of
from simulators.collectives.trees import gathering_bytes_per_s
from simulators.topology import build
from simulators.topology.failures import fail
from simulators.topology.loads import link_loads
from simulators.topology.systems import edge_list

GIB = float(1 << 30)
W = 100e9
SYSTEMS = (
    "v5p:4x4x4",
    "v6e:8x16",
    "mesh:2x3",
    "torus:2x2x4:twisted",
    "torus:5",
    "boardfly:64",
    "nvl:8",
    "v100:8",
    "mi300x:8",
    "rail:64",
    "edges:0-1,1-2,2-0,2-3",
    "v5p:2x2x4:slices=3",
    "torus:1",
    "torus:2x2",
)


def simulated_gather(length, wrapped):
    """Steps until every chip of a ring or line has every part, each link moving one part one way a step."""
    links = [(i, i + 1) for i in range(length - 1)] + [(length - 1, 0)] * wrapped
    held = [{i} for i in range(length)]
    passed = {(a, b): set() for x, y in links for a, b in ((x, y), (y, x))}
    steps = 0
    while any(len(h) < length for h in held):
        before = [set(h) for h in held]
        for (a, b), sent in passed.items():
            fresh = before[a] - sent - held[b]
            if fresh:
                part = min(fresh, key=lambda p: min((p - a) % length, (a - p) % length) if wrapped else abs(p - a))
                sent.add(part)
                held[b].add(part)
        steps += 1
    return steps


@pytest.mark.parametrize("length", [2, 3, 4, 5, 8])
def test_a_line_takes_as_many_steps_as_one_simulated(length):
    steps = simulated_gather(length, False)
    part = GIB / length
    assert rings.all_gather(GIB, (length,), (False,), W, 0.0).seconds == pytest.approx(steps * part / W)
    assert rings.all_gather(1.0, (length,), (False,), W, 1e-6).latency_s == pytest.approx(steps * 1e-6)


@pytest.mark.parametrize("length", [3, 4, 5, 8, 9])
def test_a_ring_takes_the_hops_of_one_simulated_and_at_most_its_steps(length):
    steps = simulated_gather(length, True)
    ours = rings.all_gather(GIB, (length,), (True,), W, 1e-6)
    assert ours.latency_s == pytest.approx(steps * 1e-6)
    exact = (length - 1) / length * GIB / (2 * W)
    assert exact < ours.bandwidth_s <= exact * length / (length - 1) * (1 + 1e-12)


@pytest.mark.parametrize(
    "dims, wraps",
    [((4,), "r"), ((5,), "r"), ((6,), "l"), ((5,), "l"), ((4, 6), "rr"), ((3, 4), "rl"), ((2, 4, 4), "rrr")],
)
def test_all_to_all_over_axes_loads_links_as_counted_on_the_graph(dims, wraps):
    free = build(f"{'torus' if 'r' in wraps else 'mesh'}:{'x'.join(map(str, dims))}")
    ours = rings.all_to_all(1.0, dims, [w == "r" for w in wraps], W, 0.0).bandwidth_s
    if len(set(wraps)) == 1:
        most = link_loads(free).max
        assert ours == pytest.approx(most / free.chips**2 / W)
    else:  # a ring of 3 beside a line of 4: the line's middle carries 2 x 2 pairs for each of 3 x 3
        assert ours == pytest.approx(3 * 4 / 144 / W)


def test_sheet_numbers():
    pod = build("v5p:4x4x4")
    gathered = collective(pod, "all_gather", GIB, rates="scaling-book")
    assert gathered.seconds == pytest.approx(GIB / (3 * 180e9), rel=1e-9) and gathered.bound == "bandwidth"
    assert gathered.crossover_bytes == pytest.approx(3.24e6)
    two = collective(build("v5p:4x4x4:slices=2"), "all_reduce", GIB, link_bytes_per_s=90e9)
    assert two.seconds == pytest.approx(6.661176130370371e-3, rel=1e-9)
    node = collective(build("h100:8"), "all_gather", float(1 << 29))
    assert node.seconds == pytest.approx(1.0439156622e-3, rel=1e-9)
    pair = collective(build("rail:16"), "all_to_all", 1e9, hop_s=0.0)
    assert pair.seconds == pytest.approx(625e-6)
    torus = collective(build("torus:8x8x16"), "all_to_all", GIB, link_bytes_per_s=200e9, hop_s=0.0)
    assert torus.seconds == pytest.approx(10.48576e-6, rel=1e-6)


def test_boardfly_against_the_torus_at_equal_links():
    more = {"link_bytes_per_s": 200e9}
    torus, fly = (collective(build(s), "all_reduce", 64 * GIB, **more) for s in ("torus:8x8x16", "boardfly:1024"))
    assert fly.seconds / torus.seconds == pytest.approx(6 / 4.75, rel=2e-3)
    assert fly.low_s == pytest.approx(torus.low_s) and fly.high_s / fly.low_s == pytest.approx(6 / 4)
    small = [collective(build(s), "all_reduce", 1e3, **more).seconds for s in ("torus:8x8x16", "boardfly:1024")]
    assert small == pytest.approx([32e-6, 14e-6])
    pod = build("boardfly:1024")
    every = [collective(pod, "all_to_all", GIB, hop_s=0.0, routing=r) for r in ("one_ocs", "shortest")]
    assert [e.seconds * 1e6 for e in every] == pytest.approx([7.4952, 7.9514], rel=1e-4)
    assert [e.low_s * 1e6 for e in every] == pytest.approx([4.5965] * 2, rel=1e-4)
    assert every[0].high_s == pytest.approx(every[1].seconds)


@pytest.mark.parametrize("name", SYSTEMS)
def test_bands_hold_the_number_and_sizes_agree(name):
    network = build(name)
    for kind in NAMES:
        at = collective(network, kind, GIB)
        for size in (1.0, 1e4, 1e6, 1e8, GIB, 1e14):
            found = collective(network, kind, size)
            assert found.low_s <= found.seconds * (1 + 1e-12) and found.seconds <= found.high_s * (1 + 1e-12)
            assert found.seconds == pytest.approx(at.cost.seconds(np.array([size, size]))[1])
        x = at.crossover_bytes
        if x:
            assert [at.cost.bound(x * f) for f in (0.999, 1.001)] == ["latency", "bandwidth"]
            assert at.cost.latency_s == pytest.approx(at.cost.seconds_per_byte * x)
        else:
            assert network.chips == 1


def test_gathering_is_bound_by_the_narrowest_cut_of_all():
    """Every set of chips tried, on graphs small enough."""
    barbell = "0-1,0-2,0-3,1-2,1-3,2-3,4-5,4-6,4-7,5-6,5-7,6-7,0-4"
    for name in (f"edges:{barbell}", "edges:0-1,1-2,2-0,2-3", "mesh:2x4", "torus:2x2x2", "v100:8", "mi300x:8"):
        network = build(name)
        rates = {k: W for k in ("given", "copper", "wrap", "direct")}
        chips, links = range(network.chips), network.links
        narrowest = min(
            W * sum((a in s) != (b in s) for a, b in links) / n
            for n in range(1, network.chips)
            for s in map(set, combinations(chips, n))
        )
        assert gathering_bytes_per_s(network, rates) == pytest.approx(narrowest * (network.chips - 1))


@pytest.mark.parametrize(
    "name, failed",
    [
        ("v5p:4x4x4", "chip=5"),
        ("v5p:4x4x4", "link=0-1"),
        ("torus:4x4x8:twisted", ""),
        ("boardfly:512", ""),
        ("torus:3x5", "chip=1,7"),
    ],
)
def test_on_machines_the_chip_with_the_fewest_links_binds(name, failed):
    network = fail(build(name), (failed,)).network if failed else build(name)
    rates = dict.fromkeys(("copper", "wrap", "twist", "board", "ocs"), W)
    alive = network.alive[: network.chips]
    assert gathering_bytes_per_s(network, rates) == pytest.approx(W * network.degrees()[: network.chips][alive].min())


@pytest.mark.parametrize("name", ["v5e:8x8", "v5p:4x4x8", "v6e:2x4", "boardfly:64"])
def test_the_low_end_of_an_all_to_all_hides_its_hops_and_a_lost_link_does_not_lower_it(name):
    """As its note says: the longer of hops and bytes, whether the network is whole or broken."""
    whole, a_link = build(name), "link={}-{}".format(*build(name).links[0])
    low = [collective(n, "all_to_all", 1e7).low for n in (whole, fail(whole, (a_link,)).network)]
    for found in low:
        assert found.seconds(1e7) == max(found.latency_s, found.seconds_per_byte * 1e7)
    assert low[0].seconds(1e9) <= low[1].seconds(1e9) * (1 + 1e-12)


def test_low_ends_of_all_to_all_are_bounds():
    for name in ("torus:8x8x16:twisted", "boardfly:256", "edges:0-1,1-2,2-0,2-3", "v100:8"):
        network = build(name)
        rates = dict.fromkeys(("copper", "wrap", "twist", "board", "ocs", "given", "direct"), 1.0)
        assert 0 < least_all_to_all(network, rates) <= link_loads(network).max * (1 + 1e-9)


def test_a_ring_that_lost_a_link_is_a_line():
    whole, broken = build("v5p:4x4x8"), fail(build("v5p:4x4x8"), ("link=0-8",)).network
    shape = shape_of(broken)
    assert not shape.whole and shape.wraps == (True,) * 3
    ring, line = (collective(n, "all_gather", GIB, "y") for n in (whole, broken))
    assert (ring.seconds, line.seconds) == pytest.approx((GIB / 200e9, GIB * 3 / 4 / 100e9))
    assert collective(broken, "all_gather", GIB, "x").seconds == collective(whole, "all_gather", GIB, "x").seconds
    over_all = collective(broken, "all_gather", GIB)
    assert over_all.seconds == pytest.approx(GIB * 127 / 128 / 500e9)
    assert any("re-created" in n for n in over_all.notes)
    twice = fail(whole, ("link=0-8", "link=16-24")).network
    with pytest.raises(QuestionError, match="axis y of v5p:4x4x8 is in pieces"):
        collective(twice, "all_gather", GIB, "y")
    assert collective(twice, "all_gather", GIB).high_s == pytest.approx(GIB * 127 / 128 / 90e9)


def test_twisted_axes_are_lines_by_themselves():
    network = build("torus:4x4x8:twisted")
    gathered = {a: collective(network, "all_gather", GIB, a).seconds for a in "xyz"}
    assert gathered == pytest.approx({"x": GIB * 0.75 / W, "y": GIB * 0.75 / W, "z": GIB / (2 * W)})
    over_all = collective(network, "all_gather", GIB)
    assert over_all.seconds == pytest.approx(GIB * 127 / 128 / (6 * W))
    assert over_all.high_s == pytest.approx(GIB * 127 / 128 / (4 * W))


def test_levels_of_switches():
    found = collective(build("rail:1024"), "all_gather", GIB)
    assert [d for d, _ in found.levels] == [8, 32, 4]
    assert [w for _, w in found.levels] == pytest.approx([450e9, 400e9, 12.8e12])
    assert found.seconds == pytest.approx(GIB * 31 / 32 / 400e9)
    half = collective(build("rail:1024:oversubscription=2"), "all_gather", GIB)
    assert half.levels[2][1] == pytest.approx(6.4e12)
    rack = collective(build("nvl:72"), "all_reduce", GIB, sharp=True)
    assert rack.levels == ((72, 900e9),) and rack.seconds == pytest.approx(GIB / 900e9)


def test_switches_with_many_links_side_by_side_are_no_narrower_for_it():
    """Sixteen chips of one link each under two switches that four links join: each chip receives over its own."""
    links = [f"{c} {16 + c // 8} 400Gbps 0.0005ms 0" for c in range(16)] + ["16 17 400Gbps 0.0005ms 0"] * 4
    network = edge_list.read(["18 2 20", "16 17", *links], "two leaves")
    found = collective(network, "all_gather", GIB)
    assert found.seconds == pytest.approx(GIB * 15 / 16 / 50e9)


@pytest.mark.parametrize(
    "name, failed",
    [
        ("fattree:64", ("chip=0,1,2,3",)),  # a node of four: two hundred GB/s for what eight had four hundred
        ("rail:64", ("chip=0,1,2,3,4,5,6",)),
        ("fattree:64", ("nvswitch=0",)),  # eight GPUs left to their network cards
        ("rail:64", ("link=0-64",)),
        ("fattree:16", ("nvswitch=0,1",)),
        ("fattree:16", ("chip=1,2,3,4,5,6,7,9,10,11,12,13,14,15",)),  # two GPUs, each alone in its node
        ("fattree:64:chip=mi300x", ("chip=1,2,3",)),
        ("fattree:128:oversubscription=8", ()),  # a leaf of 32 GPUs with four uplinks
        ("fattree:160:oversubscription=8", ("chip=0,1,2,3",)),
        ("fattree:264:oversubscription=8", ()),  # the last unit is one node under one leaf
    ],
)
def test_under_switches_a_gathering_is_never_faster_than_the_narrowest_cut(name, failed):
    network = fail(build(name), failed).network
    chips = network.chips_alive
    known = dict(network.oneway_bytes_per_s)
    least = GIB * (chips - 1) / chips / gathering_bytes_per_s(network, known)
    found = collective(network, "all_gather", GIB)
    assert found.seconds == pytest.approx(least, rel=0.07) and found.seconds > 0.995 * least
    assert found.low_s <= found.seconds <= found.high_s
    assert collective(network, "all_reduce", GIB).seconds == pytest.approx(2 * found.seconds)
    assert all(collective(network, kind, GIB).seconds > 0 for kind in NAMES)


def test_a_narrow_leaf_holds_an_all_to_all_back_as_well():
    """A leaf of 32 of 128 GPUs sends 32 x 96 pairs over four uplinks of 50 GB/s."""
    found = collective(build("fattree:128:oversubscription=8"), "all_to_all", GIB)
    assert found.cost.seconds_per_byte == pytest.approx(32 * 96 / 128**2 / 200e9)
    held = collective(build("fattree:128:oversubscription=8"), "all_gather", GIB)
    assert held.cost.algorithm.endswith("held back by the narrowest leaf")
    assert "held back" not in collective(build("fattree:128"), "all_gather", GIB).cost.algorithm


def test_flow_out_of_a_group_is_what_its_cut_lets_through():
    mesh = build("mesh:4x4")
    corner = np.isin(np.arange(16), (0, 1, 4, 5))
    assert flow(mesh, {"copper": W}, corner) == pytest.approx(4 * W, rel=1e-5)


def test_slices_over_the_data_centre():
    network = build("v5e:4x4:slices=4")
    share, dcn = GIB / 16, 3.125e9
    inside = collective(build("v5e:4x4"), "all_gather", GIB).seconds
    between = share * 3 / 4 / dcn
    assert collective(network, "all_gather", GIB).seconds == pytest.approx(inside + between)
    assert collective(network, "all_reduce", GIB).seconds == pytest.approx(2 * (inside + between))
    assert collective(network, "all_reduce", GIB).low_s == pytest.approx(max(inside, 2 * between))
    one = hierarchical.between_slices(GIB, 16, 1, dcn)
    assert one.seconds == 0
    without = fail(network, ("slice=1",)).network
    assert collective(without, "all_gather", GIB).seconds == pytest.approx(inside + share * 2 / 3 / dcn)
    alone = collective(network, "all_gather", GIB, "xy")
    assert alone.chips == 16 and alone.seconds == pytest.approx(inside)


def test_further_shards_and_given_rates():
    network = build("v4:4x4x4")
    x = collective(network, "all_gather", 8 * 2**20, "x", rates="scaling-book", shards=4)
    assert x.seconds == pytest.approx(2 * 2**20 / 90e9)
    given_rate = collective(network, "all_gather", GIB, link_bytes_per_s=45e9, hop_s=1e-6)
    assert given_rate.high_s == given_rate.seconds and given_rate.low_s == pytest.approx(given_rate.seconds * 63 / 64)


@pytest.mark.parametrize(
    "name, kind, more",
    [
        ("v5p:4x4x4", "gossip", {}),
        ("v5p:4x4x4", "permute", {"axes": "q"}),
        ("boardfly:64", "permute", {"axes": "x"}),
        ("v5p:4x4x4", "all_reduce", {"sharp": True}),
        ("v5p:4x4x4", "all_gather", {"rates": "hearsay"}),
        ("boardfly:64", "all_gather", {"rates": "scaling-book"}),
        ("v5p:4x4x4", "all_to_all", {"routing": "one_ocs"}),
        ("v5p:4x4x4", "all_gather", {"hop_s": -1.0}),
        ("v5p:4x4x4", "all_gather", {"link_bytes_per_s": float("nan")}),
        ("v5p:4x4x4", "all_gather", {"shards": 65}),
        ("v3:4x4:slices=2", "all_gather", {}),
    ],
)
def test_what_cannot_be_asked(name, kind, more):
    with pytest.raises(QuestionError):
        collective(build(name), kind, GIB, **more)


def test_a_routing_that_failures_left_without_ways_times_no_exchange():
    """Chip 3 of each board of a Boardfly of 36 groups has the only light path to some of the others."""
    broken = fail(build("boardfly:1152"), ("chip=3",)).network
    with pytest.raises(QuestionError, match="3,968 pairs of chips of boardfly:1152 have no way by the routing one_ocs"):
        collective(broken, "all_to_all", GIB, routing="one_ocs")
    assert collective(broken, "all_gather", GIB, routing="one_ocs").seconds > 0
    whole = fail(build("boardfly:64"), ("chip=3",)).network
    assert collective(whole, "all_to_all", GIB, routing="one_ocs").seconds > 0
    alone = fail(build("h100:3"), ("chip=0,1",)).network
    assert collective(alone, "permute", GIB).seconds == 0


def test_a_network_in_pieces():
    apart = fail(build("mesh:8"), ("chip=3",)).network
    with pytest.raises(QuestionError, match="in 2 pieces"):
        collective(apart, "all_reduce", GIB)
    for size in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(QuestionError, match="bytes"):
            collective(build("mesh:8"), "all_reduce", size)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
def test_more_axes_never_slow_a_gathering_and_a_ring_beats_a_line(lengths, data):
    wraps = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    ours = rings.all_gather(GIB, lengths, wraps, W, 1e-6)
    ports = sum((2 if w else 1) for k, w in zip(lengths, wraps, strict=True) if k > 1)
    chips = int(np.prod(lengths))
    assert ours.bandwidth_s >= GIB * (chips - 1) / chips / (max(ports, 1) * W) * (1 - 1e-12)
    as_rings = rings.all_gather(GIB, lengths, [True] * len(lengths), W, 1e-6)
    assert ours.latency_s >= as_rings.latency_s
    assert rings.all_reduce(GIB, lengths, wraps, W, 1e-6).seconds == pytest.approx(2 * ours.seconds)


def test_every_formula_is_linear_in_bytes():
    setting = Setting(link_bytes_per_s={"copper": W, "wrap": W}, hop_s=1e-6)
    network = build("torus:4x4")
    for kind, axes in product(NAMES, ((0,), (0, 1))):
        cost = over_axes.cost(network, shape_of(network), axes, kind, setting, "value")
        straight = over_axes.FORMULAS[kind](GIB, [4] * len(axes), [True] * len(axes), W, 1e-6)
        assert cost.seconds(GIB) == pytest.approx(straight.seconds)
    assert set(PASSES) < set(NAMES)
    assert general.all_to_all_time(GIB, 16, 8, W, 4, 1e-6).seconds == pytest.approx(4e-6 + GIB / 256 * 8 / W)
    assert switched.all_gather(GIB, [(1, W)]) == 0


def test_slices_without_a_known_network_between_them_are_not_costed():
    setting = Setting(link_bytes_per_s={"copper": W, "wrap": W}, hop_s=1e-6)
    inside = over_axes.all_axes(
        build("torus:4x4"), shape_of(build("torus:4x4")), "all_gather", setting, "value", "shortest"
    )
    with pytest.raises(QuestionError, match="over the data-centre network is not known"):
        hierarchical.cost("all_gather", inside, inside, 16, 2, setting, "value")
