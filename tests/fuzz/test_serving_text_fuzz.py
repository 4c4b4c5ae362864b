"""Whatever bytes a reader of serving benchmarks and engine logs meets: rows of its tables, or what is wrong."""

import gzip
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors.serving import otel_spans, sglang_bench, sglang_log, vllm_bench, vllm_log, vllm_requests
from tests.collectors import test_otel_spans, test_sglang_bench, test_sglang_log, test_vllm_log, test_vllm_requests
from tests.collectors.serving_files import BLOCK, SGLANG_BLOCK, detailed, result, template
from tests.fuzz.damage import checks_of, survive

VALID = {
    vllm_bench: [
        (template() + "Traffic request rate: 4.0\n" + BLOCK).encode(),
        (json.dumps(result()) + "\n" + json.dumps(detailed())).encode(),
        json.dumps([detailed(monotonic=False), result(request_rate=2.5)], indent=1).encode(),
    ],
    sglang_bench: [
        SGLANG_BLOCK.encode(),
        (json.dumps(test_sglang_bench.load()) + "\n" + json.dumps(test_sglang_bench.detailed()) + "\n").encode(),
    ],
    vllm_log: [
        (
            test_vllm_log.START
            + test_vllm_log.sample(more=", Preemptions: 4")
            + test_vllm_log.SPECULATION
            + test_vllm_log.iteration(0, 12.5, prompt=2048)
            + test_vllm_log.iteration(1, 0.02)
            + BLOCK
            + test_vllm_log.sample("12-31 23:59:59", device="TPU")
            + test_vllm_log.sample("01-01 00:00:01")
        ).encode(),
    ],
    vllm_requests: [
        test_vllm_requests.lines(*(test_vllm_requests.request(n, n / 8) for n in range(4))).encode(),
        (test_vllm_requests.HEADER + "1.0,9.0,1.0,9,2,12.5\n2.5,0.0,1.0,0,0,0.0\n").encode(),
        test_vllm_requests.system().encode(),
        b'{"vllm_version": "1", "started_at": "2026-04-25T18:47:18Z", "engine_kwargs": {"tensor_parallel_size": 2}}',
    ],
    otel_spans: [
        test_otel_spans.LINES.encode(),
        test_otel_spans.PRETTY.encode(),
        test_otel_spans.JAEGER.encode(),
        test_otel_spans.CONSOLE.encode(),
    ],
    sglang_log: [
        (
            test_sglang_log.START
            + test_sglang_log.prefill(100, 20)
            + test_sglang_log.decode(more="accept len: 2.8, ")
            + "[2026-03-04 12:00:05 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 4, #n: 1\n"
            + test_sglang_log.decode(rank=" DP1 TP0")
        ).encode(),
    ],
}
NAME = "serving.log"  # of the input
READERS = pytest.mark.parametrize("reader", VALID, ids=lambda reader: reader.NAME)
NOISE = (
    b'{"queued_ts":\n' * 3_000,
    b"= Serving Benchmark Result =\n" * 3_000,
    b"Iteration(" + b"1" * 100_000,
    b"= Serving Benchmark Result =\n" + b"-" * 100_000 + b"\n" + b"a " * 50_000 + b"\n" + b"=" * 100_000 + b"x:",
    b"Decode batch, #" + b"a" * 100_000,
    b"is preempted by " * 100_000,
    b"Decode batch, #" + b"a " * 50_000,
    b"Retract requests. #retracted_reqs: x" * 5_000,
    b"KV Cache is allocated. K size: 1 GB, V size: " * 3_000,
    b"1" * 100_000 + b"Avg prompt throughput",
    b"Avg prompt throughput: 1 tokens/s, Avg generation throughput: 1 tokens/s " * 1_500,
    b"Iteration(1): 1 context requests, 1 context tokens, 1 generation requests " * 3_000,
    b"non-default args" + b"SpeculativeConfig(" * 5_000,
    b'{"a"' + b"\n" * 100_000,
)
test_the_undamaged_originals_are_known_and_read, test_damage, test_noise, test_every_cut = checks_of(
    VALID, NAME, NOISE, cuts=150, noises=60, facts_alone=(vllm_requests,)
)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(detailed())),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=5),
            max_leaves=12,
        ),
    )
)
@example({"ttfts": [True, 1e308, -1e308], "itls": [[1e308] * 3] * 3, "output_lens": [2, 2, 2]})
@example({"start_times": [1e300, -1e300, 0.0, 1e9]})
@example({"duration": 1e-320, "completed": 2**70, "total_input_tokens": 2**63})
@example({"itls": [[8e9] * 3, [8e9], [], [8e9]]})
def test_results_with_anything_in_them(tmp_path_factory, odd):
    for reader, whole in ((vllm_bench, detailed()), (sglang_bench, test_sglang_bench.detailed())):
        survive(reader, tmp_path_factory.getbasetemp(), json.dumps(whole | odd).encode(), NAME)


@pytest.mark.parametrize("reader", [vllm_log, sglang_log, vllm_requests], ids=lambda reader: reader.NAME)
def test_a_line_without_end_is_refused_in_bounded_memory(reader, tmp_path):
    survive(reader, tmp_path, gzip.compress(VALID[reader][0] + b" " * (80 << 20), 1), NAME)
