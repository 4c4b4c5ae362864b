"""Heads of columns in words: what a key of a table is called by a person."""

UNITS = (  # endings of keys that say a unit and no more: the head says it in brackets
    "_bytes_per_s",
    "_flops_per_s",
    "_seconds",
    "_per_s",
    "_share",
    "_bytes",
    "_usd",
    "_ms",
    "_us",
    "_ns",
    "_s",
)
WHOLE = {  # keys, without the ending of a unit, whose words do not follow from their parts
    "algbw": "Algorithm bandwidth",
    "arrival": "Arrived after",
    "at_roof": "Time at the roof",
    "above": "Time beyond the roof",
    "back": "Back at",
    "back_s": "Until it was back",
    "bound": "Bound by",
    "bound_s": "Least by the links",
    "busbw": "Bus bandwidth",
    "bytes": "Size",
    "bytes_per_s": "Memory traffic",
    "clock_else_mhz": "Clock else (MHz)",
    "clock_mhz": "Clock (MHz)",
    "cv": "CV of gaps",
    "chip_hours": "Chip-hours",
    "dt": "Interval",
    "dtype": "Number format",
    "dur": "Duration",
    "e2e": "Whole request",
    "efficiency_optimistic": "Efficiency at best",
    "e2e_mean": "Whole request, mean",
    "e2e_p99": "Whole request, 99th percentile",
    "energy_j": "Energy (J)",
    "flops": "FLOPs",
    "flops_per_byte": "FLOPs per byte",
    "flops_per_s": "Rate",
    "highest_celsius": "Highest °C",
    "id": "ID",
    "idle_j": "Drawn idle (J)",
    "implausible": "Why it cannot be true",
    "itl": "Between tokens",
    "k": "k",
    "kind": "Kind",
    "m": "m",
    "mean_celsius": "Mean °C",
    "n": "n",
    "op_name": "Framework's name",
    "ops": "Operations",
    "min": "Least",
    "out_of": "Missing",
    "padded_flops_optimistic": "Padded FLOPs at best",
    "p99": "99th percentile",
    "remat": "Recomputed",
    "roof": "Time at the roof",
    "roof_share": "Of the roof",
    "self": "Own time",
    "seconds": "Time",
    "share": "Share",
    "t": "At",
    "tflops_per_s_per_chip": "TFLOP/s per chip",
    "told": "Told",
    "tokens_per_s": "Tokens/s",
    "tokens_per_s_per_chip": "Tokens/s per chip",
    "tokens_per_s_per_user": "Tokens/s per user",
    "output_tokens_per_s": "Output tokens/s",
    "prompt_tokens_per_s": "Prompt tokens/s",
    "tpot": "Time per output token",
    "tpot_mean": "Time per output token, mean",
    "tpot_p99": "Time per output token, 99th percentile",
    "ts": "At",
    "ttft": "Time to first token",
    "ttft_mean": "Time to first token, mean",
    "ttft_p50": "Time to first token, median",
    "ttft_p99": "Time to first token, 99th percentile",
    "usd": "Cost",
    "x": "x",
}
PARTS = {  # single words of a key
    "all": "all",
    "chip": "chip",
    "cpu": "CPU",
    "cv": "CV",
    "dur": "duration",
    "e2e": "whole request",
    "emfu": "EMFU",
    "flops": "FLOPs",
    "gpu": "GPU",
    "hbm": "HBM",
    "hfu": "HFU",
    "id": "ID",
    "itl": "between tokens",
    "kv": "KV cache",
    "mfu": "MFU",
    "mean": "mean",
    "op": "operation",
    "ops": "operations",
    "p50": "median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "slo": "SLO",
    "tflops": "TFLOPs",
    "tpot": "time per output token",
    "ttft": "time to first token",
    "usd": "$",
}


def is_words(key: str) -> bool:
    """Whether a page already wrote the head in words."""
    return not key or " " in key or not key.isascii() or key != key.lower()


def head(key: str, unit: str = "") -> str:
    """`fetch_s` in ms: `Fetch (ms)`. What a page already wrote in words stays as it is."""
    if is_words(key):
        return key
    base = key if key in WHOLE else next((key[: -len(u)] for u in UNITS if key.endswith(u) and key != u[1:]), key)
    words = WHOLE.get(base) or _sentence([PARTS.get(part, part) for part in base.split("_") if part])
    if unit.endswith("FLOPs") and "FLOPs" in words:
        return words.replace("FLOPs", unit)
    return f"{words} ({unit})" if unit else words


def _sentence(parts: list[str]) -> str:
    text = " ".join(parts)
    return text[:1].upper() + text[1:] if text[:1].islower() else text
