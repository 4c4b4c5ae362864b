"""Logs of servers of months: rows are handed on as they are read, and say the same as if all had been seen before."""

import pytest

from collectors.reading import textlog
from collectors.serving import sglang_log, vllm_log
from tests.collectors.reading import read, source_of
from tests.collectors.test_sglang_log import decode

LINES = 400
RETRACTED = "[2026-03-04 12:00:30 TP0] Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.5\n"
PREEMPTED = "WARNING 03-04 12:00:30 [scheduler.py:1] Preempting request chatcmpl-1\n"


def sample(number):
    return (
        f"INFO 03-04 12:{number // 60:02}:{number % 60:02} [loggers.py:1] Engine 000: Avg prompt throughput: 9.1 "
        f"tokens/s, Avg generation throughput: {number}.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, "
        "GPU KV cache usage: 12.3%, Prefix cache hit rate: 45.6%\n"
    )


LOGS = {
    "sglang": (sglang_log, [decode(running=n) for n in range(LINES)], RETRACTED, decode(running=7)),
    "vllm": (vllm_log, [sample(n) for n in range(LINES)], PREEMPTED, sample(LINES)),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_rows_are_handed_on_long_before_the_end(tmp_path, monkeypatch, log):
    module, samples, _, _ = log
    monkeypatch.setattr(textlog, "BATCH_ROWS", 50)
    seen = 0

    def counted(source):
        nonlocal seen
        for line in textlog.lines(source):
            seen += 1
            yield line

    monkeypatch.setattr(module, "lines", counted)
    at = [
        seen
        for item in module.read(source_of(tmp_path, "".join(samples), "server.log"))
        if getattr(item, "table", "") == "engine"
    ]
    assert len(at) == LINES // 50 and at[0] < 60, "the first rows come after the first lines"


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_that_nothing_was_taken_back_is_known_only_where_the_log_tells_of_it_somewhere(tmp_path, log):
    module, samples, taken_back, last = log
    silent = read(module, source_of(tmp_path, "".join(samples), "silent.log")).rows["engine"]
    assert len(silent) == LINES and {r["preemptions"] for r in silent} == {None}
    assert [r["order"] for r in silent] == list(range(LINES))
    told = read(module, source_of(tmp_path, "".join(samples) + taken_back + last, "told.log")).rows["engine"]
    assert [r["preemptions"] for r in told[:-1]] == [0] * LINES
    assert told[-1]["preemptions"] == (3 if module is sglang_log else 1)
