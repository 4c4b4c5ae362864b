"""What can be watched for: one rule each, listed once. A rule asks a question of a run and compares the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.follow.alerts.options import GOODPUT, HANG, MFU_DROP, RECENT_STEPS, STRAGGLER
from app.words import short
from errors import QuestionError
from errors import format as fmt
from errors.options import Option
from runs.live import Live
from runs.registry import Registry
from runs.run import Run

CLEARLY, CLEAR = 0.01, 0.8  # by how much, or to which part of its threshold, a figure is clearly over it


@dataclass(frozen=True)
class Found:
    """What a rule found. `open`: the threshold is crossed; `over`: it is not, by a clear margin, so that an alert
    closes and does not flap. Neither: in between, and an alert stays as it is."""

    value: float
    open: bool
    over: bool
    sentence: str


@dataclass(frozen=True)
class Rule:
    """`check(run, registry, threshold, live)` -> what was found, or None where the run cannot tell.

    `live`: the live run that it is a snapshot of, judged as of the last read: time of which nothing was read tells
    nothing.

    `option`: its threshold, whose default is the usual one; `question`: whose page shows why; `live`: only a job that
    is being followed can be judged.
    """

    option: Option
    question: str
    check: Callable[[Run, Registry, float, Live | None], Found | None]
    live: bool = False

    @property
    def name(self) -> str:
        return self.option.name

    @property
    def title(self) -> str:
        return self.option.title

    @property
    def help(self) -> str:
        return self.option.help

    @property
    def usual(self) -> float:
        """The threshold where none is given."""
        return self.option.default


def ask(name: str, run: Run, options: dict[str, Any], registry: Registry) -> Any:
    from app.questions import asking, question  # late: the command line names the rules without loading any analyzer

    return asking.ask(question(name), run, options, registry)


def _goodput(run: Run, registry: Registry, threshold: float, live: Live | None) -> Found | None:
    until_read = {"now": f"{live.read_ns / 1e9:.3f}"} if live and live.read_ns else {}
    answer = ask("goodput", run, until_read, registry).to_dict()
    if answer["goodput_share"] is None:
        return None
    share = float(answer["goodput_share"])
    why, below = _mostly(answer["badput_s"]), share < threshold
    return Found(
        share,
        below,
        share >= min(threshold + CLEARLY, (1 + threshold) / 2),  # or one near 1 is never over
        f"goodput is {fmt.share(share)}" + (f", below {fmt.share(threshold)}{why}." if below else "."),
    )


def _mostly(badput: Mapping[str, Any]) -> str:
    """What took the most of the time lost, as the end of a sentence; empty where none was. Events that the job named
    itself are told by their names."""
    parts = (part if isinstance(part, Mapping) else {name: part} for name, part in badput.items())
    lost = [entry for part in parts for entry in part.items()]
    worst, seconds = max(lost, key=lambda entry: entry[1], default=("", 0.0))
    if not seconds > 0:
        return ""
    most = "mostly" if seconds > sum(s for _, s in lost) / 2 else "most of all"
    return f", {most} {short(worst.replace('_', ' ').lower())} ({fmt.duration(seconds)})"


def _mfu_drop(run: Run, registry: Registry, threshold: float, live: Live | None) -> Found | None:
    rows = ask("mfu", run, {}, registry).rows
    usual = rows[rows["kept"] & ~rows["first"] & (rows["implausible"] == "")]["mfu"].dropna()
    if len(usual) < 2 * RECENT_STEPS:
        return None
    before, recent = float(usual.iloc[:-RECENT_STEPS].median()), float(usual.iloc[-RECENT_STEPS:].median())
    drop = 1 - recent / before if before > 0 else 0.0
    return Found(
        drop,
        drop > threshold,
        drop <= threshold * CLEAR,
        f"MFU of the last {RECENT_STEPS} steps is {fmt.share(recent)}; before it was {fmt.share(before)}.",
    )


def _straggler(run: Run, registry: Registry, threshold: float, live: Live | None) -> Found | None:
    answer = ask("stragglers", run, {}, registry).to_dict()
    if answer["verdict"] == "unknown":
        return None
    worst = next((r for r in answer["ranks"] if r["share_of_steps"] is not None), None)
    if answer["verdict"] != "persistent" or worst is None:
        return Found(0.0, False, True, "no rank holds the others up any more.")
    share = float(worst["share_of_steps"])
    cost = f", at the cost of {fmt.chip_time(answer['cost_chip_seconds'])}" if answer["cost_chip_seconds"] else ""
    return Found(
        share,
        share >= threshold,
        share <= threshold * CLEAR,
        f"rank {worst['rank']} is last in {fmt.share(share)} of the steps{cost}; cause: {worst['cause']}.",
    )


def _hang(run: Run, registry: Registry, threshold: float, live: Live | None) -> Found | None:
    rows = ask("steps", run, {}, registry).rows
    usual = rows[~rows["first"].fillna(False).astype(bool)]["dur_s"].dropna()
    starts = rows["start_ns"].dropna()
    if len(usual) < 3 or not len(starts) or live is None or live.read_ns is None:
        return None
    last_ns, median_s = int(starts.max()), float(usual.median())
    if _ended(run, last_ns):
        return Found(0.0, False, True, "the job has ended.")
    # the times of steps are those of the job's hosts, whose clocks may be wrong: they count where nothing else is known
    heard_ns = last_ns if live.active_ns is None else live.active_ns
    silent_s = max(live.read_ns - heard_ns, 0) / 1e9
    if silent_s <= threshold * median_s:
        return Found(silent_s / median_s, False, True, "the job goes on.")
    return Found(
        silent_s / median_s,
        True,
        False,
        f"nothing came from the job for {fmt.duration(silent_s)}, where a step usually takes {fmt.duration(median_s)}.",
    )


def _ended(run: Run, last_step_ns: int) -> bool:
    """Whether the job said that it ended, after its last step, and has not begun anew since."""
    rows = run.tables.arrow("lifecycle", ["start_ns", "end_ns"], [("kind", "==", "job")])
    begun, ended = ([at for at in rows.column(name).to_pylist() if at is not None] for name in ("start_ns", "end_ns"))
    return bool(ended) and max(ended) >= last_step_ns and max(begun, default=0) <= max(ended)


RULES: tuple[Rule, ...] = (
    Rule(GOODPUT, "goodput", _goodput),
    Rule(MFU_DROP, "mfu", _mfu_drop),
    Rule(STRAGGLER, "stragglers", _straggler),
    Rule(HANG, "steps", _hang, live=True),
)


def rule(name: str) -> Rule:
    """The rule of this name. Raises QuestionError where there is none."""
    for candidate in RULES:
        if name == candidate.name:
            return candidate
    raise QuestionError(f"no alert rule {name!r}", expected=f"one of {', '.join(r.name for r in RULES)}")


def page_of(rule: str) -> str:
    """The question whose page shows why; of a rule that is no more, the ledger."""
    return next((r.question for r in RULES if r.name == rule), "ledger")
