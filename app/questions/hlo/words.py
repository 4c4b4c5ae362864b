"""A run's programs in words: which there are, which one is told of, and what was found in it."""

from typing import Any

import numpy as np

from analyzers.program.hlo import FIELDS, HloResult
from analyzers.program.rows import dicts
from app.words import Table, Verdict, headline, short
from errors import format as fmt

SHOWN = 20
IN = {"name": "names", "opcode": "opcodes", "shape": "shapes", "op_name": "op_names", "source": "sources"}


def verdict(result: HloResult) -> Verdict:
    """How many programs, which one is shown and how large it is, and what was looked for in it."""
    told = row_of(result)
    kept = fmt.count(len(result.programs), "program")
    kept += f" {'is' if len(result.programs) == 1 else 'are'} kept with this run."
    text = f"{short(result.program)} has {fmt.count(int(told['instructions']), 'instruction')}"
    if not np.isnan(told["flops"]):
        text += f" and {'at least ' if result.untold else ''}{fmt.flops(told['flops'])} in one execution"
    if not np.isnan(told["seconds"]):
        text += f"; its operations took {fmt.duration(told['seconds'])}, all devices and captures added"
    return headline(kept, *((found, f"{text}.") if (found := _search(result)) else (f"{text}.",)))


def _search(result: HloResult) -> str:
    if not result.q:
        return ""
    found = fmt.count(len(result.hits), "instruction")
    where = ", ".join(f"{result.hits_in[f]:,} in {IN[f]}" for f in FIELDS if result.hits_in[f])
    verb = "holds" if len(result.hits) == 1 else "hold"
    return f"{found} {verb} “{short(result.q)}”{f': {where}' if where else ''}."


def row_of(result: HloResult) -> dict[str, Any]:
    """The row of the program that is told of."""
    return dicts(result.programs[result.programs["program"] == result.program])[0]


def table(result: HloResult) -> Table:
    """What was found, or the programs where nothing was looked for."""
    if result.q:
        rows = (
            (
                f"{r['line']:,}",
                r["name"],
                r["opcode"],
                r["shape"],
                fmt.duration(_known(r["seconds"])),
                r["op_name"] or "",
            )
            for r in result.hits.head(SHOWN).to_dict("records")
        )
        return Table(("line", "name", "opcode", "shape", "time", "op_name"), tuple(rows), right=(0, 4))
    programs = (
        (
            r["program"],
            f"{int(r['instructions']):,}",
            fmt.flops(_known(r["flops"])),
            fmt.size(_known(r["bytes"])),
            fmt.duration(_known(r["seconds"])),
            f"{int(r['captures']):,}",
        )
        for r in result.programs.head(SHOWN).to_dict("records")
    )
    return Table(
        ("program", "instructions", "FLOPs", "bytes", "time", "captures"), tuple(programs), right=(1, 2, 3, 4, 5)
    )


def _known(value: float) -> float | None:
    return None if value is None or np.isnan(value) else float(value)
