"""Two jobs compared, in words: is a step slower, by how much, which accounts make the difference, and why."""

from analyzers.difference import UNTOLD, DifferenceResult
from analyzers.difference.accounts import AccountChange
from analyzers.difference.causes import settings, unknown
from app.comparing.cause_words import alone, called, evidence, reason, unknown_called
from app.words import MOST, Table, Verdict, headline, listed, short
from errors import format as fmt

MOST_MAKERS, MOST_DIFFERS = 2, 3
SAME, TWICE = 0.01, 2.0  # of a change: what is not worth a sentence; times: beyond it is told as times
BEYOND = 1.25  # of the whole change: a part that others make up for
LARGE = 0.05  # of a figure without a range: what is worth a word
OTHER_WORK = {
    "chip": "another chip",
    "chips": "another number of chips",
    "model": "another model",
    "batch": "another batch",
    "sequence": "another sequence length",
}
"""What makes a step other work than the one that was compiled."""
ENOUGH = 0.99  # explained, from which on what is left is no more than scatter
ROUNDING = 1e-9  # a share below it is of no change


def verdict(result: DifferenceResult) -> Verdict:
    """The change of a step with its range, what makes it and why; then what was changed besides, and what is left."""
    change, why = _change(result), _reason(result)
    joined = f"{change[:-1]}, {why}." if why and change.endswith(".") else change
    if len(rest := f"{joined[:-1]}; the rest is noise.") <= MOST and _rest_is_noise(result):
        joined = rest
    if len(joined) > MOST and why:
        why = alone(why)
    else:
        change, why = joined, ""
    return headline(
        change, why, _stalls(result), _per_token(result), _settings(result), _left(result), _why(result), _held(result)
    )


def _reason(result: DifferenceResult) -> str:
    """Why, as far as it is known, as the end of a sentence; empty where it is not, and beside a bound."""
    if not result.told or result.bound:
        return ""
    return reason(result.because) or evidence(result)


def _rest_is_noise(result: DifferenceResult) -> bool:
    """Whether all else that changed may be chance, and what is told is no account's own doubt."""
    if not result.told or (result.explained_share or 0.0) < ENOUGH or _no_bound(result):
        return False
    named = {c.account for c in _named(result)}
    return bool(named) and not any(c.clear for c in result.ledger if c.account not in named)


def _held(result: DifferenceResult) -> str:
    """Memory at the peak and goodput, where they changed by more than a little."""
    said = []
    for name, title, shown in (
        ("memory_peak_bytes", "memory at the peak", fmt.size),
        ("memory_planned_bytes", "memory that the program needs", fmt.size),
        ("goodput_share", "goodput", fmt.share),
        ("interruptions", "interruptions", lambda v: f"{v:,.0f}"),
    ):
        figure = result.figure(name)
        if figure is not None and abs(figure.b - figure.a) > LARGE * max(abs(figure.a), abs(figure.b)):
            said.append(f"{title} {shown(figure.a)}, then {shown(figure.b)}")
    return f"{listed(said)[:1].upper()}{listed(said)[1:]}." if said else ""


def _change(result: DifferenceResult) -> str:
    if result.step is None:
        return f"How long a step takes cannot be compared: {'; '.join(result.why) or 'no step is told'}."
    a, b, step = short(result.a), short(result.b), result.step
    if result.bound:
        return _beside_bound(result, a, b)
    if not result.told:
        if step.low is None or step.high is None:
            return f"Whether a step of {b} takes longer than one of {a} cannot be told: {step.why}."
        if step.low == step.high == step.change:
            same = f"{'exactly ' if not step.change else ''}as long as one of {a}"
            return f"A step of {b} takes {same}{_by_a_little(step.change)}."
        ends = f"{signed(step.change)} ({signed(step.low)} to {signed(step.high)})"
        if step.low > 0 or step.high < 0:
            return f"A step of {b} takes {ends} beside one of {a}, too little to be called a difference."
        said = f"No difference of a step between {a} and {b} can be told from chance"
        seen = "" if step.detectable is None else f"; a change of {fmt.share(step.detectable, 2)} could be seen"
        return f"{said}: {ends}{seen}."
    made = _makers(result)
    return f"{b} {_how_much(step.change, a)}{_in_range(result)}{': ' if made else ''}{made}."


