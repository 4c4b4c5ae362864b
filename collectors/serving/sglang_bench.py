"""What SGLang's `bench_serving` leaves behind: JSON lines of --output-file, one load a line, and the block it prints.

The keys are those of `vllm bench serve`, with e2e_latency for e2el and no date. Details (--output-details) do not hold
the latency of a request: e2e_ns is ttft plus its gaps, to the last token; the summary's own also holds the end of the
answer, so e2e and tpot of the summary are not compared with them.
"""

from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.reading.textlog import tail
from collectors.serving.vllm_bench import SGLANG_BLOCK, has_block, read_json, read_text

NAME = "sglang_bench"
TITLE = "SGLang benchmark result"
HELP = "SGLang bench_serving: JSON lines of --output-file (plain or with --output-details), and the block it prints."

_OWN_KEYS = (b'"total_output_tokens_retokenized"', b'"sharegpt_output_len"', b'"random_range_ratio"')
_KEYS = (b'"backend"', b'"request_rate"', b'"duration"', b'"completed"', b'"input_throughput"', b'"mean_ttft_ms"')


def sniff(source: Source) -> float:
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n[")
    if head.startswith(b"{"):
        known = sum(key in head for key in _KEYS) >= 3 and any(key in head for key in _OWN_KEYS)
        return 0.9 if known and b'"model_id"' not in head else 0.0
    if b"\0" in source.head:
        return 0.0
    ends = (source.head, tail(source))
    return 0.9 if any(has_block(part) and SGLANG_BLOCK.search(part) for part in ends) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Loads, their statistics and requests. Raises InputError for a file that holds templates only, or no result."""
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n[").startswith(b"{"):
        yield from read_json(source, NAME, latencies_from_gaps=False)
    else:
        yield from read_text(source, NAME)
