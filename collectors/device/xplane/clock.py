"""A device's own clock, and where its times lie on the host's.

The times of a TPU's events (`offset_ps`, `duration_ps`) are moved onto the host's clock by the profiler, piece by
piece, and come out stretched, shrunk and shifted where it reckoned badly: on one trace of 100 s an operation of 8 ms
lasted 0.000 ms, and others stood 200 ms late. What the device measured are the stats `device_offset_ps` and
`device_duration_ps`. Where events carry them, those are used: durations, gaps and order within a device are its own,
and the host's times only tell how far the device's clock is to be moved as a whole.

    lag = time on the host's clock - time on the device's own

Lines of the same device without such stats (program runs, asynchronous operations) are moved back by the lag that
operations had about then: the profiler moved them alike.
"""

from collections.abc import Sequence

import numpy as np

from collectors.device.xplane.tables import CLOCK, EVENT_TAG, KNOT_STEP, N_KNOTS, NEAR_HOST, NEAR_LAG, OWN, OWN_SHIFT
from collectors.device.xplane.wire import BYTES, kernel, part, skip, varint

OFFSET, DURATION = b"device_offset_ps", b"device_duration_ps"
SAMPLES = 1 << 12  # events of a line from which its device's clock is learnt
KNOT_ROWS = 1 << 14  # points of the lag between two calls of the decoder
_MOST_POINTS = 1 << 17  # points kept for a device; beyond, every other one goes
_STEP_PS = 1_000_000  # the lag is noted anew where it has changed by a microsecond
_DRIFT = 1e-3  # clocks that differ by more than that in pace are none


@part
def _stat(buf, p, stop):
    """(a stat's identifier, its whole number, whether it is one, the position behind it: negative where damaged)."""
    key, value, whole = np.int64(0), np.int64(0), False
    while 0 <= p < stop:
        tag, p = varint(buf, p, stop)
        if p < 0:
            break
        if tag == 0x08:
            key, p = varint(buf, p, stop)
        elif tag == 0x18 or tag == 0x20:
            value, p = varint(buf, p, stop)
            whole = True
        else:
            p = skip(buf, tag, p, stop)
    return key, value, whole and p >= 0, p


@kernel
def samples(buf, pos, stop, limit, offset_id, duration_id, out):
    """Fills `out` with (offset on the host's clock, offset on the device's own), ps, of a line's first events that tell
    both; returns how many. `offset_id`, `duration_id`: identifiers of the stats."""
    n = 0
    seen = 0
    while pos < limit and pos < stop and seen < out.shape[0]:
        tag, p = varint(buf, pos, stop)
        size = np.int64(0)
        if p >= 0 and tag & 7 == BYTES:
            size, p = varint(buf, p, stop)
            if p < 0 or size < 0 or size > stop - p:
                break
        elif p >= 0:
            p = skip(buf, tag, p, stop)
        if p < 0 or tag >> 3 <= 0:
            break
        end = p + size
        pos = end
        if tag != EVENT_TAG:
            continue
        seen += 1
        host, own, told = np.int64(0), np.int64(0), 0
        while 0 <= p < end:
            tag, p = varint(buf, p, end)
            if p < 0:
                break
            if tag == 0x10:
                host, p = varint(buf, p, end)
            elif tag == 0x22:
                size, p = varint(buf, p, end)
                if p < 0 or size < 0 or size > end - p:
                    p = -1
                    break
                key, value, whole, p = _stat(buf, p, p + size)
                if whole and key == offset_id:
                    own = value
                    told |= 1
                elif whole and key == duration_id:
                    told |= 2
            else:
                p = skip(buf, tag, p, end)
        if p >= 0 and told == 3:
            out[n, 0] = host
            out[n, 1] = own
            n += 1
    return n


def densest(values: np.ndarray) -> float:
    """Where values lie closest (the half-sample mode): of the shortest stretch with half of them, again the half.

    Values that agree are found among others that lie anywhere, which no mean and no median does.
    """
    ordered = np.sort(values)
    while len(ordered) > 2:
        half = (len(ordered) + 1) // 2
        width = ordered[half - 1 :] - ordered[: len(ordered) - half + 1]
        least = int(width.argmin())
        ordered = ordered[least : least + half]
    return float(ordered.mean())


