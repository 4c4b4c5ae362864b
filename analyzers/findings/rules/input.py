"""Steps that wait for their input: in each step, or in stalls now and then."""

import numpy as np
import pandas as pd

from analyzers.device.input import InputResult
from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.findings.carried import carried
from analyzers.findings.parts import FETCH
from analyzers.findings.places import rank_of
from analyzers.findings.rules.stragglers import reasons
from analyzers.ranks.stragglers import StragglersResult
from errors import format as fmt

QUESTION = "input"
CAUSES = ("slow_loader", "loader_stalls", "uneven_loader")
OTHERS = CAUSES[:2]
STALL = 0.3  # of the longest fetch: what a stall takes at least
OFTEN = 0.5  # of steps: a loader that holds up more of them is slow, one that holds up fewer stalls
SPREAD = 0.1
FEW, APART, LATE = 2, 3.0, 0.05
"""Steps that a profile must show at least; times what the next slowest host fetches for; of a step, by how much more:
then one host's input holds up all."""


def find(seen: Seen) -> Told:
    found = seen.answer(QUESTION, InputResult)
    if found is None:
        return Told(not_told=(NotTold(OTHERS, seen.answers.why(QUESTION), "a profile, or fetches in the goodput log"),))
    if found.verdict == "unknown":
        return Told(
            not_told=(
                NotTold(
                    OTHERS,
                    "no input tells when batches were fetched",
                    "a profile with annotations of fetches, or data_loading entries in the goodput log",
                ),
            )
        )
    if (one := _one_host(seen, found)) is not None:
        return Told((one,))
    if found.verdict == "hidden":
        return Told(ruled_out=tuple(RuledOut(c, "a fetch makes no step longer", QUESTION) for c in OTHERS))
    likely = waited(seen, found)
    long = stalling(found)
    steps = [int(s) for s in long.index]
    share = len(steps) / max(int((found.rows["kept"] & found.rows["fetch_s"].notna()).sum()), 1)
    stalls = likely * of_stalls(found, long)
    cause = "slow_loader"
    title = f"Devices wait for input in {fmt.whole_share(found.usual_waited_share or 0.0)} of a usual step."
    if not len(found.rows):
        title = (
            f"Devices wait for input between their operations: {fmt.whole_share(likely / seen.whole)} of the chip time."
        )
    if steps and (found.verdict == "stalls" or share < OFTEN):
        if stalls >= seen.least:
            cause, likely = "loader_stalls", stalls
            title = f"The loader stalls {_often(steps)}, {fmt.duration(float(long.max()))} at the longest."
        elif likely - stalls < seen.least:
            why = f"devices waited for input in {fmt.share(likely / seen.whole) if seen.whole else 'nothing'}"
            return Told(ruled_out=tuple(RuledOut(c, why, QUESTION) for c in OTHERS))
    return Told(
        (
            Finding(
                cause=cause,
                title=title,
                gain=Band.within(likely, SPREAD),
                draws={
                    "input_wait": min(likely, seen.amount("input_wait")),
                    "unattributed": max(likely - seen.amount("input_wait"), 0.0),
                },
                question=QUESTION,
                confidence=0.95 if found.ledger else 0.8,
                basis="measured" if found.ledger else "derived",
                where=Where(steps=_place(steps)) if cause == "loader_stalls" else Where(),
                evidence=(
                    Evidence("devices waited for input", found.waited_s or 0.0, "chip-seconds", QUESTION),
                    *_usual(found),
                ),
            ),
        )
    )


def _usual(found: InputResult) -> tuple[Evidence, ...]:
    """A usual fetch; none of a run without steps."""
    if not len(found.rows):
        return ()
    return (Evidence("a usual fetch", found.median_fetch_s or 0.0, "s", QUESTION),)


