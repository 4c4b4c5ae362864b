"""The panels "Break it" and "Your own graph": their controls, their words and their figure."""

import pytest
from streamlit.testing.v1 import AppTest

from app import topologies
from app.pages.topology.failures_figure import before_and_after
from app.pages.topology.graph import named
from app.topologies.failures_words import moved, table, verdict
from tests.app.test_pages import SECONDS, words


def script():
    import streamlit as st

    from app.components.current import open_workspace
    from app.pages.topology import failures as lab_failures
    from app.pages.topology import graph as lab_graph
    from app.pages.topology.lab import load

    panel = lab_graph.panel if st.query_params.get("show") == "graph" else lab_failures.panel
    panel(load(open_workspace()))


def shown(**address) -> AppTest:
    at = AppTest.from_function(script, default_timeout=SECONDS)
    at.query_params.update(address)
    return at.run()


def pressed(at: AppTest, label: str) -> AppTest:
    return next(b for b in at.button if b.label.replace("\\", "") == label).click().run()


def address(at: AppTest, name: str) -> list[str]:
    """All values of a name in the address; AppTest gives a list only where there are several."""
    value = at.query_params.get(name, [])
    return [value] if isinstance(value, str) else list(value)


def reports(spec, *failures):
    return topologies.report(spec, (), None), topologies.report(spec, failures, None)


def test_a_part_is_broken_refused_and_mended(place):
    at = shown(spec="edges:0-1,1-2,2-3,3-0")
    assert not at.exception and "Nothing has failed yet" in words(at)
    at.text_input(key="lab_fail_which").input("2")
    pressed(at, "Break it")
    assert not at.exception and address(at, "fail") == ["chip=2"]
    assert "No machine is named here" in words(at) and "Lost: 1 chip and 2 links" in words(at)
    at.text_input(key="lab_fail_which").input("9")
    pressed(at, "Break it")
    assert address(at, "fail") == ["chip=2"] and "has chips 0 to 3" in words(at)
    at.selectbox(key="lab_fail_what").select("link")
    at.text_input(key="lab_fail_which").input("0-1")
    pressed(at, "Break it")
    assert address(at, "fail") == ["chip=2", "link=0-1"] and "cannot reach the rest" in words(at)
    pressed(at, "chip 2")
    assert address(at, "fail") == ["link=0-1"]
    pressed(at, "link 0-1")
    assert "fail" not in at.query_params and not at.exception


def test_an_edge_list_becomes_the_topology(place):
    at = shown(spec="edges:0-1", show="graph", fail="chip=0")
    at.text_area(key="lab_graph_text").input("0 1\n1 1")
    pressed(at, "Show it")
    assert "line 2: chip 1 is joined to itself" in words(at) and address(at, "spec") == ["edges:0-1"]
    at.text_area(key="lab_graph_text").input("0 1\n1 2 # a line")
    pressed(at, "Show it")
    assert not at.exception and address(at, "spec") == ["edges:0-1,1-2"] and "fail" not in at.query_params
    at.text_area(key="lab_graph_text").input("0 1\n1 2 copper")
    pressed(at, "Show it")
    kept = address(at, "spec")[0]
    assert kept.startswith("graph:") and f"Shown now: {kept}" in words(at)
    assert topologies.network(kept, place)[1].links.tolist() == [[0, 1], [1, 2]]


def test_long_lists_are_kept_in_the_store(place, monkeypatch):
    monkeypatch.setattr("app.pages.topology.graph.open_workspace", lambda: place)
    ring = "\n".join(f"{i} {(i + 1) % 400}" for i in range(400))
    assert named(ring).startswith("graph:")
    assert named("0 1\n1 0") == "edges:0-1,1-0"


def test_words():
    before, after = reports("v5p:4x4x8", "chip=5")
    said = verdict(before, after)
    assert said.startswith("The slice is down: XLA cannot run")
    assert "Hops hardly move among the 127 chips left: 4.0322 on average against 4.0315, at most 8 as before." in said
    rows = {row[0]: row[1:] for row in table(before, after).rows}
    assert rows["Chips"] == ("128", "127") and rows["Links"] == ("384", "378") and rows["Connected"] == ("yes", "yes")


@pytest.mark.parametrize(
    ("spec", "failure", "said"),
    [
        (
            "edges:0-1,1-2,2-3,3-0",
            "link=0-1",
            "Hops grow by 25.0 %: 1.6667 on average against 1.3333, at most 3 against",
        ),
        ("edges:0-1", "link=0-1", "No pair of chips has a path any more."),
        ("mesh:6", "chip=0", "Hops shrink by 14.3 % among the 5 chips left: 2.0000 on average against 2.3333"),
    ],
)
def test_how_hops_moved(spec, failure, said):
    assert moved(*reports(spec, failure)).startswith(said)


def test_the_figure_holds_the_shares():
    """A ring of 4 has 8 pairs one hop apart and 4 two; as a line 6, 4 and 2."""
    whole, left = before_and_after(*reports("edges:0-1,1-2,2-3,3-0", "link=0-1")).data
    assert list(whole.y) == pytest.approx([100 * 8 / 12, 100 * 4 / 12])
    assert list(left.y) == pytest.approx([50, 100 / 3, 100 / 6])
    assert len(before_and_after(*reports("edges:0-1", "link=0-1")).data) == 1