def offsets(devices: Sequence[np.ndarray]) -> list[int]:
    """ps to add to the own times of each device to place them on the host's clock, from (host, own) samples of each,
    by the former.

    What most samples agree on, for clocks that also differ in pace: all offsets are those of one moment, the first
    sample of all, so that devices whose clocks run alike stay together.
    """
    first = min((int(s[:, 0].min()) for s in devices if len(s)), default=0)
    found = []
    for sample in devices:
        if not len(sample):
            found.append(0)
            continue
        base = int(sample[0, 0] - sample[0, 1])  # exact, however far apart the clocks are
        since = (sample[:, 0] - first).astype(float)
        lag = (sample[:, 0] - sample[:, 1] - base).astype(float)
        half = len(lag) // 2
        apart = since[half:] - since[: len(lag) - half]
        ahead = lag[half:] - lag[: len(lag) - half]
        pace = ahead[apart > 0] / apart[apart > 0]
        drift = densest(pace) if len(pace) > 8 else 0.0
        drift = drift if abs(drift) < _DRIFT else 0.0
        found.append(base + round(densest(lag - drift * since)))
    return found


class DeviceClock:
    """The clock of the plane at hand, while its lines are decoded."""

    def __init__(self) -> None:
        self.own = np.zeros(CLOCK, np.int64)  # what the decoder needs, and keeps between calls
        self.knots = np.zeros((KNOT_ROWS, 2), np.int64)  # (time on the host's clock, lag), filled by the decoder
        self.used = False  # whether any operation told its device's own times
        self.next_plane()

    def next_plane(self) -> None:
        """Forgets the plane before."""
        self._points: list[np.ndarray] = []
        self._ends: dict[int, np.ndarray] = {}  # by line: the last point met, which no change of the lag made known
        self._left: dict[int, np.ndarray] = {}  # by line: `own` where a piece of it ended
        self._count = 0
        self._step = _STEP_PS
        self._table: np.ndarray | None = None

    def line(self, shift: int | None, line: int) -> None:
        """Must be called before a line is decoded, or a further piece of it. `shift`: ps to add to its own times, None
        where it tells none. `line`: its number."""
        self.own[:] = 0
        if shift is not None:
            self.own[:] = self._left.get(line, 0)
            self.own[OWN] = max(self.own[OWN], 1)
            self.own[OWN_SHIFT], self.own[KNOT_STEP] = shift, self._step

    def take(self, ended: int | None = None) -> None:
        """Keeps what the decoder noted. `ended`: the line whose piece ends here."""
        n = int(self.own[N_KNOTS])
        points = self.knots[:n].copy()
        self.own[N_KNOTS] = 0
        if ended is not None and self.own[OWN]:
            self._left[ended] = self.own.copy()
            if self.own[OWN] == 2:
                self._ends[ended] = self.own[None, [NEAR_HOST, NEAR_LAG]]
                self._table = None
        if not len(points):
            return
        self.used = True
        self._points.append(points)
        self._count += len(points)
        self._table = None
        if self._count > _MOST_POINTS:
            kept = self._ordered()[::2]
            self._points, self._count, self._step = [kept], len(kept), 2 * self._step
            self._ends.clear()
            self.own[KNOT_STEP] = self._step

    def _ordered(self) -> np.ndarray:
        points = np.concatenate(self._points + [*self._ends.values()])
        return points[np.argsort(points[:, 0], kind="stable")]

    @property
    def known(self) -> bool:
        """Whether a line of this plane told the device's own times."""
        return bool(self._points)

    def moved(self, start: np.ndarray, dur: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(start, duration) on the device's own clock of events that the profiler moved onto the host's."""
        if self._table is None:
            self._table = self._ordered()
        at, lag = self._table[:, 0], self._table[:, 1]
        new = start - np.rint(np.interp(start, at, lag)).astype(np.int64)
        end = start + dur - np.rint(np.interp(start + dur, at, lag)).astype(np.int64)
        return new, np.maximum(end - new, 0)
