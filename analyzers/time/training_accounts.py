"""From painted time to accounts: the arithmetic of the training ledger."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analyzers.device.host_work import COMPILING, WAITING
from analyzers.flops.executed import Extra
from analyzers.flops.peak import Hardware
from analyzers.intervals import Spans, length, overlap_with, spans
from analyzers.time.calendar import CODE, HEADINGS, Calendar, between_said, no_steps, startup_ns
from analyzers.time.device_time import DeviceTrace
from analyzers.time.device_uses import Uses, enter_device, enter_unwatched, no_peak, shifted
from analyzers.time.history import History
from analyzers.time.source_clocks import COARSE_NS
from analyzers.time.undated_pauses import NOTE
from errors import format as fmt
from runs.ledger import Account, Basis

BADPUT = HEADINGS[CODE["wasted_progress"] :] + ("infrastructure_recovery", "other")
DERIVED = {"infrastructure_recovery", "wasted_progress", "hang", "program_startup", "other"}
NAMED_SHARE = 0.1  # of all straggler wait: a rank that cost less is not named
NO_PAUSES: Mapping[str, float] = {}
OUTSIDE = "outside the annotated steps"


@dataclass(frozen=True)
class Book:
    """The accounts and what else the ledger's result tells."""

    account: Account
    useful_flops: float | None
    start_ns: int | None
    end_ns: int | None
    profiled_share: float | None
    notes: tuple[str, ...]
    profiled_chips: float | None = None  # of how many chips a profile shows devices; None where that was not counted


def leaf(name: str, chip_seconds: float, basis: Basis, source: str) -> Account:
    return Account(name=name, chip_seconds=float(chip_seconds), basis=basis, source=source)


def parent(name: str, parts: Iterable[Account], source: str = "") -> Account:
    """A parent of those parts that hold anything."""
    return Account.total(name, [p for p in parts if p.chip_seconds > 0], source)


def from_step_lines(
    past: History, machine: Hardware, profiled: int = 0, pauses_s: Mapping[str, float] = NO_PAUSES
) -> Book:
    """Accounts from step lines alone: step time is known, when and between is not. `profiled`: devices of a profile
    whose steps are not those of the lines, so that nothing of it can be entered. `pauses_s`: see `undated_pauses`."""
    rows = past.rows[past.rows["dur_ns"].notna()]
    took = rows["dur_ns"].to_numpy(dtype=np.int64)
    kept = rows["kept"].to_numpy(dtype=bool)
    flops = rows["model_flops_per_chip"].to_numpy(dtype=float, na_value=0.0)
    hung, starting = rows["hung_ns"].to_numpy(dtype=np.int64) / 1e9, startup_ns(rows, took) / 1e9
    seconds = took / 1e9 - hung - starting
    held_s, peak = float(seconds[kept].sum()), machine.peak_flops_per_s
    useful = min(float(flops[kept].sum()) / peak, held_s) if peak else 0.0
    uses = Uses(useful=useful * machine.chips, unseen=(held_s - useful) * machine.chips)
    wasted = leaf("wasted_progress", float(seconds[~kept].sum()) * machine.chips, "derived", "steps taken again later")
    notes = [
        "Only step lines were given: time before the first step, between attempts and after the last is not in "
        "this ledger. Goodput entries would bring it.",
        *past.notes,
    ]
    if profiled:
        notes.append(
            "The profile shows none of the log's steps, and the log has no times of day: what devices did is "
            "not in this ledger; the pages Overlap and Roofline tell it. Profile with "
            "jax.profiler.StepTraceAnnotation around each step, numbered as the log does."
        )
    if not peak:
        notes.append(no_peak())
    stood = leaf("hang", float(hung.sum()) * machine.chips, "derived", "steps beyond a hundred usual ones")
    began = leaf("program_startup", float(starting.sum()) * machine.chips, "derived", "first steps beyond usual ones")
    stops = [leaf(name, s * machine.chips, "measured", "recorded by the job") for name, s in pauses_s.items()]
    if stops:
        notes.append(NOTE)
    parts = [productive(uses, {}, machine, past.origin), parent("badput", [wasted, stood, began, *stops])]
    held = parent("held", parts, "sum of step times" + (" and pauses" if stops else ""))
    known = float(flops[kept].sum()) * machine.chips
    share = 0.0 if kept.any() else None
    return Book(held, known or None, None, None, share, tuple(notes), profiled / machine.devices_per_chip or None)


