"""Interruptions in words: their verdict, and their causes as a terminal prints them."""

from collections.abc import Callable

import pandas as pd

from analyzers.lost.interruptions import InterruptionsResult
from app.words import Table, Verdict, headline, short
from catalog.causes import CAUSES
from errors import format as fmt

PHRASES: dict[str, str] = {  # a cause as the subject of "took 26 % of them"
    "accelerator": "Faulty accelerators",
    "hbm": "Errors in HBM memory",
    "sram": "Errors in on-chip SRAM",
    "firmware": "Faults of the accelerators' firmware",
    "chip_link": "Links between chips",
    "thermal": "Overheated accelerators or hosts",
    "data_corruption": "Silent data corruption",
    "host_memory": "Errors in host memory",
    "host_cpu": "Faulty host CPUs",
    "power": "Failed power supplies",
    "chassis": "Faults of chassis and boards",
    "host": "Lost hosts",
    "network": "Switches and cables of the network",
    "nic": "Network adapters",
    "disk": "Local disks",
    "remote_storage": "File systems and object stores",
    "software": "Software errors",
    "dependency": "Missing or broken dependencies",
    "driver": "Faults of the driver",
    "numerics": "Losses that were not finite",
    "device_memory": "Accelerators out of memory",
    "host_out_of_memory": "Hosts out of memory",
    "maintenance": "Host maintenance",
    "preemption": "Preemptions",
    "hang": "Hangs",
    "time_limit": "Time limits of the scheduler",
    "requeue": "Requeues by the scheduler",
    "user": "People who stopped the job",
}


def verdict(result: InterruptionsResult) -> Verdict:
    """How many, how often, what the most costly cause took, what cannot be told, and which hosts stand out."""
    n = result.count
    if not n:
        return headline(_none(result))
    sentences = [_how_often(result)]
    if worst := _worst(result):
        sentences.append(worst)
    unknown = int((result.counted["family"] == "unknown").sum())
    if unknown == n:
        sentences.append(
            _how_ended(result) or ("No log line tells why." if n > 1 else "No log line tells why it happened.")
        )
    elif unknown:
        sentences.append(f"The cause of {unknown:,} ({fmt.whole_share(unknown / n)}) is not told by any log.")
    if hosts := lemons(result):
        many = "host fails" if len(hosts) == 1 else "hosts fail"
        named = ", ".join(f"{short(name)} ({count})" for name, count in hosts[:3])
        more = f" and {len(hosts) - 3:,} more" if len(hosts) > 3 else ""
        sentences.append(f"{fmt.count(len(hosts), many, many)} far more often than chance allows: {named}{more}.")
    return headline(*sentences, _interval(result) if n > 1 else "")


def _how_ended(result: InterruptionsResult) -> str:
    """Of interruptions of unknown cause, the symptoms that log lines tell; empty where none tells one."""
    causes = [str(c) for c in result.counted["cause"]]
    symptoms = [c for c in causes if c in CAUSES and CAUSES[c].symptom]
    if not symptoms:
        return ""
    of = "it" if result.count == 1 else "they" if len(symptoms) == len(causes) else f"{len(symptoms):,} of them"
    often = sorted(dict.fromkeys(symptoms), key=symptoms.count, reverse=True)
    return f"Log lines tell how {of} ended ({', '.join(_inside(c) for c in often)}), and none why."


def lemons(result: InterruptionsResult) -> list[tuple[str, int]]:
    """(host, failures) of hosts that stand out, worst first."""
    found = result.hosts[result.hosts["lemon"].astype(bool)]
    return [(str(h), int(n)) for h, n in zip(found["host"], found["failures"], strict=True)]


def every(result: InterruptionsResult) -> str:
    """`one every 2 h 47 min`; empty where no time is known."""
    return "" if result.mttf.mean_s is None else f"one every {fmt.duration(result.mttf.mean_s)}"


def _interval(result: InterruptionsResult) -> str:
    """How sure that mean is."""
    m = result.mttf
    if result.held_s is None or m.mean_s is None:
        return ""
    return f"The 95 % interval of the mean time between two is {fmt.duration(m.low_s)} to {fmt.duration(m.high_s)}."


def cause_title(cause: str) -> str:
    return CAUSES[cause].title if cause in CAUSES else cause


