"""Who held device memory when most was held, what was reserved and not used, what grew, and what was refused."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.device.snapshot.blocks import Blocks, histories
from analyzers.device.snapshot.growth import Points, floor_of, points
from analyzers.device.snapshot.stacks import Place, places
from runs.tables import Tables, frame

ALLOCATOR = "PyTorch, snapshot"  # what the collector calls the samples of a snapshot
HOLDER_COLUMNS = ["where", "phase", "bytes", "blocks", "share", "freed_bytes", "unfreed_bytes", "source"]
TREE_COLUMNS = ["phase", "where", "callers", "bytes", "blocks"]
SIZE_COLUMNS = ["each_bytes", "blocks", "bytes"]
GROWTH_COLUMNS = ["where", "phase", "before_bytes", "after_bytes", "grew_bytes", "source"]
DEVICE_COLUMNS = ["host", "device", "capture", "events", "peak_bytes", "peak_ns", "reserved_at_peak_bytes", "end_bytes"]
REFUSED_COLUMNS = ["capture", "host", "device", "ts_ns", "asked_bytes", "device_free_bytes", "where"]
JSON_ROWS = 200


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All of the device that held most (`device`, a row of `devices`), but for `devices` and `refused`.

    `peak_bytes`: the most bytes that were asked for and held at one moment of the recorded history; memory counts as
    held until it can be given again; where no history was `recorded`, what is held at the snapshot, and the peak is not
    known. `reserved_bytes`: what the allocator had from the device then. `unused_bytes`:
    reserved less held: rounding, fragmentation, cache. `taken_bytes`: what the allocator took from the device between
    the beginning of the history and the peak. `holders`: the peak by line and phase, in HOLDER_COLUMNS
    (`freed_bytes`: freed later in the history). `tree`: the same by line and its callers. `end`: the segments at the
    snapshot: reserved, held, rounding (held less asked for), fragmented (free, in segments that hold something) and
    cached (segments that hold nothing), in bytes. `growth`: what is held more or less at `points.end` than at
    `points.start`, by line; `grew_bytes`: all of it. `unrecorded_bytes`: held at the peak by unknown calls; of them
    `before_bytes` since before the history began; `sizes`: these blocks by size, in SIZE_COLUMNS. `history_s`: from the
    first to the last block that was given or freed. `phases`: of all blocks of the history (`catalog.frames.PHASES`).
    `expandable`: whether segments could grow.
    """

    devices: pd.DataFrame
    peak_bytes: int
    peak_ns: int | None
    reserved_bytes: int | None
    taken_bytes: int
    holders: pd.DataFrame
    tree: pd.DataFrame
    end: dict[str, int]
    expandable: bool
    points: Points
    growth: pd.DataFrame
    refused: pd.DataFrame
    unrecorded_bytes: int
    before_bytes: int
    sizes: pd.DataFrame
    history_s: float | None
    phases: frozenset[str]

    @property
    def recorded(self) -> bool:
        """Whether the device that held most has a history."""
        return int(self.devices["events"].iloc[0]) > 0

    @property
    def unused_bytes(self) -> int | None:
        return None if self.reserved_bytes is None else max(self.reserved_bytes - self.peak_bytes, 0)

    @property
    def own_refused(self) -> pd.DataFrame:
        """Of `refused`, what failed on the device that held most."""
        capture, device = self.devices[["capture", "device"]].iloc[0]
        return self.refused[(self.refused["capture"] == capture) & (self.refused["device"] == device)]

    @property
    def grew_bytes(self) -> int:
        return int(self.growth["grew_bytes"].sum())

    @property
    def grows(self) -> bool:
        """Whether more than the floor is held at the later of two points."""
        return self.grew_bytes >= floor_of(self.peak_bytes)

    def by_line(self) -> pd.DataFrame:
        """The peak by line alone, the largest first: where, bytes, blocks."""
        sums = self.holders.groupby("where", sort=False)[["bytes", "blocks"]].sum()
        return sums.sort_values("bytes", ascending=False, kind="stable").reset_index()

    def to_dict(self) -> dict[str, Any]:
        return {
            "recorded": self.recorded,
            "peak_bytes": self.peak_bytes if self.recorded else None,
            "peak_ns": self.peak_ns,
            "reserved_at_peak_bytes": self.reserved_bytes,
            "unused_at_peak_bytes": self.unused_bytes,
            "unrecorded_bytes": self.unrecorded_bytes,
            "held_before_recording_bytes": self.before_bytes,
            "unrecorded_sizes": records(self.sizes.head(JSON_ROWS)),
            "history_s": self.history_s,
            "holders": records(self.holders.head(JSON_ROWS)),
            "end": {f"{k}_bytes": v for k, v in self.end.items()},
            "growth": {
                "grew_bytes": self.grew_bytes,
                "floor_bytes": floor_of(self.peak_bytes),
                "equal_points": self.points.equal,
                "rounds": self.points.rounds,
                "steady": self.points.steady and self.grows,
                "lines": records(self.growth.head(JSON_ROWS)),
            },
            "refused": records(self.refused.drop(columns="capture").head(JSON_ROWS)),
            "devices": records(self.devices),
        }


