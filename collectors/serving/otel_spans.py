"""Requests as serving engines tell of them in spans (OpenTelemetry, Jaeger): see `span_files.py` for the files.

    vLLM, TensorRT-LLM   a span `llm_request` a request; SGLang: its root span, `Req <id>`. Attributes in seconds:
        arrival_ns      start of the span
        scheduled_ns    + gen_ai.latency.time_in_queue, which counts from when the engine had the request
        first_token_ns  + gen_ai.latency.time_to_first_token
        last_token_ns   + gen_ai.latency.e2e; where that is not told, the end of the span
        tokens          gen_ai.usage.prompt_tokens, completion_tokens, cached_tokens (input_tokens, output_tokens)
    text-generation-inference   the span of its route; durations as words ("1.5s", "350ms"):
        scheduled_ns    start + validation_time + queue_time; last_token_ns: start + total_time
        output_tokens   inference_time / time_per_token; when the first came, and how long the prompt was, is not told
    calls by a client (gen_ai.operation.name: chat, text_completion): only where no engine tells of requests; from
        start to end of the span, with the tokens that it counts; of calls within one another the innermost

A span that the file holds twice counts once. `replica` is the server's instance, pod or host, else its service.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import text
from collectors.reading.textlog import NS_PER_S, Tally, clean, within_64_bits
from collectors.serving.serving_rows import Requests, count, duration_ns, number
from collectors.serving.span_files import EXPECTED, Server, Span, SpanFile
from errors import InputError
from errors import format as fmt

NAME = "otel_spans"
TITLE = "OpenTelemetry spans"
HELP = "Spans of requests (OTLP/JSON, Jaeger, console exporter) of vLLM, SGLang, TensorRT-LLM and TGI, or of clients."

_LATENCY = "gen_ai.latency."
_TTFT, _E2E, _QUEUE = (f"{_LATENCY}{name}" for name in ("time_to_first_token", "e2e", "time_in_queue"))
_PROMPT = ("gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens", "llm.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens", "llm.usage.completion_tokens")
_CACHED = ("gen_ai.usage.cached_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
_ID = ("gen_ai.request.id", "rid", "gen_ai.response.id")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model")
_TENANT = ("enduser.id", "user.id", "gen_ai.user.id", "tenant.id")
_ENDED, _DONE = "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"
_OPERATION = "gen_ai.operation.name"
_OPERATIONS = ("chat", "text_completion", "generate_content", "completion")
_TGI = ("total_time", "validation_time", "queue_time", "inference_time", "time_per_token")
_ASKED = frozenset(
    (_TTFT, _E2E, _QUEUE, _ENDED, _DONE, _OPERATION, *_PROMPT, *_OUTPUT, *_CACHED, *_ID, *_MODEL, *_TENANT, *_TGI)
)
_ENGINES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "trt": "tensorrt_llm",
    "tensorrt": "tensorrt_llm",
    "text-generation": "tgi",
}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ns|µs|us|ms|s)")
_UNITS_NS = {"ns": 1, "µs": 1_000, "us": 1_000, "ms": 1_000_000, "s": NS_PER_S}
_SNIFF = re.compile(  # possessive, within one line up to a bracket: of a long blank each part is looked at once
    rb'(?m)^[ \t]*+(?:[\[{]\s*+)?+(?:\{\s*+)?+"(?:resourceSpans|resource_spans)"\s*+:\s*+[\[{]'
)
_JAEGER = (b'"traceID"', b'"spanID"', b'"operationName"')
_CONSOLE = (b'"context"', b'"trace_id"', b'"span_id"', b'"start_time"', b'"parent_id"')
_MOST = 5_000_000  # requests of one file
_NAMED = 5


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head:
        return 0.0
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first in (b"{", b"["):
        tempo = b'"batches"' in head[:4096] and (b'"scopeSpans"' in head or b'"instrumentationLibrarySpans"' in head)
        known = tempo or all(w in head for w in _JAEGER) or all(w in head for w in _CONSOLE)
        return 0.9 if known or b'"resourceSpans"' in head or b'"resource_spans"' in head else 0.0
    return 0.9 if _SNIFF.search(head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Requests, and what engine served which model. Raises InputError where no span is of a request."""
    tally = Tally()
    reading = _Reading(source, tally)
    yield from reading.requests()
    yield from reading.facts()
    yield from tally.lost()


