"""Logs whose lines name month and day alone, beside samples of the engine that tell the year, as scrapes do.

Their times count from the start of an unknown year, taken for one that has a 29th of February. They are put into that
year in which they lie nearest to the first sample that is dated; read as they stand, they would lie decades before it.
What begins in the first hour counts from its own start (see `own_clocks`) and stays, however long it lasts.
"""

import calendar
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from analyzers.serving.own_clocks import CALENDAR_NS, FROM_ZERO_NS
from runs.tables import Tables, frame

_DAY_NS = 86_400 * 10**9
_MARCH = 60  # days of a year that has a 29th of February before the 1st of March


def in_their_year(tables: Tables, rows: pd.DataFrame, time: str = "ts_ns") -> pd.DataFrame:
    """Rows with the times of such logs in the year of the run's samples; as they are where no sample is dated.
    Columns: source and that of the time (ns since the epoch, or since the start of a year)."""
    at = rows[time].astype("Int64")
    mine = (at < CALENDAR_NS).fillna(False).to_numpy(dtype=bool)
    if not mine.any():
        return rows
    source = rows["source"].astype("string").fillna("").to_numpy(dtype=object)
    begin = at[mine].groupby(source[mine]).min()
    mine &= pd.Series(source).isin(begin.index[begin >= FROM_ZERO_NS]).to_numpy(dtype=bool)
    told = frame(tables, "engine", ["ts_ns"])["ts_ns"].dropna()
    told = told[told >= CALENDAR_NS]
    if not len(told) or not mine.any():
        return rows
    near = datetime.fromtimestamp(int(told.min()) // 10**9, UTC)
    times = at.to_numpy(dtype=np.int64, na_value=0)
    for name in pd.unique(source[mine]):
        of = mine & (source == name)
        times[of] = _dated(times[of], _year(int(times[of].min()), near))
    return rows.assign(**{time: pd.Series(times, rows.index, dtype="Int64").mask(at.isna())})


def _year(first_ns: int, near: datetime) -> int:
    """The year in which a time since the start of one lies nearest to a moment."""
    years = (near.year - 1, near.year, near.year + 1)
    return min(years, key=lambda year: abs(_dated(np.array([first_ns]), year)[0] / 1e9 - near.timestamp()))


def _dated(times: np.ndarray, year: int) -> np.ndarray:
    """Times since the start of a year, taken for one of 366 days as those after it are, as of that year; ns."""
    day, within = times // _DAY_NS, times % _DAY_NS
    later, day = day // 366, day % 366
    found = np.empty_like(times)
    for n in np.unique(later):
        of = later == n
        that = year + int(n)
        begin = int(datetime(that, 1, 1, tzinfo=UTC).timestamp()) // 86_400
        gone = 0 if calendar.isleap(that) else day[of] >= _MARCH
        found[of] = (begin + day[of] - gone) * _DAY_NS
    return found + within
