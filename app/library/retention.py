"""Which runs go by age, number and size, and which never do: told first, and put into the bin when asked.

Nothing goes for good here: what a rule takes lies in the bin for 30 days, like anything that is deleted.
"""

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.library import changes
from app.library.table import shelf
from app.workspace import Workspace
from errors import ChipledgerError, InputError, QuestionError
from errors import format as fmt
from runs.baseline_book import BaselineBook
from runs.integrity import ELSEWHERE
from runs.promise_book import PromiseBook
from runs.run import Run

DAY_NS = 86_400_000_000_000
KEEP_TAG = "keep"  # a run with this tag stays, whatever its value
TAGGED = f"tagged {KEEP_TAG}"
WHO = "retention"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """`older_than_days`: since a run was stored. `per_name`, `per_group`: the newest so many of each name, and of each
    group; runs in no group are of none. `most_bytes`: of the library together; the oldest go until it is no more."""

    older_than_days: float | None = None
    per_name: int | None = None
    per_group: int | None = None
    most_bytes: int | None = None

    @property
    def empty(self) -> bool:
        return all(value is None for value in vars(self).values())


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A run that a rule is about. `why`: the rule; `kept`: why it stays all the same, empty where it goes."""

    run_id: str
    name: str
    created_ns: int
    bytes: int
    why: str
    kept: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Plan:
    """`going` and `kept`, the oldest first. `library_bytes`: of all runs now; `over_bytes`: what is beyond the most
    that was asked for, and stays because nothing that may go is left."""

    going: list[Judged]
    kept: list[Judged]
    library_bytes: int
    over_bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        going, kept = [j.to_dict() for j in self.going], [j.to_dict() for j in self.kept]
        return {"going": going, "kept": kept, "library_bytes": self.library_bytes, "over_bytes": self.over_bytes}


def plan(place: Workspace, policy: Policy, now_ns: int | None = None) -> Plan:
    """Raises QuestionError for a policy without a rule."""
    if policy.empty:
        raise QuestionError("no rule is given", expected="an age, a number or a size beyond which runs go")
    runs = sorted(place.store.runs(), key=lambda r: r.written.created_ns)
    sizes = {run.run_id: bytes_of(run) for run in runs}
    why = _by_age(runs, policy, time.time_ns() if now_ns is None else now_ns)
    _by_number(why, runs, policy.per_name, lambda run: run.manifest.name, "of this name")
    _by_number(why, runs, policy.per_group, _groups(place, runs), "of this group")
    stays = kept(place, runs)
    total = sum(sizes.values())
    left = total - sum(sizes[i] for i in why if i not in stays)
    if policy.most_bytes is not None:
        for run in runs:
            if left <= policy.most_bytes:
                break
            if run.run_id not in why:
                why[run.run_id] = f"the library is over {fmt.size(policy.most_bytes)}"
                left -= 0 if run.run_id in stays else sizes[run.run_id]
    judged = [_judged(run, sizes[run.run_id], why[run.run_id], stays) for run in runs if run.run_id in why]
    over = max(0, left - policy.most_bytes) if policy.most_bytes is not None else 0
    return Plan([j for j in judged if not j.kept], [j for j in judged if j.kept], total, over)


def apply(place: Workspace, planned: Plan) -> tuple[list[Judged], list[str]]:
    """Put what goes into the bin, each run on its own. Returns what went, and a sentence about each that did not. One
    that somebody starred, or led a baseline to, since it was planned stays."""
    gone, problems = [], []
    for judged in planned.going:
        run = place.store.get(judged.run_id)
        if run is None or kept(place, [run]):
            continue
        try:
            changes.bin_many(place, [judged.run_id], who=WHO)
            gone.append(judged)
        except ChipledgerError as e:
            problems.append(str(e))
    return gone, problems


def kept(place: Workspace, runs: Iterable[Run]) -> dict[str, str]:
    """Why runs stay whatever a rule says, by run."""
    found: dict[str, str] = {}
    tagged = {run.run_id: KEEP_TAG in run.manifest.tags for run in runs}  # as they came; what people set is below
    owners = place.registry.owners(tagged)
    asked = owners.keys() | set(owners.values())
    for why, ids in _KEEPERS:
        there = ids(place, asked)
        for run_id, owner in owners.items():
            if run_id in there or owner in there:
                found.setdefault(run_id, why)
    return {run_id: TAGGED for run_id, stays in tagged.items() if stays} | found


def _starred(place: Workspace, ids: set[str]) -> set[str]:
    return {run_id for run_id, where in shelf(place).places(ids).items() if where.starred}


def _baselines(place: Workspace, ids: set[str]) -> set[str]:
    return {str(m.run_id) for m in BaselineBook(place.registry.at).standing()}


def _followed(place: Workspace, ids: set[str]) -> set[str]:
    """Snapshots of live runs: who follows them takes them away."""
    return {i for live in place.store.live.all() for i in (live.run_id, *(old for old, _ in live.retiring)) if i}


def _tagged(place: Workspace, ids: set[str]) -> set[str]:
    return {run_id for run_id, extras in place.registry.added(ids).items() if KEEP_TAG in extras.tags}


_KEEPERS: Sequence[tuple[str, Callable[[Workspace, set[str]], set[str]]]] = (
    ("starred", _starred),
    ("a baseline", _baselines),
    ("promised", lambda place, ids: PromiseBook(place.registry.at).runs()),
    ("followed", _followed),
    (TAGGED, _tagged),
    ("bundled", lambda place, ids: place.demo.ids()),
)
"""Why runs stay; each tells of these ids at least which it keeps, so that one run is looked at without all others."""


def bytes_of(run: Run) -> int:
    """Bytes of a run's files as they lie there."""
    if ELSEWHERE:
        with contextlib.suppress(InputError):
            if (there := run.files.bytes_there()) is not None:
                return there
    total = 0
    for folder, _, files in os.walk(run.folder):
        for file in files:
            try:
                total += os.stat(os.path.join(folder, file)).st_size
            except OSError:
                continue
    return total


def _by_age(runs: Sequence[Run], policy: Policy, now_ns: int) -> dict[str, str]:
    days = policy.older_than_days
    if days is None:
        return {}
    old = [r for r in runs if now_ns - r.written.created_ns > days * DAY_NS]
    return {r.run_id: f"older than {fmt.number(days)} days" for r in old}


def _by_number(why: dict[str, str], runs: Sequence[Run], most: int | None, of: Callable[[Run], str], what: str) -> None:
    if most is None:
        return
    together: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if key := of(run):
            together[key].append(run)
    for some in together.values():
        for run in some[: max(0, len(some) - most)]:
            why.setdefault(run.run_id, f"more than {most:,} {what}")


def _groups(place: Workspace, runs: Sequence[Run]) -> Callable[[Run], str]:
    places, owners = shelf(place).places(), place.registry.owners(r.run_id for r in runs)

    def group(run: Run) -> str:
        where = places.get(owners[run.run_id])
        return "/".join(filter(None, (where.project, where.experiment))) if where else ""

    return group


def _judged(run: Run, n_bytes: int, why: str, stays: dict[str, str]) -> Judged:
    told = run.manifest
    return Judged(
        run_id=run.run_id,
        name=told.name,
        created_ns=told.created_ns,
        bytes=n_bytes,
        why=why,
        kept=stays.get(run.run_id, ""),
    )
