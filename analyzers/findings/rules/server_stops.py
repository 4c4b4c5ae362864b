"""Servers that stopped and were started anew: how often, for how long, and what their logs say of it.

A server stopped where its samples have a long gap (see `serving.sampling`) in which a line of its log tells of a
failure or of a new start, or where its counters or the start of its process tell that another process counts. What lies
between the last sample and the next is chip time held in which nobody was served; how much of it was starting is not
told apart.
"""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analyzers.findings.base import Band, Evidence, Finding, Rule, Seen, Told, Where
from analyzers.findings.rules.sampled import named
from analyzers.findings.rules.stops import BY_CAUSE, BY_FAMILY
from analyzers.lost.interruptions.evidence import MILD
from analyzers.serving.counters import COUNTERS, restarted
from analyzers.serving.own_clocks import CALENDAR_NS
from analyzers.serving.sampling import gaps_of
from analyzers.serving.seats import seats
from analyzers.serving.servers import samples_of_servers
from analyzers.serving.yearless import in_their_year
from catalog.causes import CAUSES as STOP_CAUSES
from errors import format as fmt
from runs.serving_schema import STARTED
from runs.tables import frame

QUESTION = "engine"
CAUSES = ("out_of_memory", "crash", "hang", "hardware", "preemption", "planned_stop", "interruption")
FATAL = re.compile(
    r"Engine\w*Dead|EngineCore\w* (?:encountered|died|failed)|Scheduler hit an exception|out of memory", re.I
)
"""Lines that tell of the end of an engine, and not of one of its requests."""
ASKED = "terminated"
"""The cause of lines that say that a process was asked to end: so servers are stopped that nothing is wrong with, and
they tell it as information."""
OFTEN = 0.1  # of samples: where more are of another process than that before, one address is of several servers
SPREAD = 0.1
LINE = 200  # characters of a line that are told
COLUMNS = ["replica", "down_s", "since_ns", "cause", "text", "ended"]
WHAT = {
    "out_of_memory": "ran out of memory",
    "crash": "crashed",
    "hang": "hung",
    "hardware": "was stopped by a machine or network that failed",
    "preemption": "had its machines taken away",
    "planned_stop": "was stopped on purpose",
    "interruption": "was started anew",
}


def find(seen: Seen) -> Told:
    """Stops of each cause as one finding, with what their gaps hold."""
    if not seen.tables.rows("engine"):
        return Told()
    rows, _ = samples_of_servers(seen.tables)
    rows = rows.dropna(subset=["ts_ns"]).sort_values("ts_ns", kind="stable")
    lines, starts = _lines(seen), _starts(seen)
    count = rows["replica"].nunique()
    ends = rows.groupby("replica", sort=True)["ts_ns"].agg(["min", "max"]).to_numpy(dtype=float)
    several, chips = count > 1, seen.chips / (int(seats(*ends.T).max(initial=0)) + 1)
    hosts = {str(name).partition("/")[0] for name in rows["replica"].unique()} if several else set()
    found: list[tuple] = []
    for name, mine in rows.groupby("replica", sort=True):
        others = hosts - {str(name).partition("/")[0]}
        found += _stops(str(name), mine, lines[~lines["host"].isin(list(others))], starts, several)
    stops = pd.DataFrame(found, columns=COLUMNS)
    return Told(tuple(_finding(seen, str(c), mine, chips, count) for c, mine in stops.groupby("cause", sort=False)))


def _lines(seen: Seen) -> pd.DataFrame:
    """Lines of logs that tell of failures, with their times and what they name: those that tell what before those that
    tell only that something failed, then in order of time."""
    lines = frame(seen.tables, "evidence", ["ts_ns", "cause", "severity", "text", "host", "source"])
    lines = in_their_year(seen.tables, lines).astype(object)
    grave = ~lines["severity"].isin(MILD) | (lines["cause"] == ASKED)
    lines = lines[lines["ts_ns"].notna() & lines["cause"].isin(list(STOP_CAUSES)) & grave]
    symptom = lines["cause"].map(lambda cause: STOP_CAUSES[str(cause)].symptom).astype(bool)
    lines = lines.assign(symptom=symptom, ts_ns=lines["ts_ns"].astype("int64"), source=lines["source"].astype(str))
    return lines.sort_values(["symptom", "ts_ns"], kind="stable", ignore_index=True)


def _starts(seen: Seen) -> pd.DataFrame:
    """When logs tell that a server that had served was started anew. Columns: ts_ns, source."""
    starts = frame(seen.tables, "scalars", ["ts_ns", "name", "source"])
    starts = starts[(starts["name"].astype(str) == STARTED).to_numpy(dtype=bool)][["ts_ns", "source"]].dropna()
    return in_their_year(seen.tables, starts).astype({"source": str}).reset_index(drop=True)


