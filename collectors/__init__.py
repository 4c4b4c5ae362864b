"""Collectors: one module a format, all listed here. See `collectors.base` for what each of them has."""

from collectors import (
    aiperf,
    compiled,
    goodput_log,
    guidellm,
    inference_perf,
    inferencex,
    jetstream,
    job_log,
    llm_d,
    llmperf,
    maxtext,
    maxtext_inference,
    maxtext_metrics,
    megatron,
    mllog,
    mlperf_inference,
    nvrx,
    pipeline_trace,
    prometheus,
    request_trace,
    resiliency,
    sglang_bench,
    sglang_log,
    sidecar,
    tables,
    tpu_info,
    vllm_bench,
    vllm_log,
    vllm_requests,
    xplane,
)

COLLECTORS = (
    xplane, tables, goodput_log, maxtext, maxtext_metrics, megatron, mllog, nvrx, resiliency, compiled, pipeline_trace,
    aiperf, guidellm, inference_perf, inferencex, jetstream, llm_d, llmperf, maxtext_inference, mlperf_inference,
    vllm_bench, vllm_log, vllm_requests, sglang_bench, sglang_log,
    prometheus, tpu_info, request_trace,
    sidecar, job_log,  # last: any log that nothing else knows
)  # fmt: skip
