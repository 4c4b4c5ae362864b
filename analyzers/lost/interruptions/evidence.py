"""Why each stop happened: the line of a log that tells, and how sure that is.

A line belongs to a stop if it was written near the attempt's last sign of life or after it, before the next start;
near is three usual steps, at least two minutes, at most half an hour. After the last attempt, what those tell who watch
machines whatever they do, an exporter of GPUs as well as a kernel's log, belongs to its end only so near to when its
chips were last held; what a job's own output says belongs there whenever it was written. Lines without a time belong by
their attempt.
Of the lines of a stop

    1. one that names a cause counts before one that tells a symptom (catalog.causes),
    2. one at the end (from one usual step before the last sign of life on) before one that was only near it,
    3. an error, or a line of unstated severity, before a warning or information,
    4. the earliest before later ones, which are its cascade; but that the job was put back into the queue after an
       error without a time, as those of tracebacks are: a job that fails may ask for that itself.

`certain`: a naming error at the end, and no other family was named within five seconds of it. `likely`: it names a
cause, but another family was named at the same moment, or it is a warning, or was only near the end, or has no time.
`guess`: symptoms alone, so that the family stays unknown. `unknown`: no line.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from catalog.causes import CAUSES
from runs.tables import Tables

CONFIDENCE: dict[str, str] = {
    "certain": "an error at the end names this cause, and none names another at the same moment",
    "likely": "a line names this cause, but as a warning, beside another cause, shortly before the end, or untimed",
    "guess": "only symptoms were logged: that something failed, not what",
    "unknown": "no line tells",
}
NEAR_STEPS, NEAR_LEAST_S, NEAR_MOST_S = 3, 120.0, 1800.0
SAME_MOMENT_NS = 5_000_000_000
MILD = ("warning", "info")
MACHINES, SAID_OF_JOBS = "hardware", "host"  # of a machine's own faults, this one ends jobs, whose launchers tell of it
PUT_BACK = "requeue"  # it tells what became of the job, and may have been asked for because it had failed
EXPORTED = "DCGM_"  # how the lines of an exporter of GPUs begin
S = 1_000_000_000
BIG = np.iinfo(np.int64).max
COLUMNS = ["ts_ns", "attempt", "step", "host", "device", "cause", "severity", "order"]
FOUND = {
    "cause": "unknown",
    "confidence": "unknown",
    "host": None,
    "device": None,
    "severity": None,
    "evidence_ns": None,
    "text": None,
    "source": None,
    "offset": None,
}


@dataclass(frozen=True)
class Evidence:
    """`found`: one row per stop: cause (a key of catalog.causes.CAUSES), confidence (see CONFIDENCE), host, device,
    severity, evidence_ns, text, source, offset (of the chosen line; null without one), lines (that belong to it),
    noticed_ns (the last line that tells of a failure after the last sign of life; null without one).

    `rows`: lines of the run that tell of a failure; `used`: those near a stop; `unplaced`: with neither time nor
    attempt.
    """

    found: pd.DataFrame
    rows: int
    used: int
    unplaced: int


def evidence(
    tables: Tables,
    stops: pd.DataFrame,
    usual_s: float | None,
    shifts: Mapping[str, int] | None = None,
    attempts: Mapping[tuple[str, int], int] | None = None,
    foreign: Collection[str] = (),
) -> Evidence:
    """The line that tells why, for each stop (in order of time). O(n log n) in lines; text is read for the chosen.
    `shifts`, `attempts`, `foreign`, whose lines are another job's: see analyzers.time.history.History."""
    table = tables.arrow("evidence", [*COLUMNS, "text", "source", "offset"])
    table = table.filter(pc.is_valid(table["cause"]))
    if foreign:
        others = pc.is_in(pc.cast(table["source"], pa.string()), pa.array(sorted(foreign), pa.string()))
        table = table.filter(pc.invert(others))
    lines = _lines(table)
    for source, shift in (shifts or {}).items():
        mine = pc.fill_null(pc.equal(pc.cast(table["source"], pa.string()), source), False).to_numpy()
        lines.loc[mine, "ts_ns"] += shift
    _recount(lines, table, attempts or {})
    usual_ns = int((usual_s or 0.0) * S)
    lines["stop"], lines["timed"] = _stop_of(lines, stops, usual_ns)
    unplaced = int((lines["ts_ns"].isna() & lines["attempt"].isna()).sum())
    lines = lines[lines["stop"] >= 0]
    sign = stops["last_sign_ns"].to_numpy(dtype=np.int64, na_value=0)[lines["stop"].to_numpy()]
    at = lines["ts_ns"].to_numpy(dtype=np.int64, na_value=0)
    lines["late"] = lines["timed"] & (at >= sign - max(usual_ns, 5 * S))
    lines["after"] = lines["timed"] & (at > sign) & ~lines["mild"]
    chosen = _chosen(lines)
    found = pd.DataFrame({name: [value] * len(stops) for name, value in FOUND.items()}, dtype=object)
    if len(chosen):
        _enter(found, chosen, lines, table)
    found["evidence_ns"] = found["evidence_ns"].astype("Int64")
    found["offset"] = found["offset"].astype("Int64")
    found["device"] = found["device"].astype("Int64")
    found["lines"] = np.bincount(lines["stop"].to_numpy(), minlength=len(stops))
    noticed = lines[lines["after"]].groupby("stop")["ts_ns"].max()
    found["noticed_ns"] = pd.array(noticed.reindex(range(len(stops))), dtype="Int64")
    return Evidence(found, table.num_rows, len(lines), unplaced)


