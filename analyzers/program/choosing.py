"""Which programs are kept with a run, how long each ran, and which one is asked about."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analyzers.device.untold_kernels import untold
from errors import QuestionError
from errors.options import Option
from runs.programs import Program, Programs
from runs.tables import Tables, frame

PROGRAM = Option(
    "program",
    str,
    None,
    "which program, as listed; default: the one that ran longest, else of most FLOPs",
    label="Program",
)
NEEDED = "Add a profile (*.xplane.pb), or a program compiled with `chipledger compile`: they carry their programs."
COLUMNS = (
    "program",
    "name",
    "instructions",
    "flops",
    "bytes",
    "memory_bytes",
    "seconds",
    "captures",
    "files",
    "variant",
)
_ALIKE = ["name", "flops", "bytes", "instructions"]
_TIMED = ["op", "count", "self_ns", "variant"]
_SHOWN = 10
MOST_READ = 20  # programs in which an operation is looked for


def listed(tables: Tables) -> pd.DataFrame:
    """The programs of a run, the longest first: COLUMNS.

    `program`: its name, with a number behind it where others of another content have the same. Captures carry the same
    programs again: those that are alike in name, FLOPs, bytes and instructions are one, of so many `captures`; `files`
    are theirs. `memory_bytes`: what one device holds for it at its fullest, as the page Memory has it. `seconds`: self
    time of their operations, all devices and captures added; NaN where nobody timed them. `flops`: NaN where there are
    none but those of kernels that nobody tells. Raises QuestionError where the run keeps none.
    """
    modules = _modules(tables)
    modules = modules[modules["file"].notna()]
    if not len(modules):
        raise QuestionError("no program is kept with this run", advice=NEEDED)
    modules = modules.merge(_peaks(tables), on=["capture", "program"], how="left")
    groups = modules.groupby(_ALIKE, dropna=False, sort=False)
    found = groups.agg(
        variant=("variant", "first"),
        captures=("capture", "nunique"),
        memory_bytes=("memory_bytes", "max"),
        files=("file", tuple),
    ).reset_index()
    found["seconds"] = found["variant"].map(timed(tables).groupby("variant")["self_ns"].sum() / 1e9)
    for column in ("flops", "bytes", "seconds", "memory_bytes"):
        found[column] = found[column].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    found = found.sort_values(["seconds", "flops", "instructions"], ascending=False, kind="stable", ignore_index=True)
    if (none := found["flops"] == 0).any():
        found["flops"] = found["flops"].mask(none & found["variant"].isin(blind(tables)))
    return found.assign(program=_told_apart(found["name"]))[list(COLUMNS)]


def blind(tables: Tables) -> set[int]:
    """Variants that hold kernels whose FLOPs nobody tells: what they do in all is not known."""
    keys, place = ["capture", "program"], ["host", "device"]
    ops = frame(tables, "ops", [*keys, *place, "module", "category", "flops", "bytes"], [("role", "==", "compute")])
    kernels = untold(ops, ops.groupby([*keys, *place], dropna=False)["bytes"].transform("sum"))
    found = ops.loc[kernels, [*keys, "module"]].astype({"module": object}).drop_duplicates()
    found = found.merge(_modules(tables), left_on=[*keys, "module"], right_on=[*keys, "name"])
    return set(found["variant"])


def _told_apart(names: pd.Series) -> list[str]:
    """Names with ` (2)`, ` (3)` behind those that were there before, and that no other has."""
    taken = set(names)
    found: list[str] = []
    seen: dict[str, int] = {}
    for name in names:
        label, n = name, seen.get(name, 0) + 1
        while n > 1 and (label := f"{name} ({n})") in taken:
            n += 1
        seen[name] = n
        taken.add(label)
        found.append(label)
    return found


def _modules(tables: Tables) -> pd.DataFrame:
    """Programs by capture, with the number of their kind: those alike are of one `variant`."""
    modules = frame(tables, "modules", ["capture", "program", "name", "file", "flops", "bytes", "instructions"])
    modules = modules.astype({"name": object, "file": object})
    modules["name"] = modules["name"].fillna("unnamed")
    return modules.assign(variant=modules.groupby(_ALIKE, dropna=False, sort=False).ngroup())


def _peaks(tables: Tables) -> pd.DataFrame:
    """The peak of each program of each capture: capture, program, memory_bytes."""
    found = frame(tables, "memory", ["capture", "program", "padded_bytes"], [("kind", "==", "peak")])
    peaks = found.groupby(["capture", "program"])["padded_bytes"].max()
    return peaks.rename("memory_bytes").reset_index()


def timed(tables: Tables) -> pd.DataFrame:
    """Timed operations of devices with the variant of their program: op, count, self_ns, variant.

    By the number of the program, where the numbers of a capture agree with the names; XLA for CPU numbers what it runs
    otherwise than what it lists, and there the name tells, where one program of the capture has it. What neither tells
    is in no program.
    """
    columns = ["capture", "program", "module", "op", "count", "device", "self_ns"]
    ops = frame(tables, "ops", columns, [("role", "==", "compute")]).astype({"module": object, "op": object})
    ops = ops[ops["device"].notna() & ops["self_ns"].notna()]
    if not len(ops):
        return ops.assign(variant=pd.Series(dtype=float))[_TIMED]
    modules = _modules(tables)
    by_number = modules.drop_duplicates(["capture", "program"])[["capture", "program", "name", "variant"]]
    ops = ops.merge(by_number, on=["capture", "program"], how="left")
    named = ops["module"].notna()
    wrong = ops["capture"][named & (ops["name"] != ops["module"])].unique()
    kinds = modules.groupby(["capture", "name"])["variant"].agg(["first", "nunique"])
    alone = kinds["first"][kinds["nunique"] == 1].rename("by_name").reset_index()
    ops = ops.merge(
        alone, left_on=["capture", "module"], right_on=["capture", "name"], how="left", suffixes=("", "_of")
    )
    trusted = ~ops["capture"].isin(wrong)
    return ops.assign(variant=ops["variant"].where(trusted, ops["by_name"]))[_TIMED]


def chosen(found: pd.DataFrame, name: str | None) -> pd.Series:
    """The program asked for, else the first. Raises QuestionError for one that is not there."""
    match = found[found["program"] == name] if name is not None else found
    if not len(match):
        known = ", ".join(found["program"].head(_SHOWN))
        more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
        raise QuestionError(f"no program {str(name)[:80]!r} is kept with this run", expected=f"one of {known}{more}")
    return match.iloc[0]


def opened(
    tables: Tables, programs: Programs, options: Mapping[str, Any], op: str | None = None
) -> tuple[pd.Series, Program]:
    """(row of `listed`, the program) that `options` ask for; of several of one name, the first that holds `op`."""
    found = listed(tables)
    asked = chosen(found, options.get(PROGRAM.name))
    first = asked, programs.of(asked["files"][0])
    if op is None or _holds(first[1], op):
        return first
    named = options.get(PROGRAM.name)
    others = found if named is None else found[found["name"].eq(asked["name"]) & (asked["program"] == asked["name"])]
    for _, row in others.head(MOST_READ).iterrows():
        program = programs.of(row["files"][0])
        if _holds(program, op):
            return row, program
    return first


def _holds(program: Program, op: str) -> bool:
    return bool(pc.is_in(pa.scalar(op.removeprefix("%")), program.tables["instructions"]["name"]).as_py())


def seconds_by_op(tables: Tables, row: pd.Series) -> pd.Series:
    """Self time in seconds of each operation of a program, by its name: all devices and captures added. Empty where
    nobody timed them."""
    return _of(timed(tables), row).groupby("op")["self_ns"].sum().astype(float) / 1e9


def seconds_each(ops: pd.DataFrame, row: pd.Series) -> pd.Series:
    """Of what is `timed`, self time in seconds of one execution of each operation of a program, the mean of all, by its
    name. Empty where nobody timed them."""
    sums = _of(ops, row).groupby("op")[["self_ns", "count"]].sum().astype(float)
    return sums["self_ns"][sums["count"] > 0] / sums["count"][sums["count"] > 0] / 1e9


def _of(ops: pd.DataFrame, row: pd.Series) -> pd.DataFrame:
    """Timed operations of a program of `listed`, of every capture that carries it."""
    return ops[ops["variant"] == row["variant"]]
