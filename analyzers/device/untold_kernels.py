"""Kernels whose FLOPs nobody tells: calls that no compiler looks into, and whose authors state none."""

from typing import Any

import pandas as pd

from analyzers.device.op_units import WORTH_A_NOTE
from errors import format as fmt


def untold(ops: pd.DataFrame, all_bytes: Any) -> pd.Series:
    """Which of the operations (category, flops, bytes) are kernels whose FLOPs nobody tells, of more than a thousandth
    of `all_bytes`."""
    blind = ops["category"].astype(object).eq("custom-call") & ~(ops["flops"] > 0).fillna(False).astype(bool)
    return blind & (ops["bytes"] > WORTH_A_NOTE * all_bytes).fillna(False).astype(bool)


def untold_of_program(rows: pd.DataFrame) -> pd.Series:
    """Which instructions of a program (executed, category, flops, bytes) are such: held against what it moves once."""
    executed = rows["executed"].astype(bool)
    return executed & untold(rows, rows["bytes"].where(executed).sum())


def untold_said(count: int, what: str) -> str:
    """A sentence on so many of them; `what` is told without theirs."""
    return (
        f"Of {fmt.count(count, 'custom call')} nobody tells the FLOPs (such as Pallas kernels without a cost "
        f"estimate): {what} are without them."
    )
