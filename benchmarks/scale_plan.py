"""What captures of many hosts, and a history of many runs, take: bytes, seconds, dollars, from measured constants.

    python -m benchmarks.scale_plan        # the tables of docs/scale.md

Pure arithmetic: each constant of `MEASURED` was measured, `PRICES` are there to be replaced, and all else follows in
proportion. Where proportion is known to end, docs/scale.md says so.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HOUR_S, YEAR_S = 3600.0, 365.25 * 86_400
GB = 1e9
PIECE_BYTES = 8 << 20  # of a file that one request asks for
TIMES_READ = 2  # each byte of an input in a bucket: once to know it, once for its rows
PUTS_PER_OBJECT = 2  # where a worker leaves it, and in its place


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Times are those of processors. A file is a trace of one host in one window of some steps."""

    read_s_per_file: float  # of a worker, its start included: small traces, of 0.8 MB each
    read_s_per_byte: float  # of a large trace, of 200 MB
    asks_s: float  # of who asks: to start, look and commit
    asks_s_per_file: float
    asks_bytes: float  # memory
    asks_bytes_per_file: float
    stored_per_byte: float  # bytes of a run for a byte of a large trace
    events_per_byte: float  # rows of op_events of one
    objects_per_file: float
    manifest_bytes_per_file: float
    ledger_s_per_file: float
    ledger_s_per_byte: float
    stragglers_s_per_file: float
    timeline_s_per_event: float
    library_bytes_per_run: float  # memory of each server
    library_s_per_run: float  # the first list after a start, of a store that was listed before


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Dollars: of a processor for an hour, of a GB kept for a month, of a thousand requests."""

    processor_hour: float
    gb_month: float
    puts_1000: float
    gets_1000: float


@dataclass(frozen=True, kw_only=True)
class Capture:
    """A run of one file for each host, read by so many workers of a processor each."""

    name: str
    hosts: int
    bytes_per_host: float
    workers: int


@dataclass(frozen=True, kw_only=True)
class CaptureCost:
    input_bytes: float
    stored_bytes: float
    objects: float
    manifest_bytes: float
    workers_s: float  # of processors, all together
    wall_s: float  # what is fetched and put apart
    asks_bytes: float
    ledger_s: float
    stragglers_s: float
    timeline_s: float
    reading_usd: float
    requests_usd: float
    month_usd: float


@dataclass(frozen=True, kw_only=True)
class Year:
    """So many runs a year, of so many files each."""

    name: str
    runs: int
    files: int
    bytes_per_file: float


@dataclass(frozen=True, kw_only=True)
class YearCost:
    input_bytes: float
    stored_bytes: float
    objects: float
    processors: float  # busy all the time
    reading_usd: float
    requests_usd: float
    month_usd: float  # once the year is full
    manifests_bytes: float  # on each machine that opens the store
    library_bytes: float
    library_s: float


MEASURED = Measured(
    read_s_per_file=0.18,
    read_s_per_byte=1.44e-8,
    asks_s=1.6,
    asks_s_per_file=0.010,
    asks_bytes=295e6,
    asks_bytes_per_file=9.4e3,
    stored_per_byte=0.069,
    events_per_byte=0.0128,
    objects_per_file=11.0,
    manifest_bytes_per_file=752.0,
    ledger_s_per_file=0.036,
    ledger_s_per_byte=3.3e-9,
    stragglers_s_per_file=0.0059,
    timeline_s_per_event=4.4e-6,
    library_bytes_per_run=3e3,
    library_s_per_run=2.5e-5,
)
PRICES = Prices(processor_hour=0.05, gb_month=0.023, puts_1000=0.005, gets_1000=0.0004)
CAPTURES = (
    Capture(name="1,024 hosts x 1 GB", hosts=1024, bytes_per_host=GB, workers=256),
    Capture(name="10,000 hosts x 1 GB", hosts=10_000, bytes_per_host=GB, workers=1024),
)
YEARS = (Year(name="1,000,000 runs a year, 8 x 50 MB each", runs=1_000_000, files=8, bytes_per_file=50e6),)


def capture_cost(of: Capture, known: Measured = MEASURED, prices: Prices = PRICES) -> CaptureCost:
    came = of.hosts * of.bytes_per_host
    file_s = known.read_s_per_file + of.bytes_per_host * known.read_s_per_byte
    asks_s = known.asks_s + of.hosts * known.asks_s_per_file
    stored, objects = came * known.stored_per_byte, of.hosts * known.objects_per_file
    return CaptureCost(
        input_bytes=came,
        stored_bytes=stored,
        objects=objects,
        manifest_bytes=of.hosts * known.manifest_bytes_per_file,
        workers_s=of.hosts * file_s,
        wall_s=asks_s + math.ceil(of.hosts / of.workers) * file_s,
        asks_bytes=known.asks_bytes + of.hosts * known.asks_bytes_per_file,
        ledger_s=of.hosts * known.ledger_s_per_file + came * known.ledger_s_per_byte,
        stragglers_s=of.hosts * known.stragglers_s_per_file,
        timeline_s=came * known.events_per_byte * known.timeline_s_per_event,
        reading_usd=(of.hosts * file_s + asks_s) / HOUR_S * prices.processor_hour,
        requests_usd=_requests_usd(of.hosts, of.bytes_per_host, objects, prices),
        month_usd=stored / GB * prices.gb_month,
    )


def year_cost(of: Year, known: Measured = MEASURED, prices: Prices = PRICES) -> YearCost:
    files = of.runs * of.files
    came, objects = files * of.bytes_per_file, files * known.objects_per_file
    reading_s = files * (known.read_s_per_file + known.asks_s_per_file) + came * known.read_s_per_byte
    reading_s += of.runs * known.asks_s
    return YearCost(
        input_bytes=came,
        stored_bytes=came * known.stored_per_byte,
        objects=objects,
        processors=reading_s / YEAR_S,
        reading_usd=reading_s / HOUR_S * prices.processor_hour,
        requests_usd=_requests_usd(files, of.bytes_per_file, objects, prices),
        month_usd=came * known.stored_per_byte / GB * prices.gb_month,
        manifests_bytes=files * known.manifest_bytes_per_file,
        library_bytes=of.runs * known.library_bytes_per_run,
        library_s=of.runs * known.library_s_per_run,
    )


def _requests_usd(files: float, bytes_per_file: float, objects: float, prices: Prices) -> float:
    gets = TIMES_READ * files * math.ceil(bytes_per_file / PIECE_BYTES)
    return (gets * prices.gets_1000 + PUTS_PER_OBJECT * objects * prices.puts_1000) / 1000


def tables() -> str:
    """What docs/scale.md shows."""
    of_captures = _table([(one.name, _of_capture(one, capture_cost(one))) for one in CAPTURES])
    of_years = _table([(one.name, _of_year(year_cost(one))) for one in YEARS])
    return f"{of_captures}\n\n{of_years}"


def _of_capture(of: Capture, cost: CaptureCost) -> Iterator[tuple[str, str]]:
    yield "inputs", _bytes(cost.input_bytes)
    yield "stored run", f"{_bytes(cost.stored_bytes)} in {cost.objects:,.0f} objects"
    yield "its manifest", _bytes(cost.manifest_bytes)
    yield "reading", f"{cost.workers_s / HOUR_S:.1f} processor hours"
    yield f"with {of.workers:,} workers", f"{_time(cost.wall_s)} and the network"
    yield "memory of who asks", _bytes(cost.asks_bytes)
    yield "stragglers, one process", _time(cost.stragglers_s)
    yield "ledger, one process", _time(cost.ledger_s)
    yield "timeline, one process", _time(cost.timeline_s)
    yield "dollars to read", f"{cost.reading_usd:,.2f}, and {cost.requests_usd:,.2f} for requests"
    yield "dollars a month to keep", f"{cost.month_usd:,.2f}"


def _of_year(cost: YearCost) -> Iterator[tuple[str, str]]:
    yield "inputs", _bytes(cost.input_bytes)
    yield "stored runs", f"{_bytes(cost.stored_bytes)} in {cost.objects / 1e6:,.0f} million objects"
    yield "reading", f"{cost.processors:.2f} processors, always"
    yield "dollars a year to read", f"{cost.reading_usd:,.0f}, and {cost.requests_usd:,.0f} for requests"
    yield "dollars a month to keep, at the year's end", f"{cost.month_usd:,.0f}"
    yield "manifests on each machine that opens the store", _bytes(cost.manifests_bytes)
    yield "memory of each server, as it is now", _bytes(cost.library_bytes)
    yield "first list after a start, as it is now", _time(cost.library_s)


def _table(columns: Sequence[tuple[str, Iterator[tuple[str, str]]]]) -> str:
    told = [list(rows) for _, rows in columns]
    heads = ["", *(name for name, _ in columns)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for rows in zip(*told, strict=True):
        labels = list(dict.fromkeys(label for label, _ in rows))
        lines.append(f"| {' / '.join(labels)} | {' | '.join(text for _, text in rows)} |")
    return "\n".join(lines)


def _bytes(n: float) -> str:
    unit, by = next((u, b) for u, b in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if n >= b or b == 1e3)
    return f"{n / by:,.3g} {unit}" if n / by < 1000 else f"{n / by:,.0f} {unit}"


def _time(s: float) -> str:
    return f"{s:.0f} s" if s < 120 else f"{s / 60:.0f} min" if s < 2 * HOUR_S else f"{s / HOUR_S:.1f} h"


if __name__ == "__main__":
    print(tables())
