"""A job's goodput log as one list of entries, in the order in which it was written.

The tables hold intervals; the log held a start and an end. Both come back here as entries of their own, at their own
places, because the rules of ml-goodput walk the log and depend on its order.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analyzers.time.step_streams import NS_PER_S
from analyzers.time.step_takes import lines_taken
from runs.tables import Tables, frame

PAIRED = (
    "job",
    "accelerator_initialization",
    "training_preparation",
    "data_loading",
    "custom",
    "elastic_wait",
    "elastic_reinitialization",
)
STEP, SLICES, SAVE, RESTORE, FIRST_PAIR = range(5)
NONE = np.iinfo(np.int64).min
_KIND_CODES = {
    "slices": SLICES,
    "checkpoint_save": SAVE,
    "checkpoint_restore": RESTORE,
    "elastic_slice_down": FIRST_PAIR + 2 * PAIRED.index("elastic_wait"),
    "elastic_scale_up": FIRST_PAIR + 2 * PAIRED.index("elastic_wait"),
    **{k: FIRST_PAIR + 2 * i for i, k in enumerate(PAIRED) if k != "elastic_wait"},
}
_TOLD_FIRST = {  # the time by which the library dates a checkpoint's entry: the first its payload names
    SAVE: (
        "wait_for_prev_start_time",
        "checkpointer_blocking_start_time",
        "get_old_steps_start_time",
        "checkpoint_manager_blocking_start_time",
    ),
    RESTORE: ("checkpointer_start_time", "broadcast_start_time", "checkpoint_manager_start_time"),
}
_NUMBER = r"(?P<value>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"


def code_of(kind: str, end: bool = False) -> int:
    """The code of the entries that begin or end intervals of a kind in PAIRED."""
    return FIRST_PAIR + 2 * PAIRED.index(kind) + end


@dataclass(frozen=True)
class Entries:
    """Entries in log order, as columns of equal length:

    code     what it is: STEP, SLICES, SAVE, RESTORE, or `code_of` a paired kind
    time_ns  the time that it names, ns since the epoch
    dated_ns the time by which the library puts it into a window: `time_ns`, but for checkpoints their first
    written_ns  when it was written; `time_ns` where the input does not say
    step     step number (STEP, SAVE, RESTORE), else NONE
    end_ns   where a checkpoint's entry says when it ended, else NONE
    text     detail of the row, None where it has none

    `assumed_order`: True where the input keeps no order, so that the order of time stands for it.
    """

    code: np.ndarray
    time_ns: np.ndarray
    dated_ns: np.ndarray
    written_ns: np.ndarray
    step: np.ndarray
    end_ns: np.ndarray
    text: np.ndarray
    assumed_order: bool

    def __len__(self) -> int:
        return len(self.code)

    def where(self, mine: np.ndarray) -> "Entries":
        columns = ("code", "time_ns", "dated_ns", "written_ns", "step", "end_ns", "text")
        return replace(self, **{c: getattr(self, c)[mine] for c in columns})

    @cached_property
    def time_s(self) -> np.ndarray:
        """`time_ns` as seconds since the epoch: the very doubles that were logged, since no others lie as near."""
        whole, rest = np.divmod(self.time_ns, NS_PER_S)
        return whole + rest / NS_PER_S

    def at(self, code: int) -> np.ndarray:
        """Positions of the entries of this code."""
        return np.flatnonzero(self.code == code)


def entries(tables: Tables) -> Entries:
    """Every entry of the run's goodput log. Where the run has none, starts of steps from its other logs stand in."""
    marks, lines = _marks(tables)
    life = frame(
        tables,
        "lifecycle",
        [
            "kind",
            "start_ns",
            "end_ns",
            "step",
            "host",
            "detail",
            "order",
            "logged_ns",
            "end_order",
            "end_logged_ns",
            "source",
        ],
    )
    if len(marks) and len(lines):  # a text log beside the goodput log tells of the same steps once more
        others = set(lines["source"].dropna().astype(str)) - set(marks["source"].dropna().astype(str))
        life = life[~life["source"].astype(str).isin(others).to_numpy(dtype=bool)]
    steps = marks if len(marks) else lines
    codes = life["kind"].astype("category").cat
    code = np.array([_KIND_CODES.get(k, -1) for k in codes.categories] + [-1])[codes.codes]
    known = (code >= 0) & ~(life["host"].notna().to_numpy() & (code == code_of("data_loading")))
    life, code = life[known], code[known]
    begun = life["start_ns"].notna().to_numpy()
    ended = life["end_ns"].notna().to_numpy() & (code >= FIRST_PAIR)
    part = pd.DataFrame(
        {
            "code": np.concatenate((np.full(len(steps), STEP), code[begun], code[ended] + 1)).astype(np.int8),
            "time_ns": _joined(steps["start_ns"], life["start_ns"][begun], life["end_ns"][ended]),
            "step": _joined(steps["step"], life["step"][begun], life["step"][ended]),
            "end_ns": _joined(pd.Series(np.full(len(steps), NONE)), life["end_ns"][begun], life["end_ns"][ended]),
            "order": _joined(steps["order"], life["order"][begun], life["end_order"][ended]),
            "written_ns": _joined(steps["logged_ns"], life["logged_ns"][begun], life["end_logged_ns"][ended]),
        }
    )
    place, assumed = _log_order(part)
    detail = life["detail"].to_numpy(dtype=object, copy=True)
    detail[life["detail"].isna().to_numpy()] = None
    text = np.concatenate((np.full(len(steps), None, dtype=object), detail[begun], detail[ended]))
    columns = {n: part[n].to_numpy()[place] for n in part if n != "order"}
    time = columns["time_ns"]
    columns["written_ns"] = np.where(columns["written_ns"] == NONE, time, columns["written_ns"])
    text = text[place]
    dated = time.copy()
    for kind, names in _TOLD_FIRST.items():
        at = np.flatnonzero(columns["code"] == kind)
        dated[at] = _dated(text[at], names, time[at])
    return Entries(**columns, dated_ns=dated, text=text, assumed_order=assumed)


