"""Traces of traffic: layouts, times and units, and rows that cannot be."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.serving import request_trace
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
"""
MOONCAKE = "".join(
    json.dumps(e) + "\n"
    for e in (
        {"timestamp": 0, "input_length": 700, "output_length": 6, "hash_ids": [0, 1]},
        {"timestamp": 40, "input_length": 512, "output_length": 4, "hash_ids": [0]},
    )
)
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
110.5,GPT-4,417,0,417,API log
"""


def trace(tmp_path, text, name="trace.csv"):
    return read(request_trace, source_of(tmp_path, text, name))


def columns(got, *names) -> list[tuple]:
    return [tuple(row[n] for n in names) for row in got.rows["requests"]]


def test_azure(tmp_path):
    got = trace(tmp_path, AZURE)
    assert columns(got, "arrival_ns", "prompt_tokens", "output_tokens", "status") == [
        (1_700_158_623_979_960_000, 4808, 10, None),
        (1_700_158_624_031_960_000, 3180, 8, None),
    ]
    assert got.facts == {"arrival_origin": "1970"} and not got.lost


def test_azure_2024_with_zones(tmp_path):
    got = trace(tmp_path, AZURE.replace("03.9799600", "03.979960+00:00").replace("04.0319600", "04.031960+00:00"))
    assert columns(got, "arrival_ns") == [(1_700_158_623_979_960_000,), (1_700_158_624_031_960_000,)]


def test_mooncake(tmp_path):
    got = trace(tmp_path, MOONCAKE, "trace.jsonl")
    assert columns(got, "arrival_ns", "prompt_tokens", "output_tokens", "hash_ids", "status") == [
        (0, 700, 6, [0, 1], None),
        (40_000_000, 512, 4, [0], None),
    ]
    assert got.facts == {"arrival_origin": "trace", "block_tokens": 512}
    short = trace(tmp_path, MOONCAKE.replace("[0, 1]", "[0]"))
    assert "block_tokens" not in short.facts and "how long a block is nobody says" in short.reasons()
    words = trace(tmp_path, MOONCAKE.replace("[0, 1]", '["a"]'))
    assert columns(words, "hash_ids") == [(None,), ([0],)] and "no list of whole numbers" in words.reasons()


def test_burstgpt(tmp_path):
    got = trace(tmp_path, BURSTGPT)
    assert columns(got, "arrival_ns", "prompt_tokens", "output_tokens", "tenant") == [
        (5 * S, 472, 18, "ChatGPT Conversation log"),
        (110 * S + S // 2, 417, 0, "GPT-4 API log"),
    ]
    assert got.facts == {"arrival_origin": "trace", "arrival_unit": "s"}


@pytest.mark.parametrize(
    ("head", "time", "arrival_ns"),
    [
        ("arrived_at,num_prefill_tokens,num_decode_tokens", "1.25", 1_250_000_000),
        ("timestamp_ms,input_tokens,output_tokens", "1.5", 1_500_000),
        ("arrival_time_us,isl,osl", "3", 3000),
        ("arrivalTimeNs,input_len,output_len", "1700000000000000000", 1_700_000_000 * S),
        ("time,prompt_tokens,completion_tokens", "1700000000.5", 1_700_000_000 * S + S // 2),
        ("time,prompt_tokens,completion_tokens", "1700000000500", 1_700_000_000 * S + S // 2),
        ("time,prompt_tokens,completion_tokens", "2023-11-14T22:13:20Z", 1_700_000_000 * S),
    ],
)
def test_names_and_units(tmp_path, head, time, arrival_ns):
    got = trace(tmp_path, f"{head}\n{time},7,9\n")
    assert columns(got, "arrival_ns", "prompt_tokens", "output_tokens") == [(arrival_ns, 7, 9)]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_quotes_and_a_mark_at_the_beginning(tmp_path, separator):
    rows = (("Timestamp", "User", "Input Tokens"), ("1", '"a b"', "5"), ("2", '"ü"', "6"))
    got = trace(tmp_path, "\ufeff" + "".join(separator.join(r) + "\r\n" for r in rows))
    assert columns(got, "arrival_ns", "tenant", "prompt_tokens") == [(S, "a b", 5), (2 * S, "ü", 6)]


def test_latencies_make_served_requests(tmp_path):
    text = (
        "request_id,timestamp,prompt_tokens,output_tokens,ttft_ms,latency_s,status\n"
        "a,1,10,5,250.5,2,success\nb,2,10,,,,error\nc,3,10,5,100,1,\nd,4,1,1,1,1,cancelled\n"
    )
    got = trace(tmp_path, text)
    assert columns(got, "id", "ttft_ns", "e2e_ns", "status") == [
        ("a", 250_500_000, 2 * S, "completed"),
        ("b", None, None, "failed"),
        ("c", 100_000_000, S, "completed"),
        ("d", 1_000_000, S, "aborted"),
    ]
    assert set(got.column("requests", "status")) == {"completed", "failed", "aborted"}


def test_cached_tokens_and_the_short_names_of_load_generators_of_ones_own(tmp_path):
    """As one wrote them of vLLM on an RTX 4090."""
    rows = [
        {
            "cell": "c1",
            "ok": ok,
            "t_start": 1790274634.2999,
            "ttft_s": 0.091,
            "e2e_s": 0.401,
            "n_in": 1161,
            "n_out": 37,
            "cached": cached,
        }
        for ok, cached in ((True, 1120), (True, 1162), (False, None))
    ]
    got = trace(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), "requests.jsonl")
    assert request_trace.sniff(source_of(tmp_path, json.dumps(rows[0]), "x.jsonl")) > 0.5
    assert columns(got, "prompt_tokens", "output_tokens", "cached_tokens", "ttft_ns", "e2e_ns", "status") == [
        (1161, 37, 1120, 91_000_000, 401_000_000, "completed"),
        (1161, 37, None, 91_000_000, 401_000_000, "completed"),
        (1161, 37, None, 91_000_000, 401_000_000, "failed"),
    ]
    assert [lost.what for lost in got.lost] == ["cached tokens (1)"]
    named = trace(tmp_path, "timestamp,prompt_tokens,output_tokens,cached_tokens\n1,10,5,4\n2,10,5,\n")
    assert columns(named, "cached_tokens") == [(4,), (None,)]


@pytest.mark.parametrize(
    ("ttft", "e2e"),
    [
        ("time_to_first_token_ms", "total_latency_ms"),
        ("TTFT (ms)", "E2E Latency (ms)"),
        ("ttft_milliseconds", "request_latency_millis"),
        ("first_token_latency_ms", "end_to_end_latency_msec"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_latencies_under_other_usual_names(tmp_path, ttft, e2e, as_json):
    row = {"timestamp": 1, "input_tokens": 10, "output_tokens": 5, ttft: 250.5, e2e: 2000}
    text = json.dumps(row) if as_json else ",".join(row) + "\n" + ",".join(map(str, row.values()))
    assert request_trace.sniff(source_of(tmp_path, text + "\n", "r.txt")) > 0.5
    got = trace(tmp_path, text + "\n", "r.txt")
    assert columns(got, "ttft_ns", "e2e_ns", "status") == [(250_500_000, 2 * S, "completed")] and not got.lost


@pytest.mark.parametrize("as_json", [False, True])
def test_a_latency_without_a_unit_is_named(tmp_path, as_json):
    row = {"timestamp": 1, "input_tokens": 10, "output_tokens": 5, "ttft": 0.2, "latency": 2, "e2e_s": 3}
    text = json.dumps(row) if as_json else ",".join(row) + "\n" + ",".join(map(str, row.values()))
    got = trace(tmp_path, text + "\n", "r.txt")
    assert columns(got, "ttft_ns", "e2e_ns") == [(None, 3 * S)]
    assert [lost.what for lost in got.lost] == ["column 'ttft' (1)"]


def test_a_file_of_served_requests_is_a_load(tmp_path):
    served = trace(tmp_path, "timestamp,prompt_tokens,output_tokens,ttft_s\n0,10,5,1\n", "rate 4.csv")
    assert columns(served, "stage", "status") == [("rate 4", "completed")]
    assert columns(trace(tmp_path, AZURE, "rate 4.csv"), "stage", "status") == [(None, None)] * 2


@pytest.mark.parametrize("failed", [0, 1])
def test_what_some_objects_tell_alone_is_read_whichever_comes_first(tmp_path, failed):
    """Load generators write an error of requests that failed alone, and a latency of those that did not."""
    answered = {"timestamp": 1, "input_tokens": 10, "output_tokens": 5, "ttft_s": 0.1, "e2e_s": 1}
    objects = [answered, answered]
    objects.insert(failed, {"timestamp": 2, "input_tokens": 10, "e2e_s": 60, "error": "timeout"})
    got = trace(tmp_path, "".join(json.dumps(entry) + "\n" for entry in objects), "requests.jsonl")
    expected = [(100_000_000, S, 5, "completed")] * 2
    expected.insert(failed, (None, 60 * S, None, "failed"))
    assert columns(got, "ttft_ns", "e2e_ns", "output_tokens", "status") == expected and not got.lost
    objects[failed] = {"timestamp": 2, "input_tokens": 10, "error": "refused"}
    got = trace(tmp_path, json.dumps(objects), "requests.json")
    expected[failed] = (None, None, None, "failed")
    assert columns(got, "ttft_ns", "e2e_ns", "output_tokens", "status") == expected


def test_rows_that_cannot_be_are_counted_by_reason(tmp_path):
    text = (
        "timestamp,input_tokens,output_tokens\n1,5,5\nx,5,5\n-1,5,5\n2,-5,5\n2,5.5,5\n2,5,-1\n2,5,99999999999\n"
        "2,5\n2,5,5,5\n2,5,\n3,,4\n"
    )
    got = trace(tmp_path, text)
    assert columns(got, "arrival_ns", "prompt_tokens", "output_tokens") == [(S, 5, 5), (2 * S, 5, None)]
    assert {(lost.what, lost.reason.split(" is ")[0].split(",")[0]) for lost in got.lost} == {
        ("rows (2)", "their time"),
        ("rows (3)", "their prompt"),
        ("rows (2)", "their answer"),
        ("rows (2)", "more or fewer fields than the head"),
    }


def test_one_bad_date_costs_its_row_alone(tmp_path):
    got = trace(tmp_path, AZURE + "2023-13-45 99:00:00,1,1\nsoon,1,1\n2023-11-16 18:17:05,2,2\n")
    assert columns(got, "arrival_ns", "prompt_tokens")[-1] == (1_700_158_625 * S, 2)
    assert len(got.rows["requests"]) == 3 and got.lost[0].what == "rows (2)"


def test_half_written_json(tmp_path):
    got = trace(tmp_path, MOONCAKE + MOONCAKE[:50] + '\n{"other": 1}\n', "t.jsonl")
    assert len(got.rows["requests"]) == 2 and len(got.lost) >= 2


def test_a_json_array_and_gzip(tmp_path):
    entries = [json.loads(line) for line in MOONCAKE.splitlines()]
    got = trace(tmp_path, gzip.compress(json.dumps(entries, indent=1).encode()), "t.json.gz")
    assert columns(got, "arrival_ns", "prompt_tokens") == [(0, 700), (40_000_000, 512)]


@pytest.mark.parametrize("text", ["timestamp,input_tokens\n", "timestamp,input_tokens\nx,y\n", "[]", "{}"])
def test_nothing_usable_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="no request with a time"):
        trace(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (AZURE, 0.85),
        (MOONCAKE, 0.9),
        (BURSTGPT, 0.85),
        ('{"arrival_time": 1.5, "prompt_tokens": 5}\n', 0.7),
        ('{"request_id": "a", "input_toks": 5, "arrival_time": 1, "first_token_ts": 3}\n', 0.0),
        ("step,loss\n1,2\n", 0.0),
        ("timestamp,message\n1,2\n", 0.0),
        ("", 0.0),
        ("{", 0.0),
        ("t,prompt_throughput,gen_throughput,running\n", 0.0),
    ],
)
def test_sniff(tmp_path, text, score):
    assert request_trace.sniff(source_of(tmp_path, text)) == score


TOKENS = st.integers(0, 10**6)
ROWS = st.lists(st.tuples(st.integers(0, 10**12), TOKENS, TOKENS), min_size=1, max_size=20)


@settings(deadline=None)
@given(ROWS, st.booleans())
def test_what_is_written_is_what_is_read(tmp_path_factory, rows, as_json):
    names = ("timestamp_ms", "input_tokens", "output_tokens")
    if as_json:
        text = "".join(json.dumps(dict(zip(names, r, strict=True))) + "\n" for r in rows)
    else:
        text = ",".join(names) + "\n" + "".join(",".join(map(str, r)) + "\n" for r in rows)
    got = trace(tmp_path_factory.getbasetemp(), text)
    assert columns(got, "arrival_ns", "prompt_tokens", "output_tokens") == [(t * 10**6, p, o) for t, p, o in rows]


def mooncake(first, gap=3000):
    line = {"input_length": 700, "output_length": 5, "hash_ids": [1, 2]}
    return "".join(json.dumps({"timestamp": first + gap * n} | line) + "\n" for n in range(3))


@pytest.mark.parametrize(
    ("first", "origin"),
    [
        (0, "trace"),
        (27_482_000, "trace"),
        (100_000_500, "trace"),
        (1_000_000_000, "trace"),
        (9_000_000_000, "trace"),
        (1_700_000_000_000, "1970"),
    ],
)
def test_a_mooncake_trace_counts_milliseconds_wherever_it_begins(tmp_path, first, origin):
    got = read(request_trace, source_of(tmp_path, mooncake(first)))
    assert columns(got, "arrival_ns") == [((first + 3000 * n) * 10**6,) for n in range(3)]
    assert got.facts["arrival_origin"] == origin


@pytest.mark.parametrize(
    ("first", "unit_ns", "facts"),
    [
        (0, S, {"arrival_origin": "trace", "arrival_unit": "s"}),
        (5_000_000, S, {"arrival_origin": "trace", "arrival_unit": "s"}),
        (100_000_500, 10**6, {"arrival_origin": "trace", "arrival_unit": "ms"}),
        (1_700_000_000, S, {"arrival_origin": "1970"}),
        (1_700_000_000_000, 10**6, {"arrival_origin": "1970"}),
        (1_700_000_000_000_000, 10**3, {"arrival_origin": "1970"}),
    ],
)
def test_units_that_nothing_names(tmp_path, first, unit_ns, facts):
    text = "timestamp,input_tokens,output_tokens\n" + "".join(f"{first + n},5,5\n" for n in range(3))
    got = read(request_trace, source_of(tmp_path, text))
    assert columns(got, "arrival_ns") == [((first + n) * unit_ns,) for n in range(3)] and got.facts == facts


@pytest.mark.parametrize(
    ("name", "ns"),
    [("ttftms", 120_000_000), ("TTFTms", 120_000_000), ("time_to_first_token_microseconds", 120_000), ("ttfts", None)],
)
def test_a_unit_that_follows_on_a_name_is_its_unit(tmp_path, name, ns):
    """120 ms were read as 120 ns; an s alone is as well that of several."""
    text = f"timestamp,prompt_tokens,output_tokens,{name}\n" + "".join(f"{n},100,50,120\n" for n in range(5))
    source = source_of(tmp_path, text, "requests.csv")
    assert request_trace.sniff(source) > 0.5 or ns is None
    assert [row.get("ttft_ns") for row in read(request_trace, source).rows["requests"]] == [ns] * 5
