"""Locks of jobs: let go of by the system with the process, not by a clock."""

import os
import signal
import subprocess
import sys
import time

import pytest

from runs.job_locks import SILENT_S, JobLocks
from tests.app.serving import PROJECT, environment

HOLDS = """
import sys, time
from pathlib import Path
from runs.job_locks import JobLocks
locks = JobLocks(Path(sys.argv[1]))
print(locks.take("j"), locks.worker, flush=True)
time.sleep(100)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that has the lock, and its name as a worker."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment(), cwd=PROJECT
    )
    assert process.stdout is not None
    took, worker = process.stdout.readline().split()
    assert took == "True"
    yield process, worker
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_worker_is_gone_once_it_was_killed_and_not_while_it_is_stopped(tmp_path, other):
    process, worker = other
    mine = JobLocks(tmp_path)
    assert not mine.gone("j", worker, 0) and not mine.take("j")
    os.kill(process.pid, signal.SIGSTOP)
    assert not mine.gone("j", worker, 0)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert mine.gone("j", worker, 0) and mine.take("j")
    mine.drop("j")
    assert os.listdir(tmp_path / "jobs") == []


def test_of_another_machine_silence_has_to_last_as_well_by_a_clock_of_ours(tmp_path, monkeypatch):
    """Its locks may not be seen here: a lock that can be had is no sign."""
    mine, now = JobLocks(tmp_path), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert not mine.gone("j", "elsewhere:1", 5)
    now += SILENT_S - 1
    assert not mine.gone("j", "elsewhere:1", 5)
    assert not mine.gone("j", "elsewhere:1", 6), "it said something"
    now += SILENT_S - 1
    assert not mine.gone("j", "elsewhere:1", 6)
    now += 2
    assert mine.gone("j", "elsewhere:1", 6)


def test_the_process_of_a_job_has_its_lock_too(tmp_path):
    mine, next_one = JobLocks(tmp_path), JobLocks(tmp_path)
    assert mine.take("j")
    file = mine.file("j")
    with subprocess.Popen(["sleep", "100"], pass_fds=(file,)) as child:
        os.close(mine._held.pop("j"))  # as where the worker alone was killed
        assert not next_one.gone("j", mine.worker, 0)
        child.kill()
        child.wait()
        assert next_one.gone("j", mine.worker, 0)