def from_time(
    past: History, days: Calendar | None, machine: Hardware, extra: Extra, traces: Iterable[DeviceTrace]
) -> Book:
    """Accounts from the calendar, from device traces, or from both."""
    uses, blamed = Uses(), dict[str, float]()
    weight = 1 / machine.devices_per_chip
    notes: list[str] = []
    counted, kept_s, seen_s, unstepped, flops_known = 0.0, 0.0, 0.0, 0.0, 0.0
    start, end = (days.start_ns, days.end_ns) if days else (None, None)
    stepless = days is None and not len(past.rows)
    for trace in traces:
        shift = clock_shift(trace, past) if days else 0
        kept, outside = (days.painting.spans(CODE["kept"]), 0) if days else _profiled_steps(trace, stepless)
        flops_known += enter_device(trace, kept, days, past, machine, extra, shift, uses, blamed)
        counted += weight
        kept_s += length(kept) / 1e9 * weight
        seen_s += float(overlap_with(shifted(trace.windows, shift), kept).sum()) / 1e9 * weight
        unstepped += outside / 1e9 * weight
        if not days and len(trace.windows.start):
            begins, ends = int(trace.windows.start[0]), int(trace.windows.end[-1])
            start, end = min(start or begins, begins), max(end or ends, ends)
    parts: list[Account] = []
    unwatched = machine.chips - counted
    if not days and unwatched > 0:
        notes.append(
            f"{counted:g} of {machine.chips} chips were profiled; the others are taken to have been held as "
            "long, and what they did is not known."
        )
        uses.unseen += kept_s / counted * unwatched
        kept_s += kept_s / counted * unwatched
        unstepped += unstepped / counted * unwatched
    if days:
        notes += days.notes
        if not len(days.steps):
            notes.append(no_steps(past))
        kept = days.painting.spans(CODE["kept"])
        if unwatched > 0:
            kept_s += length(kept) / 1e9 * unwatched
            flops_known += enter_unwatched(kept, days, past, machine, unwatched, uses) * unwatched
        if length(days.painting.spans(CODE["outside"])):
            notes.append(between_said(days))
        if days.open_ended:
            notes.append(
                f"{fmt.count(days.open_ended, 'recorded interval has', 'recorded intervals have')} no end: phases were "
                "entered up to their attempt's next event, custom events and saves left out."
            )
        parts += _outside_steps(days, machine)
    if unstepped:
        where = f" on {counted:g} of {machine.chips} chips" if unwatched > 0 else ""
        said = f"profiled{where}, but {OUTSIDE}"
        parts.append(leaf("unattributed", unstepped, "unattributed", said))
    if stepless:
        notes.append(
            "The profile shows no step: what devices did is told, but not whether any of it was a step that "
            "was kept. Mark steps with jax.profiler.StepTraceAnnotation, or add the job's log."
        )
    elif not days:
        notes.append(
            "Only a profile was given: what it covers is taken as kept. Whether steps were lost, and what "
            "happened around it, goodput entries or a training log would tell."
        )
    if uses.capped > 0:
        notes.append(
            f"Model FLOPs at peak exceed the time spent computing by {fmt.at_most(uses.capped)} chip-seconds: the "
            "peak is too low or the FLOPs too high. Useful maths was entered up to that time."
        )
    if uses.lone and uses.untold > 0:
        notes.append(
            "Some collectives were not found on every rank of their group: what was waited in them for ranks "
            "without a profile is not known, and entered as such."
        )
    if uses.unsplit > 0 and not machine.peak_flops_per_s:
        notes.append(no_peak())
    if extra.unknown:
        notes.append(
            f"Recomputation and padding are not told: the FLOPs of {', '.join(extra.unknown[:3])} are not "
            "known, as nothing tells how often some of the loops run."
        )
    used = productive(uses, blamed, machine, past.origin)
    if stepless:
        used = replace(used, name="profiled", source="what the profile covers; it shows no step")
    held = parent("held", [used, *parts], "chips x time held")
    if uses.padding > 0:
        low = uses.padding * extra.padding_low / extra.padding
        notes.append(
            f"Padding is modelled: {fmt.at_most(low)} to {fmt.at_most(uses.padding)} chip-seconds, the upper end "
            "entered. Nobody has measured on silicon how far a matrix unit can avoid it."
        )
    share = seen_s / kept_s if kept_s else None
    return Book(held, flops_known or None, start, end, share, tuple(notes), counted)


