"""What all dumps together tell: groups, who left a dump, how far each rank came, and what had not completed.

A dump lists either the last operations of its rank or, of these, the unfinished ones alone; what is unfinished stands
in it either way.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.ranks.blocked.dumps import one_a_rank
from analyzers.ranks.blocked.reached import Group, Reached, reached
from runs.tables import Tables, frame

SYNCHRONISING = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "barrier")
ENDED = (
    "The recorder cannot see whether operations of Gloo completed or failed. Those that are over are taken as "
    "completed, but for collectives that a rank did not enter: these failed."
)
NO_DUMP = "no dump of it is there"
LEFT_OUT = "its dumps were left out, since none is known to be of the same hang"
NO_OPERATIONS = "its dump lists no operations, and says that some had not completed"
ENQUEUED = [
    "rank",
    "group",
    "group_name",
    "description",
    "call",
    "kind",
    "peer",
    "seq",
    "p2p_seq",
    "op",
    "bytes",
    "dtype",
    "state",
    "enqueued_ns",
    "retired",
    "frame",
    "order",
    "source",
]
PROGRESS = [
    "rank",
    "group",
    "group_name",
    "description",
    "local_group",
    "last_enqueued",
    "last_started",
    "last_completed",
    "fault",
    "source",
]
TEXTS = ("group", "group_name", "description", "call", "kind", "dtype", "state", "frame", "source", "fault")
LISTED = ["rank", "place", "seq", "call", "kind", "bytes", "dtype"]
STATES = ("", "scheduled", "started", "completed", "unclear")


@dataclass(frozen=True)
class World:
    """Dumps joined.

    groups      numbered by position
    ranks       all that any group or dump names, rising
    silent      {rank: why nothing is known of what it does}: no dump, none of this hang, an empty one, one that lists
                no operations
    reached     how far each rank came
    unfinished  operations that had not completed, in the order in which each rank's host enqueued them: rank, place
                (of its group; -1: not known), call, kind, peer, seq, p2p (flag), and what else was read; texts plain
    listed      all operations of collectives that are listed: rank, place, seq, call, kind, bytes, dtype; texts as
                categories, since there are millions (see `plain`)
    unclear     {(group, rank)} with operations launched as one of which no dump tells the end
    """

    groups: list[Group]
    ranks: list[int]
    silent: dict[int, str]
    reached: Reached
    unfinished: pd.DataFrame
    listed: pd.DataFrame
    unclear: set[tuple[int, int]]
    notes: tuple[str, ...]


def world(tables: Tables) -> World:
    """The dumps of a run, one of each rank."""
    entries, progress = _read(tables, "enqueued", ENQUEUED), plain(_read(tables, "group_progress", PROGRESS))
    taken = one_a_rank(entries, progress)
    entries, progress, notes = taken.entries, taken.progress, taken.notes
    groups = _groups(entries, progress)
    place = {(g.name, ",".join(map(str, g.ranks)) if g.told else ""): n for n, g in enumerate(groups)}
    for rows in (entries, progress):
        rows["place"] = _placed(rows, place)
    entries, ended = _with_ends(entries)
    entries = _with_states(entries)
    unclear = {(int(g), int(r)) for g, r in entries.loc[entries["state"] == "unclear", ["place", "rank"]].to_numpy()}
    dumped = {int(r) for r in progress["rank"]} | {int(r) for r in entries["rank"]}
    ranks = sorted(dumped.union(*(g.ranks for g in groups)) if groups else dumped)
    silent = _silent(ranks, dumped, entries, progress)
    silent |= {r: LEFT_OUT for r in ranks if r in taken.left_out}
    how_far = reached(groups, entries, progress, silent)
    open_ = entries[entries["state"].isin(("scheduled", "started"))].sort_values(["rank", "order"], kind="stable")
    return World(
        groups=groups,
        ranks=ranks,
        silent=silent,
        reached=how_far,
        unfinished=plain(open_.reset_index(drop=True)),
        listed=entries.loc[~entries["p2p"] & (entries["kind"] != "coalesced") & (entries["seq"] >= 0), LISTED],
        unclear=unclear,
        notes=(*notes, ENDED) if ended else notes,
    )


def _read(tables: Tables, name: str, columns: list[str]) -> pd.DataFrame:
    """Rows with a rank; texts as categories, "" where missing; numbers that are missing -1."""
    rows = frame(tables, name, columns)
    if rows["rank"].isna().any():
        rows = rows.dropna(subset=["rank"]).reset_index(drop=True)
    for column in columns:
        if column in TEXTS:
            rows[column] = _coded(rows[column], STATES if column == "state" else ("",))
        elif column not in ("bytes", "retired"):
            rows[column] = rows[column].fillna(-1).astype(np.int64)
    return rows


def _coded(texts: pd.Series, also: tuple[str, ...]) -> pd.Series:
    """Texts as categories, of which `also` are some."""
    coded = texts.astype("category")
    return coded.cat.add_categories([text for text in also if text not in coded.cat.categories]).fillna("")


def plain(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with texts as such."""
    coded = [name for name in rows if isinstance(rows[name].dtype, pd.CategoricalDtype)]
    return rows.assign(**{str(name): rows[name].astype(object) for name in coded})


