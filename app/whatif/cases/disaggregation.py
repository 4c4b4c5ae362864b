"""Prefill and decode apart: when it pays, and when the honest answer is “don't”."""

from app.whatif.cases.base import Case, Row
from app.words import headline
from catalog import chip, model
from catalog.models import Model
from catalog.serving_figures import figures
from simulators.serving.disaggregated import Comparison, compare
from simulators.serving.efficiency import FAST, SLOW, TYPICAL, Efficiency
from simulators.serving.objectives import Objectives, Shape
from simulators.serving.setup import Setup

NAME = "disaggregation"
TITLE = "DeepSeek-V3 on 32 H200, in one pool or two"
QUESTION = "Would 32 H200 serve more with prefill and decode on machines of their own?"
SHAPE, OBJECTIVES = Shape(4000, 1000), Objectives(ttft_s=2.0, tpot_s=0.030, percentile=50)
CHIPS = 32


ENDS = {"slow": SLOW, "fast": FAST}


def compared(of: Model, group: int, efficiency: Efficiency, most: int = 3) -> Comparison:
    """All chips in replicas of `group`, experts spread over each, against the same replicas split in two pools."""
    setup = Setup(
        model=of,
        chip=chip("h200"),
        chips=CHIPS,
        tensor=1,
        expert=group,
        replicas=CHIPS // group,
        weights_precision="fp8",
        kv_precision="fp8",
    )
    return compare(setup, SHAPE, OBJECTIVES, efficiency, most)


def answer() -> Case:
    """The estimator's ratio beside ours: the best size of a replica for either, and that over assumed efficiencies."""
    known, of = figures(), model("deepseek3-671b")
    typical = {group: compared(of, group, TYPICAL) for group in (8, 16)}
    pooled = max(typical, key=lambda g: typical[g].aggregate.rate_per_s)
    parted = max(typical, key=lambda g: typical[g].disaggregated.rate_per_s)
    rates = [(typical[pooled].aggregate.rate_per_s, typical[parted].disaggregated.rate_per_s)]
    for end in ENDS.values():
        found = {group: compared(of, group, end, most=1) for group in {pooled, parted}}
        rates.append((found[pooled].aggregate.rate_per_s, found[parted].disaggregated.rate_per_s))
    per_chip = SHAPE.output / CHIPS
    rows = []
    for number, (key, words) in enumerate((("aggregate", "one pool"), ("disaggregated", "two pools"))):
        stated = known[f"dsv3.{key}.output_tokens_per_s_per_chip"]
        values = [r[number] * per_chip for r in rates]
        rows.append(
            Row(
                f"Tokens/s per chip, {words}",
                "tokens/s",
                stated.value,
                stated.source,
                values[0],
                "modelled",
                min(values),
                max(values),
                "assumed shares of the peaks; replicas of 8 or 16",
            )
        )
    ratios = [one / two for one, two in rates if one and two]
    stated = known["dsv3.ratio"]
    rows.append(
        Row(
            "One pool by two pools",
            "×",
            stated.value,
            stated.source,
            ratios[0],
            "modelled",
            min(ratios),
            max(ratios),
            "above 1: don't",
        )
    )
    best = typical[parted]
    notes = (
        "Objectives: 2 s to the first token and 30 ms a token, as medians, since the estimator knows no queue.",
        "Pools are whole replicas: with 32 chips there are few ways to split, and an unused rest costs what it costs.",
        f"Sending the cache of a prompt takes {best.transfer_s * 1e3:.1f} ms over the data-centre network at its full "
        "rate; nothing is overlapped with it.",
        "Requests of equal lengths, arriving at random. Mixed lengths, strict times per token and long prompts speak "
        "for two pools; few chips and loose objectives against.",
    )
    return Case(NAME, TITLE, QUESTION, _verdict(stated.value, ratios, best), tuple(rows), notes)


ALIKE = 0.02  # from 1: a ratio within it is no difference


def _verdict(stated: float, ratios: list[float], best: Comparison) -> str:
    ours, split = ratios[0], best.best.name if best.best else "no split"
    low, high = min(ratios), max(ratios)
    how = f"one pool serves {ours:.2f} times what the best split ({split}) does"
    over = f"{low:.2f} to {high:.2f} over the efficiencies assumed"
    if low < 1 - ALIKE and high > 1 + ALIKE:
        lies = "within that" if low <= stated <= high else "beyond that"
        return headline(f"Our model cannot tell: {how}, {over}.", f"The estimator's {stated:.2f} times lies {lies}.")
    word = "Don't" if ours > 1 + ALIKE else "It makes no difference" if ours > 1 - ALIKE else "Do, by our model"
    agree = "agrees" if (ours > 1) == (stated > 1) else "disagrees"
    return headline(f"{word}: {how}, {over}.", f"The estimator {agree}: {stated:.2f} times.")
