"""Where stops happened: a line of one stop names no place of another, and one line of many no place of all."""

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.analyzers.stopped_jobs import Attempt, Job
from tests.app import made_runs


def found(place, *attempts):
    """Findings by cause of a job of these attempts and a last one that goes on."""
    tables = Job([*attempts, Attempt(60)]).columns()
    tables["lifecycle"]["source"] = ["job.log"] * len(tables["lifecycle"]["kind"])
    run = made_runs.write(place.store, "stopped", tables, {"chips": 4})
    return {f.cause: f for f in ask(FINDINGS, run, {}, place.registry).findings}


def line(cause, host, text):
    return [(3.0, cause, host, "error", text)]


@pytest.mark.parametrize(("named", "where"), [(1, "5 times, 1 of them on h7:"), (5, "5 times on h7:")])
def test_a_host_that_one_line_names_is_not_that_of_all(place, named, where):
    """The network adapter breaks five times, and so many lines say on which host."""
    hosts = ["h7"] * named + [None] * (5 - named)
    failed = found(place, *(Attempt(30, 5, 100, line("nic", host, "NIC down")) for host in hosts))
    (one,) = failed.values()
    assert one.title.startswith(f"The network failed {where}")
    assert one.where.hosts == ("h7",)


def test_ranks_are_those_of_the_stop_that_a_line_belongs_to(place):
    crashes = [Attempt(30, 30, 100, line("software", "h1", "rank 3: Segmentation fault"))] * 3
    stops = found(place, Attempt(30, 5, 100, line("device_memory", "h7", "rank 7: CUDA out of memory")), *crashes)
    assert stops["crash"].where.ranks == (3,) and "crashed 3 times (rank 3) on h1" in stops["crash"].title
    assert stops["out_of_memory"].where.ranks == (7,)


def test_a_crash_that_names_no_rank_has_none(place):
    silent = [Attempt(30, 30, 100, line("software", "h1", "Segmentation fault"))] * 2
    told = line("software", "h1", "rank 3: Segmentation fault")
    broken = Attempt(30, 5, 100, line("nic", "h7", "rank 7: NIC down"))
    stops = found(place, broken, *silent)
    assert stops["crash"].where.ranks == () and "rank" not in stops["crash"].title
    stops = found(place, broken, *silent, Attempt(30, 30, 100, told))
    assert "It crashed 3 times (rank 3 in 1 of them) on h1" in stops["crash"].title
