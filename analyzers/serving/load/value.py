"""What a load is worth: speed per user against throughput per chip, dollars against latency, and how near the roofline.

    tokens/s/chip   output tokens per second / chips         tokens/s/user   1 / mean TPOT
    $/M tokens      chips x $/chip-hour / 3600 / (output tokens per second) x 1,000,000
    roofline        the least time of a decode step with the requests that generate, by their mean TPOT:
                    cache read / bandwidth + max(weights read / bandwidth, 2 x tokens x weights used / peak FLOP/s)
                    of one copy of the weights: its part of these requests, on the chips that share it
    that generate   answered per second x time from first to last token (Little's law), at least one in a step: what
                    waits for its first token is in flight, and in no decode step

A load is on the Pareto front if no other is at least as good in both ways and better in one.
"""

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.flops.formats import PRECISIONS, format_said
from analyzers.serving.kv_cache.setting import KV_FACTS, cache_precision_of, first_fact, spread, weights_of
from analyzers.subject import chip_of, known_model
from catalog import inference
from catalog.formats import FLOATS, kept
from catalog.models import parameters
from errors import QuestionError
from errors import format as fmt

CAP = "most in flight that the tool allowed"
LITTLE = 0.05  # a difference by less is rounding, ramp and drain


def add_value(table: pd.DataFrame, chips: float | None, usd_per_chip_hour: float | None) -> None:
    """Add tokens_per_s_per_chip, tokens_per_s_per_user, usd_per_m_output_tokens, usd_per_m_tokens, and the fronts."""
    good = ~table["failed_load"]
    table["tokens_per_s_per_user"] = (1 / table["tpot_mean_s"].where(table["tpot_mean_s"] > 0)).where(good)
    table["tokens_per_s_per_chip"] = table["output_tokens_per_s"] / chips if chips else np.nan
    per_s = chips * usd_per_chip_hour / 3600 if chips and usd_per_chip_hour is not None else np.nan
    for key, rate in (("usd_per_m_output_tokens", "output_tokens_per_s"), ("usd_per_m_tokens", "total_tokens_per_s")):
        table[key] = per_s / table[rate].where(table[rate] > 0) * 1e6
    speed = -table["output_tokens_per_s"], -table["tokens_per_s_per_user"]
    table["pareto"] = front(*(s.to_numpy(dtype=float) for s in speed))
    late = table["ttft_p99_s" if table["ttft_p99_s"].notna().any() else "e2e_p99_s"]
    table["pareto_cost"] = front(-table["output_tokens_per_s"].to_numpy(dtype=float), late.to_numpy(dtype=float))


