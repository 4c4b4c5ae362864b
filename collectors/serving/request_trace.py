"""Traces of traffic: when requests came and how long prompts and answers were, whoever served them.

CSV (comma, semicolon or tab) with a head, or JSON objects (lines or one array). Columns go by their usual names in any
spelling (`ContextTokens`, `context_tokens`, `Request tokens`): see ROLES. Known layouts:

    Azure LLM traces   TIMESTAMP (a date with up to 9 digits of a second), ContextTokens, GeneratedTokens
    Mooncake           timestamp (ms from zero, whatever it begins with), input_length, output_length, hash_ids
                       (blocks of 512 tokens)
    BurstGPT           Timestamp (s), Model, Request tokens, Response tokens, Log Type
    others             any of the names of ROLES; a time that counts from zero is in seconds unless its name says else,
                       or in milliseconds where it begins beyond three years

Times that count from zero stay so (fact `arrival_origin`: trace). Rows have no status: nobody says here that they were
served; only where a column tells a latency (its unit in its name: `ttft_s`, `e2e_ms`) they are `completed`, or what
their status or their error says (`collectors/serving/request_ends.py`). So what a load generator of one's own wrote is
read too, prompt tokens that were cached included: each file is a load.
"""

import csv as plain_csv
import io
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from collectors.base import Fact, Item, Lost, Rows, Source
from collectors.reading.encodings import Utf8
from collectors.reading.json_stream import objects
from collectors.reading.textlog import BATCH_ROWS, DATED, Tally, clean, moment_ns
from collectors.serving.request_columns import LATENCIES, ROLES, UNITS_NS
from collectors.serving.request_ends import ends, of_each
from errors import InputError
from runs.schema import SCHEMAS

NAME = "request_trace"
TITLE = "traffic trace"
HELP = "Traces of traffic (Azure, Mooncake, BurstGPT, any CSV or JSON lines): arrivals, prompt and output lengths."

_SERVED = re.compile(
    rb"first_token(?!(?:_latency)?_(?:[num]?s|m?sec\w*|(?:milli|micro|nano)\w*)\b)|itls?\"|\bttfts\b|inter_token|scheduled_ts|perf/",
    re.IGNORECASE,
)  # others' formats
_ENDING = re.compile(r"\.(?:csv|tsv|txt|jsonl?|ndjson)(?:\.gz)?$", re.IGNORECASE)
_WIDEST = 1 << 1023  # a whole number that a float still holds
_FIRST_S, _LAST_S = 9e8, 4.2e9  # 1998 and 2103: numbers between them, in some unit, count from 1970
_LONGEST_S = 1e8  # three years: a trace that counts from zero and would last longer is not in seconds
MAX_TOKENS = 1 << 31
MAX_BLOCKS = 1 << 20
MAX_NAMES = 1_000  # of columns of objects that are looked at for one that is not read
MOONCAKE_BLOCK_TOKENS = 512


def sniff(source: Source) -> float:
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = head.partition(b"\n")[0]
    if b"\0" in head or _SERVED.search(first):
        return 0.0
    if first[:1] in (b"{", b"["):
        keys = re.findall(r'"([^"\\]{1,40})"\s*:', head[:4096].decode("utf-8", "replace"))
        found = _roles(dict.fromkeys(keys))
        return 0.0 if not {"time", "prompt"} <= found.keys() else 0.9 if "hashes" in found else 0.7
    found = _roles(_head(first)[0])
    return 0.85 if {"time", "prompt"} <= found.keys() else 0.0


def read(source: Source) -> Iterator[Item]:
    """Requests and what the file says of its times. Raises InputError where no row has a time and a prompt."""
    tally = Tally()
    trace = _Trace(source, tally)
    packed = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    for columns in _json(source, tally) if packed else _csv(source, tally):
        if (rows := trace.rows(columns)) is not None:
            yield rows
    if not trace.kept:
        told = "; ".join(f"{lost.what}: {lost.reason}" for lost in tally.lost())
        raise InputError(
            f"no request with a time and a length{f' ({told})' if told else ''}",
            where=source.name,
            expected="columns such as timestamp, input_tokens, output_tokens (times as dates or numbers)",
        )
    yield from trace.facts()
    yield from tally.lost()


