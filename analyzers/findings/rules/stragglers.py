"""Ranks that make the others wait: a slow one, one that collects garbage or waits for input, or each in turn."""

from collections.abc import Hashable, Mapping
from typing import Any

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.findings.named_work import KINDS as NAMED_KINDS
from analyzers.findings.named_work import named_work
from analyzers.findings.parts import step_parts
from analyzers.findings.places import rank_of
from analyzers.findings.rules.host import LAUNCH_BOUND
from analyzers.ranks.stragglers import StragglersResult
from analyzers.ranks.stragglers.rank_causes import CAUSES as SPLIT_CAUSES
from analyzers.ranks.stragglers.rank_causes import UNKNOWN
from errors import format as fmt

QUESTION = "stragglers"
CAUSES = ("slow_rank", "garbage_collection", "uneven_loader", "jitter", "uneven_work")
BY_NAME = tuple(kind.cause for kind in NAMED_KINDS.values())
UNNAMED = ("launch", "idle", UNKNOWN)  # reasons that events of the late rank's host may name
BY_REASON = {"input": "uneven_loader", "garbage_collection": "garbage_collection"}
OWN = {"input": "input_wait", "garbage_collection": "idle_garbage_collection", "compute": "below_roofline"}
"""The account in which a late rank's own excess lies; of other reasons it is its idle host."""
HOST_CODE = "idle_host_code"
IN_TURN = 0.5  # of the ranks compared: where so many are named, and each for a part of the steps, they are late in turn
AS_MUCH = 0.5  # of the blame of those named: where another rank has as much over all steps, it is not these alone
GARBAGE = 0.3  # of a rank's excess: so much collecting of garbage is why
PART_OF_LAUNCHING = 0.5  # of what a host takes to launch a step: ranks that come apart by less do so as they launch
OFTEN = 0.75  # of steps: a rank late in more of them is slow, whoever else is
FEW_STEPS = 100  # in so few a neighbour on a rank's machine may be why it is late
STRETCH = 0.05  # of the chip time: what a rank late in so few must cost where no event names why
NOT_NAMED = ("compute", "launch", "idle", UNKNOWN)
TAKEN = (
    "compilation",
    "checkpointing",
    "evaluation",
    "profiling",
)  # parts of a step that hosts take unequally long for
LATE_OTHERWISE = "ranks are late by a slow link, or in steps that held compiling, a save or an evaluation"
SPREAD = 0.1  # of the gain: what peers' own lateness and clocks leave open
REASONS = {
    "compute": "its device computes longer",
    "other_communication": "it spends longer in other communication",
    "copies": "it copies memory for longer",
    "input": "it waits for its input",
    "garbage_collection": "its host collects garbage",
    "launch": "its host launches late",
    "idle": "its device idles",
}


def find(seen: Seen) -> Told:
    found = seen.answer(QUESTION, StragglersResult)
    if found is None:
        return Told(not_told=(NotTold(CAUSES, seen.answers.why(QUESTION), "profiles of all ranks"),))
    if found.verdict == "unknown":
        return Told(not_told=(NotTold(CAUSES, found.why, "profiles of all ranks over 20 steps or more"),))
    if found.verdict in ("persistent", "one_step") and len(found.ranks):
        rows = found.ranks.to_dict("records")
        if found.verdict == "one_step":
            return _single(seen, found, rows)
        compared = int(found.every["lag_s"].notna().sum())
        if all(r["share_of_steps"] < OFTEN and r["every"] == 1 for r in rows) and (
            1 < len(rows) >= IN_TURN * compared or _others_as_much(found, rows)
        ):
            return _told_in_turn(seen, found, compared)
        own = [row for row in rows if _own_doing(found, row, len(rows)) and not _unequally_taken(seen, row)]
        if not own:
            return _ruled_out(LATE_OTHERWISE)
        return Told(tuple(f for row in own for f in _of_rank(seen, found, row)))
    if found.verdict == "rotating":
        return _told_in_turn(seen, found, int(found.every["lag_s"].notna().sum()))
    if found.verdict == "imbalance":
        return Told((_uneven(seen, found),))
    apart = "" if found.apart_s is None else f": they arrive within {fmt.duration(found.apart_s)} of each other"
    return _ruled_out(f"no rank is late{apart}")


