"""Ranks of a timeline for who looks at it: their order by lateness, how far clocks are apart, both in a sentence."""

from typing import Any

import numpy as np

from analyzers.ranks.meetings import Meetings, meetings
from analyzers.timeline import Timeline
from analyzers.timeline.ranked import Ranked, ranked
from errors import QuestionError
from errors import format as fmt
from runs.kept import Answers
from runs.run import Run

NAMED = 3  # ranks or hosts that a sentence names
_met = Answers(128 << 20)  # matches of collectives: of a run once
_ranked = Answers(64 << 20)


def meetings_of(run: Run) -> Meetings:
    return _met.get(run.writing, lambda: meetings(run.tables))


def ranked_of(run: Run, of: Timeline) -> Ranked:
    """Raises QuestionError where nothing tells how late ranks came."""
    if not run.tables.rows("collectives"):
        raise QuestionError(
            "this run tells of no collectives, by which ranks are compared and clocks aligned",
            advice="Add profiles of all ranks that were taken at the same time.",
        )
    return _ranked.get(run.writing, lambda: ranked(of, run.tables, run.manifest.facts, meetings_of(run)))


def told(of: Timeline, found: Ranked) -> dict[str, Any]:
    """Ranks, the latest first, and lanes: in which order they stand then, and how many ticks each moves to the left."""
    return {
        "order": list(found.order),
        "ahead_ticks": list(found.ahead),
        "start_tick": found.start,
        "end_tick": found.end,
        "steps": found.steps,
        "waits_good_to_s": found.wait_s,
        "clocks_good_to_s": found.clock_s,
        "lateness": latest(found),
        "clocks": apart(found),
        "ranks": [
            {
                "rank": rank.label,
                "host": rank.host,
                "device": rank.device,
                "late_s": rank.late_s,
                "clock_ahead_s": rank.offset_s,
                "drift_s_per_s": rank.drift,
            }
            for rank in found.ranks
        ],
    }


def latest(found: Ranked) -> str:
    """The order of ranks in a sentence."""
    known = [(rank.label, rank.late_s) for rank in found.ranks if rank.late_s is not None]
    if not known:
        return "No rank was compared with others in any step, so that lanes stand as they were."
    late = [f"rank {label} by {fmt.duration(by)}" for label, by in known[:NAMED] if by > 0]
    others = sum(by > 0 for _, by in known) - len(late)
    more = f" and {others:,} more" if others > 0 else ""
    over = f"over {fmt.count(found.steps, 'step')}"
    rest = len(found.ranks) - len(known)
    left = f" {fmt.count(rest, 'rank')} that {'was' if rest == 1 else 'were'} not compared come last." if rest else ""
    good = f" Waits of one step are good to {fmt.duration(found.wait_s)}." if found.wait_s else ""
    if not late:
        return f"No rank came later to matched collectives than its peers' median, {over}.{left}{good}"
    return (
        f"Later at matched collectives than the median of their peers, in the mean {over}: {', '.join(late)}{more}."
        f"{left}{good}"
    )


def apart(found: Ranked) -> str:
    """How far clocks are apart, in a sentence."""
    good_to = found.clock_s or 0.0
    known = sorted(_by_clock(found).items(), key=lambda one: -abs(one[1]))
    moved = [
        f"{clock} {fmt.duration(abs(by))} {'ahead' if by > 0 else 'behind'}" for clock, by in known if abs(by) > good_to
    ]
    more = f" and {len(moved) - NAMED:,} more" if len(moved) > NAMED else ""
    good = f", good to {fmt.duration(found.clock_s)}" if found.clock_s is not None else ""
    held = f"the clock of {', '.join(moved[:NAMED])}{more}" if moved else "no clock is off"
    unknown = sum(not some for some in found.known)
    left = (
        f" {fmt.count(unknown, 'lane')} of clocks that no collective tells of {'stands' if unknown == 1 else 'stand'} "
        "where recorded."
        if unknown
        else ""
    )
    return f"Against the median, by the ends of matched collectives: {held}{good}.{_drift(found)}{left}"


def _drift(found: Ranked) -> str:
    worst = max(found.ranks, key=lambda rank: abs(rank.drift))
    if not worst.drift or not np.isfinite(worst.drift):
        return ""
    return f" They drift by up to {fmt.duration(abs(worst.drift))} a second (rank {worst.label}), which is left in."


def _by_clock(found: Ranked) -> dict[str, float]:
    """By how much each clock is ahead: a host's, or a rank's of which no host is told."""
    alone = {f"rank {rank.label}": rank.offset_s for rank in found.ranks if not rank.host}
    told = {host: by for host, by in found.hosts_s.items() if host}
    return told | {label: by for label, by in alone.items() if by is not None}
