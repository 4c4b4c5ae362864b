"""A very small real job of the benchmark, from its processes to its score."""

import gzip
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.diagnosis.case import Case, Planted
from benchmarks.diagnosis.nursery import BIRTH_S, Nursery
from benchmarks.diagnosis.score import score
from benchmarks.diagnosis.tools.chipledger import answers
from benchmarks.diagnosis.training import bundle, launch, truth
from benchmarks.xspace import XSpace
from collectors.reading.settings import told_by

WAIT_S = 0.15


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def begun_ns(profile: Path) -> int:
    """When a profile says that it was started, ns since the epoch."""
    space = XSpace.FromString(gzip.decompress(profile.read_bytes()))
    (plane,) = (p for p in space.planes if p.name == b"Task Environment")
    names = {e.key: e.value.name for e in plane.stat_metadata}
    (stat,) = (s for s in plane.stats if names[s.metadata_id] == b"profile_start_time")
    return stat.uint64_value or stat.int64_value


def test_a_job_whose_loader_is_slow_is_made_measured_answered_and_scored(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    slow = Planted("slow_loader", (), 2, 9, 1, WAIT_S)
    case = Case("case-000", 3, "training", "tiny", 1, 10, planted=(slow,), companions=())
    with Nursery() as nursery:
        ran = launch.run(case, tmp_path / "job", tmp_path / "cache", nursery)
        pids = [e["pid"] for workers in ran.events for w in workers for e in w if e["event"] == "job_start"]
    assert pids and not any(alive(pid) for pid in pids)
    (told,) = truth.told(case, ran, ran)
    assert told.cause == "slow_loader" and told.basis == "clocks"
    took = truth.steps_s(ran)
    assert 8 * WAIT_S <= told.chip_seconds <= sum(took[s] for s in slow.steps) < ran.chip_seconds
    assert sorted(took) == list(range(10)) and all(took[s] >= WAIT_S for s in slow.steps)

    given = tmp_path / "set" / "cases" / case.name
    given.parent.mkdir(parents=True)
    bundle.write(case, ran, given, 1e10)
    files = [p for p in given.rglob("*") if p.is_file()]
    assert {p.name.split("_")[0] for p in (given / "logs").iterdir()} == {"attempt", "launcher"}
    (launched,) = (p.read_text() for p in (given / "logs").iterdir() if p.name.startswith("launcher"))
    for variable in ("XLA_FLAGS=--xla_cpu_multi_thread_eigen=false", "PJRT_NPROC=1", "JAX_PLATFORMS=cpu"):
        assert f"] {variable}\n" in launched
    assert any(p.name.endswith(".xplane.pb.gz") for p in files)
    assert not any(b"slow_loader" in p.read_bytes() for p in files), "what was planted is sealed"
    said = answers(tmp_path / "set", lambda line: None)
    written = {
        "causes": [{**vars(told), "family": "input"}],
        "in_both": [],
        "not_to_accuse": [],
        "chip_seconds": ran.chip_seconds,
    }
    (outcome,) = score({case.name: written | {"dominates": True}}, json.loads(json.dumps(said))).outcomes
    assert outcome.named and outcome.amount  # not first: with no compile cache, its start is the longest

    bundle.write(replace(case, companions=(Planted("clock_skew", (0,), seconds=4.0),)), ran, tmp_path / "off", 1e10)
    (right,), (wrong,) = (list(folder.rglob("*.xplane.pb.gz")) for folder in (given, tmp_path / "off"))
    assert begun_ns(wrong) - begun_ns(right) == 4_000_000_000

    off = replace(case, companions=(Planted("missing_profile", (0,)),))
    bundle.write(off, ran, tmp_path / "without", 1e10)
    assert not list((tmp_path / "without").rglob("*.xplane.pb.gz"))


def test_what_the_launcher_writes_of_wrong_flags_is_read(tmp_path):
    case = Case("case-000", 3, "training", "tiny", 1, 10, planted=(Planted("wrong_flags"),))
    log = launch.LauncherLog(tmp_path)
    log.line(f"XLA_FLAGS={launch._flags(case)}")
    (line,) = (p.read_text().rstrip("\n") for p in tmp_path.iterdir())
    assert [(one.name, one.value) for one in told_by(line)] == [("xla_backend_optimization_level", "0")]


def test_children_are_gone_when_the_nursery_is(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    nursery = Nursery()
    child = nursery.start(
        "benchmarks.diagnosis.training.wire",
        [1, 1, [], 0.0, "told.json"],
        cwd=tmp_path,
        stem=tmp_path / "wire",
    )
    child.wait_born()
    deadline = time.monotonic() + BIRTH_S
    while not (tmp_path / "told.json").exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert child.pid and alive(child.pid) and child.poll() is None
    nursery.__exit__()
    assert child.wait(1) is not None and not alive(child.pid)
