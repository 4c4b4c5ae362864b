"""The load curve in words: the knee, the most within objectives, and what ramp-up and drain take from the rates."""

import math

from analyzers.serving.load import LoadResult
from analyzers.serving.load.knee import AXES, CHANCE, KEEPS_UP, Knee
from analyzers.serving.load.steady import Steady
from app.words import Table, Verdict, headline, short
from errors import format as fmt

UNITS = {"rate": "requests/s", "concurrency": "requests in flight", "answered": "requests/s"}
WORTH_SAYING = 0.01  # of the rate


def verdict(result: LoadResult) -> Verdict:
    """Up to which load the server keeps up, what it answers at most, and what the whole run's rate leaves out."""
    first, *others = _curve(result) if len(result.rows) > 1 else (_single(result),)
    return headline(first, *others, _objectives(result), _steady(result))


def _curve(result: LoadResult) -> tuple[str, ...]:
    if result.knee is None:
        curve = result.knee_words.startswith("No knee")
        return (result.knee_words, *((_last_step(result), _roofline(result)) if curve else ()))
    return *_place(result, result.knee), _capacity(result.knee)


def _place(result: LoadResult, knee: Knee) -> tuple[str, ...]:
    """Between which loads the knee lies; at one load, where tries of the same load lie on both sides of it."""
    unit = UNITS[result.axis]
    if knee.high_load != knee.high_load:  # on this axis a load that answered nothing stands nowhere
        low = float("nan") if knee.low_load is None else knee.low_load
        seen = f"No knee was seen up to {level(result.axis, low)} {unit}." if low == low else ""
        return f"Of {short(knee.high)}, whose rate is not told, nothing was answered.", seen
    high = level(result.axis, knee.high_load)
    if knee.low is None:
        return (f"Even the lightest load, {high} {unit}, is beyond the knee: {sign(knee)}.",)
    tail = f"{sign(knee)}{_growth(result, knee)}."
    if knee.low_load != knee.low_load:
        return (f"The knee lies below {high} {unit}: {tail}",)
    if knee.low_load == knee.high_load:
        return (f"The knee lies at {high} {unit}, where one try keeps up and another does not: {tail}",)
    low, high = _levels(result.axis, knee.low_load, knee.high_load)
    return (f"The knee lies between {low} and {high} {unit}: {tail}",)


def _last_step(result: LoadResult) -> str:
    """What the heaviest load gained over the one below it, and what that cost."""
    low, high = result.rows.iloc[-2], result.rows.iloc[-1]
    latency = f"{result.latency}_s"
    gain, cost = (high[c] / low[c] - 1 for c in ("request_rate_per_s", latency))
    if not (gain == gain and cost == cost and low["load"] < high["load"]):
        return ""
    steps = " to ".join(_levels(result.axis, low["load"], high["load"]))
    rises = f"the rate {_moves(gain)}, {latency_name(result.latency)} {_moves(cost)}"
    return f"From {steps} {rises}."


def _moves(share: float) -> str:
    if not round(share, 3):
        return "does not change"
    return f"{'rises' if share >= 0 else 'falls'} by {fmt.whole_share(abs(share))}"


def _roofline(result: LoadResult) -> str:
    share = result.rows["roofline_share"].iloc[-1]
    if not share > 0:
        return ""
    return f"There a decode step runs at {fmt.whole_share(share)} of its roofline."


def level(axis: str, load: float) -> str:
    """Where a load stands: a rate with three digits, a number of requests whole."""
    return f"{load:,.0f}" if axis == "concurrency" and load == load else fmt.number(load)


def _levels(axis: str, low: float, high: float) -> tuple[str, str]:
    """Two loads that differ, with as many digits as it takes to see that they do."""
    texts = level(axis, low), level(axis, high)
    if texts[0] != texts[1]:
        return texts
    tries = ((fmt.number(low, digits), fmt.number(high, digits)) for digits in range(3, 16))
    return next((pair for pair in tries if pair[0] != pair[1]), texts)


def sign(knee: Knee) -> str:
    """By which sign the first load beyond the knee was told."""
    return {
        "rate": "there it falls behind what is asked",
        "latency": "there latency grows faster than the rate",
        "both": "there it falls behind what is asked, and latency outgrows the rate",
    }[knee.sign]


def _growth(result: LoadResult, knee: Knee) -> str:
    low, high = result.row(knee.low), result.row(knee.high)
    before, after = (float(r[f"{result.latency}_s"]) for r in (low, high))
    if not before > 0 or not after > 0:
        return ""
    ends = fmt.duration(before), fmt.duration(after)
    told = f"stays at {ends[0]}" if ends[0] == ends[1] else " to ".join(ends)
    return f" ({latency_name(result.latency)} {told})"


