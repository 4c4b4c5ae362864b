"""Two jobs compared, in words: is a step slower, by how much, which accounts make the difference, what was changed."""

from analyzers.difference import DifferenceResult
from analyzers.difference.accounts import AccountChange
from analyzers.difference.differs import Differs
from app.words import Table, Verdict, headline, listed, short
from errors import format as fmt

MOST_MAKERS, MOST_DIFFERS = 2, 3
SAME, TWICE = 0.01, 2.0  # of a change: what is not worth a sentence; times: beyond it is told as times
NAMES = {
    "parallelism": "the mesh",
    "model": "the model",
    "chips": "the number of chips",
    "per_device_batch_size": "the batch of a device",
    "global_batch": "the batch",
    "seq": "the sequence length",
    "max_target_length": "the sequence length",
    "jax_version": "JAX",
    "jaxlib_version": "jaxlib",
}


def verdict(result: DifferenceResult) -> Verdict:
    """The change of a step with its range and what makes it, then what was changed, then what is left."""
    return headline(
        _change(result), _stalls(result), _per_token(result), _settings(result), _left(result), _why(result)
    )


def _change(result: DifferenceResult) -> str:
    if result.step is None:
        return f"How long a step takes cannot be compared: {'; '.join(result.why) or 'no step is told'}."
    a, b, step = short(result.a), short(result.b), result.step
    if not result.told:
        if step.low is None or step.high is None:
            return f"Whether a step of {b} takes longer than one of {a} cannot be told: {step.why}."
        ends = f"{signed(step.change)} ({signed(step.low)} to {signed(step.high)})"
        if step.low > 0 or step.high < 0:
            return f"A step of {b} takes {ends} beside one of {a}, too little to be called a difference."
        said = f"No difference of a step between {a} and {b} can be told from chance"
        seen = "" if step.detectable is None else f"; a change of {fmt.share(step.detectable, 2)} could be seen"
        return f"{said}: {ends}{seen}."
    made = _makers(result)
    return f"{b} {_how_much(step.change, a)}{_in_range(result)}{': ' if made else ''}{made}."


def _per_token(result: DifferenceResult) -> str:
    """What a token takes, where a step works on more or fewer of them on a chip."""
    if result.per_token is None or result.tokens is None or not result.told:
        return ""
    if abs(result.tokens[1] / result.tokens[0] - 1) < SAME:
        return ""
    less = "more" if result.per_token > 0 else "less"
    return f"Its steps do other work: a token takes {fmt.share(abs(result.per_token), 2)} {less} chip time."


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
    return f"is {fmt.share(abs(change), 2)} {'slower' if change > 0 else 'quicker'} a step than {a}"


def _in_range(result: DifferenceResult) -> str:
    step = result.step
    if step is None or step.low is None or step.high is None or step.low == step.high:
        return ""
    if step.change >= TWICE - 1:
        return f" ({fmt.number(1 + step.low)} to {fmt.number(1 + step.high)} times)"
    return f" ({_range(step.low, step.high)})"


def _range(low: float, high: float) -> str:
    """`5.4 to 6.8 %` of what is said; with signs where it holds both."""
    if low < 0 < high:
        return f"{signed(low)} to {signed(high)}"
    ends = sorted(fmt.share(abs(v), 2) for v in (low, high)) if abs(low) == abs(high) else None
    first, last = ends or [fmt.share(v, 2) for v in sorted((abs(low), abs(high)))]
    return f"{first.removesuffix(' %')} to {last}"


def signed(share: float) -> str:
    """`+6.1 %`, `−0.05 %`."""
    size = fmt.share(abs(share), 2) if abs(share) >= 1e-3 or not share else f"{100 * abs(share):.1g} %"
    return f"{'−' if share < 0 else '+'}{size}"


def _makers(result: DifferenceResult) -> str:
    """The accounts that make most of it: `input wait +38 ms (83 % of it)`."""
    change = result.change_s or 0.0
    makers = [c for c in result.makers if c.change / change >= SAME][:MOST_MAKERS]
    return listed([f"{_account(c)} ({_of_it(c.change / change)})" for c in makers]) if makers else ""


def _of_it(share: float) -> str:
    return "all of it" if 0.995 <= share <= 1.005 else f"{fmt.share(share, 2)} of it"


def _account(c: AccountChange) -> str:
    return f"{c.title[:1].lower()}{c.title[1:]} {seconds(c.change)}"


def seconds(change: float) -> str:
    return f"{'−' if change < 0 else '+'}{fmt.duration(abs(change))}"


def _settings(result: DifferenceResult) -> str:
    """What is known to differ, the first of both."""
    both = [d for d in result.differs if d.a is not None and d.b is not None]
    if not both:
        return "Nothing that is known of both differs." if result.told else ""
    told = [_setting(d) for d in both[:MOST_DIFFERS]]
    more = len(both) - len(told)
    others = f", and {fmt.count(more, 'setting')} more" if more else ""
    return f"They differ in {listed(told) if not others else ', '.join(told)}{others}."


def _setting(d: Differs) -> str:
    head, _, tail = d.name.partition(".")
    name = f"{NAMES.get(head, head)}'s {tail}" if tail else NAMES.get(head, head)
    return f"{short(name.replace('_', ' '))} ({_value(d.a)}, then {_value(d.b)})"


def _value(value: object) -> str:
    return fmt.number(value) if isinstance(value, float) else short(value, 24)


def _left(result: DifferenceResult) -> str:
    """What no account tells of a change."""
    if not result.told or result.explained_share is None or result.unexplained_s is None:
        return ""
    left = 1 - result.explained_share
    if left < SAME:
        return ""
    return f"{fmt.share(left, 2)} of the change no account tells ({seconds(result.unexplained_s)})."


def _why(result: DifferenceResult) -> str:
    said = [w for w in result.why if result.step is None or w != result.step.why]
    return "" if result.step is None or not said else f"{'; '.join(said)[:1].upper()}{'; '.join(said)[1:]}."


def table(result: DifferenceResult) -> Table:
    """Accounts of a step and chip."""
    rows = [
        (
            c.title,
            fmt.duration(c.a),
            fmt.duration(c.b),
            seconds(c.change),
            fmt.NO_VALUE if c.low is None or c.high is None else f"{seconds(c.low)} to {seconds(c.high)}",
            "" if c.clear else "too few profiled steps" if c.low is None else "may be chance",
        )
        for c in result.ledger
    ]
    return Table(("account of a step", "A", "B", "B - A", "range", ""), tuple(rows), right=(1, 2, 3, 4))
