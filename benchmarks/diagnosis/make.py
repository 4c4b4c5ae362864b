"""Makes the cases: each run beside its twin, what a tool is given in one folder and the truth in another.

FOLDER/cases/<case>/      what a tool is given
FOLDER/truth/<case>.json  what was done to it, sealed from the tool
FOLDER/set.json           seed, kinds and machine, and FOLDER/.warm the compile cache of programs without faults
"""

import dataclasses
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.diagnosis import fleet
from benchmarks.diagnosis.case import Case, Told
from benchmarks.diagnosis.draw import OTHER_PROGRAM, cases
from benchmarks.diagnosis.faults import BY_CAUSE
from benchmarks.diagnosis.nursery import Nursery
from benchmarks.diagnosis.training import bundle, launch, truth
from errors import InputError

LEAST_SHARE = 0.10
"""Of the run's chip time that the faults of a case must cost, and be above what twins differ by."""
TRUE_AS_WELL = {
    "kill": ("restart_loop",),
    "fleet_bad_host": ("fleet_slow_restart",),
    "slow_checkpoint": ("frequent_checkpoints",),
    "frequent_checkpoints": ("slow_checkpoint",),
}
"""What may be said of such a run and be no false alarm: it was restarted, slow saves should
be rarer, each break waits for machines."""
TAKES = 2
"""How often a case is made anew where the machine's own noise drowned its fault."""
PEAK_S = 0.6


@dataclasses.dataclass(frozen=True)
class Made:
    """A case that was made: its truth, without what stands in every truth."""

    told: list[Told]
    chip_seconds: float
    twin_chip_seconds: float
    noise_chip_seconds: float
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)