def _none(result: InterruptionsResult) -> str:
    if result.held_s is None:
        return "No interruption is recorded; the input carries no times of day."
    text = f"No interruption in {fmt.duration(result.held_s)}"
    if result.mttf.low_s:
        text += f": with 97.5 % confidence the mean time between two is longer than {fmt.duration(result.mttf.low_s)}"
    survived = "" if not result.survived else f" {fmt.count(result.survived, 'stop was', 'stops were')} survived."
    return f"{text}.{survived}"


def _how_often(result: InterruptionsResult) -> str:
    text = fmt.count(result.count, "interruption")
    if result.held_s is None:
        steps = int(result.counted["lost_steps"].sum())
        return f"{text}; {fmt.count(steps, 'step was', 'steps were')} lost. When they happened is not told."
    text += f" in {fmt.duration(result.held_s)}"
    if result.count > 1:
        text += f", {every(result)}"
    if (result.counted["kind"] == "final").all():
        held = result.counted["lost_s"].sum()
        vain = f" Until it was given up it took {_cost(result, result.counted)}." if held > 0 else ""
        return f"{text}: it ended the job, and nothing was started after it.{vain}"
    if result.counted["lost_s"].isna().all():
        what = "it" if result.count == 1 else "they"
        return f"{text}; what {what} cost is not told, as nothing tells when its steps were taken."
    lost = float(result.counted["lost_s"].sum())
    share = fmt.whole_share(lost / result.held_s) if result.held_s else fmt.NO_VALUE
    whose = "it took" if result.count == 1 else "together they took"
    return f"{text}; {whose} {share} of the time ({_cost(result, result.counted)})."


def _worst(result: InterruptionsResult) -> str:
    """What cost most: the named cause, unless what is of unknown cause cost more; empty where none is named."""
    named = result.causes[result.causes["family"] != "unknown"]
    if not len(named):
        return ""
    if costly := bool((named["lost_s"] > 0).any()):
        named = named.sort_values("lost_s", ascending=False, kind="stable")
    worst = named.iloc[0]
    if result.count == 1:
        return f"Its cause: {_inside(worst['cause'])}."
    share = fmt.whole_share(worst["share"])
    if not costly:
        return f"{_phrase(worst['cause'])} took {share} of them."
    dark = result.causes[result.causes["family"] == "unknown"]
    if float(dark["lost_s"].sum()) > worst["lost_s"]:
        return (
            f"Those of unknown cause cost the most: {_cost(result, dark)}. Of the causes that are told "
            f"{_named(result, named, share, _inside)}."
        )
    return f"{_named(result, named, share, _phrase)}."


def _named(result: InterruptionsResult, named: pd.DataFrame, share: str, word: Callable[[str], str]) -> str:
    """`Network adapters took 26 % of them and cost the most: $8.53`, of causes in order of cost; equals are named."""
    equal = named["lost_s"] >= named["lost_s"].iloc[0]
    cost = _cost(result, named.head(1))
    if equal.sum() == 1:
        return f"{word(named['cause'].iloc[0])} took {share} of them and cost the most: {cost}"
    others = [_inside(c) for c in named.loc[equal, "cause"].iloc[1:]]
    return f"{' and '.join([word(named['cause'].iloc[0]), *others])} cost the most: {cost} each"


def _cost(result: InterruptionsResult, causes: pd.DataFrame) -> str:
    """What interruptions of these causes took, in chip time and in dollars where a price is known."""
    dollars = f", about {fmt.usd(float(causes['usd'].sum()))}" if result.priced else ""
    return f"{fmt.held_time(float(causes['lost_s'].sum()) * result.chips, result.chips_known)}{dollars}"


def _phrase(cause: str) -> str:
    return PHRASES.get(cause, cause_title(cause))


def _inside(cause: str) -> str:
    """A cause within a sentence: `network adapters`."""
    phrase = _phrase(cause)
    return f"{phrase[0].lower() if phrase[1:2].islower() else phrase[0]}{phrase[1:]}"


def table(result: InterruptionsResult) -> Table:
    """One row per cause."""
    rows = tuple(
        (
            r.title,
            r.family.replace("_", " "),
            f"{r.count_:,}",
            fmt.share(r.share),
            fmt.duration(_known(r.mttf_s)),
            fmt.duration(_known(r.lost_s)),
            fmt.number(_known(r.chip_hours)),
        )
        for r in result.causes.rename(columns={"count": "count_"}).itertuples()
    )
    head = ("cause", "family", "interruptions", "share", "one every", "lost", "chip-hours")
    return Table(head, rows, right=(2, 3, 4, 5, 6))


def _known(value: float) -> float | None:
    return None if value is None or value != value else float(value)
