"""The fact `chips` of a run: one number for manifest, pages and ledger, by the rule of `catalog.chip_count`.

A file tells of its own host or process; so of several files the largest number counts, unless a person declared one,
and never fewer than the profiles show devices of. Logs of servers tell each of a server with chips of its own: of those
that ran side by side they add up. Of a training job that was started again on fewer or on more the mean over its time
counts: then its chip time is what it held.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from catalog.chip_count import chips_held, chips_seen, devices_of_a_chip
from catalog.chips import chip
from collectors.reading import job_ran
from errors import QuestionError
from errors import format as fmt
from runs.run import FactValue


def most_chips(values: Sequence[FactValue]) -> FactValue:
    """The first that a person declared, else the largest."""
    declared = (value for value in values if value.basis == "declared")
    return next(declared, None) or max(values, key=lambda value: value.value)


def chips_together(ran: Sequence[FactValue], said: FactValue | None) -> tuple[FactValue | None, str]:
    """(chips of servers together, a sentence) where logs of several tell of more than `said`; else (None, "").

    `ran`: what each log tells (`collectors.reading.server_ran`). On average over the time in which any ran: of one that
    takes over from another, with both up for a moment, there is one; of servers side by side they add up. A log that
    was fetched twice counts once.
    """
    logs: dict[str, dict[str, int]] = {}
    for told in (value.value for value in ran):
        known = logs.get(told["log"])
        if known is None or told["last_ns"] - told["first_ns"] > known["last_ns"] - known["first_ns"]:
            logs[told["log"]] = told
    each = sorted(logs.values(), key=lambda log: log["first_ns"])
    held, any_ran, until = 0, 0, 0
    for log in each:
        held += log["chips"] * (log["last_ns"] - log["first_ns"])
        any_ran += max(log["last_ns"] - max(log["first_ns"], until), 0)
        until = max(until, log["last_ns"])
    chips = round(held / any_ran) if any_ran else 0
    if len(each) < 2 or said is None or said.basis == "declared" or chips <= said.value:
        return None, ""
    parts = ", ".join(f"{log['chips']:,}" for log in each[:5]) + (" ..." if len(each) > 5 else "")
    how = f"the logs of {len(each):,} servers, some of which ran side by side, state {parts}: counted as {chips:,}"
    return FactValue(chips, "derived", f"{len(each):,} logs of servers"), f"chips: {how}"


def chips_over_time(ran: Sequence[FactValue], said: FactValue | None) -> tuple[FactValue | None, str]:
    """(chips on average, a sentence) where a training job ran on other numbers of them after it was started again;
    else (None, "").

    `ran`: what each log tells of each start (`collectors.reading.job_ran`). Of logs that tell of the same time the
    largest counts; until it was started again it held what it had before. A scheduler may tell the time of another
    zone: what it says and what logs say are each taken for themselves, and the larger mean counts.
    """
    told = [value.value for value in ran]
    if said is None or said.basis == "declared" or len({one["chips"] for one in told}) < 2:
        return None, ""
    each = ([one for one in told if job_ran.SCHEDULER in one], [one for one in told if job_ran.SCHEDULER not in one])
    at, held = max((_held(starts) for starts in each if starts), key=lambda one: _mean(*one))
    begins = np.flatnonzero(np.diff(held, prepend=0))
    if len(begins) < 2:
        return None, ""
    mean = _mean(at, held)
    counted = max(round(mean), 1)
    changes = [f"{held[i]:,} from {fmt.date(int(at[i]))} on" for i in begins[1:5]]
    listed = f"{held[0]:,} at first, {', '.join(changes)}{' ...' if len(begins) > 5 else ''}"
    how = f"the job ran on {listed}: {fmt.at_most(mean)} on average over its time, counted as {counted:,}"
    return FactValue(counted, "derived", f"{len(begins):,} starts of the job"), f"chips: {how}"


def _held(starts: Sequence[Mapping[str, int]]) -> tuple[np.ndarray, np.ndarray]:
    """(moments, chips held from each of them on to the next), in their order."""
    first, last, chips = (np.array([one[key] for one in starts]) for key in ("first_ns", "last_ns", "chips"))
    at = np.unique(np.concatenate([first, last]))
    held = np.zeros(len(at) - 1, np.int64)
    for begin, end, count in zip(np.searchsorted(at, first), np.searchsorted(at, last), chips, strict=True):
        held[begin:end] = np.maximum(held[begin:end], count)
    return at, held[np.maximum.accumulate(np.where(held > 0, np.arange(len(held)), 0))]


def _mean(at: np.ndarray, held: np.ndarray) -> float:
    return float(np.average(held, weights=np.diff(at).astype(float)))


def settled_chips(facts: Mapping[str, FactValue], devices: Collection[tuple[str, int]]) -> tuple[FactValue | None, str]:
    """(the fact, a sentence where it is not as it was stated); `devices`: (host, device) that profiles show."""
    stated = facts.get("chips")
    seen = chips_seen(len(devices), _devices_per_chip(facts))
    if stated is not None and seen <= stated.value:
        return stated, ""
    chips = chips_held(stated and stated.value, seen)
    if chips is None:
        return None, ""
    found = FactValue(chips, "derived", f"{len(devices)} devices in the profiles")
    if stated is None or stated.basis != "declared":
        return found, ""
    return found, f"chips: {stated.value:g} were stated, but the profiles show {seen}: counted as {seen}"


def unknown_chip(facts: Mapping[str, FactValue]) -> str:
    """A sentence where a person named a chip that no catalogue has, and no peak of it; else empty."""
    said = facts.get("chip")
    if said is None or said.basis != "declared" or "peak_flops_per_s" in facts:
        return ""
    try:
        chip(said.value)
    except QuestionError as e:
        which = f"expected {e.expected}. " if e.expected else ""
        advice = f"{e.advice.rstrip('.')}; `chipledger facts RUN chip=...` says another."
        return f"chip: {e.what}: its peak is not known. {which}{advice}"
    return ""


def _devices_per_chip(facts: Mapping[str, FactValue]) -> int:
    said, name = facts.get("devices_per_chip"), facts.get("chip")
    try:
        known = chip(str(name.value)) if name else None
    except QuestionError:
        known = None
    return devices_of_a_chip(said and said.value, known)
