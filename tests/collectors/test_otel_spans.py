"""Spans of requests, in every way in which files hold them; written by the small writers here."""

import gzip
import json
from time import process_time

import pytest

from collectors.serving import otel_spans
from errors import InputError
from tests.collectors.reading import read, source_of

S = 10**9
BEGIN = 1_772_600_000 * S
COUNTS = ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens")


def attributes(n=0, **more):
    """What vLLM says of its n-th request: 0.25 s in the queue, 0.5 s to the first token, 2.5 s in all."""
    told = {
        "gen_ai.latency.time_to_first_token": 0.5,
        "gen_ai.latency.e2e": 2.5,
        "gen_ai.latency.time_in_queue": 0.25,
        "gen_ai.latency.time_in_model_prefill": 0.25,
        "gen_ai.usage.prompt_tokens": 100 + n,
        "gen_ai.usage.completion_tokens": 21,
        "gen_ai.request.id": f"chatcmpl-{n}",
        "gen_ai.request.max_tokens": 64,
    }
    return {
        key: value
        for key, value in (told | {k.replace("__", "."): v for k, v in more.items()}).items()
        if value is not None
    }


def value(found):
    """As OTLP/JSON writes a value: whole numbers as text."""
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}.get(type(found), "arrayValue")
    return {
        kind: {"values": [value(v) for v in found]}
        if kind == "arrayValue"
        else str(found)
        if kind == "intValue"
        else found
    }


def pairs(told):
    return [{"key": key, "value": value(v)} for key, v in told.items()]


def span(n=0, name="llm_request", told=None, lasts=2.6, **more):
    """The n-th span, which began n s after an epoch."""
    return {
        "traceId": f"{n:032x}",
        "spanId": f"{n + 1:016x}",
        "parentSpanId": "",
        "flags": 256,
        "name": name,
        "kind": 2,
        "startTimeUnixNano": str(BEGIN + n * S),
        "endTimeUnixNano": str(BEGIN + n * S + round(lasts * S)),
        "attributes": pairs(attributes(n) if told is None else told),
        "status": {},
    } | more


def otlp(*spans, scope="vllm.llm_engine", **resource):
    resource = {k.replace("__", "."): v for k, v in resource.items()} or {"service.name": "llm"}
    return {
        "resourceSpans": [
            {"resource": {"attributes": pairs(resource)}, "scopeSpans": [{"scope": {"name": scope}, "spans": [*spans]}]}
        ]
    }


def jaeger(*spans, service="llm"):
    """The same spans as Jaeger's API hands them out: a trace each, times in microseconds."""

    def tag(key, told):
        kind = {bool: "bool", int: "int64", float: "float64"}.get(type(told), "string")
        return {"key": key, "type": kind, "value": told}

    def plain(one):
        (kind, told), *_ = one["value"].items()
        return int(told) if kind == "intValue" else told

    traces = [
        {
            "traceID": one["traceId"],
            "spans": [
                {
                    "traceID": one["traceId"],
                    "spanID": one["spanId"],
                    "operationName": one["name"],
                    "references": [],
                    "startTime": int(one["startTimeUnixNano"]) // 1000,
                    "duration": (int(one["endTimeUnixNano"]) - int(one["startTimeUnixNano"])) // 1000,
                    "tags": [tag(a["key"], plain(a)) for a in one["attributes"]]
                    + [tag("otel.scope.name", "vllm.llm_engine")],
                    "logs": [],
                    "processID": "p1",
                    "warnings": None,
                }
            ],
            "processes": {"p1": {"serviceName": service, "tags": [tag("hostname", "pod-7")]}},
        }
        for one in spans
    ]
    return {"data": traces, "total": 0, "limit": 0, "offset": 0, "errors": None}


def console(n=0):
    """A span as the console exporter of the SDK prints it."""
    told = {
        "name": "llm_request",
        "context": {"trace_id": f"0x{n:032x}", "span_id": f"0x{n + 1:016x}", "trace_state": "[]"},
    }
    told |= {"kind": "SpanKind.SERVER", "parent_id": None}
    told |= {"start_time": f"2026-03-04T04:53:{20 + n}.000000Z", "end_time": f"2026-03-04T04:53:{22 + n}.600000Z"}
    told |= {"status": {"status_code": "UNSET"}, "attributes": attributes(n), "events": [], "links": []}
    return told | {"resource": {"attributes": {"service.name": "llm"}, "schema_url": ""}}


def jsonl(*documents):
    return "".join(json.dumps(d, separators=(",", ":")) + "\n" for d in documents)


SPANS = [span(n) for n in range(4)]
LINES = jsonl(*(otlp(one) for one in SPANS))
PRETTY = json.dumps(otlp(*SPANS), indent=2)
JAEGER = json.dumps(jaeger(*SPANS))
CONSOLE = "\n".join(json.dumps(console(n), indent=4) for n in range(4))
RUST = {
    "total_time": "2.5s",
    "validation_time": "500µs",
    "queue_time": "249.5ms",
    "inference_time": "2.1s",
    "time_per_token": "100ms",
}


