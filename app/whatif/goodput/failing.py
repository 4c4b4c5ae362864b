"""From how a job fails to one of its lives: what belongs together, what cannot be, and the best interval."""

from dataclasses import fields
from typing import Any, NamedTuple

from app.whatif.goodput.asked import Failing
from errors import QuestionError
from errors import format as fmt
from simulators.checkpointing import LONGEST_S, Job, optimal_s
from simulators.training.cost import HOUR_S
from simulators.training.lives import Life
from simulators.two_tier import Local, best_counted, best_interval, best_two_tier, fewest, shortest_s

REPAIR_H, SLICES, LOCAL_SHARE = 24.0, 8, 0.8


def failing(asked: Any) -> Failing:
    """The same fields of another question."""
    return Failing(**{f.name: getattr(asked, f.name) for f in fields(Failing) if hasattr(asked, f.name)})


class Best(NamedTuple):
    """The best seconds of work between two saves, no longer than the life, and every how many-th of them is remote: as
    many as were asked for, else what is best as well; 1 without a local tier."""

    interval_s: float
    saves_per_remote: int


def life(asked: Failing, chips: int, span_s: float = LONGEST_S) -> tuple[Life, Best]:
    """(a life of so many chips and seconds, how it saves best). Raises QuestionError where something cannot be."""
    check(asked, span_s)
    job, local = _job(asked, chips), _local(asked)
    interval_s, every = _saves(job, local, asked)
    if local is not None:
        _check_written(job, local, asked, every)
    best = _best(job, local, asked.saves_per_remote)
    repair_h = REPAIR_H if asked.repair_h is None else asked.repair_h
    lived = Life(
        job=job,
        interval_s=min(interval_s, span_s),
        span_s=span_s,
        spares=asked.spares or 0,
        repair_s=HOUR_S * repair_h if asked.spares else 0.0,
        slices=(asked.slices or SLICES) if asked.elastic else 1,
        resume_s=job.restart_s if asked.resume_s is None else asked.resume_s,
        local=local,
        saves_per_remote=every,
    )
    return lived, best._replace(interval_s=min(best.interval_s, span_s))


def _job(asked: Failing, chips: int) -> Job:
    mttf_s, save_s = (asked.mttf_chip_h or 0.0) * HOUR_S / chips, asked.save_s or 0.0
    if save_s > mttf_s and save_s <= (asked.mttf_chip_h or 0.0) * HOUR_S:
        most = int((asked.mttf_chip_h or 0.0) * HOUR_S / save_s)
        raise QuestionError(
            f"a save of {fmt.duration(save_s)} where {fmt.count(chips, 'chip')} fail every {fmt.duration(mttf_s)}",
            expected="a save shorter than the mean time to failure",
            advice=f"At most {_no_more(mttf_s)} s for a save, or at most {fmt.count(most, 'chip')}",
        )
    return Job(
        save_s=save_s,
        mttf_s=mttf_s,
        restart_s=asked.restart_s or 0.0,
        wait_s=asked.wait_s or 0.0,
        blocked_s=asked.blocked_s,
    )


def _no_more(seconds: float) -> str:
    """Rounded down, so that what is advised can be."""
    return f"{int(seconds):,}" if seconds >= 10 else f"{seconds * 0.999:.2g}"


def _local(asked: Failing) -> Local | None:
    if asked.local_save_s is None:
        return None
    restart_s = asked.restart_s if asked.local_restart_s is None else asked.local_restart_s
    share = LOCAL_SHARE if asked.local_share is None else asked.local_share
    return Local(save_s=asked.local_save_s, restart_s=restart_s or 0.0, share=share)


def _saves(job: Job, local: Local | None, asked: Failing) -> tuple[float, int]:
    """(work between two saves, every how many-th is remote): as asked, the best where nothing is."""
    if local is None:
        return (optimal_s(job) if asked.interval_s is None else asked.interval_s), 1
    if asked.interval_s is None:
        return _best(job, local, asked.saves_per_remote)
    return asked.interval_s, asked.saves_per_remote or best_counted(job, local, asked.interval_s)


def _best(job: Job, local: Local | None, every: int | None) -> Best:
    """`every`: as asked, of which the best interval is another than of any number."""
    if local is None:
        return Best(optimal_s(job), 1)
    if every is None:
        return Best(*best_two_tier(job, local)[:2])
    return Best(best_interval(job, local, every)[0], every)


def check(asked: Failing, span_s: float = LONGEST_S) -> None:
    """What belongs together, and what is no longer than the life."""
    if not asked.elastic and (asked.slices is not None or asked.resume_s is not None):
        raise QuestionError("slices or their pauses, of a job that is not elastic", expected="--elastic with them")
    if asked.slices == 1:
        raise QuestionError("elastic training on 1 slice", expected="two slices or more")
    if asked.elastic and asked.spares:
        raise QuestionError("spares for an elastic job", expected="one of the two", advice="Name --wait-s instead")
    if asked.repair_h is not None and not asked.spares:
        raise QuestionError("a repair without spares", expected="--spares with it", advice="Name --wait-s instead")
    _check_tiers(asked)
    if asked.interval_s is None:
        return
    if asked.blocked_s is not None and asked.save_s is not None and not asked.local_save_s:
        shortest = asked.save_s - asked.blocked_s
        if asked.interval_s < shortest:
            raise QuestionError(
                f"saves after every {asked.interval_s:g} s of work, while one is written for {shortest:g} s",
                expected=f"at least {shortest:g} s between two",
            )
    if asked.interval_s > span_s:
        raise QuestionError(
            f"saves after every {fmt.duration(asked.interval_s)} of work in a job of {fmt.duration(span_s)}",
            expected=f"at most {span_s:g} s between two",
            advice="Leave it away for the best",
        )


def _check_written(job: Job, local: Local, asked: Failing, every: int) -> None:
    """An interval that is given leaves time to write the remote save before."""
    shortest = shortest_s(job, local, every)
    if asked.interval_s is not None and asked.interval_s < shortest * (1 - 1e-12):
        raise QuestionError(
            f"saves after every {asked.interval_s:g} s of work, one of {every:,} remote, while that is written for "
            f"{job.shortest_s:g} s",
            expected=f"at least {shortest:g} s between two, or at least {fewest(job, local, asked.interval_s):,} saves "
            "for one that is remote",
        )


def _check_tiers(asked: Failing) -> None:
    more = (asked.local_restart_s, asked.local_share, asked.saves_per_remote)
    if asked.local_save_s is None:
        if any(value is not None for value in more):
            raise QuestionError("a local tier without the time of its saves", expected="--local-save-s with it")
        return
    if asked.elastic:
        raise QuestionError(
            "a local tier for an elastic job",
            expected="one of the two",
            advice="Name the local save as --save-s where every failure leaves its copies",
        )
