"""What is asked of the compiler, checked before any process is started. No JAX here."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from catalog.formats import Published
from catalog.lookup import shown
from catalog.models import Attention, FeedForward, Model
from errors import QuestionError
from simulators.tpu_compile.blocks import fitting_block
from simulators.tpu_compile.mesh import ROLES, MeshAxes
from simulators.tpu_compile.topology import Topology, parse_topology
from simulators.tpu_compile.weights import kinds, layer_weights, outer_weights

REMATS = ("full", "dots", "none")
OPTIMIZERS = ("adamw", "sgd")
ATTENTIONS = ("blockwise", "full")
WEIGHTS = ("f32", "bf16")
DEFAULT_SEQ = 4096
MOST_SEQ, MOST_BATCH, MOST_WIDTH = 1 << 22, 1 << 20, 1 << 24

WORDS: dict[str | None, str] = {
    "embed": "d_model",
    "rank": "a compressed width",
    "heads": "the number of query heads",
    "ff": "d_ff",
    "vocab": "the vocabulary",
    "experts": "the number of experts",
}


@dataclass(frozen=True)
class CompileRequest:
    """A training step of `model`, or a user's function (`function`, FILE.py:NAME), for a topology under a mesh.

    `subject`: how the run names the model (a name or a configuration). `seq`: tokens in a sequence; `batch`: sequences
    in a step over all chips. `remat`: what the backward pass makes again (full: everything, dots: all but matmuls with
    weights, none: nothing but scores). `weights`: type of weights, gradients and optimiser state; activations are bf16.
    """

    topology: Topology
    mesh: MeshAxes
    model: Model | None = None
    subject: str | dict[str, Any] | None = None
    function: str | None = None
    seq: int = DEFAULT_SEQ
    batch: int = 1
    remat: str = "full"
    optimizer: str = "adamw"
    attention: str = "blockwise"
    weights: str = "f32"

    @property
    def title(self) -> str:
        """What it is in a few words, such as `llama3.1-8b v6e:4x4 data=4,model=4`."""
        if self.function is not None and self.model is None:
            what = Path(self.function.rpartition(":")[0]).stem
        else:
            what = self.trained.name
        slices = f" x{self.topology.slices}" if self.topology.slices > 1 else ""
        return f"{what} {self.topology.text}{slices} {self.mesh.text}"

    @property
    def trained(self) -> Model:
        """The model. Raises QuestionError where there is none."""
        if self.model is None:
            raise QuestionError("nothing to compile", expected="a model or FILE.py:FUNCTION")
        return self.model

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "CompileRequest":
        given = dict(data)
        given["topology"] = Topology(**{**data["topology"], "shape": tuple(data["topology"]["shape"])})
        given["mesh"] = MeshAxes(tuple((name, size) for name, size in data["mesh"]["axes"]))
        if (model := data["model"]) is not None:
            attention = tuple(Attention(**a) for a in model["attention"])
            feedforward = tuple(FeedForward(**f) for f in model["feedforward"])
            words = {key: tuple(model[key]) for key in ("aliases", "notes")}
            kept = Published(model["published"]["format"], tuple(model["published"]["narrow"]))
            built = {"attention": attention, "feedforward": feedforward, "published": kept}
            given["model"] = Model(**{**model, **words, **built})
        return cls(**given)


def make_request(
    *,
    topology: str,
    mesh: str | None = None,
    model: Model | None = None,
    subject: str | dict[str, Any] | None = None,
    function: str | None = None,
    seq: int | None = None,
    batch: int | None = None,
    slices: int = 1,
    remat: str = "full",
    optimizer: str = "adamw",
    attention: str = "blockwise",
    weights: str = "f32",
) -> CompileRequest:
    """The request, checked. Without a mesh all devices lie on one fsdp axis; without a batch each data part has one
    sequence. Raises QuestionError, one sentence, for whatever cannot be compiled."""
    place = parse_topology(topology, slices)
    axes = parse_mesh(mesh, place)
    for name, value, allowed in (
        ("remat", remat, REMATS),
        ("optimizer", optimizer, OPTIMIZERS),
        ("attention", attention, ATTENTIONS),
        ("weights", weights, WEIGHTS),
    ):
        if value not in allowed:
            raise QuestionError(f"{name} {shown(str(value))}", expected=f"one of {', '.join(allowed)}")
    result = CompileRequest(
        topology=place,
        mesh=axes,
        model=model,
        subject=subject,
        function=function,
        seq=DEFAULT_SEQ if seq is None else seq,
        batch=axes.ways("batch") if batch is None else batch,
        remat=remat,
        optimizer=optimizer,
        attention=attention,
        weights=weights,
    )
    if function is not None:
        return replace(result, function=_function(function))
    model = result.trained
    _check_sizes(result)
    _check_model(model, result)
    return result


def parse_mesh(text: str | None, topology: Topology) -> MeshAxes:
    """Axes from `data=4,model=4`. Raises QuestionError where they do not multiply to the devices of the topology."""
    expected = f"such as data=4,model=4, with axes from {', '.join(ROLES)}"
    if text is None:
        return MeshAxes((("fsdp", topology.devices),))
    axes = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([a-z]+)\s*=\s*([0-9]{1,6})\s*", part)
        if not match or match[1] not in ROLES or int(match[2]) < 1:
            raise QuestionError(f"mesh axis {shown(part)} is not understood", expected=expected)
        axes.append((match[1], int(match[2])))
    result = MeshAxes(tuple(axes))
    if len(set(result.names)) < len(axes):
        raise QuestionError(f"mesh {shown(text)} names an axis twice", expected=expected)
    if result.devices != topology.devices:
        raise QuestionError(
            f"mesh {shown(text)} multiplies to {result.devices:,}",
            expected=f"{topology.devices:,}, for {_devices(topology)}",
        )
    if topology.slices > 1:
        result.across_slices(topology.slices)  # raises where no axis can be cut
    return result


def content_key(request: CompileRequest, versions: Mapping[str, str]) -> str:
    """What the result is made of: the request, the program that it becomes, and the versions of JAX and compiler."""
    here = Path(__file__).parent
    sources = hashlib.sha256()
    for file in sorted(here.glob("*.py")):
        sources.update(file.read_bytes())
    whole = json.dumps([request.to_dict(), dict(versions), sources.hexdigest()], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _devices(t: Topology) -> str:
    slices = f"{t.slices} slices of " if t.slices > 1 else ""
    each = f" with {t.devices_per_chip} JAX devices each" if t.devices_per_chip > 1 else ""
    return f"{slices}{t.text}, {t.chips:,} chip{'s' if t.chips > 1 else ''}{each}"


def _function(text: str) -> str:
    path, _, name = text.rpartition(":")
    if not Path(path).is_file():
        raise QuestionError(f"no file {shown(path)}", expected="FILE.py:FUNCTION")
    if not name.isidentifier():
        raise QuestionError(f"{shown(name)} is no function's name", where=path, expected="FILE.py:FUNCTION")
    return f"{Path(path).absolute()}:{name}"


def _check_sizes(r: CompileRequest) -> None:
    for name, value, most in (("seq", r.seq, MOST_SEQ), ("batch", r.batch, MOST_BATCH)):
        if not 1 <= value <= most:
            raise QuestionError(f"{name} {value:,}", expected=f"a whole number from 1 to {most:,}")
    if r.seq < 2:
        raise QuestionError("a sequence of one token has no next token to learn", expected="seq of at least 2")
    _divides("the batch", r.batch, r, "batch")
    _divides("the sequence length", r.seq, r, "seq")


def _check_model(model: Model, r: CompileRequest) -> None:
    if (
        "experts" not in {n for k in kinds(model) for w in layer_weights(k, model.d_model).values() for n in w.axes}
        and r.mesh.ways("experts") > 1
    ):
        raise QuestionError(f"the mesh has an expert axis but {model.name} has no experts", expected="another axis")
    if r.mesh.ways("seq") > 1 and any(a.span != "full" for a in model.attention):
        raise QuestionError(
            f"a context axis with the sliding windows of {model.name} is not compiled here", expected="another axis"
        )
    for a in dict.fromkeys(model.attention):
        _check_attention(model, a, r)
    every = {"": outer_weights(model), **{k.name: layer_weights(k, model.d_model) for k in kinds(model)}}
    for layer, weights in every.items():
        for name, w in weights.items():
            where = f"{layer} {name}".strip()
            for size, axis in zip(w.shape, w.axes, strict=True):
                if not 1 <= size <= MOST_WIDTH:
                    raise QuestionError(f"{where} would have an axis of {size:,}", expected=f"1 to {MOST_WIDTH:,}")
                if axis != "kv_heads":  # few key heads are held whole by each device
                    _divides(f"{WORDS.get(axis)} of {model.name}", size, r, axis)


def _check_attention(model: Model, a: Attention, r: CompileRequest) -> None:
    rotary = a.rope_head_dim if a.kv_lora_rank else a.head_dim
    if rotary is None or rotary % 2:
        raise QuestionError(f"{model.name}: rotary positions need an even width, not {rotary}")
    if a.heads % a.kv_heads:
        raise QuestionError(f"{model.name}: {a.heads} query heads do not divide over {a.kv_heads} key heads")
    per_key = 1 if a.kv_heads % r.mesh.ways("heads") else a.heads // a.kv_heads
    if r.attention == "blockwise":
        fitting_block(a, per_key, r.seq, r.seq // r.mesh.ways("seq"))  # raises where there is none


def _divides(what: str, size: int, r: CompileRequest, axis: str | None) -> None:
    if size % (ways := r.mesh.ways(axis)):
        names = " x ".join(f"{n}={dict(r.mesh.axes)[n]}" for n in r.mesh.sharding(axis))
        raise QuestionError(
            f"{what}, {size:,}, does not divide over the mesh axis {names}", expected=f"a multiple of {ways}"
        )
