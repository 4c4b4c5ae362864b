"""Who sees which run, as people set it: what pages, commands, API and uploads have in common.

A run belongs to groups of people, as whoever signs them in names these; only their members see it then, and admins,
whoever added it. One that belongs to none is seen by all who are signed in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.identity.asking import who
from app.identity.base import Identity
from app.identity.may import changing
from app.ingest_options import EVERYONE, GROUP
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors import format as fmt
from errors.nearest import did_you_mean
from runs.live import PREFIX
from runs.share_book import Audience, clean_team, clean_teams

ALL = "all who are signed in"
COUNTED = "Counted are the runs that you see; a team's budget may have paid for others."
MOST_RUNS = 10_000


@dataclass(frozen=True)
class Seen:
    """Who sees runs now: members of `groups`, and admins; all, where there are none."""

    runs: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def sentence(self) -> str:
        one = len(self.runs) == 1
        seen = f"{fmt.count(len(self.runs), 'run')} {'is' if one else 'are'} seen by"
        return f"{seen} {seen_by(self.groups)}."

    def to_dict(self) -> dict[str, Any]:
        return {"runs": list(self.runs), "groups": list(self.groups)}


def seen_by(groups: Sequence[str]) -> str:
    """Who sees a run, in words."""
    if not groups:
        return ALL
    names = [group[:80] for group in groups]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"members of {listed}, and admins"


def counted() -> str:
    """What stands beside sums over runs, whether or not any is hidden; empty for who sees all."""
    return "" if who().sees_all else COUNTED


def groups_of(place: Workspace, run: str) -> list[str]:
    """The groups of a run, or of a live run of which there is nothing yet, by name."""
    return sorted(place.shares.of(_about(place, run)))


@changing("say who sees runs")
def share(place: Workspace, runs: Iterable[str], groups: Iterable[str]) -> Seen:
    """From now on members of these groups see the runs, and nobody else but admins; without a group all do. Raises
    QuestionError for what whoever asks may not say, with nothing changed."""
    names = list(runs)
    if not 1 <= len(names) <= MOST_RUNS:
        raise QuestionError(f"{len(names):,} runs are named", expected=f"1 to {MOST_RUNS:,}")
    ids, teams, asks = [_about(place, name) for name in names], clean_teams(groups), who()
    before = frozenset[str].intersection(*(place.shares.of(run_id) for run_id in ids))  # of all: or one would get more
    for team in teams:
        if team not in before:
            _member(asks, team)
    if teams and not asks.sees_all and not asks.groups & set(teams):
        raise QuestionError(
            "then you would not see the run any more", expected=f"one of your groups among them: {_yours(asks)}"
        )
    place.shares.share(ids, teams, asks.name)
    return Seen(tuple(ids), tuple(teams))


def _about(place: Workspace, run: str) -> str:
    """The run's id; of a live run of which there is nothing yet its address."""
    if run.startswith(PREFIX) and (live := place.store.live.read(run.removeprefix(PREFIX))) and live.run_id is None:
        return live.address
    return place.store.find(run).run_id


def _member(asks: Identity, team: str) -> None:
    """Raises QuestionError where who asks is not in a group, and no admin."""
    if not asks.sees_all and team not in asks.groups:
        near = did_you_mean(team, asks.groups)
        raise QuestionError(
            f"you are not in group {team[:80]!r}", expected=f"one of your groups: {_yours(asks)}", advice=near
        )


def _yours(asks: Identity) -> str:
    names = sorted(asks.groups)
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return ", ".join(name[:80] for name in names[:20]) + more if names else "you are in none"


def usual_group(place: Workspace) -> str:
    """The group for which whoever asks usually adds runs; empty where they add them for all."""
    return place.shares.usual(who().name) if who().name else ""


def set_usual_group(place: Workspace, group: str) -> str:
    """Empty: for all. Returns it as it is kept. Raises QuestionError where who asks is not in it, or has no name."""
    asks, team = who(), clean_team(group) if group.strip() else ""
    if not asks.name:
        raise QuestionError("nobody is signed in", advice="Say --group with each input.")
    if team:
        _member(asks, team)
    place.shares.set_usual(asks.name, team)
    return team


def for_whom(place: Workspace, group: str | None, everyone: bool) -> str | None:
    """For which group whoever asks adds a run: empty, for all; None: nobody said, on the command line or where nobody
    is signed in. Raises QuestionError for a group that they are not in."""
    asks = who()
    if group and everyone:
        raise QuestionError("both a group and everyone", expected="one of them")
    if everyone:
        return ""
    if group:
        team = clean_team(group)
        _member(asks, team)
        return team
    if asks.how in ("open", "server"):
        return None
    usual = usual_group(place)
    if usual and not asks.sees_all and usual not in asks.groups:
        raise QuestionError(
            f"you usually add runs for group {usual[:80]!r}, and are no longer in it",
            expected=f"group, one of {_yours(asks)}, or everyone",
            advice="Nothing is shown to all without your word. Choose another group on your page.",
        )
    return usual


def flags(place: Workspace, asked: Mapping[str, Any]) -> list[str]:
    """The words of the command line that say for whom a request adds a run. Raises InputError and QuestionError."""
    group, everyone = asked.get(GROUP.name), asked.get(EVERYONE.name)
    if group is not None and not isinstance(group, str):
        raise InputError(f"{GROUP.name!r} is not understood", where="request", expected="a text of one line")
    if everyone is not None and not isinstance(everyone, bool):
        raise InputError(f"{EVERYONE.name!r} is not understood", where="request", expected="true or false")
    team = for_whom(place, group or None, bool(everyone))
    return [] if team is None else [f"{GROUP.flag}={team}"] if team else [EVERYONE.flag]


def audience(place: Workspace, said: Mapping[str, Any]) -> Audience:
    """For whom an input is read, by the values of GROUP and EVERYONE."""
    return Audience(place.shares, for_whom(place, said.get(GROUP.name), bool(said.get(EVERYONE.name))), who().name)
