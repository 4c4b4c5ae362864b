"""Several runs compared, in words and rows: how far they lie apart, what was changed, and what each is against the
baseline."""

from typing import Any

from analyzers.difference.causes import BY_NAME, HEADS
from analyzers.several.against import Held
from analyzers.several.differing import Line
from app.comparing.job_words import signed
from app.comparing.several.answer import STEP, Several
from app.comparing.several.figures import ORDER, column
from app.words import Table, Verdict, headline, listed, short
from errors import format as fmt

MOST_SETTINGS = 4
MOST_COLUMNS = 8  # of a terminal's table; JSON and page have all


def verdict(found: Several) -> Verdict:
    """How far the runs lie apart in the figure that says most, then what was changed, then what was left out."""
    return headline(_spread(found), _settings(found), *_unlike(found), *found.said)


def _spread(found: Several) -> str:
    line = next((x for x in found.table.figures if len(x.told) > 1), None)
    many = fmt.count(len(found.members), "run")
    if line is None:
        if found.chosen.pending:
            return f"{many}, whose figures are being worked out."
        return f"{many}, and no figure that two of them tell differs."
    told = [(v, m.name) for v, m in zip(line.values, found.members, strict=True) if v is not None]
    least, most = min(told), max(told)
    part = "" if len(told) == len(found.members) else f", told by {len(told)} of them,"
    ends = " to ".join(f"{value(line, v)} ({short(name)})" for v, name in (least, most))
    return f"{many}: {named(line.name)}{part} goes from {ends}."


def named(figure: str) -> str:
    """A figure within a sentence."""
    found = column(figure)
    said = found.title if found else figure
    return said if said.isupper() else said.lower()


def _settings(found: Several) -> str:
    told = [line for line in found.table.settings if line.name != "kind"]
    if not told:
        return "No setting that is known differs."
    names = [setting(line.name) for line in told[:MOST_SETTINGS]]
    more = len(told) - len(names)
    return f"They differ in {', '.join(names)} and {more} more." if more else f"They differ in {listed(names)}."


def _unlike(found: Several) -> list[str]:
    many = sum(bool(why) for why in found.unlike)
    if not many:
        return []
    base = short(found.baseline.name)
    return [f"{fmt.count(many, 'run is', 'runs are')} not held against {base}: of another kind or model."]


def setting(name: str) -> str:
    """A setting within a sentence."""
    head, _, tail = name.partition(".")
    kind = BY_NAME.get(HEADS.get(head, ""))
    called = head if kind is None else kind.called
    said = f"{called}'s {tail}" if tail else called
    return short(said.replace("_", " "))


def title(name: str) -> str:
    """Over a column: with the unit of a figure."""
    found = column(name) if name in ORDER else None
    return found.head if found else name.replace("_", " ")


def value(line: Line, of: Any) -> str:
    """As a person reads it; what is not told is a dash, and never 0."""
    if of is None:
        return fmt.NO_VALUE
    found = column(line.name) if line.figure else None
    if found is not None:
        return found.shown(of)
    if isinstance(of, bool):
        return "yes" if of else "no"
    return f"{of:,}" if isinstance(of, int) else fmt.number(of) if isinstance(of, float) else str(of)


def change(held: Held | None) -> str:
    """`+6.1 % (+5.4 % to +6.8 %)`; empty where nothing is told."""
    if held is None:
        return ""
    ends = "" if held.low is None or held.high is None else f" ({signed(held.low)} to {signed(held.high)})"
    return f"{signed(held.change)}{ends}"


def table(found: Several) -> Table:
    """A row a run: the settings and figures in which they differ, figures with their change."""
    lines = _shown(found)
    head = ("run", *(title(line.name) for line in lines), "step, against the baseline")
    rows = []
    for n, member in enumerate(found.members):
        cells = [_cell(found, line, n) for line in lines]
        step = "baseline" if n == found.first else change(found.steps[n]) or found.unlike[n] or fmt.NO_VALUE
        rows.append((short(member.name), *cells, step))
    right = tuple(n + 1 for n, line in enumerate(lines) if line.figure)
    return Table(head, tuple(rows), right=right)


def _shown(found: Several) -> list[Line]:
    figures = list(found.table.figures)
    settings = found.table.settings[: max(MOST_COLUMNS - len(figures), 2)]
    return [*settings, *figures]


def _cell(found: Several, line: Line, n: int) -> str:
    said = short(value(line, line.values[n]), 24)
    held = found.changes(line)[n] if line.figure and line.name != STEP else None
    return said if held is None else f"{said} ({signed(held.change)})"


def folded(found: Several) -> str:
    """What is not shown, counted."""
    table, shown = found.table, len(_shown(found))
    alike = fmt.count(len(table.common), "setting or figure is", "settings and figures are")
    parts = [f"{alike} the same in all"] if table.common else ["Nothing is told the same by all"]
    if table.some:
        parts.append(f"{len(table.some)} told by some of the runs alone")
    if hidden := len(table.differs) - shown:
        parts.append(f"{hidden} more that differ in the JSON")
    return f"{'; '.join(parts)}."
