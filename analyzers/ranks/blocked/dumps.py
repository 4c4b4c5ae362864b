"""Which dumps were taken together, where a run holds several of one rank.

Those of earlier attempts or hangs lie in folders of their own, in which each host may have one, or beside the newest
under other names. The newest are told by the times of what they list. A dump that lists nothing has no time: where the
recorder keeps unfinished operations alone, it is what the rank leaves that all others wait for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import PurePath

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Taken:
    """The rows of the dumps that were taken together, one of each rank. `left_out`: ranks of which none was taken."""

    entries: pd.DataFrame
    progress: pd.DataFrame
    left_out: frozenset[int]
    notes: tuple[str, ...]


def one_a_rank(entries: pd.DataFrame, progress: pd.DataFrame) -> Taken:
    """See `Taken`: of a run with several dumps of one rank, those around the newest operation."""
    files = _files(entries, progress)
    if not files["rank"].duplicated().any():
        return Taken(entries, progress, frozenset(), ())
    folder, within = _around_the_newest(files)
    newest = within.sort_values(["newest", "source"]).drop_duplicates("rank", keep="last")
    kept = _of_one_hang(within, newest, entries)
    left_out = frozenset(files["rank"].tolist()) - {*kept["rank"].tolist()}
    note = (
        f"Several dumps of one rank: the {len(kept)} of {'one folder' if folder == '.' else 'the folder ' + folder} "
        f"with the newest operation were taken, and {len(files) - len(kept)} left out. Ingest those of one hang alone."
    )
    sources = {*kept["source"]}
    entries, progress = (some[some["source"].isin(sources)].copy() for some in (entries, progress))
    return Taken(entries, progress, left_out, (note,))


def _files(entries: pd.DataFrame, progress: pd.DataFrame) -> pd.DataFrame:
    """The dumps: rank, source, folder, newest (time of its newest operation; -1: it has none), lists (whether it lists
    any operation)."""
    times = entries.groupby(["rank", "source"], observed=True)["enqueued_ns"].max().reset_index(name="newest")
    times = times.astype({"source": object}).assign(lists=True)
    files = pd.concat([times, progress[["rank", "source"]].assign(newest=-1, lists=False)])
    files = files.groupby(["rank", "source"], as_index=False)[["newest", "lists"]].max()
    return files.assign(folder=[str(PurePath(name).parent) for name in files["source"]])


def _around_the_newest(files: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The uppermost folder around the newest operation in which no rank left dumps in two folders, and its dumps: each
    host may have a folder of its own."""
    newest = PurePath(files.sort_values(["newest", "folder"], ascending=[False, True])["folder"].iloc[0]).parts
    shared = {name: len(commonprefix([newest, PurePath(name).parts])) for name in files["folder"].unique()}
    depth = files["folder"].map(shared)
    least = len(newest)
    for upper in sorted({*shared.values()}, reverse=True):
        if files.loc[depth >= upper, ["rank", "folder"]].drop_duplicates()["rank"].duplicated().any():
            break
        least = upper
    return str(PurePath(*newest[:least])), files[depth >= least]


def _of_one_hang(files: pd.DataFrame, newest: pd.DataFrame, entries: pd.DataFrame) -> pd.DataFrame:
    """Of the newest dump of each rank those that may be of one hang. Of a rank whose newest may be of an earlier one,
    it is the dump that is named as those of other ranks are; else none is taken."""
    last = newest.sort_values(["newest", "source"])["source"].iloc[-1]
    listed = entries.loc[(entries["source"] == last) & (entries["enqueued_ns"] >= 0), "enqueued_ns"]
    doubtful = _of_earlier(files, newest, listed.min())
    sure, open_ = newest[~newest["rank"].isin(doubtful)], files[files["rank"].isin(doubtful)]
    others = {pattern for patterns in _patterns(sure) for pattern in patterns}
    alike = [not patterns.isdisjoint(others) for patterns in _patterns(open_)]
    return pd.concat([sure, open_[alike].drop_duplicates("rank", keep=False)])


def _of_earlier(files: pd.DataFrame, newest: pd.DataFrame, since: float) -> set[int]:
    """Ranks whose newest dump may be of an earlier hang: it is older than `since`, the first that the newest of all
    lists, and nearer to dumps that newer ones followed. How far apart two hangs are is not known. Where there are no
    such dumps, it is in doubt if the rank has a dump that lists nothing beside it."""
    times = newest["newest"].to_numpy()
    found = times < since
    followed = files["newest"] < files["rank"].map(dict(zip(newest["rank"], times, strict=True)))
    old = np.sort(files.loc[files["lists"] & followed, "newest"].to_numpy())
    if not len(old):
        empty = files.loc[files["rank"].duplicated(keep=False) & ~files["lists"], "rank"]
        return {*newest.loc[found & newest["rank"].isin(empty), "rank"]}
    at = np.searchsorted(old, times)
    sides = (old[np.clip(at - side, 0, len(old) - 1)] for side in (0, 1))
    found &= np.minimum(*(abs(times - side) for side in sides)) < since - times
    return {*newest.loc[found, "rank"]}


def _patterns(files: pd.DataFrame) -> Iterator[set[str]]:
    """Of each file its name without its rank, for each number in it that may be that: `hang2_rank_2` may be one of
    `hang2_rank_*`."""
    for source, rank in zip(files["source"].tolist(), files["rank"].tolist(), strict=True):
        name = PurePath(source).name
        numbers = [at for at in re.finditer(r"\d+", name, re.ASCII) if at[0].lstrip("0") == str(rank or "")]
        yield {f"{name[: at.start()]}*{name[at.end() :]}" for at in numbers}
