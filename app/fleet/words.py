"""A fleet in words: its verdict, what is left out of it, and its rows as a terminal prints them."""

from collections.abc import Sequence

from analyzers.fleet import LEFT_OUT, FleetResult
from analyzers.fleet.causes import Cause
from analyzers.fleet.sums import Sum
from app import theme
from app.words import Table, Verdict, headline, listed, sentence, short
from errors import format as fmt

NONE = "No run is counted"
ALL = 0.9995  # of the time: what rounds to all of it


def verdict(result: FleetResult) -> Verdict:
    """How much was held and paid, which part moved models forward, and what the rest was lost to."""
    total = result.total
    if not total.runs:
        return headline(f"{NONE}.", *left_out(result))
    held = f"{fmt.chip_time(total.chip_s)} in {fmt.count(total.runs, 'run')}"
    said = [f"{held}{_paid(total)}.", _went(total), _cost(result)]
    return headline(*said)


def _paid(total: Sum) -> str:
    if total.usd is None:
        return ", none of them with a price"
    if total.unpriced_runs:
        return f", {fmt.usd(total.usd)} for those with a price ({fmt.chip_time(total.unpriced_chip_s)} have none)"
    return f", {fmt.usd(total.usd)}"


def _went(total: Sum) -> str:
    runtime, product = total.runtime_goodput, total.product
    if runtime is None:
        return "No run tells which of its time went into kept steps."
    where = (
        "it" if total.runtime_chip_s >= ALL * total.chip_s else f"the {fmt.chip_time(total.runtime_chip_s)} that tell"
    )
    useful = ""
    if product is not None:
        least = "at least " if total.at_least else ""
        narrower = total.both_chip_s < ALL * total.runtime_chip_s
        of = f" of the {fmt.chip_time(total.both_chip_s)} that tell that too" if narrower else ""
        useful = f"; {least}{fmt.whole_share(product)}{of} was useful maths"
    return f"{sentence(fmt.whole_share(runtime))} of {where} went into kept steps or answers{useful}."


def _cost(result: FleetResult) -> str:
    """The largest loss, and whose it is."""
    if not result.causes:
        return ""
    worst = result.causes[0]
    money = f", {fmt.usd(worst.usd)}" if worst.usd is not None and not result.total.unpriced_runs else ""
    share = fmt.whole_share(worst.chip_s / result.total.chip_s)
    title = theme.title(worst.account)
    lost = f"{fmt.chip_time(worst.chip_s)} ({share}{money})"
    return f"{most_lost(result.total, worst)} {title[:1].lower() + title[1:]}: {lost}."


def most_lost(total: Sum, worst: Cause) -> str:
    """How the sentence of the largest loss begins: first of all what cannot be told, where a larger one may hide."""
    if total.unknown_chip_s <= worst.chip_s:
        return "Most was lost to"
    dark = sentence(fmt.whole_share(total.unknown_chip_s / total.chip_s))
    return f"{dark} of the time cannot be told; of what is known, most was lost to"


def left_out(result: FleetResult) -> list[str]:
    """What is not counted, or not wholly, a sentence each."""
    said: list[str] = []
    if result.left_out:
        parts = [f"{count:,} {LEFT_OUT[why]}" for why, count in result.left_out.items()]
        said.append(f"Not counted: {listed(parts)}.")
    if result.partly:
        said.append(
            f"Of {fmt.count(result.partly, 'run')} {fmt.chip_time(result.partly_chip_s)} are left out, as another run "
            "of the same job tells of that time."
        )
    return said


def notes(result: FleetResult) -> list[str]:
    """What the sums rest on, a sentence each."""
    total = result.total
    said = left_out(result) if total.runs else []  # the verdict of none says it
    if result.undated is not None:
        said.append(
            f"{fmt.chip_time(result.undated.chip_s)} of {fmt.count(result.undated.runs, 'run')} have no time of day: "
            "they are in all sums, and in no period."
        )
    if result.evenly_chip_s > 0:
        said.append(
            f"{fmt.chip_time(result.evenly_chip_s)} have no calendar: they are spread evenly from the first to the "
            "last instant of their runs."
        )
    if result.scheduling is None:
        said.append(
            "Scheduling goodput cannot be told from runs alone: it takes the number of chips that the fleet has "
            "(--capacity-chips; on the page under More)."
        )
    if total.runs and total.unpriced_runs:
        without = fmt.count(total.unpriced_runs, "run has", "runs have")
        said.append(f"{without} no price: {fmt.chip_time(total.unpriced_chip_s)} are in no sum of dollars.")
    for name, what in (("archived", "archived"), ("demo", "came with the product"), ("live", "still followed")):
        if count := result.marks.get(name, 0):
            said.append(f"{count:,} of the counted runs {'are ' if name != 'demo' else ''}{what}.")
    return said


def groups_table(result: FleetResult) -> Table:
    """A row for each key, the largest first, and the sum."""
    rows = [(_name(key), *_cells(part)) for key, part in result.groups]
    if len(rows) != 1:
        rows.append(("sum", *_cells(result.total)))
    return Table((result.asked.by, *HEAD), tuple(rows), right=tuple(range(1, len(HEAD) + 1)))


def trend_table(result: FleetResult) -> Table:
    rows = [(period.name, *_cells(part)) for period, part in result.trend]
    if result.undated is not None:
        rows.append(("no date", *_cells(result.undated)))
    return Table((result.asked.every, *HEAD), tuple(rows), right=tuple(range(1, len(HEAD) + 1)))


HEAD = ("runs", "chip-hours", "cost", "no price", "runtime", "program", "product", "MFU")


def _cells(part: Sum) -> Sequence[str]:
    least = "≥ " if part.at_least and part.program_goodput is not None else ""
    return (
        f"{part.runs:,}",
        fmt.number(part.chip_s / 3600),
        fmt.usd(part.usd),
        fmt.number(part.unpriced_chip_s / 3600) if part.unpriced_runs else "",
        fmt.share(part.runtime_goodput),
        f"{least}{fmt.share(part.program_goodput)}",
        f"{least}{fmt.share(part.product)}",
        fmt.share(part.mfu),
    )


def causes_table(result: FleetResult) -> Table:
    rows = [
        (
            theme.title(c.account),
            fmt.number(c.chip_s / 3600),
            fmt.share(c.chip_s / result.total.chip_s),
            fmt.usd(c.usd),
            f"{c.runs:,}",
            ", ".join(f"{_name(name)} {fmt.share(s / c.chip_s)}" for name, s in c.owners),
            short(c.run_name),
        )
        for c in result.causes
    ]
    head = ("lost to", "chip-hours", "share", "cost", "runs", "whose", "largest in")
    return Table(head, tuple(rows), right=(1, 2, 3, 4))


def _name(key: str) -> str:
    return short(key)
