"""A long training job on a large cluster, simulated: a calendar of attempts, interruptions and what the logs said.

Model. Interruptions are a Poisson process of a known count: their times are uniform over the job. Each has a cause,
a host, a time until it is noticed (crashes at once, hangs when the watchdog fires) and a wait for a spare; then the
job starts again: accelerators, preparation, restore, a first step that compiles. Steps since the last checkpoint are
done again. Step times jitter (log-normal), drift with the time of day, and are slow while a slow host is in the job.
Every draw comes from one seed. What the logs say is written in the shape of real messages; some interruptions leave
only symptoms and some leave nothing, as in life. The truth is returned beside the tables, never in them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from catalog.causes import cause_of
from simulators.fleet_messages import MESSAGES, SYMPTOMS

S = 1_000_000_000
MS = 1_000_000
DAY_S = 86_400
WATCHDOG_S = 600.0  # until a collective that somebody did not enter is given up
SILENT, ONLY_SYMPTOMS = 0.05, 0.10  # of unplanned interruptions: no line at all; only lines that name no cause
PLANNED = ("maintenance", "user")


@dataclass(frozen=True, kw_only=True)
class FleetPlan:
    """What is simulated. Times in seconds; `causes`: interruptions by cause (a key of catalog.causes.CAUSES).

    `lemons`: hosts that break `lemon_factor` times as often as others. `slow`: (first day, days, factor on step time).
    """

    start_ns: int
    days: float
    hosts: int
    chips_per_host: int
    causes: Mapping[str, int]
    step_s: float
    checkpoint_every: int
    save_s: float
    reschedule_s: float = 140.0
    initialization_s: float = 35.0
    preparation_s: float = 40.0
    restore_s: float = 55.0
    loading_s: float = 4.0
    compile_s: float = 55.0
    jitter: float = 0.004
    diurnal: float = 0.015
    lemons: tuple[int, ...] = ()
    lemon_factor: float = 150.0
    slow: tuple[tuple[float, float, float], ...] = ()
    model_flops_per_chip: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class Fleet:
    """`tables`: columns by table, in the schema of `runs.schema`. `truth`: one dict per interruption, in order."""

    tables: dict[str, dict[str, Any]]
    truth: tuple[Mapping[str, Any], ...] = field(repr=False)


def simulate(plan: FleetPlan) -> Fleet:
    """Run the plan. O(steps); a million steps take about a second."""
    rng = np.random.default_rng(plan.seed)
    ends, causes, hosts = _interruptions(plan, rng)
    log = _Log()
    truth, now_s, resume = [], 0.0, 0
    horizon = plan.days * DAY_S
    for k in range(len(ends) + 1):
        last = k == len(ends)
        end_s = horizon if last else max(float(ends[k]), now_s + 5.0)
        first = _begin(plan, rng, log, k, now_s, end_s)
        done, saved = _steps(plan, rng, log, k, resume, first, end_s)
        if last:
            log.phase("job", now_s, horizon, k)
            break
        log.phase("job", now_s, None, k)
        silent_s = _notice_s(str(causes[k]), rng)
        wait_s = plan.reschedule_s * rng.lognormal(0, 0.35) if causes[k] != "user" else 45.0
        truth.append(
            MappingProxyType(
                {
                    "attempt": k,
                    "cause": str(causes[k]),
                    "planned": bool(causes[k] in PLANNED),
                    "host": host_name(int(hosts[k])),
                    "at_ns": plan.start_ns + _ns(end_s),
                    "noticed_ns": plan.start_ns + _ns(end_s + silent_s),
                    "last_step": done,
                    "saved_step": saved,
                }
            )
        )
        _say(rng, log, k, str(causes[k]), int(hosts[k]), plan, end_s, silent_s)
        resume, now_s = saved + 1, end_s + silent_s + wait_s
    return Fleet(log.tables(plan), tuple(truth))


def host_name(number: int) -> str:
    """`r012-n05`: rack and node, 16 nodes a rack."""
    return f"r{number // 16:03d}-n{number % 16:02d}"


def _interruptions(plan: FleetPlan, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(time in s, cause, host) of each, in order of time."""
    causes = np.array([name for name, count in plan.causes.items() for _ in range(count)])
    rng.shuffle(causes)
    times = np.sort(rng.uniform(0, plan.days * DAY_S, len(causes)))
    weight = np.ones(plan.hosts)
    weight[list(plan.lemons)] = plan.lemon_factor
    broken = rng.choice(plan.hosts, len(causes), p=weight / weight.sum())
    anywhere = rng.integers(0, plan.hosts, len(causes))
    hosts = np.where(np.isin(causes, ("accelerator", "hbm", "nic", "thermal")), broken, anywhere)
    return times, causes, hosts


