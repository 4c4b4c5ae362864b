"""Devices that are idle for what their host does in each step: Python, launches, copies, logging, evaluation,
profiling.

Read off the ledger, whose accounts of an idle device are told by what the thread that feeds it did meanwhile. Rules
before this one have taken from those accounts what a late rank, a pause or a change of pace explains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analyzers.device.activity import profiled_steps
from analyzers.device.host_code import HotCode, hot_code
from analyzers.device.host_work import COLLECTING, COMPILING, LAUNCHING, host_work
from analyzers.device.input import InputResult
from analyzers.device.overlap import OverlapResult
from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.findings.carried import carried
from analyzers.findings.parts import MOST_CAPTURES, StepParts, step_parts
from analyzers.findings.places import rank_of, spaced, steps_of_events
from analyzers.findings.rules.pace import SPREAD, named_pauses
from analyzers.intervals import length, spans
from analyzers.ranks.stragglers import StragglersResult
from analyzers.time.step_patterns import StepPattern
from errors import format as fmt
from runs.tables import frame

QUESTION = "ledger"


@dataclass(frozen=True)
class Kind:
    """An account of idle devices: the cause that it names, the share of the chip time that it must reach at least
    (beside the floor: every job launches programs and runs code), and how it is said.

    work the kind of host work (`device.host_work`) that it is told by whole devices work for it as well, as for an
    evaluation: all that the host spends on it is lost to training
    """

    cause: str
    account: str
    least: float
    says: str
    work: str = ""
    whole: bool = False


LAUNCH_BOUND = 0.03  # of the chip time
OWN_CODE = "run code that no event marks, such as Python of the job"
KINDS = (
    Kind("profiler_inside", "idle_profiling", 0.0, "start or stop a profile", "profiling"),
    Kind("logging", "idle_logging", 0.0, "log or send metrics", "logging"),
    Kind("evaluation", "idle_evaluation", 0.0, "evaluate", "evaluation", whole=True),
    Kind("garbage_collection", "idle_garbage_collection", 0.0, "collect garbage", "garbage_collection"),
    Kind("device_to_host", "idle_device_to_host", 0.0, "copy arrays from them", "device_to_host"),
    Kind("launch_bound", "idle_launching", LAUNCH_BOUND, "launch programs", LAUNCHING),
    Kind("host_overhead", "idle_host_code", 0.05, OWN_CODE),
)
CAUSES = tuple(kind.cause for kind in KINDS)
LAUNCHED = ("launch_bound", "host_overhead")
"""Causes that the question of launches shows launch by launch, where a profile joins calls with kernels."""
BESIDE = ("below_roofline", "straggler_wait", "exposed_communication", "unattributed")
"""Accounts that the slowest host's time lies in on other ranks, or where a device works for it."""
UNMARKED = ("device_to_host", "logging", "evaluation")
"""What code that no event marks may do all the same."""
UNTOLD = (
    "what the hosts' own code did is not marked in the profile",
    "a profile with python_tracer_level=1, or jax.profiler.TraceAnnotation around the parts of the loop",
)
PACED = ("launch_bound", "host_overhead")
"""What no event names as a fault: every job launches and runs code. How much is usual only steps tell."""
NO_STEPS = "no step is marked in the profile, so that idle time before or between its work is not told from its own"
MARK = "steps in the profile: torch.profiler's step(), jax.profiler.StepTraceAnnotation, or an NVTX range around each"
FIRST_ALONE = "of the steps that the profile marks none is a usual one: the first after a profiler starts is not"
LONGER = "a profile of three steps or more"
AT_FIRST = "nearly all of that idle time is in step {:,}, the first of a profile, which may hold what a job does once"
LATER = "a profile of later steps, such as torch.profiler.schedule(wait=1, warmup=1, active=...) takes"
IN_ONE, LEAST_STEPS = 0.75, 4
"""Of what devices were idle for a kind of work, beyond what a step usually holds: so much in one of so many steps is no
matter of each of them."""
MEETING = ("straggler_wait", "communication_or_wait")
UNEVEN = 0.5  # times what devices are idle for host code: where they wait so long for one another, it is not of each
UNEVEN_WORK = "devices wait for one another as well as for their hosts, and what is captured does not tell for whom"
OF_COPIES = 0.5  # times what copies from devices cost: so much code beside them may be what is done with them
BESIDE_COPIES = "hosts run code beside copies from their devices, and nothing tells whether it is of these"
RUN_TOO = 1.35  # times what devices wait for launches, at most: of one program in place of many less runs on them too
NEARLY_ALL = 0.9  # of the garbage that hosts collect: it is the one's that collects so much
IN_TURN = 0.75  # of host code in a step: by so much ranks come apart more or less where hosts run it in turn
MOST_HOSTS = 8  # what more of them do is of all
FEWEST = 8  # steps of a device that tell whether it waits for others
QUICK, AS_LATE_IN, AS_LATE = 0.1, 0.2, 0.1
"""Of the steps: those in which nobody is waited for, and those in which others come later than a profiled device, by
this much of what its host's code takes in a step."""
MORE_STEPS = "profiles of all ranks over 20 steps or more"
MOST = 2.0  # times what devices were idle: a host that spends more works beside its devices, not in their way
LEAST_S = 1e-4  # of a step's time: what a kind of work takes there to count as being there


