"""Two jobs beside each other: what changed, what is known to differ, account by account and operation by operation."""

from collections.abc import Iterator

from analyzers.difference import DifferenceResult
from analyzers.difference.accounts import AccountChange
from app.comparing import job_words as words
from app.comparing.sides import both_compared
from app.pages.compare import jobs_figure as draw
from app.reporting.document import Block, Head, Items, Number, Numbers, Picture, Rows, Text
from app.reporting.gathering import Pair
from app.reporting.sections.facts import value
from app.words import Table, sentence
from errors import format as fmt

MOST_OPS = 20


def jobs_of(pair: Pair) -> DifferenceResult:
    if pair.compared.jobs is None:
        raise TypeError("two served runs have no difference of jobs")
    return pair.compared.jobs


def change(pair: Pair) -> Iterator[Block]:
    """The verdict, its figures, and the accounts that make the change."""
    from app.pages.compare.jobs import figures  # late: it loads Streamlit

    result, said = jobs_of(pair), pair.compared.verdict
    yield Text(said.whole, "verdict")
    numbers = tuple(Number(f.label, f.value, f.meaning, f.basis) for f in figures(result))
    if numbers:
        yield Numbers(numbers)
    if (drawn := draw.by_account(result)) is not None:
        yield Picture(drawn, f"What takes more of a step, and what less? {draw.pale(result)}", said.whole)


def differs(pair: Pair) -> Iterator[Block]:
    """Settings that the two tell differently, those that both tell first."""
    known = pair.compared.differing
    if not known:
        yield Text("The two tell nothing that differs.")
        return
    yield Text("This is no proof of a cause: figures say what changed, settings what may have changed it.", "quiet")
    cells = tuple((d.name.replace("_", " "), _told(d.a), _told(d.b)) for d in known)
    yield Rows(Table(("setting", "A", "B"), cells))


def _told(known: object) -> str:
    return fmt.NO_VALUE if known is None else value(known)


def accounts(pair: Pair) -> Iterator[Block]:
    """Of a step and chip; then of all chip time a kept step; and how long steps took."""
    result = jobs_of(pair)
    if result.ledger:
        yield Head("A step on one chip")
        yield Rows(words.table(result))
    if result.whole:
        yield Head("All chip time a kept step, badput included")
        yield Rows(_whole(result.whole))
    if both := both_compared(pair.a.run, pair.b.run):
        yield Head("How long settled steps took")
        drawn = draw.both_steps(*both, (result.a, result.b))
        yield Picture(drawn, "The curve further left is the quicker.", pair.compared.verdict.whole)


def _whole(rows: tuple[AccountChange, ...]) -> Table:
    told = tuple((c.title, fmt.chip_time(c.a), fmt.chip_time(c.b), words.chip_time(c.change)) for c in rows)
    return Table(("account", "A", "B", "B - A"), told, right=(1, 2, 3))


def operations(pair: Pair) -> Iterator[Block]:
    """The operations whose time changed most."""
    result = jobs_of(pair)
    if not result.ops:
        return
    if result.matched_share is not None:
        yield Text(f"Operations that both have hold {fmt.share(result.matched_share)} of the time of both.")
    ordered = sorted(result.ops, key=lambda o: -abs(o.change_s))
    told = tuple(
        (o.name, o.category, fmt.duration(o.a_s), fmt.duration(o.b_s), words.seconds(o.change_s), o.status)
        for o in ordered[:MOST_OPS]
    )
    more = len(ordered) - len(told)
    head = ("operation", "kind", "A", "B", "B - A", "in")
    yield Rows(
        Table(head, told, right=(2, 3, 4)), f"{fmt.count(more, 'more operation')} changed less." if more > 0 else ""
    )


def untold(pair: Pair) -> Iterator[Block]:
    """What the comparison could not tell, and what it rests on."""
    result = jobs_of(pair)
    if result.why:
        yield Items(tuple(f"{sentence(why).rstrip('.')}." for why in result.why))
    if result.notes:
        yield Items(tuple(result.notes))
    if not result.why and not result.notes:
        yield Text("Nothing that was compared lacked an input.")
