"""The tables of the goodput page: both rule sets side by side, and the attempts."""

import pandas as pd
import streamlit as st

from analyzers.lost.goodput.buckets import ASYNC, BUCKETS, CUSTOM, amount
from analyzers.lost.goodput.result import GoodputResult
from app.components.columns import Like, draw_table
from app.questions.goodput.words import LIBRARY_MEANING, meaning, title


def side_by_side(exact: GoodputResult | None, library: GoodputResult | None) -> pd.DataFrame:
    """One row per amount: bucket, title, exact_s, ml_goodput_s, difference_s, and what each of the rules counts. What
    neither has is left out; custom events have a row each."""
    rows = []
    for bucket in ("total", "productive", *BUCKETS):
        names = sorted({*_names(exact), *_names(library)}) if bucket == CUSTOM else [""]
        for name in names:
            ours, theirs = _amount(exact, bucket, name), _amount(library, bucket, name)
            if ours or theirs:
                rows.append(
                    {
                        "bucket": f"{bucket}.{name}" if name else bucket,
                        "title": _title(bucket, name),
                        "exact_s": ours,
                        "ml_goodput_s": theirs,
                        "difference_s": None if None in (ours, theirs) else ours - theirs,
                        "exact_counts": meaning(bucket),
                        "ml_goodput_counts": LIBRARY_MEANING[bucket],
                    }
                )
    columns = ["bucket", "title", "exact_s", "ml_goodput_s", "difference_s", "exact_counts", "ml_goodput_counts"]
    table = pd.DataFrame(rows, columns=columns)
    return table.astype({c: "Float64" for c in ("exact_s", "ml_goodput_s", "difference_s")})


def _title(bucket: str, name: str) -> str:
    if name:
        return f"Event {name}"
    return {"total": "Time held", "productive": "Kept steps"}.get(bucket) or title(bucket)


def _names(result: GoodputResult | None) -> list[str]:
    return list(result.badput_s.get(CUSTOM, {})) if result else []


def _amount(result: GoodputResult | None, bucket: str, name: str) -> float | None:
    if result is None:
        return None
    if bucket in ("total", "productive"):
        return result.total_s if bucket == "total" else result.productive_s
    if bucket == ASYNC:
        return result.data_loading_async_s
    return float(result.badput_s[CUSTOM].get(name, 0.0)) if name else amount(result.badput_s, bucket)


def show_side_by_side(table: pd.DataFrame) -> None:
    """The amounts as a table."""
    shown = pd.DataFrame(
        {
            "Amount": table["title"],
            "Exact (s)": table["exact_s"],
            "ml-goodput (s)": table["ml_goodput_s"],
            "Difference (s)": table["difference_s"],
            "Exact counts": table["exact_counts"],
            "ml-goodput counts": table["ml_goodput_counts"],
        }
    )
    draw_table(
        shown,
        hide_index=True,
        height=35 * (len(shown) + 1) + 3,
        columns={
            "Amount": st.column_config.TextColumn(width="medium"),
            "Difference (s)": Like("Difference (s)", "Exact less ml-goodput."),
            "Exact counts": st.column_config.TextColumn(width="large"),
            "ml-goodput counts": st.column_config.TextColumn(width="large"),
        },
    )


def show_attempts(attempts: pd.DataFrame) -> None:
    """One row per attempt, largest badput named."""
    seconds = attempts[[b for b in BUCKETS if b in attempts]].astype(float)
    largest, most = seconds.idxmax(axis=1), seconds.max(axis=1)
    shown = pd.DataFrame(
        {
            "Attempt": attempts["attempt"],
            "From (UTC)": pd.to_datetime(attempts["start_ns"]),
            "To (UTC)": pd.to_datetime(attempts["end_ns"]),
            "Ended": attempts["outcome"],
            "First step": attempts["first_step"],
            "Last step": attempts["last_step"],
            "Goodput": attempts["goodput_share"] * 100,
            "Held (s)": attempts["total_s"],
            "Kept steps (s)": attempts["productive_s"],
            "Largest badput": [title(b) if s > 0 else "" for b, s in zip(largest, most, strict=True)],
            "of (s)": most,
        }
    )
    draw_table(
        shown,
        hide_index=True,
        height=min(35 * (len(shown) + 1) + 3, 420),
        columns={
            "Goodput": st.column_config.ProgressColumn(
                min_value=0, max_value=100, format="%.3g %%", help="Kept steps as a part of the time held."
            ),
            "From (UTC)": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss"),
            "To (UTC)": st.column_config.DatetimeColumn(
                format="YYYY-MM-DD HH:mm:ss", help="The job's own end, or, where it was interrupted, its next start."
            ),
        },
    )
