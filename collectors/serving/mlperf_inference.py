"""MLPerf Inference: what LoadGen writes of one scenario, mlperf_log_summary.txt and mlperf_log_detail.txt.

    summary     a load: rates, and latencies of samples, first tokens and tokens after them, in ns
    detail      the same as `:::MLLOG` lines with settings: facts alone, since both tell of one load

Server sends at random times at `target_qps`, Offline all at once, SingleStream one after another. LoadGen's "time to
output token" is TPOT. A result that LoadGen calls INVALID is named: its numbers broke a rule of the benchmark.
Interactive is a Server run with tighter limits: the summary calls it Server.
"""

import json
import re
from collections.abc import Iterator
from math import inf
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.textlog import Tally, clean, lines
from collectors.serving.serving_rows import Loads, count, number, rate, statistic
from errors import InputError

NAME = "mlperf-inference"
TITLE = "MLPerf Inference result"
HELP = "MLPerf Inference (LoadGen): rates and latencies of mlperf_log_summary.txt, settings of mlperf_log_detail.txt."

_TITLE = "MLPerf Results Summary"
_STARTS = re.compile(rb"\s*=+\s+MLPerf Results Summary")
_MARK = ":::MLLOG"
_DETAIL = re.compile(rb':::MLLOG \{"key"')
_ROW = re.compile(r"\s*+(?:\*\s*+)?(?P<name>[A-Za-z0-9_.][^:]*+):\s*+(?P<value>\S.*)")
_LATENCY = re.compile(
    r"(?P<which>Min|Max|Mean|[\d.]+(?:th)?(?= (?:percentile|first token percentile)))(?: percentile)?"
    r"(?P<of> latency| first token(?: percentile)? latency| time to output token) \(ns\)",
    re.IGNORECASE,
)
_OF = {"latency": "e2e", "first token latency": "ttft", "time to output token": "tpot"}
_RATES = ("completed samples per second", "samples per second", "qps w/ loadgen overhead")
_TOKENS = ("completed tokens per second", "tokens per second", "tps w/ loadgen overhead")
_INFERRED = ("completed tokens per second (inferred)", "tokens per second (inferred)")
_SETTINGS = {  # of the detailed log: what a run calls it
    "loadgen_version": "loadgen_version",
    "sut_name": "mlperf_sut",
    "effective_scenario": "mlperf_scenario",
    "effective_test_mode": "mlperf_mode",
    "effective_target_qps": "mlperf_target_qps",
    "result_validity": "mlperf_result",
    "result_query_count": "mlperf_queries",
    "result_invalid_reason": "mlperf_invalid_reason",
}
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_MOST_ROWS = 100_000


def sniff(source: Source) -> float:
    if b"\0" in source.head:
        return 0.0
    if _STARTS.match(source.head):
        return 0.95
    if _DETAIL.search(source.head[:4096]) and b"loadgen" in source.head:
        return 0.9
    return 0.6 if _TITLE.encode() in source.head and b"SUT name" in source.head else 0.0


def read(source: Source) -> Iterator[Item]:
    """A load and facts. Raises InputError where there is neither a summary nor a detailed log."""
    tally = Tally()
    rows, settings = _rows(source, tally)
    if rows:
        yield from _summary(source, rows, tally)
    elif settings:
        for name, value in settings.items():
            yield Fact(name, value)
    else:
        raise InputError(
            "no LoadGen summary or detailed log",
            where=source.name,
            expected=f"a file that begins with `{_TITLE}`, or `:::MLLOG` lines of LoadGen",
        )
    yield from tally.lost()


def _rows(source: Source, tally: Tally) -> tuple[dict[str, str], dict[str, Any]]:
    """(rows of the last summary by lower-case name, settings of a detailed log)."""
    rows: dict[str, str] = {}
    settings: dict[str, Any] = {}
    inside = False
    for offset, line, _ in lines(source):
        if _TITLE in line:
            if rows:
                tally.add("summaries", "more than one in the file: the last one counts", offset)
            rows, inside = {}, True
        elif _MARK in line:
            _setting(line, settings, tally, offset)
        elif inside and len(rows) < _MOST_ROWS and (match := _ROW.fullmatch(line)):
            rows.setdefault(" ".join(match["name"].split()).lower(), match["value"].rstrip())
    return rows, settings


