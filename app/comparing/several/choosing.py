"""Which runs are compared: those that are named, found by a search, or in a group. What cannot be is said, and left
out."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from analyzers.several.differing import LEAST, MOST, Member
from app.library.columns import COLUMNS, Row
from app.library.rows import Numbers, found_ids, library
from app.library.table import Table, table
from app.summary import chip_text
from app.words import short
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from errors import format as fmt
from runs.run import FactValue, Run

MOST_COMMAS = 8  # within a name that is looked for between commas
NAMED = 5  # runs that are left out and told one by one


@dataclass(frozen=True)
class Chosen:
    """The runs in their order, each as its row, its run and what is compared of it. `said`: what was left out, and
    why; `pending`: of how many figures are being worked out."""

    rows: tuple[Row, ...]
    runs: tuple[Run, ...]
    members: tuple[Member, ...]
    said: tuple[str, ...]
    pending: int

    def index(self, run_id: str) -> int:
        return next(n for n, m in enumerate(self.members) if m.run_id == run_id)


def choose(
    place: Workspace,
    runs: Sequence[str] = (),
    q: str = "",
    group: str = "",
    numbers: Numbers = "later",
    split: bool = True,
) -> Chosen:
    """`split`: whether commas in `runs` stand between names. Raises QuestionError where fewer than two runs are left,
    or more than MOST are asked for."""
    kept, said = table(place), list[str]()
    if runs:
        rows = _named(place, kept, runs, split, said)
    elif q or group:
        rows = _found(place, q, group, numbers)
    else:
        raise QuestionError(
            "no runs are chosen",
            expected=f"{LEAST} to {MOST} runs: by their ids or names, a search, or a group",
            advice="Tick runs in the list of runs, and choose Compare",
        )
    if len(rows) > MOST:
        many = f"{len(rows):,} runs" if runs else f"more than {MOST} runs"
        raise QuestionError(f"{many} to compare", expected=f"at most {MOST}", advice="Search for fewer of them")
    rows = [row for row in rows if _can_be_read(row, said)]
    asked, rows = rows, list(kept.fresh(rows))
    there = {row.run_id for row in rows}
    said += [f"{short(row.name)} was removed meanwhile." for row in asked if row.run_id not in there]
    if numbers == "now":
        kept.work_out(rows)
        rows = list(kept.fresh(rows))
    elif numbers == "later":
        kept.begin(rows, [row.run_id for row in rows if row.pending])
    return _chosen(place, rows, said)


def _chosen(place: Workspace, rows: Iterable[Row], said: list[str]) -> Chosen:
    some, runs, members = list[Row](), list[Run](), list[Member]()
    for row in rows:
        try:
            run = place.store.get(row.run_id)
            if run is None:
                said.append(f"{short(row.name)} was removed meanwhile.")
                continue
            members.append(_member(row, run))
        except ChipledgerError as e:
            said.append(f"{short(row.name)} is left out: {e}")
            continue
        some.append(row)
        runs.append(run)
    if len(some) < LEAST:
        found = "no run" if not some else f"only {short(some[0].name)}"
        more = f": {' '.join(said)}" if said else ""
        raise QuestionError(f"{found} is left to compare{more}", expected=f"at least {LEAST} runs that can be read")
    said += [f"{short(row.name)} is still running: what it wrote so far is compared." for row in some if row.live]
    said += [f"Of {short(row.name)} something is damaged: {row.problem}" for row in some if row.problem]
    pending = sum(row.pending for row in some)
    return Chosen(tuple(some), tuple(runs), tuple(members), tuple(said), pending)


def _member(row: Row, run: Run) -> Member:
    facts = dict(run.manifest.facts)
    if chip := chip_text(run):  # as the catalogue names it, however each run called it
        facts["chip"] = FactValue(chip, facts["chip"].basis, facts["chip"].source)
    figures = {c.name: v for c in COLUMNS if c.worked_out and (v := row.numbers.get(c.name)) is not None}
    return Member(
        run_id=run.run_id,
        name=row.name,
        kind=row.kind,
        simulated=row.simulated,
        model=row.model,
        facts=facts,
        figures=figures,
    )


class _Called:
    """The rows of runs by id, address or name, each looked for once."""

    def __init__(self, kept: Table):
        self._kept, self._found = kept, dict[str, Row | None]()

    def get(self, text: str) -> Row | None:
        if text not in self._found:
            self._found[text] = self._kept.called(text)
        return self._found[text]

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.get(text) is not None


def _split(text: str, known: Container[str]) -> Iterator[str]:
    """Names between commas; a known name that holds commas itself is one."""
    parts, at = text.split(","), 0
    while at < len(parts):
        longest = min(len(parts), at + 1 + MOST_COMMAS)
        end = next((e for e in range(longest, at, -1) if ",".join(parts[at:e]).strip() in known), at + 1)
        if name := ",".join(parts[at:end]).strip():
            yield name
        at = end


def _named(place: Workspace, kept: Table, texts: Sequence[str], split: bool, said: list[str]) -> list[Row]:
    """The rows of runs by name, each once; what is not there, or is named again, is said."""
    by = _Called(kept)
    with kept.still():  # very many texts may be names
        names = [n for text in texts for n in (_split(text, by) if split else [text.strip()]) if n]
    if len(names) > 4 * MOST:
        raise QuestionError(f"{len(names):,} runs to compare", expected=f"at most {MOST}")
    found, missing = dict[str, Row](), list[str]()
    again = 0
    for name in names:
        try:
            row = by.get(name) or by.get(place.store.find(name).run_id)
        except ChipledgerError as e:
            missing.append(str(e))
            continue
        if row is None:
            missing.append(f"{short(name)} is not listed yet: ask again.")
        elif row.run_id in found:
            again += 1
        else:
            found[row.run_id] = row
    said += [text if text.endswith(".") else f"{text}." for text in missing[:NAMED]]
    if len(missing) > NAMED:
        said.append(f"{fmt.count(len(missing) - NAMED, 'more run')} could not be found.")
    if again:
        said.append(f"{fmt.count(again, 'run was', 'runs were')} named twice, and compared once.")
    return list(found.values())


def _found(place: Workspace, q: str, group: str, numbers: Numbers) -> list[Row]:
    if not group:
        return list(library(place, q, limit=MOST + 1, hidden=True, numbers=numbers).rows)
    return table(place).made(found_ids(place, q, group=group, hidden=True, unread=True)[: MOST + 1])


def _can_be_read(row: Row, said: list[str]) -> bool:
    if not row.readable:
        said.append(f"{short(row.name)} cannot be read, and is left out: {row.problem}")
    return row.readable
