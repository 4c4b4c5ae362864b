"""Parts that fail: what is left, whether it holds together, and what it means for the job."""

import re

import numpy as np
import pytest

from errors import QuestionError
from simulators.topology import build
from simulators.topology.failures import FAILS, breakable, fail, parse_failure
from simulators.topology.search import hop_counts
from simulators.topology.systems import edge_list

OPTICAL = "link=0-56"  # of a Boardfly: between group 0 and another


def broken(spec, *failures):
    return fail(build(spec), failures)


@pytest.mark.parametrize(
    ("text", "what", "numbers"),
    [
        ("chip=5", "chip", (5,)),
        (" Chip = 5, 7,5", "chip", (5, 7)),
        ("link=12-13", "link", (12, 13)),
        ("random=20@7", "random", (20, 7)),
        ("random=3", "random", (3, 0)),
        ("ocs=0", "ocs", (0,)),
    ],
)
def test_failures_are_read(text, what, numbers):
    failure = parse_failure(text)
    assert (failure.what, failure.numbers) == (what, numbers)
    assert parse_failure(failure.text) == failure


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "one of chip="),
        ("foo=1", "one of chip="),
        ("chip", "has no number"),
        ("chip=", "has no number"),
        ("chip=-1", "has no number"),
        ("link=3", "two ends"),
        ("random=x", "random=20@7"),
        ("chip=" + ",".join(map(str, range(1001))), "at most 1,000"),
    ],
)
def test_what_is_no_failure_is_told(text, said):
    with pytest.raises(QuestionError, match=said):
        parse_failure(text)


def test_every_part_that_a_network_has_can_fail():
    seen = set()
    for spec in ("v5p:4x4x8", "boardfly:64", "rail:4096", "v5e:16x16:slices=2", "nvl:72"):
        network = build(spec)
        for part, count in breakable(network).items():
            seen.add(part)
            number = {"link": "-".join(map(str, network.links[0])), "random": "1"}.get(part, str(count - 1))
            left = fail(network, [f"{part}={number}"])
            assert left.lost_links > 0, (spec, part)
            assert len(left.network.links) == len(network.links) - left.lost_links
            assert left.truth
    network = edge_list.read(["3 1 2", "2", "0 2 1Gbps 1ms 0", "1 2 1Gbps 1ms 0"], "graph:x")
    assert breakable(network)["switch"] == 1 and fail(network, ["switch=0"]).islands == (1, 1)
    assert seen | {"switch"} == {name for name, _ in FAILS}


def test_a_chip_takes_its_links_and_its_slice():
    left = broken("v5p:4x4x8", "chip=5")
    assert (left.lost_chips, left.lost_links, left.connected, left.islands) == (1, 6, True, (127,))
    assert left.network.chips_alive == 127 and left.network.lattice is None
    assert left.truth[0].startswith("The slice is down: XLA cannot run on a slice that lacks a chip")
    assert "Cube 1 is taken out" in left.truth[1] and "96 light paths" in left.truth[1]
    assert "2 of the 140 cubes" in left.truth[2] and left.spare == "1 spare cube for cube 1"


def test_two_links_between_the_same_chips_fail_one_at_a_time():
    ring = build("torus:2x4")  # a ring of 2 is wired with both ports
    assert fail(ring, ["link=0-4"]).lost_links == 1
    assert fail(ring, ["link=0-4", "link=4-0"]).lost_links == 2
    with pytest.raises(QuestionError, match="no more links join"):
        fail(ring, ["link=0-4"] * 3)


def test_an_optical_switch_takes_one_light_path_of_each_ring():
    """v5p 4x4x8: along x and y each of 16 places has one ring per cube, along z one ring through both cubes."""
    along_x, along_z = broken("v5p:4x4x8", "ocs=0"), broken("v5p:4x4x8", "ocs=40")
    assert along_x.lost_links == 2 and along_z.lost_links == 2
    assert "ICI resiliency" in along_x.truth[0] and along_x.truth[0].startswith("The slice may go on")
    assert broken("7x:4x4x8", "ocs=0").truth[0].startswith("Count on the slice being down")