def _roles(names: Any) -> dict[str, str]:
    """{role: column} for the columns that have one; the earlier name of a role wins. Latencies: `ttft_ns`, `e2e_ns`."""
    plain = {re.sub(r"[^a-z0-9]", "", str(name).lower()): str(name) for name in reversed(list(names))}
    found: dict[str, str] = {}
    for role, aliases in ROLES.items():
        units = ("", *UNITS_NS) if role == "time" else ("",)
        name = next((plain[a + u] for a in aliases for u in units if a + u in plain), None)
        if name is not None:
            found[role] = name
    for word, role in LATENCIES.items():
        name = next((n for u in UNITS_NS if (n := plain.get(word + u)) is not None and _unit(n) is not None), None)
        if name is not None:
            found.setdefault(role, name)
    return found


@lru_cache(256)
def _roles_of(names: tuple[str, ...]) -> dict[str, str]:
    """The same of objects, which are many with the same names."""
    return _roles(names)


def _unread(names: Any, tally: Tally) -> None:
    """Names the columns of latencies that do not tell their unit."""
    roles = _roles(names)
    for name in names:
        role = LATENCIES.get(re.sub(r"[^a-z0-9]", "", str(name).lower()))
        if role is not None and role not in roles:
            tally.add(
                f"column {clean(str(name))[:40]!r}", "its name ends in no unit, as ttft_s and e2e_ms do: not read"
            )


def _unit(column: str) -> int | None:
    """ns in the unit that ends a column's name, such as `ttft_s` or `TTFTms`; None where none does (an s alone may be
    that of several)."""
    word = re.sub(r"[^a-z0-9]+", " ", re.sub(r"([a-z])([A-Z])", r"\1 \2", column).lower()).split()
    if len(word) > 1:
        return UNITS_NS.get(word[-1])
    return next((UNITS_NS[u] for name in LATENCIES for u in UNITS_NS if word == [name + u] and u != "s"), None)


def _head(first: bytes) -> tuple[list[str], str]:
    """(names in the first line of a CSV file, what separates them)."""
    text = first.decode("utf-8", "replace").strip("\r\n \ufeff")
    best = max((",", ";", "\t"), key=text.count)
    try:
        return [name.strip() for name in next(plain_csv.reader([text], delimiter=best), [])], best
    except plain_csv.Error:
        return [], best


def _csv(source: Source, tally: Tally) -> Iterator[dict[str, pa.Array]]:
    """{column: text} for some rows at a time."""
    names, separator = _head(source.head.partition(b"\n")[0])
    if len(set(names)) < len(names):
        names = [name if names.index(name) == n else f"{name} #{n}" for n, name in enumerate(names)]

    def uneven(row: csv.InvalidRow) -> Literal["skip"]:
        tally.add("rows", "more or fewer fields than the head")
        return "skip"

    _unread(names, tally)
    wanted = list(_roles(names).values())
    if not {"time", "prompt"} <= _roles(names).keys():
        return
    try:
        yield from (
            {name: batch.column(name) for name in wanted}
            for batch in csv.open_csv(
                io.BufferedReader(Utf8(source.open())),
                read_options=csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False, block_size=1 << 22),
                parse_options=csv.ParseOptions(delimiter=separator, invalid_row_handler=uneven),
                convert_options=csv.ConvertOptions(
                    include_columns=wanted,
                    column_types={n: pa.string() for n in names},
                    strings_can_be_null=True,
                ),
            )
        )
    except (pa.ArrowException, ValueError) as e:
        said = clean((str(e) or type(e).__name__).splitlines()[0])[:200]
        raise InputError(f"the table is damaged ({said})", where=source.name) from e


def _json(source: Source, tally: Tally) -> Iterator[dict[str, list]]:
    """{column: values} for some objects at a time."""
    roles: dict[str, str] = {}
    seen: dict[str, None] = {}
    kept: list[dict] = []
    for offset, entry in objects(source, tally):
        told = _roles_of(tuple(entry))
        if not {"time", "prompt"} <= told.keys():
            tally.add("objects", "they have no time and prompt length", offset)
            continue
        roles = told | roles  # an error stands in those that failed alone, a latency in those that did not
        seen |= dict.fromkeys(entry) if len(seen) < MAX_NAMES else {}
        kept.append(entry)
        if len(kept) >= BATCH_ROWS:
            yield {name: [e.get(name) for e in kept] for name in roles.values()}
            kept = []
    _unread(seen, tally)
    if kept:
        yield {name: [e.get(name) for e in kept] for name in roles.values()}


