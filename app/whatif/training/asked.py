"""What `whatif training` can be asked."""

from dataclasses import dataclass

from app.whatif.cost.asked import OPTIONS as COST_OPTIONS
from app.whatif.goodput.asked import FAILING
from errors.numbers import Number
from errors.options import Option

PRECISIONS = ("bf16", "fp8", "fp4", "fp16")
BATCH_TOKENS = 4_194_304  # where none is named: 512 sequences of 8,192
REMATS = ("none", "part", "full")  # as `simulators.training.layout` has them, which the command line need not wait for
REMAT = REMATS[1]
MAKES = (
    "maxtext",
    "megatron",
    "torchtitan",
    "gke",
    "xpk",
    "pathways",
    "queued",
    "slurm",
    "compile",
    "checkpoint",
)
ANY = "any"  # as a layout: not that of the run
AXES = {"dp": "data", "fsdp": "fsdp", "tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert"} | {
    "vp": "interleave",
    "micro": "micro",
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS. model and on must be given, and chips, days or usd; of the rest None: the default that
    OPTIONS tell, or no such limit."""

    model: str | None = None
    on: str | None = None
    chips: str | None = None
    tokens: float | None = None
    days: float | None = None
    usd: float | None = None
    seq: int | None = None
    global_batch_tokens: float | None = None
    layout: str | None = None
    remat: str | None = None
    precision: str | None = None
    goodput: float | None = None
    price: str | None = None
    make: str | None = None
    mttf_chip_h: float | None = None
    save_s: float | None = None
    blocked_s: float | None = None
    interval_s: float | None = None
    restart_s: float | None = None
    wait_s: float | None = None
    spares: int | None = None
    repair_h: float | None = None
    elastic: bool = False
    slices: int | None = None
    resume_s: float | None = None
    local_save_s: float | None = None
    local_restart_s: float | None = None
    local_share: float | None = None
    saves_per_remote: int | None = None
    calibrate: str | None = None


_COST = {option.name: option for option in COST_OPTIONS}

OPTIONS: tuple[Option, ...] = (
    _COST["model"],
    _COST["on"],
    Option(
        "chips",
        str,
        None,
        "how many chips, by comma: 2048,4096 (default: powers of two that can keep the limits)",
        label="Numbers of chips",
        form="N",
    ),
    _COST["tokens"],
    _COST["days"],
    _COST["usd"],
    _COST["seq"],
    Option(
        "global_batch_tokens",
        Number(1, 1e12),
        None,
        f"tokens of a step, all chips together (default: {BATCH_TOKENS})",
        "tokens",
        "Tokens in a step",
    ),
    Option(
        "layout",
        str,
        None,
        "fixed axes, by comma, such as tp=8,pp=4: dp, fsdp, tp, pp, cp, ep, vp, micro (default: none)",
        label="Fixed axes",
        form="AXES",
    ),
    Option(
        "remat",
        REMATS,
        None,
        f"layers computed again backward: none, all (full), or as many as the memory asks for (default: {REMAT})",
        label="Computed again",
    ),
    Option("precision", PRECISIONS, None, f"of the matrix products, which sets the peak (default: {PRECISIONS[0]})"),
    _COST["goodput"],
    _COST["price"],
    Option(
        "make",
        MAKES,
        None,
        "print what makes the best choice real, ready to copy: a framework's configuration, what creates the chips, or "
        "the commands that compile it and plan its checkpoints",
        label="Make it real",
    ),
    Option(
        "calibrate",
        str,
        None,
        "a run of the store, measured or compiled: its step is carried over, account by account, and its setup counts "
        f"where no other is given; with --layout {ANY} another layout too",
        label="Run to start from",
        of_run=True,
        form="RUN",
    ),
    *FAILING,
)
