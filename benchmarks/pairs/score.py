"""What the comparison says of every pair, held against what was done and what the workers' own clocks say.

A take of a training pair is discarded, and counted as such, where the clocks of its twins A and C differ by more than
TWINS: then the machine was not the same for both, whatever the comparison says of them. Nothing else discards one.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 0.2  # how near the change of a step must be to the clocks' own
TWINS = 0.04  # by how much the means of the twins' clocks may differ
HICCUP = 3.0  # times the median: a step that the machine held up, left out of the clocks' mean
LEAST_SEEN = 0.02  # change by the clocks below which a changed pair need not be told


@dataclass(frozen=True)
class Row:
    """One comparison. `family`: training, compiled or serving; `kind`: what was changed, or nothing (A against C);
    `clock`: the change by the workers' clocks, None where there is none; `twins`: by how much those of A and C differ;
    `kept`: whether the twins allow the take; `named`: None where nothing had to be named."""

    pair: str
    family: str
    kind: str
    kept: bool
    twins: float | None
    clock: float | None
    told: bool
    change: float | None
    low: float | None
    high: float | None
    detectable: float | None
    named: bool | None
    explained: float | None
    matched: float | None
    load: Sequence[float]
    verdict: str

    @property
    def changed(self) -> bool:
        return not self.kind.startswith("nothing")

    @property
    def sized(self) -> bool | None:
        """Whether the change is within SIZE of the clocks' own; None where it was not told, or no clock tells it."""
        if not self.told or self.clock is None or self.change is None:
            return None
        return abs(self.change - self.clock) <= SIZE * abs(self.clock)

    @property
    def inside(self) -> bool | None:
        """Whether the range holds what the clocks say."""
        if self.clock is None or self.low is None or self.high is None:
            return None
        return self.low <= self.clock <= self.high

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"sized": self.sized, "inside": self.inside}


def score(folder: Path) -> list[Row]:
    """Every pair of a folder, B against A and, where it has a twin, C against A."""
    rows: list[Row] = []
    for path in sorted((folder / "truth").glob("*.json")):
        told = json.loads(path.read_text())
        with tempfile.TemporaryDirectory(prefix="pairs-") as store:
            rows += _of_pair(path.stem, told, folder / "pairs" / path.stem, store)
    return rows


def _of_pair(name: str, told: Mapping[str, Any], pair: Path, store: str) -> list[Row]:
    from app.workspace import workspace
    from collectors.ingest import ingest

    place, rows = workspace(store), []
    sides = [s for s in "abc" if (pair / s).is_dir()]
    runs = {s: place.store.find(ingest([pair / s], place.store, name=s).run_id) for s in sides}
    clocks = told.get("steps_s")
    mean_s = request_s if told["family"] == "serving" else step_s
    twins = None if clocks is None else mean_s(clocks["c"]) / mean_s(clocks["a"]) - 1
    for other in sides[1:]:
        clock = None if clocks is None else mean_s(clocks[other]) / mean_s(clocks["a"]) - 1
        kind = told["kind"] if other == "b" else "nothing"
        found = _compared(runs["a"], runs[other], place)
        named = _named(told, found) if other == "b" and not kind.startswith("nothing") else None
        rows.append(
            Row(
                pair=name,
                family=told["family"],
                kind=kind,
                kept=twins is None or abs(twins) <= TWINS,
                twins=twins,
                clock=clock,
                named=named,
                load=told.get("load", ()),
                **{k: found[k] for k in _SAID},
            )
        )
    return rows


_SAID = ("told", "change", "low", "high", "detectable", "explained", "matched", "verdict")


def step_s(clocks: Mapping[str, Sequence[float]]) -> float:
    """Mean step of the first process, hiccups of the machine left out."""
    took = np.asarray(clocks["0"])
    return float(took[took <= HICCUP * np.median(took)].mean())


def request_s(clocks: Mapping[str, Sequence[float]]) -> float:
    """Mean of all requests: one that takes long is one that waited in the queue, and what a change of the engine does
    to the queue is what is compared."""
    return float(np.mean(clocks["0"]))


def _compared(a: Any, b: Any, place: Any) -> dict[str, Any]:
    from app.comparing.answer import Compared

    answer = Compared(a, b, place)
    told = answer.to_dict()
    step = told.get("step_time") or told.get("request_time") or {}
    found = {k: step.get(k) for k in ("change", "low", "high", "detectable")}
    return found | {
        "told": told["told"],
        "explained": told.get("explained_share"),
        "matched": told.get("ops_matched_share"),
        "verdict": answer.verdict.whole,
        "makers": [p["account"] for p in told["ledger"][:1]]
        if answer.jobs is None
        else [c.account for c in answer.jobs.makers],
    }


def _named(told: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether the first account is one that the change moves, and the sentence says what has to be said."""
    accounts = told.get("accounts") or told.get("parts")
    right = not accounts or (bool(found["makers"]) and found["makers"][0] in accounts)
    return right and (not told["says"] or any(text in found["verdict"].lower() for text in told["says"]))


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line a comparison, then what it comes to."""
    head = ("pair", "changed", "twins", "clocks", "told", "said", "size", "named", "explained")
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
    for r in rows:
        cells = (
            r.pair + ("" if r.kept else " (discarded)"),
            r.kind,
            _percent(r.twins),
            _percent(r.clock),
            "yes" if r.told else "no",
            _percent(r.change),
            _mark(r.sized),
            _mark(r.named if r.told else None),
            "-" if r.explained is None or not r.told else f"{r.explained:.1%}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *summary(rows)])


def summary(rows: Sequence[Row]) -> list[str]:
    """What the rows come to, by family; discarded takes are counted and told apart."""
    said = []
    for family in dict.fromkeys(r.family for r in rows):
        every = [r for r in rows if r.family == family]
        mine = [r for r in every if r.kept]
        changed = [r for r in mine if r.changed]
        same = [r for r in mine if not r.changed]
        told = [r for r in changed if r.told]
        sized = [r for r in told if r.sized is not None]
        alarms = sum(r.told for r in same)
        dropped = len({r.pair for r in every if not r.kept})
        lost = [r for r in every if not r.kept and not r.changed]
        said.append(
            f"{family}: {len(changed)} changed pairs, {len(told)} told, {sum(bool(r.named) for r in told)} with "
            f"the cause named, {sum(bool(r.sized) for r in sized)} of {len(sized)} within {SIZE:.0%} of the clocks; "
            f"{len(same)} unchanged, {alarms} said to differ; {dropped} takes discarded by their twins' clocks "
            f"({sum(r.told for r in lost)} of their {len(lost)} unchanged said to differ)."
        )
    return said


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.1f} %"


def _mark(right: bool | None) -> str:
    return "-" if right is None else "right" if right else "WRONG"
