"""The bundled reference runs: where they lie, and how a store that lacks them gets them."""

from pathlib import Path

from app.workspace import workspace

# what a person would pay is not known: a process stands for one chip, at about what a TPU v5e costs by the hour
ASSUMED_USD = {"reference-training": 1.2, "reference-pytorch": 1.2, "reference-serving": 1.2}
REFERENCE_RUNS = Path(__file__).parents[1] / "reference" / "runs"


def load(store: str | None) -> list[str]:
    """Ingest every reference run that the store lacks; one line about each."""
    from app.cli.commands.ingest import remember
    from collectors.ingest import ingest

    place = workspace(store)
    said = []
    for folder in reference_runs():
        done = ingest([folder], place.store)
        remember([folder], place, done.run_id)
        name = place.store.find(done.run_id).manifest.name
        if place.demo.add(done.run_id) and not done.existed and name in ASSUMED_USD:
            place.registry.price(done.run_id, ASSUMED_USD[name])
            place.registry.tag(done.run_id, "price", "assumed")
        said.append(f"{'Already here' if done.existed else 'Loaded'}: {name} ({done.run_id[:12]})")
    return said or ["No reference run is bundled here; add runs of your own."]


def reference_runs() -> list[Path]:
    """Folders of bundled runs, those that hold files. The library, newest first, begins with the last of them."""
    if not REFERENCE_RUNS.is_dir():
        return []
    return sorted(p for p in REFERENCE_RUNS.iterdir() if p.is_dir() and any(f.is_file() for f in p.rglob("*")))
