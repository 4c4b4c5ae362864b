"""Goodput of a planned job: as it was given, or by lives of a job whose chips fail, on each number of chips."""

from collections.abc import Iterator, Sequence

from app.whatif.goodput.asked import DAYS, FAILING
from app.whatif.goodput.failing import check, failing, life
from app.whatif.training.asked import Asked
from app.whatif.training.reasons import Reason
from catalog import chip
from errors import QuestionError
from errors import format as fmt
from simulators.training.cost import DAY_S
from simulators.training.end_to_end import LEAST, Band, EndToEnd, end_to_end, kept, length_s, sure
from simulators.training.plan import Planned

OF_LIVES = (
    "Goodput is that of lives of the job: failures of its chips drawn one by one, at the best interval between saves "
    "where none is given. More chips fail more often.",
    "The range of days and dollars joins that of the step with the luck of nine of ten lives; the two are taken as "
    "independent.",
)
SPARES = "Spares are paid for as long as the job: a machine of so many chips as one host has, each."
ALL_KEPT = "Goodput is taken as 1: every step is kept and nothing waits. What your jobs reach can be named instead."
GIVEN = "Goodput is taken as it was given, on any number of chips."


def check_lives(asked: Asked) -> None:
    """What belongs together, whatever the number of chips. Raises QuestionError."""
    given = [option.flag for option in FAILING if _given(getattr(asked, option.name))]
    if not given:
        return
    if asked.goodput is not None:
        raise QuestionError(
            f"a goodput, and {given[0]}, from which one follows",
            expected="one of the two",
            advice="Leave --goodput away, or all that tells of failures",
        )
    missing = [f"--{n.replace('_', '-')}" for n in ("mttf_chip_h", "save_s") if getattr(asked, n) is None]
    if missing:
        raise QuestionError(f"{given[0]} without what else lives of a job take", expected=", ".join(missing))
    check(failing(asked))


def _given(value: object) -> bool:
    """0 is said as well."""
    return value is not None and value is not False


def told(
    layouts: Sequence[Planned], asked: Asked, price: float | None, reasons: list[Reason]
) -> Iterator[tuple[Planned, EndToEnd]]:
    """Each layout of one number of chips with its goodput, tokens a day, days and dollars; `reasons` gets why so many
    chips keep too little of their time."""
    if not layouts:
        return
    first = layouts[0]
    try:
        share = _goodput(asked, first.chips, first.tokens_per_s_per_chip * first.chips)
    except QuestionError as e:
        text = f"{first.chips:,} {first.chip}: {str(e).removesuffix('.')}."
        reasons.append(Reason(kind="failures", text=text, chip=first.chip, chips=first.chips))
        return
    for p in layouts:
        rate = p.tokens_per_s_per_chip * p.chips
        band = Band(low=rate * p.step_s / p.high_s, likely=rate, high=rate * p.step_s / p.low_s)
        held = p.chips + (asked.spares or 0) * int(chip(p.chip).value("chips_per_host") or 1)
        yield p, end_to_end(band, share, asked.tokens, price and price * held)


def notes(asked: Asked) -> tuple[str, ...]:
    """Where the goodput is from; nothing where none was given or asked for."""
    if asked.mttf_chip_h is not None:
        return (*OF_LIVES, *((SPARES,) if asked.spares else ()))
    if asked.goodput is not None:
        return (GIVEN,)
    return () if asked.tokens is None else (ALL_KEPT,)


def _goodput(asked: Asked, chips: int, tokens_per_s: float) -> Band:
    """As it was given, else of lives as long as the job: of the fastest layout, for all on as many chips."""
    if asked.mttf_chip_h is None:
        return sure(asked.goodput or 1.0)
    how, span_s = failing(asked), DAYS * DAY_S
    if asked.tokens is not None:
        work_s = asked.tokens / tokens_per_s
        check(how, work_s)
        span_s = rounded(length_s(life(how, chips)[0], work_s))
    share = kept(life(how, chips, span_s)[0])
    if share.low < LEAST:
        raise QuestionError(
            f"more than one in twenty lives of {fmt.duration(span_s)} keeps next to nothing",
            expected=f"at least {fmt.share(LEAST)} of the time in each",
            advice="Fewer chips, shorter saves and restarts, or chips that fail less often",
        )
    return share


def rounded(span_s: float) -> float:
    """To two digits: jobs of nearly one length share their lives."""
    return float(f"{span_s:.1e}")