def _beside_bound(result: DifferenceResult, a: str, b: str) -> str:
    """A measured step beside the least that a compiler's bound allows."""
    step = result.step
    assert step is not None
    measured, bound = (a, b) if result.bound == "b" else (b, a)
    took, least = (step.a, step.b) if result.bound == "b" else (step.b, step.a)
    if why := _no_bound(result):
        told = f"the {fmt.duration(least)} that {bound} tells is no bound of this job"
        return f"A step of {measured} takes {fmt.duration(took)}; {told}: {why}."
    made = _makers(result)
    return (
        f"A step of {measured} takes {fmt.duration(took)}, {fmt.number(took / least, 2)} times the "
        f"{fmt.duration(least)} that the compiler's bound of {bound} allows at least{': ' if made else ''}{made}."
    )


def _no_bound(result: DifferenceResult) -> str:
    """Why what a compiler tells of one is no bound of a step of the other; empty where it is one, or none is told."""
    if not result.bound or result.step is None:
        return ""
    others = [OTHER_WORK[s.kind.name] for s in settings(result.differs) if s.kind.name in OTHER_WORK]
    took, least = (result.step.a, result.step.b) if result.bound == "b" else (result.step.b, result.step.a)
    return listed(others) if others else "it takes less" if took < least else ""


def _by_a_little(change: float) -> str:
    return f", but for {signed(change)}, too little to be called a difference" if change else ""


def _per_token(result: DifferenceResult) -> str:
    """What a token takes, where a step works on more or fewer of them on a chip."""
    if result.per_token is None or result.tokens is None or not result.told:
        return ""
    if abs(result.tokens[1] / result.tokens[0] - 1) < SAME:
        return ""
    less = "more" if result.per_token > 0 else "less"
    return f"Its steps do other work: a token takes {fmt.change(result.per_token, 2)} {less} chip time."


def _stalls(result: DifferenceResult) -> str:
    """What stalls, which are set apart, add to a step of either, where that differs."""
    if result.step is None or abs(result.stalls_s[1] - result.stalls_s[0]) < SAME * result.step.a:
        return ""
    a, b = (fmt.duration(s) for s in result.stalls_s)
    return f"Stalls, which are set apart, add {b} to a step of it on average, and {a} to one of {short(result.a)}."


def _how_much(change: float, a: str) -> str:
    """`is 6.1 % slower a step than A`, `is 38 % quicker a step than A`, `takes 3.2 times as long a step as A`."""
    if change >= TWICE - 1:
        return f"takes {fmt.number(1 + change)} times as long a step as {a}"
    return f"is {fmt.change(change, 2)} {'slower' if change > 0 else 'quicker'} a step than {a}"


def _in_range(result: DifferenceResult) -> str:
    step = result.step
    if step is None or step.low is None or step.high is None or step.low == step.high:
        return ""
    if step.change >= TWICE - 1:
        return f" ({fmt.number(1 + step.low)} to {fmt.number(1 + step.high)} times)"
    return f" ({range_of(step.low, step.high)})"


def range_of(low: float, high: float) -> str:
    """`5.4 to 6.8 %` of what is said; with signs where it holds both."""
    if low < 0 < high:
        return f"{signed(low)} to {signed(high)}"
    ends = sorted(fmt.change(v, 2) for v in (low, high)) if abs(low) == abs(high) else None
    first, last = ends or [fmt.change(v, 2) for v in sorted((low, high), key=abs)]
    return f"{first.removesuffix(' %')} to {last}"


def signed(share: float) -> str:
    """`+6.1 %`, `−0.05 %`; what is left where numbers of 16 digits are alike is nothing."""
    share = 0.0 if abs(share) < ROUNDING else share
    size = fmt.change(share, 2) if abs(share) >= 1e-3 or not share else f"{100 * abs(share):.1g} %"
    return f"{'−' if share < 0 else '+'}{size}"


