"""Which of the settings that differ can have moved an account, and what each is called.

Settings that follow from one another are one `Setting`: the batch as the job counts it and as a device does; the mesh
as axes and as text. What follows from others (FLOPs of a step) is no setting. A setting is a cause of a change only as
far as it can be one: that is, where no other that can move the same account differs (`because`); else it is named as
one of several that can.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.difference.differs import Differs

WORK = ("useful_maths", "padding", "recomputation", "below_roofline")
SENT = ("exposed_communication", "straggler_wait", "pipeline_bubble")
HOST = ("device_idle", "idle_launching", "idle_host_code", "idle_unexplained", "idle_between_kernels")
COPIED = ("exposed_copies", "idle_device_to_host")
SERVED = ("queue_s", "prefill_s", "ttft_s", "decode_s")  # what the time of a served request is made of
ALL = (*WORK, *SENT, *HOST, *COPIED, *SERVED, "input_wait", "compilation")


@dataclass(frozen=True)
class Kind:
    """A kind of setting: what it is called in a sentence, whether that takes a plural, and which accounts it moves.
    `more`: what another part of it is called, where its parts do not follow from one another."""

    name: str
    called: str
    moves: tuple[str, ...]
    plural: bool = False
    more: str = ""


KINDS: tuple[Kind, ...] = (
    Kind("chip", "the chip", ALL),
    Kind("chips", "the number of chips", ALL),
    Kind("slices", "the number of slices", (*WORK, *SENT)),
    Kind("mesh", "the mesh", (*WORK, *SENT, *COPIED, *HOST, *SERVED)),
    Kind("model", "the model", ALL, more="dimension"),
    Kind("batch", "the batch", ALL),
    Kind("sequence", "the sequence length", ALL),
    Kind("precision", "precision", (*WORK, *SENT, *COPIED, *SERVED, "idle_host_code"), more="precision setting"),
    Kind("running", "the limit of running requests", SERVED),
    Kind("token_budget", "the limit of tokens in an iteration", SERVED),
    Kind("context", "the longest context", SERVED),
    Kind("block", "the size of cache blocks", SERVED),
    Kind("cache_type", "the type of the cache", SERVED),
    Kind("drafts", "the number of draft tokens", ("decode_s", "queue_s")),
    Kind("weights", "the type of weights", (*WORK, *SENT, *COPIED)),
    Kind("remat", "remat", (*WORK, *SENT, *COPIED)),
    Kind("attention", "attention", (*WORK, *COPIED)),
    Kind("optimizer", "the optimiser", (*WORK, *SENT)),
    Kind("accumulation", "gradient accumulation", ALL),
    Kind("flags", "the compiler's flags", (*WORK, *SENT, *COPIED), plural=True, more="flag"),
    Kind("versions", "the version of", (*WORK, *SENT, *COPIED, *HOST, *SERVED, "compilation"), more="version"),
    Kind("input", "input workers", ("input_wait",), plural=True),
    Kind("logging", "the log period", ("idle_logging", "idle_device_to_host", "idle_host_code")),
    Kind("saving", "the checkpoint period", ("idle_checkpointing",)),
)
BY_NAME = {kind.name: kind for kind in KINDS}
HEADS: Mapping[str, str] = {
    "chip": "chip",
    "chips": "chips",
    "slices": "slices",
    "num_slices": "slices",
    "topology": "mesh",
    "parallelism": "mesh",
    "model": "model",
    "layers": "model",
    "global_batch": "batch",
    "global_batch_size": "batch",
    "per_device_batch_size": "batch",
    "seq": "sequence",
    "seq_len": "sequence",
    "max_target_length": "sequence",
    "precision": "precision",
    "dtype": "precision",
    "tensor_parallel_size": "mesh",
    "pipeline_parallel_size": "mesh",
    "data_parallel_size": "mesh",
    "max_num_seqs": "running",
    "max_num_batched_tokens": "token_budget",
    "max_model_len": "context",
    "max_seq_len": "context",
    "block_size": "block",
    "kv_cache_dtype": "cache_type",
    "num_speculative_tokens": "drafts",
    "quantization": "precision",
    "weights": "weights",
    "remat": "remat",
    "remat_policy": "remat",
    "attention": "attention",
    "optimizer": "optimizer",
    "gradient_accumulation_steps": "accumulation",
    "compiler_flags": "flags",
    "compiler": "versions",
    "jax": "versions",
    "jax_version": "versions",
    "jaxlib_version": "versions",
    "libtpu_version": "versions",
    "input_workers": "input",
    "log_period_steps": "logging",
    "checkpoint_period_steps": "saving",
}
"""The kind of a setting by the head of its name; of a model's dimension by its tail, where that is no dimension."""
FOLLOWS = frozenset(("model_flops_per_step", "parameters"))
"""What follows from other settings."""
MOVES_NONE = frozenset(
    (
        "peak_flops_per_s",
        "devices",
        "devices_per_chip",
        "processes",
        "ranks",
        "planned_steps",
        "lr",
        "learning_rate",
        "seed",
        "usd_per_chip_hour",
    )
)
"""What is of no kind and moves no account: it follows from the chips, or says how long a job runs and what it costs."""


