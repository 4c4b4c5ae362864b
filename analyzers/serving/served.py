"""Served requests with their latencies, in seconds, and what was left out of the statistics, by name.

    queue   = scheduled - arrival            prefill = first token - scheduled
    ttft    = first token - arrival          decode  = last token - first token
    e2e     = last token - arrival           tpot    = (e2e - ttft) / (output tokens - 1), of each request

Where an input states durations instead of times of day, those count. A request that did not complete has no latency,
whatever the tool wrote for it; one that the end of a load cut off has not failed. Times that cannot be (nothing before
its cause, nothing in no time) are kept out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analyzers.serving.loads_told_twice import with_servers_queue, without
from analyzers.serving.own_clocks import put_in_turn
from errors import QuestionError
from runs.tables import Tables, frame

LATENCIES = ("queue_s", "prefill_s", "ttft_s", "decode_s", "e2e_s", "tpot_s")
_COLUMNS = [
    "id",
    "stage",
    "replica",
    "tenant",
    "arrival_ns",
    "scheduled_ns",
    "first_token_ns",
    "last_token_ns",
    "ttft_ns",
    "e2e_ns",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "preemptions",
    "accepted",
    "drafted",
    "status",
    "error",
    "source",
]
ADVICE = (
    "Add per-request records: `vllm bench serve --save-result --save-detailed`, an AIPerf export, or the table "
    "`requests` as Parquet."
)


@dataclass(frozen=True)
class Served:
    """`rows`: one row a request that was sent to a server, in order of arrival where that is known. Columns of the
    table `requests` without lists and stated durations, then `completed`, `cut_off` and `failed` (neither of them) as
    bools, `out_of` ("" or why its times are out of the statistics), `one_piece` (several tokens that came at once) and
    the latencies of LATENCIES in seconds, NaN where unknown.

    `origin_ns`: the first arrival, None where no time of day is known. `notes`: what was left out of these rows, in
    sentences; `turns`: what must be said of the times of all.
    """

    rows: pd.DataFrame
    tables: Tables
    order: np.ndarray  # position of each row in the table
    origin_ns: int | None
    notes: tuple[str, ...]
    turns: tuple[str, ...] = ()

    @property
    def timed(self) -> pd.DataFrame:
        """The rows whose latencies count."""
        return self.rows[self.rows["completed"] & (self.rows["out_of"] == "")]

    @cached_property
    def gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """(gap in seconds, position in `rows` of its request) of every recorded gap of the timed rows, in order.

        Negative gaps are left out; zero ones stay: a client may read two pieces at once.
        """
        column = self.tables.arrow("requests", ["gaps_ns"])["gaps_ns"].combine_chunks()
        column = column.take(pa.array(self.order))
        flat = pc.list_flatten(column)
        owner = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
        seconds = flat.cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e9
        counts = (self.rows["completed"] & (self.rows["out_of"] == "")).to_numpy()
        good = counts[owner] & (seconds >= 0) if len(owner) else np.zeros(0, dtype=bool)
        return seconds[good], owner[good]

    @property
    def ended(self) -> "Served":
        """Those that were answered or failed: without what the end of a load cut off."""
        mine = ~self.rows["cut_off"].to_numpy(dtype=bool)
        if mine.all():
            return self
        return replace(self, rows=self.rows[mine].reset_index(drop=True), order=self.order[mine])

    def for_stage(self, stage: str | None) -> "Served":
        """The requests of one load; all where `stage` is None. Raises QuestionError where it has none."""
        if stage is None:
            return self
        mine = (self.rows["stage"].astype(str) == stage).to_numpy()
        if not mine.any():
            names = self.rows["stage"].dropna().astype(str).unique()
            raise QuestionError(f"no requests of a load {stage!r}", expected=f"one of {', '.join(names) or 'none'}")
        return self.part(mine)

    def part(self, mine: np.ndarray) -> "Served":
        """The requests at these rows, with what is to be said of them alone."""
        rows = self.rows[mine].reset_index(drop=True)
        return Served(
            rows, self.tables, self.order[mine], _origin(rows), (*self.turns, *_left_out(rows)), turns=self.turns
        )


def has_requests(tables: Tables) -> bool:
    """Whether the run holds requests that somebody served, and not only a trace of traffic."""
    return tables.rows("requests") > 0 and bool(
        pc.any(pc.is_valid(tables.arrow("requests", ["status"])["status"])).as_py()
    )


def served(tables: Tables) -> Served:
    """Every request that was sent to a server. Raises QuestionError where the run has none."""
    if not tables.rows("requests"):
        raise QuestionError("this run has no record of single requests", advice=ADVICE)
    rows = with_servers_queue(tables, frame(tables, "requests", _COLUMNS))
    of_once = without(tables, rows).index.to_numpy()
    rows, turns = put_in_turn(rows.iloc[of_once].reset_index(drop=True))
    sent = rows["status"].notna().to_numpy()
    if not sent.any():
        raise QuestionError(
            "this is a trace of traffic: it says what was asked for, and nobody served it",
            advice="Replay it on a setup with `chipledger whatif serving --trace FILE`, or add a run that served it.",
        )
    arrival = rows["arrival_ns"].to_numpy(dtype=np.int64, na_value=np.iinfo(np.int64).max)
    order = np.argsort(arrival, kind="stable")
    order = order[sent[order]]
    rows, order = rows.iloc[order].reset_index(drop=True), of_once[order]
    for state in ("completed", "cut_off"):
        rows[state] = (rows["status"].astype(str) == state).to_numpy()
    rows["failed"] = ~rows["completed"] & ~rows["cut_off"]
    _latencies(rows)
    _exclude(rows)
    _in_one_piece(rows)
    rows = rows[[c for c in rows.columns if c not in ("ttft_ns", "e2e_ns", "source")]]
    return Served(rows, tables, order, _origin(rows), (*turns, *_left_out(rows)), turns=tuple(turns))


def sampled(of: Served, counted: object) -> int | None:
    """Completed requests kept, where their tool counts others (`counted`: `completed` of `stages`); else None."""
    kept = int(of.rows["completed"].sum())
    return None if counted is None or pd.isna(counted) or int(counted) == kept else kept


def _origin(rows: pd.DataFrame) -> int | None:
    known = rows["arrival_ns"].dropna()
    return int(known.min()) if len(known) else None


def _latencies(rows: pd.DataFrame) -> None:
    def between(a: str, b: str) -> np.ndarray:
        return ((rows[b] - rows[a]).astype("Float64") / 1e9).to_numpy(dtype=float, na_value=np.nan)

    def stated(name: str, otherwise: np.ndarray) -> np.ndarray:
        said = (rows[name].astype("Float64") / 1e9).to_numpy(dtype=float, na_value=np.nan)
        return np.where(np.isnan(said), otherwise, said)

    rows["queue_s"] = between("arrival_ns", "scheduled_ns")
    rows["prefill_s"] = between("scheduled_ns", "first_token_ns")
    rows["ttft_s"] = stated("ttft_ns", between("arrival_ns", "first_token_ns"))
    rows["e2e_s"] = stated("e2e_ns", between("arrival_ns", "last_token_ns"))
    rows["decode_s"] = rows["e2e_s"] - rows["ttft_s"]
    tokens = rows["output_tokens"].to_numpy(dtype=float, na_value=np.nan)
    after = np.where(tokens > 1, tokens - 1, np.nan)
    rows["tpot_s"] = rows["decode_s"] / after


def _exclude(rows: pd.DataFrame) -> None:
    """Mark rows whose times cannot be, and blank the latencies of all that count for none."""
    why = np.full(len(rows), "", dtype=object)
    done = rows["completed"].to_numpy()
    checks = (
        ("its answer took no time, or less", rows["e2e_s"] <= 0),
        ("its first token came at once, or before it arrived", rows["ttft_s"] <= 0),
        ("its last token came before its first", rows["decode_s"] < 0),
        ("it was scheduled before it arrived", rows["queue_s"] < 0),
        ("its first token came before it was scheduled", rows["prefill_s"] < 0),
    )
    for reason, wrong in checks:
        why[wrong.fillna(False).to_numpy(dtype=bool) & done & (why == "")] = reason
    rows["out_of"] = why
    rows.loc[~done | (why != ""), list(LATENCIES)] = np.nan


def _in_one_piece(rows: pd.DataFrame) -> None:
    """Mark answers of several tokens that came in one piece, and blank what they do not tell: when their first was
    made, and at what pace the others. Where some answers of a load were streamed, single pieces are how these were
    sent: TTFT stays."""
    several = (rows["output_tokens"] > 1).fillna(False).to_numpy(dtype=bool) & rows["decode_s"].notna().to_numpy()
    at_once = (rows["decode_s"] == 0).to_numpy()
    whole = several & at_once
    rows["one_piece"] = whole
    if not whole.any():
        return
    rows.loc[whole, "tpot_s"] = np.nan
    load = rows["stage"].astype("string").fillna("").to_numpy(dtype=object)
    pieces = pd.DataFrame({"streamed": several & ~whole, "whole": whole}).groupby(load).transform("any")
    rows.loc[(pieces["whole"] & ~pieces["streamed"]).to_numpy() & at_once, ["ttft_s", "prefill_s", "decode_s"]] = np.nan


def _left_out(rows: pd.DataFrame) -> list[str]:
    """What must be said of rows that tell no latency, or not all of it."""
    notes = []
    out = rows[rows["out_of"] != ""]
    for reason, mine in out.groupby("out_of", sort=False):
        named = _some(mine["id"].dropna().astype(str))  # tables that people write often name no request
        notes.append(
            f"{len(mine):,} of {len(rows):,} requests are left out of the statistics of time: {reason}"
            f"{f' ({named})' if named else ''}."
        )
    if failed := int(rows["failed"].sum()):
        notes.append(f"{failed:,} of {len(rows):,} requests did not complete: they have no latency.")
    if cut := int(rows["cut_off"].sum()):
        notes.append(
            f"{cut:,} of {len(rows):,} requests still ran when the load ended, which cut them off: they are in flight "
            "until then, have not failed, and have no latency."
        )
    return [*notes, *_said_of_pieces(rows)]


def _said_of_pieces(rows: pd.DataFrame) -> list[str]:
    whole = rows["one_piece"].to_numpy(dtype=bool)
    unstreamed = whole & rows["ttft_s"].isna().to_numpy()
    notes = []
    if single := int((whole & ~unstreamed).sum()):
        notes.append(f"{single:,} of {len(rows):,} answers came in one piece: they tell no time per token.")
    if unstreamed.any():
        names = rows.loc[unstreamed, "stage"].dropna().astype(str).unique()
        others = rows.loc[~unstreamed & rows["ttft_s"].notna().to_numpy(), "stage"]
        where = f" of {_some(names)}" if len(names) and len(others) else ""
        notes.append(
            f"Answers of several tokens{where} came in one piece: they were not streamed, so that neither the time to "
            "the first token nor that of one is told."
        )
    return notes


def _some(ids: Iterable[str], most: int = 3) -> str:
    ids = list(ids)
    return ", ".join(ids[:most]) + (f" and {len(ids) - most:,} more" if len(ids) > most else "")


def late(rows: pd.DataFrame, objectives: Mapping[str, float]) -> np.ndarray:
    """Which rows miss an objective (`{latency: seconds}`, names of LATENCIES): a latency above it. Unknown ones do not.

    Requests that did not complete have no latency: whether they count as missed is the caller's to say.
    """
    missed = np.zeros(len(rows), dtype=bool)
    for name, most in objectives.items():
        missed |= (rows[name] > most).fillna(False).to_numpy(dtype=bool)
    return missed


def summary(values: np.ndarray | pd.Series) -> dict[str, float] | None:
    """mean, std, min, p50, p90, p95, p99, max of known values, percentiles interpolated linearly (as NumPy and vLLM
    do); None where there are none."""
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    if not len(known):
        return None
    p50, p90, p95, p99 = np.percentile(known, [50, 90, 95, 99])
    return {
        "mean": float(known.mean()),
        "std": float(known.std()),
        "min": float(known.min()),
        "p50": float(p50),
        "p90": float(p90),
        "p95": float(p95),
        "p99": float(p99),
        "max": float(known.max()),
    }
