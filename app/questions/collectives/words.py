"""Collectives in words: the verdict, and their rows as a terminal prints them."""

from typing import Any

import pandas as pd

from analyzers.ranks.collectives import CollectivesResult
from app.questions.as_the_ledger import as_the_ledger
from app.words import Table
from errors import format as fmt

MUCH = 0.1  # of collective time: a share worth a sentence


def rate(bytes_per_s: float | None) -> str:
    """`44.1 GB/s`."""
    return fmt.NO_VALUE if bytes_per_s is None or pd.isna(bytes_per_s) else f"{fmt.size(bytes_per_s)}/s"


def name(row: dict[str, Any]) -> str:
    """`all-reduce of 786 kB over model among 2 ranks`."""
    over = f" over {row['axis']}" if isinstance(row["axis"], str) else ""
    ranks = "" if pd.isna(row["group_size"]) else f" among {fmt.count(int(row['group_size']), 'rank')}"
    return f"{row['kind']} of {_size(row['bytes'])}{over}{ranks}"


def _size(value: Any) -> str:
    return "unknown size" if pd.isna(value) else fmt.size(float(value))


def verdict(result: CollectivesResult) -> str:
    """How long they took, what of it was waiting, which one costs most and how near it comes to the link."""
    if not len(result.rows):
        return "No collective was found."
    if not result.measured:
        return _programmed(result)
    t, top = result.totals, result.rows.iloc[0].to_dict()
    whole = t["total_s"] or 0.0
    waited = t["wait_s"] or 0.0
    text = f"Collectives took {fmt.number(whole)} device-seconds"
    if whole and waited / whole >= MUCH:
        text = f"Collectives moved data for {fmt.number(whole - waited)} device-seconds; ranks waited for the last one "
        text += f"in them for {fmt.number(waited)} more"
    if whole and (t["unknown_s"] or 0.0) / whole >= MUCH:
        text += f", {fmt.whole_share(t['unknown_s'] / whole)} in first steps of captures, where it is not known"
    sentences = [text + ".", *([_largest(top, whole, len(result.rows) == 1)] if whole else [])]
    bound = result.rows[result.rows["latency_bound"].fillna(False).astype(bool)]
    if whole and (share := float(bound["total_s"].sum()) / whole) >= MUCH:
        sentences.append(
            f"{fmt.whole_share(share)} went into small ones bound by latency, not bandwidth: merging them would pay."
        )
    if result.ledger is not None and whole and waited / whole >= MUCH:
        said = f"This page adds up all {fmt.number(whole)} device-seconds that were profiled"
        sentences.append(as_the_ledger(result.ledger, said))
    return " ".join(sentences)


def _largest(top: dict[str, Any], whole: float, alone: bool) -> str:
    share = top["total_s"] / whole
    part = "All of it" if alone else f"The largest part, {fmt.whole_share(share)},"
    text = f"{part} went into {name(top)}"
    if not pd.isna(top["busbw_bytes_per_s"]):
        least = "" if top["matched"] else "at least "
        text += f": {least}{rate(top['busbw_bytes_per_s'])} bus bandwidth"
        if not pd.isna(top["share_of_link"]):
            text += f", {fmt.whole_share(top['share_of_link'])} of what a device can send"
    return text + "."


def _programmed(result: CollectivesResult) -> str:
    t, top = result.totals, result.rows.iloc[0].to_dict()
    text = f"One run of the program does {fmt.count(t['count'], 'collective')}"
    text += f" on {fmt.size(t['bytes'])} per device" if t["bytes"] is not None else ""
    if t["bound_s"]:
        part = top["bound_s"] * top["count"] / t["bound_s"]
        need = f"the links need {fmt.duration(t['bound_s'])} at least"
        return f"{text}; {need}, {fmt.whole_share(part)} of it for {name(top)}."
    return text + "."


def table(result: CollectivesResult) -> Table:
    """One line per kind, axis and size; rates by nccl-tests."""
    return Table(
        ("collective", "axis", "ranks", "bytes", "count", "total", "waiting", "transfer", "bus bandwidth", "of link"),
        tuple(
            (
                r["kind"],
                r["axis"] if isinstance(r["axis"], str) else fmt.NO_VALUE,
                fmt.NO_VALUE if pd.isna(r["group_size"]) else str(int(r["group_size"])),
                _size(r["bytes"]),
                f"{int(r['count']):,}",
                _seconds(r["total_s"]),
                _seconds(r["wait_s"]),
                _seconds(r["transfer_median_s"] if result.measured else r["bound_s"]),
                rate(r["busbw_bytes_per_s"]),
                fmt.NO_VALUE if pd.isna(r["share_of_link"]) else fmt.share(r["share_of_link"]),
            )
            for r in result.rows.head(40).to_dict("records")
        ),
        right=tuple(range(2, 10)),
    )


def _seconds(value: Any) -> str:
    return fmt.NO_VALUE if pd.isna(value) else fmt.duration(float(value))