def find(seen: Seen) -> Told:
    idle = seen.ledger.find("device_idle")
    if idle is None and not seen.amount(*(kind.account for kind in KINDS)):
        if not seen.tables.rows("op_events"):
            return Told(not_told=(NotTold(CAUSES, "no profile tells what devices and hosts did", "a profile"),))
        return Told(ruled_out=tuple(RuledOut(c, "devices were busy", QUESTION) for c in CAUSES))
    told, out, untold, gaps = [], [], [], list[NotTold]()
    held, pauses = step_parts(seen.tables, seen.facts), named_pauses(seen)
    for kind in KINDS:
        amount, (pause, paused_s) = seen.amount(kind.account), pauses.get(kind.work, (None, 0.0))
        gain = Band.within(paused_s * seen.chips, SPREAD) if pause else _gain(seen, held, kind, amount)
        if gain.likely >= max(kind.least, seen.floor) * seen.whole:
            one = _in_one_step(seen, amount) if kind.cause in PACED else None
            if kind.cause in PACED and not len(held.rows):
                untold.append(kind.cause)
            elif kind.cause == "host_overhead" and _beside_copies(seen, told, gain):
                gaps.append(NotTold((kind.cause,), BESIDE_COPIES, UNTOLD[1]))
            elif kind.cause == "host_overhead" and _uneven(seen, amount):
                gaps.append(NotTold((kind.cause,), UNEVEN_WORK, MORE_STEPS))
            elif one is not None and one in _first_steps(seen):
                gaps.append(NotTold((kind.cause,), AT_FIRST.format(one), LATER))
            elif one is not None:
                told.append(_of_one_step(_finding(seen, kind, amount, gain, pause), one))
            else:
                told.append(_finding(seen, kind, amount, gain, pause))
        else:
            share = fmt.share(gain.likely / seen.whole) if seen.whole else "nothing"
            out.append(RuledOut(kind.cause, f"devices were idle for it in {share} of the chip time", QUESTION))
    if untold:
        marked = len(profiled_steps(seen.tables)) > 0
        gaps.append(NotTold(tuple(untold), FIRST_ALONE if marked else NO_STEPS, LONGER if marked else MARK))
    code = hot_code(seen.tables) if any(f.cause == "host_overhead" for f in told) else None
    if code is not None:
        told = [_in_code(f, code) if f.cause == "host_overhead" else f for f in told]
    elif any(f.cause == "host_overhead" for f in told):
        unmarked = tuple(c for c in UNMARKED if c not in {f.cause for f in told})
        out = [r for r in out if r.cause not in unmarked]
        gaps.append(NotTold(unmarked, *UNTOLD))
    if _in_turn(seen):
        told = [_of_one_or_another(f, seen.amount("straggler_wait")) if f.cause == "host_overhead" else f for f in told]
    if hosts := _some_of(seen):
        told = [_of_some(f, hosts) if f.cause == "host_overhead" else f for f in told]
    return Told(tuple(told), tuple(out), tuple(gaps))


def _in_one_step(seen: Seen, amount: float) -> int | None:
    """The step in which devices were idle for nearly all of `amount`, whatever else they were idle for in any."""
    found, idle = seen.answer("overlap", OverlapResult), seen.amount("device_idle")
    if found is None or idle <= 0:
        return None
    each = found.steps.groupby("step")["device_idle_s"].sum().astype(float)
    if len(each) < LEAST_STEPS or not each.sum() > 0:
        return None
    beyond = (float(each.max()) - float(each.median())) / float(each.sum()) * idle
    most = int(each.index[int(each.to_numpy().argmax())])
    return most if beyond - (idle - amount) >= IN_ONE * amount else None


def _first_steps(seen: Seen) -> set[int]:
    """Of each capture the step that it marks first."""
    rows = profiled_steps(seen.tables).sort_values("start_ns", kind="stable")
    return set(rows.groupby("capture")["step"].first().astype(int))


