"""The specification sheet against the networks as built and the machines as offered, wherever both have the number."""

import csv
import re
from math import prod
from pathlib import Path

import pytest

from catalog import chip
from catalog.slices import families
from errors import QuestionError
from simulators.topology import build, parse
from simulators.topology.manifests.manifest import manifest
from simulators.topology.systems.shapes import SHORT, largest, text_of

SHEET = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "topology" / "specs.csv"
pytestmark = pytest.mark.skipif(not SHEET.exists(), reason="the oracles beside the project are absent")
ROWS = {r["chip"]: r for r in csv.DictReader(SHEET.open(encoding="utf-8"))} if SHEET.exists() else {}
TORI = [r for r in ROWS.values() if "torus" in r["scaleup_topology"]]
SWITCHED = {  # as one domain is written here
    "A100 SXM 80GB": "a100:8",
    "H100 SXM": "h100:8",
    "H200 SXM": "h200:8",
    "B200 HGX": "b200:8",
    "GB200 NVL72 (per GPU)": "nvl:72",
    "MI300X": "mi300x:8",
    "MI355X": "mi355x:8",
}
PHYSICAL_HOST_IS_LARGER = {"TPU v5e", "TPU v6e"}  # 8 chips on the board, machine types of 4 (and of 1 and 8)


def of(row):
    return families()[chip(row["chip"]).name]


def smallest_whole_torus(family):
    """Every axis a ring: one cube, or the pod of the generations without cubes."""
    return f"{SHORT[family.name]}:" + ("4x4x4" if family.wrap == "cube" else text_of(largest(family)))


@pytest.mark.parametrize("row", TORI, ids=lambda r: r["chip"])
def test_a_torus_has_the_sheet_s_links_rates_and_size(row):
    family = of(row)
    network = build(smallest_whole_torus(family))
    links, rate = int(row["links_per_chip"]), float(row["link_oneway_GBps"]) * 1e9
    assert set(network.degrees()) == {links} and links == 2 * family.axes
    assert set(network.oneway_bytes_per_s.values()) == {rate}
    assert links * rate * 2 == float(row["scaleup_bidi_total_GBps"]) * 1e9
    assert int(row["scaleup_domain_chips"]) == family.numbers["pod_chips"].value
    told = re.search(r"\d+(x\d+)+", row["scaleup_topology"].replace("cubes 4x4x4", ""))
    if told:  # the pod's shape, where it is published
        assert prod(int(n) for n in told[0].split("x")) == int(row["scaleup_domain_chips"])
        assert parse(f"{SHORT[family.name]}:{told[0]}").chips == int(row["scaleup_domain_chips"])


@pytest.mark.parametrize("row", TORI, ids=lambda r: r["chip"])
def test_machines_have_the_sheet_s_chips_per_host_or_half_a_board(row):
    if not row["chips_per_host"] or not of(row).topologies:
        assert "reason" in manifest(parse(smallest_whole_torus(of(row))))
        return
    offered = manifest(parse(smallest_whole_torus(of(row))))["chips_per_host"]
    physical = int(row["chips_per_host"])
    if of(row).name in PHYSICAL_HOST_IS_LARGER:
        assert (physical, offered) == (8, 4) and "8" in row["traps"]
    else:
        assert physical == offered == 4


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r["dcn_Gbps_per_chip"]], ids=lambda r: r["chip"])
def test_the_data_centre_network_s_share_of_a_chip(row):
    assert chip(row["chip"]).value("dcn_oneway_bytes_per_s") == float(row["dcn_Gbps_per_chip"]) * 1e9 / 8


@pytest.mark.parametrize("name, text", SWITCHED.items())
def test_a_gpu_domain_has_the_sheet_s_links_rates_and_size(name, text):
    row = ROWS[name]
    network = build(text)
    assert network.chips == int(row["scaleup_domain_chips"])
    assert set(network.degrees()[: network.chips]) == {int(row["links_per_chip"])}
    assert list(network.oneway_bytes_per_s.values()) == pytest.approx([float(row["link_oneway_GBps"]) * 1e9], rel=1e-3)


def test_boardfly_has_the_sheet_s_links_and_size():
    row = ROWS["TPU 8i"]
    pod = build(f"boardfly:{row['scaleup_domain_chips']}")
    assert set(pod.degrees()) == {int(row["links_per_chip"])} and pod.chips == 1152
    assert set(pod.oneway_bytes_per_s.values()) == {float(row["link_oneway_GBps"]) * 1e9}


def test_every_row_is_compared_or_has_no_scale_up_network():
    compared = {r["chip"] for r in TORI} | set(SWITCHED) | {"TPU 8i"}
    alone = set(ROWS) - compared
    assert alone == {"TPU v1", "RTX PRO 6000 Blackwell (WS)"}  # each hangs on PCIe
    for name in alone:
        with pytest.raises(QuestionError):
            parse(f"{name}:8")