class _Reading:
    """The requests of one file, and what is told beside them."""

    def __init__(self, source: Source, tally: Tally):
        self._source, self._tally = source, tally
        self._file = SpanFile(source, tally, _ASKED, _of_request)
        self._rows = Requests(source)
        self._seen: set[int] = set()
        self._models: Counter[str] = Counter()
        self._engines: Counter[str] = Counter()
        self._calls: list[tuple[Server, Span]] = []

    def requests(self) -> Iterator[Item]:
        served = 0
        for server, span in self._file.spans():
            if self._again(span):
                continue
            if _is_call(span):
                self._calls.append((server, span))
                continue
            row = self._row(server, span)
            if row is not None:
                served += 1
                self._rows.add(**row)
                yield from self._rows.full()
        if served and self._calls:
            self._tally.add("calls", "told by clients: the engine tells of its requests itself", count=len(self._calls))
        elif not served:
            yield from self._by_clients()
        elif self._file.others:
            self._tally.add("spans", f"of no request: {self._names()}", count=self._file.others.total())
        yield from self._rows.rest()

    def _by_clients(self) -> Iterator[Item]:
        """The calls of a client, the innermost of those within one another."""
        if not self._calls:
            raise self._nothing()
        outer = {(span.trace, span.parent) for _, span in self._calls if span.parent}
        for server, span in self._calls:
            if (span.trace, span.span) in outer:
                self._tally.add("calls", "other calls lie within them: those count")
                continue
            if (row := self._row(server, span)) is not None:
                self._rows.add(**row | {"replica": None})
                yield from self._rows.full()

    def facts(self) -> Iterator[Item]:
        if self._engines:
            yield Fact("engine", self._engines.most_common(1)[0][0])
        if self._models:
            (model, _), *others = self._models.most_common()
            yield Fact("model", model)
            if others:
                self._tally.add(
                    "requests",
                    "of other models than the most frequent: all are read as one load",
                    count=sum(n for _, n in others),
                )

    def _again(self, span: Span) -> bool:
        """Whether a span was there before."""
        if not span.span:
            return False
        key = hash((span.trace.lower(), span.span.lower()))
        if key in self._seen:
            self._tally.add("spans", "told twice: they count once")
            return True
        if len(self._seen) >= _MOST:
            raise InputError(
                f"more than {_MOST:,} requests", where=self._source.name, expected="the requests of one run"
            )
        self._seen.add(key)
        return False

    def _row(self, server: Server, span: Span) -> dict[str, Any] | None:
        start, told = span.start_ns, span.told
        if start is None:
            self._tally.add("requests", "without the time at which they arrived")
            return None
        if _E2E not in told and span.name.lower().startswith("prefill "):
            self._tally.add(
                "parts of requests", "told by a server that only read their prompts: their end is told elsewhere"
            )
            return None
        tgi = _is_tgi(told)
        times = self._of_tgi(span, start) if tgi else self._times(span, start)
        self._count(server, told, tgi)
        prompt, output, cached = (_first_count(told, names) for names in (_PROMPT, _OUTPUT, _CACHED))
        if tgi:
            output = _tokens_of_tgi(told)
        status = _status(span, output, times)
        if status != "completed":
            self._tally.add("requests", f"{status}: they count as such, whatever their times")
        return {
            "id": next((found for key in _ID if (found := text(told.get(key), 300))), None),
            "replica": server.instance or server.service,
            "tenant": next((found for key in _TENANT if (found := text(told.get(key)))), None),
            "arrival_ns": start,
            **times,
            "prompt_tokens": prompt,
            "output_tokens": output,
            "cached_tokens": cached,
            "status": status,
            "error": span.error or None,
        }

    def _times(self, span: Span, start: int) -> dict[str, int | None]:
        """When it was scheduled, began to answer and was done, by the durations that the engine tells."""
        queued, first, whole = (_after(start, span.told.get(key)) for key in (_QUEUE, _TTFT, _E2E))
        last = whole
        if last is None or last <= start:
            last = span.end_ns if span.end_ns is not None and span.end_ns > start else None
            if last is not None and not _is_call(span):
                self._tally.add("ends", "no latency of the whole request is told: the end of the span was taken")
        first = first if first is not None and first > start else None  # 0.0: there was none
        if first is not None and last is not None and first > last:
            self._tally.add("first tokens", "later than the end of their request: left out")
            first = None
        until = first if first is not None else last
        if queued is not None and until is not None and queued > until:
            self._tally.add("times in the queue", "longer than until the first token: left out")
            queued = None
        return {"scheduled_ns": queued, "first_token_ns": first, "last_token_ns": last}

    def _of_tgi(self, span: Span, start: int) -> dict[str, int | None]:
        total, checked, queued = (_worded_ns(span.told.get(key)) for key in _TGI[:3])
        last = None if total is None else within_64_bits(start + total)
        scheduled = None if checked is None or queued is None else within_64_bits(start + checked + queued)
        return {"scheduled_ns": scheduled, "first_token_ns": None, "last_token_ns": last}

    def _count(self, server: Server, told: dict[str, Any], tgi: bool) -> None:
        if model := next((found for key in _MODEL if (found := text(told.get(key), 300))), None):
            self._models[model] += 1
        names = f"{server.scope or ''} {server.service or ''}".lower()
        engine = (
            "tgi"
            if tgi
            else next((of for word, of in _ENGINES.items() if re.search(rf"(?<![a-z]){word}", names)), None)
        )
        if engine and _OPERATION not in told:
            self._engines[engine] += 1

    def _names(self) -> str:
        others = self._file.others
        more = ", ..." if len(others) > _NAMED else ""
        return ", ".join(f"{clean(name)[:60]!r}" for name, _ in others.most_common(_NAMED)) + more

    def _nothing(self) -> InputError:
        told = (
            f"{fmt.count(self._file.others.total(), 'span')}, none of a request ({self._names()})"
            if self._file.others
            else "no span"
        )
        lost = "; ".join(f"{lost.what}: {lost.reason}" for lost in self._tally.lost())
        return InputError(
            f"{told}{f'; {lost}' if lost else ''}",
            where=self._source.name,
            expected=f"{EXPECTED}, with requests, such as vLLM's llm_request with gen_ai.latency.e2e",
            advice="Engines tell them with `vllm serve --otlp-traces-endpoint` or SGLang's `--enable-trace`.",
        )