class _Trace:
    def __init__(self, source: Source, tally: Tally):
        self.source, self.tally = clean(source.name), tally
        self.stage = clean(_ENDING.sub("", source.name)) or "load"
        self.kept = 0
        self.said: dict[str, Any] = {}
        self._unit_ns: int | None = None  # of a time that is a number
        self._dated: bool | None = None
        self._blocks: set[bool] = set()  # whether hash_ids are as many as blocks of 512 tokens

    def rows(self, columns: dict[str, Any]) -> Rows | None:
        """The usable rows of a piece; the others are counted."""
        roles = _roles(columns)
        values = {role: columns[name] for role, name in roles.items()}
        arrival, timed = self._times(values["time"], roles["time"], "hashes" in roles)
        prompt = _number(values["prompt"])
        long = (prompt >= 0) & (prompt < MAX_TOKENS) & (prompt == np.floor(prompt))
        output = _number(values["output"]) if "output" in roles else np.full(len(prompt), np.nan)
        answered = np.isnan(output) | ((output >= 0) & (output < MAX_TOKENS) & (output == np.floor(output)))
        self._count("rows", "their time is none, or before the epoch", ~timed)
        self._count("rows", "their prompt is no whole number of tokens from 0", timed & ~long)
        self._count("rows", "their answer is no whole number of tokens from 0", timed & long & ~answered)
        used = np.flatnonzero(timed & long & answered)
        if not len(used):
            return None
        self.kept += len(used)
        made: dict[str, Any] = {
            "arrival_ns": arrival[used],
            "prompt_tokens": prompt[used].astype(np.int64),
            "output_tokens": _whole(output[used]),
            "source": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(len(used), "i4"), pa.int32()), pa.array([self.source])
            ),
        }
        if "id" in values:
            made["id"] = [_word(v) for v in _list(values["id"], used)]
        if (tenant := self._tenant(values, used)) is not None:
            made["tenant"] = tenant
        if "cached" in values:
            cached = _number(values["cached"])[used]
            known = (cached >= 0) & (cached <= prompt[used]) & (cached == np.floor(cached))
            self._count("cached tokens", "they are no whole number from 0 to the prompt's", ~known & ~np.isnan(cached))
            made["cached_tokens"] = _whole(np.where(known, cached, np.nan))
        if "hashes" in values:
            made["hash_ids"] = self._hashes(_list(values["hashes"], used), made["prompt_tokens"])
        self._latencies(values, roles, used, made)
        return Rows("requests", SCHEMAS["requests"].batch(made))

    def facts(self) -> Iterator[Item]:
        for name, value in self.said.items():
            yield Fact(name, value)
        if self._blocks == {True}:
            yield Fact("block_tokens", MOONCAKE_BLOCK_TOKENS, "derived")
        elif self._blocks:
            yield Lost("hash_ids", "they are not as many as blocks of 512 tokens: how long a block is nobody says")

    def _count(self, what: str, why: str, which: np.ndarray) -> None:
        if count := int(which.sum()):
            self.tally.add(what, why, count=count)

    def _times(self, column: Any, name: str, mooncake: bool) -> tuple[np.ndarray, np.ndarray]:
        """(ns, whether it is a time) of each row. What most of the first piece are, all are."""
        number = _number(column)
        if self._dated is None:
            self._dated = int(np.isnan(number).sum()) * 2 > len(number)
        if self._dated:
            self.said["arrival_origin"] = "1970"
            return _dates(column)
        usable = np.isfinite(number) & (number >= 0)
        if self._unit_ns is None and usable.any():
            self._learn(float(number[usable][0]), name, mooncake)
        unit = self._unit_ns or 1
        usable &= number < 9.2e18 / unit
        held = np.where(usable, number, 0.0)
        whole = np.floor(held)
        ns = whole.astype(np.int64) * unit + np.rint((held - whole) * unit).astype(np.int64)
        return ns, usable

    def _learn(self, first: float, name: str, mooncake: bool) -> None:
        """The unit of times that are numbers: by the column's name, by the layout, or by which date they would be."""
        units = {ns: _FIRST_S <= first * ns / 1e9 <= _LAST_S for ns in sorted(set(UNITS_NS.values()))}
        since_1970 = next((ns for ns, is_date in units.items() if is_date), None)
        if mooncake and since_1970 == UNITS_NS["s"]:  # its format counts milliseconds, and these are no date in them
            since_1970 = None
        named, ms = _unit(name), UNITS_NS["ms"]
        assumed = ms if mooncake or first >= _LONGEST_S else UNITS_NS["s"]
        self._unit_ns = named or since_1970 or assumed
        dated = _FIRST_S <= first * self._unit_ns / 1e9 <= _LAST_S
        self.said["arrival_origin"] = "1970" if dated and not (mooncake and since_1970 is None) else "trace"
        if named is None and since_1970 is None and not mooncake:
            self.said["arrival_unit"] = "ms" if assumed == ms else "s"

    def _tenant(self, values: dict[str, Any], used: np.ndarray) -> list[str | None] | None:
        """Who asked; where only the model and the kind of log are told, these are the class of traffic."""
        parts = [values[r] for r in (("tenant",) if "tenant" in values else ("model", "log")) if r in values]
        if not parts:
            return None
        lists = [of_each(_list(part, used), _word) for part in parts]
        return [" ".join(w for w in words if w) or None for words in zip(*lists, strict=True)]

    def _hashes(self, lists: list[Any], prompt: np.ndarray) -> list[list[int] | None]:
        kept = []
        for ids, tokens in zip(lists, prompt.tolist(), strict=True):
            good = (
                isinstance(ids, list)
                and len(ids) <= MAX_BLOCKS
                and all(type(i) is int and -(1 << 63) <= i < 1 << 63 for i in ids)
            )
            kept.append(ids if good else None)
            if good:
                self._blocks.add(-(-tokens // MOONCAKE_BLOCK_TOKENS) == len(ids))
            elif ids is not None:
                self.tally.add("hash_ids", "they are no list of whole numbers")
        return kept

    def _latencies(self, values: dict[str, Any], roles: dict[str, str], used: np.ndarray, made: dict[str, Any]) -> None:
        """Where the trace tells how long a request took: its latencies and its status."""
        told = np.zeros(len(used), dtype=bool)
        for role in ("ttft_ns", "e2e_ns"):
            if role in values:
                ns = _number(values[role])[used] * (_unit(roles[role]) or 1)
                made[role] = _whole(np.where((ns >= 0) & (ns < 9e18), np.rint(ns), np.nan))
                told |= ns >= 0
        if not ({"ttft_ns", "e2e_ns"} & values.keys()):
            return
        status, errors = (_list(values[r], used) if r in values else None for r in ("status", "error"))
        made["status"] = ends(told, status, roles.get("status", ""), errors, self.tally)
        made["stage"] = [self.stage] * len(used)


def _list(column: Any, used: np.ndarray) -> list[Any]:
    if isinstance(column, pa.Array):
        return column.take(pa.array(used, pa.int64())).to_pylist()
    return [column[i] for i in used.tolist()]


def _word(value: Any) -> str | None:
    return None if value is None or value == "" or isinstance(value, list | dict) else clean(str(value).strip())[:200]


def _number(column: Any) -> np.ndarray:
    """As floats; NaN for what is none."""
    import pandas as pd  # late: every ingest lists the collectors, few read text as numbers

    if isinstance(column, pa.Array):
        values = column.to_numpy(zero_copy_only=False)
    else:
        values = np.empty(len(column), dtype=object)
        values[:] = [v if isinstance(v, float | str) or _fits(v) else None for v in column]
    return pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def _fits(value: Any) -> bool:
    """Whether it is a whole number that a float holds: JSON has some of any number of digits."""
    return isinstance(value, int) and not isinstance(value, bool) and -_WIDEST < value < _WIDEST


def _whole(values: np.ndarray) -> pa.Array:
    missing = np.isnan(values)
    return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)


def _dates(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """(ns since the epoch, whether it is one) of dates as text; without a zone they are UTC."""
    if isinstance(column, pa.Array):
        for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
            try:
                found = column.cast(kind).cast(pa.int64())
            except pa.ArrowException:
                continue
            return found.fill_null(0).to_numpy(), found.is_valid().to_numpy(zero_copy_only=False)
        column = column.to_pylist()
    matches = (DATED.match(v.strip()) if isinstance(v, str) else None for v in column)
    ns = [moment_ns(m) if m else None for m in matches]
    return np.array([n or 0 for n in ns], dtype=np.int64), np.array([n is not None for n in ns], dtype=bool)
