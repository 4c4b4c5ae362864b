"""The files of a training job that a tool is given, and what is told about it apart."""

import gzip
import json
import shutil
import time
from pathlib import Path

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.training.launch import Ran
from benchmarks.diagnosis.training.sizes import MESHES, SIZES
from benchmarks.xspace import XSpace
from reference.train.facts import job_facts

STARTS = (b"profile_start_time", b"profile_stop_time")


def write(case: Case, ran: Ran, out: Path, peak_flops_per_s: float) -> None:
    """Logs, goodput entries, profiles and `chipledger.json` into the folder `out`, which is there whole or not at all.

    What is wrong about the evidence alone is done here: a clock that is off, a profile that is missing.
    """
    staged = out.parent / f".{out.name}.partial"
    shutil.rmtree(staged, ignore_errors=True)
    (staged / "logs").mkdir(parents=True)
    job = ran.folder
    shutil.copyfile(job / "goodput.jsonl", staged / "goodput.jsonl")
    for record in ran.attempts:
        attempt, day = record["attempt"], time.strftime("%Y%m%d", time.gmtime(record["launched_ns"] // 10**9))
        shutil.copyfile(
            job / "logs" / f"attempt_{attempt}.process_0.out", staged / "logs" / f"attempt_{attempt}_{day}.log"
        )
    for path in sorted((job / "logs").glob("*.log")):
        shutil.copyfile(path, staged / "logs" / path.name)
    skew = {r: p.seconds for p in case.companions if p.cause == "clock_skew" for r in p.ranks}
    missing = {r for p in case.companions if p.cause == "missing_profile" for r in p.ranks}
    for trace in sorted((job / "profiles").glob("attempt_*/window_*/process_*/plugins/profile/*/*.xplane.pb")):
        folder = trace.relative_to(job).parents[3]
        rank = int(folder.name.rsplit("_", 1)[1])
        if rank in missing:
            continue
        (staged / folder).mkdir(parents=True, exist_ok=True)
        with (staged / folder / f"{trace.name}.gz").open("wb") as f, gzip.GzipFile("", "wb", 6, f, mtime=0) as packed:
            packed.write(_moved(trace.read_bytes(), skew.get(rank, 0.0)))
    facts = job_facts(case.name, case.processes, SIZES[case.sizes], MESHES[case.processes], peak_flops_per_s)
    (staged / "chipledger.json").write_text(json.dumps(facts, indent=1) + "\n")
    shutil.rmtree(out, ignore_errors=True)
    staged.rename(out)


def _moved(profile: bytes, seconds: float) -> bytes:
    """A profile as a host would write it whose clock is off by so much."""
    if not seconds:
        return profile
    space = XSpace.FromString(profile)
    for plane in space.planes:
        names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        for stat in plane.stats:  # its lines count from the profile's start, which alone tells the time of day
            if names.get(stat.metadata_id) in STARTS:
                field = "uint64_value" if stat.uint64_value else "int64_value"
                setattr(stat, field, getattr(stat, field) + round(seconds * 1e9))
    return space.SerializeToString()
