"""Every rule of findings, in the order in which they draw on the ledger: those that know most of a place come first."""

from analyzers.findings.base import Rule
from analyzers.findings.rules import (
    checkpoints,
    communication,
    compiling,
    copies,
    hangs,
    held_down,
    host,
    input,
    loss,
    network,
    pace,
    profiled_saves,
    profiling,
    program,
    serving,
    settings,
    skipped,
    stops,
    stragglers,
)

TRAINING: tuple[Rule, ...] = (
    checkpoints.RULE,
    stops.RULE,
    hangs.RULE,
    loss.RULE,
    skipped.RULE,
    stragglers.RULE,
    input.RULE,
    *compiling.RULES,
    network.RULE,
    profiled_saves.RULE,
    copies.RULE,
    profiling.RULE,
    held_down.RULE,
    pace.RULE,
    settings.RULE,
    program.OVERSIZED,
    *host.RULES,
    *program.OTHERS,
    communication.RULE,
)
SERVING: tuple[Rule, ...] = (*serving.RULES, settings.RULE)
COMPILED: tuple[Rule, ...] = program.RULES
"""Of a program that nobody ran: what it does too much of."""
RULES: tuple[Rule, ...] = tuple(dict.fromkeys((*TRAINING, *SERVING)))
