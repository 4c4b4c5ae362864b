"""Collectors: one module a format, all listed here. See `collectors.base` for what each of them has.

A module is imported when it is asked: a file that one of the first is certain of does not wait for all others.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

PLACES = (
    "device.xplane",
    "device.kineto",
    "device.viewer",
    "device.ray_timeline",
    "device.chakra",
    "device.nsys",
    "device.flight_recorder",
    "device.nccl_inspector",
    "device.rocm.rocpd",
    "device.rocm.rpd",
    "device.rocm.rocprofv3",
    "device.memory_snapshot",
    "training.mlflow",
    "own.tables",
    "training.goodput_log",
    "training.maxtext",
    "training.maxtext_metrics",
    "training.megatron",
    "training.torchtitan",
    "training.llm_c",
    "training.deepspeed",
    "training.hf_trainer",
    "training.wandb_log",
    "training.wandb_history",
    "training.wandb_files",
    "training.trainer_state",
    "training.dllogger",
    "training.verl",
    "training.nanogpt",
    "training.nanotron",
    "training.mllog",
    "training.tensorboard",
    "training.nvrx",
    "training.resiliency",
    "training.slurm_sacct",
    "device.compiled",
    "training.pipeline_trace",
    "serving.aiperf",
    "serving.guidellm",
    "serving.inference_perf",
    "serving.inferencex",
    "serving.jetstream",
    "serving.llm_d",
    "serving.llmperf",
    "serving.maxtext_inference",
    "serving.mlperf_inference",
    "serving.vllm_bench",
    "serving.vllm_log",
    "serving.vllm_requests",
    "serving.sglang_bench",
    "serving.sglang_log",
    "serving.otel_spans",
    "device.dcgm",
    "device.nvidia_smi",
    "serving.prometheus",
    "serving.prometheus_json",
    "device.tpu_info",
    "device.cloud_monitoring",
    "serving.request_trace",
    "own.sidecar",
    "training.job_log",  # last: any log that nothing else knows
)

# names of those that read what jobs and servers print, line by line, and of the one that reads any other log
TEXT_LOGS = (
    "maxtext",
    "megatron",
    "torchtitan",
    "llm_c",
    "deepspeed",
    "hf_trainer",
    "dllogger",
    "verl",
    "nanogpt",
    "nanotron",
    "mllog",
    "vllm_log",
    "sglang_log",
    "nvrx",
)
ANY_LOG = "job_log"

if TYPE_CHECKING:
    COLLECTORS: tuple[ModuleType, ...]


def each(places: Iterable[str] = PLACES) -> Iterator[ModuleType]:
    """The modules at these places, one after the other."""
    return (import_module(f"{__name__}.{place}") for place in places)


def collector(name: str) -> ModuleType:
    """The collector of this NAME: that of its module, in which a dash is written as an underscore. Raises KeyError
    where there is none."""
    module = name.replace("-", "_")
    for place in PLACES:
        if place.rpartition(".")[2] == module:
            return next(each([place]))
    raise KeyError(name)


def __getattr__(name: str) -> tuple[ModuleType, ...]:
    """`COLLECTORS`: all of them, each imported."""
    if name != "COLLECTORS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = tuple(each())
    return found
