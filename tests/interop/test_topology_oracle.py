"""Hops, link loads, bisections and failures against graphs counted without this project."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from simulators.topology import build
from simulators.topology.cuts.bisection import bisection
from simulators.topology.cuts.bounds import spectral_bound, spectrum
from simulators.topology.loads import link_loads, usual_routing
from simulators.topology.network import KIND_OF
from simulators.topology.search import hop_counts
from simulators.topology.systems import boardfly

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "topology"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the oracles beside the project are absent")


def rows() -> list[dict[str, str]]:
    file = FOLDER / "torus_oracle.csv"
    return list(csv.DictReader(file.open(encoding="utf-8"))) if file.exists() else []


def oracle() -> dict:
    file = FOLDER / "boardfly_oracle.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def spec_of(row: dict[str, str]) -> str:
    if row["dims"] == "8x16":
        return "v5e:8x16"  # only its long axis is a ring
    if row["twist"]:
        return f"torus:{row['dims']}:twisted"
    return f"{'torus' if '1' in row['wrap'] else 'mesh'}:{row['dims']}"


def printed(value: float, digits: int) -> float:
    """As printed; half a digit of slack for the other program's own rounding."""
    return pytest.approx(value, abs=0.5 * 10.0**-digits + 1e-9)


@pytest.mark.parametrize("row", rows(), ids=spec_of)
def test_every_row_of_tori_and_meshes(row):
    net = build(spec_of(row))
    hops = hop_counts(net)
    assert (net.chips, len(net.links), hops.diameter) == (int(row["chips"]), int(row["links"]), int(row["diameter"]))
    assert hops.mean == pytest.approx(float(row["mean_hops"]), abs=1e-6)
    assert link_loads(net, routing=usual_routing(net)).max == printed(float(row["max_link_load_a2a"]), 4)
    if row["bisection_links"]:
        found = bisection(net)
        assert found.links == int(row["bisection_links"])
        assert found.exact == ("exact" in row["bisection_basis"])


ORACLE = oracle()
GRAPHS = ORACLE.get("graphs", {})


def graph(name: str):
    groups, spare = name.split("G=")[1].split(" spare_links=")
    return build(f"boardfly:{32 * int(groups)}" + ":spare=no" * (spare == "False"))


@pytest.mark.parametrize("name", GRAPHS)
def test_boardfly_histograms_with_and_without_the_limit_of_one_optical_hop(name):
    given, net = GRAPHS[name], graph(name)
    assert len(net.links) == given["links"]
    for routing, prefix in (("shortest", ""), ("one_ocs", "lgl_")):
        found = hop_counts(net, routing)
        assert found.to_dict() == given[prefix + "hist"] and found.unreachable == 0
        assert found.diameter == given[prefix + "diameter"]
        assert found.mean == pytest.approx(given[prefix + "mean_hops"], abs=1e-12)


@pytest.mark.parametrize("routing, chips", [(r, n) for r in ("shortest", "one_ocs") for n in (1024, 1152)])
def test_all_to_all_loads_by_kind(routing, chips):
    given = ORACLE["uniform_all_to_all_directed_link_load"]
    given = (
        given["shortest_path_ecmp"][f"boardfly {chips} shortest-path ECMP"]
        if routing == "shortest"
        else given["at_most_one_ocs_hop_LGL_minimal"][str(chips)]
    )
    found = link_loads(build(f"boardfly:{chips}"), routing=routing).by_kind()
    assert found.keys() == given.keys()
    for kind, numbers in given.items():
        assert found[kind] == tuple(printed(numbers[part], 1) for part in ("min", "mean", "max"))


def test_torus_loads_by_axis_and_twisted_betweenness():
    given = ORACLE["uniform_all_to_all_directed_link_load"]["shortest_path_ecmp"]["torus 8x8x16"]
    cases = [("torus:8x8x16", {k[-1]: (v["min"], v["max"]) for k, v in given.items()})]
    cases += [
        (f"torus:{dims}:twisted", ORACLE["failures"][f"twisted_edge_betweenness_{dims}"]) for dims in ("4x4x8", "4x8x8")
    ]
    for spec, by_axis in cases:
        net = build(spec)
        found, axes = link_loads(net), net.lattice.links()[1]
        for axis, (least, most) in by_axis.items():
            one = found.forward[axes == int(axis)]
            assert (one.min(), one.max()) == (printed(least, 4), printed(most, 4))


@pytest.mark.parametrize("name", ORACLE.get("bisection", {}))
def test_bisections_and_spectral_bounds(name):
    given = ORACLE["bisection"][name]
    kind, shape = name.split()
    net = build({"torus": f"torus:{shape}", "twisted": f"torus:{shape}:twisted"}.get(kind, f"boardfly:{shape}"))
    value, vectors = spectrum(net)
    steps = np.diff(vectors[net.links, 0], axis=1)  # of the vector that divides the chips: its own eigenvalue
    assert np.sum(steps**2) / np.sum(vectors[:, 0] ** 2) == pytest.approx(given["lambda2"], abs=1e-9)
    value = given["lambda2"] if value is None else value
    assert value == pytest.approx(given["lambda2"], abs=1e-9)
    assert spectral_bound(value, net.chips) == given["spectral_lb"]
    found = bisection(net)
    assert found.links == given["best_found"] and found.low >= given["spectral_lb"]


def without(net, chips=(), link=None):
    failed = np.zeros(len(net.links), bool)
    failed[[] if link is None else [link]] = True
    return net.without(np.isin(np.arange(net.nodes), chips), failed)


def same(net, given) -> bool:
    found = hop_counts(net)
    return (
        net.chips_alive == given["n"]
        and found.diameter == given["diameter"]
        and found.connected == given["connected"]
        and abs(found.mean - given["mean_hops"]) <= 1e-6
    )


@pytest.mark.parametrize("dims", ["4x4x4", "4x4x8", "8x8x16"])
def test_tori_after_failures(dims):
    given, net = ORACLE["failures"][f"torus_fail_{dims}"], build(f"torus:{dims}")
    along_z = int(np.flatnonzero(net.lattice.links()[1] == 2)[0])
    assert same(net, given["healthy"])
    assert same(without(net, link=along_z), given["minus_one_z_link"])
    assert same(without(net, [0]), given["minus_one_chip"])


def test_boardfly_after_failures_of_parts():
    given, net = ORACLE["failures"]["boardfly_1024_fail"], build("boardfly:1024")
    assert same(net, given["healthy"])
    assert same(without(net, [0]), given["minus_one_chip"])
    assert same(without(net, range(boardfly.BOARD)), given["minus_one_board"])
    assert same(without(net, range(boardfly.GROUP)), given["minus_one_group"])


@pytest.mark.parametrize("kind, first", [("board", 32), ("copper", 44), ("ocs", 32)])
def test_the_worst_link_of_a_boardfly(kind, first):
    """The oracle tried 24 links of each kind and does not say which: among those of one group is one with exactly its
    mean, and the worst of all is no better than it.
    """
    given = ORACLE["failures"]["boardfly_1024_fail"][f"minus_one_{kind}_link_worst_of_24"]
    net = build("boardfly:1024")
    found = [without(net, link=int(row)) for row in np.flatnonzero(net.link_kind == KIND_OF[kind])[:first]]
    assert any(same(one, given) for one in found)
    assert max(hop_counts(one).mean for one in found) >= given["mean_hops"] - 1e-6
