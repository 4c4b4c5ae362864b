"""Placements: shares and rings by hand, costs by independent arithmetic, and the search against trying all by hand."""

from dataclasses import replace
from itertools import permutations, product
from math import prod

import numpy as np
import pytest

from catalog.models import model, parameters
from errors import QuestionError
from simulators import topology
from simulators.placement import jax_order
from simulators.placement import search as placing
from simulators.placement.build import Given, machine
from simulators.placement.cost import seconds
from simulators.placement.fit import nearest
from simulators.placement.machine import Piece, closed_walk, closure
from simulators.placement.mesh import LogicalAxis, parse_mesh
from simulators.placement.search import Costing, search
from simulators.placement.traffic import Traffic, Work, traffic

GIB = 1 << 30
PLAIN = Given(link_bytes_per_s=9e10, hop_s=1e-6, dcn_bytes_per_s=6.25e9, peak_flops_per_s=4.59e14)


def built(text, mesh, given=PLAIN):
    return machine(topology.parse(text), topology.build(text), parse_mesh(mesh), "bf16", given)


def found(text, mesh, demands=None, overlap="weights"):
    axes = parse_mesh(mesh)
    if demands is None:
        demands = [Traffic(a.name, "all_gather", GIB, 1, "") for a in axes]
    return search(Costing(built(text, mesh), axes, tuple(demands), 0.0, 0.0, overlap))


def test_meshes_are_read_and_refused():
    assert parse_mesh("data=8, model=16") == (LogicalAxis("data", 8), LogicalAxis("model", 16))
    assert [a.role for a in parse_mesh("dp=1,tp=2,stage=3")] == ["data", "tensor", "pipeline"]
    for wrong in ("rows=8", "data", "data=0", "data=x", "data=2,data=4", ""):
        with pytest.raises(QuestionError):
            parse_mesh(wrong)


@pytest.mark.parametrize(("mesh", "near"), [("data=8,model=15", "data=8,model=16"), ("data=256", "data=128")])
def test_a_mesh_that_does_not_multiply_is_told_the_nearest(mesh, near):
    with pytest.raises(QuestionError, match=near):
        built("v5p:4x4x8", mesh)
    assert nearest(128, parse_mesh(mesh)) == near


@pytest.mark.parametrize(("text", "chips"), [("v3:4x4", 16), ("tpu7x:4x4x4", 64), ("boardfly:64", 64)])
def test_a_mesh_counts_chips_or_devices(text, chips):
    one, two = built(text, f"data={chips}"), built(text, f"data={2 * chips}")
    assert (one.devices, two.devices) == (chips, 2 * chips)
    assert two.peak_flops_per_s == one.peak_flops_per_s / 2
    assert two.axes[0].oneway_bytes_per_s == one.axes[0].oneway_bytes_per_s / 2
    assert two.axes[-1].name == "core" and any("chip" in n for n in one.notes)


def test_what_closes_to_a_ring():
    torus, mesh = built("v5p:4x4x8", "data=128"), built("v6e:8x16", "data=128")
    assert closure([Piece(0, 4, 1)], torus) == "wrap"
    assert closure([Piece(0, 2, 1)], torus) == "open"
    assert closure([Piece(0, 2, 2)], torus) == "wrap"  # two that stand apart on a ring: both ways round
    assert closure([Piece(0, 8, 1)], mesh) == "open"  # v6e: only an axis of 16 is a ring
    assert closure([Piece(1, 16, 1)], mesh) == "wrap"
    assert closure([Piece(0, 4, 1), Piece(1, 2, 1)], mesh) == "fold"
    assert closure([Piece(0, 8, 1), Piece(1, 16, 1)], mesh) == "fold"
    assert closure([], mesh) is None
    twisted = built("v5p:4x4x8:twisted", "data=128")
    assert closure([Piece(0, 4, 1)], twisted) == "open"  # its wrap ends on another part of z
    assert closure([Piece(2, 8, 1)], twisted) == "wrap"
    assert closure([Piece(0, 4, 1), Piece(2, 8, 1)], twisted) == "wrap"


@pytest.mark.parametrize("counts", [(2, 2), (4, 2), (2, 4), (3, 4), (4, 3), (2, 2, 3), (2, 3, 4), (4, 4)])
def test_a_closed_walk_goes_from_neighbour_to_neighbour(counts):
    walk = closed_walk(counts)
    assert sorted(walk) == list(range(prod(counts)))
    at = np.stack(np.unravel_index(walk, counts), axis=1)
    steps = np.abs(np.roll(at, -1, axis=0) - at).sum(axis=1)
    assert (steps == 1).all()