def _setting(line: str, settings: dict[str, Any], tally: Tally, offset: int) -> None:
    start = line.find("{", line.find(_MARK))
    try:
        entry = _DECODER.raw_decode(line, start)[0] if start >= 0 else None
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
        tally.add("MLLOG lines", "cut off, or no JSON", offset)
    elif entry["key"] in _SETTINGS and isinstance(value := entry.get("value"), str | int | float):
        said = clean(value)[:200] if isinstance(value, str) else count(value)
        settings[_SETTINGS[entry["key"]]] = number(value) if said is None else said
    elif entry["key"].startswith(("error_", "warning_")):
        tally.add("errors and warnings of LoadGen", clean(entry["key"])[:60], offset)


def _summary(source: Source, rows: dict[str, str], tally: Tally) -> Iterator[Item]:
    scenario, result = rows.get("scenario"), rows.get("result is")
    if scenario is None or result is None:
        raise InputError(
            "a summary without a scenario and a result",
            where=source.name,
            expected="`Scenario : Server` and `Result is : VALID`",
            advice="Is it complete?",
        )
    if "accuracy" in rows.get("mode", "").lower():
        tally.add("load", "an accuracy run: its times are not those of the benchmark")
    broken: list[str] = []
    if result.upper() != "VALID":
        broken = [name for name, said in rows.items() if name.endswith("satisfied") and said.upper() == "NO"]
        tally.add("result", f"LoadGen calls it {clean(result)[:40]}: {', '.join(broken) or 'no reason given'} NO")
    loads = Loads(source, NAME)
    loads.add(_columns(rows, scenario, tally), _statistics(rows, tally), name=_stage(source, scenario))
    yield from loads.rows()
    yield from _facts(rows, scenario, result)
    if broken:
        names = ", ".join(name.removesuffix("satisfied").strip() for name in broken)
        yield Fact("mlperf_invalid_reason", f"not satisfied: {names}"[:200])


def _stage(source: Source, scenario: str) -> str:
    folder = re.sub(r"(?:mlperf_log_)?(?:summary|detail)?\.txt(?:\.gz)?$", "", source.name).strip("/_- ")
    known = scenario.lower() in folder.lower()
    return clean(folder if known else f"{folder} {scenario}".strip())


def _columns(rows: dict[str, str], scenario: str, tally: Tally) -> dict[str, Any]:
    asked = {"server": rate(rows.get("target_qps")), "offline": inf}.get(scenario.lower())
    tokens = next((number(rows[name]) for name in _TOKENS if name in rows), None)
    if tokens is None and (guessed := next((number(rows[name]) for name in _INFERRED if name in rows), None)):
        tally.add("tokens per second", "inferred by LoadGen from a fixed number of tokens a sample, not counted")
        tokens = guessed
    return {
        "requested_rate_per_s": asked,
        "max_concurrency": 1 if scenario.lower() == "singlestream" else None,
        "request_rate_per_s": next((number(rows[name]) for name in _RATES if name in rows), None),
        "output_tokens_per_s": tokens,
    }


def _statistics(rows: dict[str, str], tally: Tally) -> dict[tuple[str, str], float]:
    stats: dict[tuple[str, str], float] = {}
    for name, value in rows.items():
        match = _LATENCY.fullmatch(name)
        which = statistic(match["which"]) if match else None
        if match is None or which is None:
            continue
        ns = number(value)
        if ns is None or ns <= 0:
            tally.add("latencies", "0 or less, or no number")
            continue
        metric = _OF[match["of"].strip().lower().replace(" percentile", "")]
        stats.setdefault((metric, which), float(f"{ns / 1e9:.15g}"))
    return stats


def _facts(rows: dict[str, str], scenario: str, result: str) -> Iterator[Fact]:
    yield Fact("mlperf_scenario", clean(scenario)[:100])
    yield Fact("mlperf_result", clean(result)[:100])
    for row, name in (("sut name", "mlperf_sut"), ("mode", "mlperf_mode")):
        if row in rows:
            yield Fact(name, clean(rows[row])[:200])
    for row, name in (
        ("ttft_latency (ns)", "mlperf_ttft_limit_s"),
        ("tpot_latency (ns)", "mlperf_tpot_limit_s"),
        ("target_latency (ns)", "mlperf_latency_limit_s"),
    ):
        limit = number(rows.get(row))
        if limit and scenario.lower() == "server":
            yield Fact(name, limit / 1e9)
    if (least := count(rows.get("min_query_count"))) is not None:
        yield Fact("mlperf_min_queries", least)
