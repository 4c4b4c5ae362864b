"""What samples tell of the power of each chip: watts, joules counted, limits, clocks, heat, and what held clocks down.

Monitors name them each in its own way: NVIDIA's DCGM exporter, `nvidia-smi` and Nsight Systems (`GPU 0 power`), W&B
(`gpu.0.powerWatts`), MLflow (`system/gpu_0_power_usage_watts`). Of several monitors of one run that which tells of the
most chips counts alone: each may call a chip's host otherwise.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from analyzers.device.counters import hosts_of, split
from analyzers.time.history import natural_key
from errors import format as fmt
from runs.tables import Tables, frame

POWER, INSTANT, ENERGY, LIMIT, SET_LIMIT, OF_LIMIT = "power", "instant", "energy", "limit", "set_limit", "of_limit"
_DRAWN = (POWER, INSTANT, ENERGY, OF_LIMIT)  # each tells alone how much a chip drew
CLOCK, HEAT = "clock", "heat"
FLAG, COUNTER = "flag ", "counter "  # before what holds clocks down: whether it does, in %; how long it did, s
MOST_CHIPS = 20_000
_DEVICE = re.compile(r"GPU (\d{1,5}) (.+)", re.DOTALL)
_NAMES = {
    "power": POWER,
    "Power": POWER,
    "power of the instant": INSTANT,
    "energy since the driver was loaded": ENERGY,
    "power limit in force": LIMIT,
    "power limit": SET_LIMIT,
    "power of its limit": OF_LIMIT,
    "SM clock": CLOCK,
    "temperature": HEAT,
    "Temperature": HEAT,
}
_WANDB = re.compile(r"gpu\.(\d{1,5})\.(\w{1,40})", re.ASCII)
_WANDB_NAMES = {"powerWatts": POWER, "enforcedPowerLimitWatts": LIMIT, "smClock": CLOCK, "temp": HEAT}
_OTHERS = ("gpu", "memory", "memoryAllocated", "powerPercent")  # W&B's names of what GPUs of other jobs do
_MLFLOW = re.compile(r"system/(?:(.+)/)?gpu_(\d{1,5})_power_usage_(watts|percentage)", re.DOTALL)


class Named(NamedTuple):
    """What a name tells: the monitor, the chip (host: None where the name has none), and what of it."""

    monitor: str
    host: str | None
    device: int
    what: str


class Series(NamedTuple):
    """Samples in order of time, one at a time."""

    at: np.ndarray
    value: np.ndarray


NO_SERIES = Series(np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True)
class Sampled:
    """What was sampled of a chip. `host`: None where nothing tells it."""

    host: str | None
    device: int
    series: dict[str, Series] = field(default_factory=dict)

    def of(self, what: str) -> Series:
        return self.series.get(what, NO_SERIES)

    @property
    def power(self) -> Series:
        """Its watts: the mean that the driver tells, else those of the instant, else a share of the limit in force."""
        told = next((s for what in (POWER, INSTANT) if len((s := self.of(what)).at)), NO_SERIES)
        share, limit = self.of(OF_LIMIT), self.limit_watts
        return Series(share.at, share.value / 100 * limit) if not len(told.at) and limit is not None else told

    @property
    def limit_watts(self) -> float | None:
        """The limit that was in force last, as its samples tell."""
        told = next((s for what in (LIMIT, SET_LIMIT) if len((s := self.of(what)).at)), NO_SERIES)
        above = told.value[told.value > 0]
        return float(above[-1]) if len(above) else None


@lru_cache(maxsize=65536)
def named(name: str) -> Named | None:
    bare, about = split(name)
    if found := _DEVICE.fullmatch(bare):
        what = _NAMES.get(found[2]) or _held_down(found[2])
        monitor = "W&B" if what == OF_LIMIT else "samples"
        return Named(monitor, about.get("host"), int(found[1]), what) if what and "mig" not in about else None
    if (found := _WANDB.fullmatch(name)) and found[2] in _WANDB_NAMES:
        return Named("W&B", None, int(found[1]), _WANDB_NAMES[found[2]])
    if found := _MLFLOW.fullmatch(name):
        what = POWER if found[3] == "watts" else OF_LIMIT
        return Named("MLflow", found[1], int(found[2]), what)
    return None


def _held_down(text: str) -> str | None:
    for begin, kind in (("time slowed down by ", COUNTER), ("slowed down by ", FLAG)):
        if text.startswith(begin):
            return kind + text.removeprefix(begin)
    return None


def sampled(tables: Tables) -> tuple[list[Sampled], list[str]]:
    """Each chip of which power or energy was sampled, by host and device, and what was left out."""
    rows = _rows(tables)
    drawn = rows[rows["what"].isin(_DRAWN)] if len(rows) else rows
    if not len(drawn):
        return [], []
    monitors = drawn.groupby("monitor")[["host", "device"]].apply(lambda g: len(g.drop_duplicates()))
    first = str(monitors.sort_values(ascending=False, kind="stable").index[0])
    notes = []
    if len(monitors) > 1:
        others = ", ".join(sorted(str(m) for m in monitors.index if m != first))
        notes.append(f"{first} and {others} tell of power: {first} of {_chips(monitors[first])}, which alone count.")
    found = [_chip(key, some) for key, some in rows[rows["monitor"] == first].groupby(["host", "device"], sort=False)]
    told = [one for one in found if one is not None]
    if len(told) > MOST_CHIPS:
        notes.append(f"Of {fmt.count(len(told), 'chip')} the first {MOST_CHIPS:,} are told.")
    told.sort(key=lambda one: (natural_key(one.host or ""), one.device))
    return told[:MOST_CHIPS], notes


def _chips(count: int) -> str:
    return fmt.count(int(count), "chip")


def told_at_all(tables: Tables) -> bool:
    """Whether anything tells of power, with or without a time."""
    names = tables.arrow("scalars", ["name"])["name"].unique().to_pylist()
    found = (named(str(name)) for name in names if name is not None)
    return any(one is not None and one.what in _DRAWN for one in found)


def _rows(tables: Tables) -> pd.DataFrame:
    """Samples with a time: monitor, host, device, what, ts_ns, value."""
    names = [str(n) for n in tables.arrow("scalars", ["name"])["name"].unique().to_pylist() if n is not None]
    wanted = [name for name in names if named(name)]
    if not any(one.what in _DRAWN for one in map(_named, wanted)):
        return pd.DataFrame()
    told = frame(tables, "scalars", ["ts_ns", "name", "value", "source"], [("name", "in", wanted)])
    told = told.dropna(subset=["ts_ns", "name", "value"])
    told = told[np.isfinite(told["value"].to_numpy(dtype=float)) & (told["value"] >= 0)]
    if not len(told):
        return pd.DataFrame()
    others = _of_others(names, told["source"].astype(object).unique().tolist())
    text = told["name"].astype(object)
    known = {name: _named(str(name)) for name in text.unique()}
    of_name = text.map({name: one.host for name, one in known.items()})
    rows = pd.DataFrame(
        {
            "monitor": text.map({name: one.monitor for name, one in known.items()}),
            "host": of_name.where(of_name.notna(), hosts_of(tables, told).astype(object)),
            "device": text.map({name: one.device for name, one in known.items()}),
            "what": text.map({name: one.what for name, one in known.items()}),
            "ts_ns": told["ts_ns"].to_numpy(dtype=np.int64),
            "value": told["value"].to_numpy(dtype=float),
        }
    )
    return rows[~((rows["monitor"] == "W&B") & rows["device"].isin(others))]


def _named(name: str) -> Named:
    found = named(name)
    if found is None:
        raise ValueError(f"no name of power: {name!r}")
    return found


def _of_others(names: list[str], sources: list[object]) -> set[int]:
    """GPUs of a machine that W&B says other jobs are on, of a run of one process."""
    if len(sources) > 1:
        return set()
    found = (_WANDB.fullmatch(name) for name in names)
    return {int(m[1]) for m in found if m and m[2] in _OTHERS}


def _chip(key: object, rows: pd.DataFrame) -> Sampled | None:
    host, device = key if isinstance(key, tuple) else ("", 0)
    series = dict(_series(rows))
    if not any(what in series for what in _DRAWN):
        return None
    return Sampled(str(host) or None, int(device), series)


def _series(rows: pd.DataFrame) -> Iterator[tuple[str, Series]]:
    for what, some in rows.groupby("what", sort=False):
        at, value = some["ts_ns"].to_numpy(dtype=np.int64), some["value"].to_numpy(dtype=float)
        order = np.argsort(at, kind="stable")
        at, value = at[order], value[order]
        last = np.append(at[1:] != at[:-1], True)  # of several at one time the last
        yield str(what), Series(at[last], value[last])
