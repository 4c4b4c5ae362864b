"""How far off steps were that were carried over from one published run to another, by what differs between the two.

A pair is two published runs of one model. The step of the second is predicted from that of the first by
`simulators.training.ported`, as it is for a run of one's own of which only the step's time is known: useful maths by
FLOPs and peak, the rest by the model, with shares of peaks fitted without the source of the run that is predicted.
Both ways count. The two runs of a pair are of one source and release (`within`), so that nothing else differs; but no
source has both GPUs and TPUs: of such a change the pairs are of two sources, each with software of its own.

`changes.json` holds the errors by kind of change, written by `python -m benchmarks.training_changes --write`.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import permutations
from typing import Any

from simulators.training.backtest import Case
from simulators.training.efficiency import Efficiency, kind
from simulators.training.ported import Terms, one_step, ported

FILE = "changes.json"
KINDS = (  # of what may differ; "maker": GPU to TPU or back, where "chip" stays with one of them
    "maker",
    "chip",
    "chips",
    "batch",
    "layout",
    "precision",
    "remat",
)
CUTS = ("tensor", "pipeline", "context", "expert")  # axes that cut a model; copies follow from the chips
SCALED, SEVERAL = "scaled", "several"
LEAST_PAIRS = 8  # of a kind, for a band of its own
HALF = {"fp16": "bf16"}  # formats of one peak
SECTIONED = " ["  # in a source: each of its sections is a release of its own
SAME = 0.01  # tokens of a chip that are alike


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a step ran on. `cut`: ways along CUTS, None where they are not told; `remat`: none, part or full, None where
    it is not told."""

    chip: str
    chips: int
    tokens: float
    seq: int
    precision: str
    cut: tuple[int, ...] | None = None
    remat: str | None = None

    @property
    def tpu(self) -> bool:
        return kind(self.chip) == "tpu"


def differences(a: Setup, b: Setup) -> tuple[str, ...]:
    """In which of KINDS two setups differ; in `batch` where the sequence or the tokens of a chip in a step do."""
    per_chip = (a.tokens / a.chips) / (b.tokens / b.chips)
    differ = {
        "maker": a.tpu != b.tpu,
        "chip": a.tpu == b.tpu and a.chip != b.chip,
        "chips": a.chips != b.chips,
        "batch": a.seq != b.seq or abs(per_chip - 1) > SAME,
        "layout": a.cut is not None and b.cut is not None and a.cut != b.cut,
        "precision": HALF.get(a.precision, a.precision) != HALF.get(b.precision, b.precision),
        "remat": a.remat is not None and b.remat is not None and a.remat != b.remat,
    }
    return tuple(kind for kind in KINDS if differ[kind])


def kind_of(differ: Sequence[str]) -> str:
    """The one kind of change that counts, or several: a layout goes with its chips, GPU to TPU is all else too, and the
    same batch on other chips, so that each has other tokens, is one change."""
    if "maker" in differ:
        return "maker"
    left = [k for k in differ if k != "layout" or not {"chip", "chips"} & set(differ)]
    if left == ["chips", "batch"]:
        return SCALED
    return left[0] if len(left) == 1 else SEVERAL


@dataclass(frozen=True, kw_only=True)
class Past:
    """Errors of pairs of a kind of change: of how many `pairs`, the median and the ninth tenth as parts of the step.

    A step lies between `low` and `high` times what was predicted, in nine of ten. `kind`: of the pairs that the band
    is of; it is the widest of all kinds where those of the change itself are too few to tell: `own` is False then.
    """

    kind: str
    pairs: int
    median: float
    ninth_tenth: float
    low: float
    high: float
    own: bool


@cache
def changes_file() -> dict[str, Any]:
    """The errors as they were written."""
    return json.loads(files("simulators.training").joinpath(FILE).read_text())


def past(differ: Sequence[str], experts: bool, told: Mapping[str, Any] | None = None) -> Past:
    """The errors of a kind of change, of models with experts or without. `told`: of another file."""
    by_kind = (told or changes_file())["kinds"]
    kind, of = kind_of(differ), "moe" if experts else "dense"
    found = by_kind.get(kind, {}).get(of)
    if found and found["pairs"] >= LEAST_PAIRS:
        return _past(kind, found, own=True)
    enough = [(k, e) for k, both in by_kind.items() for e in both.values() if e["pairs"] >= LEAST_PAIRS]
    widest, entry = max(enough, key=lambda one: one[1]["high"])
    return _past(widest, entry, own=False)


def _past(kind: str, found: Mapping[str, Any], own: bool) -> Past:
    numbers = {n: found[n] for n in ("pairs", "median", "ninth_tenth", "low", "high")}
    return Past(kind=kind, own=own, **numbers)


def setup(case: Case) -> Setup:
    """What a published run says of its own."""
    run = case.run
    return Setup(
        chip=run.chip,
        chips=run.chips,
        tokens=float(case.batch * case.work.seq),
        seq=case.work.seq,
        precision=str(run.precision),
        cut=tuple(run.parallelism.get(axis, 1) for axis in CUTS) if case.whole else None,
        remat=run.recomputation,
    )


def within(a: Case, b: Case) -> bool:
    """Whether two runs are of one source and one release of it."""
    return a.source == b.source and (a.run.source == b.run.source or SECTIONED not in a.run.source)


def pairs(cases: Sequence[Case]) -> Iterator[tuple[Case, Case, tuple[str, ...]]]:
    """Every run that another of the same model can be carried over to, and what differs between them."""
    for a, b in permutations(cases, 2):
        if a.run.model != b.run.model:
            continue
        differ = differences(setup(a), setup(b))
        if differ and (within(a, b) or "maker" in differ):
            yield a, b, differ


def terms(case: Case, efficiency: Efficiency) -> Terms:
    """The modelled step of a published run: useful maths, and all else as one."""
    useful = case.work.flops_per_token * case.batch * case.work.seq / case.run.chips / case.machine.peak_flops_per_s
    return Terms(useful_s=useful, beyond_s=max(case.predicted_s(efficiency) - useful, 0.0))


def error(a: Case, b: Case, efficiencies: tuple[Efficiency, Efficiency]) -> float:
    """Logarithm of the step of b as carried over from that of a, over the published one. Raises QuestionError where it
    would not be carried over."""
    old, new = (terms(case, e) for case, e in zip((a, b), efficiencies, strict=True))
    step = one_step(min(old.useful_s, a.step_s), a.step_s, a.run.chips)
    return math.log(ported(step, old, new, b.run.chips).after_s / b.step_s)
