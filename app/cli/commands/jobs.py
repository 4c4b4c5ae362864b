"""`chipledger jobs`: what was asked of the servers and workers of a store, and what became of it."""

import argparse
import time
from typing import TYPE_CHECKING

from app.cli.commands.base import JSON, print_json, print_table, printable
from app.options import add_arguments, add_flags
from app.workspace import Workspace, workspace
from errors import InputError, QuestionError
from errors import format as fmt
from errors.options import Option

if TYPE_CHECKING:
    from app.serve.job import Job
    from runs.job_book import Entry, JobBook

NAME = "jobs"
HELP = "what the servers and workers of a store do and did: list, cancel or retry"
API = "/api/jobs"
ACTIONS = ("list", "cancel", "retry")
ACTION = Option("action", ACTIONS, "list", "what to do", local=True)
JOB = Option("job", str, None, "id, or beginning of an id, of a job", local=True, form="JOB")
ARGUMENTS = (ACTION, JOB)
OPTIONS = (JSON,)
MAY_LACK = ARGUMENTS
PATIENCE_S = 15.0  # for a worker to end a job
SHOWN = 12  # characters of an id


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.serve.job import Job
    from runs.job_book import JobBook

    action = ACTION.parse(args.action, "action ")
    if (args.job is None) != (action == "list"):
        raise QuestionError(
            "`jobs list` takes no job" if action == "list" else "nothing says which job",
            expected="jobs list" if action == "list" else f"chipledger jobs {action} JOB",
        )
    place = workspace(args.store)
    book = JobBook(place.registry.at)
    if action == "list":
        _show([Job.of(entry) for entry in book.newest(LISTED)], as_json=bool(args.json))
        return
    entry = _named(book, args.job)
    told = Job.of(_cancelled(book, entry.job_id) if action == "cancel" else _retried(place, book, entry))
    if args.json:
        print_json(told.to_dict())
    else:
        print(_sentence(told))


LISTED, MOST_WAITING = 500, 1000


def _named(book: "JobBook", named: str) -> "Entry":
    """Raises QuestionError where no job, or more than one, is called so."""
    found = [entry for entry in book.newest(LISTED + MOST_WAITING) if named and entry.job_id.startswith(named)]
    if len(found) != 1:
        said = f"{fmt.count(len(found), 'job')} begin with" if found else "no job begins with"
        raise QuestionError(f"{said} {named[:40]!r}", advice="`chipledger jobs` lists them.")
    return found[0]


def _retried(place: Workspace, book: "JobBook", entry: "Entry") -> "Entry":
    """The job as it waits again, of the files that its upload holds now: more may have come. Raises QuestionError where
    the upload was discarded, InputError where a file of it did not arrive whole."""
    from app.serve.job_inputs import as_now, is_here
    from app.serve.resuming import Resuming
    from app.serve.uploads import Uploads

    upload_id, paths = str(entry.about.get("upload_id") or ""), None
    if upload_id and is_here(place, upload_id):  # on another machine they are as they were
        uploads = Uploads(place.store.uploads_folder, place)
        paths = uploads.paths(upload_id)
        if halves := Resuming(uploads).unfinished(upload_id):
            said = f"{fmt.count(len(halves), 'file')} of the upload did not arrive whole, such as {halves[0][:80]!r}"
            raise InputError(said, advice="Send the rest first.")
    return book.retry(entry.job_id, MOST_WAITING, lambda words: as_now(words, place.store.root, paths))


def _cancelled(book: "JobBook", job_id: str) -> "Entry":
    """The job once its worker has ended it, or after PATIENCE_S as it is then."""
    until_s = time.monotonic() + PATIENCE_S
    entry = book.cancel(job_id)
    while not entry.ended and time.monotonic() < until_s:
        time.sleep(0.1)
        entry = book.get(job_id)
    return entry


def _sentence(job: "Job") -> str:
    said = {
        "waiting": "waits for a server or a `chipledger worker` of this store",
        "running": "runs still: its worker was told to end it, and does not answer",
        "done": "is done already",
    }
    return f"Job {job.job_id[:SHOWN]} {said.get(job.state, f'is {job.state}')}."


def _show(jobs: "list[Job]", *, as_json: bool) -> None:
    if as_json:
        print_json({"jobs": [job.to_dict() for job in jobs]})
        return
    if not jobs:
        print("Nothing was asked of a server of this store yet.")
        return
    head = ("job", "what", "of", "who", "state", "told", "asked")
    print_table(head, [_row(job) for job in jobs])


def _row(job: "Job") -> tuple[str, ...]:
    part = "" if job.progress is None or job.ended else f"{job.progress:.0%} "
    told = job.error or (job.result.get("run_id") or "")[:SHOWN] or f"{part}{job.doing}"
    title = str(job.about.get("name") or job.about.get("title") or "")
    return (
        *(job.job_id[:SHOWN], job.what, printable(title)[:40], printable(job.who)[:20], job.state),
        *(printable(told)[:80], fmt.date(job.began_ns)),
    )
