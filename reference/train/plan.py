"""What a reference run does and what is done to it: sizes, schedule and injected losses."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ModelDims:
    """A decoder transformer on bytes; `batch_size` is sequences per step over the whole job."""

    layers: int = 2
    emb_dim: int = 256
    heads: int = 4
    head_dim: int = 64
    mlp_dim: int = 1024
    vocab_size: int = 256
    seq_len: int = 128
    batch_size: int = 12


@dataclass(frozen=True)
class Kill:
    """SIGKILL to `process` in `attempt`, `delay_s` after it entered `step`."""

    attempt: int
    step: int
    process: int
    delay_s: float = 0.05


@dataclass(frozen=True)
class Straggler:
    """Extra host work by one process, `busy_s` seconds in each of steps `first` to `last`, before the dispatch."""

    attempt: int
    process: int
    first: int
    last: int
    busy_s: float


@dataclass(frozen=True)
class Stall:
    """The input pipeline of every process waits `stall_s` seconds in each of steps `first` to `last`."""

    attempt: int
    first: int
    last: int
    stall_s: float


@dataclass(frozen=True)
class Plan:
    """One reference run. Steps are numbered from 0; a checkpoint is saved after each step divisible by
    `checkpoint_every` (but 0), and after the last; a restart resumes after the last saved step."""

    name: str
    steps: int
    checkpoint_every: int
    dims: ModelDims = field(default_factory=ModelDims)
    processes: int = 4
    mesh: tuple[int, int] = (2, 2)  # data, model
    learning_rate: float = 1e-3
    seed: int = 0
    kills: tuple[Kill, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    stalls: tuple[Stall, ...] = ()
    cold_attempts: tuple[int, ...] = ()  # the compile cache is deleted before these
    health_check_s: float = 1.0  # how often the launcher looks whether all processes live
    reschedule_s: float = 4.0  # what a scheduler would take to find new machines
    benchmark_round_s: float = 0.5  # how long each round of the peak benchmark lasts
    attempt_timeout_s: float = 300.0

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> "Plan":
        raw = json.loads(path.read_text())
        parts = {"kills": Kill, "stragglers": Straggler, "stalls": Stall}
        for name, kind in parts.items():
            raw[name] = tuple(kind(**item) for item in raw[name])
        raw["dims"] = ModelDims(**raw["dims"])
        raw["mesh"], raw["cold_attempts"] = tuple(raw["mesh"]), tuple(raw["cold_attempts"])
        return cls(**raw)


BUNDLED = Plan(
    name="reference-training",
    steps=121,
    checkpoint_every=20,
    kills=(Kill(attempt=0, step=33, process=2), Kill(attempt=1, step=91, process=3)),
    stragglers=(Straggler(attempt=1, process=1, first=44, last=55, busy_s=0.5),),
    stalls=(Stall(attempt=1, first=64, last=73, stall_s=0.25),),
    cold_attempts=(2,),
)

SMOKE = Plan(  # sizes as bundled: a step must outlast the launcher's reaction, or the kill falls between two
    name="reference-smoke",
    steps=7,
    checkpoint_every=2,
    kills=(Kill(attempt=0, step=4, process=2, delay_s=0.0),),
    stragglers=(Straggler(attempt=1, process=1, first=5, last=5, busy_s=0.2),),
    stalls=(Stall(attempt=1, first=6, last=6, stall_s=0.2),),
    reschedule_s=0.5,
    health_check_s=0.2,
    benchmark_round_s=0.05,
)

PLANS: dict[str, Plan] = {"bundled": BUNDLED, "smoke": SMOKE}
