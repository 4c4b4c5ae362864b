"""What an engine means by the tokens of its cache, beside the arithmetic."""

import pytest

from analyzers.serving import kv_cache as kv
from analyzers.serving.kv_cache.stated import stated_length
from catalog import model
from catalog.inference import stated_token_bytes
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

GIB = 1 << 30


def facts(tokens, longest=None, sequences=None, **more):
    at = {} if longest is None else {"max_concurrency_at": {"tokens": longest, "sequences": sequences}}
    return facts_of({"kv_cache_tokens": tokens, **at, **more})


@pytest.mark.parametrize(
    ("tokens", "longest", "sequences", "expected"),
    [
        (442_528, 8192, 54.02, 8192),
        (302_921, 131_072, 2.31, 131_072),
        (500_000, 131_072, 7.2, 0),
        (500_000, None, None, None),
        (178_880, 40_960, 4.37, 40_960),
        (0, 8192, 1.0, None),
        (9_000, 8192, 0, None),
    ],
)
def test_for_which_sequences_a_cache_is_stated(tokens, longest, sequences, expected):
    assert stated_length(facts(tokens, longest, sequences), tokens) == expected


def test_gemma_4_31b_on_one_a100_before_and_after():
    """github.com/vllm-project/vllm/issues/43308: about 50 GB of cache were told as 55,000 tokens by 0.20 and as 525,000
    by 0.21, which counts windows; steps of 2,048 tokens, as vLLM has them on an A100."""
    gemma = model("gemma-4-31b")
    assert 55_000 * stated_token_bytes(gemma, 0, 2048) == pytest.approx(50e9, rel=0.05)
    assert 525_000 * stated_token_bytes(gemma, 262_144, 2048) == pytest.approx(50e9, rel=0.05)


def test_tokens_that_every_layer_keeps_are_compared_with_such():
    """gpt-oss-20b, of 24 layers 12 with a window: arithmetic gave twice as many, or as many, as the length of the
    run's requests had it."""
    layer = 2 * 8 * 64 * 2
    free = 79.18 * GIB * 0.9 - 13.74732288e9
    tokens = int(free / (24 * layer))
    per_request = 12 * layer * (131_072 + 127 + 8192)
    told = {"model": "gpt-oss-20b", "chip": "H100", "chips": 1, "gpu_memory_utilization": 0.9}
    known = facts(tokens, 131_072, round(free / per_request, 2), **told)
    for seq in (None, "1000", "131072"):
        result = kv.analyze(MemoryTables({}), known, parse_options(kv.OPTIONS, {"seq": seq} if seq else {}))
        assert result.comparison["difference"] == pytest.approx(0, abs=1e-3), seq
    newer = facts(int(free / per_request * 131_072), 131_072, round(free / per_request, 2), **told)
    result = kv.analyze(MemoryTables({}), newer, parse_options(kv.OPTIONS, {}))
    assert result.comparison["difference"] == pytest.approx(0, abs=1e-3)