def dicts(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as they are."""
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, what is not known as null."""
    return [
        {k: None if pd.isna(v) else v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
        for row in dicts(table.astype(object))
    ]


def snapshot(tables: Tables) -> Snapshot | None:
    """What the run's snapshots tell; None where it has none with a block in it."""
    pools, rows = _pools(tables), []
    fullest: Blocks | None = None
    for blocks in histories(tables):
        rows.append(_device(blocks, pools))
        if fullest is None or blocks.most > fullest.most:
            fullest = blocks
    if fullest is None:
        return None
    segments = _segments(tables, fullest)
    at = points(fullest.level)
    known = places(tables, fullest.capture, np.unique(fullest.stack))
    held = fullest.held(fullest.peak)
    unrecorded = held & (fullest.stack < 0)
    peak_ns = fullest.ns(fullest.peak)
    end = _end(segments)
    reserved = _reserved(pools, fullest, peak_ns) if fullest.recorded else end["reserved"]
    holders, tree = _holders(fullest, held, known)
    return Snapshot(
        devices=_devices(rows),
        peak_bytes=fullest.most,
        peak_ns=peak_ns,
        reserved_bytes=reserved,
        taken_bytes=max((reserved or 0) - (_reserved(pools, fullest, fullest.ns(0)) or 0), 0),
        holders=holders,
        tree=tree,
        end=end,
        expandable=bool(segments["expandable"].fillna(False).any()),
        points=at,
        growth=_growth(fullest, at, known),
        refused=_refused(tables),
        unrecorded_bytes=int(fullest.bytes[unrecorded].sum()),
        before_bytes=int(fullest.bytes[unrecorded & (fullest.alloc < 0)].sum()),
        sizes=_sizes(fullest.bytes[unrecorded]),
        history_s=_history_s(fullest),
        phases=frozenset(p.phase for s, p in known.items() if s >= 0),
    )


def _holders(blocks: Blocks, held: np.ndarray, known: dict[int, Place]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The blocks that are held, by line and phase, and by line, phase and callers: the largest first."""
    later = blocks.free < blocks.events
    rows = pd.DataFrame(
        {
            "stack": blocks.stack[held],
            "bytes": blocks.bytes[held],
            "blocks": 1,
            "freed_bytes": np.where(later, blocks.bytes, 0)[held],
        }
    )
    rows = rows.groupby("stack", sort=False).sum().reset_index()
    of = [known.get(s, known[-1]) for s in rows["stack"].tolist()]
    rows = rows.assign(**_columns(of), callers=pd.Series([p.callers for p in of], dtype=object))
    whole = max(int(rows["bytes"].sum()), 1)
    by = rows.groupby(["where", "phase"], sort=False).agg(
        bytes=("bytes", "sum"), blocks=("blocks", "sum"), freed_bytes=("freed_bytes", "sum"), source=("source", "first")
    )
    by = by.assign(share=by["bytes"] / whole, unfreed_bytes=by["bytes"] - by["freed_bytes"]).reset_index()
    tree = rows.groupby(["phase", "where", "callers"], sort=False)[["bytes", "blocks"]].sum().reset_index()
    return _largest(by, "bytes")[HOLDER_COLUMNS], _largest(tree, "bytes")[TREE_COLUMNS]


def _columns(of: list[Place]) -> dict[str, pd.Series]:
    return {n: pd.Series([getattr(p, n) for p in of], dtype=object) for n in ("where", "phase", "source")}


def _largest(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    return rows.sort_values(column, ascending=False, kind="stable").reset_index(drop=True)


def _sizes(sizes: np.ndarray) -> pd.DataFrame:
    """Blocks of equal size together: all that can be told of those that nobody recorded."""
    each, blocks = np.unique(sizes, return_counts=True)
    rows = pd.DataFrame({"each_bytes": each, "blocks": blocks, "bytes": each * blocks})
    return _largest(rows, "bytes")[SIZE_COLUMNS]


def _growth(blocks: Blocks, at: Points, known: dict[int, Place]) -> pd.DataFrame:
    """By line, what is held at the two points; what differs most first."""
    sums = {}
    for name, place in (("before_bytes", at.start), ("after_bytes", at.end)):
        held = blocks.held(place)
        sums[name] = pd.Series(blocks.bytes[held]).groupby(blocks.stack[held]).sum()
    rows = pd.DataFrame(sums).fillna(0).astype("int64")
    of = [known.get(int(s), known[-1]) for s in rows.index]
    rows = rows.reset_index(drop=True).assign(**_columns(of))
    by = rows.groupby(["where", "phase"], sort=False).agg(
        before_bytes=("before_bytes", "sum"), after_bytes=("after_bytes", "sum"), source=("source", "first")
    )
    by = by.assign(grew_bytes=by["after_bytes"] - by["before_bytes"]).reset_index()
    by = by[by["grew_bytes"] != 0]
    return by.loc[by["grew_bytes"].abs().sort_values(ascending=False, kind="stable").index][GROWTH_COLUMNS]


def _pools(tables: Tables) -> pd.DataFrame:
    columns = ["capture", "device", "ts_ns", "bytes"]
    rows = frame(tables, "memory", columns, [("kind", "==", "pool_bytes"), ("name", "==", ALLOCATOR)])
    return rows.astype("int64").sort_values("ts_ns", kind="stable")


def _reserved(pools: pd.DataFrame, blocks: Blocks, ns: int | None) -> int | None:
    """What the allocator had from the device at a time."""
    mine = pools[(pools["capture"] == blocks.capture) & (pools["device"] == blocks.device)]
    if ns is None or not len(mine):
        return None
    before = int(np.searchsorted(mine["ts_ns"].to_numpy(), ns, "right")) - 1
    return int(mine["bytes"].iloc[max(before, 0)])


def _device(blocks: Blocks, pools: pd.DataFrame) -> dict[str, Any]:
    ns = blocks.ns(blocks.peak)
    return {
        "host": blocks.host,
        "device": blocks.device,
        "capture": blocks.capture,
        "events": blocks.events,
        "most": blocks.most,
        "peak_bytes": blocks.most if blocks.recorded else None,
        "peak_ns": ns,
        "reserved_at_peak_bytes": _reserved(pools, blocks, ns),
        "end_bytes": int(blocks.level[-1]),
    }


def _devices(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The one that held most first."""
    return _largest(pd.DataFrame(rows), "most")[DEVICE_COLUMNS].astype({"peak_bytes": "Int64"})


def _segments(tables: Tables, blocks: Blocks) -> pd.DataFrame:
    columns = ["bytes", "held_bytes", "requested_bytes", "free_bytes", "held_blocks", "expandable"]
    where = [("capture", "==", blocks.capture), ("device", "==", blocks.device)]
    return frame(tables, "memory_segments", columns, where)


def _end(segments: pd.DataFrame) -> dict[str, int]:
    """What the segments of a device hold at the snapshot, by account: they add up to what is reserved."""
    rows = segments.drop(columns="expandable").astype("int64")
    used = rows["held_blocks"] > 0
    return {
        "reserved": int(rows["bytes"].sum()),
        "held": int(rows["requested_bytes"].sum()),
        "rounding": int((rows["held_bytes"] - rows["requested_bytes"]).sum()),
        "fragmented": int((rows["bytes"] - rows["held_bytes"])[used].sum()),
        "cached": int(rows["bytes"][~used].sum()),
    }


def _refused(tables: Tables) -> pd.DataFrame:
    """Allocations that failed, in order of time."""
    keys = ["capture", "host", "device", "ts_ns"]
    rows = frame(tables, "memory", [*keys, "bytes", "source"], [("kind", "==", "refused")])
    free = frame(tables, "memory", [*keys, "bytes"], [("kind", "==", "device_free")])
    rows = rows.rename(columns={"bytes": "asked_bytes", "source": "where"})
    free = free.rename(columns={"bytes": "device_free_bytes"}).drop_duplicates(keys)
    return rows.merge(free, on=keys, how="left").sort_values("ts_ns", kind="stable")[REFUSED_COLUMNS]


def _history_s(blocks: Blocks) -> float | None:
    first, last = blocks.ns(0), blocks.ns(len(blocks.level) - 1)
    return None if first is None or last is None else (last - first) / 1e9
