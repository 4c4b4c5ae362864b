"""Asks this product about the cases of a set: ingest as the command line does, every question, and what they name."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.questions import QUESTIONS
from app.questions.asking import answer_dict, ask
from app.questions.ledger.words import losses
from app.workspace import Workspace, workspace
from benchmarks.diagnosis.faults import FAULTS
from benchmarks.diagnosis.score import FLOOR
from benchmarks.diagnosis.tools.readings import COMMUNICATION, EVERYWHERE, HEADLINES, READINGS, Reading
from collectors.ingest import ingest
from errors import ChipledgerError, QuestionError
from runs.run import Run

TIME = r"((?:[\d.,]+ (?:ms|s|min|h|d)\b ?)+)"
SAVES = re.compile(rf"You save every {TIME}; every {TIME}would give back")
AT_LEAST = re.compile(rf"the best interval is at least {TIME}\. You save every {TIME}")
UNITS_S = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def answers(folder: Path, tell: Callable[[str], None] = print, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer about each case of a set but those known, in a store that is thrown away."""
    said = dict(known or {})
    with tempfile.TemporaryDirectory(prefix="diagnosis-store-") as store:
        place = workspace(store)
        for case in sorted(p for p in (folder / "cases").iterdir() if p.is_dir() and not p.name.startswith(".")):
            if case.name in said:
                continue
            try:
                run = place.store.get(ingest([case], place.store).run_id)
            except ChipledgerError as e:
                tell(f"{case.name}: cannot be read: {e}")
                said[case.name] = {"causes": [], "not_told": sorted(f.cause for f in FAULTS)}
                continue
            said[case.name] = answer(run, place)
            named = ", ".join(c["cause"] for c in said[case.name]["causes"]) or "nothing named"
            tell(f"{case.name}: {named}")
    return said


def answer(run: Run, place: Workspace) -> dict[str, Any]:
    """What the product says of a run."""
    answered: dict[str, dict[str, Any]] = {}
    ledger = None
    for question in QUESTIONS:
        try:
            result = ask(question, run, {}, place.registry)
        except QuestionError:
            continue
        answered[question.name] = answer_dict(run, result) | {"sentence": question.verdict(result)}
        if question.name == "ledger":
            ledger = result.ledger
    whole = answered["ledger"]["chip_seconds"] if "ledger" in answered else 0.0
    amounts = accounts_of(answered["ledger"]["account"]) if "ledger" in answered else {}
    fleet = run.manifest.kind == "simulated"
    found, told = [], set()
    for reading in READINGS:
        if reading.cause.startswith("fleet_") != fleet and reading.cause not in EVERYWHERE:
            continue
        if reading.question not in answered:
            continue
        told.add(reading.cause)
        if (named := _read(reading, answered[reading.question], amounts, whole)) is not None:
            found.append(named)
    found.sort(key=lambda c: -(c["chip_seconds"]["likely"] if c["chip_seconds"] else 0.0))
    return {
        "causes": found,
        "headlines": _headlines(answered, losses(ledger) if ledger else [], amounts, whole),
        "not_told": sorted({f.cause for f in FAULTS if f.family != "evidence"} - told),
    }


def accounts_of(account: dict[str, Any]) -> dict[str, float]:
    """Chip-seconds by the name of an account, wherever it stands."""
    found: dict[str, float] = {}

    def walk(node: dict[str, Any]) -> None:
        found[node["name"]] = found.get(node["name"], 0.0) + node["chip_seconds"]
        for child in node["children"]:
            walk(child)

    walk(account)
    return found


def _read(reading: Reading, said: dict[str, Any], amounts: dict[str, float], whole: float) -> dict[str, Any] | None:
    """The cause as it is named, or None where it is not."""
    rows = [r for r in (_at(said, reading.rows) or []) if _holds(reading, said, r)] if reading.rows else [{}]
    if not rows or (not reading.rows and not _holds(reading, said, {})):
        return None
    if reading.verdict and not _says(reading.verdict, said["sentence"]):
        return None
    likely = sum(amounts.get(name, 0.0) for name in reading.accounts) if reading.accounts else None
    if reading.cost:
        mine = rows if reading.cost.startswith("row.") else rows[:1]
        costs = [_get(reading.cost, said, row) for row in mine]
        known = [c for c in costs if c is not None]
        factor = float(said.get("chips") or 0) or whole / said["held_s"] if reading.seconds else 1.0
        likely = sum(known) * factor if known else None
    if likely is not None and whole and likely < reading.least * whole:
        return None
    return {
        "cause": reading.cause,
        "place": {key: _placed(key, path, said, rows) for key, path in reading.place.items()},
        "chip_seconds": None if likely is None else {"low": None, "likely": likely, "high": None},
        "question": reading.question,
    }


def _holds(reading: Reading, said: dict[str, Any], row: dict[str, Any]) -> bool:
    for path, values in reading.when:
        value = _get(path, said, row)
        if not (str(value) in values if values else bool(value) and float(value) > 0):
            return False
    return True


def _placed(key: str, path: str, said: dict[str, Any], rows: list[dict[str, Any]]) -> Any:
    """Ranks or hosts by row; steps by row, or the slowest of the stretches that were found."""
    if key == "steps" and not path.startswith("row."):
        stretches = _at(said, path) or []
        slow = max(stretches, key=lambda s: s["median_s"])
        return {"first": slow["first_step"], "last": slow["last_step"]}
    return [_get(path, said, row) for row in rows]


def _get(path: str, said: dict[str, Any], row: dict[str, Any]) -> Any:
    return _at(row, path.removeprefix("row.")) if path.startswith("row.") else _at(said, path)


def _at(of: Any, path: str) -> Any:
    for part in path.split("."):
        of = of.get(part) if isinstance(of, dict) else None
    return of


def _says(pattern: str, sentence: str) -> bool:
    """Whether a sentence shows a pattern; `rarer` and `oftener`: whether it asks for such saves."""
    if pattern not in ("rarer", "oftener"):
        return re.search(pattern, sentence) is not None
    if found := SAVES.search(sentence):
        now, best = _seconds(found[1]), _seconds(found[2])
        return best > now if pattern == "rarer" else best < now
    found = AT_LEAST.search(sentence)
    return bool(found) and pattern == "rarer" and _seconds(found[2]) < _seconds(found[1])


def _seconds(time: str) -> float:
    """`5 h 34 min` in seconds."""
    words = time.split()
    return sum(float(n.replace(",", "")) * UNITS_S[unit] for n, unit in zip(words[::2], words[1::2], strict=True))


def _headlines(
    answered: dict[str, dict[str, Any]], lost: list[tuple[str, float]], amounts: dict[str, float], whole: float
) -> list[dict[str, Any]]:
    """What the pages' sentences accuse: the ledger's largest loss, and communication where the ledger books less."""
    found = []
    if lost and HEADLINES.get(lost[0][0]):
        found.append(_headline(answered["ledger"]["sentence"], HEADLINES[lost[0][0]], lost[0][1]))
    if "overlap" in answered and whole:
        exposed = _at(answered["overlap"], "totals.exposed_communication_s") or 0.0
        excess = exposed - amounts.get("exposed_communication", 0.0)
        if excess > FLOOR * whole and "communication" in answered["overlap"]["sentence"]:
            found.append(_headline(answered["overlap"]["sentence"], COMMUNICATION, excess))
    return found


def _headline(says: str, accuses: Any, chip_seconds: float) -> dict[str, Any]:
    return {"says": says, "accuses": list(accuses), "chip_seconds": chip_seconds}
