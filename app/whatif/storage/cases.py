"""Published readings, each beside what a latency and a bandwidth make of it."""

from functools import cache
from typing import Any

from catalog.storage import Series, series
from simulators.storage.fit import Fitted, Row, Told, told

EXPLAINED = 0.15  # the largest error of a row left out up to which a line tells a series


@cache
def worked() -> tuple[dict[str, Any], ...]:
    """One entry a series: what was fitted, its worst errors, and each row measured and modelled."""
    return tuple(_case(one) for one in series())


def _case(one: Series) -> dict[str, Any]:
    rows = [Row(r.file_bytes, r.reader_s, r.at_once or 1) for r in one.rows]
    found = told(rows, one.capped)
    fitted, beside = found if found is not None else (None, (None,) * len(rows))
    worst = None if found is None else max(abs(t.error) for t in found[1])
    held_out = None if found is None else max(abs(t.held_out_error) for t in found[1])
    return {
        "id": one.id,
        "title": one.title,
        "source": one.source,
        "mark": one.mark,
        "note": one.note,
        "fit": None if fitted is None else _coefficients(fitted),
        "worst_error": worst,
        "worst_held_out_error": held_out,
        "explained": None if held_out is None else held_out <= EXPLAINED,
        "rows": [
            {
                "file_bytes": r.file_bytes,
                "files": r.files,
                "at_once": r.at_once,
                "measured_s": r.seconds,
                "measured_bytes_per_s": r.bytes_per_s,
                **_beside(t, r.bytes_per_s, r.seconds),
            }
            for r, t in zip(one.rows, beside, strict=True)
        ],
    }


def _coefficients(fitted: Fitted) -> dict[str, float | None]:
    return {
        "request_s": fitted.request_s,
        "stream_bytes_per_s": fitted.stream_bytes_per_s,
        "total_bytes_per_s": fitted.total_bytes_per_s,
    }


def _beside(t: Told | None, bytes_per_s: float, seconds: float | None) -> dict[str, float | None]:
    """Of the model: the time where one was printed, the rate, and by how much the time is off."""
    if t is None:
        names = ("modelled_s", "modelled_bytes_per_s", "error", "held_out_error")
        return dict.fromkeys(names)
    longer = 1 + t.error
    return {
        "modelled_s": None if seconds is None else seconds * longer,
        "modelled_bytes_per_s": bytes_per_s / longer,
        "error": t.error,
        "held_out_error": t.held_out_error,
    }
