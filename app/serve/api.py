"""The HTTP API: what the pages show as JSON, and the way files come in. Errors are JSON `{"error": ...}` with a 4xx."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import catalog
from app import querying, topology_options
from app.listing import list_runs
from app.options import from_query
from app.pages.published.words import published_rows
from app.questions import QUESTIONS, asking, question
from app.questions.base import Question, described
from app.questions.forms import form
from app.serve.compiling import compile_request
from app.serve.ingesting import UPLOAD, ingest_arguments, line
from app.serve.jobs import Job, Jobs
from app.serve.places import placeless
from app.serve.uploads import TooLarge, Uploads
from app.summary import run_details
from app.topology_options import FAIL, SPEC
from app.whatif import WHATIFS
from app.whatif.base import named
from app.workspace import Workspace
from errors import ChipledgerError, InputError, QuestionError
from errors.options import Option, once_each
from runs.run import Run

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
BODY_BYTES = 1 << 16  # of a JSON request; files go another way
MOST_SPECS, MOST_FAILURES = 4, 32  # of one question about topologies
ASKED = ("show", "show_model", "whatif", "topology", "query")  # handlers that read parameters; others take none


class NotFound(QuestionError):
    """What the address names does not exist."""


def _answering(handler: Callable) -> Callable:
    """A handler whose errors of ours become JSON."""

    @functools.wraps(handler)
    async def wrapped(self: Any, request: Request) -> Response:
        try:
            if handler.__name__ not in ASKED:
                once_each(request.query_params.multi_items(), ())
            answer = await handler(self, request)
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        except ChipledgerError as e:
            code = 413 if isinstance(e, TooLarge) else 404 if isinstance(e, NotFound) else 400
            # the rest of a refused body is not read: without the header it would be taken for the next request
            error = placeless(str(e), self._place.store.root)
            return JSONResponse({"error": error}, status_code=code, headers={"Connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)

    return wrapped


class Api:
    """The handlers, over one workspace."""

    def __init__(self, place: Workspace, jobs: Jobs):
        self._place = place
        self._uploads = Uploads(place.store.uploads_folder, place)
        self._uploads.sweep()
        self._jobs = jobs

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self.health, methods=["GET"]),
            Route("/api/runs", self.runs, methods=["GET"]),
            Route("/api/runs/{run_id}", self.run, methods=["GET"]),
            Route("/api/runs/{run_id}/show/{analysis}", self.show, methods=["GET"]),
            Route("/api/runs/{run_id}/tables", self.tables, methods=["GET"]),
            Route("/api/runs/{run_id}/query", self.query, methods=["GET"]),
            Route("/api/questions", self.questions, methods=["GET"]),
            Route("/api/questions/{name}/form", self.form, methods=["GET"]),
            Route("/api/models/{model}/show/{analysis}", self.show_model, methods=["GET"]),
            Route("/api/catalog/{kind}", self.catalog, methods=["GET"]),
            Route("/api/catalog/{kind}/{name:path}", self.catalog, methods=["GET"]),
            Route("/api/published", self.published, methods=["GET"]),
            Route("/api/whatif/{name}", self.whatif, methods=["GET"]),
            Route("/api/topology", self.topology, methods=["GET"]),
            Route("/api/uploads", self.begin, methods=["POST"]),
            Route("/api/uploads/{upload_id}", self.discard, methods=["DELETE"]),
            Route("/upload/{upload_id}/{name:path}", self.receive, methods=["PUT"]),
            Route("/api/ingest", self.ingest, methods=["POST"]),
            Route("/api/compile", self.compile, methods=["POST"]),
            Route("/api/jobs/{job_id}", self.job, methods=["GET"]),
            Route("/api/jobs/{job_id}", self.cancel, methods=["DELETE"]),
            Route("/api/{rest:path}", self.nothing, methods=METHODS),
            Route("/upload/{rest:path}", self.nothing, methods=METHODS),
        ]

    def _run(self, request: Request) -> Run:
        return self._find(request.path_params["run_id"])

    def _find(self, name: str) -> Run:
        try:
            return self._place.store.find(name)
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @_answering
    async def health(self, request: Request) -> Any:
        """200 where the store can be read, else 503 with one sentence."""
        try:
            await run_in_threadpool(self._place.store.check)
        except ChipledgerError as e:
            return JSONResponse({"status": "unhealthy", "error": f"{e.what}. {e.advice}"}, status_code=503)
        return {"status": "ok"}

    @_answering
    async def runs(self, request: Request) -> Any:
        listed = await run_in_threadpool(list_runs, self._place)
        return {**listed, "problems": placeless(listed["problems"], self._place.store.root)}

    @_answering
    async def run(self, request: Request) -> Any:
        run = self._run(request)
        live = self._place.store.live.current(run.run_id)
        return run_details(run, self._place.registry.extras(run.run_id), live)

    @_answering
    async def show(self, request: Request) -> Any:
        return await self._answer(self._run(request), request)

    @_answering
    async def show_model(self, request: Request) -> Any:
        try:
            name = catalog.model(request.path_params["model"]).name
        except QuestionError as e:
            raise NotFound(str(e)) from e
        return await self._answer(asking.ModelSubject(name, name), request)

    async def _answer(self, subject: asking.Subject, request: Request) -> dict[str, Any]:
        asked = self._question(request.path_params["analysis"])
        given = once_each(request.query_params.multi_items(), [o.name for o in asked.options])
        result = await run_in_threadpool(asking.ask, asked, subject, given, self._place.registry)
        return asking.answer_dict(subject, result)

    @_answering
    async def tables(self, request: Request) -> Any:
        return {"tables": await run_in_threadpool(querying.tables, self._run(request))}

    @_answering
    async def query(self, request: Request) -> Any:
        """The answer to SQL over the tables of a run, as JSON or as a file."""
        given = from_query(request.query_params.multi_items(), querying.ASKED)
        run = self._run(request)
        media, data = await run_in_threadpool(querying.given_out, run, **given)
        if media == querying.JSON:
            return Response(data, media_type=media)
        name = f"attachment; filename=query.{given['format']}"
        return Response(data, media_type=media, headers={"Content-Disposition": name})

    @_answering
    async def questions(self, request: Request) -> Any:
        return {"questions": [described(q) for q in QUESTIONS]}

    @_answering
    async def form(self, request: Request) -> Any:
        return form(self._question(request.path_params["name"]))

    @staticmethod
    def _question(name: str) -> Question[Any]:
        try:
            return question(name)
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @_answering
    async def catalog(self, request: Request) -> Any:
        kind, name = request.path_params["kind"], request.path_params.get("name")
        try:
            return catalog.entry(kind, name) if name else {"rows": catalog.as_rows(kind)}
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @_answering
    async def published(self, request: Request) -> Any:
        return {"runs": await run_in_threadpool(published_rows)}

    @_answering
    async def whatif(self, request: Request) -> Any:
        try:
            asked = named(WHATIFS, request.path_params["name"])
        except QuestionError as e:
            raise NotFound(str(e)) from e
        given = asked.from_query(request.query_params.multi_items())
        if run := asked.run_of(given):
            self._find(run)
        return await run_in_threadpool(lambda: asked.told(asked.answer(given, self._place)))

    @_answering
    async def topology(self, request: Request) -> Any:
        given = from_query(request.query_params.multi_items(), topology_options.ASKED)
        specs, failed = _several(SPEC, given, 1, MOST_SPECS), _several(FAIL, given, 0, MOST_FAILURES)
        told = await run_in_threadpool(_topologies, specs, failed, self._place)
        return told if len(told) > 1 else told[0]

    @_answering
    async def begin(self, request: Request) -> Any:
        return {"upload_id": await run_in_threadpool(self._uploads.begin)}

    @_answering
    async def discard(self, request: Request) -> Any:
        await run_in_threadpool(self._uploads.discard, request.path_params["upload_id"])
        return {"discarded": True}

    @_answering
    async def receive(self, request: Request) -> Any:
        length = request.headers.get("content-length", "")
        announced = int(length) if length.isascii() and length.isdigit() else None
        upload_id, name = request.path_params["upload_id"], request.path_params["name"]
        return {"bytes": await self._uploads.receive(upload_id, name, request.stream(), announced)}

    @_answering
    async def ingest(self, request: Request) -> Any:
        asked = await _json_object(request)
        arguments = ["ingest", "--json", f"--store={self._place.store.root}", *ingest_arguments(asked)]
        files = self._uploads.files(line(asked.get(UPLOAD) or "", UPLOAD))
        if not any(p.is_file() for p in files.rglob("*")):
            raise InputError("the upload holds no file", advice="PUT at least one to /upload/UPLOAD_ID/NAME.")
        return self._told(self._jobs.start([*arguments, "--", *(str(p) for p in sorted(files.iterdir()))]))

    @_answering
    async def compile(self, request: Request) -> Any:
        asked = compile_request(await _json_object(request))
        arguments = ["compile", "--json", f"--store={self._place.store.root}", *asked.options(), "--", asked.model]
        return self._told(self._jobs.start(arguments))

    @_answering
    async def job(self, request: Request) -> Any:
        return self._told(self._find_job(request))

    @_answering
    async def cancel(self, request: Request) -> Any:
        return self._told(await self._jobs.cancel(self._find_job(request).job_id))

    def _told(self, job: Job) -> dict[str, Any]:
        return placeless(job.to_dict(), self._place.store.root)

    def _find_job(self, request: Request) -> Any:
        try:
            return self._jobs.get(request.path_params["job_id"])
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @_answering
    async def nothing(self, request: Request) -> Any:
        raise NotFound(f"nothing answers {request.method} {request.url.path!r}")


def _topologies(specs: list[str], failures: list[str], place: Workspace) -> list[dict[str, Any]]:
    from app.topologies import report

    return [report(spec, failures, place).to_dict() for spec in specs]


def _several(option: Option, given: Mapping[str, Sequence[str]], least: int, most: int) -> list[str]:
    """The values of an option that may be repeated; blank ones count as not given."""
    values = [v for v in given.get(option.name, ()) if v.strip()]
    if not least <= len(values) <= most:
        raise QuestionError(f"{len(values)} times {option.name!r}", expected=f"{least} to {most}")
    return values


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a request. Raises InputError for a name that stands there twice: either value might be meant."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"{name[:40]!r} is given twice", where="request", expected="once")
        found[name] = value
    return found


async def _json_object(request: Request) -> dict[str, Any]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise InputError(f"a request of more than {BODY_BYTES:,} bytes", expected="a small JSON object")
    try:
        asked = json.loads(body, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as e:
        why = "nested too deeply" if isinstance(e, RecursionError) else e
        raise InputError(f"the request is no JSON ({why})") from e
    if not isinstance(asked, dict):
        raise InputError("the request is no JSON object")
    return asked
