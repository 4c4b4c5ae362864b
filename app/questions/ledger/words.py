"""The ledger in words: its verdict, and its accounts as a terminal prints them."""

import math
from collections import defaultdict

from analyzers.serving.accounts import UNSEEN
from analyzers.time.ledger import LedgerResult
from analyzers.time.training_accounts import OUTSIDE
from analyzers.time.useful import uncounted, useful_share
from app import theme
from app.words import Table, Verdict, headline, sentence, short
from errors import format as fmt
from runs.ledger import Account, Ledger

MUCH = 0.5  # from this share on, what is not known is the story
SOME = 0.1  # from this share on, what is not known must be said
ALL_SEEN = 0.9  # of the step time of the chips that profiles show: from here on, what lacks is profiles of other chips
NO_LOSS = {"useful_maths", "not_broken_down", "prefill", "decode"}

PHRASES: dict[str, str] = {
    "padding": "Padding matrices to the size of the tiles",
    "recomputation": "Recomputing activations",
    "below_roofline": "Computing below the chip's peak",
    "exposed_communication": "Communication that no computation covers",
    "exposed_copies": "Copies that no computation covers",
    "straggler_wait": "Waiting for the slowest rank",
    "input_wait": "Waiting for input",
    "device_idle": "An idle device inside steps",
    "compilation": "Compiling inside steps",
    "infrastructure_recovery": "Waiting to be restarted after an interruption",
    "accelerator_initialization": "Initialising the accelerators",
    "training_preparation": "Preparing the training",
    "program_startup": "Startup and compilation",
    "data_loading": "Loading data before the first step",
    "checkpoint_save": "Saving checkpoints",
    "checkpoint_restore": "Restoring checkpoints",
    "wasted_progress": "Steps lost to an interruption and taken again",
    "hang": "Steps that hung",
    "eval": "Evaluations",
    "elastic_slice_down": "Waiting after slices were lost",
    "elastic_scale_up": "Waiting for slices to join",
    "elastic_reinitialization": "Starting again on another number of slices",
    "no_single_rank": "Waiting for ranks none of which was clearly last",
    "other": "Time between the named phases, which no event explains,",
    "bucket_padding": "Filling passes up to compiled shapes",
    "rejected_speculation": "Verifying drafts that were not kept",
    "preemption_recompute": "Computing again what preemptions gave up",
    "failed_requests": "Requests that failed",
    "missed_objective": "Answers that came too late",
    "scheduling": "Scheduling around the passes",
    "no_requests": "Having no request to serve",
}

MEANWHILE: dict[str, str] = {
    "idle_launching": "launched programs",
    "idle_device_to_host": "copied arrays from it",
    "idle_logging": "logged or sent metrics",
    "idle_checkpointing": "worked on a checkpoint",
    "idle_evaluation": "evaluated",
    "idle_garbage_collection": "collected garbage",
    "idle_profiling": "started or stopped a profile",
    "idle_host_code": "ran code that no event marks",
}
"""What a host did while its device was idle, by account."""


def losses(ledger: Ledger) -> list[tuple[str, float]]:
    """(account, chip-seconds) of all that is known and moved nothing forward, the largest first.

    An account with a phrase of its own counts as a whole, whatever it is broken down into.
    """
    amounts: dict[str, list[float]] = defaultdict(list)

    def enter(account: Account) -> None:
        if account.basis == "unattributed" or account.name in NO_LOSS:
            return
        if account.children and account.name not in PHRASES:
            for part in account.children:
                enter(part)
        else:
            amounts[account.name].append(account.chip_seconds)

    enter(ledger.account)
    summed = ((name, math.fsum(parts)) for name, parts in amounts.items())
    return sorted((entry for entry in summed if entry[1] > 0), key=lambda entry: -entry[1])


