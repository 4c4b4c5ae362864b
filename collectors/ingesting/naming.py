"""What a run is called, what it is of, and what is told of how it was read."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from collectors.ingesting.gather import shown
from collectors.own import sidecar

MAX_WARNINGS = 1_000
_SERVING_TABLES = ("requests", "engine", "stages", "iterations", "histograms")
_TRAINING_TABLES = ("steps", "lifecycle")  # a profile is of either
_SUFFIXES = re.compile(r"(?:\.(?:gz|zip|tar|tgz|log|txt|out|jsonl?|xplane|pb|riegeli|pt|trace|sqlite3?))+$", re.I)
OPTION = "command line"


def checked_options(name: Any, kind: Any, chip: Any, chips: Any, model: Any, tags: Any) -> dict[str, Any]:
    """The options that were given, checked."""
    given = {"name": name, "kind": kind, "chip": chip, "chips": chips, "model": model, "tags": dict(tags or {}) or None}
    given = {key: value for key, value in given.items() if value is not None}
    for key, value in given.items():
        sidecar.check(key, value, OPTION)
    return given | ({"name": sidecar.run_name(name, OPTION)} if "name" in given else {})


def name_of(paths: Sequence[Path | str]) -> str:
    """A name for the run from the first path: that of the file or folder, without usual endings."""
    base = shown(Path(paths[0]).absolute().resolve().name if paths else "")
    return _SUFFIXES.sub("", base) or base or "run"


def kind_of(tables: Mapping[str, int], facts: Collection[str] = ()) -> str:
    """`serving` also where a server's log tells of its start alone: it may have failed before it served anything."""
    trained = any(tables.get(t) for t in _TRAINING_TABLES)
    served = "engine" in facts or any(tables.get(t) for t in _SERVING_TABLES)
    return "serving" if served and not trained else "training"


def names_listed(names: list[str], most: int = 10) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "nothing was given") + more


def capped_list(warnings: list[str]) -> list[str]:
    if len(warnings) <= MAX_WARNINGS:
        return warnings
    return [*warnings[:MAX_WARNINGS], f"and {len(warnings) - MAX_WARNINGS:,} more warnings"]
