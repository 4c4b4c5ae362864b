"""Stragglers in words: who makes the others wait, since when, why and at what cost; or what else it is."""

from typing import Any

import pandas as pd

from analyzers.ranks.stragglers import StragglersResult
from app.words import Table, Verdict, headline, short
from errors import format as fmt

CAUSES = {
    "compute": "computing",
    "other_communication": "other communication",
    "copies": "copies",
    "input": "input",
    "garbage_collection": "garbage collection",
    "launch": "late launches",
    "idle": "idle",
    "unknown": "not known",
}
BECAUSE = {
    "compute": "its device computes longer than its peers'",
    "other_communication": "it spends longer in other communication, such as waiting for a pipeline neighbour",
    "copies": "it copies memory for longer",
    "input": "it waits for its input",
    "garbage_collection": "its host collects garbage",
    "launch": "its device idles while its host is busy and launches late",
    "idle": "its device idles, and nothing tells why",
}
VERDICTS = {
    "none": "No straggler",
    "persistent": "Straggler",
    "rotating": "Rotating",
    "one_step": "One step only",
    "network": "Slow network",
    "imbalance": "Uneven work",
    "unknown": "Not known",
}


def rank_name(row: dict[str, Any]) -> str:
    """`Rank 1 (vm/1)`; without its host where it has none or is named by it."""
    host, label = short(row["host"] or ""), str(row["rank"])
    return f"Rank {label}" + (f" ({host})" if host and not label.startswith(host) else "")


def within(row: dict[Any, Any]) -> str:
    """The same within a sentence; the host's name as it is."""
    name = rank_name(row)
    return name[:1].lower() + name[1:]


def verdict(result: StragglersResult) -> Verdict:
    """One statement: the answer, its largest loss and what that is worth."""
    if result.verdict == "unknown":
        return headline(f"No straggler can be named: {result.why}.", _slowdown(result))
    return {
        "persistent": _persistent,
        "rotating": _rotating,
        "one_step": _one_step,
        "network": _network,
        "imbalance": _imbalance,
        "none": _none,
    }[result.verdict](result)


def _cost(result: StragglersResult) -> str:
    return fmt.chip_time(result.cost_chip_seconds)


def _gain(result: StragglersResult) -> tuple[str, str]:
    """What mending would give back, and what that rests on; a range where a part is not from a profile."""
    found = result.gain
    if found is None:
        return "", ""
    low, likely, high = (fmt.chip_time(v) for v in (found.low, found.likely, found.high))
    were = "was" if found.steps == 1 else "were"
    beside = f" {fmt.count(found.steps, 'step')} beside {were} not compared." if low != high else ""
    return (
        f"Mending it would give back {likely}{f' ({low} to {high})' if low != high else ''}.",
        f"What mending gives back includes the late rank's own excess.{beside}",
    )


def _persistent(result: StragglersResult) -> Verdict:
    worst = result.ranks.iloc[0].to_dict()
    others = len(result.ranks) - 1
    lag = fmt.duration(worst["lag_s"])
    times = worst["lag_s"] / result.step_s if result.step_s else 0.0
    size = f" ({fmt.number(times, 2)} usual steps)" if times > 1 else f" ({fmt.whole_share(times)} of a usual step)"
    late = f"arrives {lag} late{size if times else ''} on average in steps {worst['first_step']:,} to "
    late += f"{worst['last_step']:,}"
    late += f", in 1 of {worst['every']}" if worst["every"] > 1 else ""
    why = f"Why: {BECAUSE[worst['cause']]}." if worst["cause"] in BECAUSE else ""
    gain, rests_on = _gain(result)
    if others:
        hosts = result.ranks["host"].unique()
        same = f", all on {short(hosts[0])}" if len(hosts) == 1 and hosts[0] else ""
        text = f"{fmt.count(others + 1, 'rank')} make the others wait{same}: {within(worst)} {late}."
        return headline(text, gain, why, f"Together they cost {_cost(result)} of waiting.", rests_on)
    text = f"{rank_name(worst)} makes the others wait: it {late}."
    return headline(text, gain, why, f"That cost {_cost(result)} of waiting.", rests_on)


