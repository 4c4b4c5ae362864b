"""Which findings stand, in which order, and what mending the first few would give: no chip-second is given twice.

Rules stand in an order, those that know most of a place first. Each finding draws its likely gain from accounts of the
ledger; what an earlier one has drawn is gone for those after it, which shrink accordingly, and fall where less than the
floor is left. So a slow rank takes the waiting of the others and its own excess, and what its host did meanwhile is not
told again as the host's overhead. A title says what was found; where others have drawn a part of it, it says that too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from analyzers.findings.base import Finding
from errors import format as fmt
from runs.ledger import Ledger

HALF = 0.5
"""Of a finding's likely gain: where less is left to it, it was another's, and is told as such."""
SHARED = 0.05  # of its likely gain: where others have drawn more, it says so
MOST = 5


def settled(found: Sequence[Finding], ledger: Ledger, floor: float) -> tuple[list[Finding], list[Finding]]:
    """Findings of more than the floor (a share of the chip time), with what others before them have drawn taken off,
    the largest gain first, none of more than the whole; and those that others explain."""
    left: dict[str, float] = {}
    least = floor * ledger.chip_seconds
    stand, explained = [], []
    for one in found:
        if one.gain is None:
            stand.append(one)
            continue
        finding = replace(one, gain=one.gain.at_most(ledger.chip_seconds)).drawing(_within(one.draws, ledger))
        draws = {n: min(s, left.get(n, ledger.amount(n))) if n else s for n, s in finding.draws.items()}
        rest = finding.drawing(draws)
        if rest.likely < max(least, one.least, HALF * finding.likely):
            if finding.likely >= max(least, one.least):
                explained.append(finding)
            continue
        for name, amount in draws.items():
            if name:
                left[name] = left.get(name, ledger.amount(name)) - amount
        stand.append(_told_of_others(rest, finding.likely - rest.likely, ledger.chip_seconds))
    return sorted(stand, key=lambda f: -f.likely), explained


def _told_of_others(finding: Finding, drawn: float, whole: float) -> Finding:
    """With a sentence about what others give back of what its title tells."""
    if drawn <= SHARED * (finding.likely + drawn):
        return finding
    share = fmt.share(drawn / whole)
    return replace(finding, title=f"{finding.title} Of that, {share} of the chip time is another finding's.")


def _within(draws: Mapping[str, float], ledger: Ledger) -> dict[str, float]:
    """The draws, none of more than its account holds: what is beyond comes from no account in particular."""
    kept = {n: min(s, ledger.amount(n)) for n, s in draws.items() if n}
    return {**kept, "": sum(draws.values()) - sum(kept.values())}


def joint(findings: Sequence[Finding], whole: float) -> list[float]:
    """What mending the first k together gives back, chip-seconds: what each draws is its own, so they add, up to
    all."""
    total, out = 0.0, []
    for finding in findings:
        total += finding.likely
        out.append(min(total, whole))
    return out
