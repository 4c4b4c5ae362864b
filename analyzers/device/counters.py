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

_NAMED = re.compile(r"^(?P<kind>GPU|TPU|accelerator) (?P<device>\d{1,9}) (?P<name>.+)$", re.DOTALL)
_ABOUT = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"', re.DOTALL)  # host, MIG instance and pods that a name tells
_PRINTED = re.compile(  # as a table of tpu-info has it
    r'^(?P<name>[^{]+)\{(?:Chip|Chip ID|Core ID|Device|Device ID)="(?P<device>\d{1,9})"\}$', re.DOTALL
)
_OF_MOST = "%"  # the unit of what is a share of the most that is possible
MOST = 256  # counters that are told
MOST_TOGETHER = 6  # counters that are told of all devices together
MOST_SAID = 16  # devices with a sentence of their own: a machine's, or two's
FIRST = re.compile(
    r"tensor|matrix|MXU|\bSMs? (active|issue)|DRAM|HBM|memory bandwidth|NVLink|duty cycle|any kernel", re.IGNORECASE
)


def counters(tables: Tables) -> list[dict[str, Any]]:
    """Of each device of each host the counters that are shares of the most that is possible: mean and highest of their
    samples, inside the profiled steps of its host where any are known, and where none of them lies there inside those
    of logs (see `_inside`). The order is by host and device, what tells of its units first. `host` is None
    where nothing tells whose the samples are."""
    if not tables.rows("scalars"):
        return []
    told = frame(tables, "scalars", ["ts_ns", "name", "value", "source"], [("unit", "==", _OF_MOST)])
    told = told[_of_devices(told["name"])].dropna(subset=["name", "value"])
    told = told.assign(host=hosts_of(tables, told)).drop(columns="source")
    told = told[told["ts_ns"].isna() | ~told.duplicated()]  # listings overlap; scrapes, and an answer made of them
    told = _inside(told, tables)
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
            out.append(
                f"By its own counters {mine[0]['kind']} {device}{whose} was in use, in the mean of {of}: {said}."
            )
    kinds = {r["kind"] for r in rows}
    other = f"more {kinds.pop() if len(kinds) == 1 else 'device'}"
    return [*out, f"Counters of {fmt.count(more, other)} stand in the answer as JSON."] if more else out


def together(rows: list[dict[str, Any]], held: float | None = None) -> list[str]:
    """What tells of units of all devices in one sentence, each counting as much as any other. `held`: how many the job
    had; of more, others are among them."""
    told: dict[str, list[dict[str, Any]]] = {}
    for row in filter(_first, rows):
        told.setdefault(row["counter"], []).append(row)
    some = [r for of_one in told.values() for r in of_one]
    devices = len({(r["host"], r["device"]) for r in some})
    if held is not None and devices > held:  # two monitors may each call the host of one device otherwise
        devices = max(min(devices, int(held)), _most_of_one_kind(some))
    others = held is not None and devices > held
    if devices < 2 and not others:
        return notes(rows)
    said = ", ".join(_over_devices(counter, of_one) for counter, of_one in list(told.items())[:MOST_TOGETHER])
    kinds, taken = {r["kind"] for r in some}, {r["samples"] for r in some}
    of = fmt.count(devices, kinds.pop() if len(kinds) == 1 else "device")
    samples = ("up to " if len(taken) > 1 else "") + fmt.count(max(taken), "sample")
    more = f", more than the {held:,.0f} of this run: those of others are among them" if others else ""
    were = "was" if devices == 1 else "were"
    return [f"By their own counters {of} {were} in use{more}, in the mean of {samples} each: {said}."]


def _most_of_one_kind(rows: list[dict[str, Any]]) -> int:
    """How many devices there are at least: those of which one kind of counter tells, whoever they worked for."""
    told: dict[str, set[tuple[str | None, int]]] = {}
    for row in rows:
        told.setdefault(re.split(r" of (?:MIG|pod) ", row["counter"])[0], set()).add((row["host"], row["device"]))
    return max(map(len, told.values()))


