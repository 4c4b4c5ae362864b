"""`whatif placement`: contract, words, code to copy, what is told of a mesh that does not fit; and its panel."""

import argparse
import json

import numpy as np
import pytest

from app.cli import main
from app.pages.topology.placement import suggested, table
from app.pages.topology.placement_figure import costs, layers, positions
from app.whatif.placement import PLACEMENT
from app.whatif.placement.code import mesh_code
from errors import QuestionError
from simulators import topology
from tests.app.test_pages import opened, words


def answer(topology, mesh, **query):
    given = {"topology": topology, "mesh": mesh, **{k: str(v) for k, v in query.items()}}
    return PLACEMENT.answer(PLACEMENT.from_query(given), None)


def test_the_contract(capsys):
    assert main(["whatif", "placement", "--topology", "v5p:4x4x8", "--mesh", "data=8,model=16", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    best = told["placements"][0]
    assert (best["axes"], best["wrapped"]) == ({"data": ["z"], "model": ["x", "y"]}, {"data": True, "model": True})
    steps = [p["step_s"] for p in told["placements"]]
    assert steps == sorted(steps) and all(p["low_s"] <= p["step_s"] <= p["high_s"] for p in told["placements"])
    assert best["jax"] == "default" and told["basis"] == "modelled"
    assert any("llama3.1-8b" in note and "128 sequences" in note for note in told["notes"])
    compute = told["compute_s"]
    assert best["step_s"] == pytest.approx(compute + best["communication_s"]["model"])


def test_words_say_where_what_and_how_much_more(capsys):
    assert main(["whatif", "placement", "--topology", "v6e:8x16", "--mesh", "expert=16,tensor=8"]) == 0
    text = capsys.readouterr().out
    assert "Best: expert on" in text and "tensor on x:4 × y:2" in text and "mesh_utils of JAX puts" in text
    assert "Not given, so assumed: model qwen3-30b-a3b" in text


def test_overlap_and_given_rates_count():
    full, none = (answer("v5p:4x4x4", "fsdp=16,tensor=4", overlap=o).best for o in ("full", "none"))
    assert full.step_s == full.low_s < none.step_s == none.high_s
    slow = answer("v5p:4x4x4", "fsdp=16,tensor=4", overlap="none", link_bytes_per_s=1e10)
    assert slow.best.by_axis_s[1] == pytest.approx(none.by_axis_s[1] * 10)
    assert answer("v5p:4x4x4", "data=64", peak_flops_per_s=1e12).compute_s == pytest.approx(
        answer("v5p:4x4x4", "data=64").compute_s * 459
    )


@pytest.mark.parametrize(("spec", "devices"), [("tpu7x:4x4x4", 128), ("v3:4x4", 32)])
def test_a_mesh_of_devices_has_a_sequence_for_each_where_no_batch_is_given(spec, devices):
    """Chips of two devices: of one sequence a chip half of the mesh would have none."""
    found = answer(spec, f"data={devices}")
    assert found.work.batch == devices == found.machine.devices
    assert answer(spec, f"data={devices // 2}").work.batch == devices // 2
    with pytest.raises(QuestionError, match=f"{devices // 2} sequences are to be spread over {devices} parts"):
        answer(spec, f"data={devices}", batch=devices // 2)


def test_a_pipeline_has_a_bubble():
    found = answer("v5p:4x4x4", "pipeline=4,data=16", microbatches=4)
    assert found.bubble_s == pytest.approx(found.compute_s * 3 / 4)
    with pytest.raises(QuestionError, match="micro-batches"):
        answer("v5p:4x4x4", "pipeline=4,data=16", microbatches=5)


@pytest.mark.parametrize(
    ("spec", "mesh", "near"),
    [
        ("v5e:4x4", "data=16", "16 steps around, 16"),
        ("v5e:2x4", "data=8", "8 steps around, 4"),
        ("tpu7x:2x2x1", "data=2,tensor=4", "8 steps around, 8"),
    ],
)
def test_small_slices_that_jax_lays_in_its_own_order_are_told(spec, mesh, near):
    """On 4x4 that is a ring; on v5e 2x4 its table takes rows of 4, but x has 2 chips."""
    found = answer(spec, mesh)
    assert found.found.jax is None and any(near in note for note in found.notes)


def test_a_chip_without_a_known_peak_is_told():
    found = answer("8t:4x4x4", "data=64")
    assert found.compute_s is None and found.to_dict()["compute_s"] is None
    assert any("peak is not known" in n for n in found.notes)


@pytest.mark.parametrize(
    ("spec", "mesh"),
    [
        ("v5p:4x4x8", "data=2,fsdp=4,model=16"),
        ("v6e:8x16", "expert=16,tensor=8"),
        ("tpu7x:4x4x4", "fsdp=16,model=8"),
        ("v5e:4x4:slices=2", "data=2,fsdp=4,tensor=4"),
        ("rail:64", "fsdp=8,tensor=8"),
    ],
)
def test_the_code_lays_the_mesh_as_the_picture_shows(spec, mesh):
    """Run on devices that only have coordinates; the same places along each axis as are drawn."""
    found = answer(spec, mesh)
    machine = found.machine
    kinds = [a.kind for a in machine.axes]

    class Jax:
        def devices(self):
            made = []
            for number, at in enumerate(np.ndindex(machine.dims)):
                where = dict(zip(kinds, at, strict=True))
                made.append(
                    argparse.Namespace(
                        id=number,
                        coords=[n for n, k in zip(at, kinds, strict=True) if k == "link"],
                        slice_index=where.get("dcn"),
                        core_on_chip=where.get("core"),
                    )
                )
            return made[::-1]

    code = mesh_code(found, found.best)
    lines = [ln for ln in code.splitlines() if ln.startswith("devices = ")]
    scope = {"jax": Jax(), "np": np}
    exec("\n".join(lines), scope)
    laid = np.vectorize(lambda d: d.id)(scope["devices"])
    drawn = positions(found, found.best)
    assert laid.shape == tuple(a.size for a in found.axes) and sorted(laid.ravel()) == list(range(machine.devices))
    walked = ["np.take" in code and f"# {a.name} as a ring" in code for a in found.axes]
    for logical in range(len(found.axes)):
        along = np.moveaxis(drawn[laid][..., logical], logical, 0)
        along = along.reshape(len(along), -1)
        assert (along == along[:, :1]).all()  # one place for all at this index
        assert list(np.sort(along[:, 0])) == list(range(len(along)))
        assert walked[logical] or (along[:, 0] == np.arange(len(along))).all()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"topology": "v5p:4x4x8", "mesh": "data=8,model=15"}, "data=8,model=16"),
        ({"topology": "v5p:4x4x8", "mesh": "data=128", "batch": "0"}, "batch 0"),
        ({"topology": "v5p:4x4x8", "mesh": "data=128", "overlap": "some"}, "weights, full, none"),
        ({"topology": "v5p:4x4x8", "mesh": "data=128", "dtype": "int3"}, "bf16"),
        ({"topology": "v5p:4x4x8", "mesh": "data=128", "hop_s": "-1"}, "a number from 0 to 1,000"),
        ({"topology": "v3:4x4:slices=2", "mesh": "data=32"}, "dcn-bytes-per-s"),
        ({"topology": "edges:0-1,1-2,2-0", "mesh": "data=3"}, "no axes or levels"),
        ({"mesh": "data=3"}, "no topology"),
        ({"topology": "v5p:4x4x4"}, "no mesh"),
    ],
)
def test_what_cannot_be_is_told(query, said):
    with pytest.raises(QuestionError, match=said):
        PLACEMENT.answer(PLACEMENT.from_query(query), None)


