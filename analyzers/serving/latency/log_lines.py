"""The lines of logs that tell why a server failed, or why requests did: those that name a cause first, each once."""

import re

import pandas as pd

from runs.tables import Tables, frame

MOST = 5
COLUMNS = ["text", "cause", "severity", "lines", "first_ns", "source"]
_RANK = {"fatal": 0, "error": 0, "warning": 2, "info": 3}  # a line that states none may be of an error: before warnings
_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+")  # times, processes and addresses: lines alike but for these are one


def log_lines(tables: Tables) -> pd.DataFrame:
    """At most MOST kinds of line, columns COLUMNS: `text` as first written, `lines` alike in all, `first_ns` null where
    none tells its time."""
    rows = frame(tables, "evidence", ["ts_ns", "cause", "severity", "text", "order", "source"])
    rows = rows[rows["text"].notna()].sort_values(["source", "order"], kind="stable", ignore_index=True)
    if not len(rows):
        return pd.DataFrame(columns=COLUMNS)
    rows["kind"] = rows["text"].astype(str).map(lambda text: _CHANGING.sub("#", text))
    rows["rank"] = rows["severity"].astype(object).map(_RANK).fillna(1).astype(int)
    found = rows.groupby("kind", sort=False).agg(
        text=("text", "first"),
        cause=("cause", "first"),
        severity=("severity", "first"),
        lines=("text", "size"),
        first_ns=("ts_ns", "min"),
        source=("source", "first"),
        rank=("rank", "min"),
    )
    found["unnamed"] = found["cause"].isna()
    found = found.sort_values(["unnamed", "rank"], kind="stable", ignore_index=True)
    return found[COLUMNS].head(MOST)


def said(lines: pd.DataFrame) -> str:
    """The foremost line as a clause, with how often it stands there."""
    first = lines.iloc[0]
    text = " ".join(str(first["text"]).split())[:240]
    return f"the log says ({_times(int(first['lines']))}): {text}"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"