def kept_of(trace: DeviceTrace, days: Calendar | None, past: History) -> Spans:
    """The time of a device that its accounts are of, on the job's clock where there is a calendar."""
    if days is not None:
        return days.painting.spans(CODE["kept"])
    return _profiled_steps(trace, not len(past.rows))[0]


def _profiled_steps(trace: DeviceTrace, stepless: bool) -> tuple[Spans, int]:
    """Without a calendar: from the first annotated step of each capture to the end of its last, within the capture;
    whole captures where the run is `stepless`. Also the nanoseconds profiled outside that."""
    if not len(trace.steps):
        return (trace.windows, 0) if stepless else (spans([], []), length(trace.windows))
    start = trace.steps["start_ns"].to_numpy(dtype=np.int64)
    end = start + trace.steps["dur_ns"].to_numpy(dtype=np.int64)
    which = np.searchsorted(trace.windows.start, start, side="right") - 1
    inner = [
        (max(int(start[which == w].min()), int(s)), min(int(end[which == w].max()), int(e)))
        for w, (s, e) in enumerate(zip(*trace.windows, strict=True))
        if (which == w).any()
    ]
    kept = spans([a for a, _ in inner], [b for _, b in inner])
    return kept, length(trace.windows) - length(kept)


def clock_shift(trace: DeviceTrace, past: History) -> int:
    """How far this host's clock is ahead of the one that wrote the calendar, ns: the median over steps of its step
    start less the nearest start of the same step there. 0 where they share no step, and where the profile counts its
    own steps: by its times it lies among the steps of the job, but each capture begins with step 0 or 1, not with the
    number that the job had reached."""
    rows = past.rows[past.rows["start_ns"].notna()]
    if past.origin == "profile" or not len(rows) or not len(trace.steps):
        return 0
    known = {n: g.to_numpy(dtype=np.int64) for n, g in rows.groupby("step")["start_ns"]}
    gaps = []
    for step, at in zip(trace.steps["step"], trace.steps["start_ns"], strict=True):
        if step in known:
            gap = int(at) - known[step]
            gaps.append(int(gap[np.abs(gap).argmin()]))
    shift = int(np.median(gaps)) if gaps else 0
    return 0 if _counts_its_own(trace, rows, shift) else shift


def _counts_its_own(trace: DeviceTrace, rows: pd.DataFrame, shift: int) -> bool:
    """Whether the numbers of the profile's steps are its own and not the job's."""
    at, number = (trace.steps[c].to_numpy(dtype=np.int64, na_value=-1) for c in ("start_ns", "step"))
    opens = np.flatnonzero(np.diff(number, prepend=number[:1] + 1) <= 0)
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    among = (at >= start.min()) & (at <= start.max())
    usual = float(rows["dur_ns"].astype("Float64").median()) if rows["dur_ns"].notna().any() else 0.0
    return bool(abs(shift) > max(COARSE_NS, 2 * usual) and among.all() and (number[opens] <= 1).all())


