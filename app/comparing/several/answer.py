"""Several runs compared: what differs, each held against the baseline, their curves, and how a series scales."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analyzers.difference.step_time import compare
from analyzers.several.against import Held, held, unlike
from analyzers.several.curves import Curve
from analyzers.several.differing import Differing, Line, Member, differing
from app.comparing.several.choosing import Chosen, choose
from app.comparing.several.figures import ORDER, better
from app.comparing.several.reading import MOST_READ, curve_of, steps_of
from app.library.rows import Numbers
from app.words import listed, short
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError

STEP = "step_time"
OF_A_STEP = frozenset(("global_batch", "per_device_batch_size", "seq", "max_target_length", "model.global_batch_size"))
"""Settings by which a step is more or less work."""


@dataclass(frozen=True)
class Several:
    """`chosen`: in the order asked for; `first`: which of them is the baseline; `named`: whether somebody chose it;
    `said`: sentences on what could not be done."""

    chosen: Chosen
    place: Workspace
    first: int
    said: tuple[str, ...]
    curve: str | None = None
    over: str = "step"
    smooth: int = 1
    named: bool = False
    _drawn: dict[tuple[str, str, int], dict[str, Curve | str]] = field(default_factory=dict, compare=False)

    @property
    def members(self) -> tuple[Member, ...]:
        return self.chosen.members

    @property
    def baseline(self) -> Member:
        return self.members[self.first]

    @cached_property
    def table(self) -> Differing:
        return differing(self.members, ORDER)

    @cached_property
    def unlike(self) -> tuple[str, ...]:
        """Why each is not held against the baseline; empty where it is."""
        return tuple(unlike(self.baseline, m) for m in self.members)

    @cached_property
    def read(self) -> tuple[int, ...]:
        """Which runs have their steps read: the baseline, and as many more as there is room for."""
        others = [n for n in range(len(self.members)) if n != self.first]
        return tuple(sorted([self.first, *others[: MOST_READ - 1]]))

    def changes(self, line: Line) -> tuple[Held | None, ...]:
        """Each value of a figure against the baseline's."""
        before = line.values[self.first]
        return tuple(
            None if n == self.first or self.unlike[n] else held(before, now, better(line.name))
            for n, now in enumerate(line.values)
        )

    @cached_property
    def steps(self) -> tuple[Held | None, ...]:
        """By how much a settled step takes longer than one of the baseline, with its range: of means, as two runs are
        compared. None where it cannot be told, or was not read."""
        return tuple(self._step(n) for n in range(len(self.members)))

    def _step(self, n: int) -> Held | None:
        if n == self.first or self.unlike[n] or n not in self.read:
            return None
        one, two = (steps_of(self.chosen.runs[i]) for i in (self.first, n))
        if one is None or two is None:
            return None
        try:
            found = compare(one, two)
        except QuestionError:
            return None
        return Held(found.change, found.change > 0 if found.told else None, found.low, found.high)

    def curves(self, of: str, over: str, smooth: int) -> dict[str, Curve | str]:
        """By run, of those whose steps are read; a text: why it has none."""
        key = (of, over, smooth)
        if key not in self._drawn:
            runs = [self.chosen.runs[n] for n in self.read]
            self._drawn[key] = {r.run_id: curve_of(r, self.place, of, over, smooth) for r in runs}
        return self._drawn[key]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is said beside the table: runs left out, and those that are not held against the baseline."""
        apart = [(m, why) for m, why in zip(self.members, self.unlike, strict=True) if why]
        told = list(self.said)
        for why in dict.fromkeys(w for _, w in apart):
            names = [short(m.name) for m, w in apart if w == why]
            some = listed(names[:3]) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
            told.append(f"Not held against {short(self.baseline.name)}: {some} ({why}).")
        if any(line.name in OF_A_STEP for line in self.table.settings):
            told.append("Batches or sequences differ: a step is not the same work in all of these runs.")
        if len(self.members) > MOST_READ:
            told.append(
                f"Ranges and curves are those of {MOST_READ} of the {len(self.members)} runs, the baseline among them: "
                "choose fewer to see others."
            )
        return tuple(told)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract; lists of `values` and `changes` are in the order of `runs`."""
        told: dict[str, Any] = {
            "runs": [{"run_id": m.run_id, "name": m.name, "kind": m.kind} for m in self.members],
            "baseline": self.baseline.run_id,
            "differs": [_line(line, self) for line in self.table.differs],
            "told_by_some": [_line(line, self) for line in self.table.some],
            "same": [{"name": line.name, "value": line.values[0]} for line in self.table.common],
            "step_time": [None if h is None else _held(h) for h in self.steps],
            "pending": self.chosen.pending,
            "notes": list(self.notes),
        }
        if self.curve is not None:
            drawn = self.curves(self.curve, self.over, self.smooth)
            told["curves"] = {
                "of": self.curve,
                "over": self.over,
                "runs": {i: c.to_dict() for i, c in drawn.items() if isinstance(c, Curve)},
                "without": {i: why for i, why in drawn.items() if isinstance(why, str)},
            }
        return told


