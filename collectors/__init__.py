"""Collectors: one module a format, all listed here. See `collectors.base` for what each of them has."""

from collectors import (
    compiled,
    goodput_log,
    job_log,
    maxtext,
    maxtext_metrics,
    megatron,
    mllog,
    nvrx,
    pipeline_trace,
    resiliency,
    sidecar,
    tables,
    xplane,
)

COLLECTORS = (
    xplane, tables, goodput_log, maxtext, maxtext_metrics, megatron, mllog, nvrx, resiliency, compiled, pipeline_trace,
    sidecar, job_log,  # last: any log that nothing else knows
)  # fmt: skip