def _single(seen: Seen, found: StragglersResult, rows: list[dict[Hashable, Any]]) -> Told:
    """Ranks late in a step or two; not where these held compiling, a save or the like, which hosts take unequally."""
    held = step_parts(seen.tables, seen.facts)
    told = []
    for row in rows:
        steps = found.steps.loc[found.steps["culprit"].astype(str) == str(row["rank"]), "step"].tolist()
        taken = [max((float(held.of(k).get(s, 0.0)) for k in TAKEN), default=0.0) for s in steps]
        if not steps or min(taken) < float(row["lag_s"]):
            told += _of_rank(seen, found, row)
    if told:
        return Told(tuple(told))
    return _ruled_out("single steps in which a rank is late held compiling, a save or an evaluation")


def _ruled_out(why: str, causes: tuple[str, ...] = CAUSES[:3]) -> Told:
    return Told(ruled_out=tuple(RuledOut(cause, why, QUESTION) for cause in causes))


def _unequally_taken(seen: Seen, row: Mapping[Hashable, Any]) -> bool:
    """Whether a rank that is late at every so many steps alone is so in steps that each hold more of compiling, a save
    or the like, of which hosts take unequally long."""
    if row["every"] < 2:
        return False
    held = step_parts(seen.tables, seen.facts)
    steps = set(range(int(row["first_step"]), int(row["last_step"]) + 1, int(row["every"])))
    taken = [held.of(kind)[held.rows["step"].isin(steps).to_numpy()] for kind in TAKEN]
    return max((float(t.min()) for t in taken if len(t)), default=0.0) >= float(row["lag_s"])


def _own_doing(found: StragglersResult, row: dict[Hashable, Any], named: int) -> bool:
    """Whether a rank that is late among others is so by what it did itself: both ends of a slow link are late in all
    that follows. One alone is named whatever it did."""
    looked = found.causes["rank"].astype(str).eq(str(row["rank"])).any()
    return named == 1 or row["cause"] != UNKNOWN or not looked


def _others_as_much(found: StragglersResult, rows: list[dict[Hashable, Any]]) -> bool:
    """Whether ranks that are not named cost about as much over all steps as those that are: then the named ones were
    late in a stretch of them by chance."""
    blame = found.every["blame_all_s"].fillna(0.0)
    named = found.every["rank"].astype(str).isin({str(r["rank"]) for r in rows})
    return bool(named.any()) and float(blame[~named].max() if (~named).any() else 0.0) > AS_MUCH * float(
        blame[named].max()
    )


def reasons(found: StragglersResult, row: Mapping[Hashable, Any]) -> dict[str, float]:
    """Why it is late, and each reason's part of it: its largest excess, or garbage where that is a good part, since
    what is collected was made; both that and its input where either is."""
    mine = found.causes[found.causes["rank"].astype(str) == str(row["rank"])]
    beyond = mine[[*SPLIT_CAUSES, UNKNOWN]].astype(float).clip(lower=0).sum()
    whole = float(beyond.sum())
    if not whole or beyond["garbage_collection"] < GARBAGE * whole:
        return {str(row["cause"]): 1.0}
    fetched = float(beyond["input"]) / whole
    if fetched < GARBAGE:
        return {"garbage_collection": 1.0}
    return {"garbage_collection": 1.0 - fetched, "input": fetched}


def _number(seen: Seen, label: str, host: str) -> int | str:
    """A rank's number: its label, or, where a profile tells no ranks, the number of its process if that has one
    device."""
    if label.isdigit():
        return int(label)
    return rank_of(seen, host, label)


def _of_rank(seen: Seen, found: StragglersResult, row: dict[Hashable, Any]) -> list[Finding]:
    """One rank that is late, by each of its reasons."""
    return [_for_a_reason(seen, found, row, reason, part) for reason, part in reasons(found, row).items()]


