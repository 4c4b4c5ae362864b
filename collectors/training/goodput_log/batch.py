"""Some entries of a log as columns, from whichever side they come: pyarrow's JSON reader or Python dictionaries."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from collectors.reading.textlog import clean, seconds_to_ns, whole
from collectors.training.goodput_log import keys
from collectors.training.goodput_log.fit import fits_arrow, key_places
from collectors.training.goodput_log.keys import INFO_NUMBER, NONE
from collectors.training.goodput_log.numbers import coded, hashes, seconds_ns, stamp_ns, stamps_ns
from collectors.training.goodput_log.places import Places

A = TypeVar("A", bound=pa.Array)

_TEXT, _REAL = pa.string(), pa.float64()
_TOP = ("logName", "severity", "insertId", "timestamp")
_EXACT_WHOLE = 1 << 53  # whole numbers from here on are not all float64
_RARE = 60  # entries of a block with a key: up to so many are looked at one by one, which a column would cost more than

Numbers = tuple[np.ndarray, np.ndarray]  # (which entries have one, ascending; int64 values)
Texts = tuple[np.ndarray, list[str]]  # (the number of each entry's text, -1 for none; the texts)


@dataclass(frozen=True)
class Batch:
    """Entries one after another.

    `payload`: which entries have a jsonPayload. `logged`: ns since the epoch, or NONE. `ids`: a 64-bit hash of the
    insertId, 0 for none. `texts`, `numbers` (times in ns since the epoch, whole numbers): by key of the entry or of its
    payload; a key that no entry has may be absent. `entry` and `offset` give an entry whole, and its place in the file
    in bytes, by its number in the batch: for few of them. `data`: the JSON it was read from, if it was read at once.
    """

    payload: np.ndarray
    logged: np.ndarray
    ids: np.ndarray
    texts: dict[str, Texts]
    numbers: dict[str, Numbers]
    entry: Callable[[int], dict]
    offset: Callable[[int], int]
    data: memoryview | None = None

    @property
    def count(self) -> int:
        return len(self.logged)

    def text(self, key: str) -> Texts:
        return self.texts[key] if key in self.texts else (np.full(self.count, -1, "i4"), [])


def from_json(data: memoryview, begin: int, separator: bytes) -> Batch | None:
    """The objects in `data`, with nothing but white space between them; None where they do not fit columns of one type.

    None as well for whatever pyarrow reads otherwise than Python's json: the caller reads such data entry by entry.
    `begin` is where it lies in the file, `separator` what stands between two objects, with their braces.
    """
    if not fits_arrow(data):
        return None
    columns, rare = _worth_a_column(data)
    schema = pa.schema(
        [
            *((name, _TEXT) for name in _TOP),
            ("jsonPayload", pa.struct([(key, _TEXT if key in keys.TEXTS else _REAL) for key in columns])),
        ]
    )
    table = columns_of(data, schema)
    if table is None:
        return None
    top = {name: whole_column(table[name], pa.StringArray) for name in _TOP}
    texts = {name: coded(top[name]) for name in ("logName", "severity")}
    payload = whole_column(table["jsonPayload"], pa.StructArray)
    numbers = {}
    for name, column in zip(columns, payload.flatten(), strict=True):
        if name in keys.TEXTS:
            texts[name] = coded(cast(pa.StringArray, column))  # the schema asks for text and for doubles
        elif (found := _numbers(cast(pa.DoubleArray, column), name in keys.TIMES)) is None:
            return None
        else:
            numbers[name] = found
    places = Places(data, begin, separator, len(payload))
    if rare:
        _add_rare(places, rare, texts, numbers)
    return Batch(
        payload.is_valid().to_numpy(False),
        stamps_ns(top["timestamp"]),
        hashes(top["insertId"]),
        texts,
        numbers,
        places.entry,
        places.offset,
        data,
    )


def _worth_a_column(data: memoryview) -> tuple[list[str], dict[str, np.ndarray]]:
    """(the keys of payloads to read as columns; keys that few entries have, with the places in the data)."""
    places = key_places(data)
    if places is None:
        return list(keys.ALL), {}
    rare = {key: at for key, at in places.items() if at.size <= _RARE}
    often = [key for key in places if key not in rare]
    return list(dict.fromkeys([keys.JOB, *often, *(other for key in often for other in keys.WITH.get(key, ()))])), rare


def _add_rare(
    places: Places, rare: dict[str, np.ndarray], texts: dict[str, Texts], numbers: dict[str, Numbers]
) -> None:
    """Values of keys that few entries have, read from these entries."""
    wanted = dict.fromkeys([*rare, *(other for key in rare for other in keys.WITH.get(key, ()))])
    which = places.entries_at(np.concatenate([*rare.values()]))
    payloads = [(i, _payload(places.entry(i)) or {}) for i in which.tolist()]
    for key in wanted:
        if key in keys.TEXTS and key not in texts:
            texts[key] = _sparse_texts(payloads, key, places.count)
        elif key in keys.NUMBERS and key not in numbers and (found := _sparse_numbers(payloads, key)) is not None:
            numbers[key] = found


def _sparse_texts(payloads: Iterable[tuple[int, dict]], key: str, count: int) -> Texts:
    codes, texts = np.full(count, -1, "i4"), {}
    for i, payload in payloads:
        if isinstance(text := payload.get(key), str):
            codes[i] = texts.setdefault(clean(text), len(texts))
    return codes, list(texts)


def _sparse_numbers(payloads: Iterable[tuple[int, dict]], key: str) -> Numbers | None:
    read = seconds_to_ns if key in keys.TIMES else whole
    values = [(i, value) for i, payload in payloads if key in payload and (value := read(payload[key])) is not None]
    if not values:
        return None
    which, found = zip(*values, strict=True)
    return np.array(which, "i8"), np.array(found, "i8")


def columns_of(data: memoryview, schema: pa.Schema) -> pa.Table | None:
    """The schema's columns of JSON objects that `fits_arrow`; None where an object has something of another type."""
    try:
        return pj.read_json(
            pa.BufferReader(data),  # pyright: ignore[reportArgumentType]  # the stubs lack Arrow's own files
            pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowException:
        return None


def whole_column(column: pa.ChunkedArray, kind: type[A]) -> A:
    """A column in one piece; `kind` is what its schema says it holds."""
    whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    assert isinstance(whole, kind)
    return whole


def _numbers(column: pa.DoubleArray, are_times: bool) -> Numbers | None:
    """Times as ns, else whole numbers; None where float64 may not hold these exactly."""
    there = np.flatnonzero(column.is_valid())
    values = column.drop_null().to_numpy()
    if are_times:
        found = seconds_ns(values)
        good = found != NONE
    elif np.any(np.abs(values) >= _EXACT_WHOLE):
        return None
    else:
        good = values == np.trunc(values)
        found = np.where(good, values, 0).astype("i8")
    return (there, found) if good.all() else (there[good], found[good])


def from_entries(entries: Sequence[tuple[int, dict]]) -> Batch:
    """The same from (offset, LogEntry as JSON) pairs."""
    found = [entry for _, entry in entries]
    payloads = [_payload(entry) for entry in found]
    inner = [(i, payload) for i, payload in enumerate(payloads) if payload is not None]
    top = list(enumerate(found))
    texts = {key: _sparse_texts(inner, key, len(found)) for key in keys.TEXTS}
    texts["logName"] = _sparse_texts(top, "logName", len(found))
    severities = [(i, {"severity": _severity(entry.get("severity"))}) for i, entry in top]
    texts["severity"] = _sparse_texts(severities, "severity", len(found))
    numbers = {key: values for key in keys.NUMBERS if (values := _sparse_numbers(inner, key)) is not None}
    ids = (entry.get("insertId") for entry in found)
    return Batch(
        np.array([payload is not None for payload in payloads], bool),
        np.array([stamp_ns(entry.get("timestamp")) for entry in found], "i8"),
        hashes(pa.array([clean(one) if isinstance(one, str) else None for one in ids], _TEXT)),
        texts,
        numbers,
        found.__getitem__,
        lambda i: entries[i][0],
    )


def _payload(entry: dict) -> dict | None:
    payload = entry.get("jsonPayload")
    return payload if isinstance(payload, dict) else None


def _severity(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return "INFO" if value == INFO_NUMBER else str(value)[:20]
