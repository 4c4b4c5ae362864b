"""NVLink domains, direct meshes, fat trees and rails: counts against what is published, hops by hand."""

from dataclasses import replace

import numpy as np
import pytest

from errors import QuestionError
from simulators.topology import build, parse
from simulators.topology.loads import link_loads
from simulators.topology.network import KIND_OF
from simulators.topology.search import hop_counts
from simulators.topology.switches import of_kind


def kinds(network):
    return {
        name: int((network.link_kind == number).sum())
        for name, number in KIND_OF.items()
        if (network.link_kind == number).any()
    }


def test_a_rack_of_72():
    """18 switches, one link of every GPU to each: 1,296 links, 72 ports a switch, every pair two hops apart."""
    rack = build("nvl:72")
    assert (rack.chips, rack.switches, kinds(rack)) == (72, 18, {"nvlink": 72 * 18})
    assert set(rack.degrees()[:72]) == {18} and set(rack.degrees()[72:]) == {72}
    assert len(np.unique(rack.links, axis=0)) == 72 * 18
    assert rack.oneway_bytes_per_s["nvlink"] * 18 == 900e9  # NVLink 5: 1.8 TB/s both ways
    assert hop_counts(rack).to_dict() == {"2": 72 * 71}
    assert list(np.bincount(rack.parts["host"])) == [4] * 18


@pytest.mark.parametrize(
    ("name", "switches", "links", "oneway_gb"),
    [
        ("h100:8", 4, 18, 450),
        ("h200:8", 4, 18, 450),
        ("b200:8", 2, 18, 900),
        ("a100:8", 6, 12, 300),
    ],
)
def test_nvlink_nodes(name, switches, links, oneway_gb):
    node = build(name)
    assert (node.chips, node.switches, len(node.links)) == (8, switches, 8 * links)
    assert node.oneway_bytes_per_s["nvlink"] * links == oneway_gb * 1e9
    assert hop_counts(node).to_dict() == {"2": 56}


def test_direct_meshes():
    assert hop_counts(build("mi300x:8")).to_dict() == {"1": 56}
    cube = build("v100:8")
    assert cube.kind == "cube mesh" and build("mi300x:8").kind == "direct"
    assert set(cube.degrees()) == {6} and cube.switches == 0
    assert hop_counts(cube).to_dict() == {"1": 32, "2": 24}  # 16 pairs have a link: two quads and four edges


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("gb200:72", "nvl:72"),
        ("NVL72", "nvl:72"),
        ("nvl", "nvl:72"),
        ("H100 SXM:8", "h100:8"),
        ("h100", "h100:8"),
        ("fat-tree:1,024", "fattree:1024"),
        ("rail:64:oversubscription=1:chip=H100", "rail:64"),
    ],
)
def test_two_spellings_have_one_text(written, text):
    assert parse(written).text == text == parse(text).text


@pytest.mark.parametrize(
    ("gpus", "leaves", "spines", "cores"),
    [
        (512, 16, 8, 0),
        (1024, 32, 16, 0),
        (2048, 64, 32, 0),
        (4096, 128, 128, 64),
        (8192, 256, 256, 128),
        (16384, 512, 512, 256),
    ],
)
@pytest.mark.parametrize("name", ["rail", "fattree"])
def test_switch_counts_are_those_of_the_published_reference_design(name, gpus, leaves, spines, cores):
    network = build(f"{name}:{gpus}")
    assert [len(of_kind(network, k)) for k in ("leaf", "spine", "core")] == [leaves, spines, cores]
    ports = network.degrees()
    for kind in ("leaf", "spine", "core"):
        assert set(ports[of_kind(network, kind)]) <= {64}
    expected = {"nvlink": gpus, "rail": gpus, "spine": gpus} | ({"core": gpus} if cores else {})
    assert kinds(network) == expected


@pytest.mark.parametrize(
    "name",
    ["rail:768", "fattree:1000", "rail:2304", "fattree:3000", "rail:16", "fattree:40", "rail:2304:oversubscription=4"],
)
def test_no_switch_has_more_than_64_ports_and_spines_are_reached_alike(name):
    network = build(name)
    leaves = of_kind(network, "leaf")
    assert network.degrees()[np.r_[leaves, of_kind(network, "spine"), of_kind(network, "core")]].max() <= 64
    up = network.links[network.link_kind == KIND_OF["spine"]]
    pairs = np.unique(up, axis=0, return_counts=True)[1]
    assert len(set(pairs)) == 1
    assert hop_counts(network).unreachable == 0


def test_hops_of_rails_and_trees():
    """rail: a GPU's 7 mates and the 31 others of its rail in its unit are 2 hops away, over switch or leaf; all others
    4, over a mate or over a spine. Fat tree: 4 nodes share a leaf."""
    rail = hop_counts(build("rail:512")).to_dict()
    assert rail == {"2": 512 * (7 + 31), "4": 512 * (511 - 38)}
    tree = hop_counts(build("fattree:512")).to_dict()
    assert tree == {"2": 512 * 31, "4": 512 * (512 - 32)}


def test_oversubscription_takes_uplinks():
    whole, half = build("fattree:2048"), build("fattree:2048:oversubscription=2")
    assert kinds(half)["spine"] * 2 == kinds(whole)["spine"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("h100:16", "rail:16:chip=h100"),
        ("nvl:144", "72 GPUs"),
        ("nvl:10", "nvl:8 or nvl:12"),
        ("h100:1", "h100:8"),
        ("gb300:72", "not known here"),
        ("h100 pcie:8", "not known here"),
        ("h100:8:twisted", "no option 'twisted'"),
        ("fattree:1001", "fattree:1000 or fattree:1008"),
        ("rail:8", "rail:16"),
        ("rail:70000", "rail:65536"),
        ("rail:x", "'x'"),
        ("rail:64:oversubscription=3", "1, 2, 4, 8"),
        ("rail:64:chip=gb200", "nodes of 8"),
        ("rail:64:chip=v5p", "nodes of 8"),
    ],
)
def test_what_cannot_be_is_told_with_the_nearest(name, said):
    with pytest.raises(QuestionError, match=said):
        parse(name)


def test_a_tpu_is_no_gpu():
    assert parse("v5p:4x4x8").kind == "torus"


@pytest.mark.parametrize(
    "spec", ["rail:512", "fattree:96", "fattree:512:oversubscription=2", "rail:512:chip=mi300x", "rail:4096"]
)
def test_a_full_tree_loads_all_links_of_a_kind_alike(spec):
    network = build(spec)
    short, long = (link_loads(n) for n in (network, replace(network, uniform=False)))
    assert network.uniform
    np.testing.assert_allclose(short.forward, long.forward)
    np.testing.assert_allclose(short.backward, long.backward)


def test_a_tree_that_lacks_something_is_not_uniform():
    assert not any(build(spec).uniform for spec in ("rail:264", "fattree:72", "rail:2304", "rail:16:chip=v100"))
    whole = build("rail:512")
    nothing, none = np.zeros(whole.nodes, bool), np.zeros(len(whole.links), bool)
    assert whole.without(nothing, none).uniform
    assert not whole.without(np.arange(whole.nodes) == 3, none).uniform
    assert not whole.without(nothing, np.arange(len(whole.links)) == 3).uniform
