"""Collectives on what a failure left, and in groups of what is twisted: whom a failure stops, and what the slowest line
or group takes."""

import pytest

from errors import QuestionError
from simulators.collectives import NAMES, collective
from simulators.collectives.trees import gathering_bytes_per_s
from simulators.topology import build
from simulators.topology.failures import fail

GIB = 2**30


@pytest.mark.parametrize(
    "name, failed, told",
    [
        ("rail:64", "nvswitch=0", "Of what the failure left."),
        ("rail:64", "chip=3", "a collective waits for every GPU"),
        ("mi300x:8", "chip=3", "a collective waits for every GPU"),
        ("v5p:4x4x8", "chip=3", "XLA runs no program on a slice that lacks a chip: it is re-created first"),
        ("v5p:4x4x8", "ocs=1", "Lost light paths alone it may outlast"),
        ("boardfly:1024", "chip=3", "XLA runs no program on a slice that lacks a chip"),
        ("torus:4x4", "chip=3", "no machine is named here"),
    ],
)
def test_what_a_failure_means_is_told_of_the_machine_that_failed(name, failed, told):
    notes = collective(fail(build(name), (failed,)).network, "all_gather", GIB).notes
    (note,) = (n for n in notes if n.startswith("Of what the failure left"))
    assert told in note and ("XLA" in note) == name.startswith(("v5p", "boardfly"))


@pytest.mark.parametrize(
    "name, failed, axes, share",
    [
        ("torus:5", "chip=3", ("x",), 4 / 16),  # a line of four: 2 x 2 pairs cross its middle; as one of five: 6 / 25
        ("torus:5", "link=0-1", ("x",), 6 / 25),
        ("torus:4x4", "chip=5", ("x",), 2 / 9),
        ("torus:3x4", "chip=0", ("x",), 1 / 4),
        ("mesh:3x4", "chip=2", ("x",), 1 / 4),
        ("mesh:4x4", "chip=0", ("x",), 1 / 4),  # of the lines that are whole
        ("torus:2x2x4:twisted", "chip=1", ("x", "y"), 2 / 9),  # three chips in a row
        ("torus:1x8", "chip=2", ("y",), 12 / 49),
    ],
)
def test_an_all_to_all_along_broken_axes_counts_the_chips_that_live(name, failed, axes, share):
    found = collective(fail(build(name), (failed,)).network, "all_to_all", GIB, axes, link_bytes_per_s=1e9)
    assert found.cost.seconds_per_byte * 1e9 == pytest.approx(share)
    assert found.low.seconds_per_byte <= found.cost.seconds_per_byte <= found.high.seconds_per_byte


@pytest.mark.parametrize(
    "name, failed, gathered, sent",
    [
        ("torus:5", "chip=3", 3 / 4, 1 / 4),
        ("torus:5", "link=0-1", 4 / 5, 1 / 5),
        ("torus:4x4", "chip=5", 2 / 3, 1 / 3),
        ("mesh:4x4", "chip=0", 3 / 4, 1 / 3),  # of a line that is whole, and of the one that is not
        ("torus:4x4", "link=0-1", 1 / 2, 1 / 4),  # along the other axis: rings, all whole
    ],
)
def test_collectives_along_a_broken_axis_are_those_of_the_slowest_line(name, failed, gathered, sent):
    network = fail(build(name), (failed,)).network
    for kind, share in (("all_gather", gathered), ("all_reduce", 2 * gathered), ("permute", sent)):
        found = collective(network, kind, GIB, ("x",), link_bytes_per_s=1e9)
        assert found.cost.seconds_per_byte * 1e9 == pytest.approx(share)
        assert found.low.seconds_per_byte <= found.cost.seconds_per_byte <= found.high.seconds_per_byte


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "all_to_all"])
@pytest.mark.parametrize(
    "name, failed",
    [
        ("v5p:4x4x8:twisted", ()),
        ("v5p:4x4x8", ()),
        ("v5p:4x4x4", ("chip=3",)),
        ("torus:5", ("chip=3",)),
        ("mesh:3x4", ("link=1-2", "link=9-10")),  # an axis in pieces, which the other goes around
    ],
)
def test_to_name_every_axis_is_to_ask_of_all_chips(kind, name, failed):
    network = fail(build(name), failed).network if failed else build(name)
    every, named = collective(network, kind, GIB), collective(network, kind, GIB, network.axes)
    for end in ("cost", "low", "high"):
        assert getattr(named, end) == getattr(every, end)
    assert named.chips == every.chips == network.chips_alive
    assert every.notes[-3:] == named.notes[-3:]


def test_a_group_along_broken_axes_has_the_chips_that_live():
    network = fail(build("torus:5"), ("chip=3",)).network
    assert collective(network, "permute", GIB, ("x",)).chips == 4


