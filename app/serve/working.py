"""What the API has done by jobs: reading uploads and addresses into runs, compiling, recording; and the jobs."""

from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from app import sharing
from app.capture.addresses import allowed
from app.fetching.allowed import allowed as from_where
from app.fetching.allowed import asked_for
from app.options import from_query
from app.serve.answering import NotFound, answering
from app.serve.capturing import capture_arguments
from app.serve.compiling import compile_request
from app.serve.ingesting import ADDRESS, UPLOAD, ingest_arguments, line, without_audience
from app.serve.job import Job
from app.serve.jobs import Jobs
from app.serve.places import placeless
from app.serve.requests import json_object
from app.serve.resuming import Resuming
from app.serve.upload_names import title_of
from app.serve.uploads import Uploads
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors import format as fmt
from errors.numbers import Number
from errors.options import Option
from runs.job_book import BULK, USUAL

SINCE = Option("since", Number(0, whole=True), 0, "only files that changed after this change")


class Working:
    """The handlers, over the jobs and the uploads of one workspace."""

    def __init__(self, place: Workspace, jobs: Jobs, uploads: Uploads, resuming: Resuming):
        self._place, self._jobs, self._uploads, self._resuming = place, jobs, uploads, resuming

    def routes(self) -> list[Route]:
        return [
            Route("/api/ingest", self.ingest, methods=["POST"]),
            Route("/api/ingest", self.addresses, methods=["GET"]),
            Route("/api/compile", self.compile, methods=["POST"]),
            Route("/api/capture", self.capture, methods=["POST"]),
            Route("/api/capture", self.capture_addresses, methods=["GET"]),
            Route("/api/jobs", self.jobs, methods=["GET"]),
            Route("/api/jobs/{job_id}", self.job, methods=["GET"]),
            Route("/api/jobs/{job_id}", self.cancel, methods=["DELETE"]),
            Route("/api/jobs/{job_id}/retry", self.retry, methods=["POST"]),
        ]

    @answering
    async def ingest(self, request: Request) -> Any:
        """Make a run of an upload, or of files by address. A JSON object: `upload_id` or `address`, and what files
        cannot say, by the names of the flags of `chipledger ingest` (`name`, `chip`, `chips`, `model`, `tags` ...). The
        answer is a job to be followed."""
        asked = await json_object(request)
        words = ingest_arguments(without_audience(asked))
        whose = await run_in_threadpool(sharing.flags, self._place, asked)
        arguments = ["ingest", "--json", f"--store={self._place.store.root}", *words, *whose]
        if asked.get(ADDRESS):
            return await self._by_address(arguments, asked)
        upload_id = line(asked.get(UPLOAD) or "", UPLOAD)
        files = self._whole(upload_id)
        about = {"upload_id": upload_id, "name": asked.get("name") or None, "title": title_of(files)}
        priority = BULK if asked.get("again") else self._uploads.priority(upload_id)
        return await self._started([*arguments, *self._uploads.paths(upload_id)], about, priority)

    def _whole(self, upload_id: str) -> Path:
        """The folder of an upload that can be read. Raises InputError where some of it is missing, or all."""
        files = self._uploads.files(upload_id)
        if coming := self._uploads.arriving(upload_id):
            said = f"{fmt.count(coming, 'file')} of the upload {'is' if coming == 1 else 'are'} still on the way"
            raise InputError(said, advice="Ask again once each PUT is answered.")
        if halves := self._resuming.unfinished(upload_id):
            said = f"{fmt.count(len(halves), 'file')} of the upload did not arrive whole, such as {halves[0][:80]!r}"
            raise InputError(said, advice="Send the rest, or give them up with DELETE.")
        if not any(p.is_file() for p in files.rglob("*")):
            raise InputError("the upload holds no file", advice="PUT at least one to /upload/UPLOAD_ID/NAME.")
        return files

    async def _by_address(self, arguments: list[str], asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get(UPLOAD):
            raise InputError(f"both {UPLOAD!r} and {ADDRESS!r} are given", where="request", expected="one of them")
        text, known = line(asked[ADDRESS], ADDRESS), from_where()
        one = await run_in_threadpool(asked_for, text, known)
        about = {"upload_id": None, "name": asked.get("name") or None, "title": one.name}
        below = [f"--within={prefix}" for prefix in known]
        return await self._started([*arguments, *below, "--", str(one)], about)

    async def _started(self, arguments: list[str], about: dict[str, Any] | None = None, priority: int = USUAL) -> Any:
        return self._told(await run_in_threadpool(self._jobs.start, arguments, about, priority))

    @answering
    async def addresses(self, request: Request) -> Any:
        """Below what this server may read files by address."""
        return {"addresses": [str(one) for one in from_where()]}

    @answering
    async def compile(self, request: Request) -> Any:
        """Compile a training step for a slice: a JSON object with `model` and the options of `chipledger compile`. The
        answer is a job to be followed."""
        asked = compile_request(await json_object(request))
        said = [*asked.options(), *await run_in_threadpool(sharing.flags, self._place, {})]
        arguments = ["compile", "--json", f"--store={self._place.store.root}", *said, "--", asked.model]
        return await self._started(arguments)

    @answering
    async def capture(self, request: Request) -> Any:
        """Record jobs that run, at addresses that the operator allowed alone: a JSON object with `addresses` and the
        options of `chipledger capture`. The answer is a job to be followed."""
        said = capture_arguments(await json_object(request), allowed())
        whose = await run_in_threadpool(sharing.flags, self._place, {})
        arguments = ["capture", "--json", f"--store={self._place.store.root}", *whose, *said]
        return await self._started(arguments)

    @answering
    async def capture_addresses(self, request: Request) -> Any:
        """The addresses at which jobs may be recorded: those that whoever started the server named."""
        return {"addresses": [str(a) for a in allowed()]}

    @answering
    async def jobs(self, request: Request) -> Any:
        """The jobs of this store that are remembered, the newest first, whichever server was asked for them."""
        return {"jobs": [self._told(job) for job in await run_in_threadpool(self._jobs.newest)]}

    @answering
    async def job(self, request: Request) -> Any:
        """How far a job is (`waiting`, `running`, `done`, `failed`, `cancelled`, or `parked`: its server was stopped,
        and it goes on with the next), its files, and what came of it; with `since`, the files that changed after that
        change."""
        since = from_query(request.query_params.multi_items(), (SINCE,)).get(SINCE.name, 0)
        return self._told(await self._find_job(request, since), since)

    @answering
    async def cancel(self, request: Request) -> Any:
        """Cancel a job that waits or runs."""
        return self._told(await self._jobs.cancel((await self._find_job(request)).job_id))

    @answering
    async def retry(self, request: Request) -> Any:
        """Have a job that failed or was cancelled done again, of the same files and under its id."""
        job = await self._find_job(request)
        paths = None
        if upload_id := job.about.get("upload_id"):  # as it is now: more may have come, or it was discarded
            self._whole(upload_id)
            paths = self._uploads.paths(upload_id)
        return self._told(await run_in_threadpool(self._jobs.retry, job.job_id, paths))

    def _told(self, job: Job, since: int | None = None) -> dict[str, Any]:
        """A job, with the run that it made; with its files where `since` says from which change on."""
        told = job.to_dict() if since is None else job.with_files(since)
        run = self._place.store.get(told["run_id"]) if told["run_id"] else None
        if run is None and told["run_id"] in self._place.store.hidden():
            told["run_id"] = None
        if run is not None:
            told["run"] = {"run_id": run.run_id, "name": run.manifest.name, "created_ns": run.manifest.created_ns}
        return placeless(told, self._place.store.root)

    async def _find_job(self, request: Request, since: int | None = None) -> Job:
        try:
            return await run_in_threadpool(self._jobs.get, request.path_params["job_id"], since)
        except QuestionError as e:
            raise NotFound(str(e)) from e
