"""A real list of a cluster's jobs, and what was counted in it independently."""

import json
from collections import Counter
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.reading.textlog import Tally
from collectors.training import slurm_sacct
from collectors.training.slurm_records import of_table
from errors import InputError

SHARED = Path(__file__).parents[2].parent / "shared"
MORE, ORACLE = SHARED / "data" / "more", SHARED / "oracles" / "more" / "slurm_sacct.json"

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="no accounting of Slurm beside the project")


def test_a_list_of_jobs_is_counted_and_refused():
    for name, told in json.loads(ORACLE.read_text()).items():
        source, tally = Source(MORE / name, name), Tally()
        assert slurm_sacct.sniff(source) >= 0.9
        records = list(of_table(source, tally))
        jobs = [record for record in records if not record.step]
        assert len(records) == told["rows"] and len(jobs) == len({j.job for j in jobs}) == told["jobs"]
        assert len(records) - len(jobs) == told["steps_rows"] and not [*tally.lost()]
        assert Counter(j.state for j in jobs) == told["states"]
        first = told["first"]
        assert (jobs[0].job, jobs[0].name, jobs[0].state) == (first["JobID"], first["JobName"], first["State"])
        with pytest.raises(InputError, match=rf"a list of {told['jobs']} jobs \(44 COMPLETED, 31 PENDING"):
            list(slurm_sacct.read(source))
