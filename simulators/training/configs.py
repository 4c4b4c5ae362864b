"""A layout in the words of a framework: MaxText's YAML, Megatron-LM's flags, TorchTitan's TOML.

Options are named as in MaxText's base.yml (ici: within a slice or a node, dcn: between them), Megatron-LM's
arguments.py and TorchTitan's job_config.py, as they stood in 2025. What a layout calls copies is in

    MaxText      ici_ x dcn_ of data, fsdp, tensor, context, expert and pipeline: their product is the JAX devices
    Megatron-LM  what is left of the world by tensor, pipeline and context; experts are cut among these copies
    TorchTitan   data_parallel_replicate x data_parallel_shard; experts are cut among the sharded ones

Nothing here was run: the texts hold what the layout fixes and leave the rest to the framework's own defaults.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.models import Model
from catalog.training_memory import RECIPES, parameters
from simulators.training.layout import tensors

INNERMOST_FIRST = ("tensor", "context", "expert", "fsdp", "data", "pipeline")
SHORTS = {"tensor": "tp", "context": "cp", "expert": "ep", "fsdp": "fsdp", "data": "dp", "pipeline": "pp"}
MAXTEXT_MODELS = (
    "llama2-7b", "llama2-13b", "llama2-70b", "llama3.1-8b", "llama3.1-70b", "llama3.1-405b", "mistral-7b",
    "mixtral-8x7b", "mixtral-8x22b", "deepseek2-16b", "deepseek3-671b", "gemma-7b", "gemma2-2b", "gemma2-9b",
    "gemma2-27b", "gemma3-4b", "gemma3-12b", "gemma3-27b", "qwen3-0.6b", "qwen3-8b", "qwen3-14b", "qwen3-32b",
    "qwen3-30b-a3b", "qwen3-235b-a22b", "kimi-k2-1t", "gpt-oss-20b", "gpt-oss-120b", "llama4-17b-16e",
    "llama4-17b-128e",
)  # fmt: skip
TITAN_MODELS = {
    "llama3.1-8b": ("llama3", "8B"),
    "llama3.1-70b": ("llama3", "70B"),
    "llama3.1-405b": ("llama3", "405B"),
    "deepseek2-16b": ("deepseek_v3", "16B"),
    "deepseek3-671b": ("deepseek_v3", "671B"),
    "llama4-17b-16e": ("llama4", "17bx16e"),
    "llama4-17b-128e": ("llama4", "17bx128e"),
}


@dataclass(frozen=True)
class Cannot:
    """Why a framework has no text for a layout, a sentence."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is configured. `layout`: axes by their short names; `group`: chips that lie close, of a slice or a node;
    `devices_per_chip`: of JAX; `recomputed`: the part of the layers that is computed again."""

    model: Model
    layout: Mapping[str, int | str]
    chips: int
    group: int
    batch: int
    seq: int
    precision: str
    recomputed: float
    devices_per_chip: int = 1

    def axis(self, short: str) -> int:
        return int(self.layout[short])

    @property
    def replicas(self) -> int:
        """Ways in which the sequences of the batch are dealt out."""
        return self.axis("ep") * self.axis("fsdp") * self.axis("dp")

    @property
    def microbatches(self) -> int:
        return self.batch // (self.replicas * self.axis("micro"))

    @property
    def chunks(self) -> int:
        """Pieces that the layers are cut into: stages times the chunks of each."""
        return self.axis("pp") * self.axis("vp")

    @property
    def whole(self) -> bool:
        """Whether all pieces have as many layers."""
        return self.model.layers % self.chunks == 0

    @property
    def devices_axis(self) -> str:
        """The axis that a chip's JAX devices are on, where it has several: fsdp where each has sequences of its own,
        else tensor where that divides the heads; of neither fsdp, with too few sequences."""
        if self.axis("micro") % self.devices_per_chip == 0:
            return "fsdp"
        wider = self.axis("tp") * self.devices_per_chip
        return "tensor" if wider in tensors(self.model, wider) else "fsdp"

    def within(self) -> dict[str, int] | None:
        """How much of each axis lies within a group, from the innermost outwards; None: a group is not filled so."""
        left, found = min(self.group, self.chips), dict[str, int]()
        for name in INNERMOST_FIRST:
            found[name] = math.gcd(self.axis(SHORTS[name]), left)
            left //= found[name]
        return found if left == 1 else None


def maxtext(job: Job) -> str | Cannot:
    """A YAML that MaxText reads beside its base.yml."""
    if job.precision not in ("bf16", "fp8"):
        return Cannot(f"MaxText is written here for bf16 and fp8, not for {job.precision}.")
    if job.chunks > job.model.layers:
        return Cannot(
            f"MaxText's {job.chunks} pieces of a pipeline are alike: {job.model.layers} layers do not fill them."
        )
    within = job.within()
    if within is None:
        return Cannot(f"No part of these axes fills groups of {job.group:,} chips, which MaxText's ici axes must.")
    pairs: dict[str, object] = {"base_config": "base.yml", "run_name": f"{job.model.name}-{job.chips}"}
    said = []
    if job.model.name in MAXTEXT_MODELS:
        pairs["model_name"] = job.model.name
    else:
        said.append(f"MaxText is not known to have {job.model.name} by a name: add its dimensions.")
    for name in reversed(INNERMOST_FIRST):
        devices = job.devices_per_chip if name == job.devices_axis else 1
        pairs[f"ici_{name}_parallelism"] = within[name] * devices
        pairs[f"dcn_{name}_parallelism"] = job.axis(SHORTS[name]) // within[name]
    if job.devices_per_chip > 1:
        said.append(f"A chip is {job.devices_per_chip} JAX devices: {job.devices_axis} is as many times as large.")
    devices, accumulated = job.chips * job.devices_per_chip, 1
    if job.axis("pp") > 1:
        pairs |= _maxtext_pipeline(job, said)
    else:
        accumulated = job.microbatches
    pairs["gradient_accumulation_steps"] = accumulated
    pairs["per_device_batch_size"] = _plain(job.batch / devices / accumulated)
    pairs["max_target_length"] = job.seq
    if job.axis("dp") > 1:  # else each copy repeats the optimiser's state, which the plan deals out over all of them
        pairs["shard_optimizer_over_data"] = True
    pairs |= {"dtype": "bfloat16"} | ({"quantization": "fp8"} if job.precision == "fp8" else {})
    pairs["remat_policy"] = "minimal" if job.recomputed <= 0 else "full" if job.recomputed >= 1 else "save_qkv_proj"
    if 0 < job.recomputed < 1:
        said.append(f"{job.recomputed:.0%} of the layers were to be computed again: the nearest policy stands below.")
    head = "".join(f"# {line}\n" for line in ("python3 -m MaxText.train THIS_FILE", *said))
    return head + "".join(f"{key}: {_yaml(value)}\n" for key, value in pairs.items())


def _maxtext_pipeline(job: Job, said: list[str]) -> dict[str, object]:
    each = job.model.layers // job.chunks
    pairs: dict[str, object] = {
        "num_layers_per_pipeline_stage": each,
        "num_pipeline_repeats": job.axis("vp"),
        "num_pipeline_microbatches": job.microbatches,
    }
    if not job.whole:
        pairs["pipeline_parallel_layers"] = each * job.chunks
        said.append(f"{job.model.layers - each * job.chunks} layers stay outside the pipeline: its stages are alike.")
    if job.microbatches % job.axis("pp"):
        said.append(f"MaxText asks for microbatches that are a multiple of the {job.axis('pp')} stages.")
    return pairs


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _yaml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def megatron(job: Job) -> str | Cannot:
    """The flags of Megatron-LM's pretrain_gpt.py that a layout fixes, after torchrun's."""
    if no := _no_nodes(job):
        return no
    tensor, pipeline = job.axis("tp"), job.axis("pp")
    expert, cut = _experts(job)
    flags = [
        f"--tensor-model-parallel-size {tensor}",
        f"--pipeline-model-parallel-size {pipeline}",
        f"--context-parallel-size {job.axis('cp')}",
        *([f"--num-virtual-stages-per-pipeline-rank {job.axis('vp')}"] if job.axis("vp") > 1 else []),
        *([f"--expert-model-parallel-size {expert}", f"--expert-tensor-parallel-size {cut}"] if expert > 1 else []),
        *(["--sequence-parallel"] if tensor > 1 else []),
        *_megatron_copies(job),
        f"--micro-batch-size {job.axis('micro')}",
        f"--global-batch-size {job.batch}",
        f"--seq-length {job.seq}",
        *_megatron_again(job),
        *{
            "bf16": ["--bf16"],
            "fp16": ["--fp16"],
            "fp8": ["--bf16", "--fp8-format hybrid"],
            "fp4": ["--bf16", "--fp4-format e2m1"],
        }[job.precision],
    ]
    head = f"# data parallel: {job.replicas:,} copies, which Megatron-LM works out of the world's size\n"
    if not job.whole:
        head += (
            f"# {job.model.layers} layers do not divide into {job.chunks} pieces alike: say which stage has how many "
            "with --pipeline-model-parallel-layout\n"
        )
    if pipeline > 1 and job.axis("fsdp") > 1:
        head += "# whether Megatron-FSDP runs beside a pipeline was not checked: fsdp=1 goes without it\n"
    return head + " \\\n  ".join([f"{_torchrun(job)} pretrain_gpt.py", *flags]) + "\n"


def _no_nodes(job: Job) -> Cannot | None:
    """Why torchrun cannot start so many processes; None where it can."""
    here = min(job.group, job.chips)
    return Cannot(f"{job.chips:,} GPUs are no whole nodes of {here}.") if job.chips % here else None


def _torchrun(job: Job) -> str:
    here = min(job.group, job.chips)
    return f"torchrun --nnodes {max(job.chips // here, 1)} --nproc-per-node {here}"


def _experts(job: Job) -> tuple[int, int]:
    """(ways over which experts are dealt out, ways in which each is cut): whole over tensor parallelism too, where
    there are enough of them, as the step was timed."""
    tensor, expert = job.axis("tp"), job.axis("ep")
    experts = max((b.experts for b in job.model.feedforward), default=0)
    if experts and experts % (expert * tensor) == 0:
        return expert * tensor, 1
    return expert, tensor


def _megatron_copies(job: Job) -> list[str]:
    if job.axis("fsdp") == 1:
        return ["--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather"]
    apart = job.axis("dp")
    instances = [f"--num-distributed-optimizer-instances {apart}"] if apart > 1 else []
    if apart > 1:  # without it each instance repeats the optimiser's state, which the plan deals out over all copies
        instances.append("--outer-dp-sharding-strategy optim")
    return [
        "--use-megatron-fsdp",
        "--data-parallel-sharding-strategy optim_grads_params",
        *instances,
        "--no-gradient-accumulation-fusion",
        "--ckpt-format fsdp_dtensor",
    ]


def _megatron_again(job: Job) -> list[str]:
    """Layers computed again, of each piece of the pipeline."""
    if job.recomputed <= 0:
        return []
    each = math.ceil(job.model.layers / job.chunks)
    if job.recomputed >= 1:
        return ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"]
    again = min(each, math.ceil(job.recomputed * each))
    return ["--recompute-granularity full", "--recompute-method block", f"--recompute-num-layers {again}"]


def torchtitan(job: Job) -> str | Cannot:
    """A TOML of TorchTitan."""
    if no := _no_nodes(job):
        return no
    if job.precision not in ("bf16", "fp8"):
        return Cannot(f"TorchTitan is written here for bf16 and fp8, not for {job.precision}.")
    micro, pipeline = job.axis("micro"), job.axis("pp")
    name, flavour = TITAN_MODELS.get(job.model.name, ("", ""))
    model: dict[str, object] = {"name": name, "flavor": flavour} if name else {}
    if job.precision == "fp8":
        model["converters"] = ["quantize.linear.float8"]
    tables: dict[str, dict[str, object]] = {
        "model": model,
        "training": {
            "local_batch_size": micro * job.microbatches if pipeline > 1 else micro,
            "global_batch_size": job.batch,
            "seq_len": job.seq,
        },
        "parallelism": _titan_axes(job),
        "activation_checkpoint": _titan_again(job.recomputed),
    }
    head = f"# {_torchrun(job)} -m torchtitan.train --job.config_file THIS_FILE\n"
    if not name:
        head += f"# TorchTitan is not known to have {job.model.name}: name its model and flavor.\n"
    if not job.whole:
        head += f"# {job.model.layers} layers do not divide into {job.chunks} pieces alike.\n"
    if (copies := job.axis("dp")) > 1:
        own = RECIPES["mixed"]["master_weights"] + RECIPES["mixed"]["moments"]
        cut = math.prod(job.axis(n) for n in ("tp", "pp", "fsdp", "ep", "cp"))
        more = parameters(job.model).total * own / cut * (1 - 1 / copies)
        head += (
            f"# Its {copies:,} replicas each hold the whole optimiser state, which the plan deals out over all: about "
            f"{more / 1e9:,.1f} GB a chip more than planned. Plan with --layout dp=1 for what it can deal out.\n"
        )
    return head + "\n".join(_table(title, values) for title, values in tables.items() if values)


def _titan_axes(job: Job) -> dict[str, object]:
    pipeline = job.axis("pp")
    pipelined: dict[str, object] = {
        "pipeline_parallel_schedule": "Interleaved1F1B" if job.axis("vp") > 1 else "1F1B",
        "pipeline_parallel_microbatch_size": job.axis("micro"),
    }
    if job.axis("vp") > 1:
        pipelined["pipeline_parallel_layers_per_stage"] = math.ceil(job.model.layers / job.chunks)
    return {
        "data_parallel_replicate_degree": job.axis("dp"),
        "data_parallel_shard_degree": job.axis("fsdp") * job.axis("ep"),
        "tensor_parallel_degree": job.axis("tp"),
        "pipeline_parallel_degree": pipeline,
        **(pipelined if pipeline > 1 else {}),
        "context_parallel_degree": job.axis("cp"),
        "expert_parallel_degree": job.axis("ep"),
    }


def _titan_again(recomputed: float) -> dict[str, object]:
    """Every n-th layer where a part of them is computed again."""
    if recomputed <= 0:
        return {"mode": "none"}
    every = round(1 / recomputed)
    return {"mode": "full"} if every <= 1 else {"mode": "selective", "selective_ac_option": str(every)}


def _table(title: str, values: Mapping[str, object]) -> str:
    return f"[{title}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
