"""What a job says is kept whatever it is, and what a worker took without hearing that it did is not lost."""

import asyncio
import json
import socket

import pytest

from app.serve import job as job_module
from app.serve import job_process, jobs
from app.serve.job import MOST_NAME, MOST_TEXT, Job
from app.serve.jobs import UNKEPT, Jobs
from app.serve.uploads import Uploads
from app.workspace import Workspace
from errors import InputError, QuestionError
from runs.job_book import FAILED, WAITING
from runs.objects.store import ObjectStore
from runs.registry import Registry
from runs.store import Store

SAYS = """
import json, sys
print(json.dumps({"progress": 0.5, "doing": "a\\0b"}), file=sys.stderr)
print(json.dumps({"file": {"name": "n\\0" + "x" * 5000}}), file=sys.stderr)
print("error: no\\0thing", file=sys.stderr)
sys.exit(2)
"""


@pytest.fixture
def place(registry_at, tmp_path, monkeypatch):
    """Whose jobs say what no registry can keep."""
    program = tmp_path / "says.py"
    program.write_text(SAYS)
    monkeypatch.setattr(job_process, "PROGRAM", (str(program),))
    monkeypatch.setattr(jobs, "RESCUE_SECONDS", 0.1)
    return Workspace(Store(tmp_path / "store"), Registry(registry_at))


async def ended(kept: Jobs, *job_ids: str) -> list[Job]:
    try:
        async with asyncio.timeout(30):
            while not all(kept.get(i).ended for i in job_ids):
                await asyncio.sleep(0.05)
    finally:
        await kept.close()
    return [Job.of(kept._book.get(i)) for i in job_ids]


async def begun(place: Workspace, count: int = 1) -> list[Job]:
    kept = Jobs(place, grace_s=0)
    kept.open()
    return await ended(kept, *(kept.start(["ingest", "x"]).job_id for _ in range(count)))


def test_what_a_job_says_is_plain_and_bounded(place):
    for job in asyncio.run(begun(place, 3)):
        assert (job.state, job.error) == (FAILED, "no?thing")


def test_a_job_whose_words_cannot_be_kept_fails_and_holds_up_nobody(place, monkeypatch, registry_at):
    for module in (job_module, job_process):
        monkeypatch.setattr(module, "plain", lambda text, most=0: str(text))
    one, other = asyncio.run(begun(place, 2))
    assert one.state == other.state == FAILED
    if not hasattr(registry_at, "parent"):
        assert one.error == UNKEPT.format("ingest")


def test_a_job_that_was_taken_without_an_answer_is_begun(place, monkeypatch):
    claim, lost = jobs.JobBook.claim, []

    def cut(self, *asked):
        entry = claim(self, *asked)
        if entry is not None and not lost:
            lost.append(entry)
            raise InputError("the connection was lost")
        return entry

    monkeypatch.setattr(jobs.JobBook, "claim", cut)
    [job] = asyncio.run(begun(place))
    assert lost and (job.state, job.attempts) == (FAILED, 2) and job.error == "no?thing"


def test_a_job_is_taken_where_no_progress_can_be_kept(place, monkeypatch):
    def refused(self, *of):
        raise InputError("not now")

    monkeypatch.setattr(jobs.JobBook, "beat", refused)
    first, second, third = asyncio.run(begun(place, 3))
    assert first.state == second.state == third.state == FAILED


def test_an_upload_is_read_by_the_machine_that_has_it(registry_at, tmp_path, monkeypatch):
    """Of a store in a bucket, whose machines have uploads of their own; told meanwhile by all."""
    machines = [ObjectStore(f"file://{tmp_path}/bucket", tmp_path / name) for name in ("one", "other")]
    one, other = (Workspace(store, Registry(registry_at)) for store in machines)
    upload = Uploads(one.store.uploads_folder, one).begin()
    with pytest.raises(QuestionError, match="one begun with another goes on there, or anew here"):
        Uploads(other.store.uploads_folder, other).files(upload)

    async def asked():
        here, there = Jobs(one, works=False, grace_s=0), Jobs(other, grace_s=0)
        there.open()
        job_id = here.start(["ingest", "x", f"--store={one.store.root}"], {"upload_id": upload}).job_id
        quick = there.start(["ingest", "x"]).job_id
        async with asyncio.timeout(30):
            while not there.get(quick).ended:
                await asyncio.sleep(0.05)
        waiting = there.get(job_id)
        assert waiting.state == WAITING
        assert waiting.to_dict()["doing"].startswith(f"Waiting for a server or worker on {socket.gethostname()}")
        await there.close()
        again = Jobs(one, grace_s=0)
        again.open()
        return await ended(again, job_id)

    program = one.store.root / "says.py"  # where a sealed process may read
    program.write_text(SAYS)
    monkeypatch.setattr(job_process, "PROGRAM", (str(program),))
    [job] = asyncio.run(asked())
    assert (job.state, job.error) == (FAILED, "no?thing") and job.to_dict()["doing"] == "a?b"


def test_a_job_that_another_took_meanwhile_is_not_taken_twice(postgres):
    """By a version that has another lock: between the look at what is free and the taking."""
    book = jobs.JobBook(postgres.registry())
    book.ask(jobs.Wanted(job_id="j", what="ingest", arguments=[]), 10)

    def take(job_id):
        with book.at.transaction(1) as db:
            db.execute("update jobs set state = 'running', worker = 'another'")
        return True

    assert book.claim("w", ["ingest"], take) is None and book.get("j").worker == "another"


@pytest.mark.parametrize("told", [None, "x", True, float("nan"), float("inf"), -1, 2, [1]])
def test_progress_that_is_none_is_unknown(told):
    job = Job("j", state=WAITING)
    job.tell({"progress": told, "doing": ["\ud800" * 5000]})
    assert job.progress is None and len(job.doing) == MOST_TEXT and job.doing.encode()


def test_files_are_known_apart_by_what_an_index_can_hold():
    job = Job("j")
    names = ["a", "é" * 5000, "é" * 5000 + "x", "\0", "?", "\ud800", "🚀" * 900]
    for name in names:
        job.tell({"file": {"name": name}})
    assert len(job.files) == len(names) and all(len(n.encode()) <= MOST_NAME + 17 for n in job.files)
    assert json.dumps(job.with_files())
