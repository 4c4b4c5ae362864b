"""Operations of pipeline-parallel steps as arrays: cleaned, in the order of their ranks, matched with their peers.

An operation of computing ends its own duration after it starts. One of communication waits for its peers: it ends
`transfer` after the last of them has started, transfer = end - max(start over its group). Groups:

    forward-send, forward-recv     n-th send of a stage with the n-th receive of the next (of the first, after the last)
    backward-send, backward-recv   n-th send of a stage with the n-th receive of the one before
    params-all-gather,
    grads-reduce-scatter           the data-parallel ranks of a stage
    embedding-grads-all-reduce     first and last stage of a data-parallel rank
    layernorm-grads-all-reduce     the tensor-parallel ranks of a stage of a data-parallel rank
    optimizer-clip-main-grad       all ranks
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from errors import QuestionError
from runs.schema import PIPELINE_OPS
from runs.tables import Tables, int_column

KINDS: tuple[str, ...] = tuple(PIPELINE_OPS)
COMPUTE = ("forward-compute", "backward-compute", "optimizer", "gc")
P2P = ("forward-send", "forward-recv", "backward-send", "backward-recv")
ACROSS = ("params-all-gather", "grads-reduce-scatter", "optimizer-clip-main-grad")  # data-parallel ranks meet
_LIMIT_NS = 1 << 61  # sums of such times stay within 64 bits; 73 years
_WHOLE = ("steps", "dps", "workers", "dropped")  # what is no array of operations
COLUMNS = ["step", "dp_rank", "stage", "rank", "op_type", "microbatch", "chunk", "seq", "start_ns", "dur_ns"]


def codes(*kinds: str) -> list[int]:
    """Positions of these operation types in KINDS."""
    return [KINDS.index(k) for k in kinds]


def joined(*columns: np.ndarray) -> np.ndarray:
    """One key of several columns of whole numbers from 0: equal where all of them are."""
    key = columns[0].astype(np.int64)
    for column in columns[1:]:
        if (int(key.max(initial=0)) + 1) * (int(column.max(initial=0)) + 1) >= 1 << 62:
            key, column = (sorted_codes(c)[1] for c in (key, column))
        key = key * (int(column.max(initial=0)) + 1) + column
    return key


def sorted_codes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the different values in their order, the place of each value among them)."""
    number, different = pd.factorize(values)  # by hashing: much faster than a sort where few differ
    order = np.argsort(different)
    rank = np.empty(len(different), np.int64)
    rank[order] = np.arange(len(different))
    return different[order], rank[number]


@dataclass(frozen=True, kw_only=True)
class PipelineOps:
    """One entry per operation, sorted by step, worker, start. Times in ns since the first start of their step.

    `step`, `dp`, `worker`: numbers from 0 (`steps` and `dps` hold those of the job; workers are all ranks seen, of
    which `dp`, `stage` and `lane`, the place among the tensor-parallel ranks of a stage, tell the place). `kind`: see
    KINDS. `microbatch`, `chunk`: -1 where not known.
    `group`: operations with the same number wait for each other. `lone`: a send or receive whose peer is missing.
    `spent_ns`: duration of computing, transfer of communication.
    """

    steps: np.ndarray
    step: np.ndarray
    worker: np.ndarray
    dp: np.ndarray
    stage: np.ndarray
    lane: np.ndarray
    kind: np.ndarray
    microbatch: np.ndarray
    chunk: np.ndarray
    start_ns: np.ndarray
    dur_ns: np.ndarray
    group: np.ndarray
    lone: np.ndarray
    spent_ns: np.ndarray
    dps: np.ndarray
    workers: int
    dropped: dict[str, int]

    def __len__(self) -> int:
        return len(self.step)

    @property
    def end_ns(self) -> np.ndarray:
        return self.start_ns + self.dur_ns

    def parts(self, most: int) -> Iterator["PipelineOps"]:
        """The same operations, some steps at a time: whole steps, at most `most` operations where a step is no more.

        Steps and groups are numbered anew, from 0 in each part.
        """
        first = np.flatnonzero(np.r_[True, np.diff(self.step) != 0, True])
        at = 0
        while at < len(first) - 1:
            stop = max(int(np.searchsorted(first, first[at] + most, "right")) - 1, at + 1)
            yield self._part(slice(first[at], first[stop]), at, stop)
            at = stop

    def _part(self, rows: slice, begin: int, end: int) -> "PipelineOps":
        arrays = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in _WHOLE}
        arrays["step"] = arrays["step"] - begin
        arrays["group"] = pd.factorize(arrays["group"])[0].astype(np.int32)
        whole = {"steps": self.steps[begin:end], "dps": self.dps, "workers": self.workers, "dropped": self.dropped}
        return PipelineOps(**arrays, **whole)


