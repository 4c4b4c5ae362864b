"""What an SGLang server said of itself when it was asked (`server_info` of a `bench_serving` result): facts of the run.

One server states its arguments at the top; a router before two pools lists the servers of `prefill` and of `decode`.
The KV capacity is `max_total_num_tokens`, or `memory_usage.token_capacity` of `internal_states`; of several the least.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from collectors.reading.textlog import clean
from collectors.serving.serving_rows import count

_COUNTS = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size",
    "ep_size": "expert_parallel_size",
    "page_size": "page_size",
    "context_length": "context_length",
    "max_running_requests": "max_num_seqs",
    "max_prefill_tokens": "max_prefill_tokens",
}
_TEXTS = {
    "model_path": "model",
    "version": "engine_version",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_precision",
}


def server_facts(info: Any) -> dict[str, Any]:
    """Facts by name; of several servers those that all share, and how many prefill and decode; {} of nothing told."""
    if not isinstance(info, dict):
        return {}
    pools = {
        role: [s for s in told if isinstance(s, dict)]
        for role in ("prefill", "decode")
        if isinstance(told := info.get(role), list)
    }
    servers = [server for mine in pools.values() for server in mine] or [info]
    each = [dict(_facts(server)) for server in servers]
    said = {name: value for name, value in each[0].items() if all(other.get(name) == value for other in each)}
    said |= {f"{role}_workers": len(mine) for role, mine in pools.items() if mine}
    for role, mine in pools.items():
        tensors = {count(server.get("tp_size")) for server in mine}
        if len(tensors) == 1 and (tensor := tensors.pop()):
            said[f"{role}_tensor_parallel_size"] = tensor
    held = [_chips(server) for server in servers]
    chips = sum(n for n in held if n is not None)
    if said and None not in held and 0 < chips < 1 << 31:
        said["chips"] = chips
    capacity = [tokens for server in pools.get("decode") or servers if (tokens := _capacity(server))]
    if capacity:
        said["kv_cache_tokens"] = min(capacity)
    return said | ({"engine": "sglang"} if said else {})


def _facts(server: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, name in _TEXTS.items():
        if isinstance(value := server.get(key), str) and value and value != "auto":
            yield name, clean(value)[:300]
    for key, name in _COUNTS.items():
        if value := count(server.get(key)):
            yield name, value


def _chips(server: Mapping[str, Any]) -> int | None:
    """Chips of one server; None where data parallelism may share the tensor ranks or not."""
    tensor, data = count(server.get("tp_size")), count(server.get("dp_size")) or 1
    if not tensor or (data > 1 and not server.get("enable_dp_attention")):
        return None
    return tensor * (count(server.get("pp_size")) or 1)


def _capacity(server: Mapping[str, Any]) -> int | None:
    """Tokens that its cache holds, as the engine found."""
    if tokens := count(server.get("max_total_num_tokens")):
        return tokens
    states = server.get("internal_states")
    for state in states if isinstance(states, list) else []:
        if isinstance(state, dict):
            memory = state.get("memory_usage")
            held = count(memory.get("token_capacity")) if isinstance(memory, dict) else None
            if tokens := count(state.get("max_total_num_tokens")) or held:
                return tokens
    return None