def _lines(table: pa.Table) -> pd.DataFrame:
    """What is needed of each line to choose; `row`: its place in the table."""
    causes = table["cause"].combine_chunks()
    words = [str(w) for w in causes.dictionary.to_pylist()]
    code = causes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    symptom = np.array([w not in CAUSES or CAUSES[w].symptom for w in words], dtype=bool)
    families = [CAUSES[w].family if w in CAUSES else "unknown" for w in words]
    known = sorted(set(families))
    family = np.array([known.index(f) for f in families], dtype=np.int64)
    severities = table["severity"].combine_chunks()
    mild = np.array([str(w).lower() in MILD for w in severities.dictionary.to_pylist()] + [False], dtype=bool)
    said = severities.indices.fill_null(len(mild) - 1).to_numpy(zero_copy_only=False)
    numbers = {
        name: pd.array(
            table[name].to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()}.get)
        )
        for name in ("ts_ns", "attempt", "step", "order")
    }
    machine = np.array([c in CAUSES and CAUSES[c].family == MACHINES and c != SAID_OF_JOBS for c in words], dtype=bool)
    again = np.array([c == PUT_BACK for c in words], dtype=bool)
    exported = pc.starts_with(pc.cast(table["text"], pa.string()), EXPORTED).fill_null(False).to_numpy()
    return pd.DataFrame(
        {
            "row": np.arange(table.num_rows),
            "watched": exported | (machine[code] if len(words) else False),
            "again": again[code] if len(words) else np.zeros(0, dtype=bool),
            "symptom": symptom[code] if len(words) else np.zeros(0, dtype=bool),
            "family": family[code] if len(words) else np.zeros(0, dtype=np.int64),
            "mild": mild[said],
            **numbers,
        }
    )


def _recount(lines: pd.DataFrame, table: pa.Table, attempts: Mapping[tuple[str, int], int]) -> None:
    """Attempts as the job counts them, for lines without a time: each input counts its own from 0."""
    bare = np.flatnonzero((lines["ts_ns"].isna() & lines["attempt"].notna()).to_numpy())
    if not (len(bare) and attempts):
        return
    source = pc.cast(table["source"], pa.string()).take(pa.array(bare)).to_pylist()
    own = lines["attempt"].iloc[bare].tolist()
    lines.loc[bare, "attempt"] = [attempts.get((str(s), int(a)), a) for s, a in zip(source, own, strict=True)]


