"""Communication that no computing covers, where nothing that knows more of it explains it.

Of an accelerator alone: processes on CPUs compute and send with the same cores, and have nothing to hide it behind.
"""

from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Told
from analyzers.findings.carried import carried, covering
from errors import format as fmt
from runs.tables import frame

CAUSE, QUESTION = "exposed_communication", "overlap"
LEAST = 0.1  # of the chip time: all jobs that are dealt out show some
HIDDEN = (0.2, 0.5, 1.0)
"""Of it, what is hidden where it is set about: how much of the computing can be put beside it is not known. No more
than there is."""


def find(seen: Seen) -> Told:
    if not _accelerated(seen):
        return Told()
    amount = seen.amount(CAUSE)
    whole = carried(seen, amount, devices="exposed_communication_s")
    if whole.likely < max(LEAST, seen.floor) * seen.whole:
        why = f"communication that nothing covers took {fmt.share(whole.likely / seen.whole)} of the chip time"
        return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))
    beside = covering(seen).high
    low, likely, high = (part * of for part, of in zip(HIDDEN, (whole.low, whole.likely, whole.high), strict=True))
    if beside < min(likely, seen.least):
        why = f"devices compute for {fmt.share(beside / seen.whole)} of the chip time: nothing could cover it"
        return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))
    gain = Band(low, likely, max(min(high, seen.whole), likely)).at_most(beside)
    return Told(
        (
            Finding(
                cause=CAUSE,
                title="Devices send and receive, and compute nothing meanwhile: "
                f"{fmt.whole_share(whole.likely / seen.whole)} of the chip time.",
                gain=gain,
                draws=seen.drawn(gain.likely, CAUSE, "unattributed"),
                question=QUESTION,
                confidence=0.7,
                basis="modelled",
                evidence=(Evidence("communication that nothing covers", amount, "chip-seconds", QUESTION),),
            ),
        )
    )


def _accelerated(seen: Seen) -> bool:
    """Whether programs were launched on a device, or a trace names one that is no CPU."""
    named = frame(seen.tables, "captures", ["device_type"])["device_type"].dropna().astype(str).str.lower()
    return bool(seen.tables.rows("launches")) or bool((named != "cpu").any())


RULE = Rule(name="communication", causes=(CAUSE,), find=find)
