"""What happened to GPUs, as samples of NVIDIA's DCGM exporter tell it: rows of `evidence`.

    an Xid         when the last one of a GPU (a gauge, which stands until it is reset) becomes another, or when more of
                   it are counted: in a window (XID_ERRORS_COUNT) or since the exporter began (XID_ERRORS_TOTAL)
    faults         uncorrectable errors of memory, and rows that were remapped for them, when they grow
    held down      clocks that heat or a power brake holds down, when that begins; of what stood in the first scrape,
                   which may always have been so, once a later one shows that it lasts

What stood in the first scrape of a GPU came nobody knows when, and is told as lost; but for a count in a window, which
tells that it came within that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from catalog.cause_patterns import XIDS
from collectors.reading.evidence import Evidence
from collectors.reading.textlog import NS_PER_S, Tally, digits

XID = "DCGM_FI_DEV_XID_ERRORS"
REASONS = ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
SLOWED: tuple[tuple[int, str, str | None], ...] = (  # bit of the reasons, what holds clocks down, its cause
    (0x04, "the power limit", None),  # what a busy GPU usually meets
    (0x20, "heat (software)", "thermal"),
    (0x40, "heat (hardware)", "thermal"),
    (0x80, "the power brake", "power"),
)
_COUNTED = {  # counts of events: the label that says of which; whether they are of a window
    "DCGM_EXP_XID_ERRORS_COUNT": ("xid", True),
    "DCGM_EXP_XID_ERRORS_TOTAL": ("xid", False),
    "DCGM_EXP_CLOCK_EVENTS_COUNT": ("clock_event", True),
    "DCGM_EXP_CLOCK_EVENTS_TOTAL": ("clock_event", False),
}
_CLOCK_EVENTS = {"sw_thermal": "thermal", "hw_thermal": "thermal", "hw_power_brake": "power"}
_GROWS = (
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
)
MOST_XID = 999
_WINDOW_NS = 300 * NS_PER_S  # in which the exporter counts, unless it is told another
_STOOD = "they stood in the first scrape of their GPU: when they came is not told"


class Place(NamedTuple):
    """A GPU, or a MIG instance of it."""

    host: str | None
    device: int
    mig: str = ""

    @property
    def gpu(self) -> "Place":
        return self._replace(mig="")


class Event(NamedTuple):
    """Which event a series counts, and in how many ns; None: since the exporter began."""

    kind: str  # xid or clock_event
    which: str
    window_ns: int | None


@dataclass
class Now:
    """What a scrape tells of one place: of each field values with the texts of their series; counts of events."""

    values: dict[str, tuple[float, str]] = field(default_factory=dict)
    counts: dict[Event, tuple[float, str]] = field(default_factory=dict)
    pods: dict[str, dict[str, float]] = field(default_factory=dict)  # of fields that each pod may tell another of
    users: set[str] = field(default_factory=set)  # pods


def event_of(name: str, labels: Mapping[str, str]) -> Event | None:
    """The event that a series counts; None where it counts none."""
    label, windowed = _COUNTED.get(name, ("", False))
    which = labels.get(label, "").strip()
    if not which or which == "0":
        return None
    ms = digits(labels.get("window_size_in_ms", ""))
    window_ns = ms * 1_000_000 if ms and ms < 1 << 40 else _WINDOW_NS
    return Event(label, which[:40], window_ns if windowed else None)


class Events:
    """Evidence of one input, scrape by scrape."""

    def __init__(self, evidence: Evidence, tally: Tally):
        self._evidence, self._tally = evidence, tally
        self._before: dict[tuple[Place, str], float] = {}
        self._counted: dict[Place, dict[Event, float]] = {}
        self._told: dict[tuple[Place, int], int | None] = {}  # when an Xid was told last
        self._seen: set[Place] = set()
        self._stood: set[tuple[Place, int]] = set()  # what held clocks down in the first scrape, and no other yet

    def see(self, scrape: Mapping[Place, Now], ts_ns: int | None) -> None:
        for place, now in scrape.items():
            if now.counts or place in self._counted:
                self._counts(place, now, ts_ns)
            for name, (value, text) in now.values.items():
                if name in REASONS:
                    self._reasons(place, name, value, text, ts_ns)
                elif name == XID:
                    self._last_xid(place, value, text, ts_ns)
                elif name in _GROWS:
                    before = self._before.get((place, name))
                    self._before[(place, name)] = value
                    if before is not None and value > before:
                        self._add("hbm", place, text, value, ts_ns, "error")
        self._seen.update(place.gpu for place in scrape)

    def _counts(self, place: Place, now: Now, ts_ns: int | None) -> None:
        """Series of an event begin with its first, and end where the exporter is started anew."""
        before = self._counted.get(place, {})
        for event, (count, text) in now.counts.items():
            if count <= before.get(event, 0.0):
                continue
            if event.window_ns is None and event not in before and place.gpu not in self._seen:
                self._tally.add("events of GPUs", _STOOD)
            elif event.kind == "clock_event":
                if (cause := _CLOCK_EVENTS.get(event.which)) is not None:
                    self._add(cause, place, text, count, ts_ns, "warning")
            elif (xid := digits(event.which)) is not None:
                self._xid(place, xid, text, count, ts_ns)
        self._counted[place] = {event: count for event, (count, _) in now.counts.items()}

    def _last_xid(self, place: Place, value: float, text: str, ts_ns: int | None) -> None:
        """Newer exporters tell of the last Xid once there is one."""
        before = self._before.get((place, XID))
        self._before[(place, XID)] = value
        if value <= 0 or value == before:
            return
        if before is None and place.gpu not in self._seen:
            self._tally.add("Xids", _STOOD)
        elif not self._counted.get(place) or not self._just_told(place, int(value), ts_ns):
            self._xid(place, int(value), text, value, ts_ns)

    def _just_told(self, place: Place, xid: int, ts_ns: int | None) -> bool:
        """Whether a count told of it already, which may have come a scrape before the gauge does."""
        if (place, xid) not in self._told:
            return False
        last = self._told[(place, xid)]
        return last is None or ts_ns is None or ts_ns - last <= _WINDOW_NS

    def _reasons(self, place: Place, name: str, value: float, text: str, ts_ns: int | None) -> None:
        if not 0 <= value < 1 << 32:
            return
        first = (place, name) not in self._before
        before = int(self._before.get((place, name), 0))
        self._before[(place, name)] = value
        for bit, _, cause in SLOWED:
            stood = (place, bit) in self._stood
            self._stood.discard((place, bit))
            if not cause or not int(value) & bit:
                continue
            if first:
                self._stood.add((place, bit))
                self._tally.add("clocks held down", _STOOD)
            elif stood or not before & bit:
                self._add(cause, place, text, value, ts_ns, "warning")

    def _xid(self, place: Place, xid: int, text: str, value: float, ts_ns: int | None) -> None:
        if xid > MOST_XID:
            self._tally.add("Xids", f"numbers above {MOST_XID}, which no driver has")
            return
        self._told[(place, xid)] = ts_ns
        if (cause := XIDS.get(xid, "driver")) is not None:
            self._add(cause, place, text, value, ts_ns, "error")

    def _add(self, cause: str, place: Place, text: str, value: float, ts_ns: int | None, severity: str) -> None:
        said = f"{text[:400]} {value:g}"
        self._evidence.add(cause, 0, said, None, ts_ns=ts_ns, host=place.host, device=place.device, severity=severity)
