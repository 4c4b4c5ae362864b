"""Collectives matched across ranks: which rows of `collectives` are parts of the same operation.

A row's place is its session (captures taken together), step, group, module and operation; within a place a rank's rows
are numbered in the order of its own clock. Rows of one place and number are a meeting. It is complete where every rank
of its group took part, and comparable where kinds and sizes agree as well. No clock is compared with another.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from analyzers.ranks.mesh import UNKNOWN, members
from analyzers.ranks.parts import counted
from analyzers.ranks.sessions import sessions
from analyzers.time.history import natural_key
from runs.tables import Tables, int_column

SYNCHRONISING = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
COLUMNS = [
    "capture",
    "host",
    "rank",
    "device",
    "group",
    "places",
    "kind",
    "bytes",
    "op",
    "module",
    "seq",
    "step",
    "start_ns",
    "end_ns",
    "role",
]


@dataclass(frozen=True)
class Meetings:
    """Rows of `collectives` that count (`parts.py`), in the table's order, as arrays of equal length:

    rank            position in `ranks`
    capture, step   as in the table; -1 where not known
    session         captures of one session were taken at the same time; -1 without a capture
    group, kind, op, module   positions in `names[...]`; "" is among the names where a value is missing
    start_ns, end_ns, dur_ns  by the rank's own clock
    meeting         number of the meeting; rows of a meeting share it
    complete        whether all ranks of its group took part; never where it is not known which those are
    comparable      complete, synchronising, of one kind and size on all ranks, each of them in it once
    partial         the same of two ranks or more of a group that is known, but for some of its ranks: these have no
                    profile, or theirs does not reach so far
    alone           synchronising, and its group is this one rank: it waits for nobody

    `order`: positions that bring the rows of one meeting together, meetings by number, ranks rising within them.
    `begins`: where each meeting begins in that order. `ranks`: host, device, rank (nullable), role, label, and
    place in the program's own order of devices, by which mesh axes count (nullable); by number.
    """

    rank: np.ndarray
    capture: np.ndarray
    step: np.ndarray
    session: np.ndarray
    group: np.ndarray
    kind: np.ndarray
    op: np.ndarray
    module: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    meeting: np.ndarray
    complete: np.ndarray
    comparable: np.ndarray
    partial: np.ndarray
    alone: np.ndarray
    order: np.ndarray
    begins: np.ndarray
    names: dict[str, list[str]]
    ranks: pd.DataFrame

    @property
    def dur_ns(self) -> np.ndarray:
        return self.end_ns - self.start_ns

    @property
    def synchronising(self) -> np.ndarray:
        """Whether a row is of a kind in which all ranks wait for the last one."""
        return np.isin(self.names["kind"], SYNCHRONISING)[self.kind]

    @property
    def nameless(self) -> np.ndarray:
        """Whether it is not known which ranks make up a row's group."""
        return np.array([UNKNOWN in g for g in self.names["group"]], dtype=bool)[self.group]

    def least(self, values: np.ndarray) -> np.ndarray:
        """The least of `values` (one per row) in each meeting."""
        return np.minimum.reduceat(values[self.order], self.begins) if len(self.order) else values[:0]