def _one_host(seen: Seen, found: InputResult) -> Finding | None:
    """One host whose fetches alone hold up all, where Stragglers does not tell of its rank's input: a few steps show
    it."""
    hosts = found.hosts.sort_values("fetch_s", ascending=False, ignore_index=True)
    if len(hosts) < 2 or not found.median_step_s:
        return None
    first, second = (float(s) for s in hosts["fetch_s"].iloc[:2])
    steps = int(hosts["steps"].iloc[0])
    if steps < FEW or first < APART * second or first - second < LATE * found.median_step_s:
        return None
    host = str(hosts["host"].iloc[0])
    if not host:
        return None  # that of the job's own log: which it is, nothing says
    if _told_already(seen.answer("stragglers", StragglersResult), host):
        return None
    gain = carried(seen, float(hosts["beyond_s"].iloc[0]) * seen.chips, FETCH, of_all_ranks=True)
    rank = rank_of(seen, host, "")
    return Finding(
        cause="uneven_loader",
        title=f"{f'Rank {rank} ({host})' if rank != '' else host} waits {fmt.duration(first)} for its input in each of "
        f"the {steps:,} steps profiled, others {fmt.duration(second)} at most: all wait for it.",
        gain=gain,
        draws=seen.drawn(gain.likely, "input_wait", "straggler_wait", "unattributed"),
        question=QUESTION,
        confidence=0.8,
        where=Where(ranks=() if rank == "" else (rank,), hosts=(host,)),
        evidence=(
            Evidence("a fetch of its own, median", first, "s", QUESTION),
            Evidence("of the next slowest host", second, "s", QUESTION),
        ),
    )


def _told_already(told: StragglersResult | None, host: str) -> bool:
    """Whether Stragglers tells all there is to this input: it names a rank of the host for it, or sees nobody late in
    more than a step or two. Where it names ranks for something else, or each in turn, the input of one is another
    fault."""
    if told is None or told.verdict == "unknown":
        return False
    named = told.ranks[told.ranks["host"].astype(str) == host] if len(told.ranks) else told.ranks
    rows = named.to_dict("records")
    return told.verdict not in ("persistent", "rotating") or any("input" in reasons(told, row) for row in rows)


def waited(seen: Seen, found: InputResult) -> float:
    """Chip-seconds of waiting: as a profile saw it, on devices without one as on those that have one, since all meet in
    each step, and in steps that none saw as in those that it saw. Of a profile without steps what lies between
    operations: before the first a loader may have been starting."""
    if not len(found.rows):
        return float(found.waited_s or 0.0)
    rows = found.rows[found.rows["usual"]]
    watched = rows[rows["devices"] > 0]
    measured = float(seen.amount("input_wait"))
    if len(watched):
        measured *= max(seen.chips / float(watched["devices"].astype(float).median()), 1.0)
    if not len(watched) or len(watched) == len(rows):
        return max(measured, float(found.waited_s or 0.0))
    unseen = rows[rows["devices"] == 0]
    fetched = unseen["fetch_s"].astype(float)
    if fetched.notna().mean() > OFTEN:  # where fetches of those steps are told, as much of each is waited
        exposed = float(watched["waited_s"].sum()) / max(float(watched["fetch_s"].astype(float).sum()), 1e-12)
        return measured + float(fetched.fillna(0).sum()) * min(exposed, 1.0) * seen.chips
    return measured + float(watched["waited_s"].astype(float).mean()) * len(unseen) * seen.chips


def stalling(found: InputResult) -> pd.Series:
    """Fetches (s, by step) that take a good part of the longest, without those of first steps."""
    rows = found.rows[found.rows["kept"] & found.rows["fetch_s"].notna()].iloc[1:]
    fetch = pd.Series(rows["fetch_s"].to_numpy(dtype=float), index=rows["step"].to_numpy(dtype=np.int64))
    return fetch[fetch > max(STALL * float(fetch.max()), 0.0)] if len(fetch) else fetch


def of_stalls(found: InputResult, long: pd.Series) -> float:
    """Of what devices waited the share that stalls are, beyond usual fetches; all, where no profile looked and stalls
    alone are known to have held them up."""
    rows = found.rows[found.rows["kept"] & found.rows["fetch_s"].notna()]
    if not (rows["devices"] > 0).any():
        return 1.0
    fetch = rows["fetch_s"].to_numpy(dtype=float)[1:]
    return float((long - np.median(fetch)).clip(lower=0.0).sum()) / float(fetch.sum()) if fetch.sum() > 0 else 0.0


def _place(steps: list[int]) -> Steps | tuple[int, ...]:
    """As first, last and every where they follow one another at one distance."""
    gaps = {b - a for a, b in zip(steps[:-1], steps[1:], strict=True)}
    return Steps(steps[0], steps[-1], gaps.pop()) if len(gaps) == 1 and len(steps) > 2 else tuple(steps)


def _often(steps: list[int]) -> str:
    place = _place(steps)
    if isinstance(place, Steps):
        each = f"every {place.every} steps" if place.every > 1 else "in each step"
        return f"{each} from {place.first:,} to {place.last:,}"
    if len(steps) == 1:
        return f"in step {steps[0]:,}"
    return f"in {fmt.count(len(steps), 'step')} between {steps[0]:,} and {steps[-1]:,}"


RULE = Rule(name="input", causes=CAUSES, find=find)
