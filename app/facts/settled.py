"""What was said of runs, as it lies over their files: the number of chips is settled as ingest settles it.

A run never holds fewer chips than its profiles show, whatever was said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from analyzers.subject import devices_per_chip
from catalog.chip_count import chips_held, chips_seen
from errors import ChipledgerError
from runs.registry import Registry
from runs.run import FactValue, Run, Said

COUNTED_BY = ("chip", "chips")  # facts on which the number of chips rests
IN_PROFILES = "devices in the profiles"  # the source of a number that ingest took from there alone


def saying(registry: Registry, runs_folder: Path, run_ids: Sequence[str] | None = None) -> Mapping[str, Said]:
    """What people said of these runs, or of all, by run."""
    found = registry.said(run_ids)
    return {run_id: settled(Run(runs_folder / run_id), said) for run_id, said in found.items()}


def settled(run: Run, said: Said) -> Said:
    """What was said of a run, with the number of chips that follows from it and from the profiles."""
    if not any(name in said.facts for name in COUNTED_BY):
        return said
    try:
        facts = {**run.written.facts, **said.facts}
        seen = chips_seen(shown_devices(run), devices_per_chip(facts))
    except ChipledgerError:  # who looks at the run is told of its damage
        return said
    stated = facts.get("chips")
    if stated is not None and stated.source.endswith(IN_PROFILES):
        stated = None
    chips = chips_held(stated and stated.value, seen)
    if chips is None or (stated is not None and chips == stated.value):
        return said
    also = f"; {stated.value:,} {stated.source}" if stated is not None and stated.basis == "declared" else ""
    source = f"{shown_devices(run):,} {IN_PROFILES}{also}"
    return replace(said, facts={**said.facts, "chips": FactValue(chips, "derived", source)})


def shown_devices(run: Run) -> int:
    """How many devices the profiles of a run show. Raises InputError where the run is damaged."""
    return _counted(run.folder, run.written.created_ns) if run.written.tables.get("ops") else 0


@lru_cache(maxsize=10_000)
def _counted(folder: Path, created_ns: int) -> int:
    from runs.devices import seen_devices  # late: it brings pyarrow, which help and lists do without

    return len(seen_devices(Run(folder).tables))
