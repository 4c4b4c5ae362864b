"""The topology lab as Streamlit runs it, and its figures and words apart from the page."""

import pytest

from app import topologies
from app.pages.topology.compare_figure import counted as charts_of
from app.pages.topology.compare_figure import small_multiples
from app.pages.topology.examples import EXAMPLES
from app.pages.topology.hops import counted
from app.pages.topology.hops_figure import histogram, link_loads
from app.pages.topology.page import PANELS
from app.topologies.compare_words import compared, costs
from app.topologies.words import matter, table, verdict, within
from tests.app.test_pages import opened, words

PAGE = "pages/topology/page.py"
HONEST = EXAMPLES[0].specs


def report(text, *failed):
    return topologies.report(text, failed, None)


def opened_at(show="", *specs, **more):
    return opened(PAGE, spec=list(specs), show=show, **more)


@pytest.fixture(scope="module")
def honest():
    return [report(text) for text in HONEST]


def test_a_failure_that_cannot_be_is_told_and_can_be_taken_back(place):
    at = opened_at("", "v5p:2x2x4", fail="chip=500")
    assert "chips 0 to 15" in at.warning[0].value
    at.button[-1].click().run()
    assert not at.exception and not at.warning and "16 chips" in words(at)


def test_verdicts_hold_the_numbers():
    assert verdict(report("v5p:16x8x4")).startswith(
        "512 chips, TPU v5p 4x8x16, a torus of 8 cubes: at most 14 hops, 7.01 on average. 64 links join its halves; "
        "under all-to-all the busiest link carries 1,024 pairs of chips."
    )
    assert verdict(report("7x:16x24x24")).startswith("9,216 chips, TPU 7x 16x24x24, a torus of 144 cubes: at most 32")
    many = verdict(report("v5e:16x16:slices=199")).whole
    assert many.startswith("50,944 chips, 199 slices of TPU v5e 16x16, a torus: at most 16 hops")
    assert "32 links join the halves of a slice" in many and "99.5 % of all pairs" in many
    assert "72 GPUs, GB200, an NVLink domain: at most 2 hops" in verdict(report("nvl:72"))
    assert "No shape of TPU 8t is published: this one follows the rule of the generations before." in verdict(
        report("8t:20x20x24")
    )
    assert report("8t:20x20x24").inferred and not report("7x:16x24x24").inferred
    assert "at most 12 hops, 6.98 on average" in verdict(report("torus:8x8x16:twisted"))


def test_the_one_thing_that_matters():
    assert matter(report("v5p:2x2x4")) == (
        "It is a mesh, no torus: a dimension under 4 has no optical wrap; with wraps it would be 4 hops."
    )
    assert matter(report("v6e:8x16")) == (
        "Axis x is a line, no ring: only an axis of 16 is a ring; with wraps it would be 12 hops."
    )
    assert matter(report("torus:8x8x16:twisted")) == "Without the twist it would be 16 hops, 8.01 on average."
    assert matter(report("mesh:4", "chip=1")) == "It is not connected: 4 ordered pairs of chips have no path."
    assert matter(report("torus:8x8x16")) == "" == matter(report("torus:4x4x4", "chip=1"))
    told = verdict(report("v5p:4x4x8", "chip=5")).whole
    assert told.startswith("The slice is down") and "127 of 128 chips left" in told
    assert "inferred" in matter(report("boardfly:64"))
    assert within(report("mesh:1")) == "mesh:1: no pair of chips has a path."


def test_the_honest_sentences(honest):
    told = compared(honest)
    assert told[0] == "All have 1,024 chips and 3,072 links."
    assert "takes 56 % off the longest way and 42 % off the mean: that is latency." in told[1]
    assert told[2] == "The baseline of 16 hops is the untwisted torus; a twist of the same links has 12."
    assert "torus:8x8x16:twisted carries it best: 1.7 times as well as torus:8x8x16" in told[3]
    assert "boardfly:1024 1.3 to 1.4 times" in told[3]
    assert "1,464 (at most one OCS hop) or 1,553 (all shortest paths alike)" in told[3]
    assert "goes below 898" in told[3] or honest[2].bisection.links < 292
    assert compared(honest[:1]) == ["Add a topology to compare this one with."]
    assert "hops grow with size" in compared([honest[0], report("torus:4x4x4")])[0]
    assert costs(honest[:2], [2.0, None]) == []
    assert costs(honest[:2], [2.0, 1.0]) == [
        "An hour costs, at the prices entered: torus:8x8x16 $2,050, torus:8x8x16:twisted $1,020."
    ]


def test_slices_and_graphs_in_pieces_are_not_said_to_carry_what_no_link_of_theirs_does():
    slices, one = report("v5p:4x4x4:slices=2"), report("v5p:4x4x8")
    for told in (compared([slices, one]), compared([one, slices])):
        assert "carries it best" not in " ".join(told) and "that is latency" not in " ".join(told)
        assert "v5p:4x4x4:slices=2: at most 6 hops, 3.05 on average inside a slice" in told[1]
        assert told[-1] == (
            "50.4 % of the pairs of v5p:4x4x4:slices=2 go over the data-centre network, so its links are not set "
            "against the others'."
        )
    apart, ring = report("edges:0-1,1-2,2-0,2-3,4-5,5-6,6-7,7-4"), report("torus:8")
    assert compared([ring, apart])[-1].startswith("57.1 % of the pairs of edges:0-1,1-2,2-0,2-3,4-5,5-6,6-7,7-4 go now")
    both = compared([ring, report("mesh:8"), apart])[-1]
    assert "torus:8 carries it best: 2.0 times as well as mesh:8. 57.1 % of the pairs" in both