def got(tmp_path, data, name="traces.json"):
    data = data if isinstance(data, str | bytes) else json.dumps(data)
    source = source_of(tmp_path, data, name)
    assert otel_spans.sniff(source) >= 0.9
    return read(otel_spans, source)


@pytest.mark.parametrize(
    "data",
    [
        LINES,
        json.dumps(otlp(*SPANS)),
        PRETTY,
        PRETTY + "\n" + json.dumps(otlp(span(0)), indent=2),
        LINES.replace("\n", "\r\n"),
        "\ufeff" + LINES,
        gzip.compress(LINES.encode()),
        jsonl(*(otlp(one) for one in reversed(SPANS))),
        LINES + LINES,
        jsonl({"resourceLogs": []}, {"resourceMetrics": []}) + LINES,
        json.dumps({"batches": otlp(*SPANS)["resourceSpans"]}),
        json.dumps({"trace": otlp(*SPANS)}),
        PRETTY.replace("startTimeUnixNano", "start_time_unix_nano").replace("intValue", "int_value"),
        JAEGER,
        json.dumps(jaeger(*SPANS), indent=2),
        CONSOLE,
    ],
    ids=[
        "lines",
        "document",
        "pretty",
        "several",
        "windows",
        "bom",
        "gz",
        "reversed",
        "twice",
        "signals",
        "tempo",
        "wrapped",
        "snake",
        "jaeger",
        "jaeger-pretty",
        "console",
    ],
)
def test_requests_of_vllm(tmp_path, data):
    found = got(tmp_path, data)
    rows = sorted(found.rows["requests"], key=lambda r: r["arrival_ns"])
    assert [r["arrival_ns"] for r in rows] == [BEGIN + n * S for n in range(4)]
    for n, row in enumerate(rows):
        begun = row["arrival_ns"]
        assert [row[k] - begun for k in ("scheduled_ns", "first_token_ns", "last_token_ns")] == [
            S // 4,
            S // 2,
            5 * S // 2,
        ]
        assert (row["id"], row["prompt_tokens"], row["output_tokens"], row["status"]) == (
            f"chatcmpl-{n}",
            100 + n,
            21,
            "completed",
        )
        assert row["replica"] == ("pod-7" if "operationName" in str(data) else "llm") and row["error"] is None
    if 'start_time"' not in str(data):
        assert found.facts == {"engine": "vllm"}


def test_servers_of_one_file_are_apart(tmp_path):
    documents = [otlp(span(n), service__name="llm", service__instance__id=f"engine-{n % 2}") for n in range(4)]
    assert got(tmp_path, jsonl(*documents)).column("requests", "replica") == ["engine-0", "engine-1"] * 2
    pods = jsonl(
        otlp(span(), service__name="llm", k8s__pod__name="pod-1", host__name="node"),
        otlp(span(1), service__name="unknown_service"),
    )
    assert got(tmp_path, pods).column("requests", "replica") == ["pod-1", None]


def test_spans_of_other_work_are_counted_by_name(tmp_path):
    other = [span(n, name="EngineCore.step", told={}) for n in range(10, 30)]
    found = got(tmp_path, jsonl(otlp(*SPANS, *other)))
    assert len(found.rows["requests"]) == 4 and "of no request: 'EngineCore.step'" in found.reasons()
    with pytest.raises(InputError, match=r"20 spans, none of a request \('EngineCore.step'\)"):
        got(tmp_path, jsonl(otlp(*other)))


def test_sglang_and_tensorrt_llm(tmp_path):
    told = attributes(
        rid="a_b",
        gen_ai__usage__cached_tokens=32,
        gen_ai__response__model="qwen",
        gen_ai__response__finish_reasons='["length"]',
    )
    found = got(tmp_path, jsonl(otlp(span(name=" Req abcdef", told=told), scope="sglang server")))
    assert found.facts == {"engine": "sglang", "model": "qwen"} and found.column("requests", "cached_tokens") == [32]
    found = got(tmp_path, jsonl(otlp(span(), scope="trt.llm")))
    assert found.facts["engine"] == "tensorrt_llm"


def test_what_a_prefill_server_tells_is_no_request_of_its_own(tmp_path):
    half = attributes(gen_ai__latency__e2e=None)
    found = got(
        tmp_path,
        jsonl(otlp(span(name="Prefill Req ab", told=half), span(1, name="Decode Req ab"), scope="sglang server")),
    )
    assert len(found.rows["requests"]) == 1 and "parts of requests (1)" in found.reasons()


