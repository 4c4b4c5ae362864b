"""Stacks of calls by number: where each allocates, on behalf of whom, and in which phase of a step."""

from dataclasses import dataclass, replace

import numpy as np

from catalog.frames import OWN, Frame, line_of, named, phase_of
from runs.tables import Tables, frame

UNRECORDED = "calls not recorded"
DEEPEST = 3  # lines of one's own code, from the one that allocates outwards, that are told apart


@dataclass(frozen=True)
class Place:
    """`where`: the line that allocates, as a person reads it; `callers`: the own lines that called it, the nearest
    first; `phase`: see `catalog.frames.PHASES`; `source`: the line with its whole path, where it is one's own."""

    where: str
    callers: tuple[str, ...]
    phase: str
    source: str | None


NOWHERE = Place(UNRECORDED, (), "unrecorded", None)


def places(tables: Tables, capture: int, wanted: np.ndarray) -> dict[int, Place]:
    """The place of each wanted stack of a capture; -1 is NOWHERE."""
    columns = ["stack", "depth", "function", "file", "line", "kind"]
    rows = frame(tables, "stacks", columns, [("capture", "==", capture)])
    rows = rows[rows["stack"].isin(set(wanted.tolist()))].sort_values(["stack", "depth"])
    text = {c: rows[c].astype(object).where(rows[c].notna(), "").tolist() for c in ("function", "file", "kind")}
    number, lines = rows["stack"].astype("int64").to_numpy(), rows["line"].fillna(0).astype("int64").tolist()
    starts = np.flatnonzero(np.r_[True, number[1:] != number[:-1]]) if len(number) else number
    found = {-1: NOWHERE}
    for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(number)], strict=False):
        frames = list(zip(text["function"][a:b], text["file"][a:b], lines[a:b], strict=True))
        own = [f for f, kind in zip(frames, text["kind"][a:b], strict=True) if kind == OWN]
        found[int(number[a])] = _place(frames, own)
    return _told_apart(found)


def _told_apart(found: dict[int, Place]) -> dict[int, Place]:
    """Lines of different files that would read alike are named by their whole paths."""
    sources: dict[str, set[str | None]] = {}
    for place in found.values():
        sources.setdefault(place.where, set()).add(place.source)
    alike = {where for where, of in sources.items() if len(of) > 1}
    return {
        n: replace(p, where=f"{p.source} {p.where.split(' ', 1)[-1]}") if p.where in alike and p.source else p
        for n, p in found.items()
    }


def _place(frames: list[Frame], own: list[Frame]) -> Place:
    """`own`: the frames of the user's own code, by what the collector says."""
    if not frames:
        return NOWHERE
    return Place(
        where=line_of(own[0]) if own else named(frames),
        callers=tuple(dict.fromkeys(line_of(f) for f in own[1:DEEPEST])),
        phase=phase_of(frames),
        source=f"{own[0][1]}:{own[0][2]}" if own else None,
    )
