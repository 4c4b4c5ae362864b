"""Which rows tell of one server: those of one replica in one input, and of one that went on in another input.

Every vLLM server calls its only engine "0", so that a name alone does not tell two servers apart. Rows of one name in
two inputs are of one server where one input goes on after the other has ended, as a log that was rotated does, unless
their processes were started at different times and the later one before the earlier input ended. Rows that overlap in
time are of two, and those that carry none too, unless they are scrapes of one process (see `untimed`).

Two inputs that overlap are of one server where they are copies, or two pollers of it: lines of logs that are alike in
all of the time that both tell of, or counters of a process started at one moment that never fall where both are put in
order.

A log and scrapes of /metrics may tell of one server at once: the tokens that they tell to be generated in the time that
they share are alike (within SAME), and so is what ran and how full the cache was where one tells of it next to the
other; of several servers of which that holds it is the one that is most like it. Then the scrapes count, which are
exact, and of the log what lies before or after.
A log of several engines together is held against all those of one input; of it nothing counts, since it tells of none.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd

from analyzers.serving.counters import COUNTERS, grown, of_logs
from analyzers.serving.untimed import began, chains, in_order, processes
from analyzers.serving.yearless import in_their_year
from runs.tables import Tables, frame

ONE = "engine"  # a replica without a name
COPIED = 3  # rates that differ, from which logs that are alike are copies: servers at one steady load look alike too
_OF_ONE = re.compile(r"(?:^|[/ ])\d+$")  # the name of a server whose log numbers its engines
SAME = 0.2  # of the tokens that a log and scrapes of one server tell, by which they may differ
LEVELS = {"running": 0.5, "kv_usage": 0.01}  # by which they may differ: logs print whole requests and per cents
MOST_NAMES = 10_000  # pairs of names that are held against each other
FEWEST, SURE = 5, 3.0  # samples that are compared, and standard errors by which they may differ
TOLD = [
    "running",
    "waiting",
    "kv_usage",
    "prompt_tokens_per_s",
    "output_tokens_per_s",
    "prompt_tokens",
    "output_tokens",
]  # what two inputs of one server tell alike


@dataclass(frozen=True)
class _Told:
    """What one input tells of a replica, in order of time: ns, and a column of each of TOLD."""

    at: np.ndarray
    cells: np.ndarray

    def between(self, start: int, end: int) -> "_Told":
        inside = slice(*np.searchsorted(self.at, [start, end + 1]))
        return _Told(self.at[inside], self.cells[inside])

    def column(self, name: str) -> np.ndarray:
        return self.cells[:, TOLD.index(name)]


def servers(tables: Tables, rows: pd.DataFrame, time: str = "ts_ns") -> np.ndarray:
    """The name of the server of each row. Columns: replica, source and the one of time (ns, null where not known).

    It is the replica's own name where one server has it, else with that of its input before it.
    """
    if not len(rows):
        return np.empty(0, dtype=object)
    label = rows["replica"].astype("string").fillna(ONE).to_numpy(dtype=object)
    source = rows["source"].astype("string").fillna("").to_numpy(dtype=object)
    fuller = _fuller(tables, set(zip(label, source, strict=True)))
    label = np.array([fuller.get(key, key[0]) for key in zip(label, source, strict=True)], object) if fuller else label
    ends = _ends(label, source, rows[time])
    if renamed := _renamed(ends):
        label = np.array([renamed.get(key, key[0]) for key in zip(label, source, strict=True)], object)
        ends = _ends(label, source, rows[time])
    names: dict[tuple[str, str], str] = {}
    several = ends.index.get_level_values(0).duplicated().any()
    starts, samples, untimed = (began(tables), _by_label(tables), chains(tables)) if several else ({}, {}, [])
    for (short, one), long in fuller.items():
        samples[long] = samples.get(long, {}) | {one: samples[short][one]}
    for name, mine in ends.groupby(level=0, sort=False):
        known = {one for (_, one), long in fuller.items() if long == name}
        apart = _apart(mine.droplevel(0), starts, samples.get(str(name), {}), untimed, known)
        for chain in apart:
            names |= {(name, one): _named(name, chain[0], len(apart)) for one in chain}
    keys = pd.MultiIndex.from_arrays([label, source])
    return keys.map(names).to_numpy(dtype=object)


def _ends(label: np.ndarray, source: np.ndarray, at: pd.Series) -> pd.DataFrame:
    """The first and the last time of each replica in each input, how many rows tell one, and how many there are."""
    ends = pd.DataFrame({"label": label, "source": source, "at": at.astype("Int64").to_numpy()})
    return ends.groupby(["label", "source"], sort=False, dropna=False)["at"].agg(["min", "max", "count", "size"])


def _renamed(ends: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(replica, input) of the only server of an input that from some moment on is called by a longer name, as one is
    that another version of its engine is started as: that name."""
    found: dict[tuple[str, str], str] = {}
    timed = ends[ends["count"] == ends["size"]]
    counts = ends.groupby(level=1, sort=False).size()
    for source in counts.index[counts == 2]:
        mine = timed[timed.index.get_level_values(1) == source].droplevel(1).sort_values("min")
        if len(mine) == 2 and mine["max"].iloc[0] < mine["min"].iloc[1]:
            before, after = (str(name) for name in mine.index)
            if _words(before) < _words(after):
                found[before, str(source)] = after
    return found