def _placed(rows: pd.DataFrame, place: dict[tuple[str, str], int]) -> np.ndarray:
    """The position of each row's group; looked up once for each pair of name and ranks."""
    name, names = pd.factorize(rows["group_name"])
    ranks, lists = pd.factorize(rows["group"])
    pair, pairs = pd.factorize(name * len(lists) + ranks)
    keys = [(str(names[n // len(lists)]), str(lists[n % len(lists)])) for n in pairs.tolist()]
    return np.array([place.get(key, -1) for key in keys], dtype=np.int64)[pair]


def _groups(entries: pd.DataFrame, progress: pd.DataFrame) -> list[Group]:
    columns = ["group_name", "group", "description", "rank"]
    rows = pd.concat([progress[columns], plain(entries[columns].drop_duplicates())])
    rows = rows[rows["group_name"] != ""]
    found = []
    for key, some in rows.groupby(["group_name", "group"], sort=True):
        name, text = (str(part) for part in key)
        told = bool(text) and all(rank.strip().isdecimal() for rank in text.split(","))  # a table may hold any text
        ranks = [int(r) for r in text.split(",")] if told else some["rank"].astype(int).unique().tolist()
        described = next((d for d in some["description"] if d and d != "undefined"), "")
        found.append(Group(name, described, tuple(sorted(ranks)), told))
    return sorted(found, key=lambda g: (not g.name.isdigit(), int(g.name) if g.name.isdigit() else 0, g.name, g.ranks))


def _with_ends(entries: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Gives operations that are over, and of which nobody knows whether they completed, a state, and tells whether
    there are any. Where a rank that lists the group has not come to a collective that needs all, it has failed: it is
    as open as when its watchdog let go of it."""
    over = (entries["state"] == "") & entries["retired"].fillna(False).astype(bool)
    if not over.any():
        return entries, False
    collective = (entries["seq"] >= 0) & (entries["place"] >= 0) & (entries["p2p_seq"] < 0)
    furthest = entries[collective].groupby(["place", "rank"])["seq"].max().groupby("place").min()
    behind = entries["seq"] > entries["place"].map(furthest)
    failed = over & collective & behind & entries["kind"].isin(SYNCHRONISING)
    entries.loc[over, "state"] = "completed"
    entries.loc[failed, "state"] = "scheduled"
    return entries, True


def _with_states(entries: pd.DataFrame) -> pd.DataFrame:
    """Adds p2p, and gives operations that were launched as one the state of the launch, which is listed behind them.

    The recorder keeps no state of the single ones: they are `scheduled` for ever. Where their launch is not listed,
    several of one number are `unclear`: the launch has completed and was left out, or was not reached.
    """
    entries["p2p"] = (entries["p2p_seq"] >= 0) | entries["kind"].isin(("send", "recv"))
    number = entries["p2p_seq"].where(entries["p2p"], entries["seq"])
    same = _numbered(*(entries[name] for name in ("rank", "place", "group_name", "p2p")), number)
    launch = (entries["kind"] == "coalesced").to_numpy()
    single = ~launch & (number >= 0).to_numpy()
    size = np.bincount(same[single], minlength=len(entries))
    ends = np.full(len(entries), -1)
    ends[same[launch]] = np.flatnonzero(launch)  # the last one stays
    end = ends[same]
    state = entries["state"].cat
    codes, unclear = state.codes.to_numpy(), state.categories.tolist().index("unclear")
    left = single & (size[same] > 1) & (entries["state"] != "completed").to_numpy()
    codes = np.where(single & (end >= 0), codes[end], np.where(left, unclear, codes))
    entries["state"] = pd.Categorical.from_codes(codes, categories=state.categories)
    told = launch & (size[same] > 0)
    return entries[~told].copy() if told.any() else entries


def _numbered(*columns: pd.Series) -> np.ndarray:
    """A number for each row, the same where all columns are."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        more, values = pd.factorize(column)
        numbers = pd.factorize(numbers * len(values) + more)[0]
    return numbers


def _silent(ranks: list[int], dumped: set[int], entries: pd.DataFrame, progress: pd.DataFrame) -> dict[int, str]:
    faults = progress[progress["fault"] != ""]
    silent = dict(zip(faults["rank"].astype(int), faults["fault"], strict=True))
    silent |= {r: NO_DUMP for r in ranks if r not in dumped}
    behind = progress[
        (progress["last_enqueued"] > progress["last_completed"]) & ~progress["rank"].isin(entries["rank"])
    ]
    return silent | {int(r): NO_OPERATIONS for r in behind["rank"]}
