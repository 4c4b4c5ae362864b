"""Prompt tokens that an engine read: those that it computed. What its prefix cache held is not read again.

Lines of SGLang's log, iterations and what vLLM counts by source tell them so. The counters of prompt tokens at /metrics
(of vLLM and SGLang) are of whole prompts: what was found in the cache is taken off, where it is counted. vLLM's log
prints a rate of whole prompts up to version 0.15, and of what was computed since.
"""

import re

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact

COMPUTED_SINCE = (0, 16)  # the version of vLLM
NOT_TOLD = (
    "Prompt tokens are those of whole prompts: how many of them were found in a prefix cache, and not read, "
    "{who} does not tell."
)
PRINTED = (
    "Prompt tokens are those of whole prompts, those found in the prefix cache too: {who} prints no other rate{how}."
)
_VERSION = re.compile(r"(\d+)\.(\d+)")


def read_tokens(rows: pd.DataFrame) -> np.ndarray:
    """Prompt tokens that each sample of one server computed, NaN where unknown; in order of time. Columns: as of
    `servers.samples_of_servers`.

    What was found is counted when a request begins, its prompt when it was read: a sample may have found more than it
    read, and the next ones less.
    """
    whole, computed = _grown(rows, "prompt_tokens"), _grown(rows, "computed_tokens")
    if not _taken_off(rows):
        return np.where(np.isnan(computed), whole, computed)
    found = np.where(rows["log"], 0.0, np.nan_to_num(_grown(rows, "prefix_hits")))
    left = np.cumsum(np.where(np.isnan(computed), np.nan_to_num(whole) - found, 0.0))
    read = np.diff(np.maximum.accumulate(np.concatenate(([0.0], left))))
    return np.where(~np.isnan(computed), computed, np.where(np.isnan(whole), np.nan, read))


def read_in_all(rows: pd.DataFrame) -> int | None:
    """Prompt tokens that all servers computed; where each was sampled once, since they began. None where not told."""
    rows = rows[rows["prompt_tokens"].notna() | rows["computed_tokens"].notna()]
    if not len(rows):
        return None
    if rows[["prompt_tokens_grown", "computed_tokens_grown"]].isna().all(axis=None):
        since = {c: rows[c].fillna(0) for c in ("prompt_tokens", "prefix_hits")}
        left = (since["prompt_tokens"] - since["prefix_hits"]).where(since["prefix_hits"] <= since["prompt_tokens"])
        return int(rows["computed_tokens"].fillna(left).fillna(since["prompt_tokens"]).sum())
    return int(sum(np.nansum(read_tokens(mine)) for _, mine in rows.groupby("replica", sort=False)))


def _grown(rows: pd.DataFrame, counter: str) -> np.ndarray:
    return rows[f"{counter}_grown"].to_numpy(dtype=float, na_value=np.nan)


def _taken_off(rows: pd.DataFrame) -> bool:
    """Whether these are scrapes that count what was found, and not more of it than was asked for."""
    if rows["log"].all():
        return False
    hits = _grown(rows, "prefix_hits")[~rows["log"].to_numpy(dtype=bool)]
    return bool((~np.isnan(hits)).any()) and float(np.nansum(hits)) <= float(np.nansum(_grown(rows, "prompt_tokens")))


def whole_prompts(rows: pd.DataFrame, facts: Facts | None) -> str | None:
    """What must be said of the prompt tokens of one server that are those of whole prompts."""
    if rows["computed_tokens_grown"].notna().any():
        return None
    rate = rows["prefix_hit_rate"].astype(float)
    if (rows["prompt_tokens_grown"] > 0).any():
        told = rows["log"].all() or _taken_off(rows) or (rate.notna().any() and not (rate > 0).any())
        return None if told else NOT_TOLD.format(who="/metrics")
    printed = (rows["prompt_tokens_per_s"] > 0).any() and (rate > 0).any()
    if not printed or facts is None or fact(facts, "engine") != "vllm":
        return None
    version = str(fact(facts, "engine_version") or "")
    match = _VERSION.match(version)
    if match is not None and (int(match[1]), int(match[2])) >= COMPUTED_SINCE:
        return None
    how = "" if match is not None else " up to version 0.15, and the log does not tell its version"
    return PRINTED.format(who=f"the log of vLLM {version}".rstrip(), how=how)
