"""Saves that cost more than they protect, saves too far apart, and saves and restores that are slow in themselves.

What saves and lost work cost together is least at one interval of work, which follows from how long a save blocks and
the mean time to failure (`catalog.save_interval`, as planners have it). A job that never failed gives a least mean time
to failure, and so a least best interval.
"""

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told
from analyzers.lost.checkpoints import CheckpointsResult
from catalog.save_interval import best_interval_s
from errors import format as fmt

QUESTION = "checkpoints"
CAUSES = ("frequent_checkpoints", "rare_checkpoints", "slow_checkpoint", "slow_restore")
FEW = 3  # saves: of fewer nothing is said
FAR = 1.5  # from the best interval, up or down: nearer, it is as good
SLOW_STEPS = 20.0  # usual steps that a slow save blocks at least
COSTLY = 0.15  # of the time: saves that take so much at an interval near the best are slow, whatever a step takes
FEW_STEPS = 5  # between two saves: of so few, a slow save is first of all one too many
SLOW_RESTORE = 2.0  # times a save: what a restore may take
LEFT = 0.2  # of a save's time that is left where it goes on in the background: the copy to the host's memory


def find(seen: Seen) -> Told:
    found = seen.answer(QUESTION, CheckpointsResult)
    if found is None:
        return Told(not_told=(NotTold(CAUSES, seen.answers.why(QUESTION), "the job's goodput log or its text log"),))
    told = [f for f in (_restores(seen, found), *_saves(seen, found)) if f is not None]
    named = {f.cause for f in told}
    if found.save.count < FEW:
        more = f", of {found.ends:,} more the end alone" if found.ends else ""
        why = f"{fmt.count(found.save.count, 'save')} recorded{more}"
        return Told(tuple(told), not_told=(NotTold(CAUSES[:3], why, "a log of more saves"),))
    if named & set(CAUSES[:3]):
        return Told(tuple(told))
    best_s = _best_s(found)
    if best_s is None:
        why = "how far apart its saves are is not known: no two of one start of the job follow one another"
        return Told(tuple(told), not_told=(NotTold(CAUSES[:3], why, "a log of more saves"),))
    return Told(tuple(told), tuple(RuledOut(c, _why_none(found, best_s), QUESTION) for c in CAUSES[:3]))


def _best_s(found: CheckpointsResult) -> float | None:
    """The interval at which saves and lost work cost least together; None where this one, or a save's time, is not
    known."""
    mttf_s, save_s = found.mttf.mean_s or found.mttf.low_s, found.save.mean_s
    if not found.interval_s or not save_s or mttf_s is None:
        return None
    return best_interval_s(save_s, mttf_s)


def _why_none(found: CheckpointsResult, best_s: float) -> str:
    """Why saves are no finding, as a clause."""
    cost = fmt.share(found.saves_s / found.held_s) if found.held_s else "nothing"
    now_s = found.interval_s or 0.0
    often = f"saves took {cost} of the time, one every {fmt.duration(now_s)}"
    if now_s > FAR * best_s and not found.mttf.count:
        return f"{often}, and nothing failed that lost the work between two"
    if now_s > FAR * best_s:
        return f"{often} where {fmt.duration(best_s)} would be best, but failures happened to lose less than that costs"
    if now_s * FAR < best_s:
        return f"{often} where {fmt.duration(best_s)} would be best, but further apart failures would lose as much"
    return f"saves took {cost} of the time, at an interval near the best"


def _saves(seen: Seen, found: CheckpointsResult) -> list[Finding | None]:
    best_s, mttf_s = _best_s(found), found.mttf.mean_s or found.mttf.low_s
    if found.save.count < FEW or best_s is None or mttf_s is None or not found.save.mean_s or not found.interval_s:
        return []
    usual_s, often = _bare_step_s(seen, found), found.interval_s * FAR < best_s
    slow = usual_s and (found.save.mean_s >= SLOW_STEPS * usual_s or (not often and _costly(found)))
    seldom = not often or not found.interval_steps or found.interval_steps >= FEW_STEPS
    if slow and seldom and found.synchronous is not False:
        return [_slow(seen, found)]
    if often:
        return [_frequent(seen, found, best_s)]
    if found.interval_s > FAR * best_s and found.mttf.count:
        return [_rare(seen, found, best_s, mttf_s)]
    return []


def _costly(found: CheckpointsResult) -> bool:
    return found.held_s > 0 and found.saves_s >= COSTLY * found.held_s


def _step_s(found: CheckpointsResult) -> float | None:
    return found.interval_s / found.interval_steps if found.interval_s and found.interval_steps else None


def _bare_step_s(seen: Seen, found: CheckpointsResult) -> float | None:
    """A usual step without what it waits for its input or for a late rank, which are other faults and make no save
    quicker."""
    usual_s, kept = _step_s(found), seen.amount("productive")
    waited = min(seen.amount("input_wait", "straggler_wait") / kept, 1.0) if kept else 0.0
    return usual_s and usual_s * (1 - waited)


