"""Where the exact rules and those of ml-goodput differ for a job, in sentences, and why."""

import numpy as np

from analyzers.lost.goodput.buckets import ASYNC, BUCKETS, CUSTOM, amount
from analyzers.lost.goodput.entries import SAVE, STEP, Entries, code_of
from analyzers.lost.goodput.library import segmented
from analyzers.lost.goodput.result import GoodputResult
from errors import QuestionError

WHOLE = 5e-4  # shares that sum to the whole within this part of it are not spoken of
ALIKE_S = 1e-3  # closer amounts are one: times of day are doubles in the library, a quarter of a microsecond apart
WHY: dict[str, str] = {  # by bucket: what the library does otherwise
    "productive": "the library takes the time between the starts of steps that follow one another, whatever happened "
    "in it, and all of the time from the last step start to the end of the job",
    "total": "the library counts from the first start in the log to the last end",
    "tpu_initialization": "the library adds up intervals that overlap, and leaves out those without an end",
    "training_prep": "the library adds up intervals that overlap, and leaves out those without an end",
    "program_startup": "the library compares the first step of a segment with the mean of the others, pauses in them "
    "included, where the exact rules take their median",
    "data_loading_sync": "the library takes the first load after a start or a disruption, and once more the last load "
    "before each disruption, which lies inside a step",
    "unproductive_checkpoint_save_time": "the library averages the saves of one step where several were written, and "
    "adds up those that overlap",
    "unproductive_checkpoint_restore_time": "the library averages the restores of one step and adds up those that "
    "overlap",
    "wasted_progress_from_disruption": "the library ends lost progress at the start of the last lost step and sees "
    "none where the next attempt began at step 0",
    "infrastructure_recovery_from_disruption": "the library counts from the last step start to the next start of the "
    "job, and only where a step number occurs again",
    CUSTOM: "the library counts only events that lie wholly between two step starts",
    "other": "it is what the other buckets leave over",
    "elastic_slice_down": "the library adds up waits that overlap and knows none without an end",
    "elastic_scale_up": "the library adds up waits that overlap and knows none without an end",
    "elastic_reinitialization": "the exact rules enter initialisation inside it here and not twice",
}


def differences(
    exact: GoodputResult | QuestionError, library: GoodputResult | QuestionError, log: Entries | None
) -> tuple[str, ...]:
    """Sentences: what differs in this job as a whole, then each amount that is not the same."""
    if isinstance(library, QuestionError):
        return (f"By the rules of ml-goodput there is no answer: {library}",)
    if isinstance(exact, QuestionError):
        return (f"By the exact rules there is no answer: {exact}",)
    amounts = _amounts(exact, library)
    if not amounts and exact.disruptions == library.disruptions:
        return ("Both rule sets agree on this job, bucket by bucket.",)
    return (*_whole(exact, library, log), *amounts)


def _amounts(exact: GoodputResult, library: GoodputResult) -> list[str]:
    """One sentence for each amount that differs, the largest difference first."""
    pairs = {"productive": (exact.productive_s, library.productive_s), "total": (exact.total_s, library.total_s)}
    pairs |= {b: (amount(exact.badput_s, b), amount(library.badput_s, b)) for b in BUCKETS if b != ASYNC}
    apart = [(abs(a - b), name, a, b) for name, (a, b) in pairs.items() if abs(a - b) > ALIKE_S]
    return [
        f"{name.replace('_', ' ').capitalize()}: {_s(a)} by the exact rules, {_s(b)} by ml-goodput: {WHY[name]}."
        for _, name, a, b in sorted(apart, key=lambda x: -x[0])
    ]


def _whole(exact: GoodputResult, library: GoodputResult, log: Entries | None) -> list[str]:
    """What the library makes of this job as a whole that the exact rules do not."""
    out = []
    unseen = exact.disruptions - library.disruptions
    if unseen > 0:
        out.append(
            f"The library sees a disruption only where a step number occurs again: it missed {unseen} of "
            f"{exact.disruptions}, and counts the time from the step before to the step after as productive."
        )
    elif unseen < 0:
        out.append(
            f"The library sees {-unseen} more disruptions than there were: a step number that is told twice is "
            "one to it."
        )
    summed = library.productive_s + library.badput_total_s
    if library.total_s and abs(summed / library.total_s - 1) > WHOLE:
        out.append(f"The library's shares sum to {100 * summed / library.total_s:.1f} %; the exact ones to 100 %.")
    if log is None or not len(log.at(STEP)):
        return out
    if _again_after_end(log):
        out.append(
            "The job ended and was started again under the same name: the library counts the time between as "
            "part of the job; by the exact rules no chips were held then."
        )
    steps = segmented(log)
    if (steps.limit[:-1] == 0).any():
        out.append(
            "An attempt began again at step 0: the library drops all that was done before it, so its time lands "
            "in other; by the exact rules it is wasted progress, or kept if the job had ended."
        )
    save = log.step[log.at(SAVE)]
    if len(np.unique(save)) < len(save):
        out.append(
            "Several saves were written for one step (by hosts, or to two places): the library averages them, "
            "the exact rules take the time in which any of them blocked."
        )
    return out


def _again_after_end(log: Entries) -> bool:
    starts, ends = log.at(code_of("job")), log.at(code_of("job", end=True))
    return bool(len(starts) and len(ends) and (starts > ends[0]).any())


def _s(seconds: float) -> str:
    return f"{seconds:,.3f}".rstrip("0").rstrip(".") + " s"
