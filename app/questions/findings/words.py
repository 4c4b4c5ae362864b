"""Findings in words: the verdict over all questions, and the findings as a terminal prints them."""

from analyzers.findings import IDLE, FindingsResult
from analyzers.findings.base import Finding, NotTold
from app import theme
from app.words import Table, Verdict, headline
from catalog.cures import WRONGS
from errors import format as fmt

SHOWN_GAP = 3
WIDE = 0.25  # of what is likely: where less may be given back, the headline says from what to what


def verdict(result: FindingsResult) -> Verdict:
    """What to mend first and what that is worth; or that nothing stands out, of how much that can be told."""
    if not result.findings:
        return headline(*(_unjudged(*result.unjudged) if result.unjudged else (nothing(result), _unasked(result))))
    first, *rest = result.findings
    others = list(dict.fromkeys(_short(f, result) for f in rest))  # of several settings that cost one is enough
    following = f"Next: {', then '.join(others[:2])}." if rest else ""
    dark = "" if result.told_share >= 0.5 else f"{fmt.share(1 - result.told_share)} of the chip time cannot be told."
    idle = _besides(*result.unjudged) if result.unjudged else ()
    return headline(first.title, _worth(result, first), *idle[:1], following, dark, *idle[1:])


def _unjudged(account: str, share: float, gap: NotTold) -> tuple[str, str]:
    """That devices are idle, or that most of the time went into no step that was kept, and why nothing can be said of
    it."""
    if account not in IDLE:
        largest = "entered as other" if account == "other" else theme.title(account).lower()
        return (
            f"No finding explains {fmt.whole_share(share)} of the chip time, which went into no step that was kept; "
            f"the largest part of it is {largest}.",
            _why(gap),
        )
    what = "" if account == "device_idle" else f", the largest part of it {theme.title(account).lower()}"
    return (
        f"Devices are idle for {fmt.whole_share(share)} of the chip time{what}; whether that can be mended is not "
        "told.",
        _why(gap),
    )


def _besides(account: str, share: float, gap: NotTold) -> tuple[str, str]:
    """The same beside what is found."""
    if account not in IDLE:
        return _unjudged(account, share, gap)
    return f"Devices are idle otherwise for {fmt.whole_share(share)} of the chip time, which is not judged.", _why(gap)


def _why(gap: NotTold) -> str:
    return f"{gap.why[0].upper()}{gap.why[1:]}. Add {gap.add}."


def _worth(result: FindingsResult, finding: Finding) -> str:
    """What mending it gives back, as a sentence."""
    gain = finding.gain
    if gain is None:
        return "What that costs in chip time cannot be told."
    usd = result.usd(gain.likely)
    dollars = f", {fmt.usd(usd)}" if usd is not None else ""
    low, likely, high = (fmt.whole_share(part / result.whole) for part in (gain.low, gain.likely, gain.high))
    band = f"{low} to {high}; " if gain.low < WIDE * gain.likely else ""
    return f"Mending it gives back {likely} of the chip time ({band}{result.time(gain.likely)}{dollars})."


def _short(finding: Finding, result: FindingsResult) -> str:
    title = WRONGS[finding.cause].title
    title = title[0].lower() + title[1:]
    return title if finding.gain is None else f"{title} ({fmt.whole_share(finding.likely / result.whole)})"


def nothing(result: FindingsResult) -> str:
    """That nothing stands out, and what the rest of the chip time went into; or that too little can be told."""
    told = fmt.whole_share(result.told_share)
    if result.blind:
        add, quiet = _lacking(result), _by_samples(result)
        if quiet:
            return f"Nothing stands out: {quiet}. What its chip time went into is not told: add {add}."
        if result.told_share <= 0:
            return f"Of the chip time nothing can be told, so neither can what is wrong. Add {add}."
        only = told[0].upper() + told[1:] if told.startswith("less") else f"Only {told}"
        return f"{only} of the chip time can be told, and nothing in that stands out. Add {add}."
    parts = [
        f"{fmt.whole_share(seconds / result.whole)} {theme.title(name).lower()}"
        for name, seconds in result.known_gap[:SHOWN_GAP]
    ]
    least = "at least " if result.useful_least else ""
    useful = "" if not result.useful_share else f"{least}{fmt.whole_share(result.useful_share)} is useful maths"
    rest = f"the largest of the rest {'is' if len(parts) == 1 else 'are'} {', '.join(parts)}" if parts else ""
    return f"Nothing stands out: of the {told} that can be told, {'; '.join(filter(None, (useful, rest)))}."


def _unasked(result: FindingsResult) -> str:
    """Of a server that mostly had no request, why that is no finding; empty of any other."""
    return next((_why(gap) for gap in result.not_told if "idle_engine" in gap.causes), "")


def _by_samples(result: FindingsResult) -> str:
    """Of a server, how seldom requests waited by its engine's own samples; empty where those do not tell it."""
    return next((r.why for r in result.ruled_out if r.question == "engine" and r.cause == "queueing"), "")


def _lacking(result: FindingsResult) -> str:
    """What would tell of the chip time of which nothing does, by what most of that is."""
    dark = result.ledger.unknown
    if result.serving:
        return result.lacking
    if result.ledger.amount("compute_unsplit") > dark / 2:
        chip = "" if result.peak_known else "which chip it was, under Facts"
        flops = "the job's log where it prints TFLOP/s; of PyTorch, profile with record_shapes=True"
        return ", and ".join(filter(None, (chip, "" if chip and result.ledger.useful_flops else flops)))
    if result.ledger.amount("communication_or_wait") > dark / 2:
        return "profiles of all ranks, captured at the same time"
    return "profiles of more of its steps and chips"


def table(result: FindingsResult) -> Table:
    """Each finding with its gain, its cure and where it is seen."""
    return Table(
        ("finding", "gives back", "from", "to", "share", "dollars", "sure", "what to do", "see"),
        tuple(
            (
                f.title,
                result.time(f.gain.likely if f.gain else None),
                result.time(f.gain.low if f.gain else None),
                result.time(f.gain.high if f.gain else None),
                fmt.share(f.likely / result.whole) if f.gain else fmt.NO_VALUE,
                fmt.usd(result.usd(f.likely) if f.gain else None),
                fmt.share(f.confidence),
                result.cure(f),
                f.question,
            )
            for f in result.findings
        ),
        right=(1, 2, 3, 4, 5, 6),
    )


def evidence(finding: Finding, chips_known: bool = True) -> str:
    """Its numbers and lines as a sentence; of none nothing. A line of a log may end with a dot of its own."""
    told = "; ".join(f"{e.name} {value(e.value, e.unit, chips_known)}" for e in finding.evidence)
    return told if not told or told.endswith((".", "!", "?", "…")) else f"{told}."


def value(amount: float | str, unit: str, chips_known: bool = True) -> str:
    """A number of the evidence with its unit; a line as it is."""
    if isinstance(amount, str):
        return amount
    if unit == "s":
        return fmt.duration(amount)
    if unit == "chip-seconds":
        return fmt.held_time(amount, chips_known)
    if unit == "1":
        return fmt.share(amount)
    if unit == "bytes":
        return fmt.size(amount)
    if unit == "FLOPs":
        return fmt.flops(amount)
    text = f"{int(amount):,}" if amount == int(amount) else fmt.number(amount)
    return f"{text} {unit}".strip()
