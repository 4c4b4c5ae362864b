"""Stops of the job: each cause with its whole cost, from the last sign of life to the first step that is new; those too
that training survived, by slices that were lost and steps that were taken again in place.

A host that failed improbably often is one finding, whatever broke on it. Stops whose cause can be mended are one
finding a cause. What is left is the machines' own failures: there it is the way back that can be made shorter, if it is
long.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.lost.checkpoints import CheckpointsResult
from analyzers.lost.interruptions import ENDS, InterruptionsResult
from analyzers.lost.stops import DOWN
from analyzers.time.job_past import job_past
from catalog.causes import CAUSES as STOP_CAUSES
from errors import format as fmt
from runs.tables import frame

QUESTION = "interruptions"
CAUSES = (
    "bad_host",
    "out_of_memory",
    "hang",
    "nan_rollback",
    "preemption",
    "crash",
    "hardware",
    "planned_stop",
    "interruption",
    "slow_restart",
)
BY_CAUSE = {"numerics": "nan_rollback", "collective_timeout": "hang"}
"""Of a collective that timed out something hung, whatever made it: where a line names that, its cause is that."""
BY_FAMILY = {
    "hardware": "hardware",
    "network": "hardware",
    "storage": "hardware",
    "software": "crash",
    "out_of_memory": "out_of_memory",
    "maintenance": "planned_stop",
    "scheduler": "planned_stop",
    "user": "planned_stop",
    "preemption": "preemption",
    "hang": "hang",
}
SLICES = {
    "planned_stop": "Slices were taken away {} for maintenance or by a person, and training went on",
    "interruption": "Slices were lost {} and training went on, and no line of a log tells why",
}
MACHINES = "hardware"
BROKE = {"storage": "A disk or file system", "network": "The network"}
NOT_MENDED = (MACHINES, "planned_stop", "interruption")
"""What happens at scale, or for a reason that is not known: there the way back can be made shorter."""
DRAWN = {
    **{f"down_{heading}_s": heading for heading in DOWN if heading != "custom"},
    "wasted_s": "wasted_progress",
    "program_startup_s": "program_startup",
    "accelerator_initialization_s": "accelerator_initialization",
    "training_preparation_s": "training_preparation",
    "checkpoint_restore_s": "checkpoint_restore",
    "data_loading_s": "data_loading",
    "elastic_slice_down_s": "elastic_slice_down",
    "elastic_scale_up_s": "elastic_scale_up",
    "elastic_reinitialization_s": "elastic_reinitialization",
    "other_s": "other",
}
LONG_S, LONG_SHARE = 600.0, 0.5
"""A way back is long where it takes so many seconds, and that share of what a stop costs."""
BACK_S = 300.0  # of a way back as good as the field's: detection, a spare, restore, first step
RANK = re.compile(r"\brank[ =:#_]{0,2}(\d{1,7})\b", re.IGNORECASE)
WAITS = re.compile(r"wait|all_?reduce|all_?gather|reduce_?scatter|barrier|collective|nccl|peer", re.IGNORECASE)
STACK = re.compile(r"stack of|last entered|did not (?:enter|join|reach)|no heartbeat", re.IGNORECASE)
NEAR_STEPS = 5.0
NEVER = np.iinfo(np.int64).max
PASSED_SHARE = 0.1  # of the steps taken again: fewer that had been saved are not worth a word
SPREAD = 0.1
SPREADS = {"nan_rollback": 0.25}  # of the cost: some of what is taken again had to be taken anyway


def find(seen: Seen) -> Told:
    found = seen.answer(QUESTION, InterruptionsResult)
    if found is None:
        return Told(not_told=(NotTold(CAUSES, seen.answers.why(QUESTION), "the job's goodput log or its text log"),))
    every = found.rows.assign(mends=[_mended(row) for row in found.rows.to_dict("records")])
    costs, ends = every["lost_s"].fillna(0) > 0, every["kind"].isin(ENDS)
    rows, survived = every[costs & ends], every[costs & ~ends]
    free = _without_cost(seen, every[~costs & ends & ~every["mends"].isin(rows["mends"])])
    if not len(every):
        hung = ("hang",) if seen.amount("hang") else ()  # of steps that went on another rule says
        out = tuple(c for c in CAUSES[:-1] if c not in hung)
        return Told(ruled_out=tuple(RuledOut(c, "no interruption in what was recorded", QUESTION) for c in out))
    told = []
    if found.lemons is not None:
        bad = found.hosts.loc[found.hosts["lemon"].astype(bool), "host"]
        known, nameless = int(rows["host"].notna().sum()), rows[rows["host"].isna()]
        for host in bad:
            mine = rows[rows["host"] == host]
            if len(mine):  # of the stops of which no line names a host, as many were likely this one's
                told.append(_finding(seen, "bad_host", mine, (str(host),), _part(nameless, len(mine) / known)))
        rows = rows[~rows["host"].isin(bad)]
    rest = rows["mends"].isin(NOT_MENDED)
    crashes = rows["mends"] == "crash"
    if not crashes.all() and not _loop(rows[crashes]):
        rest |= crashes  # one now and then among other stops is no loop
    went_on = survived["mends"].isin(NOT_MENDED)
    mends = _of_both(rows[~rest], survived[~went_on])
    told += [_finding(seen, str(cause), mine) for cause, mine in mends.groupby("mends", sort=False)]
    if rest.any():
        told += _machines(seen, rows[rest])
    by = survived[went_on].groupby(["mends", "kind"], sort=False)
    told += [_finding(seen, str(mine["mends"].iloc[0]), mine) for _, mine in by]
    return Told(tuple(told)) + free


def _of_both(ended: pd.DataFrame, survived: pd.DataFrame) -> pd.DataFrame:
    """Stops that ended an attempt, and those that training survived, in order of time."""
    if not len(ended) or not len(survived):
        return ended if len(ended) else survived
    return pd.concat([ended, survived]).sort_values("number", kind="stable")


def _without_cost(seen: Seen, rows: pd.DataFrame) -> Told:
    """Stops after which nothing was started, or of which no time is told: what a line names is found all the same, of
    what cost is not known."""
    named = rows[~rows["mends"].isin(("planned_stop", "interruption"))]
    told = [_free(seen, str(cause), mine) for cause, mine in named.groupby("mends", sort=False)]
    if not (rows["mends"] == "interruption").any():
        return Told(tuple(told))
    ended = (rows.loc[rows["mends"] == "interruption", "kind"] == "final").all()
    why = "no line of a log tells why it ended" if ended else "nothing tells what stops without a known cause cost"
    add = "the logs of its hosts" if ended else "a log with times of day, and the logs of its hosts"
    return Told(tuple(told), not_told=(NotTold(("interruption",), why, add),))


def _free(seen: Seen, cause: str, rows: pd.DataFrame) -> Finding:
    """One cause of stops that cost nothing that is told."""
    hosts = tuple(str(h) for h in dict.fromkeys(rows["host"].dropna()))
    ranks = _ranks(seen, cause, rows)
    ended = (rows["kind"] == "final").all()
    after = "and the job was not started again" if ended else "and no step had to be taken again"
    if not ended and rows["lost_s"].isna().any():
        after = "and nothing tells which steps that lost"
    return Finding(
        cause=cause,
        title=f"{_what(cause, rows, hosts, ranks)}, {after}.",
        gain=None,
        draws={},
        question=QUESTION,
        confidence=_sure(rows),
        where=Where(ranks=tuple(ranks), hosts=hosts, steps=_steps(seen, cause, rows)),
        since_ns=_since(rows),
        evidence=(Evidence("times", float(len(rows)), "", QUESTION), *_line(rows)),
    )


def _loop(crashes: pd.DataFrame) -> bool:
    """Whether crashes come at one step again and again."""
    last = crashes["last_step"].dropna().astype(float)
    return len(last) > 1 and bool((last.diff().abs().dropna() <= NEAR_STEPS).mean() >= LONG_SHARE)


def _mended(row: dict[Hashable, Any]) -> str:
    """The finding that a stop belongs to, by its cause and else by the family of that."""
    known = STOP_CAUSES.get(str(row["cause"]))
    return BY_CAUSE.get(str(row["cause"]), BY_FAMILY.get(known.family if known else "", "interruption"))


def _machines(seen: Seen, rows: pd.DataFrame) -> list[Finding]:
    """Failures of machines, and stops of no known cause: what a shorter way back would give, else what they cost."""
    back = rows["down_s"].fillna(0) + rows["startup_s"].fillna(0)
    median, whole = float(back.median()), float(rows["lost_s"].sum())
    if median < LONG_S or float(back.sum()) < LONG_SHARE * whole:
        return [_finding(seen, str(cause), mine) for cause, mine in rows.groupby("mends", sort=False)]
    likely = float((back - BACK_S).clip(lower=0).sum()) * seen.chips
    return [
        Finding(
            cause="slow_restart",
            title=f"Coming back after an interruption takes {fmt.duration(median)} in the median: "
            f"{fmt.count(len(rows), 'time')}, "
            f"{fmt.share(float(back.sum()) * seen.chips / seen.whole)} of the chip time.",
            gain=Band(likely * 0.6, likely, max(float(back.sum()) * seen.chips, likely)),
            draws=_drawn(seen, rows, likely, tuple(c for c in DRAWN if c != "wasted_s")),
            question=QUESTION,
            confidence=0.85,
            evidence=(
                Evidence("down, median", _median(rows, "down_s"), "s", QUESTION),
                Evidence("until it was noticed, median", _median(rows, "detect_s"), "s", QUESTION),
                Evidence("starting, median", _median(rows, "startup_s"), "s", QUESTION),
                Evidence("interruptions", float(len(rows)), "", QUESTION),
            ),
        )
    ]


def _part(rows: pd.DataFrame, share: float) -> pd.DataFrame:
    """Stops of which this share of the cost is told."""
    costs = ["lost_s", *(c for c in DRAWN if c in rows)]
    return rows.assign(**{c: rows[c].astype(float) * share for c in costs})


def _median(rows: pd.DataFrame, column: str) -> float:
    known = rows[column].dropna()
    return float(known.median()) if len(known) else 0.0


def _finding(
    seen: Seen, cause: str, rows: pd.DataFrame, hosts: tuple[str, ...] = (), more: pd.DataFrame | None = None
) -> Finding:
    """One cause of stops, with the whole cost of each; `more`: what of others likely belongs to it too."""
    surely = float(rows["lost_s"].sum()) * seen.chips
    whole = rows if more is None else _of_both(rows, more)
    likely = float(whole["lost_s"].sum()) * seen.chips
    known = tuple(str(h) for h in dict.fromkeys(rows["host"].dropna()))
    ranks = _ranks(seen, cause, rows)
    back_to = ", and training went back" if cause == "nan_rollback" else ""
    what = _what(cause, rows, hosts or known, ranks) + back_to
    back, lost = rows["down_s"].fillna(0) + rows["startup_s"].fillna(0), rows["wasted_s"].fillna(0)
    to = "until it was given up" if (rows["kind"] == "final").all() else "to be back"
    cost = {to: float(back.sum()), "of steps taken again": float(lost.sum())}
    each = " and ".join(f"{fmt.duration(s)} {of}" for of, s in cost.items() if s) or "nothing"
    return Finding(
        cause=cause,
        title=f"{what}: {each}.{_and_of(seen, likely - surely)}{_passed_over(seen, rows)}",
        gain=Band(surely * (1 - SPREADS.get(cause, SPREAD)), likely, likely * (1 + SPREAD)),
        draws=_drawn(seen, whole, likely, tuple(DRAWN)),
        question=QUESTION,
        confidence=_sure(rows),
        where=Where(ranks=tuple(ranks), hosts=hosts or known, steps=_steps(seen, cause, rows)),
        since_ns=_since(rows),
        evidence=(
            Evidence("times", float(len(rows)), "", QUESTION),
            Evidence("down", float(rows["down_s"].sum()), "s", QUESTION),
            Evidence("starting", float(rows["startup_s"].sum()), "s", QUESTION),
            Evidence("steps taken again", float(lost.sum()), "s", QUESTION),
            *_line(rows),
        ),
    )


def _and_of(seen: Seen, more: float) -> str:
    """A sentence about chip-seconds of stops that name no host."""
    if more <= 0:
        return ""
    return (
        f" Of stops of which no line names a host, {fmt.share(more / seen.whole)} of the chip time is likely its own."
    )


def _passed_over(seen: Seen, rows: pd.DataFrame) -> str:
    """A sentence about steps that were taken again though they had been saved."""
    saves = seen.answer("checkpoints", CheckpointsResult)
    if saves is None or not len(saves.stops):
        return ""
    mine = saves.stops[saves.stops["restart_ns"].isin(rows["restart_ns"].dropna())]
    if (held_s := float(mine["passed_over_s"].sum())) < PASSED_SHARE * float(rows["wasted_s"].sum()) or not held_s:
        return ""
    return f" {fmt.duration(held_s)} of these steps a later save held: training went on from an earlier one."


def _what(cause: str, rows: pd.DataFrame, hosts: tuple[str, ...], ranks: Mapping[int, int]) -> str:
    """What happened, how often and where, as a clause."""
    times, who = fmt.count(len(rows), "time"), _on(rows, hosts)
    if cause in SLICES and (rows["kind"] == "elastic").all():
        return SLICES[cause].format(times)
    if cause == "interruption" and (rows["kind"] == "rollback").all():
        return f"Steps were taken again {times} without a start of the job, and no line of a log tells why"
    return {
        "bad_host": f"The host {hosts[0] if hosts else ''} failed {times}, more often than chance allows",
        "out_of_memory": f"It ran out of memory {times}{who}",
        "hang": f"It hung {times}{_of(rows, ranks)}",
        "nan_rollback": f"The loss became no number {times}",
        "preemption": f"Its machines were taken away {times}",
        "crash": f"It crashed {times}{_of(rows, ranks)}{who}",
        "hardware": f"{_broke(rows)} failed {times}{who}",
        "planned_stop": f"It was stopped on purpose {times}, for maintenance or by a person",
        "interruption": f"It was interrupted {times}, and no line of a log tells why",
    }[cause]


def _broke(rows: pd.DataFrame) -> str:
    """What failed, where all of these stops name the same."""
    families = rows["family"].unique()
    return BROKE.get(str(families[0]), "Machines") if len(families) == 1 else "Machines"


def _sure(rows: pd.DataFrame) -> float:
    return {"certain": 0.95, "likely": 0.85}.get(str(rows["confidence"].iloc[0]), 0.6)


def _since(rows: pd.DataFrame) -> int | None:
    return None if rows["last_sign_ns"].isna().all() else int(rows["last_sign_ns"].dropna().iloc[0])


def _line(rows: pd.DataFrame) -> list[Evidence]:
    """The first line that tells of it."""
    return [Evidence("a line of the log", str(t)[:200], "", QUESTION) for t in rows["text"].dropna().head(1)]


def _on(rows: pd.DataFrame, hosts: tuple[str, ...]) -> str:
    """The one host that lines name, and of how many of these stops they do where it is not of all."""
    if len(hosts) != 1:
        return ""
    there = int((rows["host"] == hosts[0]).sum())
    return f" on {hosts[0]}" if there == len(rows) else f", {there:,} of them on {hosts[0]}"


def _of(rows: pd.DataFrame, ranks: Mapping[int, int]) -> str:
    """The same of the one rank."""
    if len(ranks) != 1:
        return ""
    ((rank, there),) = ranks.items()
    return f" (rank {rank})" if there == len(rows) else f" (rank {rank} in {there:,} of them)"


def _drawn(seen: Seen, rows: pd.DataFrame, likely: float, columns: tuple[str, ...]) -> dict[str, float]:
    """From which accounts a cost comes, by the parts that the stops are made of."""
    parts: dict[str, float] = defaultdict(float)
    for column in (c for c in columns if c in rows):
        parts[DRAWN[column]] += float(rows[column].fillna(0).sum()) * seen.chips
    whole = sum(parts.values())
    scale = min(likely / whole, 1.0) if whole else 0.0
    drawn = {name: amount * scale for name, amount in parts.items() if amount}
    return {**drawn, "": max(likely - sum(drawn.values()), 0.0)}


def _steps(seen: Seen, cause: str, rows: pd.DataFrame) -> Steps | None:
    """Of a loss that became no number: the last step before a line says so; of a crash loop the step where it ends."""
    if cause not in ("nan_rollback", "crash"):
        return None
    if cause == "nan_rollback":
        lines = frame(seen.tables, "evidence", ["cause", "step"])
        steps = lines.loc[(lines["cause"] == "numerics") & lines["step"].notna(), "step"]
        if len(steps):
            return Steps(int(steps.min()), int(steps.min()))
    last = rows["last_step"].dropna()
    return Steps(int(last.iloc[0]), int(last.iloc[0])) if len(last) else None


def _ranks(seen: Seen, cause: str, rows: pd.DataFrame) -> dict[int, int]:
    """The ranks that lines of these stops name, each with how many of them name it; of a hang those that do not wait
    for the others. None where lines name many."""
    if cause not in ("hang", "crash", "out_of_memory"):
        return {}
    lines = _lines(seen)
    named = Counter[int]()
    for number, text in zip(rows["number"], rows["text"], strict=True):
        texts = [*lines.get(int(number), ()), *([str(text)] if isinstance(text, str) else [])]
        if cause == "hang":  # of ranks whose stacks are told, those that are in no collective are waited for
            texts = [t for t in texts if STACK.search(t) and not WAITS.search(STACK.split(t)[-1])]
        named.update({int(m[1]) for t in texts for m in RANK.finditer(t)})
    return dict(sorted(named.items())) if len(named) <= 2 else {}


def _lines(seen: Seen) -> dict[int, list[str]]:
    """Lines by the number of the stop that they belong to: written since the one before, and before the job was started
    again; of those without a time, by their attempt. A line of another stop tells nothing of this one."""
    found = seen.answer(QUESTION, InterruptionsResult)
    lines = frame(seen.tables, "evidence", ["ts_ns", "attempt", "source", "text"]).dropna(subset=["text"])
    if found is None or not len(lines) or not len(found.rows):
        return {}
    past, _ = job_past(seen.tables, seen.facts)
    source = lines["source"].astype("string").fillna("").astype(str)
    last, again = found.rows["last_sign_ns"], found.rows["restart_ns"].to_numpy(dtype=np.int64, na_value=NEVER)
    timed = lines["ts_ns"].notna().to_numpy() & bool(last.notna().all())
    begin = np.minimum(np.append(-NEVER, again[:-1]), last.to_numpy(dtype=np.int64, na_value=NEVER))
    at = lines["ts_ns"].to_numpy(dtype=np.int64, na_value=0) + source.map(past.shifts).fillna(0).to_numpy(np.int64)
    stop = np.searchsorted(begin, at, side="right") - 1
    stop[(stop < 0) | (at >= again[np.maximum(stop, 0)])] = -1
    attempts = dict(zip(found.rows["attempt"][::-1], range(len(found.rows) - 1, -1, -1), strict=True))
    own = [past.attempts.get(key, key[1]) for key in zip(source, lines["attempt"], strict=True)]
    stop = np.where(timed, stop, [attempts.get(a, -1) if pd.notna(a) else -1 for a in own])
    told = defaultdict[int, list[str]](list)
    for k, text in zip(stop, lines["text"], strict=True):
        if k >= 0:
            told[int(found.rows["number"].iloc[k])].append(str(text))
    return told


RULE = Rule(name="stops", causes=CAUSES, find=find)
