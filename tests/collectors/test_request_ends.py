"""How requests ended, in the words that people write for it."""

import numpy as np
import pytest

from collectors.reading.textlog import Tally
from collectors.serving import request_ends
from collectors.serving.request_ends import ends
from tests.collectors.test_request_trace import columns, trace

HEAD = "timestamp,input_tokens,output_tokens,ttft_s,e2e_s"


@pytest.mark.parametrize(
    "column, word",
    [
        *(
            ("status", w)
            for w in ("finished", "succeeded", "Completed", "done", "200", "200.0", "204", "1", "OK", "True")
        ),
        *(("finish_reason", w) for w in ("stop", "length", "tool_calls", "eos")),
        ("success", "1"),
        ("success", "1.0"),
        ("http_status", "200"),
        ("status", "200 OK"),
        ("status", "HTTP/1.1 200 OK"),
        ("status", "no error"),
        ("status", ""),
        ("status", "shipped"),  # not known: the latency tells
        ("status", "0"),  # of gRPC that is well
    ],
)
def test_a_request_with_a_latency_was_answered(tmp_path, column, word):
    got = trace(tmp_path, f"{HEAD},{column}\n1,10,5,0.2,1.0,{word}\n")
    assert columns(got, "status") == [("completed",)]
    assert [lost.what for lost in got.lost] == ([f"status {word!r} (1)"] if word in ("shipped", "0") else [])


@pytest.mark.parametrize(
    "word, end",
    [
        *((w, "failed") for w in ("503 Service Unavailable", "HTTP 500", "HTTP/1.1 502", "http_504", "error: 500")),
        *((w, "failed") for w in ("server_error", "ReadTimeout", "rate_limited", "Too Many Requests", "ValueError")),
        *((w, "aborted") for w in ("client_disconnected", "cancelled by user")),
    ],
)
def test_a_request_that_says_how_it_failed_was_not_answered_whatever_was_written_for_its_latency(tmp_path, word, end):
    got = trace(tmp_path, f"{HEAD},status\n1,10,5,0.2,1.0,200 OK\n2,10,0,0.01,0.01,{word}\n")
    assert columns(got, "status") == [("completed",), (end,)]
    assert not got.lost


@pytest.mark.parametrize(
    "column, word, end",
    [
        *(("status", w, "failed") for w in ("failed", "error", "timed_out", "500", "503.0", "429", "False", "shipped")),
        *(("success", w, "failed") for w in ("0", "0.0", "false", "no")),
        *(("status", w, "aborted") for w in ("cancelled", "Aborted", "disconnected", "client_disconnected")),
        ("error", "HTTP 503", "failed"),
        ("error_message", "Connection reset by peer", "failed"),
        ("error_code", "17", "failed"),
        ("error", "", None),
        ("error", "None", None),
    ],
)
def test_a_request_without_a_latency(tmp_path, column, word, end):
    got = trace(tmp_path, f"{HEAD},{column}\n1,10,5,0.2,1.0,\n2,10,0,,,{word}\n")
    assert columns(got, "status") == [("completed",), (end,)]
    untold = [lost for lost in got.lost if "nobody says" in lost.reason]
    assert len(untold) == (end is None)


def test_an_error_outweighs_a_latency_and_no_error_does_not(tmp_path):
    rows = "1,10,5,0.2,1.0,reset after 3 tokens\n2,10,5,0.2,1.0,\n3,10,5,0.2,1.0,NaN\n4,10,5,0.2,1.0,0\n"
    got = trace(tmp_path, f"{HEAD},error\n{rows}")
    assert [s for (s,) in columns(got, "status")] == ["failed", "completed", "completed", "completed"]


def test_words_without_end_are_told_together():
    tally = Tally()
    ends(np.ones(1000, dtype=bool), [f"word {n}" for n in range(1000)], "status", None, tally)
    assert len(list(tally.lost())) == 4


def test_objects_for_errors():
    said = ends(np.array([True, True, False]), None, "", [{"code": 5}, {}, True], Tally())
    assert said == ["failed", "completed", "failed"]


def test_of_many_rows_each_end_is_judged_once(monkeypatch):
    judged, real = [], request_ends._ended
    monkeypatch.setattr(request_ends, "_ended", lambda value, column: judged.append(value) or real(value, column))
    status = [200, "200", 200.0, True, 1, 0, False, None, "aborted", ["x"]] * 300
    told = np.ones(len(status), dtype=bool)
    found = ends(told, status, "success", None, Tally())
    assert len(judged) == 9 + 300  # what is a list is judged each time
    assert found[:10] == ["completed"] * 5 + ["failed"] * 2 + ["completed", "aborted", "completed"]
    assert found == found[:10] * 300