def _notice_s(cause: str, rng: np.random.Generator) -> float:
    """From the fault to its being noticed: announced, at once, or when the watchdog fires."""
    if cause in PLANNED:
        return 2.0
    hangs = 0.8 if cause in ("network", "hang", "firmware", "nic") else 0.12
    return WATCHDOG_S + rng.uniform(0, 30) if rng.random() < hangs else float(rng.uniform(8, 60))


def _begin(plan: FleetPlan, rng: np.random.Generator, log: "_Log", attempt: int, now_s: float, end_s: float) -> float:
    """Enter the phases of a start that fit before the attempt ends; returns when its first step would begin."""
    phases = [
        ("accelerator_initialization", plan.initialization_s),
        ("training_preparation", plan.preparation_s),
        ("checkpoint_restore", plan.restore_s if attempt else 0.0),
        ("data_loading", plan.loading_s),
    ]
    at = now_s + 1.0
    for kind, usual in phases:
        took = usual * rng.lognormal(0, 0.1)
        if not usual:
            continue
        if at + took >= end_s:
            log.phase(kind, at, None, attempt)
            return end_s
        log.phase(kind, at, at + took, attempt)
        at += took + 0.5
    return at


def _steps(
    plan: FleetPlan, rng: np.random.Generator, log: "_Log", attempt: int, resume: int, first_s: float, end_s: float
) -> tuple[int, int]:
    """Enter the steps of an attempt from `resume` on; returns (last step begun, last step saved)."""
    most = int((end_s - first_s) / plan.step_s * 1.2) + 2
    if first_s >= end_s:
        return resume - 1, resume - 1
    number = resume + np.arange(most)
    day = (first_s + np.arange(most) * plan.step_s) / DAY_S
    factor = 1 + plan.diurnal / 2 * np.sin(2 * np.pi * day)
    for begin, days, slower in plan.slow:
        factor = np.where((day >= begin) & (day < begin + days), factor * slower, factor)
    took = plan.step_s * factor * rng.lognormal(0, plan.jitter, most)
    took[0] += plan.compile_s * rng.lognormal(0, 0.15)
    saves = (number > resume) & (number % plan.checkpoint_every == 0)
    blocked = np.where(saves, plan.save_s * rng.lognormal(0, 0.15, most), 0.0)
    starts = first_s + np.r_[0.0, np.cumsum(took + blocked)[:-1]]
    starts = np.round(starts, 3)
    begun = int(np.searchsorted(starts, end_s - 0.5))
    if not begun:
        return resume - 1, resume - 1
    log.steps(attempt, number[:begun], starts[:begun])
    saved = resume - 1
    for i in np.flatnonzero(saves[:begun]):
        at = float(starts[i] + took[i])
        if at + blocked[i] < end_s:
            log.phase("checkpoint_save", at, at + float(blocked[i]), attempt, step=int(number[i]))
            saved = int(number[i])
    return int(number[begun - 1]), saved


