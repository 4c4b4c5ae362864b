"""`chipledger topology` and its address over HTTP: the contract, edge lists, and what is refused."""

import json

import pytest

from app import topologies
from errors import ChipledgerError
from tests.app.commands import out
from tests.app.serving import get, request
from tests.simulators.test_topology_report import CONTRACT

SQUARE = "# a ring of four\n0 1\n1 2\n2 3\n3 0\n"


def told(capsys, *arguments):
    code, text, _ = out(capsys, "topology", *arguments, "--json")
    assert code == 0
    return json.loads(text)


def test_one_topology_is_an_object_and_several_are_a_list(capsys):
    one = told(capsys, "v5p:4x4x8")
    assert set(one) >= CONTRACT and (one["diameter_hops"], one["max_link_load"]) == (8, 128)
    several = told(capsys, "torus:4x4x8", "torus:4x4x8:twisted")
    assert [t["diameter_hops"] for t in several] == [8, 6]
    after = told(capsys, "v5p:4x4x8", "--fail", "chip=5", "--fail", "link=0-1")
    assert after["connected"] and after["chips"] == 127 and after["failures"] == ["chip=5", "link=0-1"]


def test_the_honest_comparison(capsys):
    """The numbers of the sheet, at 1,024 chips and equal ports."""
    torus, twisted, fly = told(capsys, "torus:8x8x16", "torus:8x8x16:twisted", "boardfly:1024")
    assert [t["diameter_hops"] for t in (torus, twisted, fly)] == [16, 12, 7]
    assert [round(t["mean_hops"], 4) for t in (torus, twisted, fly)] == [8.0078, 6.9756, 4.6187]
    assert [t["links"] for t in (torus, twisted, fly)] == [3072] * 3
    assert torus["bisection_links"] == 128 and torus["bisection_basis"].startswith("exact")
    assert twisted["bisection_links"] <= 256 and fly["bisection_links"] <= 292
    assert [round(t["max_link_load"]) for t in (torus, twisted, fly)] == [2048, 1189, 1553]
    assert fly["max_link_load_by_routing"]["one_ocs"] == pytest.approx(1464, rel=1e-3)
    assert fly["max_link_load_bound"] == pytest.approx(512**2 / fly["bisection_links"])


def test_words_and_a_table_without_json(capsys):
    code, text, _ = out(capsys, "topology", "v5p:2x2x4", "nvl:8", "--fail", "chip=1")
    assert code == 0
    lines = text.splitlines()
    assert "15 of 16 chips left, TPU v5p 2x2x4" in text and "7 of 8 GPUs left" in text
    assert any(line.startswith("diameter (hops)") for line in lines)
    assert lines[-1].startswith("- ")
    plain = out(capsys, "topology", "v5p:2x2x4")[1]
    assert "It is a mesh, no torus: a dimension under 4 has no optical wrap; with wraps it would be 4 hops." in plain
    assert "different slices" in out(capsys, "topology", "v5e:4x4:slices=2")[1]


def test_a_file_of_links(capsys, tmp_path):
    file = tmp_path / "square.txt"
    file.write_text(SQUARE)
    one = told(capsys, f"graph:{file}")
    assert (one["chips"], one["links"], one["diameter_hops"], one["hop_histogram"]) == (4, 4, 2, {"1": 8, "2": 4})


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("7x7x7",),
        ("v5e:3x5",),
        ("v9:4x4x4",),
        ("torus:100x100x100",),
        ("v5p:4x4x8", "--fail", "chip=999"),
        ("v5p:4x4x8", "--fail", "sun=1"),
        ("graph:/no/such/file",),
        ("graph:",),
        ("graph:/",),
        ("boardfly:33",),
        ("torus:" + "4x" * 300 + "4",),
        ("torus:8x8x16:twist",),
    ],
)
def test_bad_input_is_one_error_line_and_exit_2(capsys, arguments):
    code, text, error = out(capsys, "topology", *arguments)
    assert (code, text) == (2, "")
    assert error.startswith("error: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    "content, says",
    [
        (b"0 0\n", "joined to itself"),
        (b"0 1\n3 4\n", "chip"),
        (b"\xff\xfe\x00\x01", "no text"),
        (b"", "no link"),
        (b"0 1\n" * (1 << 21) + b" ", "more than 8 MiB"),
    ],
)
def test_a_file_that_is_no_edge_list(capsys, tmp_path, content, says):
    file = tmp_path / "graph.txt"
    file.write_bytes(content)
    code, text, error = out(capsys, "topology", f"graph:{file}")
    assert (code, text) == (2, "") and says in error and error.count("\n") == 1


def test_an_edge_list_is_kept_once_by_its_content(place, capsys, monkeypatch):
    name = topologies.keep(place, SQUARE)
    assert topologies.keep(place, SQUARE) == name and topologies.in_store(name)
    spec, network = topologies.network(name, place)
    assert (spec.text, network.chips) == (name, 4)
    assert told(capsys, name)["links"] == 4  # the command finds it in the store as well
    with pytest.raises(ChipledgerError, match="joined to itself"):
        topologies.keep(place, "1 1")
    monkeypatch.setattr(topologies, "MOST_KEPT", 1)
    with pytest.raises(ChipledgerError, match="holds 1 edge lists already"):
        topologies.keep(place, "0 1")


def test_over_http(tmp_path, asked):
    file = tmp_path / "square.txt"
    file.write_text(SQUARE)
    address = f"{asked}/api/topology"
    assert get(f"{address}?spec=v5p:4x4x8")[1]["diameter_hops"] == 8
    several = get(f"{address}?spec=torus:4x4x4&spec=mesh:2x2x4&fail=chip%3D3")[1]
    assert [(t["chips"], t["lost_chips"]) for t in several] == [(63, 1), (15, 1)]
    for query in (
        "",
        "?spec=7x7x7",
        "?spec=v5p:4x4x8&fail=chip",
        "?" + "spec=mesh:4&" * 5,
        f"?spec=graph:{file}",
        "?spec=graph:../square",
        "?spec=graph:0123456789abcdef",
    ):
        status, said = get(address + query)
        assert status == 400 and set(said) == {"error"}, query
        assert "ring of four" not in said["error"]
    assert request("POST", address)[0] in (404, 405)
