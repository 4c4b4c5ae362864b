"""Kills, counted by kind and moment, and what was wrong after them."""

import json
import random
from collections import Counter
from pathlib import Path

from benchmarks.faults.kills.acts import Acts
from benchmarks.faults.kills.checking import AFTER, BEFORE, WITHIN, check
from benchmarks.faults.kills.commands import ACTS_EACH, Pace, killed
from benchmarks.faults.kills.state import look

BETWEEN = "between two, or at its end"
MOMENTS = (BEFORE, WITHIN, AFTER, BETWEEN)


class Suite:
    """Kills, counted by kind and moment, and what was wrong after them."""

    def __init__(self, seed: int, out: Path):
        self.chance = random.Random(seed)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.problems: list[str] = []
        self.killed = 0
        self._log = out / "kills.jsonl"

    def commands(self, folder: Path, kills: int) -> None:
        """Kill processes of command lines on one store."""
        root, inputs = folder / "store", folder / "inputs"
        inputs.mkdir(parents=True)
        killed([], root, 5)
        from app.workspace import workspace

        workspace(str(root))
        found, pace, number = look(root), Pace(self.chance), 0
        while self.killed < kills:
            acts = Acts(found, self.chance, inputs, number := number + 10 * ACTS_EACH)
            kind = self.chance.choice(acts.kinds())
            some = [act for _ in range(ACTS_EACH) if (act := acts.take(kind)) is not None]
            if not some:
                continue
            told, whole_s = killed(some, root, *pace.moment(kind, len(some)))
            known = dict(found.state)
            for act in told.done:
                known.update(act.after)
            checked = check(root, known, [told.begun] if told.begun else [])
            found = checked.found
            self.note(kind, checked.moments or [(some[0].kind, BETWEEN)], [*told.refused, *checked.problems])
            pace.learn(kind, len(told.done), told.took_s, told.calls)
            if whole_s is not None:
                self.killed -= 1  # it ended by itself
                self.counts[some[0].kind, BETWEEN] -= 1

    def note(self, kind: str, moments: list[tuple[str, str]], problems: list[str]) -> None:
        self.killed += 1
        self.counts.update(moments)
        self.problems += [f"kill {self.killed} ({kind}): {p}" for p in problems]
        with self._log.open("a") as f:
            f.write(json.dumps({"kill": self.killed, "kind": kind, "moments": moments, "problems": problems}) + "\n")

    def table(self) -> str:
        """How often each kind of act was met at each moment, as Markdown."""
        rows = [("what was killed", *MOMENTS, "all"), ("---", *["--:"] * (len(MOMENTS) + 1))]
        for kind in sorted({k for k, _ in self.counts}):
            row = [self.counts[kind, m] for m in MOMENTS]
            rows.append((kind, *(f"{n:,}" for n in row), f"{sum(row):,}"))
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)
