"""The metrics of serving engines that become columns of `engine`, and how what one replica tells is put together."""

from dataclasses import dataclass, field

ENGINE: dict[str, tuple[str, ...]] = {  # metric, without `_total`: columns of `engine`
    "vllm:num_requests_running": ("running",),
    "vllm:num_requests_waiting": ("waiting",),
    "vllm:num_requests_swapped": ("swapped",),
    "vllm:kv_cache_usage_perc": ("kv_usage",),
    "vllm:gpu_cache_usage_perc": ("kv_usage",),
    "vllm:prefix_cache_queries": ("prefix_queries",),
    "vllm:prefix_cache_hits": ("prefix_hits",),
    "vllm:gpu_prefix_cache_queries": ("prefix_queries",),
    "vllm:gpu_prefix_cache_hits": ("prefix_hits",),
    "vllm:gpu_prefix_cache_hit_rate": ("prefix_hit_rate",),
    "vllm:prompt_tokens": ("prompt_tokens",),
    "vllm:prompt_tokens_by_source=local_compute": ("computed_tokens",),
    "vllm:generation_tokens": ("output_tokens",),
    "vllm:avg_prompt_throughput_toks_per_s": ("prompt_tokens_per_s",),
    "vllm:avg_generation_throughput_toks_per_s": ("output_tokens_per_s",),
    "vllm:num_preemptions": ("preemptions",),
    "vllm:spec_decode_num_drafts": ("drafts",),
    "vllm:spec_decode_num_draft_tokens": ("drafted",),
    "vllm:spec_decode_num_accepted_tokens": ("accepted",),
    "sglang:num_running_reqs": ("running",),
    "sglang:num_queue_reqs": ("waiting",),
    "sglang:token_usage": ("kv_usage",),
    "sglang:cache_hit_rate": ("prefix_hit_rate",),
    "vllm:external_prefix_cache_queries": ("external_queries",),
    "vllm:external_prefix_cache_hits": ("external_hits",),
    "vllm:cpu_prefix_cache_hit_rate": ("host_hit_rate",),
    "sglang:num_retracted_requests": ("preemptions",),
    "sglang:prompt_tokens": ("prompt_tokens", "prefix_queries"),
    "sglang:cached_tokens": ("prefix_hits",),
    "sglang:generation_tokens": ("output_tokens",),
    "sglang:gen_throughput": ("output_tokens_per_s",),
    "sglang:spec_accept_length": ("acceptance_length",),
    "tgi_batch_current_size": ("running",),
    "tgi_queue_size": ("waiting",),
    "jetstream_prefill_backlog_size": ("waiting",),
    "lmdeploy:num_requests_running": ("running",),
    "lmdeploy:num_requests_waiting": ("waiting",),
    "lmdeploy:gpu_cache_usage_perc": ("kv_usage",),
    "lmdeploy:prompt_tokens": ("prompt_tokens",),
    "lmdeploy:generation_tokens": ("output_tokens",),
    "llamacpp:requests_processing": ("running",),
    "llamacpp:requests_deferred": ("waiting",),
    "llamacpp:kv_cache_usage_ratio": ("kv_usage",),
    "llamacpp:prompt_tokens": ("prompt_tokens",),
    "llamacpp:tokens_predicted": ("output_tokens",),
    "trtllm_num_requests_running": ("running",),
    "trtllm_num_requests_waiting": ("waiting",),
    "trtllm_kv_cache_utilization": ("kv_usage",),
    "trtllm_kv_cache_hit_rate": ("prefix_hit_rate",),
    "trtllm_kv_cache_used_blocks": ("used_blocks",),
    "trtllm_kv_cache_max_blocks": ("most_blocks",),
    "trtllm_kv_cache_tokens_per_block": ("block_tokens",),
    "nv_trt_llm_request_metrics=max": ("seats",),
    "nv_trt_llm_request_metrics=scheduled": ("running",),
    "nv_trt_llm_request_metrics=waiting": ("waiting",),
    "nv_trt_llm_kv_cache_block_metrics=fraction": ("kv_usage",),
    "nv_trt_llm_kv_cache_block_metrics=used": ("used_blocks",),
    "nv_trt_llm_kv_cache_block_metrics=max": ("most_blocks",),
    "nv_trt_llm_kv_cache_block_metrics=tokens_per": ("block_tokens",),
}
KINDS = {
    "nv_trt_llm_request_metrics": "request_type",
    "nv_trt_llm_kv_cache_block_metrics": "kv_cache_block_type",
    "vllm:prompt_tokens_by_source": "source",
}
HELPERS = (
    "external_queries",
    "external_hits",
    "host_hit_rate",
    "used_blocks",
    "most_blocks",
    "block_tokens",
    "seats",
    "swapped",
)
SPLITS = {"priority", "is_streaming", "cache_source", "source", "reason"}
_ALL = ("", "total", "all")  # values of such a label in a series that tells of all
SHARES = {"kv_usage", "prefix_hit_rate", "host_hit_rate"}
REALS = {"prompt_tokens_per_s", "output_tokens_per_s", "acceptance_length"}
COLUMNS = tuple(dict.fromkeys(c for columns in ENGINE.values() for c in columns if c not in HELPERS))


def metric_of(name: str, labels: dict[str, str]) -> str:
    """The key of `ENGINE` that a series may be: its name, with its kind where one metric counts several things."""
    bare = name.removesuffix("_total")
    return f"{bare}={labels.get(KINDS[bare], '')}" if bare in KINDS else bare


@dataclass
class Row:
    """What one replica tells in one scrape: of each column the metric that told it first, and its parts by the values
    of the labels that split it."""

    cells: dict[str, tuple[str, dict[tuple[str, ...], float | int | None]]] = field(default_factory=dict)
    positions: dict[int, float] = field(default_factory=dict)

    def add(self, column: str, metric: str, part: tuple[str, ...], value: float | int | None) -> None:
        name, parts = self.cells.setdefault(column, (metric, {}))
        if name == metric:
            parts.setdefault(part, value)  # ranks of one replica tell the same: the first counts

    def whole(self) -> dict[str, float | int | None]:
        """One value a column: that of the series that tells of all, else the sum of the parts (of shares the first)."""
        return {column: _summed(column, parts) for column, (_, parts) in self.cells.items()}


def _summed(column: str, parts: dict[tuple[str, ...], float | int | None]) -> float | int | None:
    for part, value in parts.items():
        if all(label in _ALL for label in part):
            return value
    if column in SHARES or column == "acceptance_length":
        return next(iter(parts.values()))
    known = [value for value in parts.values() if value is not None]
    return sum(known) if len(known) == len(parts) else None


ENGINES = {
    "vllm:": "vllm",
    "sglang:": "sglang",
    "tgi_": "tgi",
    "trtllm_": "tensorrt_llm",
    "lmdeploy:": "lmdeploy",
    "llamacpp:": "llama.cpp",
}
"""Engines by how their metrics begin."""


def engine_of(name: str) -> str | None:
    """The engine that names a metric so; None where the name tells none."""
    return next((engine for begin, engine in ENGINES.items() if name.startswith(begin)), None)
