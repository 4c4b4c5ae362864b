"""The file, piece by piece: clock and tracks, then row by row the texts that are new and the events that bear them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline import Row, Timeline
from analyzers.timeline.lanes import CODES, NONE, PS_PER_NS
from analyzers.timeline.pyramid import Ints
from app.timeline.perfetto import form
from app.timeline.perfetto.choosing import Chosen
from app.timeline.perfetto.facts import IID, NAMES, OF_ROLE, Facts
from app.timeline.perfetto.tracks import ROWS, begun_ns, clock, tracks
from app.timeline.perfetto.wire import MOST_BYTES, NOT_TOLD, SEQUENCE, written
from runs.tables import Tables

AT_ONCE = 1 << 15  # events
PIECE = 1 << 20  # bytes of texts, and tracks, that are written together
NEEDS = 2  # flag of a sequence: what was told before is needed
TRACKS_AT_ONCE = 1000


def pieces(of: Timeline, chosen: Chosen, tables: Tables, name: str) -> Iterator[bytes]:
    """The whole file. What it needs of the tables is read before the first piece; memory holds one piece, and what
    texts were written."""
    captures = np.unique(
        np.concatenate(
            [np.unique(of.capture[a:b]) for a, b in zip(chosen.first, chosen.last, strict=True)]
            or [np.zeros(0, np.int32)]
        )
    )
    facts = Facts(tables, captures[captures != NONE].astype(np.int64))
    return _pieces(of, chosen, facts, name)


def _pieces(of: Timeline, chosen: Chosen, facts: Facts, name: str) -> Iterator[bytes]:
    yield form.packets(*clock(of), {**_interned(), "interned_data": _fixed()})
    told = [{"track_descriptor": track, "trusted_packet_sequence_id": SEQUENCE} for track in tracks(of, chosen, name)]
    for at in range(0, len(told), TRACKS_AT_ONCE):
        yield form.packets(*told[at : at + TRACKS_AT_ONCE])
    lanes = {row: lane for lane in of.lanes for row in range(lane.first_row, lane.first_row + lane.rows)}
    seen, spare = np.zeros(len(of.names), bool), np.zeros(MOST_BYTES, np.uint8)
    for row, first, last in zip(chosen.rows.tolist(), chosen.first.tolist(), chosen.last.tolist(), strict=True):
        for at in range(first, last, AT_ONCE):
            some = slice(at, min(at + AT_ONCE, last))
            called = _interns("event_names", _fresh(of, of.name[some], seen))
            events = _events(of, row, lanes[row], some, facts, spare)
            yield from called
            yield from _interns("debug_annotation_string_values", facts.texts.taken())
            yield events


def _fresh(of: Timeline, name: NDArray[np.int32], seen: NDArray[np.bool_]) -> list[tuple[int, str]]:
    """Names by number, from 1, that no event had before."""
    found = np.unique(name)
    new = found[~seen[found]]
    seen[new] = True
    return [(int(n) + 1, of.names[n]) for n in new]


def _events(of: Timeline, row: int, lane: Row, some: slice, facts: Facts, spare: NDArray[np.uint8]) -> bytes:
    per_ns, begun = PS_PER_NS // of.tick_ps, begun_ns(of)
    start, dur = np.asarray(of.tiles.start[some]), np.asarray(of.tiles.dur[some])
    number = of.number[some].astype(np.int64)
    finer = (start % per_ns != 0) | (dur % per_ns != 0)
    annotation = IID[OF_ROLE.get(lane.lane.role, "number")]
    device = NONE if lane.lane.device is None else lane.lane.device
    which, told, first = facts.of(of.capture[some].astype(np.int64), of.op[some], device)
    spent = np.diff(first)[which[which != NOT_TOLD]].sum() if len(first) > 1 else 0
    out = np.empty(len(start) * MOST_BYTES + int(spent), np.uint8)
    length = written(
        out,
        spare,
        begun + start // per_ns,
        begun + (start + dur) // per_ns,
        dur == 0,
        ROWS + row,
        of.tiles.code[some].astype(np.int64) + 1,
        of.name[some].astype(np.int64) + 1,
        np.where(number == NONE, NOT_TOLD, annotation),
        number,
        _exact(start, finer, of.tick_ps),
        _exact(dur, finer, of.tick_ps),
        told,
        first,
        which,
    )
    return out[:length].tobytes()


def _exact(ticks: Ints, finer: NDArray[np.bool_], tick_ps: int) -> Ints:
    return np.where(finer, ticks * tick_ps, NOT_TOLD)


def _fixed() -> dict[str, Any]:
    """Texts that are known from the start: accounts, and what annotations are called."""
    return {
        "event_categories": [{"iid": n, "text": form.text(code)} for n, code in enumerate(CODES, 1)],
        "debug_annotation_names": [{"iid": n, "text": form.text(name)} for n, name in enumerate(NAMES, 1)],
    }


def _interns(kind: str, texts: list[tuple[int, str]]) -> Iterator[bytes]:
    """Packets that give texts their numbers, none much larger than a piece."""
    held: list[dict[str, Any]] = []
    size = 0
    for n, text in texts:
        held.append({"iid": n, "text": form.text(text)})
        size += len(held[-1]["text"])
        if size >= PIECE:
            yield form.packets({**_interned(), "interned_data": {kind: held}})
            held, size = [], 0
    if held:
        yield form.packets({**_interned(), "interned_data": {kind: held}})


def _interned() -> dict[str, Any]:
    return {"trusted_packet_sequence_id": SEQUENCE, "sequence_flags": NEEDS}
