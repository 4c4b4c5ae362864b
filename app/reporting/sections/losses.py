"""The largest losses of the ledger: what each is, what shows it, and what is done about it."""

from collections.abc import Iterator

from analyzers.findings import FindingsResult
from app import theme
from app.reporting.document import Block, Head, Items, Rows, Text
from app.reporting.gathering import About, Loss
from app.reporting.pictures import pictures
from app.reporting.sections.verdict import cure
from app.words import Table
from errors import format as fmt

MOST_ROWS = 12


def losses(about: About) -> Iterator[Block]:
    """Largest first, by chip time."""
    if about.ledger.result is None:
        return
    if not about.losses:
        yield Text("No loss is known: what the ledger can tell moved something forward.")
        return
    yield Text(
        "Accounts of the ledger that moved nothing forward, the largest first. A loss is no fault by itself: what is "
        "worth mending stands among the findings above.",
        "quiet",
    )
    told: set[str] = set()
    for number, loss in enumerate(about.losses, 1):
        yield Head(f"{number}. {theme.title(loss.account)}")
        yield Text(_amount(about, loss))
        yield from _evidence(about, loss, told)
        yield Items(tuple(_cures(about, loss)))


def _amount(about: About, loss: Loss) -> str:
    """What it took, how that is known, and what it is."""
    ledger = about.ledger.result.ledger
    usd = ledger.usd if ledger.chips_known else None
    dollars = "" if usd is None else f", {fmt.usd(usd * loss.chip_seconds / ledger.chip_seconds)}"
    mark = theme.mark(theme.weakest(a.basis for _, a in ledger.account.walk() if a.name == loss.account))
    share = fmt.share(loss.chip_seconds / ledger.chip_seconds)
    held = fmt.held_time(loss.chip_seconds, ledger.chips_known)
    amount = f"{share} of the chip time, {held}{dollars} ({mark.glyph} {mark.word})."
    return f"{amount} {theme.meaning((loss.account,))}"


def _evidence(about: About, loss: Loss, told: set[str]) -> Iterator[Block]:
    """The verdict of the question that explains it, with its pictures; where it has none, its table."""
    shown = loss.shown
    if shown is None:
        yield Text("No question of this run explains it further.", "quiet")
        return
    title = shown.question.title
    if shown.result is None:
        yield Text(f"{title} would show what it is made of: {shown.why}", "quiet")
        return
    if shown.question.name in told:
        yield Text(f"{title} stands above.", "quiet")
        return
    told.add(shown.question.name)
    yield Text(f"{title}: {shown.verdict}")
    drawn = list(pictures(shown, about.name))
    yield from drawn
    if not drawn:
        yield few(shown.question.table(shown.result))


def _cures(about: About, loss: Loss) -> Iterator[str]:
    """Of the findings whose gain comes out of this account."""
    result: FindingsResult | None = about.findings.result
    found = [] if result is None else [cure(result, f) for f in result.findings if f.draws.get(loss.account, 0.0) > 0]
    yield from (f"What to do: {told}" for told in found)
    if not found:
        yield "No finding above names a cure for it."


def few(table: Table, most: int = MOST_ROWS) -> Rows:
    """The first rows of a table, with how many more there are."""
    more = len(table.rows) - most
    note = f"{fmt.count(more, 'more row')} not shown." if more > 0 else ""
    return Rows(Table(table.head, table.rows[:most], table.right), note)