@pytest.mark.parametrize(
    "name, failed, axes, kind, hops",
    [
        ("torus:5", "link=0-1", ("x",), "permute", 4),  # all five in a line, the last of which sends back
        ("torus:4x2", "chip=1", ("x",), "all_gather", 2),  # three in a row beside a ring of four
        ("torus:4x2", "chip=1", ("x",), "all_reduce", 4),
        ("torus:4x2", "chip=1", ("x",), "permute", 2),
        ("mesh:4x2", "chip=0", ("x",), "all_gather", 3),  # the line beside is whole
        ("torus:2x3x4", "chip=0", ("y", "z"), "all_to_all", 3),
        ("torus:3x4", "link=0-1", ("x",), "all_gather", 1),  # along the other axis: rings, all whole
    ],
)
def test_hops_along_broken_axes_are_those_of_the_chips_that_live(name, failed, axes, kind, hops):
    found = collective(fail(build(name), (failed,)).network, kind, GIB, axes, hop_s=1e-6)
    assert found.cost.latency_s == pytest.approx(hops * 1e-6)


@pytest.mark.parametrize(
    "name, failed, axes, low",
    [
        ("torus:4x2", "chip=6", ("y",), 1 / 4),  # of a whole ring of two beside it: half of the array over two links
        ("torus:2x2x3", "chip=10", ("x", "z"), 2 / 5),  # four fifths over the two links of the chip that has fewest
        ("torus:2x2", ("chip=2", "chip=3"), ("x",), 0),  # nobody is left along x to send to
        ("torus:1x4x3", (), ("x", "y"), 3 / 8),  # an axis of one chip is no line
    ],
)
def test_the_low_end_along_axes_is_what_the_links_allow(name, failed, axes, low):
    network = fail(build(name), (failed,) if isinstance(failed, str) else failed).network
    for kind, passes in (("all_gather", 1), ("all_reduce", 2)):
        found = collective(network, kind, GIB, axes, link_bytes_per_s=1e9)
        assert found.low.seconds_per_byte * 1e9 == pytest.approx(passes * low)
        assert found.low.seconds_per_byte <= found.cost.seconds_per_byte <= found.high.seconds_per_byte


@pytest.mark.parametrize("axes", [("y", "z"), ("x", "z")])
def test_a_twist_within_a_group_keeps_its_links_busy(axes):
    """Each group is a torus of 2 x 4 of its own, whose links alone it has: four at a chip."""
    network = build("torus:2x2x4:twisted")
    gather, every = (
        collective(network, kind, GIB, axes, link_bytes_per_s=1e9, hop_s=1e-6) for kind in ("all_gather", "all_to_all")
    )
    assert gather.cost.seconds_per_byte * 1e9 == pytest.approx(7 / 8 / 4)
    assert every.cost.seconds_per_byte * 1e9 == pytest.approx(2.5 / 64)  # by a linear program over all ways: 0.0391
    assert gather.cost.latency_s == every.cost.latency_s == pytest.approx(2e-6)
    for found in (gather, every):
        assert found.low.seconds_per_byte <= found.cost.seconds_per_byte <= found.high.seconds_per_byte
    assert collective(network, "all_gather", GIB, ("x", "y")).cost.algorithm == "lines of 2 and 2 at once"


@pytest.mark.parametrize(
    "name, failed, held",
    [
        ("rail:16", ("leaf=2",), "a GPU without a network card"),  # two GPUs with NVLink alone
        ("fattree:16", ("link=1-18",), "a GPU without a network card"),
        ("rail:16:chip=mi300x", ("chip=0,2,3,4,6,7",), "the narrowest node"),  # two GPUs and one link
        ("rail:16:chip=mi300x", ("chip=0,2,3",), "the links left inside a node"),
        ("rail:16:chip=mi300x", ("link=0-1", "link=0-2", "link=0-3", "link=0-4"), "the GPU with the fewest links"),
        ("fattree:40:chip=mi300x", ("chip=33", "chip=38", "link=32-34"), "the GPU with the fewest links"),
        ("fattree:16:chip=mi300x", ("link=5-16",), "a GPU without a network card"),
    ],
)
def test_what_failures_left_of_nodes_gathers_as_its_links_allow(name, failed, held):
    network = fail(build(name), failed).network
    chips, rates = network.chips_alive, dict(network.oneway_bytes_per_s)
    least = GIB * (chips - 1) / chips / gathering_bytes_per_s(network, rates)
    found = collective(network, "all_gather", GIB)
    assert found.cost.algorithm.endswith(held)
    assert 0.999 * least < found.seconds < 1.05 * least
    for kind in NAMES:
        told = collective(network, kind, GIB)
        assert told.low_s <= told.seconds <= told.high_s


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "all_to_all"])
def test_a_group_whose_chips_cannot_reach_each_other_within_it_is_refused(kind):
    """Of a face of 2x2 two corners are left that no link joins; each of its lines has one chip, and is in no pieces."""
    left = fail(build("v5p:2x2x4"), ("chip=2", "chip=14")).network
    with pytest.raises(QuestionError, match="a group along x,y of v5p:2x2x4 is in pieces"):
        collective(left, kind, GIB, ("x", "y"))
    assert collective(left, kind, GIB).seconds > 0  # by the other faces
    one = fail(build("v5p:2x2x4"), ("chip=2",)).network
    assert collective(one, kind, GIB, ("x", "y")).seconds > 0