def test_times_on_rings_lines_and_shared_links():
    """By the scaling book's arithmetic, (N-1)/N kept: V (N-1)/N / (2 w) on a ring, / w on a line."""
    torus = built("torus:16x16", "data=256")
    ring, line = [Piece(0, 16, 1)], [Piece(0, 4, 1)]
    assert seconds("all_gather", GIB, ring, torus) == pytest.approx(GIB * 15 / 16 / 1.8e11)
    assert seconds("all_gather", GIB, line, torus) == pytest.approx(GIB * 3 / 4 / 9e10)
    assert seconds("all_reduce", GIB, ring, torus) == pytest.approx(2 * seconds("all_gather", GIB, ring, torus))
    assert seconds("all_to_all", GIB, ring, torus) == pytest.approx(GIB / 1.8e11 / 4)
    assert seconds("all_gather", GIB, [Piece(0, 4, 4)], torus) == pytest.approx(GIB * 3 / 4 / 1.8e11 * 4)
    assert seconds("all_gather", 1.0, ring, torus) == pytest.approx(8e-6)  # bound by hops
    both = [Piece(0, 16, 1), Piece(1, 16, 1)]
    assert seconds("all_gather", GIB, both, torus) == pytest.approx(GIB * 255 / 256 / 3.6e11)


def test_an_all_reduce_over_slices_as_the_oracle_reckons():
    """2 slices of 64 v5p, 1 GiB: reduce-scatter, exchange of 1/64 over the network, all-gather; (N-1)/N apart."""
    two = built("v5p:4x4x4:slices=2", "data=128", Given(link_bytes_per_s=9e10, hop_s=0.0, dcn_bytes_per_s=6.25e9))
    took = seconds("all_reduce", GIB, [Piece(0, 2, 64), *(Piece(i, 4, 1) for i in (1, 2, 3))], two)
    inside, across = 2 * GIB / 5.4e11 * 63 / 64, 2 * GIB / 64 / 2 / 6.25e9
    assert took == pytest.approx(inside + across + 2e-5)


def test_a_level_shares_its_links():
    """Boardfly of 1,024: 44 copper and 40 optical ports for each 32 chips, both ends counted."""
    fly = built("boardfly:1024", "data=32,tensor=32", Given())
    rates = {a.name: a.oneway_bytes_per_s / 2e11 for a in fly.axes}
    assert rates == pytest.approx({"group": 1.25, "board": 2.75, "chip": 1.0})
    rail = built("rail:256", "data=32,tensor=8", Given())
    assert {a.name: a.oneway_bytes_per_s for a in rail.axes} == {"node": 5e10, "gpu": 4.5e11}


def gathered(text: str) -> float:
    """Seconds in which all GPUs of a network gather 1 GB."""
    whole = built(text, f"data={topology.parse(text).chips}", Given())
    return seconds("all_gather", 1e9, [Piece(i, a.length, 1) for i, a in enumerate(whole.axes)], whole)


def test_fewer_uplinks_hold_nodes_back_beyond_their_leaves_alone():
    """Of a rail network whose last unit is not full they held back nothing, of a fat tree each node."""
    assert gathered("rail:384:oversubscription=8") == pytest.approx(gathered("rail:512:oversubscription=8"), rel=0.01)
    assert gathered("rail:384:oversubscription=8") > 1.05 * gathered("rail:384")
    within, beyond = 1 / 8 / 50 * 3 / 4, 1 / 32 / 6.25 * 15 / 16  # 4 nodes to a leaf, 16 leaves
    assert gathered("fattree:512:oversubscription=8") == pytest.approx(7 / 8 / 450 + within + beyond, rel=0.01)
    tree = built("fattree:512:oversubscription=8", "data=64,tensor=8", Given())
    node = next(i for i, a in enumerate(tree.axes) if a.name == "node")
    near, apart = (seconds("all_gather", 1e9, [Piece(node, 4, stride)], tree) for stride in (1, 8))
    assert near == pytest.approx(3 / 4 / 50, rel=0.01) and apart == pytest.approx(3 / 4 / 6.25, rel=0.01)
    assert any("beyond 4 neighbouring nodes a chip has 6.25 GB/s" in note for note in tree.notes)


@pytest.mark.parametrize("text", ["rail:384", "rail:512", "fattree:288", "fattree:512"])
def test_where_leaves_have_as_many_links_up_as_down_all_nodes_are_joined_alike(text):
    assert all(a.spine_bytes_per_s is None for a in built(text, f"data={topology.parse(text).chips}", Given()).axes)


