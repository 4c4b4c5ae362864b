"""How far each rank came in each of its groups, from what its dump lists and what it states of its progress.

What is listed counts first: the greatest number there. Where nothing is listed, the last enqueued that is stated counts
if the group has collectives alone: sends and receives are numbered by themselves, and one number is stated for both.
That there are none is seen where the number of a collective is that among all operations of its group.
"""

from dataclasses import dataclass

import pandas as pd

Key = tuple[int, int]  # group (position) and rank


@dataclass(frozen=True)
class Group:
    """A process group: its name, what the job calls it, and its global ranks, rising. `told`: whether these are
    listed, and not just those that were seen in it."""

    name: str
    description: str
    ranks: tuple[int, ...]
    told: bool

    @property
    def label(self) -> str:
        return self.description or self.name


@dataclass(frozen=True)
class Reached:
    """By group and rank:

    last        number of the last collective that it entered; absent: not known
    stated      those of `last` that are stated, where nothing of the group is listed
    inferred    those of `last` that no number tells: its dump lists nothing of the group, so it had nothing open there
    completed   number of the last collective that it is known to have completed, where it lists any of the group

    `partial`: ranks whose dump has lost operations that may be open: the recorder keeps the last few alone.
    """

    last: dict[Key, int]
    stated: set[Key]
    inferred: set[Key]
    completed: dict[Key, int]
    partial: set[int]


def reached(groups: list[Group], entries: pd.DataFrame, progress: pd.DataFrame, silent: dict[int, str]) -> Reached:
    """See `Reached`. `entries` and `progress` have the position of their group as `place`, numbers not known as -1."""
    collectives = entries[~entries["p2p"] & (entries["seq"] >= 0) & (entries["place"] >= 0)]
    listed = _most(entries[(entries["seq"] >= 0) & (entries["place"] >= 0)], "seq")
    alone = _collectives_alone(entries, progress, listed)
    stated = _stated(groups, progress, listed, alone)
    last = listed | stated
    inferred = _inferred(groups, entries, silent, last)
    completed = _most(collectives[collectives["state"] == "completed"], "seq")
    said = progress[progress["place"].isin(alone)]
    for key, number in _most(said, "last_completed").items():
        if key in listed and number >= 0:
            completed[key] = max(completed.get(key, -1), number)
    partial = _cut_in_the_ring(entries) | _fewer_than_stated(collectives, said, listed)
    return Reached(last | dict.fromkeys(inferred, 0), {*stated}, inferred, completed, partial)


def _most(rows: pd.DataFrame, column: str) -> dict[Key, int]:
    """The greatest of a column by group and rank."""
    most = rows.groupby(["place", "rank"])[column].max()
    return dict(zip(_keys(most.index), map(int, most.tolist()), strict=True))


def _keys(index: pd.Index) -> list[Key]:
    return [(int(place), int(rank)) for place, rank in index.tolist()]


def _collectives_alone(entries: pd.DataFrame, progress: pd.DataFrame, listed: dict[Key, int]) -> set[int]:
    """Groups of which collectives are listed, each with the number that it has among all operations there, and with
    the number that its rank states."""
    one = ~entries["p2p"] & (entries["seq"] == entries["op"])
    by_group = one.groupby(entries["place"]).all()
    stated = _most(progress[(progress["place"] >= 0) & (progress["last_enqueued"] >= 0)], "last_enqueued")
    other = {key[0] for key, number in stated.items() if listed.get(key, number) != number}
    return {int(place) for place in by_group.index[by_group].tolist()} - other - {-1}


def _stated(groups: list[Group], progress: pd.DataFrame, listed: dict[Key, int], alone: set[int]) -> dict[Key, int]:
    """How far each rank says that it came in groups of collectives alone, where it lists nothing; 0 where it states
    its progress in other groups, and of this one nothing: it never had an operation there."""
    told = _most(progress[(progress["place"] >= 0) & (progress["last_enqueued"] >= 0)], "last_enqueued")
    states = {int(r) for r in progress.loc[progress["last_enqueued"] >= 0, "rank"].tolist()}
    nameless = (progress["group_name"] == "") & (progress["local_group"] >= 0)
    states -= {int(r) for r in progress.loc[nameless, "rank"].tolist()}
    keys = ((place, rank) for place in alone for rank in groups[place].ranks)
    found = {key: told.get(key, 0 if key[1] in states else -1) for key in keys if key not in listed}
    return {key: number for key, number in found.items() if number >= 0}


def _inferred(groups: list[Group], entries: pd.DataFrame, silent: dict[int, str], last: dict[Key, int]) -> set[Key]:
    """Ranks whose dumps list nothing of a group, and nothing that completed: nothing was open there, so whatever
    several others have open in it they have not entered."""
    full = {int(r) for r in entries.loc[entries["state"] == "completed", "rank"].tolist()}
    return {
        (place, rank)
        for place, group in enumerate(groups)
        for rank in group.ranks
        if (place, rank) not in last and rank not in silent and rank not in full
    }


def _cut_in_the_ring(entries: pd.DataFrame) -> set[int]:
    """Ranks that list completed operations, and as the first one that is open and has others before it."""
    first = (
        entries[["rank", "order", "state", "op"]].sort_values(["rank", "order"], kind="stable").drop_duplicates("rank")
    )
    full = entries.loc[entries["state"] == "completed", "rank"].unique()
    open_ = first["state"].isin(("scheduled", "started")) & first["rank"].isin(full) & (first["op"] > 1)
    return {int(r) for r in first.loc[open_, "rank"].tolist()}


def _fewer_than_stated(collectives: pd.DataFrame, said: pd.DataFrame, listed: dict[Key, int]) -> set[int]:
    """Ranks that list fewer operations of a group than they state to have enqueued and not completed."""
    enqueued, done = _most(said, "last_enqueued"), _most(said, "last_completed")
    rows = collectives.assign(
        done=[done.get(key, -1) for key in zip(collectives["place"], collectives["rank"], strict=True)]
    )
    beyond = rows[rows["seq"] > rows["done"].clip(lower=0)].groupby(["place", "rank"])["seq"].nunique()
    counts = dict(zip(_keys(beyond.index), map(int, beyond.tolist()), strict=True))
    return {
        key[1] for key, number in enqueued.items() if key in listed and number - max(done[key], 0) > counts.get(key, 0)
    }
