"""MFU in words: usual steps against the best and against the whole of the run, and what the difference is worth."""

from analyzers.flops.mfu import JOB, SHAPES, MfuResult
from app.questions.flops.words import gflops
from app.words import Table, Verdict, headline, sentence
from catalog.flops import CONVENTIONS
from errors import format as fmt

COUNTS = {JOB: "the job's own count", SHAPES: "counted by the shapes that ran"}
TITLES = {JOB: "the job's own", SHAPES: "by the shapes that ran", **{c.name: c.title for c in CONVENTIONS}}


def verdict(result: MfuResult) -> Verdict:
    """MFU of usual steps, the largest loss beside it, and a contradiction where a printed number holds one."""
    parts = [*_head(result), *_loss(result)]
    false = int((result.rows["implausible"] != "").sum()) if len(result.rows) else 0
    if false:
        one = "step cannot be true as printed and is"
        parts.append(f"{fmt.count(false, one, 'steps cannot be true as printed and are')} left out.")
    parts += result.fingerprint.contradictions[:1]
    return headline(*parts)


def _head(result: MfuResult) -> tuple[str, ...]:
    rate = result.tflops_per_s_per_chip
    if rate is None:
        return ("No usual step has a rate that can be trusted.",)
    speed = fmt.flops_rate(rate * 1e12)
    if result.mfu is None:
        return (f"Each chip does {speed} of useful maths; which share of its peak that is, no input tells.",)
    share = fmt.share(result.mfu)
    if not len(result.rows):
        return (f"{speed} per chip is {share} of the {result.peaks.source}.",)
    count = COUNTS.get(result.convention) or f"{TITLES[result.convention]} count"
    if result.mfu > 1:
        return (
            f"Usual steps would turn {share} of the chips' peak into useful maths ({speed} per chip, {count}), "
            "which cannot be: they ran in a narrower format, or computed less than the model's FLOPs.",
            "Of a narrower format than the peak is of, ask with precision=fp8.",
            "Training of adapters (LoRA) computes less.",
        )
    return (f"Usual steps turn {share} of the chips' peak into useful maths ({speed} per chip, {count}).",)


def _loss(result: MfuResult) -> tuple[str, ...]:
    """Which gap is larger: the best step over the usual, or the usual over the whole wall time."""
    mfu, best, average = result.mfu, result.best, result.average
    if not mfu or not best or mfu > 1:
        return ()
    whole = _whole(result)
    if average and 1 - average / mfu > 1 - mfu / best:
        lost = fmt.whole_share(1 - average / mfu)
        went_by = f"{sentence(lost)} of that time went by without usual, kept steps."
        return *whole, f"The best reached {fmt.share(best)}.", went_by
    if best > mfu * 1.02:
        gain = fmt.share(1 - mfu / best, 2)
        return f"The best reached {fmt.share(best)}: if every step did, they would take {gain} less time.", *whole
    return "That is as good as the best.", *whole


def _whole(result: MfuResult) -> tuple[str, ...]:
    """MFU over the whole time of the steps; nothing where that is not known."""
    if not result.average:
        return ()
    time, steps = fmt.duration(result.wall_s), "from the first step to the last, restarts and lost steps included,"
    if result.profiled:
        steps = "from the first profiled step to the last"
    return (f"Over the {time} {steps} it is {fmt.share(result.average)}.",)


def table(result: MfuResult) -> Table:
    """The figures of the run, and what a printed number turned out to be."""
    native, rate = result.peaks.native, result.tflops_per_s_per_chip
    rows = [
        ("MFU", fmt.share(result.mfu)),
        ("HFU", fmt.share(result.hfu)),
        ("EMFU", fmt.share(result.emfu)),
        ("best step", fmt.share(result.best)),
        ("average over the wall time", fmt.share(result.average)),
        ("convention", TITLES[result.convention]),
        ("peak per chip", fmt.flops_rate(native)),
        ("achieved per chip", fmt.flops_rate(rate and rate * 1e12)),
        ("FLOPs per token", gflops(result.flops_per_token) if result.flops_per_token else fmt.NO_VALUE),
        ("tokens per second and chip, in usual steps", fmt.number(result.tokens_per_s_per_chip)),
    ]
    if result.fingerprint.verdict:
        rows.append(("fingerprint", result.fingerprint.verdict))
    rows += [("contradiction", text) for text in result.fingerprint.contradictions]
    return Table(("figure", "value"), tuple(rows), right=())
