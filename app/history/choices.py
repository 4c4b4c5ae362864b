"""What of a store a history can be asked of: metrics, names of runs, groups and tags, the most frequent first."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from app.history.metrics import METRICS
from app.history.told import TIME
from app.library.rows import library
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
    rows = [row for row in library(place, numbers="kept").rows if row.readable]
    names = Counter(row.name for row in rows)
    groups = Counter(row.group for row in rows if row.group)
    tags = Counter(key for row in rows for key in row.tags)
    accounts = {name: f"{a.title} (share)" for name, a in ACCOUNTS.items()}
    return Choices(
        metrics={m.name: m.title for m in METRICS.values()} | accounts,
        names={name: f"{name} ({n:,})" for name, n in names.most_common(MOST) if n >= LEAST},
        groups={name: f"{name} ({n:,})" for name, n in groups.most_common(MOST)},
        by={TIME: "run, by time"} | {key: key for key, _ in tags.most_common(MOST) if key != TIME},
    )
