"""What `whatif goodput` can be asked."""

from dataclasses import dataclass

from app.whatif.checkpoint.asked import OPTIONS as CHECKPOINT_OPTIONS
from errors.numbers import DURATION, FROM_ZERO, SEED, Number
from errors.options import SWITCH, Option

DAYS, TRIALS = 54.0, 1000


@dataclass(frozen=True, kw_only=True)
class Failing:
    """How a job fails and what it falls back on, by the names of FAILING. mttf_chip_h and save_s must be given; of the
    rest None: the default that the options tell."""

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


@dataclass(frozen=True, kw_only=True)
class Asked(Failing):
    """By the names of OPTIONS. chips must be given as well; of the rest None: the default that OPTIONS tell."""

    chips: int | None = None
    days: float | None = None
    trials: int | None = None
    seed: int | None = None


_OF_CHECKPOINTS = {option.name: option for option in CHECKPOINT_OPTIONS}

FAILING: tuple[Option, ...] = (
    Option(
        "mttf_chip_h",
        Number(1e-3, 1e12),
        None,
        "hours between two failures of one chip, its part of host and network included",
        "h",
        "Mean time to failure of a chip",
    ),
    _OF_CHECKPOINTS["save_s"],
    _OF_CHECKPOINTS["blocked_s"],
    Option("interval_s", DURATION, None, "work between two saves (default: the best)", "s", "Work between saves"),
    _OF_CHECKPOINTS["restart_s"],
    _OF_CHECKPOINTS["wait_s"],
    Option(
        "spares",
        Number(0, 4096, whole=True),
        None,
        "hot spares: the job waits for a repair while all stand in (default: machines without end)",
        label="Spares",
    ),
    Option("repair_h", FROM_ZERO, None, "until a failed machine is a spare again (with spares: 24)", "h", "A repair"),
    Option("elastic", SWITCH, False, "go on with fewer slices while one is away"),
    _OF_CHECKPOINTS["slices"],
    _OF_CHECKPOINTS["resume_s"],
    _OF_CHECKPOINTS["local_save_s"],
    _OF_CHECKPOINTS["local_restart_s"],
    _OF_CHECKPOINTS["local_share"],
    Option(
        "saves_per_remote",
        Number(1, 4096, whole=True),
        None,
        "with a local tier: every how many-th save goes to remote storage (default: the best)",
        label="Saves for one that is remote",
    ),
)

OPTIONS: tuple[Option, ...] = (
    _OF_CHECKPOINTS["chips"],
    *FAILING,
    Option("days", Number(1e-3, 1e5), None, f"length of the job (default: {DAYS:g})", "d", "Length of the job"),
    Option("trials", Number(10, 100_000, whole=True), None, f"lives that are drawn (default: {TRIALS})", label="Lives"),
    Option("seed", SEED, None, "of the draws (default: 0)"),
)
