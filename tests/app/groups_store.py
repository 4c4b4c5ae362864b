"""A store of four teams, for tests of who sees what: of each its runs, live run, bin and what is kept beside."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.identity.base import Identity, Role
from app.library import changes
from app.workspace import workspace
from runs.alert_book import AlertBook, Judged
from runs.baseline_book import BaselineBook
from runs.live import TAG, Live
from runs.promise_book import Promise, PromiseBook
from runs.registry import Registry
from runs.share_book import ShareBook
from runs.shelf import Shelf
from runs.store import Store
from tests.app import made_runs

GROUPS = ("quokka", "wombat", "numbat")
OPEN = ""  # of runs that all see


@dataclass(frozen=True)
class Team:
    """What one team has. `word` is part of every text that only its members may see, and `ids` are those of its runs;
    `run`: one in the library, `binned`: one in the bin, `live`: the newest snapshot of its live run."""

    group: str
    word: str
    run: str
    binned: str
    live: str

    @property
    def ids(self) -> tuple[str, ...]:
        return self.run, self.binned, self.live


def person(*groups: str, role: Role = Role.UPLOADER, name: str = "") -> Identity:
    return Identity(name=name or "-".join(groups) or "stranger", role=role, groups=frozenset(groups), how="oidc")


def made(root: Path) -> dict[str, Team]:
    """The teams by their group, in a store that no workspace has opened yet."""
    store, path = Store(root), root / "registry.db"
    Registry(path)
    teams = {group: _team(store, path, group) for group in (*GROUPS, OPEN)}
    place = workspace(str(root))
    for team in teams.values():
        changes.bin_many(place, [team.binned], who=f"{team.word} binner")
    return teams


def _team(store: Store, path: Path, group: str) -> Team:
    word = f"{group or 'everyones'}secret"
    tags = {"owner": f"{word} tag", "job_tag": "x"}
    ids = [
        made_runs.interrupted(store, f"{word} {kind}", tags={**tags, **more}).run_id
        for kind, more in (("run", {}), ("binned", {}), ("live", {TAG: f"{word}-live"}))
    ]
    live = Live(name=f"{word}-live", project="p", job=f"{word} job", run_id=ids[2], last_poll_ns=time.time_ns())
    store.live.write(replace(live, options={"name": f"{word} live"}))
    registry, shelf = Registry(path), Shelf(path)
    registry.stand_for(ids[2], live.address)
    if group:
        ShareBook(path).share([*ids[:2], live.address], [group])
    shelf.add_note(ids[0], f"{word} note", f"{word} writer")
    shelf.group([ids[0]], f"{word} project", f"{word} experiment")
    registry.rename(ids[0], f"{word} renamed", f"{word} namer")
    _beside(path, word, ids[0])
    return Team(group, word, *ids)


def _beside(path: Path, word: str, run_id: str) -> None:
    """What is kept of a run beside the store."""
    book = BaselineBook(path)
    book.set(f"{word} baseline", run_id, f"{word} run", who="x", why=f"{word} why")
    book.set(f"{word} former", run_id, f"{word} run")
    book.remove(f"{word} former")
    found: dict[str, Any] = {"rule": "goodput", "subject": f"job:{word}", "run_id": run_id, "name": f"{word} run"}
    alerts = AlertBook(path)
    alerts.set_threshold("goodput", 0.99)
    alerts.judge(Judged(**found, moment=(1, 1), state="open", value=0.5, threshold=0.9, sentence=f"{word} is slow"))
    low, likely, high = 0.01, 0.02, 0.03
    PromiseBook(path).keep(
        Promise(
            run_id=run_id,
            job=f"{word} run",
            cause=f"{word} cause",
            title="t",
            low_share=low,
            likely_share=likely,
            high_share=high,
            draws={},
        )
    )


def hidden_words(teams: dict[str, Team], asks: Identity) -> list[str]:
    """What nothing may tell this person: the words and ids of teams that they are not in."""
    others = [t for t in teams.values() if t.group and t.group not in asks.groups and not asks.sees_all]
    return [text for team in others for text in (team.word, *(run_id[:10] for run_id in team.ids))]
