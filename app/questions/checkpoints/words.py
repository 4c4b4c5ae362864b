"""Checkpoints in words: their verdict, and their figures as a terminal prints them."""

from analyzers.lost.checkpoints import CheckpointsResult
from app.words import Table, Verdict, headline
from errors import QuestionError
from errors import format as fmt


def verdict(result: CheckpointsResult) -> Verdict:
    """How often the job saves and should; where that cannot be told, what saves and failures cost."""
    from app.whatif.checkpoint.asked import Asked  # here: it words its own answers with the tables of this package
    from app.whatif.checkpoint.plan import plan
    from app.whatif.checkpoint.wording import verdict as plan_verdict

    try:
        return headline(plan_verdict(plan(Asked(), result)))
    except QuestionError:
        return lost(result)


def lost(result: CheckpointsResult) -> Verdict:
    """What saves and failures cost, and what is lacking for an interval."""
    failures, risk = result.mttf.count, fmt.duration(result.mttf.exposure_s)
    text = f"{fmt.count(failures, 'failure')} in {risk}" if failures else f"No failure in {risk}"
    cost = result.saves_s + result.redone_s + result.restarts_s
    if cost > 0 and result.held_s:
        text += f"; saves, lost steps and restarts took {fmt.share(cost / result.held_s)} of the time"
    if not result.save.count and result.ends:
        return headline(f"{text}.", "Of no save was recorded when it began, so what one costs is not known.")
    if not result.save.count and result.unended:
        return headline(f"{text}.", "Of no save was recorded when it ended, so what one costs is not known.")
    if not result.save.count:
        return headline(f"{text}.", "No save was recorded, so what one costs is not known.")
    return headline(f"{text}.")


def table(result: CheckpointsResult) -> Table:
    """What the run measured, each figure with how many it rests on."""

    def row(name: str, seconds: float | None, count: int | None = None) -> tuple[str, str, str, str]:
        share = seconds / result.held_s if name.startswith("lost") and seconds and result.held_s else None
        of = "" if count is None else f"{count:,}"
        return name, fmt.duration(seconds), of, "" if share is None else fmt.share(share)

    mttf = result.mttf
    return Table(
        ("figure", "value", "of", "share of the time"),
        (
            row("a save blocks, median", result.save.median_s, result.save.count),
            row("a save blocks, 90th percentile", result.save.p90_s, result.save.count),
            row("work between two saves", result.interval_s),
            row("a restore, median", result.restore.median_s, result.restore.count),
            row("waiting for machines, median", result.wait.median_s, result.wait.count),
            row("restarting, median", result.restart.median_s, result.restart.count),
            row("mean time to failure", mttf.mean_s, mttf.count),
            row("  at least (95 %)", mttf.low_s),
            row("  at most (95 %)", mttf.high_s),
            row("lost to saves", result.saves_s),
            row("lost steps taken again", result.redone_s),
            row("lost to restarts", result.restarts_s),
        ),
        right=(1, 2, 3),
    )
