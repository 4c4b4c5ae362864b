"""The ledger of kept steps, step by step: what each account takes of a step on a chip, and how that scatters.

The ledger (`training_accounts.py`) enters all kept time of a job at once. Here the same painting is done for stretches
of neighbouring steps that every profiled device took, so that two runs can be compared account by account with an
interval. Steps outside every profile are in none of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.flops.executed import Extra, extra
from analyzers.flops.peak import Hardware
from analyzers.intervals import Spans, spans, union
from analyzers.ranks.waits import waits
from analyzers.time.booked import measured
from analyzers.time.calendar import CODE, Calendar
from analyzers.time.device_time import DeviceTrace, device_traces
from analyzers.time.device_uses import Uses, enter_device, shifted
from analyzers.time.history import History
from analyzers.time.job_past import job_past
from analyzers.time.training_accounts import clock_shift, productive
from runs.accounts import ACCOUNTS
from runs.ledger import Account
from runs.tables import Tables

STRETCHES = 16  # of the profiled steps: enough for an interval, and each costs a painting of every device
MOST_STEPS = 160  # of longer profiles so many, evenly spread: each costs a painting of its own
MAY_BE = {  # of what no account tells: those that it can belong to
    "compute_unsplit": ("useful_maths", "recomputation", "padding", "below_roofline"),
    "communication_or_wait": ("exposed_communication", "straggler_wait"),
}

IDLE = tuple(name for name in ACCOUNTS if name.startswith("idle_"))
HOSTS = (*IDLE, "compilation", "input_wait")  # what idle devices waited for, as far as their hosts were profiled


@dataclass(frozen=True)
class StepAccounts:
    """`seconds`: a row a stretch, a column an account: seconds of a step on one chip. `steps`: of each stretch.
    `devices`: over which it is the mean. `device_steps`: steps that a profile shows, of all devices together, also
    those that are in no stretch. `may_be`: by account, seconds of a step that are entered in none or in another, of
    which nothing tells that they are not its own."""

    seconds: pd.DataFrame
    steps: np.ndarray
    devices: int
    device_steps: int
    may_be: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def mean(self) -> Mapping[str, float]:
        """Seconds of a step by account, over all steps."""
        weighed = self.seconds.mul(self.steps, axis=0).sum() / self.steps.sum()
        return {str(name): float(s) for name, s in weighed.items()}


def step_accounts(tables: Tables, facts: Facts, only: np.ndarray | None = None) -> StepAccounts | None:
    """`only`: numbers of the steps that count, None: all. The answer is None where no profile shows kept steps that all
    of its devices took."""
    found = measured(tables, facts)
    past, days = job_past(tables, facts)
    if found is None or not len(past.rows):
        return None
    machine = found[0]
    traces = list(device_traces(tables, waits(tables)))
    moved = [(trace, clock_shift(trace, past) if days else 0) for trace in traces]
    numbers = _common_steps([_kept_steps(trace, shift, past, days) for trace, shift in moved])
    if only is not None:
        numbers = numbers[np.isin(numbers, only)]
    if not len(numbers):
        return None
    if len(numbers) > MOST_STEPS:
        numbers = numbers[np.linspace(0, len(numbers) - 1, MOST_STEPS).round().astype(int)]
    stretches = [part for part in np.array_split(numbers, min(STRETCHES, len(numbers))) if len(part)]
    totals: list[dict[str, float]] = [{} for _ in stretches]
    more, untold = extra(tables, facts), dict.fromkeys(MAY_BE, 0.0)
    for trace, shift in moved:
        taken = _kept_steps(trace, shift, past, days)
        for total, part in zip(totals, stretches, strict=True):
            mine = taken[taken["step"].isin(part)]
            for name, seconds in _entered(trace, shift, mine, past, days, machine, more, untold).items():
                total[name] = total.get(name, 0.0) + seconds
    counts = np.array([len(part) for part in stretches])
    chips = len(moved) / machine.devices_per_chip
    rows = pd.DataFrame(totals).fillna(0.0).div(counts * chips, axis=0)
    found = StepAccounts(rows, counts, len(moved), sum(len(trace.steps) for trace in traces))
    each = {part: seconds / (counts.sum() * chips) for part, seconds in untold.items()}
    return replace(found, may_be=_may_be(each, more, found.mean))


def _may_be(untold: Mapping[str, float], more: Extra, mean: Mapping[str, float]) -> Mapping[str, float]:
    """What no program tells of lies below the roofline, with all else that computing took. Where no profile tells what
    hosts did while devices were idle, all of that is idle time, which with the others is what is left of it."""
    found = {name: untold[part] for part, names in MAY_BE.items() for name in names}
    found |= {name: found[name] + mean.get("below_roofline", 0.0) for name in more.untold}
    if idle := mean.get("device_idle", 0.0):
        found |= {name: idle for name in HOSTS if name in IDLE or not mean.get(name)}
    else:
        found["device_idle"] = sum(mean.get(name, 0.0) for name in HOSTS)
    return {name: float(seconds) for name, seconds in found.items() if seconds > 0}


def _common_steps(of: list[pd.DataFrame]) -> np.ndarray:
    """Numbers of the steps that every device took whole."""
    if not of:
        return np.zeros(0, np.int64)
    shared = set.intersection(*(set(rows["step"].astype(int)) for rows in of))
    return np.array(sorted(shared), dtype=np.int64)


def _kept_steps(trace: DeviceTrace, shift: int, past: History, days: Calendar | None) -> pd.DataFrame:
    """step, start_ns and end_ns of the profiled steps that were kept, that lie whole in a window, the first of an
    attempt left out, on the job's clock."""
    rows = trace.steps.dropna().astype(np.int64)
    out = pd.DataFrame({"step": rows["step"], "start_ns": rows["start_ns"] - shift})
    out["end_ns"] = out["start_ns"] + rows["dur_ns"]
    seen = union(shifted(trace.windows, shift))
    at = np.searchsorted(seen.start, out["start_ns"].to_numpy(), side="right") - 1
    whole = at >= 0  # there may be no window: of a capture without an end, in which this device did nothing
    whole[whole] = out["end_ns"].to_numpy()[whole] <= seen.end[at[whole]]
    first = set(past.rows.loc[past.rows["first"].astype(bool), "step"].dropna().astype(int))
    if days is not None:
        kept = days.painting.spans(CODE["kept"])
        middle = ((out["start_ns"] + out["end_ns"]) // 2).to_numpy()
        near = np.searchsorted(kept.start, middle, side="right") - 1
        whole &= (near >= 0) & (middle < kept.end[np.maximum(near, 0)]) if len(kept.start) else False
    return out[whole & ~out["step"].isin(first)].drop_duplicates("step", keep="last")


def _entered(
    trace: DeviceTrace,
    shift: int,
    steps: pd.DataFrame,
    past: History,
    days: Calendar | None,
    machine: Hardware,
    more: Extra,
    untold: dict[str, float],
) -> dict[str, float]:
    """Chip-seconds of these steps of one device, by account; added to `untold`: what no account tells, by its kind."""
    uses, blamed = Uses(), dict[str, float]()
    steps = steps[steps["end_ns"] > steps["start_ns"]]
    kept = spans(steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy())
    for step, start, end in zip(steps["step"], kept.start, kept.end, strict=True):
        one = Spans(np.array([start]), np.array([end]))
        near = _near(trace, int(start) + shift, int(end) + shift)
        taken = replace(past, rows=past.rows[past.rows["step"] == step])  # FLOPs are those of all steps that it has
        enter_device(near, one, days, taken, machine, more, shift, uses, blamed)
    untold["compute_unsplit"] += uses.unsplit
    untold["communication_or_wait"] += uses.untold
    return dict(_leaves(productive(uses, {}, machine, past.origin), sum(blamed.values())))


def _leaves(account: Account, blamed: float) -> Iterable[tuple[str, float]]:
    """Accounts right below kept steps; idle devices by what their host did. What is blamed on a host is waiting all the
    same: which host it is may differ from run to run."""
    for child in account.children:
        if child.name == "device_idle" and child.children:
            yield from ((part.name, part.chip_seconds) for part in child.children)
        elif child.name != "straggler_wait":
            yield child.name, child.chip_seconds
    waiting = account.child("straggler_wait")
    yield "straggler_wait", blamed + (waiting.chip_seconds if waiting else 0.0)


def _near(trace: DeviceTrace, start: int, end: int) -> DeviceTrace:
    """What of a trace touches a stretch of its own clock: painting then costs what lies there, not the whole trace."""
    rows = trace.waits
    ends = rows["end_ns"] if "end_ns" in rows else rows["start_ns"] + rows["wait_ns"] + rows["unknown_ns"]
    at = (trace.flops_at >= start) & (trace.flops_at < end)
    return replace(
        trace,
        windows=_cut(trace.windows, start, end),
        compute=_cut(trace.compute, start, end),
        collective=_cut(trace.collective, start, end),
        copy=_cut(trace.copy, start, end),
        input=_fetches(trace.input, start, end),
        waits=rows[(rows["start_ns"] < end) & (ends > start)],
        flops_at=trace.flops_at[at],
        flops=trace.flops[at],
        uncounted=_cut(trace.uncounted, start, end),
        host_work={kind: _cut(x, start, end) for kind, x in trace.host_work.items()},
    )


def _fetches(x: Spans, start: int, end: int) -> Spans:
    """Where a trace tells of fetches at all, a step without one waited for none: nothing else is asked then."""
    here = _cut(x, start, end)
    return here if len(here.start) or not len(x.start) else Spans(np.array([start - 2]), np.array([start - 1]))


def _cut(x: Spans, start: int, end: int) -> Spans:
    """What of spans that are apart and in order lies between: found by halving, for traces hold millions."""
    first, last = np.searchsorted(x.end, start, side="right"), np.searchsorted(x.start, end, side="left")
    return Spans(np.maximum(x.start[first:last], start), np.minimum(x.end[first:last], end))
