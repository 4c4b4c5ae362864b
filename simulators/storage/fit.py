"""A latency and a bandwidth fitted to readings of files of several sizes.

A reader's time for a file of F bytes, while n read at once, is max(a + F / b, n F / t): a request, the bytes of its
stream, and the total that all share. Fitted to relative errors, none below 0; without `capped` there is no total. Where
n is not told the readings are taken as those of one reader: a is then the latency over the requests in flight, and b
what all of them get together. Every row is also told by a fit to the other rows alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

MOST_ROUNDS = 20
LEAST_ROWS = 3  # for two coefficients: fewer show no error


@dataclass(frozen=True)
class Row:
    """Seconds that a file takes a reader, while `at_once` read."""

    file_bytes: float
    reader_s: float
    at_once: int = 1


@dataclass(frozen=True)
class Fitted:
    """a, b and t. None: nothing of it shows in the rows."""

    request_s: float
    stream_bytes_per_s: float | None
    total_bytes_per_s: float | None = None

    def reader_s(self, file_bytes: float, at_once: int = 1) -> float:
        stream, total = self.stream_bytes_per_s, self.total_bytes_per_s
        alone = self.request_s + (0.0 if stream is None else file_bytes / stream)
        return alone if total is None else max(alone, at_once * file_bytes / total)


@dataclass(frozen=True)
class Told:
    """A row beside what the fit says of it, and what a fit to the other rows says."""

    row: Row
    modelled_s: float
    held_out_s: float

    @property
    def error(self) -> float:
        return self.modelled_s / self.row.reader_s - 1

    @property
    def held_out_error(self) -> float:
        return self.held_out_s / self.row.reader_s - 1


def fit(rows: Sequence[Row], capped: bool) -> Fitted:
    """The coefficients of least squared relative error. Where `capped`, ever fewer rows are begun as under the
    total, those of the most bytes at once, and rows change sides until each is told by the larger of the two."""
    ordered = sorted(rows, key=lambda r: (r.at_once * r.file_bytes, r.at_once))
    if not capped:
        return _line(ordered)
    starts = (np.arange(len(ordered)) < split for split in range(1, len(ordered)))
    tried = [_line(ordered), *(f for start in starts for f in _under_a_total(ordered, start))]
    return min(tried, key=lambda f: sum((f.reader_s(r.file_bytes, r.at_once) / r.reader_s - 1) ** 2 for r in rows))


def _line(rows: Sequence[Row]) -> Fitted:
    taken, size = np.array([r.reader_s for r in rows]), np.array([r.file_bytes for r in rows])
    terms = np.stack([np.ones_like(taken), size], axis=1) / taken[:, None]
    scale = np.linalg.norm(terms, axis=0)
    from scipy.optimize import nnls  # late: a fifth of a second, that other pages do not wait for

    request_s, per_byte = nnls(terms / scale, np.ones_like(taken))[0] / scale
    return Fitted(float(request_s), None if per_byte == 0 else float(1 / per_byte))


def _under_a_total(rows: Sequence[Row], alone: np.ndarray) -> Iterator[Fitted]:
    """Fits from one to the next: `alone` marks the rows that no total holds back."""
    for _ in range(MOST_ROUNDS):
        if alone.all() or not alone.any():
            return
        line = _line([r for r, free in zip(rows, alone, strict=True) if free])
        rates = np.array([r.at_once * r.file_bytes / r.reader_s for r in rows])[~alone]  # of all at once
        found = Fitted(line.request_s, line.stream_bytes_per_s, float((rates @ rates) / rates.sum()))
        yield found
        said = np.array([found.reader_s(r.file_bytes, r.at_once) for r in rows])
        now = said <= [line.reader_s(r.file_bytes) for r in rows]
        if (now == alone).all():
            return
        alone = now


def told(rows: Sequence[Row], capped: bool) -> tuple[Fitted, tuple[Told, ...]] | None:
    """The fit and each row beside it; None of fewer than LEAST_ROWS rows."""
    if len(rows) < LEAST_ROWS:
        return None
    whole = fit(rows, capped)
    others = [fit([r for r in rows if r is not row], capped) for row in rows]
    each = zip(rows, others, strict=True)
    return whole, tuple(
        Told(r, whole.reader_s(r.file_bytes, r.at_once), other.reader_s(r.file_bytes, r.at_once)) for r, other in each
    )