def latency_name(latency: str) -> str:
    """`e2e_mean` -> `mean end-to-end latency`."""
    metric, statistic = latency.rsplit("_", 1)
    names = {"e2e": "end-to-end latency", "ttft": "TTFT", "tpot": "TPOT"}
    return f"{ {'p50': 'median'}.get(statistic, statistic) } {names[metric]}"


def _capacity(knee: Knee) -> str:
    if knee.capacity_per_s is None:
        return ""
    low, _, high = knee.capacity_per_s
    a, b = fmt.number(low), fmt.number(high)
    text = f"Beyond it answers {a if a == b else f'{a} to {b}'} requests/s"
    if knee.capacity_output_tokens_per_s:
        text += f" ({fmt.number(knee.capacity_output_tokens_per_s)} tokens/s)"
    return text + ", however many are sent."


def _single(result: LoadResult) -> str:
    row = result.rows.iloc[0]
    if row["failed_load"]:
        return "No request was answered: there is nothing to measure."
    text = f"One load: {fmt.number(row['request_rate_per_s'])} requests/s answered"
    if not row["request_rate_per_s"] >= 0:  # nobody told how many requests there were, or how long they took
        text = "One load"
    if result.axis == "rate" and row["keeping_up"] == row["keeping_up"]:
        asked = fmt.number(row["load"])
        if row["request_rate_per_s"] < row["load"]:
            text += f" of {asked} asked"
        elif row["keeping_up"] > 2 - KEEPS_UP + CHANCE / math.sqrt(max(row["completed"], 1)):
            text += f", though {asked} were asked"
        else:  # of few requests the last answer comes sooner than one more request would have
            text += ", as fast as they were asked"
    elif result.axis == "concurrency":
        text += f" with {level(result.axis, row['load'])} in flight allowed"
    tail = f", p99 TTFT {fmt.duration(row['ttft_p99_s'])}" if row["ttft_p99_s"] > 0 else ""
    made = row["output_tokens_per_s"]
    tokens = f", {fmt.number(made)} tokens/s" if made == made else ""
    return f"{text}{tokens}{tail}."


def _objectives(result: LoadResult) -> str:
    if not result.objectives:
        return ""
    if result.best is None:
        return result.best_words[:1].upper() + result.best_words[1:] + "."
    row = result.row(result.best)
    return (
        f"Most within the objectives: {fmt.number(row['request_rate_per_s'])} requests/s, "
        f"{fmt.number(row['output_tokens_per_s'])} tokens/s."
    )


def _steady(result: LoadResult) -> str:
    found = result.steady
    if found is None:
        return ""
    if not found.is_steady:
        way = "grow" if found.drift > 0 else "shrink"
        return f"It finds no steady state: requests in flight {way} until the last one is sent."
    if found.outside < WORTH_SAYING:
        return f"Ramp-up and drain take {fmt.share(max(found.outside, 0), 2)} of the rate: all of it is steady."
    full = " (its batch is full)" if found.counted == "running" else ""
    return (
        f"The {fmt.number(found.whole_output_tokens_per_s)} tokens/s of the whole load include ramp-up and drain: "
        f"in its steady part{full} it makes {rate_with_margin(found)}."
    )


def rate_with_margin(found: Steady) -> str:
    """`3,780 ± 110 tokens/s`."""
    return f"{fmt.number(found.output_tokens_per_s)} ± {fmt.number(found.output_tokens_per_s_margin, 2)} tokens/s"


def table(result: LoadResult) -> Table:
    """One row a load."""
    head = [
        "load",
        AXES[result.axis],
        "answered/s",
        "tokens/s",
        "TTFT p50",
        "TTFT p99",
        "TPOT mean",
        "e2e mean",
        "",
        "objectives",
    ]
    rows = tuple(_row(result, row) for _, row in result.rows.iterrows())
    keep = [i for i in range(len(head)) if i != 9 or result.objectives]
    return Table(
        tuple(head[i] for i in keep),
        tuple(tuple(r[i] for i in keep) for r in rows),
        right=(1, 2, 3, 4, 5, 6, 7),
    )


def _row(result: LoadResult, row) -> tuple[str, ...]:
    kept = row["keeps_objectives"]
    return (
        str(row["stage"]),
        level(result.axis, row["load"]),
        fmt.number(row["request_rate_per_s"]),
        fmt.number(row["output_tokens_per_s"]),
        *(fmt.duration(row[c]) for c in ("ttft_p50_s", "ttft_p99_s", "tpot_mean_s", "e2e_mean_s")),
        mark(result, row),
        "kept" if kept is True else "missed" if kept is False else "unknown",
    )


def mark(result: LoadResult, row) -> str:
    """What is said of a load in a table: below or beyond the knee."""
    if row["failed_load"]:
        return "nothing answered"
    if len(result.rows) < 2:
        return ""
    if row["falls_behind"]:
        return "falls behind"
    if row["out_of_proportion"]:
        return "latency outgrows rate"
    return "heaviest below the knee" if result.knee and result.knee.low == row["stage"] else ""
