"""Which findings stand, in which order, and what mending the first few would give: no chip-second is given twice.

Rules stand in an order, those that know most of a place first. Each finding draws its likely gain from accounts of the
ledger; what an earlier one has drawn is gone for those after it, which shrink accordingly, and fall where less than the
floor is left. So a slow rank takes the waiting of the others and its own excess, and what its host did meanwhile is not
told again as the host's overhead.
"""

from collections.abc import Sequence

from analyzers.findings.base import Finding
from runs.ledger import Ledger

HALF = 0.5
"""Of a finding's likely gain: where less is left to it, it was another's, and is told as such."""
MOST = 5


def settled(found: Sequence[Finding], ledger: Ledger, floor: float) -> tuple[list[Finding], list[Finding]]:
    """Findings of more than the floor (a share of the chip time), with what others before them have drawn taken off,
    the largest gain first; and those that others explain."""
    left: dict[str, float] = {}
    stand, explained = [], []
    for finding in found:
        if finding.gain is None:
            stand.append(finding)
            continue
        kept = _kept(finding, left, ledger)
        rest = finding.lessened(kept)
        if rest.likely < floor * ledger.chip_seconds:
            if finding.likely >= floor * ledger.chip_seconds:
                explained.append(finding)
            continue
        if kept < HALF:
            explained.append(finding)
            continue
        for name, amount in rest.draws.items():
            if name:
                left[name] = left.get(name, ledger.amount(name)) - amount
        stand.append(rest)
    return sorted(stand, key=lambda f: -f.likely), explained


def _kept(finding: Finding, left: dict[str, float], ledger: Ledger) -> float:
    """Which share of a finding's draws is still there."""
    whole = sum(finding.draws.values())
    if not whole:
        return 1.0
    there = 0.0
    for name, amount in finding.draws.items():
        there += amount if not name or not ledger.find(name) else min(amount, max(left.get(name, amount), 0.0))
    return there / whole


def joint(findings: Sequence[Finding]) -> list[float]:
    """What mending the first k together gives back, chip-seconds: what each draws is its own, so they add."""
    total, out = 0.0, []
    for finding in findings:
        total += finding.likely
        out.append(total)
    return out
