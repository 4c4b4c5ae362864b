"""What a training job of a pair is: a small transformer on one or two JAX processes on CPU, and what may be changed."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from reference.train.plan import ModelDims

# Weights and activations of each but THOUSAND fit a core's own cache: what neighbours on the machine do is felt less.
ONE = ModelDims(layers=2, emb_dim=96, heads=2, head_dim=48, mlp_dim=384, seq_len=64, batch_size=16)
THOUSAND = ModelDims(layers=1, emb_dim=1000, heads=1, head_dim=64, mlp_dim=256, seq_len=32, batch_size=16)
TWO = ModelDims(layers=2, emb_dim=128, heads=4, head_dim=32, mlp_dim=512, seq_len=64, batch_size=16)
WAVES = ModelDims(layers=1, emb_dim=64, heads=2, head_dim=32, mlp_dim=1024, seq_len=64, batch_size=4)


PROFILED = (2, 61)  # after which step, and after which it ends: the profiler keeps a second thread busy meanwhile


@dataclass(frozen=True)
class Job:
    """One job. `mesh`: data x model; `chain`: element-wise operations in a row after each activation.

    What its own files tell: `settings`; what they do not: `barrier` (no fusion across element-wise operations),
    `slow_host_s` (the last process works so long before each step), `wire_s` (each piece between processes comes so
    much later)."""

    dims: ModelDims = ONE
    mesh: tuple[int, int] = (1, 1)
    steps: int = 400
    seed: int = 1
    precision: str = "float32"
    remat: str = "none"
    workers: int = 4
    read_s: float = 0.0
    log_period: int = 25
    chain: int = 0
    barrier: bool = False
    slow_host_s: float = 0.0
    wire_s: float = 0.0

    @property
    def processes(self) -> int:
        return self.mesh[0] * self.mesh[1]

    @property
    def program(self) -> str:
        """What its compiled program depends on: the key of its compile cache."""
        parts = (dataclasses.astuple(self.dims), self.mesh, self.precision, self.remat, self.chain, self.barrier)
        return "".join(c if c.isalnum() else "-" for c in str(parts)).strip("-")

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def of(cls, text: str) -> "Job":
        raw = json.loads(text)
        return cls(**raw | {"dims": ModelDims(**raw["dims"]), "mesh": tuple(raw["mesh"])})

    @property
    def settings(self) -> dict[str, Any]:
        """What its log says of it, in MaxText's names."""
        return {
            "dtype": self.precision,
            "remat_policy": self.remat,
            "grain_worker_count": self.workers,
            "log_period": self.log_period,
        }


@dataclass(frozen=True)
class Change:
    """One known change. `kind`: what is changed; `a` to `b`; `accounts`: those of a step that it may move; `says`: what
    the sentence has to name, in lower case: any of these texts, or an account of `accounts` where it is empty."""

    kind: str
    a: Job
    b: Job
    accounts: tuple[str, ...]
    says: tuple[str, ...] = ()


IDLE = ("device_idle", "idle_host_code", "idle_launching", "idle_unexplained", "idle_device_to_host")
MATHS = ("useful_maths", "below_roofline", "recomputation", "padding")
COMMUNICATION = ("exposed_communication", "straggler_wait")


def _changed(kind: str, a: Job, accounts: tuple[str, ...], says: tuple[str, ...] = (), **b: Any) -> Change:
    return Change(kind, a, dataclasses.replace(a, **b), accounts, says)


def changes(seed: int) -> tuple[Change, ...]:
    """Every kind of change once; `seed` is that of weights and data."""
    one, two = Job(seed=seed), Job(TWO, mesh=(2, 1), seed=seed)
    thousand = Job(THOUSAND, seed=seed, steps=400)
    reading = dataclasses.replace(one, workers=4, read_s=0.12)
    rows = dataclasses.replace(ONE, batch_size=24)
    wider = dataclasses.replace(THOUSAND, emb_dim=1024)
    return (
        _changed("batch", one, MATHS, ("batch",), dims=rows),
        _changed("dtype", one, MATHS, ("precision",), precision="float64"),
        _changed("hidden", thousand, MATHS, ("emb dim", "emb_dim", "hidden"), dims=wider),
        _changed("remat", one, MATHS, ("remat",), remat="full"),
        _changed("fusion_barrier", Job(WAVES, seed=seed, chain=40), MATHS, ("the program is another",), barrier=True),
        _changed("input_workers", reading, ("input_wait",), ("input workers",), workers=1),
        _changed("logging", one, ("idle_logging", "idle_device_to_host"), ("log period",), log_period=1),
        _changed("mesh", two, (*COMMUNICATION, *MATHS, *IDLE), ("the mesh",), mesh=(1, 2)),
        _changed("slow_host", two, (*IDLE, "straggler_wait"), (), slow_host_s=0.02),
        _changed("slow_collective", two, COMMUNICATION, ("the same bytes",), wire_s=0.001),
        _changed("nothing", one, ()),
        _changed("nothing_two", two, ()),
    )
