"""What found prefixes save: prompt tokens and FLOPs that need no computing, and the first token that comes sooner."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from analyzers.serving.served import has_requests, served
from catalog.inference import output_flops, prompt_token_flops
from catalog.models import Model
from runs.tables import Tables

GROUPS = (("nothing found", 0.0, 0.0), ("less than half", 0.0, 0.5), ("half or more", 0.5, 1.0))


def prefill_flops(model: Model, prompt: np.ndarray, cached: np.ndarray) -> np.ndarray:
    """FLOPs to read each prompt whose first `cached` tokens need no computing: matrices, attention, one output.

    Attention is the sum over computed positions p of 4 H d min(p, W), as in `catalog.inference`.
    """
    prompt, cached = np.asarray(prompt, dtype=float), np.asarray(cached, dtype=float)
    total = prompt_token_flops(model) * (prompt - cached) + output_flops(model)
    for a, layers in Counter(model.attention).items():
        window = np.inf if a.span == "full" or a.window_tokens is None else float(a.window_tokens)
        seen = _positions(prompt, window) - _positions(cached, window)
        total += layers * 2.0 * a.heads * (a.head_dim + a.value_head_dim) * seen
    return total


def _positions(last: np.ndarray, window: float) -> np.ndarray:
    """Sum over positions 1 to `last` of min(position, window)."""
    near = np.minimum(last, window)
    beyond = np.maximum(last - window, 0.0)
    return near * (near + 1) / 2 + (beyond * window if np.isfinite(window) else 0.0)


def saved(model: Model | None, prompt: np.ndarray, cached: np.ndarray, flops_per_s: float | None) -> dict[str, Any]:
    """`token_share`, and with a model `flops`, `flops_share`, `chip_seconds` at peak (None where no peak is known).

    An engine computes at least the last token of a prompt, whatever it finds, so that much is never saved.
    """
    cached = np.clip(np.minimum(cached, prompt - 1), 0, None)
    found = {
        "token_share": float(cached.sum() / prompt.sum()) if prompt.sum() else None,
        "flops": None,
        "flops_share": None,
        "chip_seconds": None,
    }
    if model is None or not len(prompt):
        return found
    whole = float(prefill_flops(model, prompt, np.zeros(len(prompt))).sum())
    less = whole - float(prefill_flops(model, prompt, cached).sum())
    return found | {
        "flops": less,
        "flops_share": less / whole,
        "chip_seconds": less / flops_per_s if flops_per_s else None,
    }


def first_tokens(tables: Tables) -> pd.DataFrame:
    """Median time to first token by how much of the prompt was found: found, requests, ttft_s, prompt_tokens.

    Empty where requests do not tell both. Prompts of the groups may differ in length: the column says by how much.
    """
    columns = ["found", "requests", "ttft_s", "prompt_tokens"]
    if not has_requests(tables):
        return pd.DataFrame(columns=columns)
    rows = served(tables).timed.dropna(subset=["cached_tokens", "prompt_tokens", "ttft_s"])
    rows = rows[rows["prompt_tokens"] > 0]
    part = (rows["cached_tokens"] / rows["prompt_tokens"]).to_numpy(dtype=float)
    made = []
    for name, low, high in GROUPS:
        mine = rows[part == 0 if high == 0 else (part > 0) & (part < high) if low == 0 else part >= low]
        if len(mine):
            made.append((name, len(mine), float(mine["ttft_s"].median()), float(mine["prompt_tokens"].median())))
    return pd.DataFrame(made if len(made) > 1 else [], columns=columns)
