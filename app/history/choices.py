"""What of a store a history can be asked of: metrics, names of runs, groups and tags, the most frequent first."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.history.metrics import METRICS
from app.history.told import TIME
from app.library.rows import most
from app.workspace import Workspace
from runs.accounts import ACCOUNTS

MOST = 200  # of each list
LEAST = 2  # runs of a name


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Each as value: text."""

    metrics: Mapping[str, str]
    names: Mapping[str, str]
    groups: Mapping[str, str]
    by: Mapping[str, str]


def choices(place: Workspace) -> Choices:
    """Raises InputError where the store cannot be read."""
    told = most(place, ("name", "group", "tag key"), MOST)
    names, groups, tags = told["name"], told["group"], told["tag key"]
    accounts = {name: f"{a.title} (share)" for name, a in ACCOUNTS.items()}
    return Choices(
        metrics={m.name: m.title for m in METRICS.values()} | accounts,
        names={name: f"{name} ({n:,})" for name, n in names.items() if n >= LEAST},
        groups={name: f"{name} ({n:,})" for name, n in groups.items()},
        by={TIME: "run, by time"} | {key: key for key, _ in tags.items() if key != TIME},
    )
