"""Answers that were not streamed, and durations that are shorter than what they are of."""

import pytest

from analyzers.serving import latency as serving
from analyzers.serving import load
from analyzers.serving import objectives as slo
from app.questions.latency.words import verdict
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask

S = 10**9


def requests(tokens=(50, 40, 1), first_s=(2.0, 1.5, 0.5), last_s=(2.0, 1.5, 0.5), **stages) -> MemoryTables:
    n = len(tokens)
    at = [EPOCH_NS + i * S for i in range(n)]
    rows = {
        "id": [f"r{i}" for i in range(n)],
        "stage": ["a"] * n,
        "arrival_ns": at,
        "status": ["completed"] * n,
        "first_token_ns": [t + round(x * S) for t, x in zip(at, first_s, strict=True)],
        "last_token_ns": [t + round(x * S) for t, x in zip(at, last_s, strict=True)],
        "prompt_tokens": [10] * n,
        "output_tokens": list(tokens),
    }
    summed = {
        "stage": ["a"],
        "tool": ["vllm_bench"],
        "order": [0],
        "source": ["a.json"],
        "completed": [n],
        "failed": [0],
        **{k: [v] for k, v in stages.items()},
    }
    return MemoryTables({"requests": rows, "stages": summed})


def test_answers_in_one_piece_tell_no_first_token_and_no_pace():
    result = ask(serving, requests())
    assert "ttft_s" not in result.load.latency and "tpot_s" not in result.load.latency
    assert result.load.statistic("e2e_s", "p50") == pytest.approx(1.5)
    assert any("not streamed" in n for n in result.notes)
    assert verdict(result).startswith("The time to the first token is not told")
    with pytest.raises(QuestionError, match="tells its TTFT"):
        ask(slo, requests(), ttft_s=5.0)
    with pytest.raises(QuestionError, match="tells its TPOT"):
        ask(slo, requests(), tpot_s=0.001)


def test_answers_of_one_token_have_their_first_when_they_end():
    result = ask(serving, requests(tokens=(1, 1, 1)))
    assert result.load.statistic("ttft_s", "p50") == pytest.approx(1.5)


def test_one_streamed_answer_of_several_keeps_the_others_first_tokens():
    result = ask(serving, requests(first_s=(1.0, 1.5, 0.5)))
    assert result.load.statistic("ttft_s", "p50") == pytest.approx(1.0)
    assert result.load.statistic("tpot_s", "mean") == pytest.approx(1 / 49)  # of the streamed one alone
    assert any("1 of 3 answers came in one piece" in n for n in result.notes)


@pytest.mark.parametrize(("tokens", "told"), [(40_000, False), (400, True)])
def test_a_printed_first_token_as_late_as_the_answer_is_none(tokens, told):
    tables = MemoryTables(
        {
            "stages": {
                "stage": ["a"],
                "tool": ["sglang_bench"],
                "order": [0],
                "source": ["a.txt"],
                "completed": [400],
                "output_tokens": [tokens],
                "duration_s": [100.0],
            },
            "stage_stats": {
                "stage": ["a"] * 5,
                "metric": ["ttft", "ttft", "ttft", "e2e", "e2e"],
                "statistic": ["mean", "p50", "p99", "mean", "p50"],
                "value": [2.02, 2.0, 2.5, 2.02, 2.0],
            },
        }
    )
    assert ("ttft_s" in ask(serving, tables).load.latency) is told
    assert ask(load, tables).rows["ttft_p99_s"].notna().iloc[0] == told


def test_a_duration_shorter_than_its_requests_counts_in_no_question():
    tables = requests(last_s=(4.0, 4.0, 4.0), duration_s=0.5)
    assert ask(serving, tables).load.duration_s == pytest.approx(6)
    row = ask(load, tables).rows.iloc[0]
    assert row["duration_s"] == pytest.approx(6) and row["request_rate_per_s"] == pytest.approx(0.5)


def test_a_load_is_told_what_was_left_out_of_its_own_requests():
    """Of two loads in one run: of `light` nothing failed, and its times are whole."""
    n = 7
    at = [EPOCH_NS + i * S for i in range(n)]
    rows = {
        "id": [f"r{i}" for i in range(n)],
        "stage": ["light"] * 3 + ["heavy"] * 4,
        "arrival_ns": at,
        "status": ["completed"] * 3 + ["failed", "cut_off", "completed", "completed"],
        "first_token_ns": [t + S for t in at[:5]] + [at[5] - S, at[6] + S],
        "last_token_ns": [t + 3 * S for t in at],
        "prompt_tokens": [10] * n,
        "output_tokens": [9] * n,
    }
    tables = MemoryTables({"requests": rows})
    kinds = ("did not complete", "still ran", "are left out")
    whole, light, heavy = (
        [next((x for x in ask(serving, tables, stage=stage).notes if kind in x), None) for kind in kinds]
        for stage in (None, "light", "heavy")
    )
    assert [x.split(" requests")[0] for x in whole] == ["1 of 7"] * 3
    assert light == [None] * 3 and [x.split(" requests")[0] for x in heavy] == ["1 of 4"] * 3
    assert any("1 of 4 requests still ran" in x for x in ask(slo, tables, stage="heavy", e2e_s=5.0).notes)


def test_each_load_is_streamed_or_not_by_itself():
    """Beside a streamed load, of one that was not the time to the whole answer was told as that to its first token."""
    n = 3
    at = [EPOCH_NS + i * S for i in range(2 * n)]
    rows = {
        "id": [f"r{i}" for i in range(2 * n)],
        "stage": ["streamed"] * n + ["whole"] * n,
        "arrival_ns": at,
        "status": ["completed"] * 2 * n,
        "ttft_ns": [S] * n + [3 * S] * n,
        "e2e_ns": [3 * S] * 2 * n,
        "prompt_tokens": [10] * 2 * n,
        "output_tokens": [9] * 2 * n,
    }
    tables = MemoryTables({"requests": rows})
    whole, streamed, both = (ask(serving, tables, stage=stage) for stage in ("whole", "streamed", None))
    assert "ttft_s" not in whole.load.latency and whole.load.statistic("e2e_s", "p50") == pytest.approx(3)
    assert streamed.load.statistic("ttft_s", "p50") == both.load.statistic("ttft_s", "p99") == pytest.approx(1)
    assert not any("one piece" in n for n in streamed.notes)
    assert any("of whole came in one piece: they were not streamed" in n for n in both.notes)
    assert ask(load, tables).rows.set_index("stage")["ttft_p50_s"].isna().to_dict() == {
        "streamed": False,
        "whole": True,
    }
    with pytest.raises(QuestionError, match="tells its TTFT"):
        ask(slo, tables, stage="whole", ttft_s=5.0)
