"""What is shown of a run beside its name: chips, model, date, tags. One reading for library, header, API and CLI."""

from functools import lru_cache
from typing import Any

from errors import ChipledgerError
from errors import format as fmt
from runs.live import TAG, Live
from runs.registry import PRICE, Extras
from runs.run import Run


def tags_of(run: Run, extras: Extras) -> dict[str, str]:
    """The tags it came with, overridden and completed by those people set."""
    return {k: v for k, v in {**run.manifest.tags, **extras.tags}.items() if k != TAG}


def chip_text(run: Run) -> str | None:
    """The chip by its name in the catalogue, however it was called where the run was added: `v5p` is `TPU v5p`. One
    that is not in there stands as it was given; None where nothing tells it."""
    return _called(str(given)) if (given := run.manifest.fact("chip")) else None


@lru_cache(1000)
def _called(given: str) -> str:
    from catalog.chips import chip  # late: whoever only lists commands needs no catalogue

    try:
        return chip(given).name
    except ChipledgerError:
        return given


def chips_text(run: Run) -> str:
    """`256 × TPU v5p`, as far as known."""
    chips, chip = run.manifest.fact("chips"), chip_text(run)
    if chips and chip:
        return f"{int(chips):,} × {chip}"
    if chips:
        return fmt.count(int(chips), "chip")
    return chip or "chips unknown"


def model_text(run: Run) -> str | None:
    """The model's name; of one that is only described by its dimensions, its size."""
    model = run.manifest.fact("model")
    if not isinstance(model, dict):
        return None if model is None else str(model)
    if model.get("name"):
        return str(model["name"])
    count = model.get("parameters")
    return f"{fmt.number(count / 1e6)} million parameters" if isinstance(count, int | float) else None


def run_dict(run: Run, extras: Extras, live: Live | None = None) -> dict[str, Any]:
    """A run as the API and `runs --json` list it; `live`: the live run that it is the newest snapshot of. `problem`:
    what is damaged of it, null where nothing is."""
    manifest, price = run.manifest, extras.usd_per_chip_hour
    return {
        "run_id": run.run_id,
        "name": manifest.name,
        "kind": manifest.kind,
        "simulated": manifest.simulated,
        "created_ns": manifest.created_ns,
        "chip": manifest.fact("chip"),
        "chips": manifest.fact("chips"),
        "chips_text": chips_text(run),
        "model": model_text(run),
        "tags": tags_of(run, extras),
        "usd_per_chip_hour": manifest.fact(PRICE) if price is None else price,
        "tables": manifest.tables,
        "live": live.to_dict() if live else None,
        "problem": run.damage,
    }


def broken_dict(run_id: str, problem: str) -> dict[str, Any]:
    """The row of a run whose manifest cannot be read, with the keys of any other: what is not known is null."""
    unknown = dict.fromkeys(("name", "kind", "created_ns", "chip", "chips", "model", "usd_per_chip_hour", "live"))
    known = {"run_id": run_id, "simulated": False, "chips_text": "", "tags": {}, "tables": {}, "problem": problem}
    return {**unknown, **known}


def run_details(run: Run, extras: Extras, live: Live | None = None) -> dict[str, Any]:
    """All that is known of one run."""
    manifest = run.manifest
    facts = {n: {"value": f.value, "basis": f.basis, "source": f.source} for n, f in manifest.facts.items()}
    return {
        **run_dict(run, extras, live),
        "facts": facts,
        "sources": manifest.sources,
        "warnings": manifest.warnings,
        "notes": extras.notes,
    }


def matches(run: Run, extras: Extras, words: str) -> bool:
    """Whether every word searched for occurs in the run's name, kind, chip, model or tags, whatever its case."""
    manifest = run.manifest
    facts = [str(manifest.fact(n, "")) for n in ("chip", "topology", "job_name")] + [model_text(run) or ""]
    tags = [f"{k}={v}" for k, v in tags_of(run, extras).items()]
    text = "\n".join([run.run_id, manifest.name, manifest.kind, *facts, *tags]).casefold()
    return all(word in text for word in words.casefold().split())