def test_text_generation_inference(tmp_path):
    (row,) = got(tmp_path, jsonl(otlp(span(name="generate_stream", told=RUST)))).rows["requests"]
    assert (row["scheduled_ns"] - BEGIN, row["last_token_ns"] - BEGIN) == (S // 4, 5 * S // 2)
    assert (row["output_tokens"], row["first_token_ns"], row["status"]) == (21, None, "completed")


def test_calls_of_clients_count_where_no_engine_tells(tmp_path):
    call = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.request.model": "m",
    }
    inner = span(1, name="chat m", told=call, lasts=1.5, kind=3, traceId="aa", parentSpanId="0f")
    outer = span(2, name="chat m", told=call, traceId="aa", spanId="0f", kind=3)
    found = got(tmp_path, jsonl(otlp(outer, inner, span(9, name="tool", told={}), scope="openai")))
    (row,) = found.rows["requests"]
    assert (row["last_token_ns"] - row["arrival_ns"], row["prompt_tokens"], row["output_tokens"]) == (3 * S // 2, 7, 3)
    assert "other calls lie within them" in found.reasons() and found.facts == {"model": "m"}
    found = got(tmp_path, jsonl(otlp(outer, inner, span(3))))
    assert found.column("requests", "arrival_ns") == [BEGIN + 3 * S] and "told by clients" in found.reasons()


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"status": {"code": 2, "message": "boom"}}, "failed"),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, "failed"),
        ({"told": attributes(gen_ai__response__finish_reasons=["abort"])}, "aborted"),
        (
            {
                "told": {
                    k: v
                    for k, v in attributes(**{"gen_ai__latency__time_to_first_token": 0.0}).items()
                    if k != COUNTS[1]
                }
                | {COUNTS[1]: 0}
            },
            "failed",
        ),
        ({"told": {COUNTS[0]: 4}}, "completed"),
        ({"told": {}, "endTimeUnixNano": "0"}, "failed"),
    ],
    ids=["error", "by name", "abort", "nothing", "end of the span", "no end"],
)
def test_how_a_request_ended(tmp_path, more, status):
    (row,) = got(tmp_path, jsonl(otlp(span(**more)))).rows["requests"]
    assert row["status"] == status and row["error"] == ("boom" if "boom" in str(more) else None)


def test_times_that_cannot_be_are_left_out(tmp_path):
    told = [
        attributes(gen_ai__latency__time_in_queue=3.0),
        attributes(gen_ai__latency__time_to_first_token=9.0),
        attributes(gen_ai__latency__e2e=-1.0, gen_ai__latency__time_in_queue="NaN"),
        attributes(gen_ai__latency__e2e=1e300),
    ]
    rows = got(tmp_path, jsonl(*(otlp(span(n, told=t)) for n, t in enumerate(told)))).rows["requests"]
    assert [r["scheduled_ns"] is None for r in rows] == [True, False, True, False]
    assert [r["first_token_ns"] is None for r in rows] == [False, True, False, False]
    assert (
        rows[2]["last_token_ns"] - rows[2]["arrival_ns"]
        == rows[3]["last_token_ns"] - rows[3]["arrival_ns"]
        == 26 * S // 10
    )


def test_no_arrival(tmp_path):
    found = got(tmp_path, jsonl(otlp(span(), span(1, startTimeUnixNano="never"))))
    assert len(found.rows["requests"]) == 1 and "without the time at which they arrived" in found.reasons()


@pytest.mark.parametrize(
    "data", [PRETTY, LINES, jsonl(otlp(*SPANS)), JAEGER], ids=["pretty", "lines", "line", "jaeger"]
)
def test_of_a_file_that_is_cut_what_came_before_stays(tmp_path, data):
    found = got(tmp_path, data[: data.rindex("chatcmpl-3")])
    assert len(found.rows["requests"]) == 3 and "without their server" in found.reasons()


def test_a_file_that_begins_in_the_middle(tmp_path):
    found = got(tmp_path, LINES[40:])
    assert len(found.rows["requests"]) >= 3 and "lines (1)" in found.reasons()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"data": [{"spans": 1}]}',
        '{"resourceLogs": []}',
        "a log of resourceSpans",
        '{"traceEvents": [], "traceID": 1}',
    ],
)
def test_other_files_are_no_spans(tmp_path, text):
    assert otel_spans.sniff(source_of(tmp_path, text)) == 0


@pytest.mark.parametrize("blank", [" ", "\n", "\t \n", "[\n", "{ \n", "[{\n\n"])
def test_a_log_with_a_long_blank_takes_no_time(tmp_path, blank):
    source = source_of(tmp_path, f"started\n{blank * 400}\nended\n")
    begin = process_time()
    assert otel_spans.sniff(source) == 0 and process_time() - begin < 0.2


@pytest.mark.parametrize("begin", ["", "{", "[", "[{", "\t{ ", "{\n\n{"])
def test_spans_below_a_line_of_something_else(tmp_path, begin):
    assert otel_spans.sniff(source_of(tmp_path, f'collector started\n{begin}"resourceSpans" : [')) == 0.9


@pytest.mark.parametrize(
    "text",
    [
        '{"resourceSpans": []}',
        '{"resourceSpans": 7}',
        '{"resourceSpans": [{"scopeSpans": [{"spans": [null, 3]}]}]}',
        '{"resourceSpans": [',
    ],
)
def test_without_a_span_it_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="no span|not JSON"):
        got(tmp_path, text)