def test_the_best_by_search_is_the_best_by_hand():
    """Whole axes by hand: all injections of the physical axes into two logical ones, the same formula for each."""
    sizes, dims, w = {"data": 8, "model": 16}, (4, 4, 8), 9e10
    by_hand = []
    for order in permutations(range(3)):
        for cut in range(4):
            parts = {"data": order[:cut], "model": order[cut:]}
            if all(prod(dims[i] for i in parts[n]) == sizes[n] for n in sizes):
                times = [GIB * (sizes[n] - 1) / sizes[n] / (2 * w * len(parts[n])) for n in sizes]
                by_hand.append(times[1] + times[0])
    best = found("torus:4x4x8", "data=8,model=16", overlap="none")
    whole = [p for p in best.placements if not p.split(built("torus:4x4x8", "data=8,model=16"))]
    assert best.complete and whole[0].step_s == pytest.approx(min(by_hand))
    assert best.placements[0].step_s <= whole[0].step_s * (1 + 1e-9)


def test_every_placement_takes_every_device_once():
    mesh = "data=2,fsdp=8,context=2,tensor=4"
    result, slice_ = found("v5p:4x4x8", mesh), built("v5p:4x4x8", mesh)
    assert result.different > 100 and result.ways == sum(p.alike for p in result.placements) or not result.complete
    for p in result.placements[::25]:
        order = jax_order.order(slice_.dims, p.shares, p.nesting)
        assert order.shape == (2, 8, 2, 4)
        assert sorted(order.ravel()) == list(range(128))
        for logical, pieces in enumerate(p.pieces):
            line = np.moveaxis(order, logical, -1).reshape(-1, order.shape[logical])[0]
            steps = np.stack(np.unravel_index(line, slice_.dims), axis=1)
            for piece in pieces:
                on = np.unique(steps[:, piece.axis])
                assert len(on) == piece.count and set(np.diff(on)) <= {piece.stride}
        assert p.low_s <= p.step_s * (1 + 1e-12) and p.step_s <= p.high_s * (1 + 1e-12)


def test_tensor_without_a_wrap_takes_twice_as_long():
    """v6e 8x16: an axis of 8 on the line of 8, or folded into a 4x2 block; the measured gain was 1.12 in all."""
    result = found("v6e:8x16", "expert=16,tensor=8", [Traffic("tensor", "all_gather", GIB, 1, "")])
    slice_ = built("v6e:8x16", "expert=16,tensor=8")
    best, jax = result.placements[0], result.jax
    assert closure(best.pieces[1], slice_) == "fold" and [p.text(slice_) for p in jax.pieces[1]] == ["x"]
    assert jax.step_s == pytest.approx(2 * best.step_s)


def test_slices_are_cut_by_every_axis_and_by_hand_by_those_that_talk_least():
    tried = found("v5e:16x16:slices=4", "data=4,fsdp=16,tensor=16")
    assert {tuple(s[0] for s in p.shares) for p in tried.placements} == {
        cut for cut in product((1, 2, 4), repeat=3) if prod(cut) == 4
    }
    assert [s[0] for s in tried.jax.shares] == [4, 1, 1]
    assert [s[0] for s in found("v5e:16x16:slices=3", "data=16,tensor=48").jax.shares] == [1, 3]
    with pytest.raises(QuestionError, match="data=6"):
        built("v5e:16x16:slices=3", "data=4,tensor=64")


def test_of_more_ways_than_are_tried_half_are_those_that_cut_the_slices_by_hand(monkeypatch):
    """Or the best of these is not among them: the other ways to cut are many, and were all tried before those in which
    axes are nested otherwise."""
    monkeypatch.setattr("simulators.placement.search.MOST_KEPT", 10_000)
    asked = "v5p:4x4x4:slices=4", "data=4,fsdp=4,context=4,tensor=4"

    def by_hand(tried):
        return {(p.shares, p.nesting, p.step_s) for p in tried.placements if p.shares[0][0] == 4}

    every = found(*asked)
    ways = sum(p.alike for p in every.placements if p.shares[0][0] == 4)
    monkeypatch.setattr("simulators.placement.search.MOST_WAYS", 2 * ways)
    some = found(*asked)
    assert every.complete and not some.complete and by_hand(some) == by_hand(every)