@pytest.mark.parametrize(
    ("spec", "failure", "said"),
    [
        ("v5p:4x4x8", "link=12-13", "all copper links"),
        ("v5p:2x2x4", "chip=1", "4 healthy hosts"),
        ("v5p:2x2x1", "chip=1", "virtual machine"),
        ("v5e:16x16", "host=3", "another whole pod"),
        ("v5e:4x8", "chip=0", "another free block of 4x8"),
        ("7x:16x24x24", "cube=0", "no spare for cube 0"),
        ("boardfly:1024", "group=2", "4 are not in this slice"),
        ("boardfly:1152", "chip=2", "no spare for group 0"),
        ("boardfly:1024", "random=20@7", "only 4 for 17 groups"),
        ("boardfly:1024", OPTICAL, "is not published"),
        ("torus:4x4", "chip=0", "No machine is named"),
        ("edges:0-1,1-2,2-0", "link=0-1", "No machine is named"),
        ("v5e:16x16:slices=199", "slice=2", "198 slices .99.5 % of the chips"),
        ("h100:8", "chip=0", "on another node"),
        ("rail:1024", "node=7", "smaller by 8 GPUs"),
        ("nvl:72", "chip=3", "Tray 0 is cordoned"),
        ("nvl:72", "nvswitch=3", "94.4 % of its bandwidth"),
        ("h100:8", "nvswitch=0", "72.2 % of its bandwidth"),
        ("rail:1024", "nvswitch=0", "8 GPUs lose NVLink"),
        ("rail:1024", "leaf=3", "32 GPUs lose"),
        ("fattree:1024", "leaf=3", "4 nodes with 32 GPUs are cut off"),
        ("rail:1024", "spine=3", "93.8 % of the bandwidth"),
        ("fattree:4096", "spine=3", "the other 31 of 32 in the pod, about 96.9 %"),  # other pods have their own
        ("fattree:4096:oversubscription=8", "spine=3,4", "the other 3 of 4 in the pod, about 75 %"),
        ("fattree:64", "spine=0", "nothing goes over that tier any more"),
        ("rail:512", "leaf=0,1,2,3,4,5,6,7", "32 nodes with 256 GPUs are cut off"),
        ("v4:16x16x16:slices=2", "cube=0", "there is no spare for cube 0"),
        ("v4:16x16x16:slices=2", "cube=0", "goes on with 1 slice .50 % of the chips"),
        ("rail:4096", "core=3,4", "other 62 of 64"),
        ("mi300x:8", "link=0-1", "links that are left"),
    ],
)
def test_what_it_means_for_the_job(spec, failure, said):
    assert re.search(said, " ".join(broken(spec, failure).truth))


@pytest.mark.parametrize(
    ("spec", "failure", "said"),
    [
        ("v5p:4x4x8", "cube=9", "has cubes 0 and 1"),
        ("v5p:4x4x8", "chip=128", "chips 0 to 127"),
        ("v5p:4x4x8", "link=3-9", "Chip 3 is joined to 2, 4, 11, 27, 35, 99"),
        ("v5e:4x4", "cube=0", "has no cubes"),
        ("boardfly:1024", "ocs=1", "not published"),
        ("rail:64", "node=8", "nodes 0 to 7"),
        ("torus:4x4", "random=17", "chips 0 to 15"),
        ("torus:4x4", "link=3-99", "nodes 0 to 15"),
        ("torus:2x2", "chip=0,1,2,3", "nothing is left"),
    ],
)
def test_a_part_that_is_not_there_is_told_with_those_that_are(spec, failure, said):
    with pytest.raises(QuestionError, match=said):
        broken(spec, failure)


def test_islands():
    line = broken("mesh:6", "chip=2")
    assert (line.connected, line.islands, line.cut_off) == (False, (3, 2), 2)
    assert "2 chips cannot reach the rest" in line.truth[-1]
    assert hop_counts(line.network).unreachable == 2 * 3 * 2
    leaf = broken("fattree:1024", "leaf=3")
    assert leaf.islands == (992, 8, 8, 8, 8) and leaf.cut_off == 32  # each node still has its NVLink
    slices = broken("v5e:16x16:slices=3", "chip=0")
    assert slices.connected and slices.islands == (256, 256, 255)


def test_random_failures_are_drawn_by_their_seed():
    first, again, other = (broken("torus:8x8x16", f"random=20@{seed}") for seed in (7, 7, 8))
    assert first.lost_chips == 20 and np.array_equal(first.network.alive, again.network.alive)
    assert not np.array_equal(first.network.alive, other.network.alive)


def test_nothing_fails():
    whole = broken("v5p:4x4x8")
    assert whole.truth == () and whole.connected and whole.network.lattice is not None


def test_json():
    told = broken("mesh:6", "chip=2").to_dict()
    assert told["failures"] == ["chip=2"] and told["connected"] is False and told["islands"] == [3, 2]
    assert told["cut_off_chips"] == 2 and told["lost_chips"] == 1 and told["spare"] is None and len(told["truth"]) == 2
