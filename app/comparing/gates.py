"""Gates over a comparison: `step_time>+1%`. A gate that could not have seen what it looks for does not pass.

    outcome
    failed           the change is beyond the bound and more than chance, or all of its range is beyond
    cannot be told   a change beyond the bound could not have been seen, or has no range
    passed           neither

What each figure is and how a gate is written stands in `figures.py`, once.
"""

import math
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from analyzers.difference import DifferenceResult
from app.comparing.gate_figures import FIGURES, FORM, POINTS, Figure, Found, Sides
from errors import QuestionError
from errors.nearest import nearest

GATE = re.compile(r"\s*([a-z0-9_]{1,40})\s*([<>])\s*([+-]?)(\d{1,6}(?:\.\d{1,6})?)\s*(%?)\s*", re.ASCII)
LIKE = re.compile(r"\s*([^<>=≥≤:+%\s][^<>=≥≤:+%]{0,39})([<>=≥≤]*)\s*([+-]?)\s*(\d{1,6}(?:[.,]\d{1,6})?)?")
MOST = 100.0  # a hundredfold
FAILED, PASSED, NOT_TOLD = "failed", "passed", "cannot be told"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a gate found. `change`, `low`, `high`: in shares of A's, or of MFU and goodput in points as a share; None
    where it is not told. `why`: one sentence."""

    gate: str
    outcome: str
    why: str
    change: float | None = None
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Gate:
    """`figure`: what is looked at; `bound`: by which share of A's, or how many points as a share, it may change;
    `more`: whether more is worse."""

    text: str
    figure: Figure
    bound: float
    more: bool

    def judge(self, result: DifferenceResult) -> str:
        """The outcome alone, of two jobs."""
        return self.look(Sides(jobs=result)).outcome

    def look(self, sides: Sides) -> Judged:
        """FAILED where the change is more than chance and beyond the bound, NOT_TOLD where a change of that size could
        not have been seen, else PASSED."""
        told = _finite(self.figure.change(sides))
        return Judged(
            gate=self.text,
            outcome=self._outcome(told),
            why=self._why(told),
            change=told.change,
            low=told.low,
            high=told.high,
        )

    def _outcome(self, told: Found) -> str:
        if told.change is None or told.low is None or told.high is None:
            return NOT_TOLD
        beyond = operator.gt if self.more else operator.lt
        low, high = told.low + min(told.beside, 0.0), told.high + max(told.beside, 0.0)
        near, reach = (low, high) if self.more else (high, low)
        surely = beyond(near, self.bound)  # as of a gate that asks for an improvement, where nothing changed
        if surely or (beyond(told.change, self.bound) and not told.low <= 0 <= told.high):
            return FAILED
        return NOT_TOLD if beyond(reach, self.bound) else PASSED

    def _why(self, told: Found) -> str:
        """The change with its range, and for what cannot be told why that is."""
        if told.change is None:
            return f"{self.figure.title} cannot be compared: {told.why}."
        change = f"{self.figure.title} changed by {self.figure.shown(told.change)}"
        if told.low is None or told.high is None:
            return f"{change}, of which there is no interval: {told.why}."
        if told.low != told.high:
            change += f" ({self.figure.shown(told.low)} to {self.figure.shown(told.high)})"
        beside = f" {self.figure.shown(told.beside)} more by stalls, which are set apart." if told.beside else ""
        if self._outcome(told) == NOT_TOLD:
            return f"{change}: one beyond {self.figure.shown(self.bound)} cannot be ruled out.{beside}{told.dark}"
        return f"{change}.{beside}"


def _finite(told: Found) -> Found:
    """What is no number is not told: nothing lies beyond it."""
    if told.change is not None and not math.isfinite(told.change + told.beside):
        return Found(why="its change is no finite number")
    if any(end is not None and not math.isfinite(end) for end in (told.low, told.high)):
        return replace(told, low=None, high=None, why=told.why or "its range has no end")
    return told


def gate(text: str) -> Gate:
    """Raises QuestionError for what is no gate, with the nearest that is one."""
    form = GATE.fullmatch(text)
    figure = FIGURES.get(form[1]) if form else None
    if form is None or figure is None or bool(form[5]) == (figure.unit == POINTS):
        raise QuestionError(f"no gate: {text[:60]!r}", expected=FORM, advice=_meant(text))
    _, sign, minus, number, _ = form.groups()
    bound = float(f"{minus}{number}") / 100
    if abs(bound) > (1 if figure.unit == POINTS else MOST):
        most = "100 points" if figure.unit == POINTS else "a hundredfold"
        raise QuestionError(f"{text[:60]!r} asks for more than {most}", expected=FORM)
    return Gate(text.strip(), figure, bound, sign == ">")


def gates(texts: Iterable[str]) -> tuple[Gate, ...]:
    """Each once, in the order given."""
    return tuple({g.text: g for g in map(gate, texts)}.values())


def _meant(text: str) -> str:
    """The valid gate that looks most like it; empty where none does."""
    form = LIKE.match(text[:200])
    if form is None:
        return ""
    name, sign, minus, number = form.groups()
    near = nearest(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"), FIGURES)
    if not near:
        return ""
    figure = FIGURES[near[0]]
    way = sign[:1].replace("≥", ">").replace("≤", "<")
    way = way if way in ("<", ">") else figure.worse
    bound = number.replace(",", ".") if number else "1"
    minus = minus or ("-" if way == "<" else "+")
    return f"Did you mean '{figure.name}{way}{minus}{bound}{'' if figure.unit == POINTS else '%'}'?"