def test_pairs_on_a_link_are_told_beside_how_fast_the_links_are():
    told = compared([report("v5e:16x16"), report("v6e:16x16")])[-1]
    assert told.endswith(
        "all carry it alike. That counts pairs, not seconds: a link moves, one way, TPU v5e 50.0 GB/s, TPU v6e "
        "100 GB/s."
    )
    assert "not seconds" not in compared([report("v5p:4x4x8"), report("v5p:4x4x8:twisted")])[-1]


def test_figures_hold_the_numbers(honest):
    one = histogram(honest[:1]).data[0]
    counts = honest[0].hops.counts[1:]
    assert one.type == "bar" and list(one.y) == pytest.approx(list(100 * counts / counts.sum()))
    assert [len(t.x) for t in histogram(honest).data] == [16, 12, 7]
    loads = link_loads(honest[2])
    assert [t.name for t in loads.data] == ["all shortest paths alike", "at most one OCS hop"]
    least = loads.data[0].x[0] - loads.data[0].error_x.arrayminus[0]
    assert least == pytest.approx(honest[2].loads[0].least)
    small = small_multiples(HONEST, charts_of(honest))
    assert [list(t.x) for t in small.data][0] == [16, 12, 7]
    assert len(histogram([report("mesh:1")]).data) == 0
    table = counted(honest)
    assert table.groupby("spec")["ordered_pairs"].sum().eq(1024 * 1023).all()
    assert table.groupby("spec")["within"].max().eq(1).all()


def field(of, label: str):
    return next(x for x in of if x.label == label)


def test_what_fields_held_before_does_not_bring_the_old_topology_back(place):
    """A browser that has not drawn the new topology yet tells of the old fields with whatever is clicked next."""
    at = opened(PAGE)
    before = {x.key for kind in (at.selectbox, at.text_input, at.toggle, at.number_input) for x in kind}
    field(at.text_input, "or any topology by name").set_value("boardfly:64").run()
    fields = [x for kind in (at.selectbox, at.text_input, at.toggle, at.number_input) for x in kind]
    chooser = {x.key for x in fields if (x.key or "").startswith("lab_")}
    assert len(chooser) == 5 and not chooser & before


def test_the_page_opens_by_itself_and_an_example_fills_the_address(place):
    at = opened(PAGE)
    assert not at.exception and not at.warning
    assert "128 chips, TPU v5p 4x4x8" in words(at)
    assert {m.label[:-2]: m.value for m in at.metric}["Diameter"] == "8 hops"
    at.button(key="example_0").click().run()
    assert not at.exception and at.query_params["spec"] == list(HONEST) and at.query_params["show"] == "compare"
    assert "The baseline of 16 hops is the untwisted torus" in words(at)
    assert "1.26 times as fast as boardfly:1024" in words(at)
    field(at.selectbox, "System").set_value("v6e").run()
    assert at.query_params["spec"][0].startswith("v6e:") and not at.exception


def test_a_topology_that_cannot_be_leaves_the_chooser(place):
    at = opened_at("", "v5p:7x7x7")
    assert not at.exception and "each axis of a slice of v5p is a multiple of 4" in words(at)
    assert field(at.selectbox, "System").value == "v5p" and not at.metric
    field(at.text_input, "or any topology by name").set_value("v5p:8x8x8").run()
    assert not at.exception and not at.warning and "512 chips, TPU v5p 8x8x8" in words(at)


def test_at_equal_chips_and_at_equal_cost(place):
    at = opened_at("compare", "v5p:4x4x8", "torus:8x8x8", equal="chips")
    assert not at.exception and "All have 128 chips" in words(at)
    at = opened_at("compare", "v5p:4x4x8", "torus:8x8x8", equal="cost")
    assert "Enter a price for each system" in words(at)
    at = opened_at("compare", "v5p:4x4x8", "torus:8x8x8", equal="cost", usd="4,2")
    assert not at.exception and "torus:4x8x8 256 chips" in words(at)
    assert "v5p:4x4x8 $512, torus:4x8x8 $512" in words(at)


@pytest.mark.parametrize("show", [name for name, *_ in PANELS])
def test_every_panel_stands(place, show):
    at = opened_at(show, "v5p:4x4x4", "nowhere:3", fail="chip=5")
    assert not at.exception
    assert "63 of 64 chips left" in words(at)


def test_hosts_of_a_boardfly_are_marked_as_inferred(place):
    found = report("boardfly:64")
    assert dict(table([found]).rows)["hosts"] == "16 (inferred: one a board)" and "a host for each" in matter(found)
    assert any("share a host is not published" in note for note in found.notes)
    assert dict(table([report("v5p:4x4x8")]).rows)["hosts"] == "32"
    at = opened_at("", "boardfly:64")
    assert not at.exception and any("16 hosts (inferred: one a board)" in (m.help or "") for m in at.metric)
