"""The steps in words: their verdict, and their figures as a terminal prints them."""

from analyzers.time.steps import StepsResult
from app import format as fmt
from app.words import Table


def verdict(result: StepsResult) -> str:
    """How long a usual step takes, how far that is from the best, and how many steps were lost."""
    if not result.steps:
        return "No step was found: the inputs hold no step line, no step event and no profile with steps."
    rows = result.rows
    usual = result.median_step_s
    if usual is None:
        text = f"{fmt.count(result.steps, 'step')} recorded, but no duration that can be trusted."
    else:
        text = f"A usual step takes {fmt.duration(usual)}"
        best = result.best_step_s
        if best and usual > best * 1.02:
            text += f", {fmt.share(usual / best - 1, 2)} longer than the best"
        elif best:
            text += ", as fast as the best"
        text += "."
    lost = int((~rows["kept"].astype(bool)).sum())
    if lost:
        text += f" {fmt.count(lost, 'step was', 'steps were')} lost and taken again."
    false = int((rows["implausible"].fillna("") != "").sum())
    if false:
        left_out = "is left out" if false == 1 else "are left out"
        text += f" {fmt.count(false, 'step cannot', 'steps cannot')} be true as printed and {left_out}."
    return text


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
