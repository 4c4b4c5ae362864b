"""The roofline in words: what binds most of the time, what the roofs would gain, and where most of that lies."""

from typing import Any

import numpy as np
import pandas as pd

from analyzers.device.counters import together
from analyzers.device.roofline import RooflineResult
from analyzers.device.roofline_terms import TITLES
from app.words import Table, Verdict, headline, sentence, short
from errors import format as fmt

SHOWN = 24
WORTH = 0.01  # of device time: a smaller gain is called none
SAID = {  # what binds: the words after a share of device time, in the order in which they are shown
    "compute": "is compute-bound",
    "memory": "is memory-bound",
    "neither": "is bound by neither compute nor memory (latency, small or ill-shaped work)",
    "above": "goes into operations that show more than their roof allows",
    "communication": "is communication, for which no roof of the device holds",
    "asynchronous": "waits for copies that run beside it",
    "host": "moves data between host and device",
    "unknown": "goes into work whose FLOPs or bytes are not known",
}


def place_of(source: Any) -> str:
    """`model.py:88` of a path with a line; empty where nothing is known."""
    return source.replace("\\", "/").rpartition("/")[2] if isinstance(source, str) else ""


def named(row: dict[str, Any]) -> str:
    """`fusion.123 (model.py:88)`"""
    where = place_of(row.get("source"))
    return f"{row['op'] or 'unnamed'} ({where})" if where else str(row["op"] or "unnamed")


def briefly(row: dict[Any, Any]) -> str:
    """The same within a sentence: names without end are cut."""
    where = place_of(row.get("source"))
    return f"{short(row['op'] or 'unnamed')}{f' ({short(where)})' if where else ''}"


def shares(result: RooflineResult) -> dict[str, float]:
    """Share of the time by what binds, of those that take any, the largest first."""
    whole = sum(result.time_by_bound.values())
    some = {b: s / whole for b, s in result.time_by_bound.items() if s > 0} if whole else {}
    return dict(sorted(some.items(), key=lambda x: -x[1]))


def gains(points: pd.DataFrame) -> np.ndarray:
    """Seconds that each operation would save at its roof; 0 where it has none."""
    return np.nan_to_num(np.maximum(points["self_seconds"] - points["roof_seconds"], 0.0).to_numpy(dtype=float))


def per_step(result: RooflineResult, seconds: float) -> str:
    """Seconds of one device, the mean: in a step where steps are known, else in all."""
    return fmt.duration(seconds / (result.device_steps or result.devices or 1))


def verdict(result: RooflineResult) -> Verdict:
    """What binds most of the time, what the roofs would gain, and the operation with most of that."""
    some = shares(result)
    if not some and (counted := together(list(result.counters))):
        return headline(*counted, "Which operations ran no input tells: add a profile.")
    if not some:
        return headline("No operation took any time that could be held against a roof.")
    first, share = next(iter(some.items()))
    if result.device_seconds is None:
        return _modelled(result, first, share)
    text = f"{sentence(fmt.whole_share(share))} of device time {SAID[first]}"
    if result.roof_seconds is None:
        return headline(text + "; no operation has a roof that is known.")
    gain = 1 - result.roof_seconds / result.device_seconds
    roofs = "the roofs" if result.roof.name == "spec" else "the best rates of this run"
    if gain < WORTH:
        return headline(f"{text}; at {roofs} {fmt.whole_share(max(gain, 0.0))} of it would be gained.")
    what = "the operations of a step" if result.device_steps else "the operations of a device"
    text += (
        f"; at {roofs} {what} would take {per_step(result, result.roof_seconds)} instead of "
        f"{per_step(result, result.device_seconds)}."
    )
    return headline(text, _most_to_gain(result))


def _modelled(result: RooflineResult, first: str, share: float) -> Verdict:
    text = f"{sentence(fmt.whole_share(share))} of the least time of this program {SAID[first]}"
    if not result.roof_seconds:
        return headline(text + ".")
    took = fmt.duration(result.roof_seconds)
    return headline(f"{text}; at the roofs its operations take {took} a step, one after another.")


def _most_to_gain(result: RooflineResult) -> str:
    gain = gains(result.points)
    if not len(gain) or gain.max() < WORTH * (result.device_seconds or 0.0):
        return ""
    row = result.points.iloc[int(gain.argmax())].to_dict()
    return (
        f"Most is to gain at {briefly(row)}: {fmt.whole_share(row['share'])} of device time at "
        f"{fmt.whole_share(row['roof_share'])} of its roof."
    )


def told(row: dict[str, Any], result: RooflineResult) -> str:
    """One operation in a sentence or two: its time, what binds it, how near it comes, what that would be worth."""
    timed = result.device_seconds is not None
    text = f"{named(row)}: {fmt.share(row['share'])} of {'device time' if timed else 'the least time'}"
    if row["binds"] is None or pd.isna(row["roof_seconds"]):
        return f"{text}. It {SAID[row['bound']]}."
    limit = result.roof.flops if row["binds"] == "compute" else result.roof.bytes
    unit, rate = ("FLOP", row["flops_per_s"]) if row["binds"] == "compute" else ("byte", row["bytes_per_s"])
    at = "without FLOPs" if row["flops"] == 0 else f"at {fmt.number(row['flops_per_byte'])} FLOP/byte"
    text += f". {at[0].upper()}{at[1:]} {row['binds']} binds"
    if timed and limit:
        show = fmt.flops_rate if unit == "FLOP" else byte_rate
        text += f": it reaches {show(rate)} of {show(limit.per_s)} ({fmt.share(row['roof_share'])})"
        if row["bound"] == "above":
            what = "FLOPs" if unit == "FLOP" else "bytes"
            return f"{text}, more than its roof allows: its {what} are counted too high, or the roof is set too low."
        text += (
            f". At the roof it would take {fmt.duration(row['roof_seconds'])} instead of "
            f"{fmt.duration(row['self_seconds'])}, over all devices"
        )
    return text + "."


def byte_rate(per_second: float | None) -> str:
    """`1,638 GB/s`: memory bandwidths are told in GB/s."""
    if per_second is None or not np.isfinite(per_second):
        return fmt.NO_VALUE
    return f"{fmt.number(per_second / 1e9)} GB/s"


def table(result: RooflineResult) -> Table:
    """The operations that take most time."""
    return Table(
        ("operation", "source", "time", "share", "FLOP/byte", "FLOP/s", "bytes/s", "of its roof", "bound by"),
        tuple(
            (
                str(r["op"]),
                place_of(r["source"]) or fmt.NO_VALUE,
                fmt.duration(r["self_seconds"] if result.device_seconds is not None else r["roof_seconds"]),
                fmt.share(r["share"]),
                fmt.number(r["flops_per_byte"]),
                fmt.flops_rate(r["flops_per_s"]),
                byte_rate(r["bytes_per_s"]),
                fmt.share(r["roof_share"]),
                TITLES[r["bound"]],
            )
            for r in result.points.head(SHOWN).to_dict("records")
        ),
        right=(2, 3, 4, 5, 6, 7),
    )
