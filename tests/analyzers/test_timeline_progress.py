"""A timeline tells how far it is while it is made; one that is ended or killed leaves nothing behind."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from analyzers.timeline import timeline
from analyzers.timeline.progress import PLACING, READING, STAGES, SUMMING, heard_by
from runs.store import Store
from runs.tables import ParquetTables
from tests.app import made_runs

T0 = 1_760_000_000_000_000_000
EVENTS, LANES = 24_000, 3


@pytest.fixture
def run(tmp_path):
    ops = {"capture": [0] * LANES, "op_id": list(range(LANES)), "host": ["a"] * LANES, "device": list(range(LANES))}
    ops |= {"line": ["x"] * LANES, "role": ["compute"] * LANES, "op": ["dot"] * LANES, "category": ["matmul"] * LANES}
    lane = [n % LANES for n in range(EVENTS)]
    events = {"capture": [0] * EVENTS, "event": list(range(EVENTS)), "device": lane, "op_id": lane}
    events |= {"start_ps": [1_000 * n for n in range(EVENTS)], "dur_ps": [900] * EVENTS}
    captures = {"capture": [0], "host": ["a"], "start_ns": [T0]}
    tables = {"captures": captures, "ops": ops, "op_events": events}
    return made_runs.write(Store(tmp_path), "made", tables, {})


def told(run) -> list[tuple[str, int, int]]:
    heard: list[tuple[str, int, int]] = []
    with heard_by(lambda *what: heard.append(what)):
        assert isinstance(run.tables, ParquetTables)
        assert timeline(run.tables, run.manifest.facts, few=0).events >= EVENTS
    return heard


def left(run) -> list[str]:
    """Files of a timeline, or of the making of one."""
    root = run.folder.parent.parent
    return sorted(str(p.relative_to(root)) for name in ("derived", "partial") for p in (root / name).rglob("*"))


def test_it_goes_through_its_stages_and_never_back(run):
    heard = told(run)
    assert [stage for n, (stage, *_) in enumerate(heard) if not n or heard[n - 1][0] != stage] == list(STAGES)
    for stage in STAGES:
        done = [(done, whole) for one, done, whole in heard if one == stage]
        assert all(0 <= a <= whole for a, whole in done if stage != READING)
        assert [a for a, _ in done] == sorted(a for a, _ in done)
    assert max(done for stage, done, _ in heard if stage == READING) >= EVENTS
    assert {whole for stage, _, whole in heard if stage == READING} == {EVENTS}
    assert len([1 for stage, *_ in heard if stage in (PLACING, SUMMING)]) >= 3
    assert told(run) == []  # it is there


def test_ended_at_any_moment_it_leaves_nothing_and_is_made_the_next_time(run):
    class Ended(Exception):
        pass

    moments, at = 1, 0
    while at < moments:
        heard: list[str] = []

        def listen(stage: str, *_: int, heard: list[str] = heard, at: int = at) -> None:
            heard.append(stage)
            if len(heard) > at:
                raise Ended

        with heard_by(listen), pytest.raises(Ended):
            timeline(run.tables, run.manifest.facts, few=0)
        assert left(run) == []
        at, moments = at + 1, 4
    assert len(told(run)) > at and any(path.endswith("index.json") for path in left(run))


def killed(folder: str, run_id: str, stage: str) -> None:
    def listen(now: str, done: int, whole: int) -> None:
        if now == stage and done:
            os.kill(os.getpid(), signal.SIGKILL)

    run = Store(Path(folder)).find(run_id)
    with heard_by(listen):
        timeline(run.tables, run.manifest.facts, few=0)


def test_a_process_that_is_killed_leaves_nothing_that_the_next_one_keeps(run):
    root = run.folder.parent.parent
    child = multiprocessing.get_context("spawn").Process(target=killed, args=(str(root), run.run_id, SUMMING))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert not (root / "derived" / run.run_id).exists()
    Store(root).runs()
    with Store(root).writer():
        pass
    told(run)
    assert [path for path in left(run) if path.startswith("partial")] == []