def _rotating(result: StragglersResult) -> Verdict:
    return headline(
        f"No rank is slow, but they are late in turn: {result.why}.",
        f"That cost {_cost(result)} of waiting.",
        "Look for what hosts do now and then, such as garbage collection or saving.",
    )


def _one_step(result: StragglersResult) -> Verdict:
    worst = result.ranks.iloc[0].to_dict()
    more = f" and {len(result.ranks) - 1} more" if len(result.ranks) > 1 else ""
    lag = fmt.duration(worst["lag_s"])
    where = f"step {worst['first_step']:,}"
    was = f"was {lag} late" if not more else f"were late, up to {lag},"
    return headline(
        f"One step only, nothing persistent: {within(worst)}{more} {was} in {where}.",
        f"That cost {_cost(result)} of waiting.",
    )


def _network(result: StragglersResult) -> Verdict:
    return headline(f"The network is slow, not a rank: {result.why}.", f"That cost {_cost(result)}.")


def _imbalance(result: StragglersResult) -> Verdict:
    share = f", {fmt.whole_share(result.waiting_share)} of the time" if result.waiting_share else ""
    cost = f"Waiting for the last cost {_cost(result)}{share}."
    return headline(f"The work is uneven, no rank is slow: {result.why}.", cost)


def _none(result: StragglersResult) -> str:
    if result.apart_s is None:
        return "No rank is a straggler."
    within = fmt.duration(result.apart_s)
    share = result.apart_s / result.step_s if result.step_s and result.apart_s is not None else 0.0
    if not result.apart_s:
        return "Nothing is wrong with these ranks: none waits for another while its device has nothing to compute."
    if share < 0.05:
        return f"Nothing is wrong with these ranks: they arrive within {within} of each other."
    return (
        f"No rank is a straggler: they arrive within {within} of each other, {fmt.whole_share(share)} of a step, "
        "but each of them in turn."
    )


def _slowdown(result: StragglersResult) -> str:
    stretches = result.changes.stretches
    if len(stretches) < 2 or not result.slowdown_chip_seconds:
        return ""
    slow = stretches.loc[stretches["median_s"].idxmax()]
    return (
        f"The job itself was slowest in steps {int(slow['first_step']):,} to {int(slow['last_step']):,}, at "
        f"{fmt.duration(float(slow['median_s']))} a step; slow stretches cost "
        f"{fmt.chip_time(result.slowdown_chip_seconds)}."
    )


def table(result: StragglersResult) -> Table:
    """The ranks named; where none is, those with most blame."""
    if len(result.ranks):
        return Table(
            ("rank", "host", "blame", "late by", "of steps", "steps", "cause", "confidence", "gain"),
            tuple(
                (
                    str(r["rank"]),
                    str(r["host"]),
                    fmt.duration(r["blame_s"]),
                    fmt.duration(r["lag_s"]),
                    fmt.share(r["share_of_steps"]),
                    _steps(r["first_step"], r["last_step"], r["every"]),
                    CAUSES[r["cause"]],
                    fmt.share(r["confidence"]),
                    fmt.chip_time(r["gain_chip_seconds"]),
                )
                for r in result.ranks.head(40).to_dict("records")
            ),
            right=(2, 3, 4, 5, 7, 8),
        )
    rows = result.every[result.every["blame_all_s"].notna()].sort_values("blame_all_s", ascending=False, kind="stable")
    return Table(
        ("rank", "host", "blame over all steps", "late by, mean", "late in steps"),
        tuple(
            (
                str(r["rank"]),
                str(r["host"]),
                fmt.duration(r["blame_all_s"]),
                _signed(r["lag_s"]),
                fmt.share(r["share_of_steps"]),
            )
            for r in rows.head(10).to_dict("records")
        ),
        right=(2, 3, 4),
    )


def _steps(first: int, last: int, every: int) -> str:
    """`44 to 55`, with how often where it is not all of them."""
    return f"{first:,} to {last:,}" + (f", 1 in {every}" if every > 1 else "")


def _signed(value: Any) -> str:
    return fmt.NO_VALUE if pd.isna(value) else fmt.duration(float(value))
