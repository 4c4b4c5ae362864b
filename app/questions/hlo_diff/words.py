"""The difference of two programs in words."""

from typing import Any

import numpy as np
import pandas as pd

from analyzers.program.difference import DifferenceResult
from analyzers.program.rows import dicts
from app.words import Table, Verdict, headline, short
from errors import format as fmt

SHOWN = 24
KINDS_SAID = 3
ALIKE = 0.005  # two amounts that differ by less are said to be alike


def names(result: DifferenceResult) -> tuple[str, str]:
    """What the two are called: by program, with the other's run where that is another."""
    if result.run_b is None:
        return result.program_a, result.program_b
    return result.program_a, f"{result.program_b} of {result.run_b}"


def verdict(result: DifferenceResult) -> Verdict:
    """Whether they differ, how many operations did in what, and which moves and computes how much more."""
    a, b = short(result.program_a), short(result.program_b)
    b += f" of {short(result.run_b)}" if result.run_b is not None else ""
    if len(result.pairs) == result.count("unchanged"):
        count = fmt.count(len(result.pairs), "operation")
        return headline(f"{a} and {b} are the same program: {count}, none of them changed.")
    said = [f"{result.count('unchanged'):,} operations are unchanged", f"{result.count('changed'):,} changed"]
    said.append(f"{result.count('only_a'):,} are only in the first program")
    text = f"{', '.join(said)} and {result.count('only_b'):,} only in the second, {b}."
    return headline(text, _amounts(result), _kept(result), _kinds(result))


def _kinds(result: DifferenceResult) -> str:
    said = [f"{r['change']} of {r['rows']:,}" for r in result.by_change.head(KINDS_SAID).to_dict("records")]
    return f"What changed most often: {', '.join(said)}." if said else ""


def _amounts(result: DifferenceResult) -> str:
    """What the second takes, moves or computes, as against the first."""
    t = result.totals
    for key, verb, words in (
        ("seconds", "takes", fmt.duration),
        ("bytes", "moves", fmt.size),
        ("flops", "does", fmt.flops),
    ):
        first, second = t[f"{key}_a"], t[f"{key}_b"]
        if first and second and abs(second - first) > ALIKE * max(first, second):
            least = ["at least " if key == "flops" and result.untold[s] else "" for s in "ab"]
            return f"In one run the second {verb} {least[1]}{words(second)}, the first {least[0]}{words(first)}."
    return ""


def _kept(result: DifferenceResult) -> str:
    """The least share of either side that the other has too."""
    least = {k: _least(result, k) for k in ("flops", "bytes")}
    said = [f"{fmt.whole_share(v)} of the {'FLOPs' if k == 'flops' else k}" for k, v in least.items() if v is not None]
    return f"Operations in both hold {' and '.join(said)}, at least." if said else ""


def _least(result: DifferenceResult, key: str) -> float | None:
    found = {s: result.matched[f"{key}_{s}_share"] for s in "ab"}
    if key == "flops" and any(v is None and result.untold[s] for s, v in found.items()):
        return None
    known = [v for v in found.values() if v is not None]
    return min(known) if known else None


def table(result: DifferenceResult) -> Table:
    """The largest differences."""
    rows = result.pairs[result.pairs["status"] != "unchanged"].head(SHOWN)
    return Table(
        ("status", "in the first", "in the second", "bytes", "bytes", "FLOPs", "FLOPs", "op_name"),
        tuple(
            (
                status(r),
                _text(r["op_a"]),
                _text(r["op_b"]),
                *(fmt.size(_known(r[f"bytes_{s}"])) for s in "ab"),
                *(fmt.flops(_known(r[f"flops_{s}"])) for s in "ab"),
                _text(r["op_name"]),
            )
            for r in dicts(rows)
        ),
        right=(3, 4, 5, 6),
    )


def status(row: dict[str, Any]) -> str:
    """`layout, operands` of what changed, else the status."""
    alone = {"only_a": "only in the first", "only_b": "only in the second"}
    return ", ".join(row["changes"]) or alone.get(str(row["status"]), str(row["status"]))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _known(value: float) -> float | None:
    return None if pd.isna(value) or not np.isfinite(value) else float(value)
