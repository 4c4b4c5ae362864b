"""All that is known of a run's facts: what is told, by whom, what is missing, what may be guessed, what contradicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.subject import chip_of, model_of, sequence_of
from app.facts.contradictions import Contradiction, contradictions
from app.facts.guesses import Guess, guesses
from app.facts.kinds import FACTS, Declarable, read
from app.facts.opening import opens
from app.identity.asking import named
from app.identity.may import changing
from app.questions.asking import price_of
from app.workspace import Workspace
from errors import InputError, QuestionError
from runs.registry import PRICE, Declaration, declared_by
from runs.run import FactValue, Run

WHO = 100  # characters of a name
CPU = "cpu"  # what profiles call the host where its threads stand for devices: no chip whose peak could be asked for


@dataclass(frozen=True)
class Known:
    """A fact that is told: `said` where a person did, `files`: what the files state instead, None where nothing."""

    name: str
    title: str
    unit: str
    fact: FactValue
    said: Declaration | None = None
    files: FactValue | None = None

    @property
    def source(self) -> str:
        """Where it is from: who said it and when, or the file."""
        said = self.said
        if said is None:
            return self.fact.source
        return self.fact.source if self.fact.basis != "declared" else declared_by(said.who, said.written_ns)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "value": self.fact.value,
            "unit": self.unit or None,
            "basis": self.fact.basis,
            "source": self.source,
            "who": self.said.who if self.said else None,
            "when_ns": self.said.written_ns if self.said else None,
            "files": self.files and {"value": self.files.value, "source": self.files.source},
        }


@dataclass(frozen=True)
class Missing:
    """A fact that nobody told: `opens`: what would be told with it, such as `MFU`."""

    fact: Declarable
    opens: tuple[str, ...]
    guesses: tuple[Guess, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.fact.name,
            "title": self.fact.title,
            "asks": self.fact.asks,
            "unit": self.fact.unit or None,
            "expected": self.fact.expected,
            "opens": list(self.opens),
            "guesses": [g.to_dict() for g in self.guesses],
        }


@dataclass(frozen=True)
class FactsTold:
    """`known`: those that may be said first, then all others that the files state."""

    run_id: str
    known: tuple[Known, ...]
    missing: tuple[Missing, ...]
    contradictions: tuple[Contradiction, ...]
    history: tuple[Declaration, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "facts": [k.to_dict() for k in self.known],
            "missing": [m.to_dict() for m in self.missing],
            "contradictions": [c.to_dict() for c in self.contradictions],
            "history": [{"name": d.key, "value": d.value, "who": d.who, "when_ns": d.written_ns} for d in self.history],
        }


def facts_told(run: Run, place: Workspace) -> FactsTold:
    history = tuple(place.registry.declarations(run.run_id))
    known = _known(run, place, history)
    return FactsTold(
        run_id=run.run_id,
        known=known,
        missing=missing(run, place),
        contradictions=contradictions(run, place.registry),
        history=history,
    )


def missing(run: Run, place: Workspace) -> tuple[Missing, ...]:
    """The facts that nothing tells: those that would open something first."""
    lacking = [f for f in FACTS if lacks(run, f.name, place)]
    opened = opens(run, lacking, place)
    found = [Missing(f, opened.get(f.name, ()), guesses(run, f.name)) for f in lacking]
    return tuple(sorted(found, key=lambda m: not m.opens))


def lacks(run: Run, name: str, place: Workspace) -> bool:
    """Whether nothing tells this fact, or nothing that can be used: a model or a chip that no catalogue has."""
    facts = run.manifest.facts
    if name == PRICE:
        return price_of(run, place.registry) is None
    if name == "seq":
        return _unknown(lambda: sequence_of(facts))
    if name == "model":
        return _unknown(lambda: model_of(facts))
    if name == "chip":
        known = chip_of(facts)
        if name in facts and facts[name].value == CPU:
            return False
        return known is None and "peak_flops_per_s" not in facts or (known is not None and " or " in known.name)
    return facts.get(name) is None or facts[name].value is None


def _unknown(tell: Any) -> bool:
    try:
        return tell() is None
    except QuestionError:
        return True


def _known(run: Run, place: Workspace, history: tuple[Declaration, ...]) -> tuple[Known, ...]:
    newest = {d.key: d for d in reversed(history)}
    facts = dict(run.manifest.facts)
    if (price := price_of(run, place.registry)) is not None and PRICE in newest and newest[PRICE].value is not None:
        facts[PRICE] = FactValue(price, "declared", "")
    kinds = {f.name: f for f in FACTS}
    order = [n for n in kinds if n in facts] + sorted(n for n in facts if n not in kinds)
    found = []
    for name in order:
        said = newest.get(name)
        said = said if said is not None and said.value is not None else None
        kind, own = kinds.get(name), run.written.facts.get(name)
        title, unit = (kind.title, kind.unit) if kind else (name.replace("_", " ").capitalize(), "")
        found.append(Known(name, title, unit, facts[name], said, own if said else None))
    return tuple(found)


@changing("say a fact")
def declare(run: Run, given: Mapping[str, Any], who: str, place: Workspace) -> Run:
    """Keep what a person says of a run, all of it or nothing, and find the run as it is then. "" takes back.

    Raises InputError or QuestionError for a fact that may not be said, a value that cannot be, and a registry that
    cannot be written.
    """
    known = {name: f.value for name, f in run.manifest.facts.items()}
    values = read(given, known)
    place.registry.declare(run.run_id, values, checked_who(who))
    return place.store.find(run.run_id)


def checked_who(who: str) -> str:
    """Who says it. Raises InputError for what is no name."""
    text = named(who).strip()
    if len(text) > WHO or not text.isprintable():
        raise InputError("that is no name of who says it", expected=f"up to {WHO} printable characters")
    return text