def test_figures_and_table_hold_what_was_found():
    found = answer("v6e:8x16", "expert=16,tensor=8")
    drawn = layers(found, found.best, 1)
    places = np.asarray(drawn.data[0].z, float)
    assert places.shape == (8, 16) and set(places.ravel()) == set(range(8))
    path = drawn.data[1]
    assert len(path.x) == 9 and (path.x[0], path.y[0]) == (path.x[-1], path.y[-1])  # a closed walk
    bars = costs(found, found.shown)
    total = sum(np.array(trace.x) for trace in bars.data)
    assert total == pytest.approx([p.high_s for p in found.shown])
    rows = table(found)
    assert len(rows) == found.found.different and rows["jax"].sum() == 1


@pytest.mark.parametrize("text", ["v5p:4x4x8", "v5e:16x16:slices=4", "boardfly:1024", "nvl:72", "rail:1024", "mesh:4"])
def test_the_mesh_to_begin_with_fits(text):
    spec, network = topology.parse(text), topology.build(text)
    assert answer(text, suggested(spec, network)).found.placements


def test_nothing_is_said_of_jax_where_its_order_is_not_known():
    fly, rack = answer("boardfly:64", "data=2,tensor=32"), answer("nvl:72", "data=9,tensor=8")
    assert fly.found.jax is None and "JAX" not in PLACEMENT.words(fly).verdict
    assert any("How JAX numbers the devices of a Boardfly is not known" in note for note in fly.notes)
    assert rack.found.jax is rack.best and "mesh_utils of JAX lays it so" in PLACEMENT.words(rack).verdict


def test_the_panel_shows_the_best_and_leads_to_the_json(place):
    at = opened("pages/topology/page.py", spec="v5p:4x4x8", show="placement", mesh="data=8,model=16", axis="data")
    assert not at.exception
    text = words(at)
    assert "Best: data on z" in text.replace("\\", "") and "Which chips data runs over" in text
    at = opened("pages/topology/page.py", spec="v5p:4x4x8", show="placement", mesh="data=8,model=15")
    assert not at.exception and any("model" in w.value for w in at.warning)


@pytest.mark.parametrize("topology", ["v5e:4x4", "v4:2x2x4"])
def test_fp8_on_chips_without_it_is_reckoned_at_the_bf16_peak_and_told(topology):
    wide, narrow = answer(topology, "fsdp=16"), answer(topology, "fsdp=16", dtype="fp8")
    assert narrow.compute_s == wide.compute_s
    assert any("no published fp8 peak: maths is reckoned at its BF16 peak" in n for n in narrow.notes)


def test_fp8_on_chips_that_have_it_is_reckoned_at_their_fp8_peak():
    wide, narrow = answer("v7:2x4x4", "fsdp=32"), answer("v7:2x4x4", "fsdp=32", dtype="fp8")
    assert narrow.compute_s < 0.6 * wide.compute_s and not any("peak: maths" in n for n in narrow.notes)
