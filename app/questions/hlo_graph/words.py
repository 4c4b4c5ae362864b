"""The neighbourhood of an operation in words."""

from typing import Any

import pandas as pd

from analyzers.program.graph import GraphResult
from analyzers.program.rows import dicts
from app.words import Table, Verdict, headline, short
from errors import format as fmt

SHOWN = 60
KINDS = {
    "entry": "the program's entry",
    "fusion": "a fusion",
    "body": "the body of a loop",
    "condition": "the condition of a loop",
    "called": "a computation that is called",
    "applied": "what is applied to elements",
}


def verdict(result: GraphResult) -> Verdict:
    """What the operation is, how often it runs and for how long, where it lies, and what feeds it."""
    row = centre(result)
    article = "an" if str(row["opcode"])[:1] in "aeiou" else "a"
    text = f"{short(result.op)} is {article} {short(row['opcode'])} of {short(result.program)}"
    if pd.notna(row["seconds"]):
        text += f" that took {fmt.duration(row['seconds'])}, all devices and captures added"
    if result.computation_kind != "entry":
        text += f"; it lies in {KINDS[result.computation_kind]}"
        if result.called_by:
            text += f", of {short(result.called_by[0])}"
            others = len(result.called_by) - 1
            text += f" and {fmt.count(others, 'more')}" if others else ""
    return headline(f"{text}.", *_drawn(result, row))


def _drawn(result: GraphResult, row: dict[str, Any]) -> tuple[str, str]:
    makers = result.edges[result.edges["user"] == result.op]["maker"].nunique() + int(row["operands_left"])
    users = result.edges[result.edges["maker"] == result.op]["user"].nunique() + int(row["users_left"])
    text = f"{_many(makers, 'operation feeds', 'operations feed')} it, {_many(users, 'uses', 'use')} what it makes."
    more = ""
    if result.more:
        more = f"{_many(result.more, 'further one', 'further ones')} within {_levels(result)} "
        more += f"{'is' if result.more == 1 else 'are'} not drawn."
    return text, more


def _levels(result: GraphResult) -> str:
    return fmt.count(result.levels, "level")


def _many(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"


def centre(result: GraphResult) -> dict[str, Any]:
    """The row of the operation asked about."""
    return dicts(result.nodes[result.nodes["op"] == result.op])[0]


def table(result: GraphResult) -> Table:
    """The operations, what feeds it first."""
    rows = result.nodes.sort_values(["distance", "row"], kind="stable").head(SHOWN)
    return Table(
        ("level", "operation", "opcode", "shape", "result", "time"),
        tuple(
            (
                f"{int(r['distance']):+d}" if r["distance"] else "0",
                r["op"],
                r["opcode"],
                r["shape"],
                fmt.size(None if pd.isna(r["result_bytes"]) else float(r["result_bytes"])),
                fmt.duration(None if pd.isna(r["seconds"]) else float(r["seconds"])),
            )
            for r in rows.to_dict("records")
        ),
        right=(0, 4, 5),
    )
