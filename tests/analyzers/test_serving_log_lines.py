"""What logs tell beside load tests that failed: the line that names a cause first, each kind once."""

import pytest

from analyzers.serving import latency as serving
from analyzers.serving import load
from analyzers.serving import traffic as workload
from analyzers.serving.latency.log_lines import log_lines
from app.questions.latency import words
from app.questions.traffic import words as traffic
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

S = 1_000_000_000
EVIDENCE = {
    "ts_ns": [1 * S, 2 * S, 3 * S, 4 * S],
    "order": [0, 1, 2, 3],
    "source": ["server.log"] * 4,
    "cause": [None, "hbm_oom", None, "hbm_oom"],
    "severity": ["error", "error", "warning", "error"],
    "text": [
        "EngineCore failed to start.",
        "CUDA out of memory. Tried 1 GiB",
        "slow",
        "CUDA out of memory. Tried 2 GiB",
    ],
}


def ask(question, tables, **options):
    return question.analyze(MemoryTables(tables), {}, parse_options(question.OPTIONS, options))


def test_lines_that_name_a_cause_come_first_and_alike_ones_are_one():
    found = log_lines(MemoryTables({"evidence": EVIDENCE}))
    assert found["text"].tolist() == ["CUDA out of memory. Tried 1 GiB", "EngineCore failed to start.", "slow"]
    assert found["lines"].tolist() == [2, 1, 1] and found["first_ns"].tolist() == [2 * S, S, 3 * S]


def test_a_load_of_which_all_requests_failed_is_told_with_the_line_of_the_log():
    requests = {"id": ["a", "b"], "arrival_ns": [0, S], "status": ["failed"] * 2, "error": ["refused"] * 2}
    result = ask(serving, {"requests": requests, "evidence": EVIDENCE})
    said = words.verdict(result)
    assert said.startswith("None of 2 requests was answered") and "CUDA out of memory. Tried 1 GiB" in said
    assert "The log says (2 times)" in said and result.to_dict()["log_lines"][0]["cause"] == "hbm_oom"


def test_starts_that_failed_are_told_where_there_is_no_request():
    with pytest.raises(QuestionError, match=r"the log says \(2 times\): CUDA out of memory"):
        ask(serving, {"evidence": EVIDENCE})


def test_pauses_between_loads_are_no_bursts():
    at = [n * S // 2 for n in range(40)] + [1000 * S + n * S // 2 for n in range(40)]
    both = {
        "id": [str(n) for n in range(80)],
        "stage": ["a"] * 40 + ["b"] * 40,
        "arrival_ns": at,
        "prompt_tokens": [10] * 80,
        "output_tokens": [5] * 80,
    }
    result = ask(workload, {"requests": both})
    assert (result.loads, result.shape, result.gaps) == (2, "unknown", None)
    assert "2 loads of a test, one after another" in traffic.verdict(result)
    alone = ask(workload, {"requests": both}, stage="a")
    assert alone.gaps.cv == pytest.approx(0) and alone.loads == 1


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (
            {"mlperf_result": "INVALID", "mlperf_invalid_reason": "not satisfied: min duration"},
            "LoadGen calls this result INVALID: not satisfied: min duration. It is no result of MLPerf.",
        ),
        ({"aiperf_submission_valid": False}, "AIPerf says that this is no valid submission."),
        ({"mlperf_result": "VALID"}, None),
        ({"aiperf_submission_valid": True}, None),
    ],
)
def test_what_a_tool_says_against_its_own_result_is_told(facts, sentence):
    stages = {
        "stage": ["x"],
        "order": [0],
        "request_rate_per_s": [9.5],
        "goodput_per_s": [8.5],
        "source": ["x"],
        "outcome": ["measured"],
        "tool": ["mlperf-inference"],
    }
    stats = {"stage": ["x"] * 2, "metric": ["ttft"] * 2, "statistic": ["p50", "p99.9"], "value": [0.25, 0.49]}
    tables = MemoryTables({"stages": stages, "stage_stats": stats})
    result = serving.analyze(tables, facts_of(facts), parse_options(serving.OPTIONS, {}))
    assert result.invalid == sentence and (sentence is None or words.verdict(result).startswith(sentence))
    assert result.to_dict()["goodput_per_s"] == 8.5 and result.to_dict()["ttft_s"]["p99.9"] == 0.49
    assert "rates are as mlperf-inference printed them" in " ".join(result.notes)  # beside an unknown duration
    rows = words.table(result).rows
    assert any("own objectives" in row[0] and row[1] == "8.50" for row in rows)
    assert "p99.9" in words.table(result).head and any("490 ms" in row for row in rows)
    drawn = load.analyze(tables, facts_of(facts), parse_options(load.OPTIONS, {}))
    assert sentence is None or sentence in drawn.notes
