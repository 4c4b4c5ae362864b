"""What `vllm bench serve` leaves behind: the block that it prints, and the JSON of --save-result.

    stages, stage_stats   one load for each block or result; a file may hold many (a log of a sweep, --append-result,
                          a list). Milliseconds become seconds.
    requests              from results saved with --save-detailed; statistics are recomputed from them, and every
                          number of the summary that differs by more than its digits is named
    scalars               what diffusion decoding prints
Blocks with `xxx` in place of numbers are templates; where there is nothing else, the file is refused.
"""

import re
from collections.abc import Iterator

from collectors.base import Fact, Item, Source
from collectors.reading.textlog import Tally, lines, tail
from collectors.serving.serving_rows import Loads, refuse_template
from collectors.serving.vllm_bench.block import Blocks
from collectors.serving.vllm_bench.objects import objects
from collectors.serving.vllm_bench.result import Results, is_result
from errors import InputError

NAME = "vllm_bench"
TITLE = "vLLM benchmark result"
HELP = "vllm bench serve: the result block of its output, and --save-result JSON (plain, detailed, appended, sweeps)."

BLOCK = re.compile(rb"=\s*Serving Benchmark Result\s*=", re.IGNORECASE)
_BARE = re.compile(rb"\bSuccessful requests:[ \t]+\d[\d,]*\s", re.IGNORECASE)  # a block without its first line
_RATE_ROW = re.compile(rb"\bRequest throughput \(req/s\):", re.IGNORECASE)
SGLANG_BLOCK = re.compile(rb"Total generated tokens \(retokenized\)|E2E Latency \(ms\)", re.IGNORECASE)
_JSON_KEYS = (
    b'"model_id"',
    b'"num_prompts"',
    b'"request_rate"',
    b'"request_throughput"',
    b'"total_input_tokens"',
    b'"mean_ttft_ms"',
    b'"backend"',
    b'"start_times"',
)
_OTHERS = (b'"total_output_tokens_retokenized"', b'"sharegpt_output_len"', b'"benchmark_values"', b'"extra_info"')


def has_block(text: bytes) -> bool:
    """Whether a piece of a file holds a block, or one whose first line was cut away."""
    return bool(BLOCK.search(text) or (_BARE.search(text) and _RATE_ROW.search(text)))


def sniff(source: Source) -> float:
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n[")
    if head.startswith(b"{"):
        if any(key in head for key in _OTHERS):
            return 0.0
        found = sum(key in head for key in _JSON_KEYS)
        return 0.9 if found >= 4 and (b'"model_id"' in head or b'"request_throughput"' in head) else 0.0
    if b"\0" in source.head:
        return 0.0
    ends = [part for part in (source.head, tail(source)) if has_block(part)]
    return 0.0 if not ends or any(SGLANG_BLOCK.search(part) for part in ends) else 0.9


def read(source: Source) -> Iterator[Item]:
    """Loads, their statistics and requests. Raises InputError for a file that holds templates only, or no result."""
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n[").startswith(b"{"):
        yield from read_json(source, NAME, latencies_from_gaps=True)
    else:
        yield from read_text(source, NAME)


def read_text(source: Source, tool: str) -> Iterator[Item]:
    """Every block of a text. Raises InputError where there is none, or none but templates."""
    tally = Tally()
    loads = Loads(source, tool)
    blocks = Blocks(source, tally, loads)
    for offset, line, _ in lines(source):
        blocks.see(offset, line)
    scalars = list(blocks.rest())
    if not blocks.read:
        if blocks.templates:
            raise refuse_template(source, "a serving benchmark's result")
        raise InputError(
            "no result of a serving benchmark in it",
            where=source.name,
            expected="a block that begins with `=== Serving Benchmark Result ===` and has rows such as "
            "`Mean TTFT (ms): 251.04`",
        )
    yield from loads.rows()
    yield from scalars
    if blocks.model:
        yield Fact("model", blocks.model)
    yield from tally.lost()


def read_json(source: Source, tool: str, *, latencies_from_gaps: bool) -> Iterator[Item]:
    """Every result of a JSON file. Raises InputError where there is none."""
    tally = Tally()
    results = Results(source, tool, tally, latencies_from_gaps=latencies_from_gaps)
    for offset, found in objects(source, tally):
        if is_result(found):
            yield from results.add(offset, found)
        else:
            tally.add("objects", "they are no result of a load", offset)
    if not len(results.loads):
        reasons = "; ".join(f"{lost.what}: {lost.reason}" for lost in tally.lost())
        raise InputError(
            f"no result of a serving benchmark in it{f' ({reasons})' if reasons else ''}",
            where=source.name,
            expected='JSON with keys such as "completed", "duration", "mean_ttft_ms"',
            advice="Is it complete?",
        )
    yield from results.rest()
    yield from tally.lost()