def load(tables: Tables) -> PipelineOps:
    """The operations of table `pipeline`. Raises QuestionError where there is none that can be used."""
    if not tables.rows("pipeline"):
        raise QuestionError(
            "this run has no pipeline operations",
            advice="Ingest a pipeline-parallel trace: Parquet or CSV with dp_rank, stage, rank, step, optype, start_ts "
            "and duration, an operation a row.",
        )
    rows, dropped = _rows(tables)
    if not len(rows["step"]):
        raise QuestionError(
            "no pipeline operation of this run can be used",
            expected="a step, data-parallel rank, stage, known type, start and duration in each row",
        )
    steps, rows["step"] = sorted_codes(rows["step"])
    dps, rows["dp"] = sorted_codes(rows["dp"])
    begun = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(begun, rows["step"], rows["start_ns"])
    rows["start_ns"] -= begun[rows["step"]]
    workers, rows["worker"], rows["lane"] = _workers(rows)
    same = joined(rows["kind"], rows["seq"] + 1)  # makes the order of rows that start at once independent of the input
    order = np.lexsort((same, rows["start_ns"], rows["step"] * workers + rows["worker"]))
    if (np.diff(order) != 1).any():
        rows = {name: values[order] for name, values in rows.items()}
    rows, dropped["repeated"] = _without_repeats(rows)
    rows["seq"] = _sequence(rows, workers)
    group, lone = _groups(rows)
    communicates = ~np.isin(rows["kind"], codes(*COMPUTE))
    ready = np.zeros(group.max() + 1, np.int64)
    np.maximum.at(ready, group, rows["start_ns"])
    transfer = rows["start_ns"] + rows["dur_ns"] - ready[group]
    clocks = int((communicates & (transfer < 0)).sum())
    del rows["rank"], rows["seq"]
    small = ("step", "worker", "dp", "stage", "lane", "kind", "microbatch", "chunk")
    rows |= {name: rows[name].astype(np.int32) for name in small}
    return PipelineOps(
        **rows,
        steps=steps,
        group=group,
        lone=lone,
        workers=workers,
        dps=dps,
        spent_ns=np.where(communicates & ~lone, np.maximum(transfer, 0), rows["dur_ns"]),
        dropped={name: n for name, n in (dropped | {"early": clocks}).items() if n},
    )