def test_of_many_ways_few_are_ranked_and_few_pieces_made(monkeypatch):
    """And those that are kept are the first of all of them."""
    asked = "v5p:4x4x4:slices=4", "data=4,fsdp=4,context=4,tensor=4"
    every = found(*asked)
    monkeypatch.setattr(placing, "MOST_KEPT", 20)
    ranked, made = spied(monkeypatch, placing, "_rank"), spied(monkeypatch, placing, "Piece")
    some = found(*asked)
    assert some.placements == every.placements[:20]
    assert (some.different, some.ways, some.jax) == (every.different, every.ways, every.jax) and some.different > 200
    assert 20 <= len(ranked) < some.different and len(made) < some.different


def spied(monkeypatch, module, name):
    calls, real = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: calls.append(given) or real(*given))
    return calls


def test_axes_cut_slices_together():
    """4 slices, 2 copies of 2 stages: what talks most stays inside of a slice, whose rings it has whole."""
    mesh, sent = "data=2,pipeline=2,model=256", Traffic("model", "all_gather", GIB, 1, "")
    best = found("v5e:16x16:slices=4", mesh, [sent]).placements[0]
    assert [s[0] for s in best.shares] == [2, 2, 1]
    assert not best.split(built("v5e:16x16:slices=4", mesh))  # inside of a slice every axis is whole
    assert best.step_s == pytest.approx(GIB * 255 / 256 / (4 * 9e10))
    both = found("v5e:16x16:slices=6", "data=2,fsdp=3,model=256", [sent])  # no axis is cut by 6 alone
    assert both.placements[0].step_s == pytest.approx(best.step_s) and both.jax.shares[2][0] == 1
    assert nearest(1024, parse_mesh("data=2,fsdp=2,model=255"), 4) == "data=2,fsdp=2,model=256"


def test_what_is_sent_by_hand():
    """llama3.1-8b, 128 sequences of 4,096 over data=8, model=16."""
    llama = model("llama3.1-8b")
    work = Work(model=llama, batch=128, seq=4096)
    data, gather, scatter = traffic(parse_mesh("data=8,model=16"), work)
    assert (data.kind, data.array_bytes, data.times) == ("all_reduce", 2 * parameters(llama).total / 16, 1)
    one = 2 * 4096 * (128 * 4096 / 8)
    assert (gather.array_bytes, gather.times, scatter.array_bytes, scatter.times) == (one, 128, one, 128)
    assert work.flops > 6 * parameters(llama).active_matmul * work.tokens


def test_experts_context_and_stages_by_hand():
    moe = model("mixtral-8x7b")
    work = Work(model=moe, batch=64, seq=8192, microbatches=4)
    sent = {(t.axis, t.kind): t for t in traffic(parse_mesh("pipeline=4,fsdp=2,expert=8,context=2,tensor=2"), work)}
    tokens = 64 * 8192 / (2 * 8 * 2)  # on one device, before tensor cuts them
    a2a = sent["expert", "all_to_all"]
    assert a2a.array_bytes == pytest.approx(2 * 4096 * 2 * tokens * 8 / 2) and a2a.times == 4 * 32 / 4
    keys = sent["context", "all_gather"]
    assert keys.array_bytes == pytest.approx(2 * (8 / 2 * 256) * tokens * 2) and keys.times == 2 * 32 / 4
    stage = sent["pipeline", "permute"]
    assert stage.array_bytes == pytest.approx(4 * 2 * 4096 * tokens / 2) and stage.times == 2
    routed = 32 * 8 * 3 * 4096 * 14336
    shard = (parameters(moe).total - routed) / 8 + routed / 64
    assert sent["fsdp", "all_gather"].array_bytes == pytest.approx(2 * shard)


@pytest.mark.parametrize(
    ("mesh", "batch", "name"),
    [
        ("expert=8,data=2", 64, "llama3.1-8b"),
        ("expert=6,data=2", 64, "mixtral-8x7b"),
        ("pipeline=64", 64, "llama3.1-8b"),
        ("data=128", 64, "llama3.1-8b"),
    ],
)
def test_what_a_model_cannot_take_is_told(mesh, batch, name):
    with pytest.raises(QuestionError):
        traffic(parse_mesh(mesh), Work(model=model(name), batch=batch, seq=4096))


def test_a_link_whose_rate_is_not_known_is_free_but_for_its_hops():
    plain = built("v6e:4x4", "data=16")
    known, *_ = plain.axes
    lacking = replace(plain, axes=(replace(known, oneway_bytes_per_s=None), *plain.axes[1:]))
    took = seconds("all_gather", GIB, [Piece(0, 4, 1)], lacking)
    hops_only = seconds("all_gather", 0.0, [Piece(0, 4, 1)], plain)
    assert took == pytest.approx(hops_only) and 0 < took < seconds("all_gather", GIB, [Piece(0, 4, 1)], plain)
