"""Which framework a run was of, from who wrote its files: cures are told in its own flags and calls."""

from analyzers.base import fact
from runs.run import Run

BY_COLLECTOR: dict[str, tuple[str, ...]] = {
    "maxtext": ("maxtext", "jax"),
    "maxtext_metrics": ("maxtext", "jax"),
    "maxtext-inference": ("maxtext", "jax"),
    "jetstream": ("jax",),
    "megatron": ("megatron", "pytorch"),
    "torchtitan": ("pytorch",),
    "deepspeed": ("pytorch",),
    "hf_trainer": ("pytorch",),
    "trainer_state": ("pytorch",),
    "verl": ("pytorch",),
    "nanogpt": ("pytorch",),
    "nanotron": ("pytorch",),
    "nvrx": ("pytorch",),
    "kineto": ("pytorch",),
    "chakra": ("pytorch",),
    "vllm_bench": ("vllm",),
    "vllm_log": ("vllm",),
    "vllm_requests": ("vllm",),
    "sglang_bench": ("sglang",),
    "sglang_log": ("sglang",),
    "xplane": ("jax",),
    "viewer": ("jax",),
    "compiled": ("jax",),
}
"""By collector, the nearest first: what tells most of a job (its own log) before what many frameworks write."""

BY_ENGINE = {"vllm": "vllm", "sglang": "sglang", "tensorrt_llm": "trtllm"}
"""By the engine that a scrape or a trace names, whoever wrote it."""

ON_CPU = "pytorch_cpu"  # PyTorch whose operators the CPU executes itself


def frameworks_of(run: Run) -> tuple[str, ...]:
    """Frameworks of a run, the nearest first; none where its files tell of none."""
    read = {str(source.get("collector")) for source in run.manifest.sources}
    found = dict.fromkeys(f for name, known in BY_COLLECTOR.items() if name in read for f in known)
    if "kineto" in read and not run.tables.rows("launches") and not _named_devices(run):
        return (ON_CPU, *found)
    engine = BY_ENGINE.get(str(fact(run.manifest.facts, "engine")))
    return tuple(dict.fromkeys((*found, *((engine,) if engine else ()))))


def _named_devices(run: Run) -> bool:
    """Whether a trace names a device: a CPU that stands in for one has no name."""
    return run.tables.arrow("captures", ["device_type"])["device_type"].null_count < run.tables.rows("captures")
