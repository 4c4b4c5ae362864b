"""What a run's tables tell of device memory: programs at their peak, their buffers, samples over time."""

from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from errors import QuestionError
from runs.tables import Tables, frame

PART_COLUMNS = [
    "name",
    "category",
    "bytes",
    "padded_bytes",
    "copies",
    "reused",
    "awaits_backward",
    "shape",
    "op",
    "source",
]
PROGRAM_COLUMNS = ["capture", "program", "name", "arguments", "outputs", "temporaries", "code", "peak", "peak_logical"]
DEVICE_COLUMNS = [
    "host",
    "device",
    "allocator",
    "samples",
    "peak_bytes",
    "peak_ns",
    "limit_bytes",
    "lifetime_peak_bytes",
]
SAMPLE_COLUMNS = ["capture", "host", "device", "allocator", "ts_ns", "used_bytes"]
PYTORCH = "PyTorch"  # the allocator of a trace of the PyTorch profiler
TOTALS = ("arguments", "outputs", "temporaries", "code", "peak")
_HOST = r"(?i)host|cpu|pinned"  # allocators of a host's memory, which belong to no device, by their names
_SAMPLED = ("bytes_in_use", "bytes_reserved", "bytes_available", "peak_bytes_in_use", "bytes_limit")


def rows_of(tables: Tables, kinds: tuple[str, ...], columns: list[str]) -> pd.DataFrame:
    """Rows of `memory` of some kinds, texts as plain objects."""
    found = [frame(tables, "memory", ["kind", *columns], [("kind", "==", kind)]) for kind in kinds]
    rows = pd.concat([f.astype({c: object for c in f if f[c].dtype == "category"}) for f in found], ignore_index=True)
    return rows


def programs(tables: Tables) -> pd.DataFrame:
    """One row per program by name, in bytes of one device as placed, the one that needs most first.

    Columns: PROGRAM_COLUMNS. A program that several captures saw counts as where it needed most.
    """
    totals = rows_of(tables, TOTALS, ["capture", "program", "bytes", "padded_bytes"])
    if not len(totals):  # a dump of a module alone: its inputs are all that it tells
        totals = rows_of(tables, ("argument",), ["capture", "program", "bytes", "padded_bytes"])
        totals = totals.groupby(["capture", "program"], dropna=False).sum(min_count=1, numeric_only=True).reset_index()
        totals["kind"] = "arguments"
    if not len(totals):
        return pd.DataFrame(columns=PROGRAM_COLUMNS)
    totals = totals.assign(held=totals["padded_bytes"].fillna(totals["bytes"]).astype("Float64"))
    keys = totals["capture"].fillna(-1).astype("int64"), totals["program"].fillna(-1).astype("int64")
    totals = totals.assign(capture=keys[0], program=keys[1])
    by = totals.pivot_table(index=["capture", "program"], columns="kind", values="held", aggfunc="max")
    logical = totals[totals["kind"] == "peak"].groupby(["capture", "program"])["bytes"].max()
    by = by.reindex(columns=TOTALS).assign(peak_logical=logical).reset_index()
    names = frame(tables, "modules", ["capture", "program", "name"])
    names = names.assign(
        capture=names["capture"].fillna(-1).astype("int64"),
        program=names["program"].fillna(-1).astype("int64"),
        name=names["name"].astype(object),
    ).drop_duplicates(["capture", "program"])
    by = by.merge(names, on=["capture", "program"], how="left")
    by["name"] = by["name"].fillna("program " + by["program"].astype(str))
    needs = by["peak"].fillna(by[["arguments", "outputs", "temporaries"]].sum(axis=1))
    order = needs.sort_values(ascending=False, kind="stable").index
    return by.loc[order].drop_duplicates("name")[PROGRAM_COLUMNS].reset_index(drop=True)


def chosen(found: pd.DataFrame, name: str | None) -> pd.Series | None:
    """The program asked for, else the one that needs most; None where there is none. Raises QuestionError."""
    if name is None:
        return found.iloc[0] if len(found) else None
    match = found[found["name"] == name]
    if not len(match):
        known = ", ".join(found["name"].head(10)) or "none"
        raise QuestionError(f"no program {name[:100]!r} with a record of its memory", expected=f"one of {known}")
    return match.iloc[0]


def parts_of(tables: Tables, program: pd.Series) -> pd.DataFrame:
    """What a device holds when the program needs most, largest first, in PART_COLUMNS.

    Buffers where the compiler's assignment is known; else the arguments one by one, and the rest as a whole.
    """
    columns = ["capture", "program", *PART_COLUMNS]
    buffers = _of_program(rows_of(tables, ("peak_buffer",), columns), program)
    if not len(buffers):
        buffers = _of_program(rows_of(tables, ("argument",), columns), program).assign(category="argument")
        known = float(buffers["padded_bytes"].fillna(buffers["bytes"]).fillna(0).sum())
        held = program["arguments"]
        if pd.notna(held) and held > known:
            buffers = _with(buffers, "other arguments", "argument", held - known)
            known = float(held)
        outputs = float(program["outputs"]) if pd.notna(program["outputs"]) else 0.0
        buffers = _with(buffers, "outputs", "output", outputs)
        if pd.notna(program["peak"]):
            buffers = _with(buffers, "temporaries", "temporary", float(program["peak"]) - known - outputs)
    buffers = buffers.assign(padded_bytes=buffers["padded_bytes"].fillna(buffers["bytes"]))
    return buffers[PART_COLUMNS].sort_values("padded_bytes", ascending=False, kind="stable").reset_index(drop=True)


