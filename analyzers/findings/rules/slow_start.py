"""Servers that take long from their start until they answer: chips that are held and serve nobody, at each start."""

from analyzers.findings.base import Evidence, Finding, Rule, Seen, Told
from errors import format as fmt
from runs.serving_schema import STARTING
from runs.tables import frame

CAUSE, QUESTION = "slow_restart", "engine"
SURE = 0.8


def find(seen: Seen) -> Told:
    """What is counted as held begins with the first sample, so that a start has no gain in it: how long it took is
    told."""
    rows = frame(seen.tables, "scalars", ["name", "value"])
    took = rows["value"][(rows["name"].astype(str) == STARTING).to_numpy(dtype=bool)].dropna().astype(float)
    if not len(took):
        return Told()
    most = fmt.duration(float(took.max()))
    if len(took) == 1:
        title = f"The server took {most} from its start until it listened, and served nobody then."
    else:
        title = f"{len(took):,} starts took up to {most} each until the server listened, and served nobody then."
    finding = Finding(
        cause=CAUSE,
        title=title,
        gain=None,
        draws={},
        question=QUESTION,
        confidence=SURE,
        evidence=(
            Evidence("starts", float(len(took)), "", QUESTION),
            Evidence("until it listened, in all", float(took.sum()), "s", QUESTION),
        ),
    )
    return Told((finding,))


RULE = Rule(name="slow_start", causes=(CAUSE,), find=find)