def _words(label: str) -> frozenset[str]:
    """What a replica is named by."""
    return frozenset() if label == ONE else frozenset(label.split())


def _named(label: str, source: str, count: int) -> str:
    if count == 1:
        return label
    return source if label == ONE else f"{source} {label}"


def _fuller(tables: Tables, told: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """(replica, input) of a server that another input calls by a longer name: that name. Prometheus adds instance and
    pod to what a server calls itself, so that a scrape of it and an answer about it name it differently. They tell of
    one where their counters, put in order, fall no more often than those of each, though they take turns."""
    if len({source for _, source in told}) < 2 or len({label for label, _ in told}) < 2:
        return {}
    words = {label: _words(label) for label, _ in told}
    pairs = [(a, b) for a in told for b in told if a[1] != b[1] and words[a[0]] < words[b[0]]]
    if not pairs:
        return {}
    samples, starts = _by_label(tables), began(tables)
    found: dict[tuple[str, str], set[str]] = {}
    for (short, one), (long, other) in pairs[:MOST_NAMES]:
        mine, theirs = samples.get(short, {}).get(one), samples.get(long, {}).get(other)
        if mine is None or theirs is None:
            continue
        turns = _in_turns(mine, theirs)
        if turns >= FEWEST or (turns and starts.get(one, frozenset()) & starts.get(other, frozenset())):
            found.setdefault((short, one), set()).add(long)
    return {key: next(iter(names)) for key, names in found.items() if len(names) == 1}


def _in_turns(one: _Told, other: _Told) -> int:
    """How often a sample of one is followed by one of the other with no fewer tokens; 0 where they fall more often than
    those of one alone do, as a process that starts again makes them."""
    start, end = max(one.at[0], other.at[0]), min(one.at[-1], other.at[-1])
    one, other = (x.between(int(start), int(end)) for x in (one, other))
    at = np.concatenate((one.at, other.at))
    order = np.argsort(at, kind="stable")
    counts = np.concatenate((one.column("output_tokens"), other.column("output_tokens")))[order]
    whose = np.repeat([0, 1], [len(one.at), len(other.at)])[order]
    falls = max(int((np.diff(x.column("output_tokens")) < 0).sum()) for x in (one, other))
    grown = np.diff(counts)
    if np.isnan(grown).any() or not (grown > 0).any() or (grown < 0).sum() > falls:
        return 0
    return int(np.count_nonzero((np.diff(whose) != 0) & (grown >= 0)))


def _apart(
    ends: pd.DataFrame,
    began: dict[str, frozenset[float]],
    samples: dict[str, _Told],
    untimed: list[list[str]],
    known: Collection[str],
) -> list[list[str]]:
    """Inputs that name one replica, those of one server together and in order of time. `known`: inputs of which it is
    known that another names it more fully."""
    timed = ends[ends["count"] == ends["size"]].sort_values(["min", "max"], kind="stable")
    found: list[list[str]] = []
    for source, row in timed.iterrows():
        for chain in found:
            ended = max(timed["max"][one] for one in chain)
            if row["min"] > ended:
                one = _goes_on(began.get(chain[-1]), began.get(source), float(ended) / 1e9)
            else:
                one = any(
                    _told_twice(samples, began, before, str(source)) or (before in known) != (source in known)
                    for before in chain
                )
            if one:
                chain.append(source)
                break
        else:
            found.append([str(source)])
    rest = [str(source) for source in ends.index if source not in timed.index]
    told = [[source for source in chain if source in rest] for chain in untimed]
    chained = [chain for chain in told if chain]
    return found + chained + [[source] for source in rest if not any(source in chain for chain in chained)]


def _by_label(tables: Tables) -> dict[str, dict[str, _Told]]:
    """Samples of the engine by replica and input."""
    rows = in_their_year(tables, frame(tables, "engine", ["ts_ns", "order", "replica", "source", *TOLD]))
    rows = rows.dropna(subset=["ts_ns"])
    rows = rows.sort_values(["ts_ns", "order"], kind="stable")
    who = [rows["replica"].astype("string").fillna(ONE), rows["source"].astype("string").fillna("")]
    found: dict[str, dict[str, _Told]] = {}
    for (name, source), mine in rows.groupby(who, sort=False):
        told = _Told(mine["ts_ns"].to_numpy(dtype=np.int64), mine[TOLD].astype(float).to_numpy(dtype=float))
        found.setdefault(str(name), {})[str(source)] = told
    return found


def _told_twice(samples: dict[str, _Told], began: dict[str, frozenset[float]], a: str, b: str) -> bool:
    """Whether two inputs that overlap in time tell of one server: see above."""
    if a not in samples or b not in samples:
        return False
    both = samples[a], samples[b]
    counts = [not np.isnan(x.column("output_tokens")).all() for x in both]
    if any(counts) and not (all(counts) and began.get(a, frozenset()) & began.get(b, frozenset())):
        return False
    start, end = int(max(x.at[0] for x in both)), int(min(x.at[-1] for x in both))
    one, other = (x.between(start, end) for x in both)
    if not any(counts):  # a log that is cut off may lack lines of its first and its last moment
        within = ((start, end), (start + 1, end - 1))
        return any(_copied(one.between(*times), other.between(*times)) for times in within)
    order = np.argsort(np.concatenate((one.at, other.at)), kind="stable")
    grown = np.diff(np.concatenate((one.column("output_tokens"), other.column("output_tokens")))[order])
    return bool((grown > 0).any() and not (grown < 0).any())


def _copied(one: _Told, other: _Told) -> bool:
    same = np.array_equal(one.at, other.at) and np.array_equal(one.cells, other.cells, equal_nan=True)
    rate = one.column("output_tokens_per_s")
    return bool(same and len(np.unique(rate[rate > 0])) >= COPIED)


def _goes_on(before: frozenset[float] | None, after: frozenset[float] | None, ended_s: float) -> bool:
    """Whether what a later input tells can be of the process of an earlier one, or of one started after it."""
    return not before or not after or bool(before & after) or min(after) >= ended_s


def samples_of_servers(tables: Tables, columns: Sequence[str] | None = None) -> tuple[pd.DataFrame, list[str]]:
    """(the table `engine` with `replica` the name of its server and nothing told twice, what must be said of that).

    Further columns: `log`, whether a row is a line of a log, `process` (see `untimed.processes`), and <counter>_grown
    of COUNTERS (see `counters.grown`).
    """
    rows, drop, notes = _of_servers(tables)
    rows = rows[~drop]
    return (rows if columns is None else rows[list(columns)]).reset_index(drop=True), notes


def inputs_of_servers(tables: Tables) -> dict[str, set[str]]:
    """The inputs that tell of each server, by its name, also those of which nothing counts beside others."""
    rows = _of_servers(tables)[0]
    pairs = rows[["replica", "source"]].astype("string").dropna().drop_duplicates()
    return {str(server): set(mine["source"]) for server, mine in pairs.groupby("replica")}


def _of_servers(tables: Tables) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """(the table `engine` with the columns of `samples_of_servers`, which rows are told twice, what must be said)."""
    rows = in_their_year(tables, frame(tables, "engine"))
    rows = in_order(tables, rows.assign(replica=servers(tables, rows))).sort_values(["ts_ns", "order"], kind="stable")
    rows = rows.reset_index(drop=True).assign(log=of_logs(rows.reset_index(drop=True)))
    rows = rows.assign(process=processes(tables, rows))
    rows = rows.assign(**{f"{c}_grown": grown(rows, rows[c]) for c in COUNTERS})
    rows, copies = _without_copies(rows)
    rows, drop, notes = _told_once(rows)
    return rows, drop, copies + notes


def _without_copies(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Without the lines of a log that another of the same server holds too."""
    drop, notes = np.zeros(len(rows), dtype=bool), []
    if rows["source"].nunique() < 2 or rows["ts_ns"].isna().any():
        return rows, notes
    source = rows["source"].astype(str)
    for _, mine in rows[rows["log"]].groupby("replica", sort=False):
        until: int | None = None
        ends = mine.groupby(source[mine.index])["ts_ns"].agg(["min", "max"]).sort_values(["min", "max"])
        for name, (first, last) in ends.iterrows():
            if until is not None and first <= until:
                held = (source[mine.index] == name) & (mine["ts_ns"] <= until)
                drop[rows.index.get_indexer(mine.index[held])] = True
                notes.append(f"{held.sum():,} lines of {name} are in another log of that server too, and count once.")
            until = last if until is None else max(until, last)
    return rows[~drop], notes


def _told_once(rows: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """(rows with the server's name in place of its log's, which are lines of a log for a time in which scrapes tell of
    the same server, what must be said of that)."""
    if rows["ts_ns"].isna().any() or rows["source"].nunique() < 2:
        return rows, np.zeros(len(rows), dtype=bool), []
    per_source = rows.groupby(rows["source"].astype(str))
    counts = per_source["output_tokens"].count()
    prints = per_source["output_tokens_per_s"].count()
    logs = set(counts.index[(counts == 0) & (prints > 0)])
    is_log = rows["source"].astype(str).isin(logs).to_numpy()
    written = {n: g.sort_values("ts_ns") for n, g in rows[is_log].groupby("replica", sort=False)}
    scraped = {str(n): g.sort_values("ts_ns") for n, g in rows[~is_log].groupby("replica", sort=False)}
    drop, names, notes = np.zeros(len(rows), dtype=bool), rows["replica"].to_numpy(dtype=object).copy(), []
    for log, lines in written.items():
        alike = {server: _unlike(lines, samples) for server, samples in scraped.items() if _same(lines, samples)}
        alike = {server: unlike for server, unlike in alike.items() if unlike < inf}
        if alike:
            server = min(alike, key=lambda name: alike[name])
            samples = scraped.pop(server)
            mine = is_log & (rows["replica"].to_numpy(dtype=object) == log)
            inside = rows["ts_ns"].between(samples["ts_ns"].min(), samples["ts_ns"].max()).to_numpy(dtype=bool)
            drop |= mine & inside
            names[mine] = server
            notes.append(
                f"The log {lines['source'].iloc[0]} and the scrapes {samples['source'].iloc[0]} tell of "
                "one server: where they overlap the scrapes count."
            )
        else:
            source = None if _OF_ONE.search(str(log)) else _together(lines, scraped)
            if source is not None:
                drop |= is_log & (rows["replica"].to_numpy(dtype=object) == log)
                notes.append(
                    f"The log {lines['source'].iloc[0]} tells of the servers in the scrapes {source} together: the "
                    "scrapes count, and its lines from before and after them are left out."
                )
    return rows.assign(replica=names), drop, notes


def _together(lines: pd.DataFrame, scraped: dict[str, pd.DataFrame]) -> str | None:
    """The input of whose scraped servers a log tells in one number each; None where it does of none."""
    by_input: dict[str, list[pd.DataFrame]] = {}
    for samples in scraped.values():
        by_input.setdefault(str(samples["source"].iloc[0]), []).append(samples)
    for source, each in by_input.items():
        if len(each) > 1 and _same(lines, pd.concat(each).sort_values("ts_ns", kind="stable")):
            return source
    return None


def _same(lines: pd.DataFrame, samples: pd.DataFrame) -> bool:
    """Whether a log and scrapes tell of alike tokens for the time that they share. Lines that print no rate of output
    (SGLang's batches of prompts) tell none."""
    lines = lines[lines["output_tokens_per_s"].notna().to_numpy()]
    at, tell = (x["ts_ns"].to_numpy(dtype=np.int64) / 1e9 for x in (lines, samples))
    if len(at) < 2:
        return False
    start, end = max(at[0], tell[0]), min(at[-1], tell[-1])
    if end <= start:
        return False
    usual = float(np.median(np.diff(at)))
    rate = lines["output_tokens_per_s"].to_numpy(dtype=float, na_value=0.0)
    written = float(rate[(at > start) & (at <= end)].sum()) * usual
    grown = np.nan_to_num(samples["output_tokens_grown"].to_numpy(dtype=float))
    counted = float(grown[(tell > start) & (tell <= end)].sum())
    edge = usual * float(rate.max(initial=0.0))  # of the line and the scrape that stand at the ends
    return abs(written - counted) <= SAME * max(written, counted) + edge


def _unlike(lines: pd.DataFrame, samples: pd.DataFrame) -> float:
    """How far what a log tells of what runs, and of the cache, is from what scrapes tell at the nearest moment, as a
    share, in mean over the lines that have a scrape within half of their own usual gap; infinite where it is further
    than within SAME and what chance may do (SURE standard errors), 0 where the two tell of nothing alike."""
    far = [0.0]
    lines = lines[lines["output_tokens_per_s"].notna().to_numpy()]  # batches of prompts come in bursts
    for level, rounded in LEVELS.items():
        a, b = (x.dropna(subset=[level]) for x in (lines, samples))
        if len(a) < 2 or len(b) < 2:
            continue
        at, tell = (x["ts_ns"].to_numpy(dtype=np.int64) for x in (a, b))
        place = np.clip(np.searchsorted(tell, at), 1, len(tell) - 1)
        place -= at - tell[place - 1] <= tell[place] - at
        near = np.abs(tell[place] - at) <= np.median(np.diff(at)) / 2
        one, other = (x[level].to_numpy(dtype=float) for x in (a, b))
        one, other = one[near], other[place[near]]
        if len(one) < FEWEST:
            continue
        most = max(one.mean(), other.mean())
        off = abs(float((one - other).mean()))
        if off > rounded + SAME * most + SURE * float((one - other).std()) / len(one) ** 0.5:
            return inf
        far.append(off / most if most > 0 else 0.0)
    return max(far)