def _named(result: DifferenceResult) -> list[AccountChange]:
    change = result.change_s or 0.0
    return [c for c in result.makers if c.change / change >= SAME][:MOST_MAKERS]


def _makers(result: DifferenceResult) -> str:
    """The accounts that make most of it: `input wait +38 ms (83 % of it)`; where others make up for much of them, those
    too: `below roofline +72 µs, against useful maths −40 µs`."""
    change = result.change_s or 0.0
    makers = _named(result)
    way = _way(result)
    if makers and makers[0].change / change > BEYOND:
        against = [c for c in result.ledger if c.account not in UNTOLD and result.sure(c) and c.change * change < 0][:1]
        said = listed([_account(c, way) for c in makers])
        return f"{said}, against {_account(against[0], way)}" if against else said
    return listed([f"{_account(c, way)} ({_of_it(c.change / change)})" for c in makers]) if makers else ""


def _way(result: DifferenceResult) -> int:
    """By what changes are told: where B is a bound, the sentence is of what A takes beyond it."""
    return -1 if result.bound == "b" else 1


def _of_it(share: float) -> str:
    return "all of it" if 0.995 <= share <= 1.005 else f"{fmt.share(share, 2)} of it"


def _account(c: AccountChange, way: int) -> str:
    return f"{c.title[:1].lower()}{c.title[1:]} {seconds(way * c.change)}"


def seconds(change: float) -> str:
    return f"{'−' if change < 0 else '+'}{fmt.duration(abs(change))}"


def chip_time(change: float) -> str:
    return f"{'−' if change < 0 else '+'}{fmt.chip_time(abs(change))}"


def _settings(result: DifferenceResult) -> str:
    """What else is known to differ: not what the sentence before gave as the reason."""
    cause, found = result.because, settings(result.differs)
    given = {cause.only.kind.name} if cause.only else {s.kind.name for s in cause.among}
    if not result.told:
        given = set()
    others = [called(s) for s in found if s.kind.name not in given]
    others += [unknown_called(d) for d in unknown(result.differs)]
    if not others:
        return "No setting that is known of both differs." if result.told and not given else ""
    told, more = others[:MOST_DIFFERS], len(others) - MOST_DIFFERS
    too = " too" if given else ""
    if more <= 1:  # which has room where its number would stand
        return f"They differ{too} in {listed(others)}."
    return f"They differ{too} in {', '.join(told)}, and {more} more."


def _left(result: DifferenceResult) -> str:
    """What no account tells of a change."""
    if not result.told or result.explained_share is None or result.unexplained_s is None:
        return ""
    left = 1 - result.explained_share
    if left < SAME:
        return ""
    missed = result.unexplained_s
    said = seconds(_way(result) * missed)
    if missed * (result.change_s or 0.0) < 0 or left >= 1:  # no share of it: accounts tell more, or of the other way
        return f"What accounts tell misses the change by {said}."
    return f"{fmt.share(left, 2)} of the change no account tells ({said})."


def _why(result: DifferenceResult) -> str:
    said = [w for w in result.why if result.step is None or w != result.step.why]
    return "" if result.step is None or not said else f"{'; '.join(said)[:1].upper()}{'; '.join(said)[1:]}."


def doubt(result: DifferenceResult, c: AccountChange) -> str:
    """Why a change of an account is none that is sure; empty of one that is."""
    if c.low is None:
        return "too few profiled steps"
    if not c.clear:
        return "may be chance"
    return "" if result.sure(c) else "one of them tells less of it"


def table(result: DifferenceResult) -> Table:
    """Accounts of a step and chip."""
    rows = [
        (
            c.title,
            fmt.duration(c.a),
            fmt.duration(c.b),
            seconds(c.change),
            fmt.NO_VALUE if c.low is None or c.high is None else f"{seconds(c.low)} to {seconds(c.high)}",
            doubt(result, c),
        )
        for c in result.ledger
    ]
    return Table(("account of a step", "A", "B", "B - A", "range", ""), tuple(rows), right=(1, 2, 3, 4))
