"""The search language of the library, as a pure function from text to a test of rows.

    chip:v5p,v6e mfu<30 tag:prod -tag:old is:starred added>=2026-10 "free words"

Terms stand apart by spaces, and all must hold; `-` before one says that it must not. `field:value` holds where the
field contains the text (of a tag or a group: where it is that), `field=value` where it is the text; values with commas
between them mean any of these. Numbers are compared by `<`, `<=`, `>`, `>=`: shares in per cent, `cost` in dollars,
times with a unit; `=` and `:` hold within the digits given (`mfu=31`: from 30.5 to 31.5). A number that is not known
is neither above nor below anything, nor with `-` before it: `mfu:unknown` finds it. Words without a field must occur
anywhere in a run's name, id, kind, chip, topology, job, model, tags or group.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from app.library.coded import Coded
from app.library.columns import COLUMNS, Column, Row, folded
from app.library.values import Span, expected, span
from errors import QuestionError

Held = tuple[np.ndarray, np.ndarray | None]
"""Of each slot of an index whether a test holds, and whether that is not known; None: it is known of all."""


class Columns(Protocol):
    """What a search asks of all rows at once; see `Index`."""

    texts: dict[str, Coded]
    flags: dict[str, np.ndarray]

    def ids_where(self, holds: Callable[[str], bool]) -> np.ndarray: ...
    def ids_holding(self, word: str) -> np.ndarray: ...
    def compared(self, column: Column) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True)
class Test:
    """`of` a row: None where it is not known, which `-` does not turn round. `over`: the same of all rows at once."""

    of: Callable[[Row], "bool | None"]
    over: Callable[[Columns], Held]


MOST_TERMS, LENGTH = 50, 2000
UNKNOWN = "unknown"
COMPARED = ("<", "<=", ">", ">=")
_FIELD = re.compile(r"([A-Za-z_][A-Za-z_-]*)(<=|>=|[<>:=])")
_THOUSANDS = re.compile(r"0\d\d(\.\d*)?")  # what follows the comma of `1,000`, and no number of its own
_NUMBERS = {c.name: c for c in COLUMNS if c.kind != "text"}
_WORKED_OUT = {c.name for c in COLUMNS if c.worked_out}
_SAME = {"tags": "tag", "step": "step_time", "notes": "note", "chip-hours": "chip_hours", "step-time": "step_time"}
STATES: dict[str, Callable[[Row], bool]] = {
    "starred": lambda row: row.starred,
    "archived": lambda row: row.archived,
    "live": lambda row: row.live is not None,
    "demo": lambda row: row.demo,
    "simulated": lambda row: row.simulated,
    "damaged": lambda row: row.problem is not None,
    "pending": lambda row: row.pending,
    "tagged": lambda row: bool(row.tags),
    "grouped": lambda row: bool(row.project),
    "noted": lambda row: bool(row.notes),
}
TEXTS: dict[str, Callable[[Row], str | None]] = {
    "name": lambda row: row.name,
    "id": lambda row: row.run_id,
    "kind": lambda row: row.kind,
    "chip": lambda row: row.chip,
    "model": lambda row: row.model,
    "topology": lambda row: row.topology,
    "job": lambda row: row.job,
    "project": lambda row: row.project,
    "experiment": lambda row: row.experiment,
    "live": lambda row: row.live.name if row.live else None,
    "largest_loss": lambda row: row.largest_loss,
}
FIELDS = (*TEXTS, *_NUMBERS, "tag", "group", "note", "is")


@dataclass(frozen=True)
class Term:
    """A term as it stands in the text, `at` characters from its start. `field`: empty of words without one."""

    at: int
    field: str
    op: str
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True)
class Query:
    """A search that was read."""

    terms: tuple[Term, ...]
    tests: tuple[Test, ...] = field(compare=False, repr=False)

    def asks(self, state: str) -> bool:
        """Whether it says itself that runs of a state are meant that are not shown otherwise."""
        return any(t.field == "is" and not t.negated and state in (v.casefold() for v in t.values) for t in self.terms)

    @property
    def worked_out(self) -> bool:
        """Whether it looks at numbers of answers."""
        return any(t.field in _WORKED_OUT for t in self.terms)

    def matches(self, row: Row) -> bool:
        return all(test.of(row) for test in self.tests)


def read(text: str) -> Query:
    """A search from its text. Raises QuestionError, with the place in the text and the nearest that would be right."""
    if len(text) > LENGTH:
        raise QuestionError(f"a search of {len(text):,} characters", expected=f"at most {LENGTH:,}")
    if (half := next((at for at, c in enumerate(text) if "\ud800" <= c <= "\udfff"), None)) is not None:
        raise _wrong(half, f"half a character, U+{ord(text[half]):04X}", "whole characters")
    terms = tuple(_terms(text))
    if len(terms) > MOST_TERMS:
        raise QuestionError(f"a search of {len(terms)} terms", expected=f"at most {MOST_TERMS}")
    if (values := sum(len(t.values) for t in terms)) > MOST_TERMS:  # each is looked for in each run
        raise QuestionError(f"a search of {values} values", expected=f"at most {MOST_TERMS}")
    return Query(terms, tuple(_turned(_test(t), t.negated) for t in terms))


def _terms(text: str) -> Iterator[Term]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start, negated = at, text[at] == "-" and at + 1 < len(text) and not text[at + 1].isspace()
        at += negated
        name, op = "", ""
        if found := _FIELD.match(text, at):
            name, op = _SAME.get(found[1].casefold(), found[1].casefold()), found[2]
            if name not in FIELDS and op == "=":  # a tag, as it is shown
                name, op = "", ""
            else:
                at = found.end()
        values, at = _values(text, at, apart=bool(name) and op not in COMPARED)
        if name and not any(values):
            raise _wrong(start, f"nothing stands after {name}{op}", "a value")
        yield Term(start, name, op, tuple(v for v in values if v), negated)


def _values(text: str, at: int, apart: bool) -> tuple[list[str], int]:
    """The values up to the next space outside of quotes, and where that is. `apart`: commas stand between them."""
    values, opened = [""], -1
    while at < len(text) and (opened >= 0 or not text[at].isspace()):
        if text[at] == '"':
            opened = at if opened < 0 else -1
        elif text[at] == "," and opened < 0 and apart:
            values.append("")
        else:
            values[-1] += text[at]
        at += 1
    if opened >= 0:
        raise _wrong(opened, "the quote is not closed", 'another " after it')
    return values, at


def _test(term: Term) -> Test:
    if not term.field:
        return _words(term.values)
    if term.field not in FIELDS:
        near = difflib.get_close_matches(term.field, FIELDS, 1)
        meant = f"Did you mean {near[0]}?" if near else f"The fields are {', '.join(sorted(FIELDS))}."
        raise _wrong(term.at + term.negated, f"no field {term.field[:40]!r}", "", f"{meant} Quote what is none.")
    if term.field in _NUMBERS:
        return _number(term, _NUMBERS[term.field])
    if term.op in COMPARED:
        where = term.at + term.negated
        raise _wrong(where, f"{term.field} is no number, so {term.op} tells nothing", f"{term.field}:text")
    if term.field == "is":
        return _state(term)
    if term.field == "tag":
        return _any(_tag(folded(value)) for value in term.values)
    if term.field == "group":
        return _any(_group(folded(value)) for value in term.values)
    if term.field == "note":
        return _any(_note(folded(value)) for value in term.values)
    return _any(_text(term.field, folded(value), term.op == "=") for value in term.values)


def _wrong(at: int, what: str, right: str, advice: str = "") -> QuestionError:
    return QuestionError(f"in the search, at character {at + 1}: {what}", expected=right, advice=advice)


def _turned(test: Test, negated: bool) -> Test:
    if not negated:
        return test

    def turned(row: Row) -> bool | None:
        held = test.of(row)
        return None if held is None else not held

    def over(index: Columns) -> Held:
        held, unknown = test.over(index)
        return (~held, None) if unknown is None else (~held & ~unknown, unknown)

    return Test(turned, over)


def _any(tests: Iterable[Test]) -> Test:
    """Whether any holds; not known where none does and one is not known."""
    tests = list(tests)
    if len(tests) == 1:
        return tests[0]

    def held(row: Row) -> bool | None:
        told = [test.of(row) for test in tests]
        return True if True in told else None if None in told else False

    return Test(held, partial(_any_over, tests))


def _any_over(tests: Sequence[Test], index: Columns) -> Held:
    held, unknown = tests[0].over(index)
    for test in tests[1:]:
        more, not_known = test.over(index)
        held = held | more
        unknown = not_known if unknown is None else unknown if not_known is None else unknown | not_known
    return held, None if unknown is None else unknown & ~held


IN_WORDS = ("name", "kind", "chip", "topology", "job", "model", "group")  # and a run's id and tags: `Row.words`
_OF_AN_ID = re.compile(r"[a-z0-9._-]*")


def _words(values: tuple[str, ...]) -> Test:
    word = folded("".join(values))

    def over(index: Columns) -> Held:
        held = index.texts["tags"].holding(tag_words, word)
        for name in IN_WORDS:
            held |= index.texts[name].holding(text_of, word)
        if _OF_AN_ID.fullmatch(word):
            held |= index.ids_holding(word)
        return held, None

    return Test(lambda row: word in row.words, over)


def _text(field: str, value: str, whole: bool) -> Test:
    of = TEXTS[field]

    def holds(text: str) -> bool:
        return (value == text if whole else value in text) or (value == UNKNOWN and not text)

    def over(index: Columns) -> Held:
        if whole or value == UNKNOWN:
            return index.ids_where(holds) if field == "id" else index.texts[field].where(text_of, holds), None
        return index.ids_holding(value) if field == "id" else index.texts[field].holding(text_of, value), None

    return Test(lambda row: holds(folded(of(row) or "")), over)


def _tag(value: str) -> Test:
    key, equals, rest = value.partition("=")

    def holds(tags: Sequence[tuple[str, str]]) -> bool:
        return (key, rest) in tags if equals else any(value in tag for tag in tags)

    return Test(lambda row: holds(row.folded_tags), lambda index: (index.texts["tags"].where(tag_pairs, holds), None))


def _group(value: str) -> Test:
    project, slash, experiment = value.partition("/")

    def held(row: Row) -> bool:
        return folded(row.project) == project and (not slash or folded(row.experiment) == experiment)

    def over(index: Columns) -> Held:
        told = index.texts["project"].where(text_of, lambda text: text == project)
        return told & index.texts["experiment"].where(text_of, lambda text: text == experiment) if slash else told, None

    return Test(held, over)


def _note(value: str) -> Test:
    return Test(
        lambda row: value in row.folded_notes,
        lambda index: (index.texts["notes"].holding(note_text, value), None),
    )


def text_of(value: str | None) -> str:
    """What is searched in: the same object where it is the same, of which there may be a million."""
    found = folded(value or "")
    return value if value is not None and found == value else found


def tag_words(value: Any) -> str:
    return "\n".join(folded(f"{k}={v}") for k, v in value or ())


def tag_pairs(value: Any) -> tuple[tuple[str, str], ...]:
    return tuple((folded(k), folded(v)) for k, v in value or ())


def note_text(value: Any) -> str:
    return "\n".join(folded(note) for note in value or ())


def _state(term: Term) -> Test:
    for value in term.values:
        if value.casefold() not in STATES:
            near = difflib.get_close_matches(value.casefold(), STATES, 1)
            meant = f"Did you mean is:{near[0]}?" if near else ""
            right = "" if near else f"is: and one of {', '.join(STATES)}"
            raise _wrong(term.at + term.negated, f"no state {value[:40]!r}", right, meant)
    return _any(_in_state(value.casefold()) for value in term.values)


def _in_state(state: str) -> Test:
    return Test(STATES[state], lambda index: (index.flags[state], None))


def _number(term: Term, column: Column) -> Test:
    if any(_THOUSANDS.fullmatch(value) for value in term.values[1:]):
        what = f"{','.join(term.values)[:40]} would be read as {len(term.values)} numbers"
        raise _wrong(
            term.at + term.negated, what, "".join(term.values)[:40], "Leave out the comma, or quote the number."
        )
    return _any(_compared(term, column, value) for value in term.values)


def _compared(term: Term, column: Column, text: str) -> Test:
    of, op = column.value, term.op
    if text.casefold() == UNKNOWN and op in (":", "="):
        return Test(lambda row: of(row) is None, lambda index: (~index.compared(column)[1], None))
    within = span(column, text)
    if within is None:
        what = f"{text[:40]!r} is nothing that {column.name} could be compared with"
        raise _wrong(term.at + term.negated, what, expected(column))

    def held(row: Row) -> bool | None:
        told = of(row)
        return None if told is None else _holds(told, op, within, column.kind == "date")

    def over(index: Columns) -> Held:
        told, known = index.compared(column)
        return known & _holds(told, op, within, column.kind == "date"), ~known

    return Test(held, over)


def _holds(told: Any, op: str, within: Span, date: bool) -> Any:
    """Of a number, or of each of many. A day is all of its time: later than it is after its end."""
    low, value, high = within
    if op == "<":
        return told < (low if date else value)
    if op == ">=":
        return told >= (low if date else value)
    if op == ">":
        return told >= high if date else told > value
    if op == "<=":
        return told < high if date else told <= value
    return (told >= low) & (told < high)