def verdict(result: LedgerResult) -> Verdict:
    """How much moved the model, the largest loss and what it is worth; first of all what cannot be told."""
    ledger = result.ledger
    whole = ledger.chip_seconds
    if whole <= 0:
        return headline(
            "No chip time can be accounted for: the inputs hold no step, no event and no profile with a duration."
        )
    held = fmt.held_time(whole, ledger.chips_known)
    missing = ledger.unknown / whole
    sentences: list[str] = []
    if modelled(ledger):
        sentences.append(f"A compiled step needs at least {held}: modelled, each operation at its roof.")
    if missing >= MUCH:
        sentences.append(f"{_percent(missing)} of {held} cannot be told: {_missing_input(result)}")
    goodput, useful = ledger.amount("productive") / whole, ledger.amount("useful_maths") / whole
    of_what = ("of it" if modelled(ledger) else "of the time") if sentences else f"of {held}"
    if result.serving:
        sentences += _served(ledger, whole, of_what)
    elif ledger.find("badput") is None:  # steps or a profile alone: that they were kept is taken, not known
        if ledger.find("useful_maths") and useful_share(ledger) is None:
            sentences.append(f"How much {of_what} was useful maths is not known.")
        elif useful > 0:
            least = "at least " if uncounted(ledger) else ""
            sentences.append(f"Useful maths at the chip's peak needs {least}{fmt.whole_share(useful)} {of_what}.")
        elif not sentences:
            sentences.append(f"The inputs tell of {held}, but not how much of it was useful maths.")
    elif not result.steps_read:
        if not sentences:
            sentences.append(f"How much of {held} went into steps cannot be told: {result.why_no_steps}.")
    elif goodput > 0:
        sentences.append(f"{_percent(goodput)} {of_what} went into steps that were kept{_useful(useful, goodput)}.")
    elif not sentences:
        sentences.append(f"None {of_what} went into steps that were kept.")
    if found := losses(ledger):
        name, amount = found[0]
        usd = ledger.usd if ledger.chips_known else None
        dollars = "" if usd is None else f", about {fmt.usd(usd * amount / whole)}"
        phrase = PHRASES.get(name, f"The event “{short(theme.title(name))}”")
        if name == "device_idle" and ledger.find("profiled"):
            phrase = "An idle device"  # whether inside a step is not known
        worth = f"{fmt.whole_share(amount / whole)} ({fmt.held_time(amount, ledger.chips_known)}{dollars})"
        known = " of what is known" if missing * whole > amount else ""  # what is dark may hide a larger loss
        most = f"{phrase} cost the most{known}: {worth}{_meanwhile(ledger, name)}."
        sentences.insert(1 if missing >= MUCH and not modelled(ledger) else len(sentences), most)
    if SOME <= missing < MUCH:
        why, stop, add = _missing_input(result).partition(". ")
        sentences += [f"{_percent(missing)} cannot be told: {why}{stop.strip()}", add]
    return headline(*sentences)


def _meanwhile(ledger: Ledger, name: str) -> str:
    """What the host did in most of the time of an idle device, as the end of a sentence; empty where nothing tells."""
    idle = ledger.find(name) if name == "device_idle" else None
    most = max(idle.children, key=lambda part: part.chip_seconds, default=None) if idle else None
    if idle is None or most is None or most.name not in MEANWHILE or most.chip_seconds < MUCH * idle.chip_seconds:
        return ""
    return f", {fmt.whole_share(most.chip_seconds / idle.chip_seconds)} of it while the host {MEANWHILE[most.name]}"


def modelled(ledger: Ledger) -> bool:
    """Whether nobody measured any of it: a program that was compiled, not run."""
    return all(a.basis == "modelled" for _, a in ledger.account.walk() if not a.children)


def _percent(value: float) -> str:
    return sentence(fmt.whole_share(value))


def _useful(useful: float, goodput: float) -> str:
    if useful <= 0:
        return ""
    if useful >= goodput * (1 - 1e-9):
        return ", all of it useful maths"
    return f"; useful maths at the chip's peak needs {fmt.whole_share(useful)}"


def _served(ledger: Ledger, whole: float, of_what: str) -> list[str]:
    """How much became tokens of answers, and how much of that is useful maths; in a run without passes, that alone."""
    served, useful = ledger.amount("served") / whole, ledger.amount("useful_maths") / whole
    if served > useful:
        parts = " and ".join(
            f"{fmt.whole_share(ledger.amount(n) / whole)} {words}"
            for n, words in (("prefill", "reading prompts"), ("decode", "generating"))
            if ledger.amount(n)
        )
        return [f"{_percent(served)} {of_what} went into tokens of answers ({parts}){_useful(useful, served)}."]
    return [f"Useful maths at the chip's peak needs {fmt.whole_share(useful)} {of_what}."] if useful else []


