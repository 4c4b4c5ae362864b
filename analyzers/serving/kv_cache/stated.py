"""What an engine means by the tokens of its cache, where some layers look back a window only.

vLLM prints `GPU KV cache size: N tokens` and `Maximum concurrency for M tokens per request: Cx`. Until 0.20 N counted
pages by the number of groups of layers: N tokens of which every layer keeps each. Since then N = C x M: tokens of
sequences of M, whose windows are full and take no more. For gpt-oss the two are twice apart. C heeds windows in both,
so which one was meant follows from the two lines (vllm/v1/core/kv_cache_utils.py, _report_kv_cache_config).
"""

from analyzers.base import Facts, fact

ROUNDED = 0.005  # of C, which is printed with two decimals
PAGES = 0.01  # of N: whole pages


def stated_length(facts: Facts, tokens: int | None) -> int | None:
    """The tokens of the sequences that the `tokens` of a cache are stated for; 0: as if every layer kept all; None: the
    run does not tell."""
    said = fact(facts, "max_concurrency_at")
    if not isinstance(said, dict) or not tokens:
        return None
    longest, most = said.get("tokens"), said.get("sequences")
    if not all(isinstance(v, int | float) and v > 0 for v in (longest, most)):
        return None
    return int(longest) if abs(tokens / longest - most) <= ROUNDED + PAGES * most else 0