@dataclass(frozen=True)
class Setting:
    """One setting that both runs tell and tell differently. `parts`: as the runs name it, what says most first."""

    kind: Kind
    parts: tuple[Differs, ...]

    @property
    def several(self) -> bool:
        """Whether it is several settings, any of which can have moved something."""
        return bool(self.kind.more) and len(self.parts) > 1

    def can_move(self, account: str) -> bool:
        return account in self.kind.moves


def settings(differing: Iterable[Differs]) -> tuple[Setting, ...]:
    """Settings of which both runs tell, those that follow from one another as one; names without a kind are none."""
    found: dict[str, list[Differs]] = {}
    for d in differing:
        if d.a is not None and d.b is not None and (kind := kind_of(d.name)):
            found.setdefault(kind, []).append(d)
    if "chip" in found and all(d.name == "topology" for d in found.get("mesh", ())):
        found.pop("mesh", None)  # slices of other chips have other names
    return tuple(Setting(kind, tuple(found[kind.name])) for kind in KINDS if kind.name in found)


def kind_of(name: str) -> str | None:
    """The name of the kind that a setting is of; None for what is no setting or of a kind that is not known."""
    parts = name.split(".")
    if parts[-1] in FOLLOWS:
        return None
    if parts[0] == "model" and len(parts) > 1 and parts[-1] in HEADS and parts[-1] != "layers":
        return HEADS[parts[-1]]
    return HEADS.get(parts[0])


def is_unknown(name: str) -> bool:
    """Whether it is a setting of which it is not known what it can move."""
    return kind_of(name) is None and name.split(".")[-1] not in FOLLOWS


def unknown(differing: Iterable[Differs]) -> tuple[Differs, ...]:
    """Those that both runs tell, of which it is not known what they can move."""
    return tuple(d for d in differing if d.a is not None and d.b is not None and is_unknown(d.name))


def others_may(differing: Iterable[Differs]) -> bool:
    """Whether settings differ that may move any account, as far as it is known."""
    return any(d.name.split(".")[-1] not in MOVES_NONE for d in unknown(differing))


@dataclass(frozen=True)
class Because:
    """`only`: the one setting that differs and can move these accounts; `among`: where several can, all of them, as far
    as it is known what they move."""

    only: Setting | None = None
    among: tuple[Setting, ...] = ()


def because(found: Iterable[Setting], accounts: Iterable[str], others: bool = False) -> Because:
    """Which settings can have moved the first of these accounts, or else any other of them. `others`: whether settings
    differ too of which it is not known what they move: none is the only one then."""
    found = tuple(found)
    for account in accounts:
        able = tuple(s for s in found if s.can_move(account))
        if able:
            alone = len(able) == 1 and not others and not able[0].several
            return Because(able[0]) if alone else Because(None, able)
    return Because()


def mesh_of(setting: Setting, side: str) -> Mapping[str, Any]:
    """Axes and sizes of a mesh as one side has it, as far as they differ."""
    axes = {d.name.partition(".")[2]: getattr(d, side) for d in setting.parts if d.name.startswith("parallelism.")}
    return {axis: size for axis, size in axes.items() if axis}
