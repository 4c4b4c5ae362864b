"""What load tools write, made for tests: blocks and results of `vllm bench serve`, with statistics by plain Python."""

from math import ceil, floor
from statistics import fmean, pstdev

BLOCK = """============ Serving Benchmark Result ============
Successful requests:                     3000
Failed requests:                         2
Maximum request concurrency:             64
Request rate configured (RPS):           2.50
Benchmark duration (s):                  1202.50
Total input tokens:                      2997000
Total generated tokens:                  3000000
Request throughput (req/s):              2.49
Request goodput (req/s):                 1.75
Output token throughput (tok/s):         2494.80
Peak output token throughput (tok/s):    2872.00
Peak concurrent requests:                77.00
Total token throughput (tok/s):          4987.10
---------------Time to First Token----------------
Mean TTFT (ms):                          251.04
Median TTFT (ms):                        198.81
P99 TTFT (ms):                           2501.65
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          25.35
Median TPOT (ms):                        25.40
P90 TPOT (ms):                           25.42
P99.9 TPOT (ms):                         25.43
---------------Inter-token Latency----------------
Mean ITL (ms):                           25.35
Median ITL (ms):                         23.11
P99 ITL (ms):                            40.75
----------------End-to-end Latency----------------
Mean E2EL (ms):                          25600.25
Median E2EL (ms):                        25500.50
P99 E2EL (ms):                           27000.75
-------------- Client-side Queueing --------------
Mean Client Queue Time (ms):             1424.50
P99 Client Queue Time (ms):              2820.51
---------------Speculative Decoding---------------
Acceptance rate (%):                     61.25
Acceptance length:                       2.84
Drafts:                                  1000
Draft tokens:                            3000
Accepted tokens:                         1838
Per-position acceptance (%):
  Position 0:                            80.10
  Position 1:                            60.05
  Position 2:                            43.65
==================================================
"""

SGLANG_BLOCK = """
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    inf
Max request concurrency:                 not set
Successful requests:                     1920
Benchmark duration (s):                  213.71
Total input tokens:                      1843657
Total input text tokens:                 1843657
Total generated tokens:                  157031
Total generated tokens (retokenized):    156230
Request throughput (req/s):              8.98
Input token throughput (tok/s):          8626.75
Output token throughput (tok/s):         734.77
Total token throughput (tok/s):          9361.52
Concurrency:                             1418.05
Accept length:                           2.50
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   157842.85
Median E2E Latency (ms):                 157290.17
---------------Time to First Token----------------
Mean TTFT (ms):                          112043.40
Median TTFT (ms):                        140974.91
P99 TTFT (ms):                           145546.45
---------------Inter-Token Latency----------------
Mean ITL (ms):                           569.94
Max ITL (ms):                            151008.49
==================================================
"""


def template(block=BLOCK):
    """The block as guides print it: `xxx` in place of each number."""
    return "\n".join(
        f"{line.partition(':')[0]}:    xx.xx" if ":" in line and line.split()[-1][0].isdigit() else line
        for line in block.splitlines()
    )


def percentile(values, p):
    values = sorted(values)
    at = (len(values) - 1) * p / 100
    low, high = values[floor(at)], values[ceil(at)]
    return low + (high - low) * (at - floor(at))


def statistics_ms(values, name):
    return {
        f"mean_{name}_ms": 1e3 * fmean(values),
        f"std_{name}_ms": 1e3 * pstdev(values),
        f"median_{name}_ms": 1e3 * percentile(values, 50),
        f"p99_{name}_ms": 1e3 * percentile(values, 99),
    }


def result(**more):
    """A plain saved result."""
    return {
        "date": "20260425-184718",
        "backend": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B",
        "num_prompts": 4,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": None,
        "duration": 10.0,
        "completed": 3,
        "failed": 1,
        "total_input_tokens": 600,
        "total_output_tokens": 7,
        "request_throughput": 0.3,
        "request_goodput": 0.2,
        "output_throughput": 0.7,
        "total_token_throughput": 60.7,
        "mean_ttft_ms": 251.0417,
        "median_ttft_ms": 198.81,
        "p99_ttft_ms": 2501.65,
        "mean_tpot_ms": 25.35,
        **more,
    }


def detailed(monotonic=True, **more):
    """A detailed result of three answered requests and a failed one, whose summary is right."""
    base = 479_748.25 if monotonic else 1_777_142_838.25
    ttfts, itls = [0.5, 0.25, 0.0, 0.75], [[0.125, 0.125], [0.25], [], [0.0625] * 3]
    outs, ins = [3, 2, 0, 4], [100, 200, 150, 300]
    done = [i for i in range(4) if outs[i]]
    e2e = {i: ttfts[i] + sum(itls[i]) for i in done}
    summary = {
        "completed": 3,
        "failed": 1,
        "duration": 10.0,
        "total_input_tokens": 600,
        "total_output_tokens": 9,
        "request_throughput": 0.3,
        "output_throughput": 0.9,
        "total_token_throughput": 60.9,
        **statistics_ms([ttfts[i] for i in done], "ttft"),
        **statistics_ms([(e2e[i] - ttfts[i]) / (outs[i] - 1) for i in done], "tpot"),
        **statistics_ms([gap for i in done for gap in itls[i]], "itl"),
        **statistics_ms(list(e2e.values()), "e2el"),
    }
    arrays = {
        "input_lens": ins,
        "output_lens": outs,
        "ttfts": ttfts,
        "itls": itls,
        "start_times": [base, base + 1, base + 2, base + 3],
        "generated_texts": ["a", "b", "", "d"],
        "errors": ["", "", "Traceback: refused", ""],
    }
    return result(**summary, **arrays) | more