def _slow(seen: Seen, found: CheckpointsResult) -> Finding:
    whole = seen.amount("checkpoint_save")
    each = fmt.duration(found.save.median_s)
    steps = fmt.number((found.save.median_s or 0.0) / (_step_s(found) or 1.0), 2)
    return Finding(
        cause="slow_checkpoint",
        title=f"Training stands for {each} at each save, as long as {steps} steps: {found.save.count:,} saves.",
        gain=Band(whole * 0.5, whole * (1 - LEFT), whole),
        draws={"checkpoint_save": whole * (1 - LEFT)},
        question=QUESTION,
        confidence=0.9,
        evidence=_evidence(found, whole),
    )


def _frequent(seen: Seen, found: CheckpointsResult, best_s: float) -> Finding | None:
    """Of the saves that a longer interval leaves out, less the steps that failures lose between saves further apart."""
    whole, now = seen.amount("checkpoint_save"), found.interval_s or 0.0
    saved = whole * (1 - now / best_s)
    likely = saved - _lost_more(seen, found, best_s - now, found.mttf.mean_s)
    least = saved - _lost_more(seen, found, best_s - now, found.mttf.low_s)
    if likely <= 0:
        return None
    bound = "at least " if found.mttf.mean_s is None else ""
    return Finding(
        cause="frequent_checkpoints",
        title=f"The job saves every {fmt.duration(now)}; the best interval is {bound}{fmt.duration(best_s)}.",
        gain=Band(max(min(least, likely) * 0.85, 0.0), likely, max(whole, likely)),
        draws={"checkpoint_save": likely},
        question=QUESTION,
        confidence=0.9,
        evidence=_evidence(found, whole),
    )


def _lost_more(seen: Seen, found: CheckpointsResult, further_s: float, mttf_s: float | None) -> float:
    """Chip-seconds of steps that failures lose where saves are so much further apart: half of it each; none of a job
    that never failed."""
    if not found.mttf.count or not mttf_s:
        return 0.0
    return further_s / 2 / mttf_s * found.modelled_s * seen.chips


def _rare(seen: Seen, found: CheckpointsResult, best_s: float, mttf_s: float) -> Finding | None:
    save_s, span_s, chips = found.save.mean_s or 0.0, found.modelled_s, seen.chips
    then = (save_s / best_s + best_s / 2 / mttf_s) * span_s * chips
    lost = max(seen.amount("wasted_progress") - float(found.stops["passed_over_s"].sum()) * chips, 0.0)
    likely = lost + seen.amount("checkpoint_save") - then
    if likely <= 0:
        return None
    return Finding(
        cause="rare_checkpoints",
        title=f"The job saves every {fmt.duration(found.interval_s)}, and {fmt.share(lost / seen.whole)} of the time "
        f"went into steps lost between saves; the best interval is {fmt.duration(best_s)}.",
        gain=Band(likely * 0.75, likely, max(lost, likely)),
        draws={"wasted_progress": likely},
        question=QUESTION,
        confidence=0.85,
        evidence=_evidence(found, seen.amount("checkpoint_save")),
    )


def _restores(seen: Seen, found: CheckpointsResult) -> Finding | None:
    restore, save = found.restore, found.save
    if (
        not restore.count
        or not restore.median_s
        or not save.median_s
        or restore.median_s < SLOW_RESTORE * save.median_s
    ):
        return None
    if (usual := _bare_step_s(seen, found)) is not None and restore.median_s < SLOW_STEPS * usual:
        return None
    whole = seen.amount("checkpoint_restore")
    usual_part = min(save.median_s / restore.median_s, 1.0) / 2
    times = fmt.number(restore.median_s / save.median_s, 2)
    return Finding(
        cause="slow_restore",
        title=f"A restore takes {fmt.duration(restore.median_s)}, {times} times as long as a save.",
        gain=Band(whole * 0.5, whole * (1 - usual_part), whole),
        draws={"checkpoint_restore": whole * (1 - usual_part)},
        question=QUESTION,
        confidence=0.9,
        evidence=(
            Evidence("a restore, median", restore.median_s, "s", QUESTION),
            Evidence("a save, median", save.median_s, "s", QUESTION),
        ),
    )


def _evidence(found: CheckpointsResult, whole: float) -> tuple[Evidence, ...]:
    return (
        Evidence("a save blocks, median", found.save.median_s or 0.0, "s", QUESTION),
        Evidence("work between two saves", found.interval_s or 0.0, "s", QUESTION),
        Evidence("lost to saves", whole, "chip-seconds", QUESTION),
    )


RULE = Rule(name="checkpoints", causes=CAUSES, find=find)
