"""What “P99 244 ms” means: a sum of two percentiles, and not the answer that most requests saw."""

from math import sqrt

from app.whatif.cases.base import Case, Row
from app.words import headline
from catalog.serving_figures import figures
from errors import format as fmt

NAME = "p99"
TITLE = "The 244 ms P99"
QUESTION = "Small requests, 350 tokens in and 12 out: what do 42 ms to the first token and 13.6 ms a token add up to?"


def answer() -> Case:
    """The mean, and between what the P99 lies, from the four published latencies."""
    f = {name: figure.value for name, figure in figures().items()}
    gaps = f["online.output_tokens"] - 1
    ttft, tpot = f["online.ttft_s.mean"], f["online.tpot_s.mean"]
    top = [f["online.ttft_s.p99"], f["online.tpot_s.p99"]]
    mean, twelve = ttft + gaps * tpot, ttft + (gaps + 1) * tpot
    together = top[0] + (gaps + 1) * top[1]
    low, high = mean + _apart(ttft, tpot, top, gaps), top[0] + gaps * top[1]
    stated, hosted, rate = f["online.e2e_s.p99"], f["hosted.e2e_s.p50"], f["online.request_rate_per_s"]
    rows = (
        Row(
            "Mean, first to last token: 11 gaps",
            "s",
            None,
            "",
            mean,
            "derived",
            note="12 tokens are 11 gaps after the first",
        ),
        Row("Mean, reckoned with 12 gaps", "s", None, "", twelve, "derived", note="42 + 12 × 13.6 = 206: still a mean"),
        Row(
            "P99 as printed",
            "s",
            stated,
            figures()["online.e2e_s.p99"].source,
            together,
            "derived",
            note="the two printed P99s added up, with 12 gaps, give it",
        ),
        Row(
            "P99 of the whole, 11 gaps",
            "s",
            stated,
            figures()["online.e2e_s.p99"].source,
            high,
            "modelled",
            low,
            high,
            "from: slow first tokens and slow gaps strike different requests (normal, independent); to: the same ones",
        ),
        Row("Requests in flight", "requests", None, "", rate * mean, "derived", note="Little: rate × mean latency"),
    )
    verdict = headline(
        f"The mean request took {fmt.number(mean * 1e3)} ms.",
        f"244 ms is what the two P99s add up to with 12 gaps "
        f"({fmt.number(top[0] * 1e3)} + 12 × {fmt.number(top[1] * 1e3)} = {fmt.number(together * 1e3)} ms).",
        f"With the 11 gaps that 12 tokens have, the P99 lies between {fmt.number(low * 1e3)} and "
        f"{fmt.number(high * 1e3)} ms.",
        f"Against the hosted model's median of {fmt.number(hosted * 1e3)} ms even 244 is "
        f"{hosted / stated:.1f} times faster, the mean {hosted / mean:.1f} times.",
    )
    notes = (
        "The sum of two P99s is the P99 of the sum only if the same requests are worst in both; else it is less.",
        "A hosted model's latency holds the way through the internet and its own queue: the two were not measured "
        "alike, and a P99 here is set against a median there.",
    )
    return Case(
        NAME,
        TITLE,
        QUESTION,
        verdict,
        rows,
        notes,
        {"mean_s": mean, "p99_low_s": low, "p99_high_s": high, "sum_of_p99_s": together},
    )


def _apart(ttft: float, tpot: float, top: list[float], gaps: float) -> float:
    """What the P99 lies above the mean where first tokens and gaps vary normally and independently of one another."""
    return sqrt((top[0] - ttft) ** 2 + (gaps * (top[1] - tpot)) ** 2)
