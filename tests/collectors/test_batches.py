"""How files are divided into tasks: enough of them that workers end together, and by the files alone."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from collectors.device import kineto
from collectors.ingesting.parts import spread
from collectors.ingesting.unpack import SafeSource

MB, SCRATCH = 10**6, Path("/scratch")


@dataclass
class Job:
    source: SafeSource
    size: int
    collector = kineto
    digest = ""


def jobs(hosts, n_bytes, folder=Path("/in")):
    return [Job(SafeSource(folder / f"{n}.json", f"{n}", n), n_bytes) for n in range(hosts)]


@pytest.mark.parametrize(
    ("hosts", "n_bytes", "tasks", "most"),
    [
        (400, MB * 4 // 5, 58, 7),  # 320 MB: a 64th of it each
        (2, MB, 1, 2),  # a task has its price: no smaller ones than 4 MiB
        (2000, MB * 4 // 5, 63, 32),
        (1000, 30 * MB, 500, 2),  # 30 GB: 32 MiB each, as they fill up
        (6400, 100, 100, 64),  # small ones: 64 each
    ],
)
def test_no_worker_waits_long_for_the_last_of_many_files(hosts, n_bytes, tasks, most):
    found = list(spread.planned(jobs(hosts, n_bytes), {}, SCRATCH))
    assert len(found) == tasks and sum(task.weight for task in found) == hosts * n_bytes
    assert max(len(task.asked["files"]) for task in found) == most


@pytest.mark.parametrize("far", [False, True])
def test_what_came_out_of_an_archive_is_no_task_with_other_files_and_read_by_who_sees_it(far):
    files = [*jobs(3, MB), *jobs(2, MB, SCRATCH / "archive"), *jobs(3, MB)]
    found = list(spread.planned(files, {}, SCRATCH, far))
    assert [len(one.jobs) if isinstance(one, spread._Here) else -len(one.asked["files"]) for one in found] == [
        -3,
        2 if far else -2,
        -3,
    ]
