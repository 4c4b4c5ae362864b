"""What a W&B run's configuration says for certain of a job, as facts: `config` of a `.wandb` file, `config.yaml`.

    Hugging Face's Trainer   per_device_batch_size, gradient_accumulation_steps, planned_steps, precision; the model by
                             its dimensions, where they are of a family that the catalogue knows
    Megatron                 chips (world_size), global_batch, micro_batch, sequence_length, planned_steps, precision
    torchtitan               per_device_batch_size, global_batch, sequence_length, planned_steps
    verl                     chips: trainer.nnodes x trainer.n_gpus_per_node
What is written down by anybody under names of his own may mean anything, and is no fact.
"""

from collections.abc import Collection, Iterator, Mapping
from math import inf, nan
from typing import Any

from catalog.configs import from_config
from collectors.base import Fact
from collectors.reading.documents import part, text
from collectors.reading.textlog import whole
from collectors.training.tracked import MAX_NAME
from errors import QuestionError

JOB_STEPS = ("train/global_step", "trainer/global_step")
ANY_STEP = "global_step"
_TRAINER = ("per_device_train_batch_size", "gradient_accumulation_steps")  # both are in each run of HF's Trainer
_MEGATRON = ("tensor_model_parallel_size", "micro_batch_size", "world_size")
_OF_TRAINER = {
    "per_device_train_batch_size": "per_device_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "max_steps": "planned_steps",
}
_OF_MEGATRON = {
    "world_size": "chips",
    "global_batch_size": "global_batch",
    "micro_batch_size": "micro_batch",
    "seq_length": "sequence_length",
    "train_iters": "planned_steps",
}
_OF_TORCHTITAN = {
    "local_batch_size": "per_device_batch_size",
    "batch_size": "per_device_batch_size",
    "global_batch_size": "global_batch",
    "seq_len": "sequence_length",
    "steps": "planned_steps",
}
_MODEL = (
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "tie_word_embeddings",
    "use_sliding_window",
    "sliding_window",
    "num_local_experts",
    "num_experts",
    "num_experts_per_tok",
)
_PRECISIONS = {"torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.float32": "fp32"}
_WORDS = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
_DEEPEST = 8  # objects within one another whose numbers are told


def facts(config: Mapping[str, Any]) -> Iterator[Fact]:
    """Facts of a configuration, each name once. `config`: names with their values, as the job gave them."""
    found: dict[str, Any] = {}
    if all(name in config for name in _TRAINER):
        found |= _numbers(config, _OF_TRAINER)
        halves = [word for word in ("bf16", "fp16") if config.get(word) is True]
        found |= {"precision": halves[0]} if len(halves) == 1 else {}
        found |= _model(config)
    if all(name in config for name in _MEGATRON):
        found |= _numbers(config, _OF_MEGATRON)
        precision = _PRECISIONS.get(str(config.get("params_dtype")))
        found |= {"precision": precision} if precision and not config.get("fp8") else {}
    if isinstance(training := config.get("training"), dict) and "seq_len" in training and "steps" in training:
        found |= _numbers(training, _OF_TORCHTITAN)
    nodes, each = (_count(part(config, "trainer", name)) for name in ("nnodes", "n_gpus_per_node"))
    if nodes and each:
        found["chips"] = nodes * each
    for name, value in found.items():
        yield Fact(name, value)


def machine_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What clients since 2024 say of the machine in the configuration: of several that wrote to one run the first."""
    writers = part(config.get("_wandb"), "e")
    machines = [one for one in writers.values() if isinstance(one, dict)] if isinstance(writers, dict) else []
    return machines[0] if machines else {}


def hardware(told: Mapping[str, Any]) -> Iterator[Fact]:
    """Facts of what W&B says of the machine (`wandb-metadata.json`): the chip, and how many a host has, some of which
    may be other jobs'."""
    tpu = part(told, "tpu", "name")
    name = text(told.get("gpu")) or text(part(told, "gpu_nvidia", 0, "name")) or text(tpu)
    count = _count(told.get("gpu_count")) or _count(part(told, "tpu", "count"))
    if name:
        yield Fact("chip", name)
    if count:
        yield Fact("chips_of_host", count)


def numbers(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, float]]:
    """(name, number) of what was logged under a name: a number, or those of an object by `name.key`, as W&B names
    them."""
    if isinstance(value, str) and value in _WORDS:
        yield name, _WORDS[value]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value) if abs(value) < 1e308 or value != value or not isinstance(value, int) else inf
    elif isinstance(value, dict) and "_type" not in value and depth < _DEEPEST:
        for key, inner in value.items():
            yield from numbers(inner, f"{name[:MAX_NAME]}.{key}", depth + 1)  # a long name stands before each key


def axes_of(first: Collection[str]) -> tuple[str, ...]:
    """What a history may call the job's own steps, whose `first` row of metrics has these names. `global_step` only
    where it stands from there on: some log it beside a few of their numbers, and the others by W&B's count alone."""
    return (*JOB_STEPS, ANY_STEP) if ANY_STEP in first else JOB_STEPS


def step_of(value: Any) -> int | None:
    """A step that a number stands for."""
    found = whole(value)
    return found if found is not None and found >= 0 else None


def _numbers(said: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    return {ours: value for theirs, ours in names.items() if (value := _count(said.get(theirs)))}


def _count(value: Any) -> int | None:
    """A whole number above zero."""
    found = whole(value)
    return found if found is not None and found > 0 else None


def _model(config: Mapping[str, Any]) -> dict[str, Any]:
    """The model in the words of its config.json, where the catalogue can count by them."""
    said = {name: config[name] for name in _MODEL if config.get(name) is not None}
    try:
        from_config(said)
    except QuestionError:
        return {}
    return {"model": said} if "model_type" in said else {}
