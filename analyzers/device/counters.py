"""What counters of devices told while they worked: how busy matrix units, memory and links were, by the hardware's own
count. It holds where FLOPs and bytes of operations are not known, as in profiles without shapes."""

import re
from typing import Any

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, spans, union
from analyzers.time.history import natural_key
from errors import format as fmt
from runs.tables import Tables, frame

_NAMED = re.compile(r"^GPU (?P<device>\d{1,9}) (?P<name>.+)$", re.DOTALL)
_ABOUT = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"', re.DOTALL)  # host, MIG instance and pods that a name tells
_OF_MOST = "%"  # the unit of what is a share of the most that is possible
MOST = 256  # counters that are told
MOST_TOGETHER = 6  # counters that are told of all devices together
MOST_SAID = 16  # devices with a sentence of their own: a machine's, or two's
FIRST = re.compile(r"tensor|matrix|\bSMs? (active|issue)|DRAM|HBM|NVLink", re.IGNORECASE)


def counters(tables: Tables) -> list[dict[str, Any]]:
    """Of each device of each host the counters that are shares of the most that is possible: mean and highest of their
    samples, inside the profiled steps of its host where any are known, else inside the steps that are dated. The order
    is by host and device, what tells of its units first. `host` is None where nothing tells whose the samples are.
    Samples of no time count where no step is known."""
    if not tables.rows("scalars"):
        return []
    told = frame(tables, "scalars", ["ts_ns", "name", "value", "source"], [("unit", "==", _OF_MOST)])
    told = told.dropna(subset=["name", "value"])
    told = told.assign(host=_hosts(tables, told))
    twice = told.duplicated(["host", "name", "ts_ns", "value"])  # scrapes, and an answer that was made of them
    told = _inside(told[~twice | told["ts_ns"].isna()], tables)
    groups = told.groupby(["host", "name"], observed=True, sort=False)["value"]
    rows = [found for (host, name), values in groups if (found := _told(str(host), str(name), values))]
    rows = sorted(rows, key=lambda r: (not _first(r), *_whose(r), r["counter"]))[:MOST]
    return sorted(rows, key=lambda r: (*_whose(r), not _first(r), r["counter"]))


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """A sentence for each of the first devices, with what tells of its units."""
    out: list[str] = []
    more = 0
    hosts = {r["host"] for r in rows}
    for host, device in dict.fromkeys((r["host"], r["device"]) for r in rows):
        mine = [r for r in rows if (r["host"], r["device"]) == (host, device)]
        some = [r for r in mine if _first(r)]
        more += bool(some) and len(out) >= MOST_SAID
        if some and len(out) < MOST_SAID:
            whose = f" of {host or 'a host that is not told'}" if len(hosts) > 1 else ""
            said = ", ".join(f"{r['counter']} {r['mean_share'] * 100:.3g} %" for r in some)
            of = fmt.count(max(r["samples"] for r in some), "sample")
            out.append(f"By its own counters GPU {device}{whose} was in use, in the mean of {of}: {said}.")
    return [*out, f"Counters of {fmt.count(more, 'more GPU')} stand in the answer as JSON."] if more else out


def together(rows: list[dict[str, Any]]) -> list[str]:
    """The same of all devices in one sentence, where a sentence of each would only repeat it."""
    told: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if _first(row):
            told.setdefault(row["counter"], []).append(row)
    devices = {(r["host"], r["device"]) for some in told.values() for r in some}
    if len(devices) < 2:
        return notes(rows)
    said = ", ".join(_over_devices(counter, some) for counter, some in list(told.items())[:MOST_TOGETHER])
    samples = fmt.count(max(r["samples"] for some in told.values() for r in some), "sample")
    return [f"By their own counters {len(devices):,} GPUs were in use, in the mean of up to {samples} of each: {said}."]


def _over_devices(counter: str, rows: list[dict[str, Any]]) -> str:
    shares = [r["mean_share"] * 100 for r in rows]
    low, high = f"{min(shares):.3g}", f"{max(shares):.3g}"
    return f"{counter} {sum(shares) / len(shares):.3g} %" + (f" ({low} to {high} %)" if low != high else "")


def _first(row: dict[str, Any]) -> bool:
    """Whether it tells of the units of its device, whatever the pod that they worked for is called."""
    return bool(FIRST.search(row["counter"].partition(" of pod ")[0]))


def _whose(row: dict[str, Any]) -> tuple[list, int]:
    return natural_key(row["host"] or ""), row["device"]


def _hosts(tables: Tables, told: pd.DataFrame) -> pd.Series:
    """The host of each sample: the one that its name tells, else that of the profile which it came with, else the input
    itself; "" where none is told."""
    source = told["source"]
    known = frame(tables, "captures", ["host", "source"]).dropna().astype(str).drop_duplicates()
    known = known.drop_duplicates("source", keep=False)  # a profile of several hosts tells of none alone
    host = dict(zip(known["source"], known["host"], strict=True))
    texts = source.astype(object).where(source.notna(), "").astype(str)
    by_source = texts.map({text: host.get(text, text) for text in texts.unique()})
    names = told["name"].astype(object)
    by_name = names.map({name: _split(name)[1].get("host") for name in names.unique()})
    return by_name.where(by_name.notna(), by_source)


def _split(name: str) -> tuple[str, dict[str, str]]:
    """(what a counter is called, what the labels behind it tell)."""
    bare, brace, labels = name.partition("{")
    if not brace or not labels.endswith('"}') or not _ABOUT.match(labels):
        return name, {}
    return bare, {key: re.sub(r"\\(.)", r"\1", value) for key, value in _ABOUT.findall(labels)}


def _inside(told: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    """The samples within profiled steps of their host, else within any that are dated; where no step of it is known, of
    any host."""
    steps = frame(tables, "steps", ["capture", "host", "start_ns", "dur_ns"]).dropna(subset=["start_ns", "dur_ns"])
    profiled = steps.dropna(subset=["capture"])
    steps = profiled if len(profiled) else steps
    if not len(steps):
        return told
    told = told.dropna(subset=["ts_ns"])
    kept = []
    for host, some in told.groupby("host", observed=True, sort=False):
        mine = steps[steps["host"].astype(object) == host]
        inside = _union(mine if len(mine) else steps)
        at = some["ts_ns"].to_numpy(dtype=np.int64)
        place = np.searchsorted(inside.start, at, "right") - 1
        within = place >= 0  # none where steps took no time
        within[within] = at[within] < inside.end[place[within]]
        kept.append(some[within])
    return pd.concat(kept) if kept else told


def _told(host: str, name: str, values: pd.Series) -> dict[str, Any] | None:
    bare, about = _split(name)
    match = _NAMED.match(bare)
    shares = values.to_numpy(dtype=float) / 100
    shares = shares[(shares >= 0) & (shares < np.inf)]
    if not match or not len(shares):
        return None
    return {
        "host": host or None,
        "device": int(match["device"]),
        "counter": " of ".join([match["name"], *_parts(about)]),
        "mean_share": float(shares.mean()),
        "highest_share": float(shares.max()),
        "samples": len(shares),
    }


def _parts(about: dict[str, str]) -> list[str]:
    """Which part of a device is meant, and for whom it worked."""
    said = (("MIG", about.get("mig")), ("pod", about.get("pod")))
    return [f"{what} {which}" for what, which in said if which]


def _union(steps: pd.DataFrame) -> Spans:
    start = steps["start_ns"].to_numpy(dtype=np.int64)
    return union(spans(start, start + steps["dur_ns"].to_numpy(dtype=np.int64)))
