"""What hosts did while a device had nothing to run, by the thread that launched what came next.

One thread often feeds a device in the forward pass and another in the backward pass: what the one does while the device
waits for the other tells nothing.
"""

from analyzers.device.host_work import HOST_CODE, KINDS, LAUNCHING, STEPS, ThreadWork
from analyzers.device.launches.gaps import BETWEEN, DELAY, UNTOLD, Gaps, gaps_of
from analyzers.device.launches.seen import Launched, launched
from analyzers.intervals import Spans, common, idle, joined, spans, union
from runs.tables import Tables

BETWEEN_KERNELS = "between_kernels"
FED = (HOST_CODE, *KINDS, BETWEEN_KERNELS)
"""Kinds of what a device waited for, those that give way first."""


def feeding(
    tables: Tables, capture: int, start_ns: int, windows: Spans, device: int, work: ThreadWork
) -> dict[str, Spans]:
    """Unions by kind (see FED), within the idle time of a device in a capture that tells its launches; of one that
    tells none those of the thread on which the profile shows the steps, whenever the device was idle. `windows`: when
    the host was profiled, disjoint; the capture's begins with it or before."""
    ran = launched(tables, capture, start_ns, device)
    if not ran.known.any():
        return work.of(STEPS)
    begin, end = min(start_ns, int(ran.start[0])), int(ran.end.max())
    mine = (windows.start <= start_ns) & (windows.end > start_ns)
    end = max(end, int(windows.end[mine].max(initial=end)))
    return reasons(gaps_of(ran, idle(union(spans(ran.start, ran.end)), spans([begin], [end]))), ran, work)


def reasons(gaps: Gaps, ran: Launched, work: ThreadWork) -> dict[str, Spans]:
    """Gaps by kind. While the host was late: what the thread did that launched what came next; where that is not known,
    what the thread did on which steps are shown. Launching from the begin of the call on; and between kernels."""
    found: dict[str, list[Spans]] = {kind: [] for kind in FED}

    def enter(told: dict[str, Spans], when: Spans) -> None:
        for kind, spent in told.items():
            found[kind].append(common(union(spent), union(when))[0])

    stepping = work.of(work.steps_of(ran.threads))
    for number, thread in enumerate(ran.threads):
        enter(work.of(thread) or stepping, gaps.late(number))
    enter(stepping, joined([gaps.late(-1), gaps.of(UNTOLD)]))
    found[LAUNCHING].append(gaps.of(DELAY))
    found[BETWEEN_KERNELS].append(gaps.of(BETWEEN))
    return {kind: union(joined(parts)) for kind, parts in found.items()}
