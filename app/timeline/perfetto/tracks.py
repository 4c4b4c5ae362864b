"""Tracks: one below the run for each place, below that one for each row, in the timeline's order; and the clock.

Rows of one lane have its name and one key, so that Perfetto draws them as one track, their events below one another:
none covers another, and none is dropped.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from analyzers.timeline import Row, Timeline
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.lanes import DEVICE, HOST, PS_PER_NS, Lane
from app.questions.timeline.words import ROLES
from app.timeline.perfetto import form
from app.timeline.perfetto.choosing import Chosen
from app.timeline.perfetto.wire import SEQUENCE
from errors import format as fmt

CLEARED = 1  # flags of a sequence: numbers of texts begin here
RUN, ROWS = 1, 2  # numbers of tracks: the run's, and the first row's
EARLIEST_NS, LATEST_NS = 365 * 86_400 * 10**9, (1 << 63) - 1  # of a time of day: what counts from nought is before it


def begun_ns(of: Timeline) -> int:
    """What Perfetto's clock shows at the timeline's origin: ns since 1970 where that is a time of day that it can
    count, else 0."""
    return of.origin_ns if _dated(of) else 0


def _dated(of: Timeline) -> bool:
    return of.dated and EARLIEST_NS <= of.origin_ns <= LATEST_NS - of.span * of.tick_ps // PS_PER_NS


def clock(of: Timeline) -> list[dict[str, Any]]:
    """The first packet, and which clock the events' times are of."""
    first: dict[str, Any] = {
        "trusted_packet_sequence_id": SEQUENCE,
        "sequence_flags": CLEARED,
        "first_packet_on_sequence": True,
    }
    if not _dated(of):
        return [first]
    first["trace_packet_defaults"] = {"timestamp_clock_id": form.REALTIME}
    same = [{"clock_id": n, "timestamp": begun_ns(of)} for n in (form.REALTIME, form.BOOTTIME)]
    shown = {"clocks": same, "primary_trace_clock": form.REALTIME}
    return [first, {"clock_snapshot": shown, "trusted_packet_sequence_id": SEQUENCE}]


def said(of: Timeline, chosen: Chosen) -> str:
    """What must be known to read it, as the run's track describes it."""
    seconds = of.tick_ps / 1e12
    counted = "Times are of day, by the hosts' own clocks" if _dated(of) else "Times count from the first event"
    exact = "start_ps (since the first event) and dur_ps are exact where whole nanoseconds are not. "
    ticks = "Times are whole nanoseconds. " if of.tick_ps == PS_PER_NS else f"They are whole nanoseconds; {exact}"
    return (
        f"{fmt.count(chosen.events, 'event')} of {of.events:,} that the timeline draws, from "
        f"{fmt.exact_duration(chosen.start * seconds)} to {fmt.exact_duration(chosen.end * seconds)}. An event that "
        f"the window cuts is whole. {counted}. {ticks}Categories are accounts of the ledger. {' '.join(of.notes)}"
    ).strip()


def tracks(of: Timeline, chosen: Chosen, name: str) -> Iterator[dict[str, Any]]:
    """Descriptors of what has a row that was chosen."""
    yield {"uuid": RUN, "name": form.text(name), "description": said(of, chosen).encode()} | _ordered()
    wanted = set(chosen.rows.tolist())
    names, places = _names(of), dict[tuple[Any, ...], int]()
    for n, lane in enumerate(of.lanes):
        rows = [r for r in range(lane.first_row, lane.first_row + lane.rows) if r in wanted]
        if rows and _place(lane.lane) not in places:
            places[_place(lane.lane)] = number = ROWS + of.tiles.rows + len(places)
            called = {"uuid": number, "parent_uuid": RUN, "name": form.text(_called(lane.lane))}
            yield called | {"sibling_order_rank": len(places)} | _ordered()
        for row in rows:
            yield {
                "uuid": ROWS + row,
                "parent_uuid": places[_place(lane.lane)],
                "name": form.text(names[n]),
                "sibling_order_rank": row,
                "sibling_merge_behavior": form.BY_KEY,
                "sibling_merge_key_int": n + 1,
            }


def _ordered() -> dict[str, Any]:
    return {"child_ordering": form.EXPLICIT}


def _place(lane: Lane) -> tuple[Any, ...]:
    return lane.group, lane.host, lane.device


def _called(lane: Lane) -> str:
    """`device 0/3`, `host 0`, `job`."""
    where = lane.host if lane.device is None else f"{lane.host}/{lane.device}"
    return f"{lane.group} {where}".strip()


def _names(of: Timeline) -> list[str]:
    """Of each lane below its place; several of one name are told apart by their lines."""
    names = [_name(lane) for lane in of.lanes]
    alike = Counter((_place(lane.lane), name) for lane, name in zip(of.lanes, names, strict=True))
    return [
        f"{name} ({lane.lane.line})" if alike[_place(lane.lane), name] > 1 and lane.lane.line != name else name
        for lane, name in zip(of.lanes, names, strict=True)
    ]


def _name(row: Row) -> str:
    lane = row.lane
    if lane.role == ACCOUNT:
        return "accounts"
    if lane.group in (DEVICE, HOST):
        return (ROLES.get(lane.role) if lane.group == DEVICE else "") or lane.line
    return lane.line
