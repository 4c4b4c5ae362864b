"""Every question asked of a run: each gets an answer that is whole in JSON and in words, or one sentence."""

import json
import math
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analyzers.time.ledger import LedgerResult
from app.questions import QUESTIONS, question
from app.questions import asking as questions
from app.workspace import Workspace
from errors import ChipledgerError
from runs.run import Run
from tests.app.forms import misfits
from tests.app.headlines import faults, jumbled, unread

PROJECT = Path(__file__).parents[2]

NAMES = tuple(q.name for q in QUESTIONS)


def answers(
    run: Run, place: Workspace, names: Iterable[str] = tuple(q.name for q in QUESTIONS)
) -> tuple[dict[str, Any], list[str]]:
    """({question: its answer as JSON reads it, or the sentence that says why there is none}, what went wrong)."""
    said: dict[str, Any] = {}
    wrong: list[str] = []
    for name in names:
        try:
            said[name] = _answer(run, name, place)
        except ChipledgerError as e:
            said[name] = str(e)
            if not str(e).strip() or "\n" in str(e):
                wrong.append(f"{name}: not one sentence: {str(e)!r}")
        except Exception as e:  # whatever else escapes is a defect: which one is told with its place
            wrong.append(f"{name}: {type(e).__name__}: {str(e)[:200]} ({_place(e)})")
    return said, wrong


def wrong_answers(run: Run, place: Workspace) -> list[str]:
    """What went wrong when every question was asked of the run; empty where nothing did."""
    return answers(run, place)[1]


def _answer(run: Run, name: str, place: Workspace) -> dict[str, Any]:
    result = questions.ask(question(name), run, {}, place.registry)
    text = json.dumps(questions.answer_dict(run, result), allow_nan=False)
    wrong = misfits(question(name), json.loads(text))
    assert not wrong, f"not of its declared form: {wrong[:3]}"
    words = question(name)
    verdict = words.verdict(result)
    assert verdict.strip(), "an answer without words"
    table = words.table(result)
    names = {cell.split()[0] for row in table.rows for cell in row if cell.split()}
    assert not (wrong := faults(verdict, names)), wrong
    assert not (wrong := [n for n in result.notes if jumbled(n)]), wrong
    assert not (wrong := [cell for row in (table.head, *table.rows) for cell in row if unread(cell)]), wrong
    assert all(len(row) == len(table.head) for row in table.rows), "a row of another width than the head"
    if isinstance(result, LedgerResult):
        _closes(result)
    return json.loads(text)


def _closes(result: LedgerResult) -> None:
    """Every account is the sum of its parts, and the whole no more than the chips could be held between its ends."""
    for path, account in result.ledger.account.walk():
        if account.children:
            parts = math.fsum(child.chip_seconds for child in account.children)
            assert math.isclose(parts, account.chip_seconds, rel_tol=1e-9, abs_tol=1e-9), path
    if result.start_ns is not None and result.end_ns is not None:
        held = (result.end_ns - result.start_ns) / 1e9 * result.ledger.chips
        assert result.ledger.chip_seconds <= held * (1 + 1e-6) + 1e-6, "more than the time held"


def _place(error: Exception) -> str:
    ours = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(PROJECT)]
    last = ours[-1]
    return f"{Path(last.filename).relative_to(PROJECT)}:{last.lineno}: {last.line}"