def _say(
    rng: np.random.Generator,
    log: "_Log",
    attempt: int,
    cause: str,
    host: int,
    plan: FleetPlan,
    at_s: float,
    silent_s: float,
) -> None:
    """What the logs say of an interruption: the line that names it on its host, then symptoms elsewhere."""
    luck = rng.random()
    if cause not in PLANNED and luck < SILENT:
        return
    device = int(rng.integers(plan.chips_per_host))
    values = {
        "device": device,
        "bus": f"{0x1B + 0x13 * device:02x}",
        "pid": int(rng.integers(2_000, 90_000)),
        "rank": host * plan.chips_per_host + device,
        "host": host_name(host),
        "seq": int(rng.integers(100_000, 10_000_000)),
    }
    if cause in PLANNED or luck >= SILENT + ONLY_SYMPTOMS:
        lines = MESSAGES[cause]
        line = lines[int(rng.integers(len(lines)))].format(**values)
        log.line(attempt, at_s + rng.uniform(-1.5, -0.1), host_name(host), device, line)
    if cause in PLANNED:
        return
    peers = rng.integers(0, plan.hosts, 3)
    for peer in peers:
        line = SYMPTOMS[int(rng.integers(len(SYMPTOMS)))].format(**{**values, "rank": int(peer) * plan.chips_per_host})
        log.line(attempt, at_s + silent_s - rng.uniform(0.2, 3.0), host_name(int(peer)), None, line)


def _ns(seconds: float) -> int:
    return round(seconds * 1000) * MS


class _Log:
    """Gathers rows; `order` is by time over steps and phases together, as one log would have them."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._phases: list[tuple] = []
        self._lines: list[tuple] = []

    def steps(self, attempt: int, number: np.ndarray, start_s: np.ndarray) -> None:
        self._steps.append((attempt, number, start_s))

    def phase(self, kind: str, start_s: float, end_s: float | None, attempt: int, step: int | None = None) -> None:
        self._phases.append((kind, start_s, end_s, attempt, step))

    def line(self, attempt: int, at_s: float, host: str, device: int | None, text: str) -> None:
        self._lines.append((at_s, attempt, host, device, text))

    def tables(self, plan: FleetPlan) -> dict[str, dict[str, Any]]:
        step_s = np.concatenate([s for _, _, s in self._steps])
        step_ns = plan.start_ns + np.round(step_s * 1000).astype(np.int64) * MS
        kinds, begins, ends, attempts, steps = zip(*self._phases, strict=True)
        begin_ns = [plan.start_ns + _ns(b) for b in begins]
        end_ns = [None if e is None else plan.start_ns + _ns(e) for e in ends]
        # An entry for each step, each phase's start and each phase's end. At the same instant a phase ends, then a
        # phase starts, then a step starts.
        closing = np.array([e if e is not None else np.iinfo(np.int64).max for e in end_ns])
        when = np.concatenate((step_ns, begin_ns, closing))
        rank = np.repeat([2, 1, 0], [len(step_ns), len(begin_ns), len(closing)])
        order = np.empty(len(when), dtype=np.int64)
        order[np.lexsort((rank, when))] = np.arange(len(when))
        first, second = len(step_ns), len(step_ns) + len(begin_ns)
        ended = [e is not None for e in end_ns]
        lines = sorted(self._lines, key=lambda line: line[0])
        said, told, hosts, devices, texts = zip(*lines, strict=True) if lines else ((),) * 5
        flops = plan.model_flops_per_chip
        return {
            "steps": {
                "attempt": np.concatenate([np.full(len(n), a, np.int32) for a, n, _ in self._steps]),
                "step": np.concatenate([n for _, n, _ in self._steps]),
                "start_ns": step_ns,
                "order": order[:first],
                "model_flops_per_chip": np.full(first, np.nan if flops is None else flops),
            },
            "lifecycle": {
                "kind": list(kinds),
                "start_ns": begin_ns,
                "end_ns": end_ns,
                "attempt": list(attempts),
                "step": list(steps),
                "order": order[first:second].tolist(),
                "end_order": [int(o) if e else None for o, e in zip(order[second:], ended, strict=True)],
            },
            "evidence": {
                "ts_ns": [plan.start_ns + _ns(s) for s in said],
                "attempt": list(told),
                "host": list(hosts),
                "device": list(devices),
                "cause": [cause_of(t) for t in texts],
                "text": list(texts),
                "severity": ["error"] * len(texts),
                "order": list(range(len(texts))),
            },
        }
