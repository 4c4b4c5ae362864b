"""Where nodes stand, how links leave, and what travels to the browser: against the networks themselves."""

import json
import struct
import zlib

import numpy as np
import pytest

from app.pages.topology.lab import Lab
from app.pages.topology.network3d.packing import message, packed_network
from app.pages.topology.network_colours import CHIP, FAILED, HEAT, LINKS
from app.pages.topology.network_layout import WHOLE, layout, still_there
from app.pages.topology.picture import alt, caption, shown
from app.theme import contrast, luminance
from simulators.topology import build, parse
from simulators.topology.failures import fail
from simulators.topology.loads import LinkLoads, link_loads
from simulators.topology.network import KIND_OF, LINK_KINDS, make
from simulators.topology.route import route

PAPERS = {"light": "#FFFFFF", "dark": "#1A1917"}


def unpacked(blob: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Header and arrays of one blob, read as the browser reads it."""
    (size,) = struct.unpack_from("<I", blob)
    header = json.loads(blob[4 : 4 + size])
    body, at, arrays = zlib.decompress(blob[4 + size :]), 0, {}
    for name, kind, count in header["arrays"]:
        raw = np.frombuffer(body, "<f4" if kind == "f" else "<i4", count, at)
        arrays[name] = raw if kind == "f" else np.cumsum(raw, dtype=np.int32)
        at += 4 * count
    assert at == len(body)
    return header, arrays


def lengths(network, drawn) -> np.ndarray:
    a, b = (drawn.places[network.links[:, end]] for end in (0, 1))
    return np.linalg.norm(a - b, axis=1)


@pytest.mark.parametrize(
    "text", ["v5p:4x4x8", "v5p:4x4x8:twisted", "v5e:8x16", "mesh:2x2x4", "torus:3x2x4x2", "v5e:4x8:slices=5"]
)
def test_neighbours_on_a_lattice_stand_side_by_side_and_wraps_leave_outwards(text):
    network = build(text)
    drawn = layout(network)
    assert len(np.unique(drawn.places.round(3), axis=0)) == network.chips
    far = lengths(network, drawn)
    inside = network.link_kind == KIND_OF["copper"]
    first_three = (network.coordinates[network.links[:, 0]] != network.coordinates[network.links[:, 1]])[:, :3].any(1)
    assert np.allclose(far[inside & first_three], 1, atol=1e-5)
    closing = np.isin(network.link_kind, (KIND_OF["wrap"], KIND_OF["twist"]))
    assert np.array_equal(closing, drawn.closes > 0)
    a, b = (drawn.places[network.links[closing, end]] for end in (0, 1))
    axis = (drawn.closes[closing] & 3) - 1
    rows = np.arange(len(axis))
    assert (a[rows, axis] > b[rows, axis]).all()  # up from the first end, to the second from below


def test_cubes_stand_apart_in_boxes_of_their_own():
    network = build("v5p:4x4x8")
    drawn = layout(network)
    far = lengths(network, drawn)
    optical = network.link_kind == KIND_OF["optical"]
    assert optical.sum() == 16
    assert np.ptp(far[optical]) < 1e-5 and far[optical].min() > 2
    assert len(drawn.outlines) == 2 * 12
    boxes = drawn.outlines.reshape(2, 24, 3)
    for number, box in enumerate(boxes):
        inside = ((drawn.places > box.min(axis=0)) & (drawn.places < box.max(axis=0))).all(axis=1)
        assert np.array_equal(inside, network.parts["cube"] == number)
    assert [name for name, _ in drawn.axes] == ["z 8", "x 4", "y 4"]


def test_arcs_are_whole_where_few_and_along_edges_elsewhere():
    assert (layout(build("v5e:16x16")).closes >= WHOLE).sum() == 32
    assert (layout(build("torus:8x8x16")).closes >= WHOLE).sum() == 3 * 4
    assert (layout(build("v5e:16x16:slices=2")).closes >= WHOLE).sum() == 0


@pytest.mark.parametrize("groups", [1, 2, 36])
def test_boards_are_squares_and_groups_keep_apart(groups):
    network = build(f"boardfly:{32 * groups}")
    drawn = layout(network)
    kind = network.link_kind
    far = lengths(network, drawn)
    assert np.ptp(far[kind == KIND_OF["board"]]) < 1e-4
    group = network.parts["group"]
    centre = np.stack([drawn.places[group == g].mean(axis=0) for g in range(groups)])
    size = np.linalg.norm(drawn.places - centre[group], axis=1).max()
    apart = np.linalg.norm(centre[:, None] - centre[None], axis=2) + 1e9 * np.eye(groups)
    assert apart.min() > 2 * size


@pytest.mark.parametrize(("text", "levels"), [("nvl:72", 2), ("rail:256", 4)])
def test_switches_stand_on_levels_apart_from_gpus(text, levels):
    network = build(text)
    drawn = layout(network)
    heights = drawn.places[:, 2].round(3)
    assert len(np.unique(heights)) == levels
    assert len(np.unique(heights[: network.chips])) == 1
    assert not np.isin(heights[network.chips :], heights[: network.chips]).any()
    assert len(np.unique(drawn.places.round(3), axis=0)) == network.nodes


def ring_and_clique() -> np.ndarray:
    ring = [(i, (i + 1) % 30) for i in range(30)]
    return np.array(ring + [(30 + i, 30 + j) for i in range(5) for j in range(i)])


def given(links: np.ndarray):
    chips = int(links.max()) + 1
    return make(
        spec="graph:test",
        kind="graph",
        chip=None,
        chips=chips,
        links=links,
        axes=("number",),
        link_kind=np.full(len(links), KIND_OF["given"]),
        coordinates=np.arange(chips)[:, None],
    )


def test_any_graph_is_laid_out_by_nearness_and_always_alike():
    network = given(ring_and_clique())
    drawn, again = layout(network), layout(given(ring_and_clique()))
    assert np.array_equal(drawn.places, again.places)
    ring = drawn.places[:30]
    apart = np.linalg.norm(ring[:, None] - ring[None], axis=2)
    hops = np.minimum(np.arange(30), 30 - np.arange(30))
    around = np.stack([np.roll(hops, i) for i in range(30)])
    assert np.corrcoef(apart.ravel(), around.ravel())[0, 1] > 0.9
    assert drawn.places[:30, 0].max() < drawn.places[30:, 0].min()  # the two parts stand side by side


@pytest.mark.parametrize("text", ["h100:8", "v5p:4x4x4", "torus:2x2x3", "boardfly:64"])
def test_what_is_left_is_found_again(text):
    network = build(text)
    rng = np.random.default_rng(3)
    nodes, links = rng.random(network.nodes) < 0.1, rng.random(len(network.links)) < 0.2
    broken = network.without(nodes, links)
    left = still_there(network, broken)
    assert left.sum() == len(broken.links)
    assert np.array_equal(network.links[left], broken.links)
    assert np.array_equal(network.link_kind[left], broken.link_kind)
    assert still_there(network, network).all()


def test_parallel_links_lie_side_by_side():
    network = build("h100:8")
    lanes = layout(network).lane
    for pair in np.unique(network.links, axis=0):
        same = (network.links == pair).all(axis=1)
        assert sorted(lanes[same]) == list(range(same.sum()))


@pytest.mark.parametrize("text", ["v5p:4x4x8:twisted", "boardfly:1152", "rail:256"])
def test_the_browser_gets_the_network_as_it_is(text):
    network = build(text)
    header, arrays = unpacked(packed_network(network))
    assert np.array_equal(arrays["from"], network.links[:, 0])
    assert np.array_equal(arrays["from"] + arrays["to"], network.links[:, 1])
    names = [kind["name"] for kind in header["kinds"]]
    assert [names[k] for k in arrays["kind"]] == [LINK_KINDS[k][0] for k in network.link_kind]
    assert sum(kind["count"] for kind in header["kinds"]) == len(network.links)
    places = arrays["places"].reshape(3, -1).T * header["step"]
    assert np.abs(places - layout(network).places).max() <= header["step"]
    assert np.array_equal(arrays["coordinates"].reshape(len(network.axes), -1).T, network.coordinates)
    for part in header["parts"]:
        assert np.array_equal(arrays[f"part {part}"], network.parts[part])


def test_50_944_chips_take_a_fraction_of_what_may_be_sent():
    network = build("v5e:16x16:slices=199")
    loads = np.random.default_rng(0).random((2, len(network.links)))  # noise: the worst that can be compressed
    lab = Lab(parse(network.spec), network, network)
    worst = LinkLoads(*loads, network.link_kind, "ring", "shortest", "messages")
    assert len(message(network, shown(lab, worst, None, "load"))) < 1_500_000
    assert len(message(network, shown(lab, None, None, "kind"))) < 100_000


def test_failures_loads_and_route_travel_in_rows_of_the_whole_network():
    network = build("v5p:4x4x4")
    broken = fail(network, ("chip=5", "link=0-1")).network
    lab = Lab(parse(network.spec), network, broken, ("chip=5", "link=0-1"), (0, 63))
    loads, way = link_loads(broken), route(broken, 0, 63)
    header, arrays = unpacked(shown(lab, loads, way, "load"))
    left = arrays["left"].astype(bool)
    gone = network.links[~left]
    assert len(gone) == 7 and ((gone == 5).any(axis=1) | (gone == [0, 1]).all(axis=1)).all()
    assert not arrays["alive"][5] and arrays["alive"].sum() == 63
    assert np.allclose(arrays["forward"][left], loads.forward) and not arrays["forward"][~left].any()
    assert header["most"] == loads.max
    crossed = network.links[header["routeLinks"]]
    for link, a, b in zip(crossed, header["route"][:-1], header["route"][1:], strict=True):
        assert set(link) == {a, b}
    assert "failed: 1 chip and 7 links" in alt(network, broken, way)
    assert f"Route: {way.hops} hops" in caption(lab, loads, way) and "chip\\=5" in caption(lab, loads, way)


def test_every_kind_has_a_look_that_reads_on_both_papers():
    assert set(LINKS) == {name for name, _ in LINK_KINDS}
    for look in (*LINKS.values(), FAILED, CHIP):
        assert contrast(look.light, PAPERS["light"]) > 3
        assert contrast(look.dark, PAPERS["dark"]) > 3


@pytest.mark.parametrize(
    "together",
    [("copper", "optical", "wrap", "twist"), ("copper", "board", "ocs"), ("nvlink", "rail", "spine", "core")],
)
def test_kinds_in_one_picture_differ_in_more_than_colour(together):
    forms = {(LINKS[kind].width_px, LINKS[kind].dash) for kind in together}
    assert len(forms) == len(together)


def test_loads_grow_away_from_the_paper():
    light, dark = ([luminance(c) for c in HEAT[theme]] for theme in ("light", "dark"))
    assert light == sorted(light, reverse=True) and dark == sorted(dark)
