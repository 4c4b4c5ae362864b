"""Idle devices in words: the verdict, and the devices as a terminal prints them."""

from analyzers.device.host_work import HOST_CODE, LAUNCHING
from analyzers.device.launches.feeding import BETWEEN_KERNELS
from analyzers.device.launches.launches import DELAYED, INPUT, KINDS, UNEXPLAINED, LaunchesResult
from app.words import Table, Verdict, headline, short
from errors import format as fmt

MUCH = 0.02  # of the window: a share worth a clause
CLAUSES = 2  # reasons in the first sentence
BOUND = 0.05  # of the window lost to launching: worth saying what mends it
DOING = {  # what is said of each kind after "for 5 % of the time"
    HOST_CODE: "hosts ran code that no event marks, such as Python",
    "waiting": "hosts waited for a device",
    LAUNCHING: "hosts were in operators of the framework, before the launch",
    "device_to_host": "hosts copied from devices",
    "logging": "hosts logged",
    "checkpointing": "hosts saved",
    "evaluation": "hosts evaluated",
    "garbage_collection": "hosts collected garbage",
    "profiling": "hosts started or stopped a profile",
    "compilation": "hosts compiled",
    DELAYED: "launches were on their way",
    BETWEEN_KERNELS: "launched kernels followed one another or were held back",
    INPUT: "hosts fetched input",
    UNEXPLAINED: "the profile does not tell why",
}
SHORT = {  # the same where a legend or a column has room for two words
    HOST_CODE: "code on the host",
    "waiting": "host waits",
    LAUNCHING: "operators before the launch",
    "device_to_host": "copies to the host",
    "logging": "logging",
    "checkpointing": "saving",
    "evaluation": "evaluating",
    "garbage_collection": "collecting garbage",
    "profiling": "profiling",
    "compilation": "compiling",
    DELAYED: "launch to start",
    BETWEEN_KERNELS: "between kernels",
    INPUT: "input",
    UNEXPLAINED: "not told",
}


def label(host: str, device: int, result: LaunchesResult) -> str:
    """`host 0`, or `host 0/3` where a host has several devices."""
    return host if result.devices["host"].is_unique else f"{host}/{device}"


def verdict(result: LaunchesResult) -> Verdict:
    """How long devices were idle, why, the largest first, and what the launches themselves take."""
    t = result.totals
    window = t["window_s"] or 1.0
    whole = "step time" if result.window == "steps" else "the time"
    idle = (t["idle_s"] or 0.0) / window
    shares = {kind: (t[f"{kind}_s"] or 0.0) / window for kind in KINDS}
    most = sorted((kind for kind in KINDS if shares[kind] >= MUCH), key=lambda kind: -shares[kind])
    said = f"Devices are idle for {fmt.whole_share(idle)} of {whole}"
    clauses = [f"for {fmt.whole_share(shares[kind])} {DOING[kind]}" for kind in most]
    if clauses:
        said += ": " + ", ".join(clauses[:CLAUSES])
    then = f"Besides, {', '.join(clauses[CLAUSES:])}." if clauses[CLAUSES:] else ""
    return headline(f"{said}.", *_launches(result, shares), then)


def _launches(result: LaunchesResult, shares: dict[str, float]) -> tuple[str, ...]:
    """What a launch takes against what it launches, and what helps where that costs much."""
    single = result.calls[result.calls["launches"] == result.calls["executions"]]
    if not len(single):
        return ()
    first = single.iloc[0]
    count, shorter = int(single["executions"].sum()), int(single["shorter_executions"].sum())
    text = (
        f"A call of {short(first['call'])} keeps its thread {fmt.duration(first['call_median_s'])} at the median; "
        f"{fmt.whole_share(shorter / count)} of {fmt.count(count, 'execution')} launched alone took less than "
        "their call."
    )
    if shares[LAUNCHING] + shares[DELAYED] >= BOUND:
        return text, "Captured as a graph, or fused by a compiler, many are launched by one call."
    return (text,)


def table(result: LaunchesResult) -> Table:
    """Every device: seconds idle, and why."""
    shown = [kind for kind in KINDS if result.devices[f"{kind}_s"].sum() > 0]
    return Table(
        ("device", "time", "idle", *(SHORT[kind] for kind in shown)),
        tuple(
            (
                label(r["host"], r["device"], result),
                fmt.duration(r["window_s"]),
                fmt.duration(r["idle_s"]),
                *(fmt.duration(r[f"{kind}_s"]) for kind in shown),
            )
            for r in result.devices.to_dict("records")
        ),
        right=tuple(range(1, 3 + len(shown))),
    )
