"""What was published of reading training data: measured series of readings, and limits of stores.

Facts and figures only. A series is one way to read files of several sizes, or by several hosts.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from catalog.entries import MARKS, Number, parse_numbers, read_data

FILE = "storage.json"
UNITS = {
    "latency_s": ("s", "until the first byte of a request"),
    "stream_bytes_per_s": ("bytes/s", "of one request"),
    "host_bytes_per_s": ("bytes/s", "of one host"),
    "store_requests_per_s": ("requests/s", "of the whole store"),
    "read_bytes_per_s_per_tib": ("bytes/s per TiB", "reads, of the whole store"),
    "write_bytes_per_s_per_tib": ("bytes/s per TiB", "writes, of the whole store"),
    "write_bytes_per_s": ("bytes/s", "writes, of one host"),
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Files of one size, read `at_once` by so many readers (or hosts); None: not told. `files`: read in each epoch."""

    file_bytes: int
    bytes_per_s: float
    files: int | None = None
    seconds: float | None = None
    at_once: int | None = None

    @property
    def reader_s(self) -> float:
        """Seconds that a file takes a reader; where their number is not told, all of them together."""
        return (self.at_once or 1) * self.file_bytes / self.bytes_per_s


@dataclass(frozen=True, kw_only=True)
class Series:
    """One way to read, as somebody measured it. `capped`: how many read at once is told, so that a total may show.
    `mark`: one of `catalog.MARKS`."""

    id: str
    title: str
    source: str
    mark: str
    note: str
    epochs: int
    capped: bool
    rows: tuple[Reading, ...] = field(repr=False)


@cache
def series() -> tuple[Series, ...]:
    """Every series, in the order of the data file.

    Raises ValueError for one that is not well formed: the data file is ours, so that is a defect.
    """
    data = read_data(FILE)
    found = tuple(_parse(raw, data["sources"]) for raw in data["series"])
    if len({s.id for s in found}) < len(found):
        raise ValueError(f"{FILE}: an id stands twice")
    return found


def _parse(raw: dict[str, Any], sources: dict[str, str]) -> Series:
    rows = tuple(_reading(row, raw["epochs"]) for row in raw["rows"])
    fields: dict[str, Any] = {**raw, "rows": rows, "source": sources[raw["source"]]}
    one = Series(**fields)
    if one.mark not in MARKS or not rows or (one.capped and any(row.at_once is None for row in rows)):
        raise ValueError(f"{FILE}: {one.id} is not well formed")
    return one


def _reading(row: dict[str, Any], epochs: int) -> Reading:
    """A row tells a rate, or files and the seconds that all epochs took."""
    if "bytes_per_s" in row:
        return Reading(**row)
    return Reading(**row, bytes_per_s=epochs * row["files"] * row["file_bytes"] / row["seconds"])


@cache
def stores() -> dict[str, dict[str, Number]]:
    """What is published of each store, by its name: keys of UNITS."""
    data = read_data(FILE)
    return {name: parse_numbers(name, raw, UNITS, data["sources"]) for name, raw in data["stores"].items()}
