"""What devices of kept steps did, entered instant by instant into accounts."""

from dataclasses import dataclass, field

import numpy as np

from analyzers.flops.executed import Extra
from analyzers.flops.peak import Hardware
from analyzers.intervals import Painting, Spans, length, overlap_with, paint, spans, union
from analyzers.ranks.waits import LONE, NAMELESS
from analyzers.time.calendar import Calendar
from analyzers.time.device_time import DeviceTrace
from analyzers.time.history import History

UNSEEN, IDLE, INPUT, COPYING, EXPOSED, UNTOLD, WAIT, COMPUTING = range(1, 9)
BLAMED = 9  # BLAMED + k: charged to the k-th host; what comes after them: kinds of host work


@dataclass
class Uses:
    """Chip-seconds of kept steps by use, summed over devices; filled device by device."""

    unseen: float = 0.0
    idle: float = 0.0
    idle_by_host: dict[str, float] = field(default_factory=dict)  # by what the host did meanwhile
    input: float = 0.0
    input_logged: float = 0.0
    copying: float = 0.0
    exposed: float = 0.0
    untold: float = 0.0
    wait: float = 0.0
    useful: float = 0.0
    useful_unseen: float = 0.0
    recomputed: float = 0.0
    padding: float = 0.0
    below: float = 0.0
    unsplit: float = 0.0
    capped: float = 0.0
    lone: bool = False  # some collectives could not be compared across ranks


def enter_device(
    trace: DeviceTrace,
    kept: Spans,
    days: Calendar | None,
    past: History,
    machine: Hardware,
    extra: Extra,
    shift: int,
    uses: Uses,
    blamed: dict[str, float],
) -> float:
    """Enter one device's kept time by use; returns the useful FLOPs known for it."""
    weight = 1 / machine.devices_per_chip
    if not len(kept.start):
        return 0.0
    painting, hosts, work = painted(trace, kept, days, shift)
    seconds = painting.amounts(BLAMED + len(hosts) + len(work)) / 1e9 * weight
    uses.idle += seconds[IDLE]
    for code, kind in work.items():
        uses.idle_by_host[kind] = uses.idle_by_host.get(kind, 0.0) + seconds[code]
    uses.input += seconds[INPUT]
    uses.copying += seconds[COPYING]
    uses.exposed += seconds[EXPOSED]
    uses.lone |= bool(trace.waits["reason"].isin((LONE, NAMELESS)).any())
    uses.untold += seconds[UNTOLD]
    uses.wait += seconds[WAIT]
    for k, host in enumerate(hosts):
        blamed[host] = blamed.get(host, 0.0) + seconds[BLAMED + k]
    busy, unseen = painting.spans(COMPUTING), painting.spans(UNSEEN)
    return enter_compute(trace, busy, unseen, kept, past, machine, extra, shift, uses)


def painted(
    trace: DeviceTrace, kept: Spans, days: Calendar | None, shift: int
) -> tuple[Painting, list[str], dict[int, str]]:
    """(each instant of one device's kept time by use, the hosts of BLAMED + k, kinds of host work by label); label 0
    between them. Raises IndexError where nothing was kept."""
    hosts = sorted(set(trace.waits["blamed"]) - {""})
    begin = trace.waits["start_ns"].to_numpy(dtype=np.int64) - shift
    late = begin + trace.waits["wait_ns"].to_numpy(dtype=np.int64)
    charged = begin + trace.waits["blamed_ns"].to_numpy(dtype=np.int64)
    fetching = shifted(trace.input, shift) if len(trace.input.start) or not days else days.loading_in_steps
    work = {BLAMED + len(hosts) + k: kind for k, kind in enumerate(trace.host_work)}
    layers = [
        *((code, shifted(trace.host_work[kind], shift)) for code, kind in work.items()),
        (INPUT, fetching),
        (COPYING, shifted(trace.copy, shift)),
        (EXPOSED, shifted(trace.collective, shift)),
        (UNTOLD, spans(late, late + trace.waits["unknown_ns"].to_numpy(dtype=np.int64))),
        (WAIT, spans(begin, late)),
    ]
    for k, host in enumerate(hosts):
        mine = (trace.waits["blamed"] == host).to_numpy()
        layers.append((BLAMED + k, spans(begin[mine], charged[mine])))
    computing = shifted(trace.compute, shift)
    first, last = int(kept.start[0]), int(kept.end[-1])
    dark = paint(first, last, [(1, shifted(trace.windows, shift))]).spans(0)
    lost = paint(first, last, [(1, kept)]).spans(0)
    painting = paint(first, last, [*layers, (COMPUTING, computing), (UNSEEN, dark), (0, lost)], ground=IDLE)
    return painting, hosts, work


