"""Two runs compared, as Markdown for a comment on a pull request: verdict, gates, accounts, what differs, how sure.

Whatever the runs are called, it is shown as it is: no mark-up, and nobody is called by an @ or a # in a name.
"""

import re
from collections.abc import Sequence

from analyzers.difference import DifferenceResult
from app.comparing.answer import Compared
from app.comparing.gates import FAILED, NOT_TOLD, Judged
from app.comparing.job_words import signed
from app.words import Table, short
from errors import format as fmt

MOST_ROWS, MOST_NOTES, CELL = 12, 12, 120  # a comment is looked at, not studied; characters of a cell
_MARKS = re.compile(r"([\\`*_\[\]<>|~$&#])")
_CALLS = re.compile(
    r"(?<=[@#!%&~$])(?=\w)|(?<=:)(?=//|[\w+-]+:)|(?<=\bwww)(?=\.)|(?<=\S)(?=@)"
    r"|(?<=\bG[HL])(?=-\d)|(?<=\b[0-9a-f]{6})(?=[0-9a-f]{34}\b)",  # shorter ids stay whole, to be copied
    re.IGNORECASE,
)
_BEGINS = re.compile(r"^([-+=:])|^(\d+)([.)])")
_JOINER = "\u2060"  # takes no room; without it @name, #12, GH-12, :tada: or an address would act


def markdown(found: Compared, judged: Sequence[Judged]) -> str:
    """The whole comment. Its first line says how it stands."""
    parts = [f"**{plain(found.verdict.whole)}**"]
    if judged:
        parts = [f"### {_stands(judged)}", *parts, _gates(judged)]
    parts += [_table(found.table)] if found.table.rows else []
    parts += [_differs(found.jobs), _sure(found.jobs)] if found.jobs else []
    parts += [_notes(found.notes), _whose(found)]
    return "\n\n".join(p for p in parts if p) + "\n"


def refused(a: str, b: str, judged: Sequence[Judged], why: str) -> str:
    """Where nothing could be compared."""
    parts = [f"### {_stands(judged)}"] if judged else []
    return "\n\n".join([*parts, f"**{plain(a)} and {plain(b)} were not compared.** {plain(why)}"]) + "\n"


def plain(text: str) -> str:
    """Any text on one line as Markdown that shows exactly it."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    escaped = _MARKS.sub(r"\\\1", _CALLS.sub(_JOINER, " ".join(shown.split())))
    return _BEGINS.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", escaped)


def _stands(judged: Sequence[Judged]) -> str:
    failed, dark = (sum(j.outcome == outcome for j in judged) for outcome in (FAILED, NOT_TOLD))
    of = fmt.count(len(judged), "gate")
    if failed:
        return f"Failed: {failed:,} of {of}{f', and {dark:,} could not be told' if dark else ''}"
    if dark:
        return f"Could not be told: {dark:,} of {of}"
    return "Passed: the gate holds" if len(judged) == 1 else f"Passed: all {of} hold"


def _gates(judged: Sequence[Judged]) -> str:
    return _rows(("fails if", "outcome", "why"), [(j.gate, j.outcome, j.why) for j in judged])


def _table(table: Table) -> str:
    """The first rows, which changed most; the rest is counted."""
    more = len(table.rows) - MOST_ROWS
    text = _rows(table.head, table.rows[:MOST_ROWS], table.right)
    return f"{text}\n\nAnd {fmt.count(more, 'row')} more that changed less." if more > 0 else text


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    marks = ["---:" if i in right else "---" for i in range(len(head))]
    told = [[plain(short(cell, CELL)) for cell in row] for row in [head, *rows]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [told[0], marks, *told[1:]])


def _differs(jobs: DifferenceResult) -> str:
    if not jobs.differs:
        return "**What differs**: nothing that is known of both."
    shown = jobs.differs[:MOST_ROWS]
    rows = [(d.name.replace("_", " "), _value(d.a), _value(d.b)) for d in shown]
    more = len(jobs.differs) - len(shown)
    after = f"\n\nAnd {fmt.count(more, 'setting')} more." if more else ""
    return f"**What differs**\n\n{_rows(('setting', 'A', 'B'), rows)}{after}"


def _value(value: object) -> str:
    return "not told" if value is None else fmt.number(value) if isinstance(value, float) else str(value)


def _sure(jobs: DifferenceResult) -> str:
    """What the change of a step rests on."""
    step = jobs.step
    if step is None:
        return ""
    if step.low is None or step.high is None:
        return f"**How sure**: no range can be told: {plain(step.why)}."
    if step.low == step.high:
        return "**How sure**: nothing scatters in what is modelled."
    seen = "" if step.detectable is None else f"; a change of {fmt.share(step.detectable, 2)} could be seen"
    return f"**How sure**: the change of a step lies between {signed(step.low)} and {signed(step.high)}{seen}."


def _notes(notes: Sequence[str]) -> str:
    return "\n".join(f"- {plain(note)}" for note in notes[:MOST_NOTES])


def _whose(found: Compared) -> str:
    (a, b), (one, other) = found.names, found.ids
    return f"A: {plain(short(a))} (`{one[:12]}`), B: {plain(short(b))} (`{other[:12]}`)."
