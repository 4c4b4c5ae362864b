"""Modules in words: which takes most, which wastes most, which copy is slower than its like, and what is not told."""

from typing import Any

import pandas as pd

from analyzers.device.modules.modules import ModulesResult
from app.words import Table, Verdict, headline, short
from errors import format as fmt
from runs.scopes import names_of

SHOWN = 30
WAY = 60  # characters of the way to a module within a sentence
MOST = 0.5  # of a module: a part of it that holds more is named in its place; of all time without one: said first
MUCH = 0.01  # of the time: waste below that is not worth a sentence
UNTOLD = 0.05  # of the time without a module: worth a clause
NOT_KNOWN = 0.5  # of the time without a roof: what is told of waste is told of the lesser part


def dicts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of the answer, one by one."""
    return [{str(k): v for k, v in row.items()} for row in rows.to_dict("records")]


def label(row: dict[str, Any]) -> str:
    """`Decoder / Block_[0-11] / Attention_*`: the way to a module, of a deep one its end."""
    if not row["path"]:
        return str(row["name"])
    names = names_of(row["path"])
    return " / ".join(names if len(names) <= 3 else ["…", *names[-3:]])


def largest(result: ModulesResult, by: str = "seconds") -> dict[str, Any] | None:
    """The module to name: from the outermost down, as long as one module within holds more than half. None where the
    profile names none."""
    rows = result.rows[result.rows["told"]]
    at = None
    within = rows[rows["parent"] == ""]
    while len(within):
        first = dicts(within.sort_values(by, ascending=False, kind="stable").head(1))[0]
        if not first[by] > (0.0 if at is None else MOST * at[by]):
            break
        at = first
        within = rows[rows["parent"] == at["path"]]
    return at


def slowest(result: ModulesResult) -> dict[str, Any] | None:
    """Of the modules of which one copy stands out, the one whose copy exceeds the others by most."""
    rows = result.rows[result.rows["slowest_copy"].notna()]
    if not len(rows):
        return None
    excess = rows["longest_copy_seconds"] - rows["median_copy_seconds"]
    return dicts(rows.iloc[[int(excess.to_numpy(dtype=float).argmax())]])[0]


def verdict(result: ModulesResult) -> Verdict:
    """The module that takes most, the one that wastes most, and what nobody told."""
    whole = result.rows.iloc[0]
    if not whole["seconds"] > 0:
        if result.timed:
            return headline("No operation took any time.")
        return headline(
            "How long the modules of this program need cannot be told: no roof of its chip is known. Ask with "
            "--option chip=NAME."
        )
    top = largest(result)
    if top is None:
        return headline(
            "No operation of this run tells which module it came from. PyTorch writes modules with with_stack and "
            "with_modules, JAX writes name scopes."
        )
    time = "device time" if result.timed else "the least time of this program"
    takes = "together take" if top["copies"] > 1 else "takes"
    untold = 1 - result.told_seconds / whole["seconds"]
    if untold >= MOST:
        rest = f"most of the rest is in {short(label(top), WAY)}, {fmt.share(top['share'])}"
        said = [f"{fmt.share(untold)} of {time} has no module told; {rest}"]
    else:
        said = [f"{short(label(top), WAY)}{_times(top)} {takes} {fmt.share(top['share'])} of {time}"]
    said += [part for part in (_waste(result, whole), _slow(result)) if part]
    return headline(*(f"{text}." for text in (*said, *_untold(result, whole))))


def _times(row: dict[str, Any]) -> str:
    return f" ({row['copies']:,} modules)" if row["copies"] > 1 else ""


def _waste(result: ModulesResult, whole: pd.Series) -> str:
    if not result.timed or not whole["wasted_seconds"] >= MUCH * whole["seconds"]:
        return ""
    text = f"{fmt.share(whole['wasted_share'])} of device time is beyond what the roofs of its operations need"
    worst = largest(result, "wasted_seconds")
    if worst is None or not worst["wasted_seconds"] >= MUCH * whole["seconds"]:
        return text
    part = worst["wasted_seconds"] / whole["wasted_seconds"]
    top = largest(result)
    where = "there" if top and top["path"] == worst["path"] else f"in {short(label(worst), WAY)}"
    return f"{text}, {fmt.share(part)} of that {where}"


def _slow(result: ModulesResult) -> str:
    row = slowest(result)
    if row is None:
        return ""
    times = row["longest_copy_seconds"] / row["median_copy_seconds"] if row["median_copy_seconds"] > 0 else None
    more = f"{fmt.number(times)} times as long as" if times else "longer than"
    own = short(names_of(row["slowest_copy"])[-1])
    return f"Of the {row['copies']:,} alike modules {short(label(row), WAY)}, {own} takes {more} the median"


def _untold(result: ModulesResult, whole: pd.Series) -> list[str]:
    said = []
    untold = 1 - result.told_seconds / whole["seconds"]
    if UNTOLD <= untold < MOST:
        said.append(f"{fmt.share(untold)} of the time has no module told")
    if result.timed and whole["unknown_seconds"] >= NOT_KNOWN * whole["seconds"]:
        share = fmt.share(whole["unknown_seconds"] / whole["seconds"])
        said.append(f"Of {share} of the time nobody knows what is wasted: its FLOPs or bytes are not counted")
    return said


def table(result: ModulesResult) -> Table:
    """The modules from the outermost in, those below a thousandth left out."""
    rows = result.rows[result.rows["share"] >= 1e-3].head(SHOWN)
    return Table(
        ("module", "copies", "time", "share", "own", "backward", "again", "wasted", "exposed", "FLOPs"),
        tuple(
            (
                "  " * r["depth"] + r["name"],
                f"{r['copies']:,}",
                fmt.duration(r["seconds"]),
                fmt.share(r["share"]),
                fmt.duration(r["own_seconds"]),
                fmt.duration(r["backward_seconds"]),
                fmt.duration(r["recompute_seconds"]),
                fmt.duration(None if pd.isna(r["wasted_seconds"]) else r["wasted_seconds"]),
                fmt.duration(r["exposed_communication_seconds"]),
                fmt.flops(None if pd.isna(r["flops"]) else r["flops"]),
            )
            for r in dicts(rows)
        ),
        right=tuple(range(1, 10)),
    )
