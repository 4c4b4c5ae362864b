"""Failures of tori and Boardfly against the oracle beside the project."""

import json
from pathlib import Path

import pytest

from simulators.topology import build
from simulators.topology.failures import fail
from simulators.topology.network import KIND_OF
from simulators.topology.search import hop_counts

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "topology" / "boardfly_oracle.json"


@pytest.fixture(scope="module")
def oracle():
    if not ORACLE.exists():
        pytest.skip("no topology oracle beside the project")
    return json.loads(ORACLE.read_text())["failures"]


def agrees(spec, failures, row):
    broken = fail(build(spec), failures)
    hops = hop_counts(broken.network)
    assert broken.network.chips_alive == row["n"]
    assert broken.connected is row["connected"]
    assert hops.diameter == row["diameter"]
    assert hops.mean == pytest.approx(row["mean_hops"], abs=1e-6)


@pytest.mark.parametrize("dims", ["4x4x4", "4x4x8", "8x8x16"])
def test_a_torus_without_a_chip_or_a_link(oracle, dims):
    rows = oracle[f"torus_fail_{dims}"]
    agrees(f"torus:{dims}", ["chip=0"], rows["minus_one_chip"])
    agrees(f"torus:{dims}", ["link=0-1"], rows["minus_one_z_link"])  # the last axis counts fastest


@pytest.mark.parametrize("part", ["chip", "board", "group"])
def test_a_boardfly_without_a_part(oracle, part):
    agrees("boardfly:1024", [f"{part}=0"], oracle["boardfly_1024_fail"][f"minus_one_{part}"])


@pytest.mark.parametrize("kind", ["board", "copper", "ocs"])
def test_a_boardfly_without_a_link(oracle, kind):
    """The oracle gives the worst of 24 links that it does not name; as all groups are alike, it is one of these."""
    row = oracle["boardfly_1024_fail"][f"minus_one_{kind}_link_worst_of_24"]
    network = build("boardfly:1024")
    links = network.links[(network.link_kind == KIND_OF[kind]) & (network.links < 32).any(axis=1)]
    means = []
    for a, b in links:
        broken = fail(network, [f"link={a}-{b}"])
        hops = hop_counts(broken.network)
        assert broken.connected and hops.diameter == row["diameter"]
        means.append(hops.mean)
    assert min(abs(m - row["mean_hops"]) for m in means) < 1e-6
    assert max(means) >= row["mean_hops"] - 1e-6
