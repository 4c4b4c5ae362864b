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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from app.library.columns import COLUMNS, Column, Row, folded
from app.library.values import expected, span
from errors import QuestionError

Test = Callable[[Row], "bool | None"]  # None: not known, which `-` does not turn round
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
_TEXTS: dict[str, Callable[[Row], str | None]] = {
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
FIELDS = (*_TEXTS, *_NUMBERS, "tag", "group", "note", "is")


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
        return all(test(row) for test in self.tests)


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
    return _any(_text(_TEXTS[term.field], folded(value), term.op == "=") for value in term.values)


def _wrong(at: int, what: str, right: str, advice: str = "") -> QuestionError:
    return QuestionError(f"in the search, at character {at + 1}: {what}", expected=right, advice=advice)


def _turned(test: Test, negated: bool) -> Test:
    if not negated:
        return test

    def turned(row: Row) -> bool | None:
        held = test(row)
        return None if held is None else not held

    return turned


def _any(tests: Iterable[Test]) -> Test:
    """Whether any holds; not known where none does and one is not known."""
    tests = list(tests)
    if len(tests) == 1:
        return tests[0]

    def held(row: Row) -> bool | None:
        told = [test(row) for test in tests]
        return True if True in told else None if None in told else False

    return held


def _words(values: tuple[str, ...]) -> Test:
    word = folded("".join(values))
    return lambda row: word in row.words


def _text(of: Callable[[Row], str | None], value: str, whole: bool) -> Test:
    def held(row: Row) -> bool:
        text = folded(of(row) or "")
        return (value == text if whole else value in text) or (value == UNKNOWN and not text)

    return held


def _tag(value: str) -> Test:
    key, equals, rest = value.partition("=")
    if equals:
        return lambda row: (key, rest) in row.folded_tags
    return lambda row: any(value in tag for tag in row.folded_tags)


def _group(value: str) -> Test:
    project, slash, experiment = value.partition("/")
    if not slash:
        return lambda row: folded(row.project) == project
    return lambda row: folded(row.project) == project and folded(row.experiment) == experiment


def _note(value: str) -> Test:
    return lambda row: value in row.folded_notes


def _state(term: Term) -> Test:
    for value in term.values:
        if value.casefold() not in STATES:
            near = difflib.get_close_matches(value.casefold(), STATES, 1)
            meant = f"Did you mean is:{near[0]}?" if near else ""
            right = "" if near else f"is: and one of {', '.join(STATES)}"
            raise _wrong(term.at + term.negated, f"no state {value[:40]!r}", right, meant)
    return _any(STATES[value.casefold()] for value in term.values)


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
        return lambda row: of(row) is None
    within = span(column, text)
    if within is None:
        what = f"{text[:40]!r} is nothing that {column.name} could be compared with"
        raise _wrong(term.at + term.negated, what, expected(column))
    low, value, high = within
    if column.kind == "date":  # a day is all of its time: later than it is after its end
        at_least, above = low, high
    else:
        at_least = above = value

    def held(row: Row) -> bool | None:
        told = of(row)
        if told is None:
            return None
        if op == "<":
            return told < at_least
        if op == ">=":
            return told >= at_least
        if column.kind == "date" and op in (">", "<="):
            return (told >= above) == (op == ">")
        if op in (">", "<="):
            return (told > value) == (op == ">")
        return low <= told < high

    return held
