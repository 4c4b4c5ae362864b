"""A recorded history of device memory in words, and who held it as a terminal prints it."""

import pandas as pd

from analyzers.device.memory import MemoryResult
from analyzers.device.snapshot.answer import Snapshot, dicts
from analyzers.device.snapshot.stacks import UNRECORDED
from app.words import Table, short
from errors import format as fmt

SHOWN = 20
PHASES: dict[str, str] = {
    "forward": "Forward pass",
    "backward": "Backward pass",
    "optimizer": "Optimiser",
    "communication": "Collectives",
    "elsewhere": "Other code",
    "unrecorded": "Calls not recorded",
}


def sentences(result: MemoryResult) -> tuple[str, ...]:
    """What was in use at the peak, of how much, who held most of it, what failed, and what grew."""
    history = _history(result)
    text = f"{'At the peak' if history.recorded else 'At the snapshot'} {fmt.size(history.peak_bytes)}"
    if history.reserved_bytes:
        text += f" of the {fmt.size(history.reserved_bytes)} that PyTorch had reserved"
    if result.limit_bytes:
        text += f", on a device of {fmt.size(result.limit_bytes)},"
    peak = "" if history.recorded else "No history was recorded, so the peak is not known."
    return f"{text} were in use{_holder(history)}.", peak, _refused(history), *_growth(history)


def _history(result: MemoryResult) -> Snapshot:
    assert result.snapshot is not None
    return result.snapshot


def _holder(history: Snapshot) -> str:
    """The line that held most; what nobody recorded is told first where it is more than any line's."""
    lines = history.by_line()
    told = lines[lines["where"] != UNRECORDED]
    unknown = history.unrecorded_bytes / max(history.peak_bytes, 1)
    if not len(told):
        return ", all allocated by calls that nobody recorded" if unknown else ""
    first = told.iloc[0]
    held = f"{fmt.whole_share(first['bytes'] / history.peak_bytes)} of it"
    if unknown * history.peak_bytes > first["bytes"]:
        dark = f"{fmt.whole_share(unknown)} of it from calls that nobody recorded"
        return f", {dark}, and {held} from {short(first['where'])}, the most of any line"
    return f", {held} from {short(first['where'])}"


def _refused(history: Snapshot) -> str:
    if not len(history.refused):
        return ""
    last = history.refused.iloc[-1]
    where = f" at {short(last['where'])}" if isinstance(last["where"], str) else ""
    where += f" on device {int(last['device'])} of {short(str(last['host']))}" if len(history.devices) > 1 else ""
    number = len(history.refused)
    if number == 1:
        return f"An allocation of {fmt.size(int(last['asked_bytes']))}{where} failed."
    return f"{number:,} allocations failed, the last of {fmt.size(int(last['asked_bytes']))}{where}."


def _growth(history: Snapshot) -> tuple[str, ...]:
    """Growth between equal points, where it passes the floor; a leak is not claimed, only what looks like one."""
    if not (history.grows and history.points.equal):
        return ()
    most = dicts(history.growth.sort_values("grew_bytes", ascending=False, kind="stable").head(1))[0]
    text = (
        f"From the first low point to the last what stays in use grew by {fmt.size(history.grew_bytes)}, that of "
        f"{short(most['where'])} by {fmt.size(most['grew_bytes'])}"
    )
    steady = f"Every one of {history.points.rounds} low points lies above the one before, as with a leak."
    return f"{text}.", steady if history.points.steady else ""


def table(result: MemoryResult) -> Table:
    """The lines that held most at the peak."""
    rows = tuple(
        (
            row["where"],
            PHASES[row["phase"]],
            fmt.size(row["bytes"]),
            fmt.share(row["share"]),
            f"{row['blocks']:,}",
            fmt.size(row["freed_bytes"]),
        )
        for row in dicts(_history(result).holders.head(SHOWN))
    )
    return Table(("line", "phase", "held", "share", "blocks", "freed later"), rows, right=(2, 3, 4, 5))


def accounts(history: Snapshot) -> pd.DataFrame:
    """What was reserved at the snapshot, by what it was: they add up."""
    texts = {
        "held": "In use: asked for, and not freed",
        "rounding": "Rounding: what blocks in use take beyond what was asked for",
        "fragmented": "Fragmentation: free, in segments that hold something",
        "cached": "Cache: segments that hold nothing (torch.cuda.empty_cache gives them back)",
    }
    whole = max(history.end["reserved"], 1)
    return pd.DataFrame(
        [{"What": text, "Bytes": history.end[k], "Share": history.end[k] / whole * 100} for k, text in texts.items()]
    )
