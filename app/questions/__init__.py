"""Every question about a run: one record each, listed once. Pages, API, command line, links and docs read these."""

from app.questions.base import Question
from app.questions.checkpoints import CHECKPOINTS
from app.questions.collectives import COLLECTIVES
from app.questions.compiled import COMPILED
from app.questions.critical_path import CRITICAL_PATH
from app.questions.engine import ENGINE
from app.questions.findings import FINDINGS
from app.questions.flops import FLOPS
from app.questions.goodput import GOODPUT
from app.questions.hangs import HANGS
from app.questions.heap import HEAP
from app.questions.hlo import HLO
from app.questions.hlo_diff import HLO_DIFF
from app.questions.hlo_graph import HLO_GRAPH
from app.questions.input import INPUT
from app.questions.interruptions import INTERRUPTIONS
from app.questions.kv_cache import KV_CACHE
from app.questions.latency import LATENCY
from app.questions.launches import LAUNCHES
from app.questions.ledger import LEDGER
from app.questions.load import LOAD
from app.questions.memory import MEMORY
from app.questions.mfu import MFU
from app.questions.modules import MODULES
from app.questions.objectives import OBJECTIVES
from app.questions.operations import OPERATIONS
from app.questions.overlap import OVERLAP
from app.questions.padding import PADDING
from app.questions.power import POWER
from app.questions.prefix_cache import PREFIX_CACHE
from app.questions.roofline import ROOFLINE
from app.questions.slowdown import SLOWDOWN
from app.questions.speculation import SPECULATION
from app.questions.steps import STEPS
from app.questions.stragglers import STRAGGLERS
from app.questions.timeline import TIMELINE
from app.questions.traffic import TRAFFIC
from errors import QuestionError
from errors.nearest import did_you_mean

QUESTIONS: tuple[Question, ...] = (  # in the order of a run's links
    FINDINGS,
    LEDGER,
    TIMELINE,
    LATENCY,
    OBJECTIVES,
    LOAD,
    TRAFFIC,
    ENGINE,
    KV_CACHE,
    SPECULATION,
    PREFIX_CACHE,
    GOODPUT,
    INTERRUPTIONS,
    HANGS,
    CHECKPOINTS,
    STEPS,
    MFU,
    FLOPS,
    COMPILED,
    PADDING,
    MEMORY,
    HEAP,
    ROOFLINE,
    OPERATIONS,
    MODULES,
    OVERLAP,
    LAUNCHES,
    CRITICAL_PATH,
    HLO,
    HLO_GRAPH,
    HLO_DIFF,
    COLLECTIVES,
    STRAGGLERS,
    SLOWDOWN,
    INPUT,
    POWER,
)


def question(name: str) -> Question:
    """The question of this name, or of this older name. Raises QuestionError where there is none."""
    for candidate in QUESTIONS:
        if name == candidate.name or name in candidate.aliases:
            return candidate
    known = [q.name for q in QUESTIONS]
    near = did_you_mean(name, [*known, *(alias for q in QUESTIONS for alias in q.aliases)])
    raise QuestionError(f"no analysis {name[:80]!r}", expected=f"one of {', '.join(known)}", advice=near)
