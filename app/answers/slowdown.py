"""The what-if slowdown in words: the verdict, and its figures as a terminal prints them."""

from analyzers.slowdown import SlowdownResult
from analyzers.slowdown.causes import EVEN
from app import format as fmt
from app.answers.base import Table

NAME = "slowdown"
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


def gain(result: SlowdownResult, share: float | None) -> float:
    """How many times as fast the job would be with this share of its slowdown gone; 1 without."""
    rest = result.t_s - max(share or 0.0, 0.0) * (result.t_s - result.t_ideal_s)
    return result.t_s / rest if rest > 0 else 1.0


def verdict(result: SlowdownResult) -> str:
    """What makes the job slow, how fast it would be without, and what share of its chips' time that is worth."""
    if not result.validity["trusted"]:
        off = max(result.validity["replay_error"], result.validity["error_without_launch_delays"])
        return (f"What even ranks would bring cannot be told: replaying the trace misses its step times by "
                f"{fmt.share(off, 2)}; up to 5 % would do.")  # fmt: skip
    if result.cause == "none":
        if result.s <= 1:
            return "Nothing slows this job down: even ranks, stages and micro-batches would not make it faster."
        return ("Nothing slows this job down much: even ranks, stages and micro-batches would make it "
                f"{times(result.s)} times as fast, and below {EVEN:.2f} no cause is named.")  # fmt: skip
    text, factor = _because(result)
    lost = f"{fmt.whole_share(1 - 1 / factor)} of {fmt.count(result.chips, 'chip')}' time is lost"
    lost = lost.replace("chip' time", "chip's time")
    return f"{text} this job would be {times(factor)} times as fast: {lost}.{_detail(result)}"


def _because(result: SlowdownResult) -> tuple[str, float]:
    """(what would have to change, how many times as fast the job would be)."""
    match result.cause:
        case "worker":
            return f"Without its {workers(result)}", gain(result, result.shares.worker)
        case "last stage" | "stage":
            return "With even stages", result.s
        case "sequence imbalance":
            return "With micro-batches of even length", result.s
        case "garbage collection":
            return "If all ranks collected garbage at once", gain(result, result.shares.gc)
    return "With even durations", result.s


def _detail(result: SlowdownResult) -> str:
    shares = result.shares
    match result.cause:
        case "last stage" | "stage":
            which = "last stage" if result.cause == "last stage" else f"stage {slowest_stage(result)}"
            return f" Its {which} computes {times(shares.stage_ratio)} times as long as the others."
        case "sequence imbalance":
            return (f" Forward and backward passes of a micro-batch take long together (correlation "
                    f"{shares.correlation:.2f}), on whichever rank it is.")  # fmt: skip
        case "unknown":
            name, s = max(result.by_op_type.items(), key=lambda item: item[1])
            return (f" No worker, stage or pause explains most of it; of the operations {name} costs most "
                    f"({times(s)} times alone).")  # fmt: skip
    return ""


def slowest_stage(result: SlowdownResult) -> int:
    return max(result.by_stage, key=result.by_stage.__getitem__)


def table(result: SlowdownResult) -> Table:
    """S, what explains it, and what it costs."""
    shares, steps = result.shares, fmt.count(result.validity["steps"], "step")
    return Table(
        ("figure", "value"),
        (
            ("slowdown S", times(result.s)),
            ("waste", fmt.share(result.waste)),
            ("cause", result.cause),
            ("step time without launch delays", fmt.duration(result.t_s)),
            ("ideal step time", fmt.duration(result.t_ideal_s)),
            ("explained by the slowest 3 % of workers (M_W)", part(shares.worker)),
            ("explained by the last stage (M_S)", part(shares.last_stage)),
            ("explained by garbage collection", part(shares.gc)),
            ("correlation of forward and backward", fmt.NO_VALUE if shares.correlation is None
             else f"{shares.correlation:.2f}"),
            ("slowest worker", worker(result.worst[0]) if result.worst else fmt.NO_VALUE),
            (f"lost in {steps}", fmt.chip_time(result.cost_chip_seconds)),
            ("launch delays", fmt.share(max(1 - 1 / result.launch_slowdown, 0.0))),
        ),
        right=(1,),
    )  # fmt: skip