def _of_one_step(finding: Finding, one: int) -> Finding:
    title = f"{finding.title} Nearly all of that is in step {one:,}."
    return replace(finding, title=title, where=replace(finding.where, steps=(one,)))


def _in_turn(seen: Seen) -> bool:
    """Whether a rank is late as it waits for its input, and how far ranks come apart varies by a good part of what
    hosts' code takes in a step, and by more than fetches vary: then now one host runs it, now another. What all of them
    run holds none up more than the others."""
    found, fed = seen.answer("stragglers", StragglersResult), seen.answer("input", InputResult)
    if found is None or fed is None or found.verdict != "persistent" or set(found.ranks["cause"]) != {"input"}:
        return False
    varies = _varies(found.steps["apart_s"])
    each = seen.amount("idle_host_code") / max(len(found.steps) * seen.chips, 1)
    return varies >= max(IN_TURN * each, 2 * _varies(fed.rows["fetch_s"]))


def _varies(values: pd.Series) -> float:
    """Mean distance from the median."""
    known = values.dropna().astype(float)
    return float((known - known.median()).abs().mean()) if len(known) else 0.0


def _of_one_or_another(finding: Finding, waited: float) -> Finding:
    title = f"{finding.title} Now one of them does, now another, and the rest wait."
    gain = finding.gain and replace(finding.gain, high=finding.gain.high + waited)
    return replace(finding, cause="jitter", title=title, gain=gain, question="stragglers")


def _some_of(seen: Seen) -> tuple[str, ...]:
    """The few hosts of which there are profiles, where there are none of others and nothing tells whether these run as
    much code or wait."""
    rows = frame(seen.tables, "captures", ["host", "devices"]).dropna().drop_duplicates("host")
    some = 0 < len(rows) <= MOST_HOSTS and _unjudged(seen) and int(rows["devices"].sum()) < seen.chips
    return tuple(sorted(rows["host"].astype(str))) if some and not _wait_for_others(seen) else ()


def _wait_for_others(seen: Seen) -> bool:
    """Whether profiled devices wait in collectives, in a good part of the steps for a good part of what their hosts'
    code takes in one: then the others come even later there, and whoever is late alone never waits."""
    found = seen.answer("overlap", OverlapResult)
    if found is None or len(found.steps) < FEWEST:
        return False
    inside = found.steps.groupby("step")["communication_s"].mean()
    quick, waiting = inside.quantile([QUICK, 1 - AS_LATE_IN])
    return bool(waiting - quick >= AS_LATE * seen.amount("idle_host_code") / len(found.steps))


def _of_some(finding: Finding, hosts: tuple[str, ...]) -> Finding:
    """What the profiled hosts do, and the others may or may not."""
    seen_on = "one host does" if len(hosts) == 1 else f"{len(hosts):,} hosts do"
    title = f"{finding.title} That {seen_on}: others have no profile, and do the same or wait."
    return replace(finding, title=title, where=replace(finding.where, hosts=hosts), confidence=0.5)


def _beside_copies(seen: Seen, told: Sequence[Finding], gain: Band) -> bool:
    """Whether code without a name may be what hosts do with what they copy from devices, of which it is a part."""
    copies = next((f.likely for f in told if f.cause == "device_to_host"), 0.0)
    return gain.likely < OF_COPIES * copies and hot_code(seen.tables) is None


def _uneven(seen: Seen, idle: float) -> bool:
    """Whether the host code of one rank or another is what the rest wait for, where Stragglers cannot tell."""
    return _unjudged(seen) and seen.amount(*MEETING) >= UNEVEN * idle


def _unjudged(seen: Seen) -> bool:
    found = seen.answer("stragglers", StragglersResult)
    return found is None or found.verdict == "unknown"


def _gain(seen: Seen, held: StepParts, kind: Kind, amount: float) -> Band:
    """Of all kept steps, those too that no profile saw."""
    spent = _spent(seen, held, kind, amount)
    gain = carried(seen, spent, kind.work, of_all_ranks=spent > amount, in_each=kind.work == LAUNCHING)
    if kind.work != LAUNCHING:
        return gain
    most = min(gain.high * RUN_TOO, seen.whole - seen.amount("useful_maths"))
    return replace(gain, high=max(most, gain.likely))


