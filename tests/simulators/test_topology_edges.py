"""Edge lists: read, refused with the line and the rule, and inside a name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import ChipledgerError, InputError, QuestionError
from simulators.topology import build, parse
from simulators.topology.network import KIND_OF
from simulators.topology.search import hop_counts
from simulators.topology.systems import edge_list


def read(text):
    return edge_list.read(text.splitlines(), "my.txt")


def test_forms_of_a_link():
    network = read("# a square\n0 1\n1,2\n2;3\n3\t0 # closes it\n\n0 , 2 , copper\n0 1 {}\n1 2 {'weight': 3.0}\n")
    assert network.links.tolist() == [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [0, 1], [1, 2]]
    assert network.link_kind[4] == KIND_OF["copper"] and network.link_kind[0] == KIND_OF["given"]
    assert (network.chips, network.switches, network.kind) == (4, 0, "graph")


def test_a_graph_in_pieces_is_no_error():
    assert hop_counts(read("0 1\n2 3")).unreachable == 8


def test_a_topology_file_of_ns3():
    """Two servers of two GPUs under a switch each (nodes 2 and 5), the switches joined; chips are numbered anew."""
    network = read(
        "6 2 5\n2 5\n0 2 400Gbps 0.0005ms 0\n1 2 400Gbps 0.0005ms 0\n3 5 400Gbps 1us 0\n4 5 400Gbps 1us 0\n"
        "2 5 400Gbps 0.0005ms 0\n"
    )
    assert (network.chips, network.switches) == (4, 2)
    assert network.links.tolist() == [[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]]
    assert network.oneway_bytes_per_s == {"given": 50e9}
    assert hop_counts(network).to_dict() == {"2": 4, "3": 8}
    simai = read("4 2 1 0 3 A100\n2\n0 2 2400Gbps 0.000025ms 0\n1 2 100Gbps 0.0005ms 0\n3 2 100Gbps 0.0005ms 0\n")
    assert (simai.chips, simai.switches, dict(simai.oneway_bytes_per_s)) == (3, 1, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1\n5 5", "line 2: chip 5 is joined to itself"),
        ("0 1\n1 9", "chips 0 to 9, but no link of chip 2 .6 more are missing"),
        ("1 2\n2 3", "subtract 1"),
        ("0 1\n2", "line 2: '2' is half a link"),
        ("0 1\nfoo bar", "line 2: 'foo bar' is no link"),
        ("0 1\n\x00\x7fELF", "line 2: this is no text"),
        ("0 1 5", "more than a link"),
        ("0 1 blue", "no kind of link is called 'blue'"),
        ("0 65536", "65,535"),
        ("0 -1", "no link"),
        ("", "no link in it"),
        ("# nothing\n\n", "no link in it"),
        ("6 2 5\n2 5\n0 2 400Gbps 1ms 0\n0 9 400Gbps 1ms 0", "line 4: .* two of the 6 nodes"),
        ("2 2 1\n0 1\n0 1 400Gbps 1ms 0", "2 nodes with 2 switches"),
        ("6 2 5\n2 5\n0 2 400Gbps 1ms 0\n1 2 400Gbps 1ms 0", "my.txt: 2 links, where line 1 counts 5.* cut off"),
        ("4 2 1 0 2 A100\n2\n0 2 1Gbps 1ms 0\n1 2 1Gbps 1ms 0\n3 2 1Gbps 1ms 0", "3 links, where line 1 counts 2"),
        ("4 2 1 1 3 A100\n2\n0 2 1Gbps 1ms 0\n1 2 1Gbps 1ms 0\n3 2 1Gbps 1ms 0", "line 2: 1 of 2 switches"),
        ("x" * 100_000, "is no link"),
    ],
)
def test_what_is_no_edge_list_is_told(text, said):
    with pytest.raises(InputError, match=said) as e:
        read(text)
    assert len(str(e.value)) < 300 and str(e.value).startswith("my.txt")


def test_reading_is_bounded(monkeypatch):
    monkeypatch.setattr(edge_list, "MOST_LINES", 10)

    def endless():
        while True:
            yield "0 1"

    with pytest.raises(InputError, match="more than 10 lines"):
        edge_list.read(endless(), "my.txt")


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=150)
def test_any_text_is_read_or_refused(text):
    try:
        network = read(text)
    except ChipledgerError as e:
        assert "\n" not in str(e)
    else:
        assert network.links.max() < network.nodes


def test_a_graph_inside_a_name():
    spec = parse("edges:0-1, 1-2,2-0")
    assert (spec.text, spec.chips, spec.kind) == ("edges:0-1,1-2,2-0", 3, "graph")
    assert hop_counts(build(spec.text)).to_dict() == {"1": 6}
    ring = "edges:" + ",".join(f"{i}-{(i + 1) % 300}" for i in range(300))
    assert len(ring) > 200 and hop_counts(build(ring)).diameter == 150
    assert np.array_equal(np.bincount(build(ring).links.ravel()), np.full(300, 2))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("edges:", "no link in it"),
        ("edges:0-0", "link 1: chip 0 is joined to itself"),
        ("edges:0-1,1", "link 2: '1'"),
        ("edges:0-1,3-4", "no link of chip 2"),
        ("edges:0-1:twisted", "no option"),
        ("edges:" + "0-1," * 2000, "4,000"),
    ],
)
def test_a_name_that_is_no_graph_is_told(name, said):
    with pytest.raises((QuestionError, InputError), match=said):
        parse(name)
