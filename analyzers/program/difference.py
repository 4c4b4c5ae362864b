"""The difference of two programs: which operations are the same, which changed and how, and which only one has."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.untold_kernels import untold_said
from analyzers.program.choosing import PROGRAM, chosen, listed, seconds_each, timed
from analyzers.program.matching import matched
from analyzers.program.rows import records
from analyzers.program.sides import Side
from errors import QuestionError
from errors.numbers import FROM_ZERO
from errors.options import Option
from runs.programs import Programs
from runs.tables import Tables

STATUSES: dict[str, str] = {
    "unchanged": "in both, alike but for names and numbers",
    "changed": "in both, with another shape, layout, fusion, ...",
    "only_a": "only in the first",
    "only_b": "only in the second",
}
CHANGES: dict[str, str] = {
    "opcode": "another opcode",
    "shape": "another shape of its result",
    "layout": "the same shape laid out otherwise: order, tiles, memory space",
    "fusion": "other operations fused in it, taken up by another one, or come out of one",
    "body": "another body, condition or branch of a loop or call",
    "attributes": "other attributes: dimensions, groups, slices, literals",
    "count": "executed another number of times",
    "operands": "fed by other operations",
}
OTHER_RUN = Option(
    "other_run", str, None, "the run that the second program is of; default: the same", label="Other run", of_run=True
)
OTHER = Option(
    "other", str, None, "the second program; default: of another run the one of the same name", label="Second program"
)
TOP = Option("top", FROM_ZERO, 200, "how many operations are listed")
OPTIONS: tuple[Option, ...] = (PROGRAM, OTHER_RUN, OTHER, TOP)
_NUMBERS = ("flops", "bytes", "seconds")
PAIR_KEYS = (
    *("status", "changes", "op_a", "op_b", "category", "flops_a", "flops_b", "bytes_a", "bytes_b"),
    *("seconds_a", "seconds_b", "shape_a", "shape_b", "op_name", "source"),
)
_CALLING = ("while", "conditional", "call", "async-start")


@dataclass(frozen=True, kw_only=True)
class DifferenceResult:
    """A is the program asked about, B the other, of `run_b` (None: of the same run). All FLOPs and bytes are of one
    run of a program, executions multiplied; `seconds`: self time of one run on one device, the mean execution times
    executions, NaN where nobody timed them.

    `pairs`: columns PAIR_KEYS, one row an operation or pair of them, the largest difference first (of seconds, where
    both are timed, else of bytes, then of FLOPs). An operation that was taken up by another's fusion stands beside
    that one, whose numbers are in its own row. `by_status`: operations and numbers of each side by STATUSES;
    `by_change`: by CHANGES, an operation under each of its changes. `matched`: the share of FLOPs and bytes of each
    side that the other has too; None where there are none. `untold`: kernels of each side whose FLOPs nobody tells: its
    FLOPs are those of all else, None where that has none, and its share of them is the least, None where the other side
    lacks one of them.
    """

    run_b: str | None
    program_a: str
    program_b: str
    programs_a: tuple[str, ...]
    programs_b: tuple[str, ...]
    pairs: pd.DataFrame
    by_status: pd.DataFrame
    by_change: pd.DataFrame
    totals: dict[str, float | None]
    matched: dict[str, float | None]
    untold: dict[str, int]
    top: int
    notes: tuple[str, ...]

    def count(self, status: str) -> int:
        """Operations of a status, of both sides where they are in both counted once."""
        return int(self.by_status.set_index("status")["rows"].get(status, 0))

    def to_dict(self) -> dict[str, Any]:
        return {
            "program": self.program_a,
            "other_run": self.run_b,
            "other": self.program_b,
            "same": len(self.pairs) == self.count("unchanged"),
            "totals": self.totals,
            "matched": self.matched,
            "by_status": records(self.by_status),
            "by_change": records(self.by_change),
            "pairs": records(self.pairs.head(self.top)),
            "pairs_in_all": len(self.pairs),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any], programs: Programs) -> DifferenceResult:
    """The difference. Raises QuestionError where there is nothing to compare with."""
    found = listed(tables)
    first = chosen(found, options[PROGRAM.name])
    run_b, tables_b, programs_b = None, tables, programs
    if options[OTHER_RUN.name] is not None:
        run_b, tables_b, programs_b = programs.other(options[OTHER_RUN.name])
    found_b, ops = found, timed(tables)
    ops_b = ops
    if tables_b is not tables:
        found_b, ops_b = listed(tables_b), timed(tables_b)
    second = _second(found_b, options, first)
    a, b = Side(programs.of(first["files"][0])), Side(programs_b.of(second["files"][0]))
    times = (seconds_each(ops, first), seconds_each(ops_b, second))
    pairs = _pairs(a, b, times)
    return DifferenceResult(
        run_b=run_b,
        program_a=str(first["program"]),
        program_b=str(second["program"]),
        programs_a=tuple(found["program"]),
        programs_b=tuple(found_b["program"]),
        pairs=pairs[list(PAIR_KEYS)],
        by_status=_by_status(pairs),
        by_change=_by_change(pairs),
        totals=_totals(pairs),
        matched=_matched(pairs),
        top=options[TOP.name],
        untold={"a": len(a.untold), "b": len(b.untold)},
        notes=_notes(times, (len(a.untold), len(b.untold))),
    )


def _second(found: pd.DataFrame, options: dict[str, Any], first: pd.Series) -> pd.Series:
    """The program to compare with, of those that the other side has."""
    if options[OTHER.name] is not None:
        return chosen(found, options[OTHER.name])
    if options[OTHER_RUN.name] is None:
        known = ", ".join(p for p in found["program"].head(10) if p != first["program"])
        raise QuestionError(
            "nothing is chosen to compare the program with",
            expected="another run of the store (other_run)"
            + (f", or another program (other): {known}" if known else ""),
        )
    alike = found[found["program"] == first["program"]]
    alike = alike if len(alike) else found[found["name"] == first["name"]]
    return (alike if len(alike) else found).iloc[0]


def _pairs(a: Side, b: Side, times: tuple[pd.Series, pd.Series]) -> pd.DataFrame:
    forth, back = matched(a, b)
    rows = [_row(a, b, m, forth.get(m), m in forth and back.get(forth[m]) == m, forth) for m in a.units]
    rows += [_other_row(a, b, n, back.get(n)) for n in b.units if forth.get(back.get(n, -1)) != n]
    pairs = pd.DataFrame(rows, columns=[*PAIR_KEYS, *(f"{k}_{s}" for k in ("own", "count", "untold") for s in "ab")])
    for side, seconds in zip("ab", times, strict=True):
        each = pairs[f"op_{side}"].map(seconds).astype(float) if len(seconds) else np.nan
        pairs[f"seconds_{side}"] = (each * pairs[f"count_{side}"].astype(float)).where(pairs[f"own_{side}"])
        for key in ("flops", "bytes"):
            pairs[f"{key}_{side}"] = pairs[f"{key}_{side}"].astype(float)
        pairs[f"untold_{side}"] = pairs[f"untold_{side}"].eq(True)
    return _ordered(pairs)


def _ordered(pairs: pd.DataFrame) -> pd.DataFrame:
    gaps = {k: (pairs[f"{k}_b"].fillna(0.0) - pairs[f"{k}_a"].fillna(0.0)).abs() for k in _NUMBERS}
    order = pairs.assign(**{f"gap_{k}": v for k, v in gaps.items()}, same=pairs["status"].eq("unchanged"))
    timed = pairs["seconds_a"].notna().any() and pairs["seconds_b"].notna().any()
    keys = [*(["gap_seconds"] if timed else []), "gap_bytes", "gap_flops"]
    falling = [False] * len(keys)
    return order.sort_values([*keys, "same"], ascending=[*falling, True], kind="stable", ignore_index=True)


def _row(a: Side, b: Side, m: int, n: int | None, mutual: bool, forth: dict[int, int]) -> dict[str, Any]:
    """An operation of A with its match. `mutual`: it is the one whose row holds the numbers of that match."""
    if n is None:
        return _numbers(a, m, "a") | _said(a, m) | {"status": "only_a", "changes": (), "own_a": True, "own_b": False}
    changes = _changes(a, b, m, n, forth) if mutual else ("fusion",)
    told = _numbers(a, m, "a") | (_numbers(b, n, "b") if mutual else {"op_b": b.of["name"][n]})
    status = "changed" if changes else "unchanged"
    return told | _said(a, m) | {"status": status, "changes": changes, "own_a": True, "own_b": mutual}


def _other_row(a: Side, b: Side, n: int, m: int | None) -> dict[str, Any]:
    """An operation of B that is no mutual match: only there, or come out of one of A."""
    told = _numbers(b, n, "b") | _said(b, n) | {"own_a": False, "own_b": True}
    if m is None:
        return told | {"status": "only_b", "changes": ()}
    return told | {"op_a": a.of["name"][m], "status": "changed", "changes": ("fusion",)}


def _said(s: Side, i: int) -> dict[str, Any]:
    return {key: s.of[key][i] for key in ("category", "op_name", "source")}


def _numbers(s: Side, i: int, side: str) -> dict[str, Any]:
    """Name, shape, FLOPs and bytes of all executions; None where they are not known."""
    found: dict[str, Any] = {f"op_{side}": s.of["name"][i], f"shape_{side}": s.of["shape"][i]}
    found |= {f"count_{side}": s.of["count"][i], f"untold_{side}": i in s.untold}
    for key in ("flops", "bytes"):
        known = s.of[key][i] is not None and s.of["count"][i] is not None
        found[f"{key}_{side}"] = s.total(i, key) if known else None
    return found


def _changes(a: Side, b: Side, m: int, n: int, forth: dict[int, int]) -> tuple[str, ...]:
    differs = {
        "opcode": a.of["opcode"][m] != b.of["opcode"][n],
        "shape": a.bare[m] != b.bare[n],
        "layout": a.bare[m] == b.bare[n] and a.of["shape"][m] != b.of["shape"][n],
        "fusion": a.of["fusion_kind"][m] != b.of["fusion_kind"][n],
        "attributes": (a.attributes[m], a.of["given"][m]) != (b.attributes[n], b.of["given"][n]),
        "count": a.of["count"][m] != b.of["count"][n],
        "operands": not _fed_alike(a, b, m, n, forth),
    }
    if [a.inside[c] for c in a.calls[m]] != [b.inside[c] for c in b.calls[n]]:
        differs["body" if a.of["opcode"][m] in _CALLING else "fusion"] = True
    return tuple(change for change in CHANGES if differs.get(change))


def _fed_alike(a: Side, b: Side, m: int, n: int, forth: dict[int, int]) -> bool:
    """Whether the operands are each other's matches, or are made alike from the program's inputs on."""
    if len(a.operands[m]) != len(b.operands[n]):
        return False
    pairs = zip(a.operands[m], b.operands[n], strict=True)
    return all(forth.get(o) == p or a.deep[o] == b.deep[p] for o, p in pairs)


def _by_status(pairs: pd.DataFrame) -> pd.DataFrame:
    """A row for each of STATUSES."""
    rows = [_summed(pairs[pairs["status"] == status]) | {"status": status} for status in STATUSES]
    return pd.DataFrame(rows)[["status", "rows", *(f"{k}_{s}" for k in _NUMBERS for s in "ab")]]


def _by_change(pairs: pd.DataFrame) -> pd.DataFrame:
    """A row for each of CHANGES that there is, the most first."""
    some = {c: pairs[[c in found for found in pairs["changes"]]] for c in CHANGES}
    rows = [_summed(found) | {"change": change} for change, found in some.items() if len(found)]
    table = pd.DataFrame(rows, columns=["change", "rows", *(f"{k}_{s}" for k in _NUMBERS for s in "ab")])
    return table.sort_values("rows", ascending=False, kind="stable", ignore_index=True)


def _summed(pairs: pd.DataFrame) -> dict[str, Any]:
    return {"rows": len(pairs)} | {f"{k}_{s}": _sum(pairs, k, s) for k in _NUMBERS for s in "ab"}


def _sum(pairs: pd.DataFrame, key: str, side: str) -> float:
    """Of a side; NaN where nothing is known of it, or no FLOPs but those of kernels that nobody tells."""
    found = float(pairs[f"{key}_{side}"].sum(min_count=1))
    return np.nan if key == "flops" and found == 0 and pairs[f"untold_{side}"].any() else found


def _totals(pairs: pd.DataFrame) -> dict[str, float | None]:
    found = {f"{k}_{s}": _sum(pairs, k, s) for k in _NUMBERS for s in "ab"}
    return {key: None if pd.isna(value) else float(value) for key, value in found.items()}


def _matched(pairs: pd.DataFrame) -> dict[str, float | None]:
    """The share of each side's FLOPs and bytes that is in operations which the other has too."""
    both = pairs["status"].isin(("unchanged", "changed"))
    shares: dict[str, float | None] = {}
    for key in ("flops", "bytes"):
        for side in "ab":
            whole = float(pairs[f"{key}_{side}"].sum())
            known = whole > 0 and not (key == "flops" and (pairs[f"untold_{side}"] & ~both).any())
            shares[f"{key}_{side}_share"] = float(pairs[f"{key}_{side}"][both].sum()) / whole if known else None
    return shares


def _notes(times: tuple[pd.Series, pd.Series], untold: tuple[int, int]) -> tuple[str, ...]:
    notes = [
        "Operations are what a device executes: a fusion is one. They are matched by opcode, shape, what the framework "
        "calls them, where they stand among loops, what they hold and what feeds them; names and numbers of "
        "instructions count for nothing. Of several alike the n-th is matched with the n-th.",
        "FLOPs and bytes are of one run of a program, trip counts multiplied; of what runs an unknown number of times "
        "none are counted.",
    ]
    if not all(len(t) for t in times):
        which = "Neither program was" if not any(len(t) for t in times) else "One of the programs was not"
        notes.append(f"{which} timed, so differences are of bytes and FLOPs.")
    for n, name in zip(untold, ("first", "second"), strict=True):
        if n:
            notes.append(untold_said(n, f"the FLOPs of the {name} program"))
    return tuple(notes)