def _rows(tables: Tables) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Columns as numbers, less the rows that say too little; how many those were, by reason."""
    table = tables.arrow("pipeline", COLUMNS)
    words = table["op_type"].combine_chunks().dictionary_encode() if table.num_rows else None
    known = np.array([KINDS.index(k) if k in KINDS else -1 for k in words.dictionary.to_pylist()] + [-1])
    kind = known[words.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    rows = {name: int_column(table, name) for name in COLUMNS if name not in ("op_type", "start_ns")}
    rows["kind"] = kind
    rows["start_ns"] = int_column(table, "start_ns", _LIMIT_NS)
    placed = (rows["step"] >= 0) & (rows["dp_rank"] >= 0) & (rows["stage"] >= 0)
    timed = (np.abs(rows["start_ns"]) < _LIMIT_NS) & (rows["dur_ns"] >= 0) & (rows["dur_ns"] < _LIMIT_NS)
    kept = placed & timed & (kind >= 0)
    dropped = {"unknown": int((kind < 0).sum()), "incomplete": int(((kind >= 0) & ~(placed & timed)).sum())}
    rows["dp"] = rows.pop("dp_rank")
    return rows if kept.all() else {name: values[kept] for name, values in rows.items()}, dropped


def _workers(rows: dict[str, np.ndarray]) -> tuple[int, np.ndarray, np.ndarray]:
    """How many ranks there are; of each row the number of its rank, by place, and its lane."""
    place = joined(rows["dp"], rows["stage"])
    different, worker = sorted_codes(joined(place, rows["rank"] + 1))
    ranks = len(different)
    of_worker = np.zeros(ranks, np.int64)
    of_worker[worker] = place
    first = np.flatnonzero(np.r_[True, np.diff(of_worker) != 0])
    lane = np.arange(ranks) - np.repeat(first, np.diff(np.r_[first, ranks]))
    return ranks, worker, lane[worker]


def _without_repeats(rows: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int]:
    """Each operation once: the same worker cannot start the same twice at once (a file given in two copies)."""
    same = np.ones(len(rows["step"]), bool)
    same[:1] = False
    for name in ("step", "worker", "start_ns", "dur_ns", "kind", "seq"):
        same[1:] &= rows[name][1:] == rows[name][:-1]
    return ({n: v[~same] for n, v in rows.items()} if same.any() else rows), int(same.sum())


def _sequence(rows: dict[str, np.ndarray], workers: int) -> np.ndarray:
    """Place among the operations of its kind on its worker in its step: as recorded, else by start."""
    if (rows["seq"] >= 0).all():
        return rows["seq"]
    key = (rows["step"] * workers + rows["worker"]) * len(KINDS) + rows["kind"]
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0])
    place = np.empty(len(key), np.int64)
    place[order] = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
    return place


def _groups(rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(group of each operation, whether its one peer is missing)."""
    kind, dp, stage, lane = rows["kind"], rows["dp"], rows["stage"], rows["lane"]
    stages = int(stage.max()) + 1
    f_send, f_recv, b_send, b_recv = codes(*P2P)
    p2p = np.isin(kind, (f_send, f_recv, b_send, b_recv))
    link = np.where(kind == f_recv, stage - 1, np.where(kind == b_send, stage - 1, stage)) % stages  # its lower end
    channel = np.where(kind == f_recv, f_send, np.where(kind == b_recv, b_send, kind))
    of_stage = np.isin(kind, codes("params-all-gather", "grads-reduce-scatter"))
    of_replica = np.isin(kind, codes("embedding-grads-all-reduce"))
    of_place = np.isin(kind, codes("layernorm-grads-all-reduce"))
    scope = np.select(
        [p2p, of_stage, of_replica, of_place],
        [joined(dp, link, lane), joined(stage, lane), joined(dp, lane), joined(dp, stage)],
        0,
    )
    key = joined(channel, rows["step"], scope, rows["seq"])
    alone = np.isin(kind, codes(*COMPUTE))
    key[alone] = -1 - np.arange(int(alone.sum()))  # computing waits for nobody
    group = pd.factorize(key)[0].astype(np.int32)
    return group, p2p & ~_has_both(group, np.isin(kind, (f_send, b_send)), p2p)


def _has_both(group: np.ndarray, sends: np.ndarray, p2p: np.ndarray) -> np.ndarray:
    """Whether the group of each operation holds one send and one receive."""
    sent = np.bincount(group, sends)
    got = np.bincount(group, p2p & ~sends)
    return ((sent == 1) & (got == 1))[group]
