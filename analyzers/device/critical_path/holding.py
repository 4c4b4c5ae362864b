"""Whether one rank holds the paths of the others: only where it is far from its peers, often, and by an amount.

A rank is named where, in at least OFTEN of the steps (at least STEPS of them), it is the one on which most of the other
ranks' paths passed, and the median over those steps of the margins by which it came last into their collectives
(after the rank that came next to last, added up over the collectives on paths) is at least FLOOR of the step.
The reference is the next to last rank: what mending the one alone could give.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.critical_path.kinds import EXECUTION
from analyzers.device.critical_path.lanes import Executions

STEPS, OFTEN, FLOOR = 20, 0.6, 0.02
ONE_DEVICE, NO_STEPS, NO_MEETING, FEW_STEPS, ROTATING, SMALL, NAMED = (
    "one_device",
    "no_steps",
    "no_collective",
    "few_steps",
    "rotating",
    "small",
    "named",
)
"""Why nobody is named: the run shows one device; paths are of no steps; no collective was compared over ranks; too few
steps; no rank holds the paths in most steps; one does, by less than the floor. Or one is."""


@dataclass(frozen=True)
class Holder:
    """`reason`: see above. `host`, `device`: of the rank that most often holds the others' paths, null where none does;
    `steps`: how many it does so, of `of_steps`; `margin_share`: median over those steps of its margin, of the step."""

    reason: str
    host: str | None = None
    device: int | None = None
    steps: int = 0
    of_steps: int = 0
    margin_share: float | None = None


def holder(
    links: np.ndarray, rows: pd.DataFrame, ran: Executions, device: np.ndarray, places: list[tuple[str, int]]
) -> Holder:
    """`rows`: of each path lane, step and taken; `device`: of each lane; `places`: host and device of each device."""
    if len(places) < 2:
        return Holder(ONE_DEVICE)
    known = rows["step"].notna().to_numpy()
    if not known.any():
        return Holder(NO_STEPS)
    links = links[known[links[:, 0]]]
    step = np.full(len(rows), -1)
    step[known] = rows[known].groupby(["step", "taken"]).ngroup().to_numpy()
    owner, of = device[rows["lane"].to_numpy()][links[:, 0]], step[links[:, 0]]
    held_by = device[links[:, 3]]
    count = int(step.max()) + 1
    others = np.where(held_by != owner, links[:, 6] - links[:, 5], 0)
    held = np.bincount(of * len(places) + held_by, others, count * len(places)).reshape(count, len(places))
    seen = held.any(axis=1)
    if not seen.any():
        return Holder(NO_MEETING, of_steps=count)
    most = held.argmax(axis=1)
    often = np.bincount(most[seen], minlength=len(places))
    who = int(often.argmax())
    margins = _margins(links, of, ran, device)
    mine = np.flatnonzero(seen & (most == who))
    width = (rows["end_ns"] - rows["start_ns"])[known].groupby(step[known]).mean().to_numpy(dtype=float)
    share = float(np.median(margins.get(who, np.zeros(count))[mine] / width[mine]))
    told = {"host": places[who][0], "device": places[who][1], "steps": int(often[who]), "of_steps": count}
    if count < STEPS:
        reason = FEW_STEPS
    else:
        reason = ROTATING if often[who] < OFTEN * count else SMALL if share < FLOOR else NAMED
    return Holder(reason, **told, margin_share=share)


def _margins(links: np.ndarray, of: np.ndarray, ran: Executions, device: np.ndarray) -> dict[int, np.ndarray]:
    """By device, ns by step: the margins of the collectives into which it came last, each once."""
    which = links[:, 2]
    mine = np.flatnonzero(links[:, 1] == EXECUTION)
    mine = mine[ran.transfer[which[mine]] >= 0]
    met = pd.DataFrame({"step": of[mine], "last": ran.last[which[mine]], "margin": ran.margin[which[mine]]})
    met = met.drop_duplicates(["step", "last"])
    who = device[ran.lane[met["last"].to_numpy()]]
    count = int(of.max()) + 1 if len(of) else 1
    return {int(d): np.bincount(met["step"][who == d], met["margin"][who == d], count) for d in np.unique(who).tolist()}