def _for_a_reason(seen: Seen, found: StragglersResult, row: dict[Hashable, Any], reason: str, part: float) -> Finding:
    """A rank's lateness as far as this is why."""
    waited = float(row["charge_chip_s"]) * part
    named = named_work(seen, found, row) if reason in UNNAMED else None
    cause = named.cause if named else BY_REASON.get(reason, "slow_rank")
    low, likely, high = (float(row[f"gain_{name}chip_seconds"]) * part for name in ("low_", "", "high_"))
    beyond = likely - low  # in steps that no profile covers
    own = max(low - waited, _own(seen, found, row) * part)
    most = max(high, own * max(int(found.every["lag_s"].notna().sum()), 1) + beyond)
    gain = Band((waited + min(own, low - waited)) * (1 - SPREAD), waited + own + beyond, most * (1 + SPREAD))
    because = named.says if named else REASONS.get(reason, "")
    why = f", because {because}" if because else ""
    account = named.account if named else OWN.get(reason, HOST_CODE)
    often = f" every {_nth(row['every'])} step" if row["every"] > 1 else ""
    number = _number(seen, str(row["rank"]), str(row["host"]))
    label = str(number)
    host = f" ({row['host']})" if row["host"] and not label.startswith(str(row["host"])) else ""
    late_s = float(row["lag_s"]) * part
    late = fmt.duration(late_s)
    steps = f"steps {row['first_step']:,} to {row['last_step']:,}"
    return Finding(
        cause=cause,
        title=f"Rank {label}{host} makes the others wait: it is {late} late{often} in {steps}{why}.",
        gain=gain,
        draws={"straggler_wait": waited, **_drawn(seen, account, own), "unattributed": beyond},
        question=QUESTION,
        confidence=float(row["confidence"]),
        where=Where(
            ranks=(number,),
            hosts=(str(row["host"]),) if row["host"] else (),
            steps=Steps(int(row["first_step"]), int(row["last_step"]), int(row["every"])),
        ),
        evidence=(
            Evidence("late by, mean", late_s, "s", QUESTION),
            Evidence("of the steps compared", float(row["share_of_steps"]), "1", QUESTION),
            Evidence("the others waited for it", waited, "chip-seconds", QUESTION),
        ),
        least=STRETCH * seen.whole if _a_while(row) and reason in NOT_NAMED and not named else 0.0,
    )


def _a_while(row: Mapping[Hashable, Any]) -> bool:
    """Whether a rank is late in few steps, and not in most of them: as long as a busy neighbour stays."""
    return bool(row["every"] == 1 and row["share_of_steps"] < OFTEN and row["steps"] < FEW_STEPS)


def _drawn(seen: Seen, account: str, own: float) -> dict[str, float]:
    """From which accounts a late rank's own excess comes: what the one of its reason does not hold its host's code
    took, as the making of the garbage that is collected."""
    held = min(own, seen.amount(account)) if account != HOST_CODE else 0.0
    return {account: held, HOST_CODE: own - held} if held else {HOST_CODE: own}


def _own(seen: Seen, found: StragglersResult, row: dict[Hashable, Any]) -> float:
    """Chip-seconds that a rank loses by itself where others are late beside it: what the rest waits is charged to the
    last of them alone, but each has its own excess. 0 for one alone, of which the charge tells it."""
    ranks = int(found.every["lag_s"].notna().sum())
    return float(row["lag_s"]) * int(row["steps"]) * seen.chips / ranks if len(found.ranks) > 1 and ranks else 0.0


def _told_in_turn(seen: Seen, found: StragglersResult, compared: int) -> Told:
    """Not where ranks come apart by less than half of what the host of each takes to launch a step: of so much some is
    slower in any step, and it goes with the rest."""
    launching = seen.amount("idle_launching")
    each = launching / max(len(found.steps) * seen.chips, 1)
    if launching >= LAUNCH_BOUND * seen.whole and (found.apart_s or 0.0) < PART_OF_LAUNCHING * each:
        return _ruled_out(
            f"ranks come apart by less than half of the {fmt.duration(each)} in which each launches a step", CAUSES[:4]
        )
    return Told((_in_turn(seen, found, compared),))


def _in_turn(seen: Seen, found: StragglersResult, compared: int) -> Finding:
    """Ranks late in turn: what each waits for the last, and the last one's own excess."""
    ranks = max(compared, 2)
    waited = seen.amount("straggler_wait")
    likely = waited * ranks / (ranks - 1)
    apart = found.apart_s or 0.0
    return Finding(
        cause="jitter",
        title=f"Ranks are late in turn, none of the {compared:,} on its own: the last arrives {fmt.duration(apart)} "
        "after the first in a usual step.",
        gain=Band.within(likely, 0.1),
        draws={"straggler_wait": waited, HOST_CODE: likely - waited},
        question=QUESTION,
        confidence=0.8,
        evidence=(
            Evidence("the others waited", waited, "chip-seconds", QUESTION),
            Evidence("first to last to arrive, median", found.apart_s or 0.0, "s", QUESTION),
        ),
    )


def _uneven(seen: Seen, found: StragglersResult) -> Finding:
    waited = found.cost_chip_seconds or 0.0
    return Finding(
        cause="uneven_work",
        title=f"The work is uneven, no rank is slow: {found.why}.",
        gain=Band(0.0, waited, waited),
        draws={"straggler_wait": waited},
        question=QUESTION,
        confidence=0.7,
        evidence=(Evidence("ranks waited", waited, "chip-seconds", QUESTION),),
    )


def _nth(every: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(every % 10 if every % 100 not in (11, 12, 13) else 0, "th")
    return f"{every}{ending}"


RULE = Rule(name="stragglers", causes=(*CAUSES, *BY_NAME), find=find)
