"""Which rows tell of one server: those of one replica in one input, and of one that went on in another input.

Every vLLM server calls its only engine "0", so that a name alone does not tell two servers apart. Rows of one name in
two inputs are of one server where one input goes on after the other has ended, as a log that was rotated does, unless
their processes were started at different times and the later one before the earlier input ended. Rows that overlap in
time, or carry none, are of two.

A log and scrapes of /metrics may tell of one server at once: the tokens that they tell to be generated in the time that
they share are alike (within SAME). Then the scrapes count, which are exact, and of the log what lies before or after.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analyzers.counters import increments
from runs.tables import Tables, frame

ONE = "engine"  # a replica without a name
SAME = 0.2  # of the tokens that a log and scrapes of one server tell, by which they may differ
BEGAN = "process_start_time_seconds"


def servers(tables: Tables, rows: pd.DataFrame, time: str = "ts_ns") -> np.ndarray:
    """The name of the server of each row. Columns: replica, source and the one of time (ns, null where not known).

    It is the replica's own name where one server has it, else with that of its input before it.
    """
    if not len(rows):
        return np.empty(0, dtype=object)
    label = rows["replica"].astype("string").fillna(ONE).to_numpy(dtype=object)
    source = rows["source"].astype("string").fillna("").to_numpy(dtype=object)
    ends = pd.DataFrame({"label": label, "source": source, "at": rows[time].astype("Int64").to_numpy()})
    ends = ends.groupby(["label", "source"], sort=False, dropna=False)["at"].agg(["min", "max", "count", "size"])
    names: dict[tuple[str, str], str] = {}
    began = _began(tables) if ends.index.get_level_values(0).duplicated().any() else {}
    for name, mine in ends.groupby(level=0, sort=False):
        apart = _apart(mine.droplevel(0), began)
        for chain in apart:
            names |= {(name, one): _named(name, chain[0], len(apart)) for one in chain}
    keys = pd.MultiIndex.from_arrays([label, source])
    return keys.map(names).to_numpy(dtype=object)


def _named(label: str, source: str, count: int) -> str:
    if count == 1:
        return label
    return source if label == ONE else f"{source} {label}"


def _apart(ends: pd.DataFrame, began: dict[str, frozenset[float]]) -> list[list[str]]:
    """Inputs that name one replica, those of one server together and in order of time."""
    timed = ends[ends["count"] == ends["size"]].sort_values(["min", "max"], kind="stable")
    chains: list[list[str]] = []
    for source, row in timed.iterrows():
        for chain in chains:
            last = timed.loc[chain[-1]]
            if row["min"] > last["max"] and _goes_on(began.get(chain[-1]), began.get(source), float(last["max"]) / 1e9):
                chain.append(source)
                break
        else:
            chains.append([source])
    return chains + [[source] for source in ends.index if source not in timed.index]


def _goes_on(before: frozenset[float] | None, after: frozenset[float] | None, ended_s: float) -> bool:
    """Whether what a later input tells can be of the process of an earlier one, or of one started after it."""
    return not before or not after or bool(before & after) or min(after) >= ended_s


def _began(tables: Tables) -> dict[str, frozenset[float]]:
    """When the processes that each input scraped were started, s since the epoch."""
    rows = frame(tables, "scalars", ["name", "value", "source"])
    rows = rows[rows["name"].astype(str).str.startswith(BEGAN).to_numpy(dtype=bool)].dropna(subset=["value"])
    return {str(k): frozenset(v.round(2)) for k, v in rows.groupby(rows["source"].astype(str))["value"]}


def samples_of_servers(tables: Tables, columns: Sequence[str] | None = None) -> tuple[pd.DataFrame, list[str]]:
    """(the table `engine` with `replica` the name of its server and nothing told twice, what must be said of that)."""
    rows = frame(tables, "engine")
    rows = rows.assign(replica=servers(tables, rows))
    rows, notes = _told_once(rows)
    return (rows if columns is None else rows[list(columns)]).reset_index(drop=True), notes


def _told_once(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Without the lines of a log for a time in which scrapes tell of the same server."""
    if rows["ts_ns"].isna().any() or rows["source"].nunique() < 2:
        return rows, []
    per_source = rows.groupby(rows["source"].astype(str))
    counts = per_source["output_tokens"].count()
    prints = per_source["output_tokens_per_s"].count()
    logs = set(counts.index[(counts == 0) & (prints > 0)])
    is_log = rows["source"].astype(str).isin(logs).to_numpy()
    written = {n: g.sort_values("ts_ns") for n, g in rows[is_log].groupby("replica", sort=False)}
    scraped = {n: g.sort_values("ts_ns") for n, g in rows[~is_log].groupby("replica", sort=False)}
    drop, names, notes = np.zeros(len(rows), dtype=bool), rows["replica"].to_numpy(dtype=object).copy(), []
    for log, lines in written.items():
        for server, samples in list(scraped.items()):
            if _same(lines, samples):
                mine = is_log & (rows["replica"].to_numpy(dtype=object) == log)
                inside = rows["ts_ns"].between(samples["ts_ns"].min(), samples["ts_ns"].max()).to_numpy(dtype=bool)
                drop |= mine & inside
                names[mine] = server
                del scraped[server]
                notes.append(f"The log {lines['source'].iloc[0]} and the scrapes {samples['source'].iloc[0]} tell of "
                             "one server: where they overlap the scrapes count.")  # fmt: skip
                break
    return rows.assign(replica=names)[~drop], notes


def _same(lines: pd.DataFrame, samples: pd.DataFrame) -> bool:
    """Whether a log and scrapes tell of alike tokens for the time that they share."""
    at, tell = (x["ts_ns"].to_numpy(dtype=np.int64) / 1e9 for x in (lines, samples))
    start, end = max(at[0], tell[0]), min(at[-1], tell[-1])
    if end <= start or len(at) < 2:
        return False
    usual = float(np.median(np.diff(at)))
    rate = lines["output_tokens_per_s"].to_numpy(dtype=float, na_value=0.0)
    written = float(rate[(at > start) & (at <= end)].sum()) * usual
    grown = np.nan_to_num(increments(samples["output_tokens"]))
    counted = float(grown[(tell > start) & (tell <= end)].sum())
    edge = usual * float(rate.max(initial=0.0))  # of the line and the scrape that stand at the ends
    return abs(written - counted) <= SAME * max(written, counted) + edge
