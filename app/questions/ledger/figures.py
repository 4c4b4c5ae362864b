"""The figures of a ledger, by what the run is: trained, served, or only compiled."""

from analyzers.time.ledger import LedgerResult
from analyzers.time.useful import uncounted, useful_share
from app import theme
from app.components.figures_row import Figure
from app.questions.ledger.words import modelled
from errors import format as fmt
from runs.ledger import Account, Ledger

COMPILED = ("useful_maths", "padding", "below_roofline", "exposed_communication")  # what the figures of a program tell

ONE_CHIP = "How long a chip was held. How many there were no input tells: amounts on this page are of one."


def figures(result: LedgerResult) -> list[Figure]:
    """The five figures of a ledger."""
    ledger, whole = result.ledger, result.ledger.chip_seconds or 1.0
    productive, useful = ledger.find("productive"), ledger.find("useful_maths")
    span = None if result.start_ns is None or result.end_ns is None else (result.end_ns - result.start_ns) / 1e9
    count = fmt.count(ledger.chips, "chip") if ledger.chips_known else "A number of chips that no input tells"
    held = f"{theme.meaning('held')} {count} for {fmt.duration(span)}."
    ran = not modelled(ledger)
    shown = [time_held(ledger, held)]
    if _priced(ledger):
        shown.append(Figure("Cost", fmt.usd(ledger.usd), "Chip-hours held times the price of a chip-hour.", "derived"))
    if not ran:
        return [*shown, *(_part(ledger, n) for n in COMPILED)]
    if result.serving:
        return [*shown, *_serving(ledger, whole)]
    goodput = productive.chip_seconds / whole if productive else 0.0 if result.steps_read else None
    shown.append(
        Figure(
            "Goodput",
            fmt.share(goodput),
            "Time in steps whose result was kept, as a part of the chip time held. With the seconds of those steps "
            "that no profile explains.",
            basis_of(productive, "derived"),
            goodput,
            "more",
        )
    )
    maths = theme.meaning(["useful_maths"]) + " As a part of the chip time held."
    share = useful_share(ledger)
    if useful is None or share is None:
        shown.append(Figure("Useful maths", fmt.NO_VALUE, maths, "unattributed"))
    else:
        least = "at least " if uncounted(ledger) else ""  # and no bound is held against another's share
        shown.append(
            Figure("Useful maths", f"{least}{fmt.share(share)}", maths, useful.basis, None if least else share, "more")
        )
    if not _priced(ledger):
        shown.append(
            Figure(
                "Interruptions",
                f"{len(result.interruptions):,}",
                "Attempts that ended without the job being done.",
                "derived",
            )
        )
    shown.append(
        Figure(
            "Cannot be told",
            fmt.share(ledger.unknown / whole),
            theme.meaning(["unattributed"]),
            "unattributed",
        )
    )
    return shown


def _priced(ledger: Ledger) -> bool:
    """Whether dollars of it are those of all chips that were held."""
    return ledger.usd is not None and ledger.chips_known


def time_held(ledger: Ledger, meaning: str) -> Figure:
    """How much was held: where the number of chips is not known, how long each was."""
    if not ledger.chips_known:
        return Figure("Time of each chip", fmt.duration(ledger.chip_seconds), ONE_CHIP, "derived")
    return Figure("Chip time held", fmt.chip_time(ledger.chip_seconds), meaning, basis_of(ledger.account))


def basis_of(account: Account | None, otherwise: str = "modelled") -> str:
    """How an account is known, as its row of the table says."""
    return account.basis if account else otherwise


def _serving(ledger: Ledger, whole: float) -> list[Figure]:
    """The figures of a serving run beside the time held."""
    served = ledger.amount("served")
    told = served > ledger.amount("useful_maths")
    value = fmt.share(served / whole) if told else fmt.NO_VALUE
    shown = [
        Figure(
            "Served tokens",
            value,
            theme.meaning(["served"]),
            basis_of(ledger.find("served"), "derived") if told else "unattributed",
        ),
        _part(ledger, "useful_maths", "derived"),
    ]
    if not _priced(ledger):
        shown.append(_part(ledger, "no_requests", "measured"))
    if missing := ledger.unknown:
        return [
            *shown,
            Figure("Cannot be told", fmt.share(missing / whole), theme.meaning(["unattributed"]), "unattributed"),
        ]
    return [*shown, _part(ledger, "lost_work", "derived")]


def _part(ledger: Ledger, name: str, basis: str = "modelled") -> Figure:
    """An account as a figure: its share of the whole."""
    share, known = ledger.amount(name) / (ledger.chip_seconds or 1.0), basis_of(ledger.find(name), basis)
    return Figure(theme.title(name), fmt.share(share), f"{theme.meaning([name])} As a part of the whole.", known)
