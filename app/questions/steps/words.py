"""The steps in words: their verdict, and their figures as a terminal prints them."""

from analyzers.time.steps import StepsResult
from app.words import Table, Verdict, headline
from errors import format as fmt


def verdict(result: StepsResult) -> Verdict:
    """How long a usual step takes, how far that is from the best, and how many steps were lost."""
    if not result.steps:
        return headline("No step was found: the inputs hold no step line, no step event and no profile with steps.")
    rows = result.rows
    usual = result.median_step_s
    if usual is None:
        text = f"{fmt.count(result.steps, 'step')} recorded, but no duration that can be trusted."
    else:
        best = result.best_step_s
        alone = best is None  # one mean of all that is known
        text = f"A {'' if alone else 'usual '}step takes {fmt.duration(usual)}{' on average' if alone else ''}"
        if best and usual > best * 1.02:
            text += f", {fmt.share(usual / best - 1, 2)} longer than the best"
        elif best:
            text += ", as fast as the best"
        text += "."
    lost = int((~rows["kept"].astype(bool)).sum())
    again = f"{fmt.count(lost, 'step was', 'steps were')} lost and taken again." if lost else ""
    false = int((rows["implausible"].fillna("") != "").sum())
    left_out = "is left out" if false == 1 else "are left out"
    untrue = f"{fmt.count(false, 'step cannot', 'steps cannot')} be true as printed and {left_out}." if false else ""
    return headline(text, _pattern(result), again, untrue)


def _pattern(result: StepsResult) -> str:
    """What the durations show beside their median, and what it cost."""
    found = result.pattern
    if found is None or result.excess_chip_seconds is None:
        return ""
    usual, slow = fmt.duration(found.usual_s), fmt.duration(found.slow_s)
    span = f"{found.first_step:,} to {found.last_step:,}"
    said = {
        "growing": f"Steps {span} grew from {usual} to {slow}",
        "periodic": f"Of steps {span} every {_ordinal(found.every or 0)} took {slow}, the others {usual}",
        "irregular": f"Of steps {span} {found.times or 0:,}, at no one distance, took {slow}, the others {usual}",
        "changed": f"Steps {span} took {slow}, the quickest stretch {usual}",
    }[found.kind]
    return f"{said}: {fmt.chip_time(result.excess_chip_seconds)} beyond."


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def table(result: StepsResult) -> Table:
    """The figures of the usual step."""
    return Table(
        ("figure", "value"),
        (
            ("steps", f"{result.steps:,}"),
            ("median step", fmt.duration(result.median_step_s)),
            ("best step", fmt.duration(result.best_step_s)),
            ("tokens per second and chip", fmt.number(result.tokens_per_s_per_chip)),
            ("TFLOP/s per chip", fmt.number(result.tflops_per_s_per_chip)),
        ),
        right=(1,),
    )
