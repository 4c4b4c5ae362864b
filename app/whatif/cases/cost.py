"""Two cheap cards or one dear one: what was measured, what two models say, and the price at which it tips."""

import numpy as np

from app.whatif.cases.base import Case, Row
from app.words import headline
from catalog import chip, model
from catalog.serving_figures import figures
from errors import format as fmt
from simulators.serving.cost import break_even
from simulators.serving.efficiency import FAST, SLOW, TYPICAL, Efficiency
from simulators.serving.engine import Outcome, simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import Traffic

NAME = "cost"
TITLE = "Two RTX PRO 6000 or one B200"
QUESTION = "Which serves gpt-oss-120b cheaper, two RTX PRO 6000 or one B200?"
SEATS = 256  # vLLM's default, which tokens/s x time per token confirms: 227 and 215 sequences ran at a time
MACHINES = {"rtx": ("RTX PRO 6000 Server", 2), "b200": ("B200", 1)}


def requests(name: str, f: dict[str, float]) -> float:
    """How many requests there were, if all were sent at once: twice the mean wait for a first token, times the rate."""
    return 2 * f[f"{name}.ttft_s.mean"] * f[f"{name}.request_rate_per_s"]


def served(name: str, count: int, prompt: int, output: int, cached: int, efficiency: Efficiency) -> Outcome:
    """`count` requests at once on the machine `name`: experts in 4 bits as they are published, the rest in bf16."""
    card, chips = MACHINES[name]
    setup = Setup(
        model=model("gpt-oss-120b"), chip=chip(card), chips=chips, experts_precision="fp4", max_sequences=SEATS
    )
    same = (np.full(count, n, dtype=np.int64) for n in (prompt, output, cached))
    return simulate(setup, Traffic(np.zeros(count), *same, "all at once"), efficiency, record=False)


def answer() -> Case:
    """Measured beside modelled for both machines, and the break-even price by each."""
    f, known = {n: x.value for n, x in figures().items()}, figures()
    output = round(f["rtx.output_tokens_per_s"] / f["rtx.request_rate_per_s"])
    count = round((requests("rtx", f) + requests("b200", f)) / 2)
    prompt, cached = int(f["cost.input_tokens"]), int(f["cost.prefix_tokens"])
    rows, made = [], {}
    for name, (card, chips) in MACHINES.items():
        ours = [served(name, count, prompt, output, cached, e) for e in (TYPICAL, SLOW, FAST)]
        made[name] = ours
        for key, unit, take in (
            ("output_tokens_per_s", "tokens/s", lambda o: o.output_tokens_per_s),
            ("ttft_s.mean", "s", lambda o: float(o.served["ttft_s"].mean())),
            ("tpot_s.mean", "s", lambda o: float(o.served["tpot_s"].mean())),
        ):
            stated, values = known[f"{name}.{key}"], [take(o) for o in ours]
            words = {
                "output_tokens_per_s": "tokens per second",
                "ttft_s.mean": "mean time to first token",
                "tpot_s.mean": "mean time per output token",
            }[key]
            rows.append(
                Row(
                    f"{chips} × {card}: {words}",
                    unit,
                    stated.value,
                    stated.source,
                    values[0],
                    "modelled",
                    min(values),
                    max(values),
                    "not calibrated: assumed shares of the peaks",
                )
            )
    pair = [(f[f"{n}.output_tokens_per_s"], f[f"{n}.chips"]) for n in MACHINES]
    theirs = [(f[f"estimator.{n}.output_tokens_per_s"], f[f"{n}.chips"]) for n in MACHINES]
    ours = [(made[n][0].output_tokens_per_s, MACHINES[n][1]) for n in MACHINES]
    slopes = (
        ("measured", break_even(*pair)),
        ("aiconfigurator, an estimate", break_even(*theirs)),
        ("our model, not calibrated", break_even(*ours)),
    )
    measured = slopes[0][1]
    rows.append(
        Row(
            "Break-even: price of a B200 by that of a card",
            "×",
            measured,
            known["b200.chips"].source,
            slopes[2][1],
            "modelled",
            note="below it the B200 is the cheaper",
        )
    )
    faster = [(b[0] / r[0]) for r, b in (pair, theirs, ours)]
    verdict = headline(
        f"As measured, two cards gave {1 / faster[0]:.2f} times the tokens of one B200, so a B200 is the cheaper only "
        f"below {measured:.2f} times the price of one card.",
        f"Two models rank them the other way: {faster[1]:.2f} times "
        f"(an estimator) and {faster[2]:.2f} times (ours) for the B200, tipping at {slopes[1][1]:.1f} and "
        f"{slopes[2][1]:.1f} times.",
        f"Ours comes within {abs(rows[0].ratio - 1):.0%} of the cards and gives the B200 "
        f"{rows[3].ratio:.1f} times what it did: for that software on that day believe the measurement, and measure "
        "again.",
    )
    short = served("rtx", count, cached + int(f["cost.output_tokens"]), output, cached, TYPICAL).served["tpot_s"].mean()
    notes = (
        f"Rates and waits fit about {fmt.number(count)} requests sent at once: mean wait × 2 × rate gives "
        f"{requests('rtx', f):.0f} and {requests('b200', f):.0f}. Tokens/s × time per token gives 227 and 215 "
        "sequences at a time: vLLM's 256 seats.",
        f"Tokens/s by requests/s gives {output} tokens an answer on both machines, though 200 were configured: our "
        "model takes what was generated.",
        "The title is read as prompts of 10,000 tokens, the first 1,500 found in the cache. Prompts of 1,500 + 200 "
        f"would give {short * 1e3:.0f} ms a token on the cards, far from what was measured.",
        "What software ran, at which versions, is not stated. No price is assumed: the line holds for any.",
    )
    return Case(
        NAME,
        TITLE,
        QUESTION,
        verdict,
        tuple(rows),
        notes,
        {"requests": count, "output_tokens": output},
        ("RTX PRO 6000", "B200"),
        slopes,
    )
