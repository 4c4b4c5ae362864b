"""How a mesh's axes share out the work, whatever they are called; and how many slices a job has."""

import pytest

from analyzers.device import memory
from analyzers.device.parallelism import parallel_ways
from analyzers.ranks.collectives import analyze as collectives
from analyzers.ranks.mesh import DATA_CENTRE, SCALE_UP, Links
from analyzers.subject import slices_of
from catalog import chip
from catalog.models import model, parameters
from catalog.training_memory import Sharding, activations, logits_bytes, routed_parameters, state_bytes
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables


def ways(mesh, **facts):
    return {k: v for k, v in parallel_ways(facts_of({"parallelism": mesh, **facts})).items() if v > 1}


@pytest.mark.parametrize(
    ("mesh", "facts", "expected"),
    [
        ({"fsdp": 16, "expert": 16}, {}, {"fsdp": 16, "expert": 16}),
        ({"data": 2, "context": 4, "stage": 3, "model": 5}, {}, {"data": 2, "context": 4, "pipeline": 3, "tensor": 5}),
        ({"fsdp": 4, "fsdp_transpose": 2, "Tensor": 2, "tensor_sequence": 3}, {}, {"fsdp": 8, "tensor": 6}),
        ({"ici_fsdp": 16, "dcn_data": 2, "ici_tensor": 4}, {}, {"fsdp": 16, "data": 2, "tensor": 4}),
        (
            {"ici_fsdp": -1, "ici_tensor": 4, "dcn_data": -1},
            {"chips": 64, "num_slices": 2},
            {"fsdp": 8, "tensor": 4, "data": 2},
        ),
        ({"ici_fsdp": -1, "ici_tensor": 4}, {}, {"tensor": 4}),  # the rest of nobody knows how many
        ({"ici_fsdp": -1, "ici_tensor": 5}, {"chips": 64}, {"tensor": 5}),
        (
            {"data": 8, "expert": 4, "tensor": 2},
            {"chips": 16},
            {"data": 2, "expert": 4, "tensor": 2},
        ),  # as Megatron counts
        ({"data": 8, "expert": 4, "tensor": 2}, {"chips": 64}, {"data": 8, "expert": 4, "tensor": 2}),
        ({"data": 8, "expert": 2}, {"chips": 8}, {"data": 4, "expert": 2}),
        ({"ici_fsdp": -1, "ici_tensor": 4}, {"chips": 64}, {"fsdp": 16, "tensor": 4}),  # one slice where none is told
        (
            {"ici_fsdp": -1, "ici_tensor": 4},
            {"chips": 64, "chip": "TPU v3"},
            {"fsdp": 32, "tensor": 4},
        ),  # two to a chip
        ({"data": 8, "expert": 3}, {"chips": 8}, {"data": 8, "expert": 3}),
        (None, {}, {}),
        ({"data": "x", "tensor": 2.5, "odd": 7, "fsdp": float("inf")}, {}, {}),
    ],
)
def test_ways(mesh, facts, expected):
    assert ways(mesh, **facts) == expected


@pytest.mark.parametrize(
    ("facts", "slices"),
    [
        ({"slices": 4}, 4),
        ({"num_slices": 4}, 4),
        ({}, None),
        ({"num_slices": "four"}, None),
        ({"slices": 0}, None),
    ],
)
def test_slices_go_by_either_name(facts, slices):
    assert slices_of(facts_of(facts)) == slices


@pytest.mark.parametrize("name", ["slices", "num_slices"])
def test_a_group_across_slices_is_held_against_the_data_centre(name):
    links = Links(facts_of({"chip": "TPU v5p", "chips": 8, name: 2}))
    assert links.of((0, 4)).network == DATA_CENTRE and links.of((0, 1)).network == SCALE_UP
    rows = {
        "host": ["h"],
        "device": [0],
        "kind": ["all-reduce"],
        "bytes": [1e6],
        "group": ["0,4"],
        "op": ["r"],
        "start_ns": [0],
        "end_ns": [1_000_000],
        "capture": [0],
    }
    found = collectives(MemoryTables({"collectives": rows}), facts_of({"chip": "TPU v5p", "chips": 8, name: 2}), {})
    assert found.rows["link_bytes_per_s"].tolist() == [chip("TPU v5p").need("dcn_oneway_bytes_per_s")]


# --- memory -----------------------------------------------------------------------------------------------------------

MIXTURE = model("mixtral-8x7b")


def held(mesh, **facts):
    facts = facts_of({"model": "mixtral-8x7b", "parallelism": mesh, "seq": 4096, **facts})
    return memory.analyze(MemoryTables({}), facts, parse_options(memory.OPTIONS, {}))


def test_experts_are_dealt_out_and_the_rest_is_repeated():
    routed = routed_parameters(MIXTURE)
    assert routed == 32 * 8 * 3 * 4096 * 14336 and routed < parameters(MIXTURE).total
    whole, dealt = (sum(state_bytes(1000, Sharding(expert=e), routed=800).values()) for e in (1, 8))
    assert (whole, dealt) == (18_000, 18 * (200 + 100))
    result = held({"fsdp": 16, "expert": 8})
    assert result.setting["chips"] == 128 and (result.setting["ep"], result.setting["fsdp"]) == (8, 16)
    got = dict(zip(result.parts["category"], result.parts["padded_bytes"], strict=True))
    share = (parameters(MIXTURE).total - routed + routed / 8) / 16
    assert got["weights"] == round(2 * share) and got["moments"] == round(8 * share)


def test_each_expert_device_has_sequences_of_its_own():
    assert held({"fsdp": 4, "expert": 8}, global_batch=64).setting["batch"] == 2
    assert held({"fsdp": 4, "context": 8}, global_batch=64).setting["batch"] == 16


def test_context_devices_share_a_sequence():
    one, shared = Sharding(), Sharding(context=4)
    for amount in (activations, logits_bytes):
        assert amount(MIXTURE, shared, seq=4096, batch=2) == amount(MIXTURE, one, seq=4096, batch=2) / 4
    assert held({"context": 4}).setting["chips"] == 4
    assert state_bytes(1000, shared) == state_bytes(1000, one)