def _of_request(name: str, told: dict[str, Any]) -> bool:
    return name == "llm_request" or _E2E in told or _TTFT in told or _is_tgi(told) or _calls(told)


def _is_tgi(told: dict[str, Any]) -> bool:
    return all(key in told for key in _TGI)


def _calls(told: dict[str, Any]) -> bool:
    return told.get(_OPERATION) in _OPERATIONS


def _is_call(span: Span) -> bool:
    """Whether a client tells of a request, rather than an engine."""
    told = span.told
    return _calls(told) and span.name != "llm_request" and _E2E not in told and _TTFT not in told


def _after(start: int, seconds: Any) -> int | None:
    """The time so many seconds, a number or its digits, after another; None for what is no such time."""
    lasted = duration_ns(number(seconds)) if seconds is not None else None
    return None if lasted is None else within_64_bits(start + lasted)


def _first_count(told: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((found for key in names if (found := count(told.get(key))) is not None), None)


def _worded_ns(value: Any) -> int | None:
    """A duration as Rust prints it."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return round(float(match[1]) * _UNITS_NS[match[2]]) if match else None


def _tokens_of_tgi(told: dict[str, Any]) -> int | None:
    inference, each = _worded_ns(told.get("inference_time")), _worded_ns(told.get("time_per_token"))
    return round(inference / each) if inference and each else None


def _status(span: Span, output: int | None, times: dict[str, int | None]) -> str:
    """How a request ended: as its span says, else by whether anything came of it."""
    reasons = f"{span.told.get(_ENDED)} {span.told.get(_DONE)}".lower()
    if "abort" in reasons or "cancel" in reasons:
        return "aborted"
    if span.error is not None or "error" in reasons:
        return "failed"
    nothing = not output and times["first_token_ns"] is None
    return "failed" if times["last_token_ns"] is None or (nothing and output is not None) else "completed"