def meetings(tables: Tables) -> Meetings:
    """Every collective with the rank and the meeting of its rows. O(n log n), no text per row."""
    rows = tables.arrow("collectives", COLUMNS)
    timed = counted(rows)
    if not timed.all():
        rows = rows.filter(pa.array(timed))
    code, names = {}, {}
    for name in ("host", "group", "places", "kind", "op", "module", "role"):
        code[name], names[name] = codes(rows[name])
    number = {name: int_column(rows, name) for name in ("capture", "rank", "device", "seq", "step")}
    start, end = int_column(rows, "start_ns"), int_column(rows, "end_ns")
    rank, ranks = _ranks(code, names, number)
    ranks["place"] = _places(ranks["rank"], code, names)
    session = sessions(tables, rank, number["capture"], number["step"])
    place = combined(session + 1, number["step"] + 1, code["group"], code["module"], code["op"])
    nth, by_rank = _numbered(place, rank, start, len(ranks))
    if not (number["step"] >= 0).all():
        nth = np.where((number["step"] >= 0) | (number["seq"] < 0), nth, number["seq"])
    if nth.any():
        meeting_key = combined(place, nth - nth.min())
        order = np.argsort(combined(meeting_key, rank), kind="stable")
    else:
        meeting_key, order = place, by_rank
    sorted_key = meeting_key[order]
    opens = np.concatenate(([True], sorted_key[1:] != sorted_key[:-1])) if len(order) else np.zeros(0, dtype=bool)
    begins = np.flatnonzero(opens)
    meeting = np.empty(len(order), dtype=np.int64)
    meeting[order] = np.cumsum(opens) - 1
    complete, present, size = _complete(order, begins, rank, code["group"], names["group"], len(ranks))
    agreed = _agreed(order, begins, code["kind"], rows, rank, end - start)
    agreed &= _as_many(place, rank, number["step"], number["seq"])[order[begins]]
    partial = agreed & (present > 1) & (present < size)
    agreed &= complete
    synchronising = np.isin(names["kind"], SYNCHRONISING)[code["kind"]]
    return Meetings(
        rank=rank,
        capture=number["capture"],
        step=number["step"],
        session=session,
        group=code["group"],
        kind=code["kind"],
        op=code["op"],
        module=code["module"],
        start_ns=start,
        end_ns=end,
        meeting=meeting,
        complete=complete[meeting],
        comparable=agreed[meeting] & synchronising,
        partial=partial[meeting] & synchronising,
        alone=(size == 1)[meeting] & synchronising,
        order=order,
        begins=begins,
        names={n: names[n] for n in ("group", "kind", "op", "module")},
        ranks=ranks,
    )


def codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Codes of a text column and their texts, in alphabetical order; what is missing is "", then among the texts.

    A dictionary's own order is that in which the texts came: what is decided by it would change with the files' order.
    """
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], type=column.type)
    texts = [t if t is not None else "" for t in whole.dictionary.to_pylist()]
    indices = whole.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
    if whole.null_count and "" in texts:
        indices[indices == len(texts)] = texts.index("")
    elif whole.null_count:
        texts.append("")
    known = sorted(set(texts))
    if known == texts:
        return indices, texts
    place = {text: n for n, text in enumerate(known)}
    return np.array([place[text] for text in texts], dtype=np.int64)[indices], known


def combined(*keys: np.ndarray) -> np.ndarray:
    """One whole number per row that is equal exactly where all keys (none negative) are equal, and sorts as they do."""
    out, room = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        size = int(key.max()) + 1 if len(key) else 1
        if room * size >= 1 << 62:
            out = np.unique(out, return_inverse=True)[1].astype(np.int64)
            room = int(out.max()) + 1
        if room * size >= 1 << 62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = int(key.max()) + 1
        out, room = out * size + key, room * size
    return out


def _ranks(code: dict, names: dict, number: dict) -> tuple[np.ndarray, pd.DataFrame]:
    """Each row's rank as a position, and the ranks: a device of a host, or a numbered rank where either is missing."""
    hostless = np.array([t == "" for t in names["host"]], dtype=bool)[code["host"]] | (number["device"] < 0)
    by_number = hostless & (number["rank"] >= 0)
    device = np.where(by_number, -1, np.maximum(number["device"], 0))
    key = combined(code["host"], device + 1, np.where(by_number, number["rank"] + 1, 0))
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    ranks = pd.DataFrame(
        {
            "host": [names["host"][c] for c in code["host"][first]],
            "device": np.maximum(number["device"][first], 0),
            "rank": number["rank"][first],
            "role": [names["role"][c] for c in code["role"][first]],
        }
    )
    numbered = bool(len(ranks)) and bool((ranks["rank"] >= 0).all()) and ranks["rank"].is_unique
    places = [f"{h}/{d}" for h, d in zip(ranks["host"], ranks["device"], strict=True)]
    ranks["label"] = [str(r) for r in ranks["rank"]] if numbered else places
    if numbered:
        order = np.argsort(ranks["rank"].to_numpy(), kind="stable")
    else:
        order = np.array(sorted(range(len(ranks)), key=lambda i: natural_key(places[i])), dtype=np.int64)
    at = np.empty(len(order), dtype=np.int64)
    at[order] = np.arange(len(order))
    ranks = ranks.iloc[order].reset_index(drop=True)
    ranks["rank"] = ranks["rank"].astype("Int64").where(ranks["rank"] >= 0)
    return at[inverse.reshape(-1)], ranks


