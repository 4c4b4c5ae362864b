"""What is asked of the compiler: every wrong question is one sentence, before any process is started."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from catalog import model
from errors import ChipledgerError, QuestionError
from simulators.tpu_compile.blocks import query_block, reach
from simulators.tpu_compile.mesh import MeshAxes
from simulators.tpu_compile.request import CompileRequest, content_key, make_request, parse_mesh
from simulators.tpu_compile.topology import Topology, parse_topology
from simulators.tpu_compile.weights import kinds, layer_weights, outer_weights

LLAMA = model("llama3.1-8b")
ROOT = Path(__file__).resolve().parents[2]


def ask(**given):
    return make_request(**{"model": LLAMA, "subject": LLAMA.name, "topology": "v6e:4x4", **given})


@pytest.mark.parametrize(
    "text, chips, devices, options",
    [
        ("v6e:4x4", 16, 16, {}),
        ("TPU v5 lite:16x16", 256, 256, {}),
        ("v5e:1x1", 1, 1, {"chips_per_host_bounds": [1, 1, 1]}),
        ("v4:2x2x1", 4, 4, {"chip_config_name": "megacore"}),
        ("v4:4x4x4", 64, 64, {"chip_config_name": "megacore", "wrap": [True] * 3}),
        ("v5p:16x16x24", 6144, 6144, {"wrap": [True] * 3}),
        ("v5p-128", 64, 64, {"wrap": [True] * 3}),
        ("Ironwood:2x2x1", 4, 8, {}),
        ("tpu7x:1", 1, 2, {"chips_per_host_bounds": [1, 1, 1]}),
    ],
)
def test_topologies(text, chips, devices, options):
    topology = parse_topology(text)
    assert (topology.chips, topology.devices, topology.compiler_options()) == (chips, devices, options)


def test_slices_multiply():
    topology = parse_topology("v5e:2x4", slices=2)
    assert (topology.chips, topology.compiler_options()) == (16, {"num_slices": 2})


@pytest.mark.parametrize(
    "given, said",
    [
        ({"topology": "v9:4x4"}, "no chip is called 'v9'"),
        ({"topology": "8t:4x4x4"}, "does not know TPU 8t"),
        ({"topology": "H100:8"}, "does not know H100"),
        ({"topology": "v6e:4x5"}, "TPU v6e has no slice of 4x5 chips"),
        ({"topology": "v6e:32x32"}, "has no slice of 32x32"),
        ({"topology": "v5p:8x4x4"}, "ascending order"),
        ({"topology": "v6e:4x"}, "'v6e:4x' is not understood"),
        ({"topology": "v6e"}, "is no accelerator type"),
        ({"slices": 0}, "0 slices"),
        ({"mesh": "data=4,model=3"}, "multiplies to 12; expected 16, for v6e:4x4, 16 chips"),
        ({"topology": "7x:2x2x1", "mesh": "data=4"}, "expected 8, for tpu7x:2x2x1, 4 chips with 2 JAX devices each"),
        ({"mesh": "data=4,modle=4"}, "mesh axis 'modle=4' is not understood"),
        ({"mesh": "data=4,data=4"}, "names an axis twice"),
        ({"mesh": "data=16,model=0"}, "mesh axis 'model=0' is not understood"),
        ({"topology": "v5e:2x2", "slices": 4, "mesh": "data=2,fsdp=2,model=2,expert=2"}, "can be cut over 4 slices"),
        ({"mesh": "data=4,model=4", "batch": 6}, "the batch, 6, does not divide over the mesh axis data=4"),
        ({"batch": 0}, "batch 0"),
        ({"seq": 1 << 30}, "seq 1,073,741,824"),
        ({"seq": 1}, "no next token"),
        ({"seq": 4099}, "no block of 64 to 512 queries divides the sequence length, 4,099"),
        ({"mesh": "context=16", "seq": 4088, "batch": 1}, "the sequence length, 4,088, does not divide"),
        ({"topology": "v6e:8x8", "mesh": "model=64", "batch": 1}, "the number of query heads of llama3.1-8b, 32,"),
        ({"mesh": "expert=16"}, "has no experts"),
        ({"model": model("gemma3-4b"), "mesh": "context=4,fsdp=4"}, "sliding windows of gemma3-4b"),
        ({"remat": "some"}, "remat 'some'; expected one of full, dots, none"),
        ({"weights": "fp8"}, "weights 'fp8'"),
        ({"model": None}, "nothing to compile"),
        ({"model": None, "function": "nowhere.py:step"}, "no file 'nowhere.py'"),
        ({"model": None, "function": f"{__file__}:a b"}, "is no function's name"),
    ],
)
def test_a_wrong_question_is_one_sentence(given, said):
    with pytest.raises(ChipledgerError) as error:
        ask(**given)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_defaults():
    request = ask()
    assert request.mesh == MeshAxes((("fsdp", 16),)) and request.batch == 16
    assert request.title == "llama3.1-8b v6e:4x4 fsdp=16"
    assert ask(mesh="data=2,fsdp=2,model=4").batch == 4


def test_blocks_of_queries():
    full, mla = LLAMA.attention[0], model("deepseek3-671b").attention[0]
    assert query_block(full, 4, 4096, 4096) == 256  # 4 x 256 x 4,096 scores of 4 bytes: 16 MiB
    assert query_block(full, 4, 4160, 4160) == 208  # the largest divisor of 4,160 up to 252
    assert query_block(mla, 1, 4096, 4096) == 512
    assert query_block(full, 4, 1 << 20, 4096) == 64
    assert query_block(full, 4, 4099, 4099) is None and query_block(full, 4, 17, 17) == 17
    window = model("gpt-oss-20b").attention[0]
    assert query_block(window, 8, 1 << 20, 1 << 20) == 512
    assert reach(window, 4096, 512) == 640 and reach(full, 4096, 512) == 4096


def test_a_request_survives_json():
    for given in ({}, {"model": model("deepseek3-671b"), "subject": {"name": "mine"}}, {"slices": 2}):
        request = ask(**given)
        assert CompileRequest.from_dict(json.loads(json.dumps(request.to_dict()))) == request


def test_the_content_key_changes_with_what_changes_the_result():
    base, versions = ask(), {"jax": "1", "libtpu": "2"}
    assert content_key(base, versions) == content_key(ask(mesh="fsdp=16"), versions)
    others = [
        ask(seq=2048),
        ask(batch=32),
        ask(remat="none"),
        ask(topology="v5e:4x4"),
        ask(mesh="data=16"),
        ask(weights="bf16"),
        ask(attention="full"),
        ask(optimizer="sgd"),
        ask(model=model("llama2-7b")),
    ]
    keys = {content_key(r, versions) for r in (base, *others)} | {content_key(base, {"jax": "1", "libtpu": "3"})}
    assert len(keys) == len(others) + 2


def test_slices_lie_on_the_axis_that_talks_least():
    topology = parse_topology("v5e:4x4", slices=2)
    for mesh, across in (
        ("model=4,data=8", (1, 2)),
        ("model=4,fsdp=8", (1, 2)),
        ("data=1,model=32", (1, 2)),
    ):
        assert parse_mesh(mesh, topology).across_slices(2) == across
    with pytest.raises(QuestionError):
        parse_mesh("data=1,fsdp=3,model=5", topology)


def test_weights_are_those_that_the_catalogue_counts():
    from math import prod

    from catalog import models, parameters

    for m in models().values():
        layers = sum(
            k.layers * prod(w.shape)
            for k in kinds(m)
            for name, w in layer_weights(k, m.d_model).items()
            if not name.endswith("_norm")
        )
        outer = sum(prod(w.shape) for name, w in outer_weights(m).items() if not name.endswith("_norm"))
        assert layers + outer == parameters(m).total, m.name
        assert sum(k.layers for k in kinds(m)) == m.layers


def test_asking_imports_no_jax():
    code = (
        "import sys; import app.cli.commands.compile, simulators.tpu_compile.launch; "
        "sys.exit(any(m.split('.')[0] in ('jax', 'jaxlib') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_what_cannot_be_compiled_is_told_wherever_it_is_read():
    request = CompileRequest(topology=parse_topology("v6e:4x4"), mesh=MeshAxes((("fsdp", 16),)))
    with pytest.raises(QuestionError, match="nothing to compile"):
        _ = request.title
    with pytest.raises(QuestionError, match="does not know TPU 8t; expected one of v2, "):
        _ = Topology("TPU 8t", (4, 4, 4)).text
    with pytest.raises(QuestionError, match="'fsdp=3,model=5' can be cut over 2 slices"):
        MeshAxes((("fsdp", 3), ("model", 5))).across_slices(2)
