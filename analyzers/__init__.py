"""Analyzers: one file per question, each a pure function from a run's tables and facts to a frozen result."""

from analyzers.compiled import compiled
from analyzers.device import input, memory, overlap, roofline
from analyzers.device import operations as ops
from analyzers.flops import flops, mfu, padding
from analyzers.lost import checkpoints, goodput, interruptions
from analyzers.ranks import collectives, slowdown, stragglers
from analyzers.serving import engine, load, speculation
from analyzers.serving import kv_cache as kv
from analyzers.serving import latency as serving
from analyzers.serving import objectives as slo
from analyzers.serving import prefix_cache as prefix
from analyzers.serving import traffic as workload
from analyzers.time import ledger, steps

ANALYZERS = (
    ledger,
    goodput,
    interruptions,
    checkpoints,
    steps,
    mfu,
    flops,
    compiled,
    padding,
    memory,
    roofline,
    ops,
    overlap,
    collectives,
    stragglers,
    slowdown,
    input,
    kv,
    speculation,
    prefix,
    workload,
    load,
    engine,
    serving,
    slo,
)
