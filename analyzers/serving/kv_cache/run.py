"""What a served run tells of its cache: the room that the engine found, how full it was, and the pages' rounding."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.device.memory_run import rows_of
from analyzers.serving.kv_cache.room import Room
from analyzers.serving.kv_cache.setting import whole_fact
from analyzers.serving.loads_told_twice import without
from analyzers.serving.recorded import recorded
from analyzers.serving.servers import samples_of_servers
from runs.tables import Tables, frame


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the run says; None where it does not.

    `engine_tokens`: tokens that one engine found room for; `available_bytes`: memory that it gave to caches, and
    `loaded_bytes` to weights, of one chip. `samples`: ts_ns, order, replica, kv_usage, running, waiting, in order.
    `peak_usage`: the fullest sample, 0 to 1. `device_peak_bytes`, `device_limit_bytes`: of the fullest device, where
    its memory was sampled.
    """

    engine_tokens: int | None
    available_bytes: float | None
    samples: pd.DataFrame
    peak_usage: float | None
    device_peak_bytes: int | None
    device_limit_bytes: int | None
    preemptions: int | None
    loaded_bytes: float | None = None

    @property
    def any(self) -> bool:
        told = (self.engine_tokens, self.available_bytes, self.peak_usage)  # what a device held tells of no cache
        return any(v is not None for v in told)

    def to_dict(self) -> dict[str, Any]:
        return {
            "engine_tokens": self.engine_tokens,
            "available_bytes": self.available_bytes,
            "peak_usage": self.peak_usage,
            "device_peak_bytes": self.device_peak_bytes,
            "device_limit_bytes": self.device_limit_bytes,
            "preemptions": self.preemptions,
            "weights_loaded_bytes": self.loaded_bytes,
        }


def measured(tables: Tables, facts: Facts) -> Measured:
    """What the engine printed, sampled and held."""
    samples = _samples(tables)
    usage = samples["kv_usage"].dropna()
    fullest = pd.concat([rows_of(tables, (k,), ["bytes"]) for k in ("bytes_in_use", "bytes_limit")])
    held = fullest.groupby("kind")["bytes"].max()
    return Measured(
        engine_tokens=whole_fact(facts, ("kv_cache_tokens",)),
        available_bytes=_positive(facts, "kv_available_bytes"),
        loaded_bytes=_positive(facts, "weights_loaded_bytes"),
        samples=samples,
        peak_usage=float(usage.max()) if len(usage) else None,
        device_peak_bytes=_whole(held.get("bytes_in_use")),
        device_limit_bytes=_whole(held.get("bytes_limit")),
        preemptions=_preemptions(tables),
    )


def _samples(tables: Tables) -> pd.DataFrame:
    """Fullness over time: of the engine's own samples, or of its iterations where it wrote those."""
    columns = ["order", "replica", "kv_usage", "running", "waiting"]
    rows = recorded(tables, columns)[0][[*columns, "start_ns"]].rename(columns={"start_ns": "ts_ns"})
    if not rows["kv_usage"].notna().any():
        rows, _ = samples_of_servers(tables, [*columns, "ts_ns"])
    good = rows["kv_usage"].between(0, 1).fillna(False)  # a share outside cannot be, and is left out
    return rows[good.astype(bool)].sort_values(["ts_ns", "order"], kind="stable", ignore_index=True)


def _preemptions(tables: Tables) -> int | None:
    preempted = recorded(tables, ["preempted"])[0]["preempted"].dropna()
    if len(preempted):
        return int(preempted.sum())
    rows = without(tables, frame(tables, "requests", ["stage", "preemptions"]), ["preemptions"])
    times = rows["preemptions"].dropna()
    return int(times.sum()) if len(times) else None


def _positive(facts: Facts, name: str) -> float | None:
    said = fact(facts, name)
    return float(said) if isinstance(said, int | float) and said > 0 else None


def _whole(value: Any) -> int | None:
    return None if value is None or pd.isna(value) else int(value)


def rounding(lengths: np.ndarray, page: int) -> float | None:
    """Share of pages' tokens that only fill up the last page of each finished request; None where none is known."""
    if not len(lengths):
        return None
    return float(1 - lengths.sum() / (-(-lengths // page) * page).sum())


def compared(found: Room | None, run: Measured, token_bytes: float | None = None) -> dict[str, Any] | None:
    """The arithmetic beside what the engine found, of one engine; None where one of them is missing. `token_bytes`: of
    each of the tokens that the engine counts, on one chip; None: of those of a sequence as long as asked.

    `difference`: arithmetic over engine, less one. `implied_bytes`: memory of a chip that would explain it.
    """
    if found is None or run.engine_tokens is None:
        return None
    lanes = found.setting.tensor if found.setting.attention == "data" else 1
    per_token = token_bytes or found.sequence_bytes / found.setting.seq
    tokens = max(int(found.free_bytes / per_token * lanes + 1e-6), 0)
    return {
        "engine_tokens": run.engine_tokens,
        "arithmetic_tokens": tokens,
        "difference": tokens / run.engine_tokens - 1,
        "implied_bytes": (tokens - run.engine_tokens) / lanes * per_token,
        "available_bytes": run.available_bytes,
        "arithmetic_bytes": found.free_bytes,
        "weights_loaded_bytes": run.loaded_bytes,
        "arithmetic_weights_bytes": found.chip_weights_bytes,
    }
