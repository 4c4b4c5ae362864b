"""The store after a kill, opened again: what is there is held against what was acknowledged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app import workspace
from app.cli.commands import doctor
from app.library.rows import library
from benchmarks.faults.kills.acts import Act
from benchmarks.faults.kills.state import LIBRARY, Found, leaks, look
from runs.run import Run

BEFORE, WITHIN, AFTER = "before it changed anything", "while it wrote", "done, not yet told"


@dataclass
class Checked:
    """`moments`: of each act that was begun and not acknowledged, its kind and where it was."""

    found: Found
    problems: list[str] = field(default_factory=list)
    moments: list[tuple[str, str]] = field(default_factory=list)


def check(root: Path, known: Mapping[str, Any], begun: Sequence[Act]) -> Checked:
    """`known`: what was acknowledged. Of what was begun all or nothing may be found."""
    traces = list((root / "partial").iterdir())
    workspace._opened.clear()
    place = workspace.workspace(str(root))
    found = look(root)
    checked = Checked(found, list(found.problems))
    open_keys = _in_flight(checked, known, begun, bool(traces))
    for key in sorted({*known, *found.state} - open_keys):
        if (was := known.get(key)) != (now := found.state.get(key)):
            lost = "lost" if was and not now else "not acknowledged, and there" if now and not was else "another"
            checked.problems.append(f"{lost}: {key[:24]}: {_differing(was, now)}")
    _read_through(place, root, checked)
    checked.problems += [f"left behind: {path}" for path in leaks(root)]
    return checked


def _in_flight(checked: Checked, known: Mapping[str, Any], begun: Sequence[Act], traces: bool) -> set[str]:
    keys: set[str] = set()
    for act in begun:
        keys |= set(act.after)
        now = {key: checked.found.state.get(key) for key in act.after}
        if now == {key: known.get(key) for key in act.after}:
            checked.moments.append((act.kind, WITHIN if traces else BEFORE))
        elif now == dict(act.after):
            checked.moments.append((act.kind, AFTER))
        else:
            key = next(iter(now))
            checked.problems.append(f"by halves: {act.kind}: {_differing(act.after[key], now[key])}")
    return keys


def _differing(was: Any, now: Any) -> str:
    if isinstance(was, dict) and isinstance(now, dict):
        return str({k: (was.get(k), now.get(k)) for k in {*was, *now} if was.get(k) != now.get(k)})[:300]
    return f"{str(was)[:120]} became {str(now)[:120]}"


def _read_through(place: workspace.Workspace, root: Path, checked: Checked) -> None:
    """Every byte of every run, in the library and in the bin, and what the product lists of them."""
    verified = doctor.verified(place)
    verified += [doctor._verified(Run(p)) for p in (root / "bin").iterdir()]
    checked.problems += [f"damaged: {d}" for told in verified for d in (*told["damaged"], *told["not_verifiable"])]
    there = sorted(
        checked.found.ids[k] for k, v in checked.found.state.items() if k in checked.found.ids and v["at"] == LIBRARY
    )
    listed = sorted(row.run_id for row in library(place, numbers="kept").rows)
    if listed != there:
        checked.problems.append(f"listed are {listed}, there are {there}")
    if broken := place.store.look().broken:
        checked.problems.append(f"listed as damaged: {broken}")