def _finding(seen: Seen, kind: Kind, amount: float, gain: Band, pause: StepPattern | None) -> Finding:
    """`pause`: the steps that it holds up, where a profile saw one of them."""
    held = step_parts(seen.tables, seen.facts)
    regular = kind.work and kind.work != LAUNCHING  # programs are launched in every step
    place = spaced(held.steps_with(kind.work, LEAST_S)) if regular else None
    evidence = [Evidence("devices idle meanwhile", amount, "chip-seconds", QUESTION)]
    if pause is not None:
        place = Steps(pause.first_step, pause.last_step, pause.every or 1)
        evidence += [
            Evidence("a step without it", pause.usual_s, "s", "steps"),
            Evidence("a step with it", pause.slow_s, "s", "steps"),
        ]
    often = f", every {place.every} steps" if place is not None and place.every > 1 else ""
    share = fmt.whole_share(gain.likely / seen.whole)
    who = "Training stands" if kind.whole else "Devices wait"
    return Finding(
        cause=kind.cause,
        title=f"{who} while hosts {kind.says}{often}: {share} of the chip time.",
        gain=gain,
        draws=seen.drawn(gain.likely, kind.account, *BESIDE),
        question="launches" if kind.cause in LAUNCHED and seen.tables.rows("launches") else QUESTION,
        confidence=0.7 if kind.cause == "host_overhead" else 0.85,
        basis="measured" if pause is None else "derived",
        where=replace(_of_one_host(seen), steps=place) if kind.work == COLLECTING else Where(steps=place),
        evidence=tuple(evidence),
        least=kind.least * seen.whole,
    )


def _of_one_host(seen: Seen) -> Where:
    """The host that collects nearly all garbage of several: the others wait for it, also where too few steps are
    profiled to tell that from their waiting."""
    captures = frame(seen.tables, "captures", ["capture", "host", "start_ns"]).dropna().head(MOST_CAPTURES)
    spent: dict[str, int] = {}
    for capture, host, start_ns in captures.itertuples(index=False):
        taken = host_work(seen.tables, int(capture), int(start_ns)).get(COLLECTING, spans())
        spent[str(host)] = spent.get(str(host), 0) + length(taken)
    most = max(spent, key=lambda host: spent[host], default="")
    if len(spent) < 2 or spent[most] < NEARLY_ALL * sum(spent.values()):
        return Where()
    rank = rank_of(seen, most, most)
    return Where(ranks=(rank,) if isinstance(rank, int) else (), hosts=(most,))


def _in_code(finding: Finding, code: HotCode) -> Finding:
    """With the function in which most of it passed."""
    where = replace(finding.where, code=tuple(code.places))
    doing = f"run code of their own, {fmt.whole_share(code.share)} of it in {code.text}"
    return replace(finding, title=finding.title.replace(OWN_CODE, doing), where=where)


def _spent(seen: Seen, held: StepParts, kind: Kind, idle: float) -> float:
    """Chip-seconds that hosts spent on it: what devices were idle, and where the host is what they wait for (or it is
    no training at all) what the slowest host took, which keeps the others waiting as well. The host of a single chip
    keeps no other waiting. Where Stragglers cannot tell for whom others wait, it may be one host that all do, for what
    not every step holds."""
    if not kind.work or (seen.chips <= 1 and not kind.whole):
        return idle
    took = float(held.of(kind.work).sum()) * seen.chips
    if kind.work == LAUNCHING:
        took -= float(held.of(COMPILING).sum()) * seen.chips  # which lies within the call that launches
        if seen.tables.rows("launches"):  # what hosts launch while devices work is no waiting
            took = min(took, idle + seen.amount(*MEETING, "exposed_communication"))
    whole = kind.whole and not seen.amount("eval", "eval_step")  # which the job reports itself
    most = MOST * idle * (seen.chips if kind.work != LAUNCHING and _unjudged(seen) else 1)
    return took if whole or idle < took < most else idle


def evaluations(seen: Seen) -> Told:
    """Evaluations between steps, which the job itself reports."""
    amount = seen.amount("eval", "eval_step")
    if amount < 0.001 * seen.whole:
        return Told(ruled_out=(RuledOut("evaluation", "the job reports none", QUESTION),))
    share = fmt.whole_share(amount / seen.whole)
    return Told(
        (
            Finding(
                cause="evaluation",
                title=f"Training stands while the job evaluates: {share} of the chip time.",
                gain=Band(amount * 0.95, amount, amount * 1.02),
                draws={"eval_step" if seen.amount("eval_step") else "eval": amount},
                question="goodput",
                confidence=0.95,
                basis="measured",
                where=Where(steps=_evaluated(seen)),
                evidence=(Evidence("evaluating", amount, "chip-seconds", QUESTION),),
            ),
        )
    )


def _evaluated(seen: Seen) -> Steps | None:
    """After which steps it evaluated, by the times of the job's events and steps."""
    return spaced(steps_of_events(seen, ("eval", "eval_step")))


RULES = (
    Rule(name="evaluations", causes=("evaluation",), find=evaluations),
    Rule(name="host", causes=CAUSES, find=find),
)