class Bench:
    """Makes cases into one folder, in a nursery that it holds. A context."""

    def __init__(self, out: Path):
        self.out = out
        for folder in ("cases", "truth", ".warm"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        self._nursery: Nursery | None = None

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        if self._nursery:
            self._nursery.__exit__()

    @property
    def nursery(self) -> Nursery:
        if self._nursery is None:
            self._nursery = Nursery()
        return self._nursery

    def done(self, case: Case) -> bool:
        path = self.out / "truth" / f"{case.name}.json"
        if not path.exists():
            return False
        if json.loads(path.read_text())["case"] != json.loads(case.to_json()):
            raise InputError("another case is there", where=str(path), expected="a folder of the same seed and kinds")
        return True

    def make(self, case: Case) -> dict[str, Any]:
        """One case with its twin; its truth, which is written last: where it lies, the case is whole."""
        maker = _MAKERS[case.kind]
        for take in range(TAKES):
            with tempfile.TemporaryDirectory(prefix="diagnosis-") as scratch:
                made = maker(self, case, Path(scratch))
            said = _truth(case, made, self.out / "cases" / case.name, take)
            if said["dominates"]:
                break
        (self.out / "truth" / f"{case.name}.json").write_text(json.dumps(said, indent=1) + "\n")
        return said

    def peak(self, processes: int) -> float:
        """FLOP/s of one process while so many compute, measured once for the folder."""
        kept = self.out / ".warm" / f"peak-{processes}.json"
        if not kept.exists():
            with tempfile.TemporaryDirectory(prefix="diagnosis-") as scratch:
                folder = Path(scratch)
                children = [
                    self.nursery.start(
                        "benchmarks.diagnosis.training.peak",
                        [PEAK_S, f"peak-{p}"],
                        cwd=folder,
                        stem=folder / str(p),
                        XLA_FLAGS="--xla_cpu_multi_thread_eigen=false",
                        PJRT_NPROC="1",
                    )
                    for p in range(processes)
                ]
                for child in children:
                    child.wait()
                rates = [float((folder / f"peak-{p}").read_text()) for p in range(processes)]
            kept.write_text(json.dumps(sum(rates) / len(rates)))
        return float(json.loads(kept.read_text()))

    def cache(self, case: Case) -> Path:
        """Compiled programs of a job of these sizes, and of its fault where that is a program; compiled once."""
        faults = tuple(dataclasses.replace(p, first=1, last=2) for p in case.planted if p.cause in OTHER_PROGRAM)
        variant = "".join(f"-{p.cause}-{p.amount}" for p in faults if p.cause != "tiny_operations")
        kept = self.out / ".warm" / f"programs-{case.sizes}-{case.processes}{variant}"
        if not kept.exists():
            with tempfile.TemporaryDirectory(prefix="diagnosis-") as scratch:
                short = dataclasses.replace(
                    case, planted=faults, companions=(), context=(), steps=4, checkpoint_every=0
                )
                before = self.cache(case.twin) if variant else kept
                launch.run(short, Path(scratch) / "job", before, self.nursery)
                staged = kept.with_name(f"{kept.name}.partial")
                shutil.rmtree(staged, ignore_errors=True)
                shutil.copytree(Path(scratch) / "job" / "compile_cache", staged)
            staged.rename(kept)
        return kept


def _training(bench: Bench, case: Case, scratch: Path) -> Made:
    peak = bench.peak(case.processes)
    twin = launch.run(case.twin, scratch / "twin", bench.cache(case.twin), bench.nursery)
    ran = launch.run(case, scratch / "run", bench.cache(case), bench.nursery) if case.planted else twin
    bundle.write(case, ran, bench.out / "cases" / case.name, peak)
    return Made(
        truth.told(case, ran, twin),
        ran.chip_seconds,
        twin.chip_seconds,
        truth.noise_s(twin) * case.processes,
        {"attempts": len(ran.attempts), "step_s": truth.steps_s(ran), "twin_step_s": truth.steps_s(twin)},
    )


def _fleet(bench: Bench, case: Case, scratch: Path) -> Made:
    told, held, needs = fleet.make(case, bench.out / "cases" / case.name)
    return Made(told, held, needs, 0.0)


def _serving(bench: Bench, case: Case, scratch: Path) -> Made:
    from benchmarks.diagnosis.serving import launch as serving  # its client's traffic comes with JAX

    kept = bench.out / ".warm" / "serving"
    kept.mkdir(exist_ok=True)
    told, held, needs, extra = serving.make(case, bench.out / "cases" / case.name, scratch, kept, bench.nursery)
    return Made(told, held, needs, 0.0, extra)


Maker = Callable[[Bench, Case, Path], Made]
_MAKERS: dict[str, Maker] = {"training": _training, "fleet": _fleet, "serving": _serving}


def _truth(case: Case, made: Made, folder: Path, take: int) -> dict[str, Any]:
    lost = sum(t.chip_seconds or 0.0 for t in made.told)
    return {
        "name": case.name,
        "kind": case.kind,
        "causes": [
            {
                "cause": t.cause,
                "family": BY_CAUSE[t.cause].family,
                "question": BY_CAUSE[t.cause].question,
                "place": t.place,
                "chip_seconds": t.chip_seconds,
                "basis": t.basis,
            }
            for t in made.told
        ],
        "not_to_accuse": [{"cause": p.cause, "ranks": list(p.ranks), "seconds": p.seconds} for p in case.companions],
        "in_both": [
            also
            for cause in (*(p.cause for p in case.context), *(t.cause for t in made.told))
            for also in TRUE_AS_WELL.get(cause, ())
        ],
        "chip_seconds": made.chip_seconds,
        "twin_chip_seconds": made.twin_chip_seconds,
        "gain_chip_seconds": made.chip_seconds - made.twin_chip_seconds,
        "noise_chip_seconds": made.noise_chip_seconds,
        "dominates": not case.planted or lost >= max(LEAST_SHARE * made.chip_seconds, made.noise_chip_seconds),
        "take": take,
        "files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()),
        "machine": {"cores": os.cpu_count()},
        "case": json.loads(case.to_json()),
        **made.extra,
    }


def make(
    out: Path,
    seed: int,
    count: int,
    kinds: Sequence[str] = (),
    only: Sequence[str] = (),
    tell: Callable[[str], None] = print,
) -> int:
    """Makes `count` cases of `seed`, or of these those in `only`; what is there already is kept. How many were made."""
    drawn = cases(seed, count, kinds)
    if unknown := set(only) - {c.name for c in drawn}:
        raise InputError("no such case", where=", ".join(sorted(unknown)), expected=f"{drawn[0].name} and on")
    out.mkdir(parents=True, exist_ok=True)
    (out / "set.json").write_text(json.dumps({"seed": seed, "cases": count, "kinds": list(kinds)}) + "\n")
    begun, made = time.monotonic(), 0
    with Bench(out.resolve()) as bench:
        todo = [c for c in drawn if (not only or c.name in only) and not bench.done(c)]
        for case in todo:
            since = time.monotonic()
            try:
                said = bench.make(case)
            except RuntimeError as e:
                tell(f"{case.name}: could not be made, and is left out: {str(e)[:800]}")
                continue
            made += 1
            what = ", ".join(f"{c['cause']} {c['chip_seconds'] or 0:.1f}" for c in said["causes"]) or "nothing planted"
            tell(
                f"{case.name}: {what} of {said['chip_seconds']:.1f} chip-seconds (twin "
                f"{said['twin_chip_seconds']:.1f}{'' if said['dominates'] else '; DROWNED'}), made in "
                f"{time.monotonic() - since:.0f} s; {made} of {len(todo)}, {time.monotonic() - begun:.0f} s in all"
            )
    return made