def _line(line: Line, found: Several) -> dict[str, Any]:
    if not line.figure:
        return line.to_dict()
    return {**line.to_dict(), "changes": [None if h is None else h.change for h in found.changes(line)]}


def _held(h: Held) -> dict[str, Any]:
    return {"change": h.change, "low": h.low, "high": h.high, "told": h.worse is not None}


def several(
    place: Workspace,
    runs: Sequence[str] = (),
    q: str = "",
    group: str = "",
    sort: str = "",
    baseline: str | None = None,
    curve: str | None = None,
    over: str = "step",
    smooth: int = 1,
    numbers: Numbers = "later",
    split: bool = True,
) -> Several:
    """`split`: whether commas in `runs` stand between names. Raises QuestionError for runs that cannot be
    compared, InputError where the store cannot be read."""
    chosen = choose(place, runs, q, group, numbers, split)
    said = list(chosen.said)
    wanted = _wanted(place, chosen, baseline, said)
    base = wanted or chosen.members[0].run_id
    chosen = _sorted(chosen, sort)
    return Several(chosen, place, chosen.index(base), tuple(said), curve, over, smooth, wanted is not None)


def _wanted(place: Workspace, chosen: Chosen, wanted: str | None, said: list[str]) -> str | None:
    """The id of the baseline that is named; None where none is, and where it is not among them, which is said."""
    if not wanted:
        return None
    for row in chosen.rows:
        if wanted in (row.run_id, row.address, row.name):
            return row.run_id
    try:
        found = place.store.find(wanted).run_id
    except ChipledgerError:
        found = ""
    if found in {m.run_id for m in chosen.members}:
        return found
    said.append(f"The baseline {short(wanted)} is none of these runs: {short(chosen.members[0].name)} stands for it.")
    return None


def _sorted(chosen: Chosen, sort: str) -> Chosen:
    """By a figure or a setting; what does not tell it stands last, and among equals the order stays."""
    name = sort.removeprefix("-")
    if not name:
        return chosen
    table = differing(chosen.members, ORDER)
    line = next((x for part in (table.differs, table.some, table.common) for x in part if x.name == name), None)
    if name == "name":
        line = Line("name", False, tuple(m.name for m in chosen.members))
    if line is None:
        known = sorted({x.name for x in table.differs})
        raise QuestionError(f"no figure or setting {name[:40]!r} to sort by", expected=", ".join(["name", *known]))
    values = line.values
    order = sorted((n for n, v in enumerate(values) if v is not None), key=lambda n: _key(values[n]))
    if sort.startswith("-"):
        order.reverse()
    order += [n for n, v in enumerate(values) if v is None]
    return _ordered(chosen, order)


def _key(value: Any) -> tuple[int, Any]:
    return (0, float(value)) if isinstance(value, int | float) else (1, str(value).casefold())


def _ordered(chosen: Chosen, order: Sequence[int]) -> Chosen:
    return Chosen(
        tuple(chosen.rows[n] for n in order),
        tuple(chosen.runs[n] for n in order),
        tuple(chosen.members[n] for n in order),
        chosen.said,
        chosen.pending,
    )
