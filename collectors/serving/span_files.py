"""Spans of OpenTelemetry and Jaeger in files, whichever way they were written, each with the server that it is of.

    {"resourceSpans": [...]}   OTLP as JSON: one document, or one a line as the collector's file exporter writes; times
                               in ns since 1970 as text. Tempo calls the list `batches`, or wraps it in `trace`
    {"data": [{"spans", "processes"}]}   Jaeger's own JSON: times in microseconds
    {"name", "context", "start_time", ...}   the console exporter of Python's SDK: one object after another

Objects are made small while they are decoded, innermost first, so that attributes that nobody reads (prompts among
them) do not stay in memory. Of a line or a document that is cut off the spans before the cut are kept, without
their server.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from collectors.base import Source
from collectors.reading.documents import JSON_LIMIT, part, text
from collectors.reading.textlog import DATED, Tally, lines, moment_ns, whole, within_64_bits
from errors import InputError

EXPECTED = "spans as OTLP/JSON (one document, or one a line), as Jaeger's JSON, or as the console exporter prints them"
BROKEN_LIMIT = 10_000  # with more broken than good lines, the file is something else
_SMALL = 1 << 24  # characters of a line that is decoded first and made small afterwards, which is quicker
_PLAIN: dict[str, Any] = {"strict": False, "parse_constant": lambda _: None}
_VALUES = (
    "stringValue",
    "intValue",
    "doubleValue",
    "boolValue",
    "string_value",
    "int_value",
    "double_value",
    "bool_value",
)
_LISTS = ("arrayValue", "array_value")
_INSTANCE = ("service.instance.id", "k8s.pod.name", "host.name", "hostname")  # of a server, the nearest first
_FIRST = re.compile(r"\S")
_NEXT = re.compile(r"[^\s,\[\]]")
_GOES_ON = ("{", "[", ",", ":")  # ends of a line within a document
_NAME = 200  # characters of a name that are kept
_NAMES = 1000  # of spans that are counted apart


@dataclass(slots=True)
class Span:
    """Times in ns since the epoch, None where not told. `told`: the attributes that were asked for. `error`: why it
    failed, empty where that is not told; None where it did not. `within`: its Jaeger process, or its own resource."""

    name: str
    start_ns: int | None
    end_ns: int | None
    trace: str
    span: str
    parent: str
    told: dict[str, Any]
    error: str | None
    within: Any = None


@dataclass(frozen=True, slots=True)
class Server:
    """Who wrote a span: its instance (an id, a pod or a host), its service, and the library that it used."""

    instance: str | None = None
    service: str | None = None
    scope: str | None = None


NOBODY = Server()


class SpanFile:
    """The spans of a file for which `wanted(name, attributes)` is true; the others are counted by name in `others`.
    `asked`: names of the attributes that are kept of each."""

    def __init__(self, source: Source, tally: Tally, asked: frozenset[str], wanted: Callable[[str, dict], bool]):
        self._source, self._tally, self._asked, self._wanted = source, tally, asked, wanted
        self._fresh: list[Span] = []  # of the value that is being decoded
        self.others: Counter[str] = Counter()
        self._decoder = json.JSONDecoder(object_hook=self._smaller, strict=False, parse_constant=lambda _: None)

    def spans(self) -> Iterator[tuple[Server, Span]]:
        """Each span with its server. Raises InputError where the file is no JSON."""
        good = broken = 0
        for offset, line, ended in lines(self._source):
            if not line.strip():
                continue
            try:
                value = self._decoded(line)
                good += 1
            except (ValueError, RecursionError):
                if not good and not broken and line.rstrip()[-1:] in _GOES_ON:  # no document a line
                    self.others.clear()
                    yield from self._whole()
                    return
                broken += 1
                what = "lines" if ended else "the last line"
                self._tally.add(
                    what, "no whole JSON: of their spans those before the fault were read, without their server", offset
                )
                if broken > max(BROKEN_LIMIT, good):
                    raise InputError(
                        f"{broken:,} broken lines, {good:,} good ones", where=self._source.name, expected=EXPECTED
                    ) from None
                yield from ((NOBODY, span) for span in self._fresh)
                continue
            yield from self._of(value)

    def _decoded(self, line: str) -> Any:
        """The document of a line. Raises ValueError or RecursionError where it is none: see `_fresh`."""
        self._fresh = []
        if len(line) < _SMALL:
            with contextlib.suppress(ValueError, RecursionError):
                return json.loads(line, **_PLAIN)
        return self._decoder.decode(line)

    def _whole(self) -> Iterator[tuple[Server, Span]]:
        """The same of documents of several lines each."""
        with self._source.as_far() as f:
            raw = f.read(JSON_LIMIT + 1)
        if len(raw) > JSON_LIMIT:
            advice = "Write it with a document a line, as the file exporter of the OpenTelemetry collector does."
            raise InputError(
                f"a document longer than {JSON_LIMIT:,} bytes",
                where=self._source.name,
                expected=EXPECTED,
                advice=advice,
            )
        content, at, good = raw.decode("utf-8", "replace").removeprefix("\ufeff"), 0, 0
        del raw
        while match := (_NEXT if good else _FIRST).search(content, at):
            at = match.start()
            try:
                self._fresh = []
                value, at = self._decoder.raw_decode(content, at)
                good += 1
            except (ValueError, RecursionError) as e:
                if not self._fresh and not good:
                    raise InputError(
                        f"not JSON ({' '.join(str(e).split())[:100]})", where=self._source.name, expected=EXPECTED
                    ) from e
                self._tally.add(
                    "the last document",
                    "it ends in the middle, or goes on as no JSON: spans before that were read, without their server",
                    at,
                )
                yield from ((NOBODY, span) for span in self._fresh)
                return
            yield from self._of(value)

    # decoding

    def _smaller(self, found: dict[str, Any]) -> Any:
        """What is kept of an object: a value as such, an attribute as a pair, a span as a Span."""
        if len(found) == 1:
            value = _value(found)
            return found if value is None else value
        if "key" in found and "value" in found:
            return found["key"], found["value"]
        if (how := _written(found)) is not None:
            return self._kept(how(found, self._asked))
        return found

    def _kept(self, span: Span) -> Span | None:
        if not self._wanted(span.name, span.told):
            self.others[span.name if len(self.others) < _NAMES or span.name in self.others else "others"] += 1
            return None
        self._fresh.append(span)
        return span

    def _each(self, found: Any) -> Iterator[Span]:
        """The spans of a list that are wanted, made small before or not."""
        for span in found if isinstance(found, list) else []:
            if isinstance(span, dict) and (how := _written(span)) is not None:
                span = self._kept(how(span, self._asked))
                self._fresh.clear()
            if isinstance(span, Span):
                yield span

    # what is around them

    def _of(self, value: Any) -> Iterator[tuple[Server, Span]]:
        if isinstance(value, list):
            for one in value:
                yield from self._of(one)
        elif isinstance(value, Span) or (isinstance(value, dict) and _written(value) is not None):
            yield from ((_server(part(span.within, "attributes")), span) for span in self._each([value]))
        elif isinstance(value, dict):
            for name in ("resourceSpans", "resource_spans", "batches"):
                yield from self._of_resources(value.get(name))
            if isinstance(traces := value.get("data"), list):
                yield from self._of_traces(traces)
            if isinstance(inner := value.get("trace"), dict):
                yield from self._of(inner)

    def _of_resources(self, found: Any) -> Iterator[tuple[Server, Span]]:
        for one in found if isinstance(found, list) else []:
            for name in ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
                scopes = part(one, name)
                for scope in scopes if isinstance(scopes, list) else []:
                    named = part(scope, "scope", "name") or part(scope, "instrumentationLibrary", "name")
                    server = _server(part(one, "resource", "attributes"), named)
                    yield from ((server, span) for span in self._each(part(scope, "spans")))

    def _of_traces(self, traces: list) -> Iterator[tuple[Server, Span]]:
        for trace in traces:
            servers: dict[str, Server] = {}
            for span in self._each(part(trace, "spans")):
                key = span.within if isinstance(span.within, str) else ""
                if key not in servers:
                    process = part(trace, "processes", key)
                    servers[key] = _server(part(process, "tags"), None, part(process, "serviceName"))
                scope = text(span.told.get("otel.scope.name"), _NAME)
                yield Server(servers[key].instance, servers[key].service, scope), span


def _written(found: dict[str, Any]) -> Callable[[dict[str, Any], frozenset[str]], Span] | None:
    """How an object tells of a span; None where it is none."""
    if "startTimeUnixNano" in found or "start_time_unix_nano" in found:
        return _of_otlp
    if "operationName" in found and "startTime" in found:
        return _of_jaeger
    return _of_console if "start_time" in found and "context" in found else None


def _value(found: Any) -> Any:
    """The value that OTLP wraps in an object of its kind; None where it is not of a plain kind, or a list of such."""
    if not isinstance(found, dict):
        return found
    for name, value in found.items():
        if name in _VALUES:
            return value
        if name in _LISTS:
            each = part(value, "values") if isinstance(value, dict) else value
            return [_value(one) for one in each] if isinstance(each, list) else None
    return None


def _server(attributes: Any, scope: Any = None, service: Any = None) -> Server:
    told = _told(attributes, frozenset((*_INSTANCE, "service.name")))
    name = text(service or told.get("service.name"), _NAME)
    instance = next((found for key in _INSTANCE if (found := text(told.get(key), _NAME))), None)
    return Server(instance, None if name and name.startswith("unknown_service") else name, text(scope, _NAME))


def _told(attributes: Any, asked: frozenset[str]) -> dict[str, Any]:
    """Those attributes that are asked for, of an object, of pairs, or of objects with `key` and `value`."""
    told: dict[str, Any] = {}
    if isinstance(attributes, dict):
        attributes = [*attributes.items()]
    for one in attributes if isinstance(attributes, list) else ():
        if isinstance(one, tuple):
            key, value = one
        elif isinstance(one, dict):
            key, value = one.get("key"), _value(one.get("value"))
        else:
            continue
        if isinstance(key, str) and key in asked:
            told[key] = value
    return told


def _of_otlp(found: dict[str, Any], asked: frozenset[str]) -> Span:
    status = found.get("status")
    failed = part(status, "code") in (2, "2", "STATUS_CODE_ERROR")
    return Span(
        name=text(found.get("name"), _NAME) or "",
        start_ns=_ns(found.get("startTimeUnixNano", found.get("start_time_unix_nano"))),
        end_ns=_ns(found.get("endTimeUnixNano", found.get("end_time_unix_nano"))),
        trace=str(found.get("traceId", found.get("trace_id")) or "")[:64],
        span=str(found.get("spanId", found.get("span_id")) or "")[:64],
        parent=str(found.get("parentSpanId", found.get("parent_span_id")) or "")[:64],
        told=_told(found.get("attributes"), asked),
        error=(text(part(status, "message"), 500) or "") if failed else None,
    )


def _of_jaeger(found: dict[str, Any], asked: frozenset[str]) -> Span:
    start, lasted = _ns(found.get("startTime")), _ns(found.get("duration"))
    start = None if start is None else within_64_bits(start * 1000)
    told = _told(found.get("tags"), asked | {"error", "otel.status_code", "otel.status_description", "otel.scope.name"})
    failed = told.get("error") in (True, "true") or told.get("otel.status_code") == "ERROR"
    parent = part(found.get("references"), 0, "spanID")
    return Span(
        name=text(found.get("operationName"), _NAME) or "",
        start_ns=start,
        end_ns=None if start is None or lasted is None else within_64_bits(start + lasted * 1000),
        trace=str(found.get("traceID") or "")[:64],
        span=str(found.get("spanID") or "")[:64],
        parent=str(parent or "")[:64],
        told=told,
        error=(text(told.get("otel.status_description"), 500) or "") if failed else None,
        within=found.get("processID"),
    )


def _of_console(found: dict[str, Any], asked: frozenset[str]) -> Span:
    context, status = found.get("context"), found.get("status")
    failed = str(part(status, "status_code")).rpartition(".")[2] == "ERROR"
    return Span(
        name=text(found.get("name"), _NAME) or "",
        start_ns=_dated(found.get("start_time")),
        end_ns=_dated(found.get("end_time")),
        trace=str(part(context, "trace_id") or "").removeprefix("0x")[:64],
        span=str(part(context, "span_id") or "").removeprefix("0x")[:64],
        parent=str(found.get("parent_id") or "").removeprefix("0x")[:64],
        told=_told(found.get("attributes"), asked),
        error=(text(part(status, "description"), 500) or "") if failed else None,
        within=found.get("resource"),
    )


def _ns(value: Any) -> int | None:
    """A time or a duration from 0, a number or its digits."""
    if isinstance(value, str):
        found = within_64_bits(int(value)) if len(value) < 20 and value.isascii() and value.isdigit() else None
    else:
        found = whole(value)
    return found if found is not None and found > 0 else None


def _dated(value: Any) -> int | None:
    match = DATED.fullmatch(value) if isinstance(value, str) else None
    return moment_ns(match) if match else None
