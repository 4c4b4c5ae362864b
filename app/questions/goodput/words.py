"""Goodput in words: its verdict, its buckets as a terminal prints them, and what each bucket means by either rules."""

from collections.abc import Mapping

from analyzers.lost.goodput.buckets import ASYNC, CUSTOM, EVAL, HANG, HEADING, amount
from analyzers.lost.goodput.query import EXACT, LIBRARY
from analyzers.lost.goodput.result import GoodputResult
from analyzers.lost.goodput.terms import BUCKET_TERMS
from app import theme
from app.questions.ledger.words import PHRASES
from app.words import Table, Verdict, headline, short
from errors import format as fmt

RULES = {EXACT: "the exact rules", LIBRARY: "the rules of ml-goodput"}
EVENTS = {EVAL: "Evaluations", HANG: "Steps that hung"}  # custom events that are none of the job's own
OVER = 5e-4  # shares that sum to more or less than the whole by more than this must be said

LIBRARY_MEANING: dict[str, str] = {  # what ml-goodput-measurement 0.2.3 counts
    "productive": "Time between the starts of steps whose numbers follow one another, less start-up, saves and the "
    "custom events inside; and all from the last step start to the end of the job.",
    "total": "From the first start of the job in the log to its last end, or to now.",
    "tpu_initialization": "Each recorded interval, added up.",
    "training_prep": "Each recorded interval, added up.",
    "program_startup": "The first step of a segment beyond the mean of its others.",
    "data_loading_sync": "The first load after a start or a disruption, and once more the last one before it.",
    ASYNC: "All other loads; no badput.",
    "unproductive_checkpoint_save_time": "The mean blocking time of the saves of each step, added up.",
    "unproductive_checkpoint_restore_time": "The mean time of the restores of each step, added up.",
    "wasted_progress_from_disruption": "Between the starts of steps that are taken again, the last one left out.",
    "infrastructure_recovery_from_disruption": "From the last step start to the latest start of the job, where a step "
    "number occurs again.",
    CUSTOM: "Events that lie wholly between two step starts.",
    "other": "The total less all of these; not below 0.",
    "elastic_slice_down": "Each recorded wait, added up.",
    "elastic_scale_up": "Each recorded wait, added up.",
    "elastic_reinitialization": "Each recorded interval, added up; taken from initialisation and preparation.",
}


def title(bucket: str) -> str:
    """A bucket's title: that of the account it is."""
    if bucket == ASYNC:
        return "Data loading inside steps"
    return theme.title(HEADING.get(bucket, bucket))


def meaning(bucket: str) -> str:
    """What the exact rules count in a bucket."""
    return BUCKET_TERMS[bucket].meaning


def losses(result: GoodputResult) -> list[tuple[str, str, float]]:
    """(bucket, name of the event or "", s) of all badput, the largest first; asynchronous loads are none."""
    out = []
    for bucket, value in result.badput_s.items():
        if isinstance(value, Mapping):
            out += [(bucket, name, s) for name, s in value.items()]
        elif bucket != ASYNC:
            out.append((bucket, "", value))
    return sorted((x for x in out if x[2] > 0), key=lambda x: -x[2])


def worth(result: GoodputResult, seconds: float) -> str:
    """Seconds of the job as chip-hours and dollars, as far as chips and a price are known."""
    if not result.chips:
        return fmt.duration(seconds)
    chip_s = seconds * result.chips
    dollars = "" if result.usd_per_chip_hour is None else f", about {fmt.usd(chip_s / 3600 * result.usd_per_chip_hour)}"
    return f"{fmt.duration(seconds)}, {fmt.chip_time(chip_s)}{dollars}"


def verdict(result: GoodputResult) -> Verdict:
    """Which part was goodput, and the largest loss with what it is worth."""
    whose = f"By {RULES[LIBRARY]} " if result.rules == LIBRARY else ""
    if not result.total_s:
        return headline(f"{whose or 'Here '}no time is left to tell of: all of it is excluded.")
    if result.steps_read:
        share = fmt.whole_share(result.goodput_share or 0.0)
        head = f"{whose}{share} of {fmt.duration(result.total_s)} went into steps that were kept."
    else:
        of = fmt.duration(result.total_s)
        head = f"{whose}how much of {of} went into steps cannot be told: {result.why_no_steps}."
    sentences = [head[0].upper() + head[1:]]
    if found := [x for x in losses(result) if result.steps_read or x[0] != "other"]:
        bucket, name, seconds = found[0]
        phrase = EVENTS.get(name, f"The event “{short(name)}”") if name else PHRASES[HEADING[bucket]]
        part = fmt.whole_share(seconds / result.total_s)
        sentences.append(f"{phrase} cost the most: {part} ({worth(result, seconds)}).")
    if result.disruptions:
        sentences.append(f"Training was disrupted {_times(result.disruptions)}.")
    summed = (result.productive_s + result.badput_total_s) / result.total_s
    if abs(summed - 1) > OVER:
        sentences.append(f"These shares sum to {fmt.share(summed, 4)}: the rules count some time twice or not at all.")
    return headline(*sentences)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def table(result: GoodputResult) -> Table:
    """Productive time and every bucket that holds time, the largest first; then what is told beside."""
    rows = [("Productive", result.productive_s)]
    rows += [(f"{title(b)}: {name}" if name else title(b), s) for b, name, s in losses(result)]
    whole = result.total_s or 1.0
    told = [(name, fmt.duration(s), fmt.share(s / whole), *_chips(result, s)) for name, s in rows]
    told.append(("Total", fmt.duration(result.total_s), "", *_chips(result, result.total_s)))
    if s := amount(result.badput_s, ASYNC) or result.data_loading_async_s:
        told.append((f"(beside) {title(ASYNC)}", fmt.duration(s), fmt.share(s / whole), "", ""))
    return Table(("bucket", "time", "share", "chip-hours", "dollars"), tuple(told), right=(1, 2, 3, 4))


def _chips(result: GoodputResult, seconds: float) -> tuple[str, str]:
    if not result.chips:
        return "", ""
    hours, price = seconds * result.chips / 3600, result.usd_per_chip_hour
    return fmt.number(hours), "" if price is None else fmt.usd(hours * price)
