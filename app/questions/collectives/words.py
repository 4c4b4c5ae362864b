"""Collectives in words: the verdict, and their rows as a terminal prints them."""

from typing import Any

import pandas as pd

from analyzers.ranks.collectives import CollectivesResult
from app.questions.as_the_ledger import as_the_ledger
from app.words import Table, Verdict, headline, sentence, short
from errors import format as fmt

MUCH = 0.1  # of collective time: a share worth a sentence


def rate(bytes_per_s: float | None) -> str:
    """`44.1 GB/s`."""
    return fmt.NO_VALUE if bytes_per_s is None or pd.isna(bytes_per_s) else f"{fmt.size(bytes_per_s)}/s"


def name(row: dict[str, Any]) -> str:
    """`all-reduce of 786 kB over model among 2 ranks`."""
    over = f" over {short(row['axis'])}" if isinstance(row["axis"], str) else ""
    ranks = "" if pd.isna(row["group_size"]) else f" among {fmt.count(int(row['group_size']), 'rank')}"
    return f"{kind_name(row['kind'])} of {_size(row['bytes'])}{over}{ranks}"


def kind_name(value: Any) -> str:
    """What a collective does; a generic kernel may serve any of them."""
    return value or "collectives of unknown kind"


def _size(value: Any) -> str:
    return "unknown size" if pd.isna(value) else fmt.size(float(value))


def verdict(result: CollectivesResult) -> Verdict:
    """How long they took, what of it was waiting, which one costs most, and how near that comes to the link."""
    if not len(result.rows):
        return headline("No collective was found.")
    if not result.measured:
        return _programmed(result)
    t, top = result.totals, result.rows.iloc[0].to_dict()
    whole = t["total_s"] or 0.0
    waited = t["wait_s"] or 0.0
    text = f"Collectives took {fmt.number(whole)} device-seconds"
    if whole and waited / whole >= MUCH:
        text += f", {fmt.whole_share(waited / whole)} of it waiting for the last rank"
    if whole and (t["unknown_s"] or 0.0) / whole >= MUCH:
        text += f", {fmt.whole_share(t['unknown_s'] / whole)} where it is not known when the other ranks came"
    sentences = [text + ".", *([_largest(top, whole, len(result.rows) == 1)] if whole else [])]
    spread = _of_many_sizes(result.rows, whole) if whole else ""
    if spread:
        sentences[1:] = [spread]
    bound = result.rows[result.rows["latency_bound"].fillna(False).astype(bool)]
    if whole and (share := float(bound["total_s"].sum()) / whole) >= MUCH:
        sentences.append(f"{sentence(fmt.whole_share(share))} went into small ones bound by latency: merge them.")
    sentences += _rates(top) if whole and not spread else []
    if whole and waited / whole >= MUCH:
        moved = (t["transfer_s"] or 0.0) - (t["unknown_s"] or 0.0)
        said = f"Data moved for {fmt.number(moved)} device-seconds; ranks waited for the last one for "
        rest = whole - waited - moved
        more = f"; of {fmt.number(rest)} it is not known which" if rest / whole >= MUCH else ""
        sentences.append(f"{said}{fmt.number(waited)} more{more}.")
    if result.ledger is not None and whole and waited / whole >= MUCH:
        said = f"This page adds up all {fmt.number(whole)} device-seconds that were profiled"
        sentences.append(as_the_ledger(result.ledger, said))
    return headline(*sentences)


def _largest(top: dict[str, Any], whole: float, alone: bool) -> str:
    share = top["total_s"] / whole
    part = "All of it" if alone else f"The largest part, {fmt.whole_share(share)},"
    return f"{part} went into {name(top)}."


def _of_many_sizes(rows: pd.DataFrame, whole: float) -> str:
    """That the largest part went into one kind whatever its size, where no row of it shows that: experts' exchanges are
    of another size each time. Empty where the longest row is one of the largest kind, and worth a sentence by itself.
    """
    key = ["kind", "axis", "group_size"]
    most = rows.assign(**{name: rows[name].astype(object).where(rows[name].notna(), None) for name in key})
    number = most.groupby(key, dropna=False, sort=False).ngroup()
    spent = most["total_s"].groupby(number).sum()
    mine = most[number == spent.idxmax()]
    first = mine.iloc[0].to_dict()
    if len(mine) < 2 or (number.iloc[0] == spent.idxmax() and first["total_s"] >= MUCH * whole):
        return ""
    what = f"{first['kind']}s" if first["kind"] else kind_name(None)
    over = f" over {short(first['axis'])}" if first["axis"] else ""
    ranks = f" among {fmt.count(int(first['group_size']), 'rank')}" if first["group_size"] else ""
    sizes = mine["bytes"].dropna().astype(float)
    of = f", of {fmt.size(sizes.min())} to {fmt.size(sizes.max())}" if sizes.nunique() > 1 else ""
    share = float(spent.max()) / whole
    part = "All of it" if len(mine) == len(rows) else f"The largest part, {fmt.whole_share(share)},"
    return f"{part} went into {what}{over}{ranks}{of}."


def _rates(top: dict[Any, Any]) -> list[str]:
    """How near the largest comes to the link."""
    if pd.isna(top["busbw_bytes_per_s"]):
        return []
    least = "" if top["matched"] else "at least "
    text = f"Its bus bandwidth is {least}{rate(top['busbw_bytes_per_s'])}"
    if not pd.isna(top["share_of_link"]):
        text += f", {fmt.whole_share(top['share_of_link'])} of what a device can send"
    return [text + "."]


def _programmed(result: CollectivesResult) -> Verdict:
    t, top = result.totals, {str(k): v for k, v in result.rows.iloc[0].to_dict().items()}
    text = f"One run of the program does {fmt.count(t['count'], 'collective')}"
    text += f" on {fmt.size(t['bytes'])} per device" if t["bytes"] is not None else ""
    if t["bound_s"]:
        part = top["bound_s"] * top["count"] / t["bound_s"]
        need = f"the links need {fmt.duration(t['bound_s'])} at least"
        return headline(f"{text}; {need}, {fmt.whole_share(part)} of it for {name(top)}.")
    return headline(text + ".")


def table(result: CollectivesResult) -> Table:
    """One line per kind, axis and size; rates by nccl-tests."""
    return Table(
        ("collective", "axis", "ranks", "bytes", "count", "total", "waiting", "transfer", "bus bandwidth", "of link"),
        tuple(
            (
                kind_name(r["kind"]),
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