def _of_program(rows: pd.DataFrame, program: pd.Series) -> pd.DataFrame:
    mine = rows["capture"].fillna(-1).eq(program["capture"]) & rows["program"].fillna(-1).eq(program["program"])
    return rows[mine]


def _with(rows: pd.DataFrame, name: str, category: str, held: float) -> pd.DataFrame:
    if not held > 0:
        return rows
    one = pd.DataFrame({"name": [name], "category": [category], "padded_bytes": [int(held)]})
    return pd.concat([rows, one.astype({"padded_bytes": "Int64"})], ignore_index=True)


def samples(tables: Tables) -> pd.DataFrame:
    """What allocators of devices had handed out over time, in order of time: SAMPLE_COLUMNS, and `limit_bytes`,
    `lifetime_peak`; those of no time of day last. Allocators of the host's own memory are left out: they say nothing of
    a device.

    used = bytes in use + bytes reserved (what a TPU keeps back for the program that runs); limit = used + available,
    else as the allocator says.
    """
    keys = ["capture", "host", "device", "name", "ts_ns"]
    result, *others = (_of_instants(tables, kind, keys) for kind in _SAMPLED)
    for other in others:
        result = result.merge(other, on=[*keys, "left"], how="left")
    result = result[result["bytes_in_use"].notna()]
    of_host = result["device"].isna() & result["name"].astype("string").str.contains(_HOST, regex=True).fillna(False)
    result = result[~of_host.astype(bool)]
    used = result["bytes_in_use"] + result["bytes_reserved"].fillna(0)
    limit = (used + result["bytes_available"]).fillna(result["bytes_limit"])
    result = result.assign(used_bytes=used, limit_bytes=limit, lifetime_peak=result["peak_bytes_in_use"])
    result = result.rename(columns={"name": "allocator"}).sort_values("ts_ns", kind="stable")
    monitored = result["capture"].isna() & result["ts_ns"].notna()
    result = result[~(monitored & result.duplicated([*SAMPLE_COLUMNS]))]  # listings of a monitor may overlap
    return result[[*SAMPLE_COLUMNS, "limit_bytes", "lifetime_peak"]].reset_index(drop=True)


def dated(taken: pd.DataFrame) -> pd.DataFrame:
    """Samples that have a place in time, as SAMPLE_COLUMNS."""
    return taken.loc[taken["ts_ns"].notna(), SAMPLE_COLUMNS]


def _of_instants(tables: Tables, kind: str, keys: list[str]) -> pd.DataFrame:
    """What samples tell of a kind. Several of one instant, which a clock of microseconds often holds, are told apart by
    how many are `left` after each: the last of one kind belongs to the last of another."""
    rows = rows_of(tables, (kind,), [*keys, "bytes"]).drop(columns="kind").rename(columns={"bytes": kind})
    return rows.assign(left=rows.groupby(keys, dropna=False).cumcount(ascending=False))


def devices(taken: pd.DataFrame) -> pd.DataFrame:
    """The peak of each sampled device, the fullest first: DEVICE_COLUMNS."""
    if not len(taken):
        return pd.DataFrame(columns=DEVICE_COLUMNS)
    groups = taken.groupby(["host", "device", "allocator"], dropna=False, sort=False)
    at = groups["used_bytes"].idxmax()
    result = groups.agg(
        samples=("used_bytes", "size"),
        peak_bytes=("used_bytes", "max"),
        limit_bytes=("limit_bytes", "max"),
        lifetime_peak_bytes=("lifetime_peak", "max"),
    )
    result["peak_ns"] = taken["ts_ns"].loc[at.to_numpy()].to_numpy()
    return (
        result.reset_index()
        .sort_values("peak_bytes", ascending=False, kind="stable")[DEVICE_COLUMNS]
        .reset_index(drop=True)
    )


def limit_of(tables: Tables, facts: Facts, sampled: pd.DataFrame, chip: Any) -> tuple[int | None, str]:
    """(bytes that one device may use, who says so): the allocator of the fullest device, the compiler, or the catalogue
    of chips."""
    fullest = devices(sampled)["limit_bytes"].dropna()
    if len(fullest):
        return int(fullest.iloc[0]), "the device's own allocator"
    said = rows_of(tables, ("bytes_limit",), ["bytes"])["bytes"].dropna()
    if len(said) or fact(facts, "limit_bytes"):
        return int(said.max() if len(said) else fact(facts, "limit_bytes")), "the compiler"
    return catalogue_limit(chip, fact(facts, "devices_per_chip"))


def catalogue_limit(chip: Any, per_chip: Any = None) -> tuple[int | None, str]:
    """Usable device memory of one device by the catalogue, else the whole; (None, "") for an unknown chip."""
    if chip is None:
        return None, ""
    share = per_chip or chip.value("jax_devices_per_chip") or 1
    for key, words in (("hbm_usable_bytes", "usable memory"), ("hbm_bytes", "memory")):
        if size := chip.value(key):
            return int(size / share), f"the {words} of {chip.name} in the catalogue"
    return None, ""


def number(value: Any) -> int | None:
    """A whole number for JSON; None where it is not known."""
    return None if value is None or pd.isna(value) or not np.isfinite(float(value)) else int(value)