def front(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which points no other one dominates, where less is better in both; those with an unknown value never count."""
    known = np.flatnonzero(~(np.isnan(a) | np.isnan(b)))
    order = known[np.lexsort((b[known], a[known]))]
    on = np.zeros(len(a), dtype=bool)
    best, last = np.inf, None
    for i in order:
        if b[i] < best:
            on[i], best, last = True, b[i], i
        elif last is not None and a[i] == a[last] and b[i] == b[last]:
            on[i] = True
    return on


def add_roofline(table: pd.DataFrame, facts: Facts, chips: float | None, notes: list[str]) -> None:
    """Add `step_roof_s` and `roofline_share` (least time / mean TPOT), and say on what they rest.

    Nothing is added where model, chip or chips are not known.

    Not told where tokens are drafted: a step then brings several tokens, and TPOT is no step.
    """
    table["step_roof_s"] = table["roofline_share"] = np.nan
    model = known_model(facts, notes)
    chip = chip_of(facts)
    drafted = table["acceptance_length"].notna().any()
    if model is None or chip is None or not chips or drafted or not (speed := chip.value("hbm_bytes_per_s")):
        return
    word = weights_of(facts) or format_said(facts) or model.published.format
    held = kept(model, word)
    size, computed = held.bytes["embedding"], held.bulk
    cached = cache_precision_of(first_fact(facts, KV_FACTS)) or (word if word in FLOATS else "bf16")
    copies = _copies(facts, chips)
    each = chips / copies
    bandwidth = each * float(speed)
    peak = chip.value(PRECISIONS.get(computed, PRECISIONS["bf16"])) or chip.value("bf16_flops_per_s")
    used = parameters(model).active_matmul
    table_bytes = 0.0 if model.tied_embeddings else parameters(model).embedding * size
    for i, row in table.iterrows():
        batch = np.maximum(generating(row) / copies, 1.0)
        if not batch > 0 or not row["tpot_mean_s"] > 0 or np.isnan(row["prompt_tokens_mean"]):
            continue
        context = row["prompt_tokens_mean"] + row["output_tokens_mean"] / 2
        cache = batch * inference.kv_bytes(model, context, cached) / bandwidth
        weights = (inference.weights_read_bytes(model, batch, word) + table_bytes) / bandwidth
        compute = 2 * batch * used / (each * float(peak)) if peak else 0.0
        least = cache + max(weights, compute)
        table.loc[i, ["step_roof_s", "roofline_share"]] = least, least / row["tpot_mean_s"]
    once = f"all weights once in each of {copies:,} copies" if copies > 1 else "all weights once"
    notes.append(
        f"Roofline of a decode step: {model.name} in {word} on {chips:g} {chip.name}, {once} (of experts those that a "
        "token visits), the cache of the requests that generate (in flight, without those that wait for their first "
        "token) at prompt + half the answer."
    )


def _copies(facts: Facts, chips: float) -> int:
    """How many copies of the weights the chips hold, each of which reads them at every step: data parallelism, and
    servers side by side. One where nothing tells, or experts are dealt out over all of them."""
    if str(fact(facts, "enable_expert_parallel")).lower() in ("true", "1"):
        return 1
    held, tensor, stages = spread(facts, {"chips": int(chips), "tensor": None, "pipeline": None}, [])
    return max(held // (tensor * stages), 1)


def generating(row: pd.Series) -> float:
    """Sequences of a decode step of a load, on average; NaN where nothing tells how long answers took to generate."""
    took = row["e2e_mean_s"] - row["ttft_mean_s"]
    if np.isnan(took):
        took = (row["output_tokens_mean"] - 1) * row["tpot_mean_s"]
    found = row["request_rate_per_s"] * took
    return max(found, 1.0) if found > 0 else float("nan")


def little(table: pd.DataFrame, engine_level: float | None) -> list[str]:
    """Add `little_from`, `in_flight_measured`, `little_difference`: Little's law against a count that is not derived
    from it. The sentences name loads where the two differ by over 5 %; most that a tool allowed is no count of what
    was in flight, and contradicts only what lies above it.

    `engine_level`: mean of running + waiting by the engine's own samples, where the run is one load.
    """
    source = np.full(len(table), None, dtype=object)
    measured = np.full(len(table), np.nan)
    capped = table["max_concurrency"].notna() & ~np.isfinite(table["requested_rate_per_s"])
    single = pd.Series(engine_level if len(table) == 1 else None, table.index, dtype=float)
    for name, values in (
        (CAP, table["max_concurrency"].where(capped)),
        ("engine's running and waiting", single),
        ("concurrency that the tool printed", table["concurrency_printed"]),
    ):
        there = values.notna().to_numpy()
        measured[there], source[there] = values[there], name
    table["in_flight_measured"] = measured
    table["little_from"] = source
    table["little_difference"] = table["in_flight"] / table["in_flight_measured"] - 1
    below = (table["little_from"] == CAP) & (table["little_difference"] < 0)
    odd = table[(table["little_difference"].abs() > LITTLE) & ~below]
    return [
        f"Little's law does not hold for {row['stage']}: rate x latency gives {fmt.at_most(row['in_flight'], 4)} "
        f"requests in flight, the {row['little_from']} {fmt.at_most(row['in_flight_measured'], 4)} "
        f"({row['little_difference']:+.0%})."
        for _, row in odd.head(5).iterrows()
    ]


def price_of(facts: Facts, asked: float | None) -> float | None:
    """Dollars per chip-hour. Raises QuestionError for one that cannot be."""
    price = fact(facts, "usd_per_chip_hour") if asked is None else asked
    if price is not None and not (np.isfinite(price) and price >= 0):
        raise QuestionError(f"usd_per_chip_hour={price}", expected="a price of 0 dollars or more")
    return None if price is None else float(price)