def productive(uses: Uses, blamed: Mapping[str, float], machine: Hardware, origin: str) -> Account:
    total_wait = uses.wait + sum(blamed.values())
    named = {h: s for h, s in blamed.items() if s >= NAMED_SHARE * total_wait}
    nobody = uses.wait + sum(s for h, s in blamed.items() if h not in named)
    collectives = "collective durations, compared across ranks"
    waiting = parent(
        "straggler_wait",
        [
            *(leaf(f"waiting for {h}", s, "derived", collectives) for h, s in sorted(named.items())),
            leaf("no_single_rank", nobody, "derived", collectives),
        ],
    )
    flops = f"model FLOPs / {machine.peak_source}" if machine.peak_source else "model FLOPs"
    unknown = parent(
        "unattributed",
        [
            leaf("not_profiled", uses.unseen, "unattributed", "no profile covers these steps"),
            leaf(
                "communication_or_wait",
                uses.untold,
                "unattributed",
                "collectives that were not compared across ranks: when the others came is not known",
            ),
            leaf("compute_unsplit", uses.unsplit, "unattributed", "computing, but FLOPs or peak are not known"),
        ],
    )
    inputs = [leaf("input_wait", uses.input, "measured", "device idle while the host fetched data")]
    if uses.input_logged:
        inputs = [
            parent(
                "input_wait",
                [
                    leaf("input_wait_profiled", uses.input, "measured", "device idle while the host fetched data"),
                    leaf(
                        "input_wait_logged", uses.input_logged, "derived", "steps longer than usual by a longer fetch"
                    ),
                ],
            )
        ]
    account = parent(
        "productive",
        [
            leaf("useful_maths", uses.useful + uses.useful_unseen, "derived", flops),
            leaf("recomputation", uses.recomputed, "derived", "rematerialised FLOPs of the programs / peak"),
            leaf("padding", uses.padding, "modelled", "matrix products rounded up to the matrix unit's tiles / peak"),
            leaf(
                "below_roofline", uses.below, "derived", "time computing less useful maths, recomputation and padding"
            ),
            leaf("exposed_communication", uses.exposed, "measured", "collectives not covered by computing"),
            leaf("exposed_copies", uses.copying, "measured", "copies not covered by computing or collectives"),
            waiting,
            *inputs,
            leaf(COMPILING, uses.idle_by_host.get(COMPILING, 0.0), "measured", "device idle while the host compiled"),
            _idle(uses),
            unknown,
        ],
        f"kept steps by {origin}",
    )
    # padding is modelled, but what it is taken from is not: the sum does not depend on the model
    return replace(account, basis="derived") if account.basis == "modelled" else account


def _idle(uses: Uses) -> Account:
    """Idle devices by what the thread that feeds them did; one account where no profile tells."""
    nothing = "no operation on the device"
    told = {kind: s for kind, s in uses.idle_by_host.items() if kind not in (COMPILING, WAITING)}
    rest = uses.idle + uses.idle_by_host.get(WAITING, 0.0)
    if not any(told.values()):
        return leaf("device_idle", rest, "measured", nothing)
    parts = [leaf(f"idle_{kind}", s, "measured", f"{nothing}, by events of its host") for kind, s in told.items()]
    return parent("device_idle", [*parts, leaf("idle_unexplained", rest, "measured", nothing)], nothing)


def _outside_steps(days: Calendar, machine: Hardware) -> list[Account]:
    """Badput; and, where no step was read, the time of which nothing tells whether it went into steps."""
    badput = _badput(days, machine)
    if len(days.steps):
        return [badput]
    unknown = float(days.painting.amounts(len(HEADINGS))[CODE["other"]]) / 1e9 * machine.chips
    return [badput, leaf("unattributed", unknown, "unattributed", "no input tells which steps were taken, and when")]


def _badput(days: Calendar, machine: Hardware) -> Account:
    seconds = days.painting.amounts(len(HEADINGS)) / 1e9 * machine.chips
    parts = []
    for name in BADPUT if len(days.steps) else [n for n in BADPUT if n != "other"]:
        source = "inferred from steps and job starts" if name in DERIVED else "recorded by the job"
        if name == "custom":
            events = [leaf(n, length(x) / 1e9 * machine.chips, "measured", source) for n, x in days.custom.items()]
            parts.append(parent("custom", events, source))
            continue
        parts.append(leaf(name, seconds[CODE[name]], "derived" if name in DERIVED else "measured", source))
    return parent("badput", parts)