def enter_compute(
    trace: DeviceTrace,
    busy: Spans,
    unseen: Spans,
    kept: Spans,
    past: History,
    machine: Hardware,
    extra: Extra,
    shift: int,
    uses: Uses,
) -> float:
    """Split computing time by model FLOPs, recomputation and padding; returns the device's useful FLOPs."""
    peak, weight = machine.peak_flops_per_s, 1 / machine.devices_per_chip
    at = trace.flops_at - shift
    executed = float(trace.flops[overlap_with(kept, Spans(at, at + 1)) > 0].sum())
    busy_s, unseen_s = length(busy) / 1e9, length(unseen) / 1e9
    steps, flops = step_flops(past, weight)
    if len(flops):
        whole = np.maximum(overlap_with(kept, steps), 1)
        dark = overlap_with(unseen, steps) / whole
        # as printed to the millisecond, neighbours overlap: each instant counts once
        busy_known = float(overlap_with(busy, union(steps)).sum()) / 1e9
        flops_seen, flops_dark = float((flops * (1 - dark)).sum()), float((flops * dark).sum())
    else:  # nobody says what the model needs: what was executed, less what was executed again
        dark = float(overlap_with(shifted(trace.uncounted, shift), busy).sum()) / 1e9
        flops_seen, flops_dark, busy_known = executed * (1 - extra.recomputed), 0.0, max(busy_s - dark, 0.0)
    if not peak or not flops_seen + flops_dark:
        uses.unsplit += busy_s * weight
        uses.unseen += unseen_s * weight
        return flops_seen + flops_dark
    needed, needed_dark = flops_seen / (peak * weight), flops_dark / (peak * weight)
    useful, useful_dark = min(needed, busy_known), min(needed_dark, unseen_s)
    uses.capped += (needed - useful + needed_dark - useful_dark) * weight
    again = min(executed * extra.recomputed / (peak * weight), busy_known - useful)
    padding = min(executed * extra.padding / (peak * weight), busy_known - useful - again)
    uses.useful += useful * weight
    uses.recomputed += again * weight
    uses.padding += padding * weight
    uses.below += (busy_known - useful - again - padding) * weight
    uses.unsplit += (busy_s - busy_known) * weight
    uses.useful_unseen += useful_dark * weight
    uses.unseen += (unseen_s - useful_dark) * weight
    return flops_seen + flops_dark


def enter_unwatched(kept: Spans, days: Calendar, past: History, machine: Hardware, chips: float, uses: Uses) -> float:
    """Enter kept time of chips that no profile saw; returns useful FLOPs per chip."""
    kept_s = length(kept) / 1e9
    steps, flops = step_flops(past, 1.0)
    peak, known = machine.peak_flops_per_s, float(flops.sum())
    useful = min(known / peak, kept_s) if peak else 0.0
    waited = min(logged_input_wait(kept, days, past), kept_s - useful)
    uses.useful_unseen += useful * chips
    uses.input_logged += waited * chips
    uses.unseen += (kept_s - useful - waited) * chips
    return known


def logged_input_wait(kept: Spans, days: Calendar, past: History) -> float:
    """Seconds that fetching data explains: in each step, its fetch beyond the usual one, up to its own excess over
    the median step. A fetch that made no step longer was hidden behind the device's work."""
    rows = past.rows[past.rows["kept"] & past.rows["dur_ns"].notna() & ~past.rows["first"]]
    rows = rows[rows["start_ns"].notna()]
    if not len(rows) or not len(days.loading_in_steps.start):
        return 0.0
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    steps = Spans(start, start + rows["dur_ns"].to_numpy(dtype=np.int64))
    took, fetch = overlap_with(kept, steps), overlap_with(days.loading_in_steps, steps)
    excess = np.minimum(took - np.median(took), fetch - np.median(fetch))
    return float(np.maximum(excess, 0).sum()) / 1e9


def step_flops(past: History, share: float) -> tuple[Spans, np.ndarray]:
    """Kept steps with known model FLOPs, and those FLOPs times `share`."""
    rows = past.rows[past.rows["kept"] & past.rows["model_flops_per_chip"].notna() & past.rows["dur_ns"].notna()]
    rows = rows[rows["start_ns"].notna()]
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    end = start + rows["dur_ns"].to_numpy(dtype=np.int64)
    return Spans(start, end), rows["model_flops_per_chip"].to_numpy(dtype=float) * share


def no_peak() -> str:
    return (
        "The chip's peak is not known, so useful maths cannot be told from slow computing. Say which "
        "chip it was under Facts, or declare peak_flops_per_s in chipledger.json."
    )


def shifted(x: Spans, ns: int) -> Spans:
    return Spans(x.start - ns, x.end - ns) if ns else x
