"""Events of profiles: read piece by piece, each put into the lane of its operation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from analyzers.time.device_time import PRODUCTS
from analyzers.timeline.kinds import kinds_of
from analyzers.timeline.lanes import CODE, DEVICE, HOST, NONE, PS_PER_NS, Lane, Part, texts
from analyzers.timeline.pyramid import Ints
from runs.tables import Tables, batches, frame, int_column

FARTHEST_PS = 1 << 60  # of a capture: 13 days
UNTOLD = np.iinfo(np.int64).max
PIECE_ROWS = 1 << 19  # of `op_events` that are in memory at once
MOST_CAPTURES = 8  # whose operations are
COLUMNS = ("capture", "op_id", "device", "start_ps", "dur_ps", "event")
OF_CATEGORY = {
    "collective": "exposed_communication",
    "copy": "exposed_copies",
    "infeed": "input_wait",
    "outfeed": "input_wait",
    "control": "unattributed",
    "annotation": "unattributed",
    "host": "host",
}


@dataclass(frozen=True)
class Capture:
    """`turn`: which of the run's it is."""

    number: int
    turn: int
    base_ns: int
    dated: bool


def traced(tables: Tables, piece_rows: int = PIECE_ROWS) -> Iterator[Part]:
    """All events of profiles that have a place in time."""
    yield from placed_in_time(tables, batches(tables, "op_events", COLUMNS, piece_rows))


def placed_in_time(tables: Tables, pieces: Iterable[pa.Table]) -> Iterator[Part]:
    """Those of some rows of `op_events`, in their order."""
    captures, held = _captures(tables), dict[int, "Operations"]()
    for rows in pieces:
        of_capture = int_column(rows, "capture", NONE)
        for number in np.unique(of_capture):
            if (capture := captures.get(int(number))) is None:
                continue
            mine = rows if (alone := of_capture == number).all() else rows.filter(pa.array(alone))
            yield from _operations(tables, capture, held).parts(mine)


def _captures(tables: Tables) -> dict[int, Capture]:
    rows = frame(tables, "captures", ["capture", "start_ns"]).dropna(subset=["capture"]).drop_duplicates("capture")
    found: dict[int, Capture] = {}
    for turn, (number, start_ns) in enumerate(zip(rows["capture"], rows["start_ns"], strict=True)):
        dated = not pd.isna(start_ns) and int(start_ns) > 0
        found[int(number)] = Capture(int(number), turn, int(start_ns) if dated else 0, dated)
    return found


def _operations(tables: Tables, capture: Capture, held: "dict[int, Operations]") -> "Operations":
    """Those of a capture; of few captures they are kept, for events are stored capture after capture."""
    if capture.number not in held:
        if len(held) >= MOST_CAPTURES:
            del held[next(iter(held))]
        held[capture.number] = Operations(tables, capture)
    return held[capture.number]


class Operations:
    """The operations of a capture, found by number and device."""

    def __init__(self, tables: Tables, capture: Capture):
        mine = [("capture", "==", capture.number)]
        ops = frame(tables, "ops", ["op_id", "host", "device", "line", "role", "op", "category"], mine)
        ops = ops.dropna(subset=["op_id"]).drop_duplicates(["op_id", "device"])
        self._capture = capture
        self._names, self._codes, self._kinds = texts(ops["op"]), _op_codes(ops), kinds_of(ops)
        self._lane, self._lanes = _lanes(ops)
        number, device = (ops[n].to_numpy(dtype=np.int64, na_value=NONE) for n in ("op_id", "device"))
        self._numbers, which, many = np.unique(number, return_inverse=True, return_counts=True)
        self._devices, on = np.unique(device, return_inverse=True)
        key = which * len(self._devices) + on
        self._order = np.argsort(key, kind="stable")
        self._keys = key[self._order]
        self._only = np.where(many == 1, np.argsort(which, kind="stable")[np.cumsum(many) - many], NONE)

    def parts(self, rows: pa.Table) -> Iterator[Part]:
        """Of some of its events, those of each lane."""
        if not len(self._names):
            return
        start, dur = int_column(rows, "start_ps", UNTOLD), int_column(rows, "dur_ps", UNTOLD)
        op, event = int_column(rows, "op_id", NONE), int_column(rows, "event", NONE)
        place = self.places(op, int_column(rows, "device", NONE))
        far = (start > FARTHEST_PS) | (start < -FARTHEST_PS) | (dur > FARTHEST_PS)
        place[far] = NONE  # not told, or no time of a capture
        lane = np.where(place >= 0, self._lane[place], NONE)
        order = np.argsort(lane, kind="stable")
        there, first = np.unique(lane[order], return_index=True)
        last = np.append(first[1:], len(order))
        of = self._capture
        for n, a, b in zip(there, first, last, strict=True):
            if n == NONE:
                continue
            some = order[a:b]
            which = place[some]
            yield Part(
                self._lanes[n], of.base_ns, PS_PER_NS, start[some], dur[some], self._names, which, self._codes[which],
                capture=of.number, turn=of.turn, event=event[some], op=op[some], dated=of.dated,
                kind=self._kinds[which],
            )  # fmt: skip

    def places(self, op: Ints, device: Ints) -> Ints:
        """Which operation each event is of, NONE where of none. Devices may number their operations alike; an event
        that does not say its device is of the only operation with its number."""
        which, told = _among(self._numbers, op)
        on, there = _among(self._devices, device)
        at, same = _among(self._keys, which * len(self._devices) + on)
        found = np.where(told & there & same, self._order[at], NONE)
        return np.where((found < 0) & told & (op != NONE), self._only[which], found)


def _among(known: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """(where each wanted number stands among the known ones, which are in order; whether it does)."""
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted


def _lanes(ops: pd.DataFrame) -> tuple[Ints, list[Lane]]:
    """(lane of each operation, the lanes)."""
    keys = pd.DataFrame({n: texts(ops[n]) for n in ("host", "line", "role")})
    keys["device"] = ops["device"].to_numpy(dtype=np.int64, na_value=NONE)
    number = keys.groupby(list(keys), sort=True).ngroup().to_numpy()
    some = keys.assign(number=number).drop_duplicates("number").sort_values("number")
    lanes: list[Lane] = []
    for row in some.to_dict("records"):
        device = None if row["device"] == NONE else int(row["device"])
        lanes.append(Lane(HOST if device is None else DEVICE, row["host"], device, row["line"], row["role"]))
    return number.astype(np.int64), lanes


def _op_codes(ops: pd.DataFrame) -> NDArray[np.uint8]:
    category, role = texts(ops["category"]), texts(ops["role"])
    on_host = ops["device"].isna().to_numpy()
    found = np.full(len(ops), CODE["below_roofline"], np.uint8)
    for name in PRODUCTS:
        found[category == name] = CODE["useful_maths"]
    for name, account in OF_CATEGORY.items():
        found[category == name] = CODE[account]
    found[(role == "step") | (role == "module")] = CODE["productive"]
    found[(role == "other") | (role == "")] = CODE["other"]
    found[on_host & (role != "compute")] = CODE["host"]
    return found
