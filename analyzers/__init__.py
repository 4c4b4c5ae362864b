"""Analyzers: one file per question, each a pure function from a run's tables and facts to a frozen result."""

from analyzers import (
    checkpoints,
    collectives,
    compiled,
    engine,
    flops,
    goodput,
    input,
    interruptions,
    kv,
    ledger,
    load,
    memory,
    mfu,
    ops,
    overlap,
    padding,
    prefix,
    roofline,
    serving,
    slo,
    slowdown,
    speculation,
    steps,
    stragglers,
    workload,
)

ANALYZERS = (
    ledger, goodput, interruptions, checkpoints, steps, mfu, flops, compiled, padding, memory, roofline, ops, overlap,
    collectives, stragglers, slowdown, input, kv, speculation, prefix, workload, load, engine, serving, slo,
)  # fmt: skip