def _marks(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows that only say when a step began, and, each step once whoever told of it, rows of other logs that say how
    long it took as well."""
    rows = frame(
        tables,
        "steps",
        [
            "step",
            "start_ns",
            "dur_ns",
            "capture",
            "order",
            "logged_ns",
            "source",
            "host",
            "format",
            "attempt",
            "loss",
        ],
    )
    told = rows["step"].notna().to_numpy() & rows["capture"].isna().to_numpy()
    timed, lasting = rows["start_ns"].notna().to_numpy(), rows["dur_ns"].notna().to_numpy()
    marks, lines = rows[told & timed & ~lasting], rows[told & lasting]
    if len(marks) or not len(lines):
        return marks, lines
    lines = lines[lines["start_ns"].notna().to_numpy() & (lines["dur_ns"] >= 0).to_numpy(dtype=bool)]
    found = lines_taken(lines)
    once = lines.iloc[found.row]
    moved = found.start_ns - once["start_ns"].to_numpy(dtype=np.int64)
    return marks, once.assign(start_ns=once["start_ns"] + moved, logged_ns=once["logged_ns"] + moved)


def _joined(*columns: pd.Series) -> np.ndarray:
    return np.concatenate([c.to_numpy(dtype=np.int64, na_value=NONE) for c in columns])


def _log_order(part: pd.DataFrame) -> tuple[np.ndarray, bool]:
    """Positions in log order: by the time of writing, entries written at once by their place in the file. An entry
    that does not say when it was written stands after the one before it in the file. Without places: by time."""
    order, written = part["order"].to_numpy(), part["written_ns"].to_numpy()
    if (order == NONE).any():
        code = part["code"].to_numpy()
        ends = (code >= FIRST_PAIR) & ((code - FIRST_PAIR) % 2 == 1)
        job_end = code == code_of("job", end=True)
        rank = np.where(code == code_of("job"), 0, np.where(job_end, 4, np.where(ends, 1, np.where(code == 0, 3, 2))))
        when = np.where(written == NONE, part["time_ns"].to_numpy(), written)
        return np.lexsort((rank, when)), True
    place = np.argsort(order, kind="stable")
    written = written[place]
    if (written == NONE).all():
        return place, False
    told = np.maximum.accumulate(np.where(written != NONE, np.arange(len(written)), -1))
    written = np.where(told >= 0, written[np.maximum(told, 0)], NONE)
    if (np.diff(written) < 0).any():
        place = place[np.argsort(written, kind="stable")]
    return place, False


def numbers(texts: np.ndarray, name: str) -> np.ndarray:
    """The number that each JSON text has under `name`, NaN where it has none."""
    found = pc.extract_regex(pa.array(texts, pa.string()), f'"{name}": {_NUMBER}')
    values = pc.struct_field(found, "value").cast(pa.float64()) if len(texts) else pa.array([], pa.float64())
    return np.array(values.to_numpy(zero_copy_only=False))  # a copy: Arrow's own cannot be changed


def strings(texts: np.ndarray, name: str) -> np.ndarray:
    """The text without escapes that each JSON text has under `name`, None where it has none."""
    found = pc.extract_regex(pa.array(texts, pa.string()), f'"{name}": "(?P<value>[^"\\\\]*)"')
    return pc.struct_field(found, "value").to_numpy(zero_copy_only=False) if len(texts) else np.empty(0, object)


def _dated(texts: np.ndarray, names: tuple[str, ...], otherwise: np.ndarray) -> np.ndarray:
    out, missing = otherwise.copy(), np.ones(len(texts), dtype=bool)
    for name in names:
        seconds = numbers(texts, name)
        told = missing & np.isfinite(seconds)
        out[told] = np.round(seconds[told] * 1e6).astype(np.int64) * 1000
        missing &= ~told
    return out
