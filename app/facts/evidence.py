"""What the files of a run show of its chips, for guesses and contradictions: hosts, devices, and rates per chip."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analyzers.base import Facts, fact
from analyzers.time.useful import generates, printed
from app.facts.settled import shown_devices
from errors import ChipledgerError
from runs.devices import seen_devices
from runs.run import Run
from runs.schema import SCHEMAS

HOSTED = (
    "captures",
    "steps",
    "lifecycle",
    "telemetry",
    "collectives",
    "evidence",
)  # tables whose rows name the host that they are of


@dataclass(frozen=True)
class Shown:
    """`hosts`: their names, sorted. `devices`: that profiles show. `tflops_per_s`, `tokens_per_s`: medians of what
    step lines printed for each device, None where they do not."""

    hosts: tuple[str, ...] = ()
    devices: int = 0
    tflops_per_s: float | None = None
    tokens_per_s: float | None = None
    tokens_per_step: float | None = None


def shown(run: Run) -> Shown:
    """What the files show; nothing of a run that is damaged or not there just now."""
    try:
        return seen_in(run)
    except ChipledgerError:  # not kept: it may be brought back
        return Shown()


def seen_in(run: Run) -> Shown:
    """The same. Raises InputError of a run that is damaged or not there just now."""
    return _shown(run.folder, run.written.created_ns)


@lru_cache(maxsize=1_000)
def _shown(folder: Path, created_ns: int) -> Shown:
    run = Run(folder)
    rates = printed(run.tables, run.written.facts)
    tokens = None if generates(run.written.facts) else _tokens(run)
    return Shown(_hosts(run), shown_devices(run), rates.tflops_per_s, rates.tokens_per_s, tokens)


def _hosts(run: Run) -> tuple[str, ...]:
    names = {host for host, _ in seen_devices(run.tables)} if run.written.tables.get("ops") else set[str]()
    for table in HOSTED:
        if run.written.tables.get(table) and "host" in (c.name for c in SCHEMAS[table].arrow):
            column = run.tables.arrow(table, ["host"])["host"]
            names |= {str(name) for name in pc.unique(column).to_pylist() if name}
    return tuple(sorted(names))


def _tokens(run: Run) -> float | None:
    """Tokens of a step of one device: the median of printed rate x duration."""
    rows = run.tables.arrow("steps", ["dur_ns", "tokens_per_s_per_chip"])
    each = pc.multiply(rows["dur_ns"].cast(pa.float64()), rows["tokens_per_s_per_chip"])
    each = each.filter(pc.greater(each, pa.scalar(0.0)))
    return pc.approximate_median(each).as_py() / 1e9 if len(each) else None


def devices_of_files(facts: Facts) -> int | None:
    """Devices of the whole job, as its own log counts them."""
    said = fact(facts, "devices")
    return int(said) if isinstance(said, int | float) and said >= 1 else None
