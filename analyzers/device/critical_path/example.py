"""One path as it is looked at: its links in order of time, each on the line of who held it."""

import numpy as np
import pandas as pd

from analyzers.device.critical_path.kinds import EXECUTION, FEEDER, HELD, KINDS, LAUNCH, RETURN, THREAD
from analyzers.device.critical_path.lanes import Executions, Lane
from analyzers.device.critical_path.threads import PARTS, Thread
from analyzers.device.critical_path.walk import PLAIN
from analyzers.device.launches.launches import UNEXPLAINED

COLUMNS = ("host", "device", "place", "kind", "operation", "start_s", "dur_s")
DEVICE, LAUNCHING, HOST = "device", "launch", "host"
PLACES = (HOST, LAUNCHING, DEVICE)
MOST_PIECES = 400  # more cannot be told apart on a screen
CELLS = 100
_PLACE = {EXECUTION: DEVICE, HELD: DEVICE, LAUNCH: LAUNCHING, RETURN: LAUNCHING, THREAD: HOST, FEEDER: HOST}


def example(links: np.ndarray, lanes: list[Lane], ran: Executions, found: list[Thread]) -> pd.DataFrame:
    """The links of one path (see COLUMNS), neighbours of one kind, place and operation joined. Times are since the
    step's start along the path, whose links follow one another without a gap: of another rank's links too, by the
    length of the path alone. Of more than MOST_PIECES, those of one kind and place lie together in each of CELLS equal
    parts of the path."""
    rows = _joined(_pieces(links[::-1], lanes, ran, found))
    if len(rows) > MOST_PIECES:
        rows = _joined(_cells(rows))
    begin = np.concatenate([[0], np.cumsum(rows["ns"])[:-1]]) if len(rows) else np.zeros(0)
    return rows.assign(start_s=begin / 1e9, dur_s=rows["ns"] / 1e9)[list(COLUMNS)]


def _pieces(links: np.ndarray, lanes: list[Lane], ran: Executions, found: list[Thread]) -> pd.DataFrame:
    rows = []
    names = ran.operations["op"].to_list()
    for _, what, which, lane, _, begin, end in links.tolist():
        place = lanes[lane].host, lanes[lane].device, _PLACE.get(what, DEVICE)
        if what in (THREAD, FEEDER):
            edges, label = found[which].work.cells(begin, end)
            told = [PARTS[k] if k < len(PARTS) else UNEXPLAINED for k in label.tolist()]
            rows += [(*place, kind, None, ns) for kind, ns in zip(told, np.diff(edges).tolist(), strict=True)]
        elif what == EXECUTION:
            rows.append((*place, KINDS[ran.kind[which]], names[ran.op[which]] or None, end - begin))
        else:
            rows.append((*place, PLAIN[what], None, end - begin))
    return pd.DataFrame(rows, columns=["host", "device", "place", "kind", "operation", "ns"])


def _joined(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["ns"] > 0].reset_index(drop=True)
    key = rows[["host", "device", "place", "kind", "operation"]].astype(object)
    key = key.where(key.notna(), "")
    number = (key != key.shift()).any(axis=1).cumsum()
    parts = rows.groupby(number, sort=True)
    return parts.first().assign(ns=parts["ns"].sum()).reset_index(drop=True)


def _cells(rows: pd.DataFrame) -> pd.DataFrame:
    """CELLS equal parts of the path; what lies in each, of one line and kind together, in order of the first."""
    end = rows["ns"].cumsum().to_numpy()
    edges = np.linspace(0, int(end[-1]), CELLS + 1).astype(np.int64)
    cuts = np.union1d(end, edges[1:])
    which = np.searchsorted(end, cuts, side="left")
    cut = rows.iloc[which].assign(ns=np.diff(cuts, prepend=0), cell=np.searchsorted(edges, cuts, side="left"))
    columns = ["cell", "host", "device", "place", "kind"]
    told = cut.groupby(columns, sort=False)
    one = told["operation"].agg(lambda names: names.iloc[0] if names.nunique(dropna=False) == 1 else None)
    return told["ns"].sum().reset_index().assign(operation=one.to_numpy())
