"""Entries of logs in other layouts than JSON, as objects of JSON: a table (CSV, as the console of Cloud Logging,
CloudWatch, Grafana, Kibana and Splunk download it) and documents of YAML (what `gcloud logging read` prints unless told
otherwise)."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from collectors.base import Source
from collectors.reading.textlog import Tally
from errors import InputError

_TEXTS = {"textpayload", "jsonpayload.message", "@message", "message", "line", "log", "msg", "content", "_raw"}
_TIMES = {"timestamp", "@timestamp", "time", "date", "ts", "tsns", "receivetimestamp", "_time"}
_NAMES = {  # of columns, in small letters: what an entry of JSON calls the same
    "@message": "message",
    "line": "line",
    "message": "message",
    "content": "message",
    "log": "log",
    "msg": "msg",
    "time": "time",
    "date": "date",
    "tsns": "ts",
    "@logstream": "logStreamName",
    "logstreamname": "logStreamName",
    "host": "host",
    "hostname": "hostname",
    "pod": "pod",
    "pod_name": "pod_name",
}
_SEPARATORS = ",;\t"
_DOCUMENT = re.compile(rb"---\s*\n(?:[^\n]*\n){1,200}?(?:textPayload|jsonPayload):")
_MOST_BYTES = 1 << 22  # of one document
_DEEPEST = 1000  # levels of one
_MOST_CELL = 1 << 20  # characters: services take a line of up to 256 KiB, some of 1 MiB
_MOST_PARTS = 16  # of a column's name


def is_table(source: Source) -> bool:
    """Whether a file begins with the names of columns, of which one holds lines of logs and another their times."""
    names = {name.strip().lower() for name in _header(source)[0]}
    return bool(names & _TEXTS) and bool(names & _TIMES)


def is_documents(source: Source) -> bool:
    """Whether a file begins with a document of YAML that is an entry of Cloud Logging."""
    return bool(_DOCUMENT.match(source.head))


def _header(source: Source) -> tuple[list[str], str]:
    """The cells of the first line and what parts them."""
    line = source.head.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    parts = max(_SEPARATORS, key=line.count)
    if not line.count(parts) or len(line) > 1 << 15:
        return [], parts
    try:
        return next(csv.reader([line], delimiter=parts), []), parts
    except csv.Error:
        return [], parts


def rows(source: Source, f: BinaryIO, tally: Tally) -> Iterator[tuple[int, dict]]:
    """(about how many bytes were read before it, entry) for each row of a table, but for a last one that was cut off:
    it would tell of no host. Raises InputError where it is none."""
    names, parts = _header(source)
    columns = [_NAMES.get(name.strip().lower(), name.strip()) for name in names]
    csv.field_size_limit(_MOST_CELL)  # csv's own is half of that of Cloud Logging
    try:
        reader = filter(None, csv.reader(io.TextIOWrapper(f, "utf-8", "replace", newline=""), delimiter=parts))
        last = next(reader, [])
        read = width = 0
        for cells in reader:
            if read:
                yield read, _nested(zip(columns, last, strict=False))
                width = min(max(width, len(last)), len(names))  # a separator that is not quoted makes a row wider
            read, last = read + sum(map(len, last)) + len(last), cells
        if read and len(last) >= width:
            yield read, _nested(zip(columns, last, strict=False))
        elif read:
            tally.add("the last row", "it is cut off", read)
    except csv.Error as e:
        raise InputError(f"no table of entries ({e})", where=source.name, expected="cells as CSV quotes them") from e


def _nested(cells: Any) -> dict:
    """An entry of the cells that are not empty; `resource.labels.pod_name` lies in objects of these names."""
    entry: dict = {}
    for name, cell in cells:
        if not cell:
            continue
        within, (*path, last) = entry, name.split(".", _MOST_PARTS)
        for part in path:
            inner = within.setdefault(part, {})
            within = inner if isinstance(inner, dict) else {}
        within.setdefault(last, cell)
    return entry


def documents(f: BinaryIO, tally: Tally) -> Iterator[tuple[int, dict]]:
    """(byte offset, entry) for each document of YAML; what is none is counted in `tally`."""
    offset = begin = size = 0
    held: list[bytes] = []
    while line := f.readline(_MOST_BYTES):
        if line.rstrip() == b"---":
            yield from _document(begin, held, size, tally)
            held, begin, size = [], offset, 0
        elif size <= _MOST_BYTES:
            held.append(line)
            size += len(line)
        offset += len(line)
    yield from _document(begin, held, size, tally)


def _document(offset: int, held: list[bytes], size: int, tally: Tally) -> Iterator[tuple[int, dict]]:
    if not held:
        return
    entry, reason = None, f"they are longer than {_MOST_BYTES:,} bytes"
    if size <= _MOST_BYTES:
        entry, reason = _loaded(b"".join(held).decode("utf-8", "replace")), "they are not valid YAML"
    if isinstance(entry, dict):
        yield offset, entry
    else:
        tally.add("documents", reason, offset)


def _loaded(text: str) -> Any:
    """None of what is no YAML, or nests so deeply that no entry does: the loader, whose calls nest as well, would end
    this process."""
    import yaml  # here: each ingest looks whether a file is such a table, and hardly any is

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # each value as it is written
    try:
        if len(text) > _DEEPEST and _is_deep(yaml.parse(text, loader)):  # each level takes a character
            return None
        return yaml.load(text, loader)  # noqa: S506 - strings alone
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _is_deep(events: Iterable[Any]) -> bool:
    import yaml

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            return True
    return False
