"""The critical path in words: the verdict, and its kinds as a terminal prints them."""

import pandas as pd

from analyzers.device.critical_path.critical_path import CriticalPathResult
from analyzers.device.critical_path.holding import (
    FEW_STEPS,
    FLOOR,
    NAMED,
    NO_MEETING,
    NO_STEPS,
    OFTEN,
    ONE_DEVICE,
    ROTATING,
    SMALL,
    STEPS,
)
from analyzers.device.critical_path.kinds import KINDS
from app.words import Table, Verdict, headline, listed, sentence, short
from errors import format as fmt

MUCH = 0.02  # of the path: a share worth a clause
MOST_CLAUSES = 4  # two of them in the first sentence
LITTLE = 0.005  # of the path: an operation that is not worth a sentence
GUESSED = 0.1  # of the path on rules that the trace does not tell: worth a sentence
IS = {  # what is said of each kind after "61 % of a step's critical path is"
    "computing": "computing on the device",
    "communication": "communication after the last rank came",
    "communication_or_wait": "communication or waiting for other ranks, it is not known which",
    "copies": "copies on the device",
    "launch_delay": "launches on their way to the device",
    "return_delay": "hosts that go on after the device was done",
    "between_kernels": "launched kernels that had not begun",
    "host_code": "code on the host that no event marks",
    "waiting": "hosts that wait, it is not told for what",
    "launching": "operators and launching calls on the host",
    "device_to_host": "copies to the host",
    "logging": "logging",
    "checkpointing": "saving",
    "evaluation": "evaluating",
    "garbage_collection": "collecting garbage",
    "profiling": "starting or stopping a profile",
    "compilation": "compiling",
    "input_wait": "fetching input",
    "not_told": "not told by the profile",
}
SHORT = {  # the same where a legend or a column has room for two or three words
    "computing": "computing",
    "communication": "communication",
    "communication_or_wait": "communication or waiting",
    "copies": "copies",
    "launch_delay": "launch to start",
    "return_delay": "end to return",
    "between_kernels": "between kernels",
    "host_code": "code on the host",
    "waiting": "host waits",
    "launching": "operators and launching",
    "device_to_host": "copies to the host",
    "logging": "logging",
    "checkpointing": "saving",
    "evaluation": "evaluating",
    "garbage_collection": "collecting garbage",
    "profiling": "profiling",
    "compilation": "compiling",
    "input_wait": "input",
    "not_told": "not told",
}


def label(host: str, device: int, result: CriticalPathResult) -> str:
    """`host 0`, or `host 0/3` where a host has several devices."""
    return host if result.devices["host"].is_unique else f"{host}/{device}"


def whose(result: CriticalPathResult) -> str:
    return "a step's critical path" if result.window == "steps" else "the critical path"


def verdict(result: CriticalPathResult) -> Verdict:
    """What the time hangs on, the most first; the operation that it hangs on most; whether a rank holds it."""
    shares = {kind: result.totals[f"{kind}_share"] or 0.0 for kind in KINDS}
    most = sorted((kind for kind in KINDS if shares[kind] >= MUCH), key=lambda kind: -shares[kind])[:MOST_CLAUSES]
    first, *second = [
        f"{fmt.whole_share(shares[kind])} {'' if n else f'of {whose(result)} '}is {IS[kind]}"
        for n, kind in enumerate(most[:2])
    ]
    said = sentence(", ".join([first, *second])) + "."
    then = [f"{IS[kind]} ({fmt.whole_share(shares[kind])})" for kind in most[2:]]
    more = f"Next on it: {listed(then)}." if then else ""
    rank, operation = _rank(result), _operation(result)
    named = result.holder.reason == NAMED
    return headline(said, *((rank, operation, more) if named else (operation, more, rank)), _guessed(result))


def _operation(result: CriticalPathResult) -> str:
    """The operation most on the path, and what all executions have off it."""
    rows = result.operations
    if not len(rows) or rows["path_share"].iloc[0] < LITTLE:
        return "No operation of the devices is on it to speak of: to end sooner, hosts have to be sooner."
    first = rows.iloc[0]
    said = f"The operation most on it is {short(first['operation'])}, {fmt.share(first['path_share'])}"
    if pd.notna(first["critical_share"]) and first["critical_share"] < 1 - MUCH:
        said += f"; {fmt.whole_share(1 - first['critical_share'])} of its own time is off the path"
    return said + "."


def _rank(result: CriticalPathResult) -> str:
    """Who holds the others' paths, or why nobody is named."""
    h = result.holder
    if h.reason in (ONE_DEVICE, NO_STEPS, NO_MEETING):
        return ""
    if h.host is None or h.device is None:
        return ""
    who, of = short(label(h.host, h.device, result)), fmt.count(h.of_steps, "step")
    if h.reason == NAMED:
        return (
            f"{who} holds the paths of the other ranks in {h.steps} of {of}, coming last by "
            f"{fmt.share(h.margin_share or 0.0)} of a step at the median."
        )
    if h.reason == FEW_STEPS:
        were = "was" if h.of_steps == 1 else "were"
        return f"No rank is named that holds it: {of} {were} captured, {STEPS} are needed."
    if h.reason == ROTATING:
        return (
            f"No rank is named that holds it: {who} does most often, in {h.steps} of {of}; "
            f"{fmt.whole_share(OFTEN)} are needed."
        )
    assert h.reason == SMALL
    return (
        f"No rank is named that holds it: {who} does in {h.steps} of {of}, by {fmt.share(h.margin_share or 0.0)} of a "
        f"step, less than the floor of {fmt.whole_share(FLOOR)}."
    )


def _guessed(result: CriticalPathResult) -> str:
    share = result.totals["inferred_share"] or 0.0
    if share < GUESSED:
        return ""
    return f"For {fmt.whole_share(share)} of it named rules, not the profile, tell what waited for what."


def table(result: CriticalPathResult) -> Table:
    """Every device: seconds on its paths by kind."""
    shown = [kind for kind in KINDS if result.devices[f"{kind}_s"].sum() > 0]
    return Table(
        ("device", "paths", "time", *(SHORT[kind] for kind in shown)),
        tuple(
            (
                label(r["host"], r["device"], result),
                f"{r['paths']:,}",
                fmt.duration(r["path_s"]),
                *(fmt.duration(r[f"{kind}_s"]) for kind in shown),
            )
            for r in result.devices.to_dict("records")
        ),
        right=tuple(range(1, 3 + len(shown))),
    )