def _places(rank: pd.Series, code: dict, names: dict) -> pd.Series:
    """Each rank's place in the order of devices of the programs that it runs: its own number where they say nothing
    else, null where they differ."""
    found: dict[int, int] = {}
    width = len(names["places"]) + 1
    for pair in np.unique(code["group"] * width + code["places"]).tolist():
        group, places = members(names["group"][pair // width]), members(names["places"][pair % width])
        for number, place in zip(group, places or group, strict=False):
            found[number] = place if found.get(number, place) == place else -1
    place = rank.map(lambda number: found.get(number, number), na_action="ignore").astype("Int64")
    return place.where(place >= 0)


def _numbered(place: np.ndarray, rank: np.ndarray, start: np.ndarray, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """How many rows of its place each row's rank had before, by its own clock; and the order by place, rank, start."""
    key = combined(place, rank)
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    if (same & (start[order][1:] < start[order][:-1])).any():
        order = np.lexsort((start, key))
    at = np.arange(len(order))
    opened = np.where(np.concatenate(([True], ~same)), at, 0) if len(order) else at
    nth = np.empty(len(order), dtype=np.int64)
    nth[order] = at - np.maximum.accumulate(opened)
    return nth, order


def _complete(
    order: np.ndarray, begins: np.ndarray, rank: np.ndarray, group: np.ndarray, groups: list[str], ranks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each meeting, whether as many different ranks took part as its group has; how many took part, and how many it
    has: all ranks where it is not told.

    Never where the members of a group are not known, which has 0: who was late for whom cannot be said then.
    """
    sizes = np.array([0 if UNKNOWN in g else g.count(",") + 1 if g else ranks for g in groups], dtype=np.int64)
    sorted_rank = rank[order]
    fresh = np.ones(len(order), dtype=np.int64)
    fresh[1:] = sorted_rank[1:] != sorted_rank[:-1]
    fresh[begins] = 1
    present = np.add.reduceat(fresh, begins) if len(begins) else fresh[:0]
    size = sizes[group[order[begins]]]
    return (present == size) & (present > 1), present, size


def _as_many(place: np.ndarray, rank: np.ndarray, step: np.ndarray, seq: np.ndarray) -> np.ndarray:
    """For each row, whether all ranks that have its place have as many rows there: else it is not known which one is
    lacking, and all after it would be taken for others. Numbers that a trace tells without steps stand for themselves.
    """
    if not len(place):
        return np.zeros(0, dtype=bool)
    _, mine, times = np.unique(combined(place, rank), return_inverse=True, return_counts=True)
    times = times[mine.reshape(-1)]
    _, at = np.unique(place, return_inverse=True)
    at, size = at.reshape(-1), len(place)
    least, most, first = np.full(size, size), np.zeros(size, np.int64), np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(least, at, times)
    np.maximum.at(most, at, times)
    np.minimum.at(first, at, seq)
    return (least == most)[at] | ((step < 0) & (first[at] > 0))


def _agreed(
    order: np.ndarray, begins: np.ndarray, kind: np.ndarray, rows: pa.Table, rank: np.ndarray, dur: np.ndarray
) -> np.ndarray:
    """For each meeting, whether kind and bytes are the same on all ranks (else their sequences differ), each rank is in
    it once, and no duration is negative."""
    if not len(begins):
        return np.zeros(0, dtype=bool)
    again = np.concatenate(([False], rank[order][1:] == rank[order][:-1]))
    again[begins] = False
    agreed = ~np.logical_or.reduceat(again, begins) & (np.minimum.reduceat(dur[order], begins) >= 0)
    size = rows["bytes"].combine_chunks().fill_null(-1.0).to_numpy(zero_copy_only=False)
    for values in (kind, size):
        if values.min() != values.max():
            values = values[order]
            agreed &= np.minimum.reduceat(values, begins) == np.maximum.reduceat(values, begins)
    return agreed
