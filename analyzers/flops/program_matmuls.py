"""The matrix products that programs really held, weighted by how often each program ran."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.flops.mxu import padded_flops
from analyzers.time.device_time import NOT_COMPUTE
from runs.tables import Tables, frame

KEY = ["capture", "program"]
COMPILED = "compiled, not executed: each counts as run once on one device"
ALIKE = ["m", "k", "n", "batch", "remat", "source", "dtype"]  # what makes two products one row


@dataclass(frozen=True)
class Excess:
    """What padding adds to the FLOPs that programs executed, summed over all captures and devices.

    `program_flops`: FLOPs of all programs (matrix products and everything else), as their HLO says, times their runs.
    `useful_flops`: of those, 2 m k n of the matrix products. `padded_flops`, `padded_flops_optimistic`: the same
    products with dimensions rounded up as `mxu.padded_flops` does (A and B). Convolutions over space count in
    `program_flops` only.
    """

    program_flops: float
    useful_flops: float
    padded_flops: float
    padded_flops_optimistic: float

    @property
    def padded_share(self) -> float:
        """(padded - useful) / program FLOPs, as printed (A): FLOPs of padding per FLOP of the program; may exceed 1."""
        return (self.padded_flops - self.useful_flops) / self.program_flops if self.program_flops else 0.0

    @property
    def padded_share_optimistic(self) -> float:
        """The same with the better choice of operands (B): at most `padded_share`."""
        extra = self.padded_flops_optimistic - self.useful_flops
        return extra / self.program_flops if self.program_flops else 0.0


def program_excess(tables: Tables, side: int) -> Excess | None:
    """What a matrix unit of `side` x `side` adds by padding; None where no program was kept."""
    runs, _ = program_runs(tables)
    if not len(runs):
        return None
    rows = products(tables)
    times = (rows["count"] * rows["batch"]).to_numpy(dtype=float)
    m, k, n = (rows[c].to_numpy(dtype=float) for c in "mkn")
    padded = padded_flops(m, k, n, side)
    useful = float((2.0 * m * k * n * times).sum())
    whole = float((runs["flops"].fillna(0.0) * runs["runs"]).sum())
    return Excess(max(whole, useful), useful, *(float((p * times).sum()) for p in padded))


def products(tables: Tables) -> pd.DataFrame:
    """Matrix products that ran, alike ones as one row. Convolutions over space are left out.

    Columns: name (line of the user's program, else the operation), m, k, n, batch, count (products, without their
    batches: runs of the program x executions in one run, over all devices), remat, source, dtype, op (one of them),
    ops (how many operations), layout.
    """
    rows = frame(
        tables,
        "matmuls",
        [*KEY, "op", "m", "k", "n", "batch", "count", "dtype", "layout", "remat", "convolution", "source"],
    )
    rows = rows[~rows["convolution"].fillna(False).astype(bool)].dropna(subset=["m", "k", "n"])
    runs, _ = program_runs(tables)
    rows = keyed(rows).merge(runs[[*KEY, "runs"]], on=KEY, how="left")
    rows["count"] = rows["count"].fillna(1).astype(float) * rows["runs"].fillna(0.0)
    rows["batch"] = rows["batch"].fillna(1)
    rows["remat"] = rows["remat"].fillna(False)
    for column in ("source", "dtype", "op", "layout"):
        rows[column] = rows[column].astype(object).where(rows[column].notna(), "").astype(str)
    rows = rows[(rows["count"] > 0) & (rows[["m", "k", "n", "batch"]] > 0).all(axis=1)]
    if not len(rows):
        return pd.DataFrame(columns=["name", *ALIKE, "count", "op", "ops", "layout"])
    merged = (
        rows.groupby(ALIKE, sort=False)
        .agg(count=("count", "sum"), op=("op", "first"), ops=("op", "nunique"), layout=("layout", "first"))
        .reset_index()
    )
    merged["name"] = np.where(merged["source"] == "", merged["op"], merged["source"].str.rsplit("/", n=1).str[-1])
    return merged


def unknown_programs(tables: Tables) -> tuple[str, ...]:
    """Names of programs that ran, or were compiled, and whose FLOPs are not known: they hold loops of which neither the
    compiler nor the program tells how often they run."""
    told = keyed(frame(tables, "modules", [*KEY, "name", "flops", "instructions"])).drop_duplicates(KEY)
    told = told[told["flops"].isna() & told["instructions"].notna()]
    if not len(told):
        return ()
    runs, _ = program_runs(tables)
    return tuple(sorted(set(told.merge(runs[runs["ran"]][KEY], on=KEY)["name"].astype(str))))


def once(names: tuple[str, ...]) -> list[str]:
    """What is to be said where bodies of loops of unknown length count once; nothing where there are none."""
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [
        f"The FLOPs of {', '.join(names[:3])}{more} are not known: nothing tells how often some of the loops run. "
        "What those hold is counted as if they ran once."
    ]


def modules(tables: Tables, *columns: str) -> pd.DataFrame:
    """Programs with KEY and these columns. FLOPs are of one run; of a program that was compiled, of all that a step
    makes of it, as counts of its operations are."""
    rows = keyed(frame(tables, "modules", [*KEY, *columns, "runs_per_step"]))
    times = rows.pop("runs_per_step").fillna(1).astype(float)
    return rows.assign(**{c: rows[c] * times for c in columns if c in ("flops", "remat_flops")})


def program_runs(tables: Tables) -> tuple[pd.DataFrame, str]:
    """How often each program ran, over all devices, and how that is known.

    Columns: capture, program, flops (as of `modules`), runs, ran (whether it did at all). Counted from the trace's line
    of whole programs; where it has none, executed FLOPs of its operations over the FLOPs of one run, to the nearest
    whole. Where no operation was timed (compiled, never executed) each program counts as run once.
    """
    programs = modules(tables, "name", "flops").drop_duplicates(KEY)
    ops = frame(
        tables, "ops", [*KEY, "module", "role", "category", "count", "total_ns", "flops"], [("role", "!=", "host")]
    )
    ops = ops[ops["role"].isin(["module", "compute"])]
    if not ops["total_ns"].notna().any():
        carried = keyed(frame(tables, "matmuls", KEY)).drop_duplicates()
        programs = programs.merge(carried, on=KEY, how="outer")
        return programs.assign(runs=1.0, ran=True)[[*KEY, "flops", "runs", "ran"]], COMPILED
    ops = _by_name(keyed(ops), programs)
    line = ops[ops["role"] == "module"]
    counted = line.groupby(KEY)["count"].sum().astype(float).rename("counted")
    work = ops[(ops["role"] == "compute") & (ops["flops"] > 0) & ~ops["category"].astype(str).isin(NOT_COMPUTE)]
    done = (work["count"].astype(float) * work["flops"].astype(float)).rename("done")
    done = done.groupby([work["capture"], work["program"]]).sum()
    programs = programs.merge(counted.reset_index(), on=KEY, how="left").merge(done.reset_index(), on=KEY, how="left")
    flops = programs["flops"].astype(float)
    estimated = (programs["done"] / flops.where(flops > 0)).astype(float)
    watched = programs["capture"].isin(set(line["capture"]))
    programs["runs"] = np.where(watched, programs["counted"].astype(float), estimated)
    programs["runs"] = programs["runs"].fillna(0.0).round()
    programs["ran"] = (programs["counted"].fillna(0.0) + programs["done"].fillna(0.0)).astype(float) > 0
    how = "from the trace's program line" if watched.all() else "from the operations that ran"
    how = f"their runs are counted {how}, on all devices"
    return programs[[*KEY, "flops", "runs", "ran"]], how


def _by_name(ops: pd.DataFrame, programs: pd.DataFrame) -> pd.DataFrame:
    """Operations with the number of their program as `modules` has it.

    Some runtimes number a program anew when it is loaded from a cache; then its name tells, where only one has it.
    """
    strange = ~pd.MultiIndex.from_frame(ops[KEY]).isin(pd.MultiIndex.from_frame(programs[KEY]))
    if not strange.any():
        return ops
    only = programs.assign(name=programs["name"].astype(str)).drop_duplicates(["capture", "name"], keep=False)
    known = pd.MultiIndex.from_frame(only[["capture", "name"]])
    at = known.get_indexer(pd.MultiIndex.from_arrays([ops["capture"], ops["module"].astype(str)]))
    use = strange & (at >= 0)
    program = ops["program"].to_numpy().copy()
    program[use] = only["program"].to_numpy()[at[use]]
    return ops.assign(program=program)


def matmul_time_share(tables: Tables) -> float | None:
    """Part of the device operations' own time spent in matrix products, fusions around them included; None: no time.

    Own time: a loop's body does not count again in the loop.
    """
    ops = frame(tables, "ops", ["category", "self_ns"], [("role", "==", "compute")])
    ops = ops[~ops["category"].astype(str).isin(("host", "annotation")) & ops["self_ns"].notna()]
    whole = float(ops["self_ns"].sum())
    inside = ops["category"].astype(str).isin(("matmul", "convolution"))
    return float(ops.loc[inside, "self_ns"].sum()) / whole if whole > 0 else None


def keyed(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose capture and program are plain numbers: a compiled program has no capture, and counts as -1."""
    return rows.assign(**{c: rows[c].fillna(-1).astype("int64") for c in KEY})
