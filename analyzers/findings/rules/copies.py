"""Copies that no computing covers: to devices, from them, and between or within them.

How long nothing else ran is the ledger's. Which way the copies went their names tell, each by its part of the time that
all copies of devices took.
"""

import re

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told, Where
from analyzers.findings.carried import carried, covering
from errors import format as fmt
from runs.tables import frame

ACCOUNT, QUESTION = "exposed_copies", "operations"
WAYS = (
    ("host_to_device", re.compile(r"H(ost)?[ _]?(to|2)[ _]?D", re.IGNORECASE), "from their hosts"),
    ("device_to_host", re.compile(r"D(evice)?[ _]?(to|2)[ _]?H", re.IGNORECASE), "to their hosts"),
)
OTHER = "exposed_copies"
CAUSES = (*(cause for cause, _, _ in WAYS), OTHER)
MENDED = 0.9  # of the time: what is needed is copied all the same
MOST_NAMED = 3  # operations that are named


def find(seen: Seen) -> Told:
    if not seen.tables.rows("op_events"):
        untold = (CAUSES[0], OTHER)  # of copies to hosts the rule about hosts says so
        return Told(not_told=(NotTold(untold, "no profile tells what devices copied", "a profile"),))
    amount = seen.amount(ACCOUNT)
    whole = carried(seen, amount, devices="copies_s")
    if whole.likely < seen.least:
        why = f"copies that nothing covers took {fmt.share(whole.likely / seen.whole)} of the chip time"
        return Told(ruled_out=tuple(RuledOut(c, why, "overlap") for c in CAUSES))
    names, ways = _copies(seen)
    beside = covering(seen).likely
    found = [
        _finding(seen, cause, says, whole.scaled(ways[cause]), beside, amount * ways[cause], names[cause])
        for cause, says in (*((c, s) for c, _, s in WAYS), (OTHER, ""))
        if ways.get(cause, 0.0) > 0 and ways[cause] * whole.likely >= seen.least
    ]
    out = [RuledOut(c, "other copies take the time", QUESTION) for c in CAUSES if c not in {f.cause for f in found}]
    return Told(tuple(found), tuple(out))


def _copies(seen: Seen) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    """The copies that took the longest, and the part of the time of all copies, by cause."""
    ops = frame(seen.tables, "ops", ["capture", "op_id", "op", "category", "role"])
    ops = ops[(ops["category"] == "copy") & (ops["role"] != "host")]
    events = frame(seen.tables, "op_events", ["capture", "op_id", "dur_ps"])
    took = events.groupby(["capture", "op_id"], observed=True)["dur_ps"].sum().rename("took").astype(float)
    rows = ops.join(took, on=["capture", "op_id"], how="inner")
    by_name = rows.groupby(rows["op"].astype(str))["took"].sum().sort_values(ascending=False)
    if not by_name.sum():
        return {OTHER: ()}, {OTHER: 1.0}
    way = by_name.index.map(lambda name: next((c for c, of, _ in WAYS if of.search(name)), OTHER))
    names = {str(cause): tuple(by_name.index[way == cause][:MOST_NAMED]) for cause in set(way)}
    return names, {str(cause): float(s) for cause, s in (by_name.groupby(way).sum() / by_name.sum()).items()}


def _finding(
    seen: Seen, cause: str, says: str, whole: Band, beside: float, amount: float, names: tuple[str, ...]
) -> Finding:
    """`beside`: computing, beside which copies can be hidden and no further; what they take beyond it goes only where
    less is copied, or faster. No more is given back than what they take."""
    likely = MENDED * whole.likely
    most = min(whole.high, seen.whole) if whole.likely > amount * (1 + 1e-9) else whole.likely
    who = f"Devices wait for copies {says}" if says else "Devices copy and do nothing else"
    return Finding(
        cause=cause,
        title=f"{who}: {fmt.whole_share(whole.likely / seen.whole)} of the chip time.",
        gain=Band(min(MENDED * min(whole.low, beside), likely), likely, max(most, likely)),
        draws=seen.drawn(likely, ACCOUNT, "unattributed"),
        question=QUESTION,
        confidence=0.85,
        where=Where(operations=names),
        evidence=(Evidence("copies that nothing covers", amount, "chip-seconds", "overlap"),),
    )


RULE = Rule(name="copies", causes=CAUSES, find=find)
