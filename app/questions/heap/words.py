"""A program's heap in words."""

import pandas as pd

from analyzers.program.heap import HeapResult
from app.words import Table, Verdict, headline, short
from errors import format as fmt

SHOWN = 20
MUCH = 0.1  # of the temporaries at the peak: a part of one operation worth naming


def verdict(result: HeapResult) -> Verdict:
    """The peak and where it is, what it is made of, and who allocates most of it."""
    text = f"{short(result.program)} holds {fmt.size(result.peak_bytes)} on each device at its fullest"
    if result.peak_event is None:
        return headline(f"{text}: all of it from its first operation to its last, as its buffer assignment tells.")
    text += f", at {short(result.peak_op)}" if result.peak_op else ""
    text += f": {fmt.size(result.always_bytes)} all the time and {fmt.size(result.live_bytes)} of temporaries."
    room = f"Packing leaves {fmt.size(result.room_bytes)} unused." if result.room_bytes else ""
    event = f"The peak is at event {result.peak_event:,} of {result.events:,}."
    return headline(text, _most(result), room, event)


def _most(result: HeapResult) -> str:
    """The operation whose results are most of what is alive then."""
    rows = result.by_op
    if not len(rows) or not rows["at_peak_bytes"].iat[0]:
        return ""
    held = rows["at_peak_bytes"].to_numpy(dtype=float)
    share = float(held[0]) / result.live_bytes
    alone = len(rows) == 1 or held[1] < held[0]
    if alone and share >= MUCH:
        return f"Of the temporaries alive then {short(rows['op'].iloc[0])} makes {fmt.whole_share(share)}, the most."
    return f"No operation makes more than {fmt.whole_share(share)} of the temporaries alive then."


def table(result: HeapResult) -> Table:
    """The largest buffers at the peak."""
    rows = tuple(
        (
            r["name"],
            r["op"] or "",
            r["category"],
            fmt.size(float(r["bytes"])),
            span(r),
            "yes" if r["at_peak"] else "no",
            r["shape"] or "",
        )
        for r in result.buffers.head(SHOWN).to_dict("records")
    )
    return Table(("buffer", "operation", "category", "bytes", "events", "at the peak", "shape"), rows, right=(3,))


def span(row: dict) -> str:
    """`12 to 40`, or all of them."""
    if pd.isna(row["first_event"]):
        return "all"
    return f"{int(row['first_event']):,} to {int(row['last_event']):,}"