def _missing_input(result: LedgerResult) -> str:
    """Which input would tell what is not known, by where in the ledger it lies."""
    if result.serving:
        dark = result.ledger.find("unattributed")
        if dark is not None and dark.source == UNSEEN:
            return "nothing tells whether requests were in the engine then."
        return "requests were in the engine, but no record of its passes says what they did."
    whole = result.ledger.unknown
    productive = result.ledger.find("productive") or result.ledger.find("profiled")
    dark = _dark(productive)
    inside = math.fsum(dark.values())
    covered = result.profiled_share
    if inside >= whole / 2 and not result.peak_known and (result.ledger.useful_flops or covered):
        lacks = (
            "the chip's peak is not known, so useful maths cannot be told from slow computing. Say which chip it was"
        )
        if not covered:
            return f"{lacks}; for the rest, add a profile of these steps."
        if covered >= 1 or dark.get("compute_unsplit", 0.0) >= inside / 2:
            return f"{lacks}."
    if inside >= whole / 2:
        if covered and dark.get("compute_unsplit", 0.0) >= inside / 2:
            return (
                "devices computed then, and nothing tells with how many FLOPs. Add the job's log where it prints "
                "TFLOP/s; of PyTorch, profile with record_shapes=True."
            )
        if not covered and result.profiled_chips and result.start_ns is None:
            return "the profile shows none of these steps. Put jax.profiler.StepTraceAnnotation around each."
        if not covered:
            return "no profile covers these steps. Add one."
        seen, held = result.profiled_chips, result.ledger.chips
        if seen and seen < held and covered >= ALL_SEEN * seen / held:
            return _other_chips(result)
        if dark.get("communication_or_wait", 0.0) >= inside / 2:
            add = " Add profiles of all ranks, captured at the same time." if (seen or 0) < max(held, 2) else ""
            return f"collectives ran then, and nothing tells when the other ranks came to them.{add}"
        return f"a profile covers {fmt.share(covered)} of step time. Add one that was captured while they ran."
    if _between_steps(result) and 0 < (result.profiled_chips or 0) < result.ledger.chips / 2:
        return _other_chips(result)
    if not result.steps_read:
        return f"{result.why_no_steps}. Add a log that prints the job's steps and when, or its goodput log."
    return "no input says what the job did then. Add its goodput log or its text log."


def _between_steps(result: LedgerResult) -> bool:
    """Whether what is not known at all lies outside the steps of a profile, other chips' time among it."""
    parts = result.ledger.account.children
    return any(part.name == "unattributed" and part.source.endswith(OUTSIDE) for part in parts)


def _other_chips(result: LedgerResult) -> str:
    seen, held = result.profiled_chips or 0, result.ledger.chips
    return f"profiles show {seen:g} of {held:,} chips. Add those of the other hosts, captured at the same time."


def _dark(account: Account | None) -> dict[str, float]:
    """Chip-seconds below an account of which no input tells what they were, by the name of the part."""
    amounts: dict[str, float] = defaultdict(float)
    for _, part in account.walk() if account else ():
        if not part.children and part.basis == "unattributed":
            amounts[part.name] += part.chip_seconds
    return amounts


def units(ledger: Ledger) -> tuple[str, str]:
    """In which its accounts are: where nobody tells how many chips held it, those of one."""
    return ("chip-seconds", "chip-hours") if ledger.chips_known else ("seconds of each chip", "hours of each chip")


def table(result: LedgerResult) -> Table:
    """Every account that holds time, parts indented."""
    whole = result.ledger.chip_seconds or 1.0
    return Table(
        ("account", units(result.ledger)[1], "share", "dollars", "basis", "source"),
        tuple(
            (
                "  " * (len(path) - 1) + theme.title(a.name),
                fmt.number(a.chip_seconds / 3600),
                fmt.share(a.chip_seconds / whole),
                fmt.usd(a.usd),
                f"{theme.mark(a.basis).glyph} {a.basis}",
                a.source,
            )
            for path, a in result.ledger.account.walk()
            if a.chip_seconds > 0
        ),
        right=(1, 2, 3),
    )
