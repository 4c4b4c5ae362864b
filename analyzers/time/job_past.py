"""The job's steps and its calendar, worked out once for all questions that rest on them.

Neither a stored run nor tables in memory ever change, so both are kept by the state of the tables, the facts they are
judged by, and until when is looked. Parts of tables are looked at anew each time.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TypeVar

from analyzers.base import Facts
from analyzers.time.calendar import Calendar, calendar
from analyzers.time.history import History, history
from analyzers.time.quick_steps import as_run
from runs.kept import Answers
from runs.tables import Tables, state_of

MOST_BYTES = 256 << 20  # of each: a comparison asks of two runs, and a million steps take some 100 MB
T = TypeVar("T")
_histories, _calendars = Answers(MOST_BYTES), Answers(MOST_BYTES)


def steps_taken(tables: Tables, facts: Facts, now_ns: int | None = None) -> History:
    """The steps, as `history` tells them."""
    found = _kept(_histories, _key(tables, facts, now_ns), lambda: as_run(history(tables, facts, now_ns), tables))
    return replace(found, rows=found.rows.copy(deep=False))


def job_past(tables: Tables, facts: Facts, now_ns: int | None = None) -> tuple[History, Calendar | None]:
    """The steps, and the calendar; None where no input gives the job times of day."""
    past = steps_taken(tables, facts, now_ns)
    days = _kept(_calendars, _key(tables, facts, now_ns), lambda: calendar(tables, past, now_ns))
    return past, None if days is None else replace(days, steps=days.steps.copy(deep=False))


def kept_by_state(answers: Answers, tables: Tables, facts: Facts, compute: Callable[[], T]) -> T:
    """What was computed of these tables and facts before, as long as the run's files are the same."""
    return _kept(answers, _key(tables, facts, None), compute)


def _key(tables: Tables, facts: Facts, now_ns: int | None) -> Hashable:
    """None: nothing tells whether the tables are those of before."""
    state = state_of(tables)
    if state is None:
        return None
    return state, tuple(sorted((name, repr(known)) for name, known in facts.items())), now_ns


def _kept(answers: Answers, key: Hashable, compute: Callable[[], T]) -> T:
    return compute() if key is None else answers.get(key, compute)