def _over_devices(counter: str, rows: list[dict[str, Any]]) -> str:
    means = [r["mean_share"] * 100 for r in rows]
    spread = f" ({min(means):.3g} to {max(means):.3g} %)" if max(means) - min(means) >= 1 else ""
    return f"{counter} {sum(means) / len(means):.3g} %{spread}"


def _first(row: dict[str, Any]) -> bool:
    """Whether it tells of the units of its device, whatever the pod that they worked for is called."""
    return bool(FIRST.search(row["counter"].partition(" of pod ")[0]))


def _whose(row: dict[str, Any]) -> tuple[list, int]:
    return natural_key(row["host"] or ""), row["device"]


def _of_devices(names: pd.Series) -> pd.Series:
    """Which names are of a counter of a device."""
    of = {name: bool(_match(str(name))) for name in names.dropna().unique()}
    return names.astype(object).map(of).fillna(False).astype(bool)


def _match(name: str) -> re.Match[str] | None:
    return _NAMED.match(split(name)[0]) or _PRINTED.match(name)


def split(name: str) -> tuple[str, dict[str, str]]:
    """(what a counter is called, what the labels behind it tell)."""
    bare, brace, labels = name.partition("{")
    if not brace or not labels.endswith('"}') or not _ABOUT.match(labels):
        return name, {}
    return bare, {key: re.sub(r"\\(.)", r"\1", value) for key, value in _ABOUT.findall(labels)}


def hosts_of(tables: Tables, told: pd.DataFrame) -> pd.Series:
    """The host of each sample: the one that its name tells, else that of the profile which it came with, else the input
    itself; "" where none is told."""
    of_source = _hosts_of_sources(tables, told["source"])
    names = told["name"].astype(object)
    by_name = names.map({name: split(str(name))[1].get("host") for name in names.unique()})
    return by_name.where(by_name.notna(), of_source)


def _hosts_of_sources(tables: Tables, source: pd.Series) -> pd.Series:
    known = frame(tables, "captures", ["host", "source"]).dropna().astype(str).drop_duplicates()
    known = known.drop_duplicates("source", keep=False)  # a profile of several hosts tells of none alone
    host = dict(zip(known["source"], known["host"], strict=True))
    texts = source.astype(object).where(source.notna(), "").astype(str)
    return texts.map({text: host.get(text, text) for text in texts.unique()})


def _inside(told: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    """The samples within profiled steps of their host, where no step of it is known of any; of hosts that have none
    there, as one a minute seldom does, those within steps of logs, else those from the first step of the run to the
    last. All where no step has a time; those without a time only then."""
    steps = frame(tables, "steps", ["capture", "host", "start_ns", "dur_ns"]).dropna(subset=["start_ns"])
    if not len(steps):
        return told
    told, timed = told.dropna(subset=["ts_ns"]), steps.dropna(subset=["dur_ns"])
    profiled = timed.dropna(subset=["capture"])
    end = steps["start_ns"] + steps["dur_ns"].fillna(0)
    whole = spans(np.array([steps["start_ns"].min()], np.int64), np.array([end.max() + 1], np.int64))
    logged = _union(timed[timed["capture"].isna()])
    kept = []
    for host, some in told.groupby("host", observed=True, sort=False):
        mine = profiled[profiled["host"].astype(object) == host]
        parts = (_within(some, one) for one in (_union(mine if len(mine) else profiled), logged, whole))
        kept.append(some[next((part for part in parts if part.any()), np.zeros(len(some), bool))])
    return pd.concat(kept) if kept else told


def _within(some: pd.DataFrame, inside: Spans) -> np.ndarray:
    at = some["ts_ns"].to_numpy(dtype=np.int64)
    place = np.searchsorted(inside.start, at, "right") - 1
    within = place >= 0  # none where steps took no time
    within[within] = at[within] < inside.end[place[within]]
    return within


def _told(host: str, name: str, values: pd.Series) -> dict[str, Any] | None:
    match, about = _match(name), split(name)[1]
    shares = values.to_numpy(dtype=float) / 100
    shares = shares[(shares >= 0) & (shares < np.inf)]
    if not match or not len(shares):
        return None
    return {
        "host": host or None,
        "kind": match.groupdict().get("kind") or "TPU",
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
