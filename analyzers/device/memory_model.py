"""What training a model holds on each chip, by formula (catalog.training_memory), and what other choices would."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pandas as pd

from analyzers.base import Facts, fact
from analyzers.device.memory_advice import Advice
from analyzers.device.memory_run import PART_COLUMNS
from analyzers.device.parallelism import devices_of, parallel_ways
from analyzers.subject import sequence_of
from catalog.models import Model
from catalog.training_memory import RECIPES, REMAT, Sharding, training_memory
from errors import QuestionError
from errors.numbers import COUNT
from errors.options import Option

DEFAULT_SEQ = 8192
MAX_BATCH = 1 << 20
WAYS = {
    "dp": "data",
    "fsdp": "fsdp",
    "ep": "expert",
    "cp": "context",
    "tp": "tensor",
    "pp": "pipeline",
    "interleave": "interleave",
}
OPTIONS: tuple[Option, ...] = (
    Option(
        "batch",
        COUNT,
        None,
        "by formula: sequences of a microbatch on each device of the data axes; default 1",
        label="Sequences a device",
    ),
    Option(
        "dp",
        COUNT,
        None,
        "by formula: devices that repeat weights and optimiser state; default: the mesh's, or 1",
        label="Data parallel",
    ),
    Option("fsdp", COUNT, None, "by formula: devices that share weights, gradients and optimiser state", label="FSDP"),
    Option("ep", COUNT, None, "by formula: devices over which routed experts are dealt out"),
    Option("cp", COUNT, None, "by formula: devices that share each sequence"),
    Option("tp", COUNT, None, "by formula: devices of tensor parallelism", label="Tensor parallel"),
    Option("pp", COUNT, None, "by formula: pipeline stages", label="Pipeline stages"),
    Option("interleave", COUNT, None, "by formula: interleaved chunks of each pipeline stage"),
    Option(
        "remat",
        tuple(REMAT),
        None,
        "by formula: what is computed again instead of kept; default none",
        label="What is kept",
    ),
    Option(
        "sequence_parallel",
        ("yes", "no"),
        None,
        "by formula: tensor parallelism also splits what lies between matrices; default no",
    ),
    Option(
        "recipe",
        tuple(RECIPES),
        None,
        "by formula: bytes per parameter; mixed is 2 of weights + 4 of gradients + 4 of master weights + 8 of moments",
        label="Precision",
    ),
)
MEANINGS = {
    "weights": "parameters in the precision that layers multiply with",
    "gradients": "gradients of the parameters",
    "master_weights": "parameters in the optimiser's own precision",
    "moments": "Adam's first and second moments",
    "activations": "what layers keep for the backward pass",
    "logits": "inputs of the last norm and projection, and the logits in 32 bits",
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the formulas were asked for."""

    sharding: Sharding
    seq: int
    batch: int
    remat: str
    recipe: str
    assumed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        ways = {option: getattr(self.sharding, name) for option, name in WAYS.items()}
        return ways | {
            "chips": self.sharding.chips,
            "seq": self.seq,
            "batch": self.batch,
            "remat": self.remat,
            "sequence_parallel": self.sharding.sequence_parallel,
            "recipe": self.recipe,
        }


def setting(facts: Facts, options: Mapping[str, Any]) -> Setting:
    """The options, where they are not given the facts, else usual values, which `assumed` names."""
    said, devices, assumed = parallel_ways(facts), devices_of(facts), []
    ways = {name: said.get(name, 1) if options[option] is None else options[option] for option, name in WAYS.items()}
    if prod(ways.values()) == 1 and all(options[option] is None for option in WAYS):
        if devices > 1:
            ways["fsdp"] = devices
            assumed.append(f"weights and optimiser state shared by all {devices:,} devices (FSDP)")
        elif not devices:
            assumed.append("one chip")
    seq = sequence_of(facts)
    if seq is None:
        assumed.append(f"sequences of {DEFAULT_SEQ:,} tokens")
    batch = options["batch"]
    if batch is None:
        total, shared = fact(facts, "global_batch"), ways["data"] * ways["fsdp"] * ways["expert"]
        told = devices or prod(ways.values()) > 1  # else the batch would be laid onto one chip
        known = isinstance(total, int) and total > 0 and ways["pipeline"] == 1 and told
        batch = max(total // shared, 1) if known else 1
        if not known:
            assumed.append("one sequence a device")
    if not 1 <= batch <= MAX_BATCH:
        raise QuestionError(f"a batch of {batch}", expected=f"1 to {MAX_BATCH:,} sequences")
    return Setting(
        sharding=Sharding(**ways, sequence_parallel=options["sequence_parallel"] == "yes"),
        seq=seq or DEFAULT_SEQ,
        batch=batch,
        remat=options["remat"] or _remat(facts),
        recipe=options["recipe"] or "mixed",
        assumed=tuple(assumed),
    )


def _remat(facts: Facts) -> str:
    said = str(fact(facts, "remat") or "none").lower()
    return said if said in REMAT else "none"


def held(model: Model, asked: Setting) -> dict[str, float]:
    """Bytes on one device by account."""
    return dict(
        training_memory(
            model,
            asked.sharding,
            seq=asked.seq,
            batch=asked.batch,
            remat=asked.remat,
            recipe=asked.recipe,
        )
    )


def parts(model: Model, asked: Setting) -> pd.DataFrame:
    """The accounts that hold anything, largest first, in PART_COLUMNS."""
    rows = [
        {"name": name.replace("_", " "), "category": name, "bytes": round(size), "padded_bytes": round(size)}
        for name, size in held(model, asked).items()
        if round(size) > 0
    ]
    table = pd.DataFrame(rows, columns=PART_COLUMNS)
    return table.sort_values("padded_bytes", ascending=False, kind="stable").reset_index(drop=True)


def largest_batch(model: Model, asked: Setting, limit: float | None) -> int | None:
    """Sequences of a microbatch that fit a device with `limit` bytes by formula; 0 where not even one does."""
    if limit is None:
        return None
    one, two = (sum(held(model, replace(asked, batch=b)).values()) for b in (1, 2))
    return max(int((limit - one) // (two - one)) + 1, 0)


def advise(model: Model, asked: Setting) -> tuple[Advice, ...]:
    """What one other choice would give back, each by the same formulas, the most first."""
    now = sum(held(model, asked).values())
    sharding = asked.sharding
    found = []

    def tried(what: str, text: str, **changes: Any) -> None:
        back = now - sum(held(model, replace(asked, **changes)).values())
        if back > 0.01 * now:
            found.append(Advice(what, text, round(back)))

    if asked.remat == "none":
        tried("selective", "Selective recomputation (or flash attention) keeps no attention scores.", remat="selective")
    if asked.remat != "full":
        tried("remat", "Full recomputation keeps only the input of each layer, for a third more FLOPs.", remat="full")
    if sharding.tensor > 1 and not sharding.sequence_parallel:
        tried(
            "sequence_parallel",
            "Sequence parallelism splits what lies between the matrices too, for no more traffic.",
            sharding=replace(sharding, sequence_parallel=True),
        )
    if sharding.data > 1:
        tried(
            "fsdp",
            f"Sharding weights and optimiser state over the {sharding.data:,} data-parallel devices (FSDP).",
            sharding=replace(sharding, data=1, fsdp=sharding.fsdp * sharding.data),
        )
    if sharding.chips == 1:
        tried("fsdp", "Sharding weights and optimiser state over 8 chips (FSDP).", sharding=replace(sharding, fsdp=8))
    return tuple(sorted(found, key=lambda a: -a.bytes))