def _stops(name: str, rows: pd.DataFrame, lines: pd.DataFrame, starts: pd.DataFrame, several: bool) -> Iterator[tuple]:
    """Stops of one server, whose samples are in order of time; one that nothing follows is the last. `several`: whether
    there are others, of which the lines of other logs may be."""
    at = rows["ts_ns"].to_numpy(dtype=np.int64)
    sampled, source = gaps_of(rows, at), rows["source"].astype(str).to_numpy()
    usual, anew = sampled.usual or 0.0, _started_anew(rows)
    fatal = lines[lines["text"].astype(str).str.contains(FATAL)]
    anew[1:] &= source[1:] == source[:-1]
    for begun, log in zip(starts["ts_ns"].astype("int64"), starts["source"], strict=True):
        after = int(np.searchsorted(at, begun))
        if 0 < after < len(at) and source[after - 1] == source[after] == log:
            anew[after] |= bool(sampled.far[after])
    for i in np.flatnonzero(sampled.far | anew):
        within = source[i - 1], at[i - 1] - usual, at[i], several
        if not anew[i] and _line(fatal, *within) is None:
            continue  # nothing tells that it stopped: an SGLang that has no request writes no sample
        line = _line(lines, *within)
        # of what lies between two inputs nobody may have looked
        down = (at[i] - at[i - 1] - usual) / 1e9 if sampled.far[i] and source[i - 1] == source[i] else 0.0
        yield name, down, int(at[i - 1]), *_of(line), False
    last = _line(fatal, source[-1], at[-1] - usual, np.inf, several)
    if last is not None:
        yield name, 0.0, int(at[-1]), *_of(last), True


def _started_anew(rows: pd.DataFrame) -> np.ndarray:
    """Which samples are of another process than that before: a counter fell, or it says that it was started later.
    The sums that are made of a log's lines fall where another file begins, and tell of no start."""
    log, every = rows["log"].to_numpy(dtype=bool), np.arange(len(rows))
    anew = np.concatenate(([False], restarted(rows["process"].to_numpy(dtype=float), every)))
    for name in COUNTERS:
        counted = rows[name].to_numpy(dtype=float, na_value=np.nan)
        known = np.flatnonzero(~np.isnan(counted) & ~log)
        anew[known[1:][np.diff(counted[known]) < 0]] = True
    anew &= ~log
    return anew if anew.sum() <= max(OFTEN * len(rows), 1) else np.zeros(len(rows), dtype=bool)


def _line(lines: pd.DataFrame, source: str, after: float, before: float, several: bool) -> pd.Series | None:
    """The line that tells most of a stop between two times, of the same log; where that tells none, of any other of the
    one server that there is."""
    inside = lines[(lines["ts_ns"] > after) & (lines["ts_ns"] < before)]
    own = inside[inside["source"] == source] if several or (lines["source"] == source).any() else inside
    return own.iloc[0] if len(own) else None


def _of(line: pd.Series | None) -> tuple[str, str | None]:
    """(the cause of a stop, the line that tells it)."""
    if line is None:
        return "interruption", None
    cause = STOP_CAUSES[line["cause"]]
    if cause.name == ASKED:
        return "planned_stop", str(line["text"] or "")
    return BY_CAUSE.get(cause.name, BY_FAMILY.get(cause.family, "crash")), str(line["text"] or "")


def _finding(seen: Seen, cause: str, stops: pd.DataFrame, chips: float, of: int) -> Finding:
    """Stops of one cause. `chips`: of a replica; `of`: how many there are."""
    down, names = float(stops["down_s"].sum()), tuple(dict.fromkeys(stops["replica"]))
    since = int(stops["since_ns"].iloc[0])
    likely, texts = down * chips, stops["text"].dropna()
    known = cause != "interruption"
    it = "it" if len(names) == 1 else "they"
    who = "A replica" if of > 1 and len(names) == 1 else f"{len(names):,} replicas" if of > 1 else "The server"
    times, why = fmt.count(len(stops), "time"), "" if known else ", and no line of a log tells why"
    gone = f"{it} served nobody for {fmt.duration(down)}" if down else "for how long it was away is not told"
    if stops["ended"].all():
        gone = "no sample follows"
    elif stops["ended"].any():
        gone += ", and after the last no sample follows"
    return Finding(
        cause=cause,
        title=f"{who} {WHAT[cause]} {times}{why}: {gone}.",
        gain=Band.within(likely, SPREAD) if likely >= seen.least or not known else None,
        draws=seen.drawn(likely, "unattributed") if likely >= seen.least or not known else {},
        question=QUESTION,
        confidence=0.85 if known else 0.7,
        where=Where(hosts=names if of > 1 else ()),
        since_ns=since if since >= CALENDAR_NS else None,
        evidence=(
            Evidence("times", float(len(stops)), "", QUESTION),
            Evidence("without a sample of it", down, "s", QUESTION),
            *(Evidence("a line of the log", text[:LINE], "", QUESTION) for text in texts.head(1)),
            *named(names, of),
        ),
    )


RULE = Rule(name="server_stops", causes=CAUSES, find=find)
