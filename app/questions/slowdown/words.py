"""The what-if slowdown in words: the verdict, and its figures as a terminal prints them."""

from analyzers.ranks.slowdown import SlowdownResult
from analyzers.ranks.slowdown.causes import EVEN, Shares
from app.words import Table, Verdict, headline, short
from errors import format as fmt

NAMED = 3  # workers named in a sentence; of more the rest is counted


def times(value: float | None) -> str:
    """`1.97`: how many times as fast or as long, to three digits."""
    return fmt.NO_VALUE if value is None else f"{value:.2f}"


def part(value: float | None) -> str:
    """A part of the slowdown in per cent. Below none: making it ideal makes the job slower, if only by a hair."""
    return fmt.NO_VALUE if value is None else f"{round(100 * value) + 0:.0f} %".replace("-", "−")


def worker(place: tuple[int, int]) -> str:
    return f"data rank {place[0]}, stage {place[1]}"


def workers(result: SlowdownResult) -> str:
    """`slow worker (data rank 0, stage 0)`, `3 slowest workers (...)`."""
    named = "; ".join(worker(place) for place in result.worst[:NAMED])
    more = len(result.worst) - NAMED
    rest = f" and {fmt.count(more, 'other')}" if more > 0 else ""
    head = "slow worker" if len(result.worst) == 1 else f"{len(result.worst)} slowest workers"
    return f"{head} ({named}{rest})"


def of_lost(result: SlowdownResult, share: float | None) -> str:
    """Which part of the time lost a share of the slowdown is; launch delays are in that time and in no share."""
    lost = result.over_ideal - 1
    return fmt.whole_share(min(max(share or 0.0, 0.0), 1.0) * min((result.s - 1) / lost, 1.0)) if lost > 0 else "none"


def verdict(result: SlowdownResult) -> Verdict:
    """How long steps take against their ideal, what share of the chips' time that loses, and what makes it so."""
    if not result.validity["trusted"]:
        off = max(result.validity["replay_error"], result.validity["error_without_launch_delays"])
        return headline(
            f"What even ranks would bring cannot be told: replaying the trace misses its step times by "
            f"{fmt.share(off, 2)}; up to 5 % would do."
        )
    if result.cause == "none":
        if result.s <= 1:
            return headline(
                "Nothing slows this job down: even ranks, stages and micro-batches would not make it faster."
            )
        return headline(
            "Nothing slows this job down much: even ranks, stages and micro-batches would make it "
            f"{times(result.s)} times as fast, and below {EVEN:.2f} no cause is named."
        )
    chips = fmt.count(result.chips, "chip's", "chips'")
    without = f" (S, without launch delays: {times(result.s)})" if times(result.s) != times(result.over_ideal) else ""
    return headline(
        f"Steps take {times(result.over_ideal)} times their ideal time{without}: "
        f"{fmt.whole_share(max(1 - 1 / result.over_ideal, 0.0))} of {chips} time is lost.",
        _because(result),
        _beside(result),
    )


def _because(result: SlowdownResult) -> str:
    """What makes it so, and which part of the time lost that is where it can be told."""
    shares = result.shares
    match result.cause:
        case "worker":
            verb = "costs" if len(result.worst) == 1 else "cost"
            return f"Its {workers(result)} {verb} {of_lost(result, shares.worker)} of that."
        case "last stage" | "stage":
            which, share = f"stage {slowest_stage(result)}", shares.stage
            if result.cause == "last stage":
                which, share = "last stage", shares.last_stage
            longer = f"{times(shares.stage_ratio)} times as long as the others"
            return f"Its {which} costs {of_lost(result, share)} of that: it computes {longer}."
        case "sequence imbalance":
            return f"Its micro-batches differ in length: {_together(shares)}."
        case "garbage collection":
            return f"Ranks that pause at different times to collect garbage cost {of_lost(result, shares.gc)} of that."
    name, s = max(result.by_op_type.items(), key=lambda item: item[1])
    most = f"of the operations {short(name)} costs most ({times(s)} times alone)"
    return f"No worker, stage or pause explains most of it; {most}."


def _together(shares: Shares) -> str:
    return (
        f"forward and backward passes of one take long together (correlation {shares.correlation:.2f}), on "
        "whichever rank it is"
    )


def _beside(result: SlowdownResult) -> str:
    """Micro-batches of different length, where they hold beside another cause."""
    if "sequence imbalance" not in result.causes[1:]:
        return ""
    return f"Beside that its micro-batches differ in length: {_together(result.shares)}."


def slowest_stage(result: SlowdownResult) -> int:
    return max(result.by_stage, key=result.by_stage.__getitem__)


def table(result: SlowdownResult) -> Table:
    """Time over ideal time, S, what explains it, and what it costs."""
    shares, steps = result.shares, fmt.count(result.validity["steps"], "step")
    return Table(
        ("figure", "value"),
        (
            ("step time over ideal time", times(result.over_ideal)),
            ("slowdown S, without launch delays", times(result.s)),
            ("waste, 1 - 1 / S", fmt.share(result.waste)),
            ("cause", ", ".join(result.causes)),
            ("step time without launch delays", fmt.duration(result.t_s)),
            ("ideal step time", fmt.duration(result.t_ideal_s)),
            ("explained by the slowest 3 % of workers (M_W)", part(shares.worker)),
            ("explained by the last stage (M_S)", part(shares.last_stage)),
            ("explained by garbage collection", part(shares.gc)),
            (
                "correlation of forward and backward",
                fmt.NO_VALUE if shares.correlation is None else f"{shares.correlation:.2f}",
            ),
            ("slowest worker", worker(result.worst[0]) if result.worst else fmt.NO_VALUE),
            (f"lost in {steps}", fmt.chip_time(result.cost_chip_seconds)),
            ("launch delays", fmt.share(max(1 - 1 / result.launch_slowdown, 0.0))),
        ),
        right=(1,),
    )
