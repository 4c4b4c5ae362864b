"""The report of a topology against plain searches, and the same network at other sizes."""

import json
from collections import deque

import numpy as np
import pytest

from simulators.topology import build, parse
from simulators.topology.failures import fail
from simulators.topology.report import report
from simulators.topology.sizing import resized

CONTRACT = {
    "spec",
    "kind",
    "chips",
    "links",
    "degree",
    "diameter_hops",
    "mean_hops",
    "hop_histogram",
    "bisection_links",
    "bisection_basis",
    "max_link_load",
    "wraps",
    "hosts",
    "cubes",
    "machine_type",
    "manifest",
    "basis",
}


def made(text, *failures):
    network = build(text)
    return report(parse(text), network, fail(network, failures) if failures else None)


def searched(network) -> dict[int, int]:
    """Ordered pairs of living chips by hops, by a plain search over lists."""
    near = [[] for _ in range(network.nodes)]
    for a, b in network.links.tolist():
        near[a].append(b)
        near[b].append(a)
    counts: dict[int, int] = {}
    for source in np.flatnonzero(network.alive[: network.chips]).tolist():
        seen, queue = {source: 0}, deque([source])
        while queue:
            at = queue.popleft()
            for to in near[at]:
                if to not in seen and (at < network.chips or at != source):
                    seen[to] = seen[at] + 1
                    queue.append(to)
        for chip, hops in seen.items():
            if chip < network.chips and hops:
                counts[hops] = counts.get(hops, 0) + 1
    return counts


@pytest.mark.parametrize("text", ["torus:4x4x4", "mesh:2x2x4", "torus:2x2x4:twisted", "boardfly:64", "nvl:8"])
def test_a_report_counts_what_a_plain_search_counts(text):
    told = made(text).to_dict()
    network = build(text)
    expected = searched(network)
    assert {int(k): v for k, v in told["hop_histogram"].items()} == expected
    pairs = sum(expected.values())
    assert told["diameter_hops"] == max(expected)
    assert told["mean_hops"] == pytest.approx(sum(h * n for h, n in expected.items()) / pairs)
    assert (told["chips"], told["links"]) == (network.chips, len(network.links))
    assert told["degree"] == np.bincount(network.links.ravel())[: network.chips].max()
    assert set(told) >= CONTRACT and json.loads(json.dumps(told, allow_nan=False)) == told


def test_what_a_slice_is_made_of():
    told = made("v5p:16x8x4").to_dict()
    assert (told["spec"], told["chips"], told["cubes"], told["hosts"]) == ("v5p:4x8x16", 512, 8, 128)
    assert told["wraps"] == ["x", "y", "z"] and told["machine_type"] == "ct5p-hightpu-4t"
    small = made("v5p:2x2x4").to_dict()
    assert (small["kind"], small["wraps"], small["cubes"], small["hosts"]) == ("mesh", [], None, 4)
    assert made("v6e:8x16").to_dict()["wraps"] == ["y"]
    assert made("torus:4x4").to_dict()["machine_type"] is None


def test_the_busiest_link_and_the_bound_by_the_cut():
    found = made("torus:4x4x8")
    # closed form: N k / 8 ordered pairs on a link of an even ring of k; the cut: N/2 squared by 2 N / k links
    assert found.busiest["shortest"] == pytest.approx(128 * 8 / 8)
    assert found.cut_bound == pytest.approx(64 * 64 / (2 * 128 / 8))
    assert found.cut_bound <= found.busiest["shortest"] + 1e-9
    fly = made("boardfly:64")
    assert set(fly.busiest) == {"shortest", "one_ocs"} and fly.inferred
    assert {row.kind for row in fly.loads} == {"board", "copper", "ocs"}
    assert all(row.least <= row.mean <= row.most for row in fly.loads)
    assert "inferred" in fly.basis


def test_a_routing_without_ways_for_some_pairs_is_not_set_beside_those_that_have_them():
    """One chip less, and 3,968 pairs of a Boardfly are more than one optical hop apart: their messages load no link."""
    assert set(made("boardfly:1152", "chip=3").busiest) == {"shortest"}
    assert set(made("boardfly:64", "chip=3").busiest) == {"shortest", "one_ocs"}


def test_pairs_without_a_path_bound_no_link():
    """Of a mesh of 3 x 3 that lost two chips the corner is alone: its pairs cross no cut."""
    apart = made("mesh:3x3", "chip=1", "chip=3")
    assert not apart.connected and apart.bisection.links == 2 and apart.cut_bound is None
    assert made("mesh:3x3", "chip=1").cut_bound == pytest.approx(4 * 4 / 3)


def test_shares_of_the_histogram():
    found = made("mesh:5")  # ordered pairs by hops: 8, 6, 4, 2
    assert [found.share_within(s) for s in (0.4, 0.41, 0.7, 0.9, 0.91, 1.0)] == [1, 2, 2, 3, 4, 4]
    assert made("mesh:1").share_within(0.5) is None


def test_several_slices_have_pairs_that_no_link_joins():
    found = made("v5e:4x4:slices=3")
    assert found.dcn_pairs == 3 * 2 * 16 * 16 and found.hops.unreachable == found.dcn_pairs and found.connected
    one = made("v5e:4x4").to_dict()
    told = found.to_dict()
    assert {k: v // 3 for k, v in told["hop_histogram"].items()} == one["hop_histogram"]
    assert told["hosts"] == 3 * one["hosts"]
    assert found.cut_bound == made("v5e:4x4").cut_bound
    less = made("v5e:4x4:slices=3", "chip=0")
    assert less.dcn_pairs == 2 * (15 * 16 * 2 + 16 * 16) and less.connected and less.cut_bound is None


def test_after_a_failure():
    told = made("torus:4x4x4", "chip=5").to_dict()
    assert (told["chips"], told["links"], told["lost_chips"], told["lost_links"]) == (63, 192 - 6, 1, 6)
    assert told["connected"] is True and told["truth"] and told["failures"] == ["chip=5"]
    assert sum(told["hop_histogram"].values()) == 63 * 62
    apart = made("mesh:4", "chip=1")
    assert not apart.connected and apart.to_dict()["unreachable_pairs"] == 4
    assert "failures" not in made("torus:4x4x4").to_dict()


def test_chips_that_stand_alone_have_no_hops():
    told = made("mesh:1").to_dict()
    assert (told["chips"], told["links"], told["degree"]) == (1, 0, 0)
    assert told["diameter_hops"] is None and told["mean_hops"] is None and told["hop_histogram"] == {}


@pytest.mark.parametrize(
    "text, chips, expected",
    [
        ("v5p:4x4x8", 1024, "v5p:8x8x16"),
        ("boardfly:1024", 900, "boardfly:896"),
        ("torus:64x64", 10_000, "torus:100x100"),
        ("v5e:16x16:slices=4", 2000, "v5e:16x16:slices=7"),
        ("v6e:4x4", 100, "v6e:8x8"),
        ("mesh:2x2x4", 64, "mesh:4x4x4"),
        ("torus:4x4x8:twisted", 1100, "torus:8x8x16:twisted"),
        ("nvl:8", 100, "nvl:8"),
        ("v5p:4x4x8", 30, None),
    ],
)
def test_the_same_kind_at_another_size(text, chips, expected):
    found = resized(parse(text), chips)
    assert (found and found.text) == expected
    assert found is None or found.chips <= chips