def _stop_of(lines: pd.DataFrame, stops: pd.DataFrame, usual_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """The stop that each line belongs to, -1 for none, and whether its time says so."""
    timed = lines["ts_ns"].notna().to_numpy()
    out = np.full(len(lines), -1, dtype=np.int64)
    if not len(stops):
        return out, timed
    if stops["last_sign_ns"].notna().all():
        near = int(np.clip(NEAR_STEPS * usual_ns, NEAR_LEAST_S * S, NEAR_MOST_S * S))
        sign = stops["last_sign_ns"].to_numpy(dtype=np.int64)
        end = stops["restart_ns"].to_numpy(dtype=np.int64, na_value=BIG)
        begin = np.maximum(sign - near, stops["begun_ns"].to_numpy(dtype=np.int64))
        begin[1:] = np.maximum(begin[1:], np.minimum(end[:-1], sign[1:]))
        at = lines["ts_ns"].to_numpy(dtype=np.int64, na_value=-1)
        stop = np.searchsorted(begin, at, side="right") - 1
        of = np.maximum(stop, 0)
        out = np.where(timed & (stop >= 0) & (at < end[of]), stop, -1)
        held = (stops["down_s"].fillna(0.0).to_numpy(dtype=float) * S).astype(np.int64)  # after the last sign of life
        beside = lines["watched"].to_numpy() & lines["attempt"].isna().to_numpy() & (end[of] == BIG)
        out = np.where(beside & (at > sign[of] + held[of] + near), -1, out)
    else:
        timed = np.zeros(len(lines), dtype=bool)
    first = {int(a): i for i, a in reversed(list(enumerate(stops["attempt"])))}
    of = lines["attempt"].map(first).to_numpy(dtype=np.int64, na_value=-1)
    last = stops["last_step"].to_numpy(dtype=np.int64, na_value=-1)[np.maximum(of, 0)]
    step = lines["step"].to_numpy(dtype=np.int64, na_value=BIG)
    return np.where(~timed & (of >= 0) & (step >= last - NEAR_STEPS), of, out), timed


def _chosen(lines: pd.DataFrame) -> pd.DataFrame:
    """One line for each stop that has any, by the rule above."""
    untimed = lines.loc[~lines["timed"] & ~lines["symptom"] & ~lines["mild"], "stop"]
    yields = lines["again"] & lines["stop"].isin(untimed)
    ranked = lines.assign(early=np.where(yields, 2, ~lines["late"]), when=lines["ts_ns"].fillna(BIG))
    ranked = ranked.sort_values(["stop", "symptom", "early", "mild", "when", "order", "row"], kind="stable")
    return ranked.drop_duplicates("stop")


def _enter(found: pd.DataFrame, chosen: pd.DataFrame, lines: pd.DataFrame, table: pa.Table) -> None:
    """Write the chosen lines and how sure they are into `found`."""
    other = lines[~lines["symptom"] & ~lines["mild"]].merge(
        chosen[["stop", "family", "ts_ns"]], on="stop", suffixes=("", "_chosen")
    )
    moment = (other["ts_ns"] - other["ts_ns_chosen"]).abs() <= SAME_MOMENT_NS
    rivals = set(other.loc[moment.fillna(False) & (other["family"] != other["family_chosen"]), "stop"])
    sure = chosen["late"] & ~chosen["mild"] & ~chosen["stop"].isin(rivals)
    said = table.take(pa.array(chosen["row"].to_numpy()))
    at = chosen["stop"].to_numpy()
    for name in ("cause", "host", "device", "severity", "text", "source", "offset"):
        found.loc[at, name] = np.array([*said[name].to_pylist(), None], dtype=object)[:-1]
    found.loc[at, "evidence_ns"] = np.array([*said["ts_ns"].to_pylist(), None], dtype=object)[:-1]
    found.loc[at, "confidence"] = np.where(chosen["symptom"], "guess", np.where(sure, "certain", "likely"))
