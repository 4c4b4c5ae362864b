"""The HTTP API: what the pages show as JSON, and the way files come in. Errors are JSON `{"error": ...}` with a 4xx."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import catalog
from app import listing_options, querying, topology_options
from app.facts.told import declare, facts_told
from app.listing import list_runs
from app.options import from_query
from app.pages.published.words import published_rows
from app.questions import QUESTIONS, asking, question
from app.questions.base import Question, described
from app.questions.forms import form
from app.serve.answering import NotFound, found
from app.serve.answering import answering as _answering
from app.serve.aside import Aside
from app.serve.baselining import Baselining
from app.serve.comparing import Comparing
from app.serve.fleets import Fleets
from app.serve.ingesting import line
from app.serve.jobs import Jobs
from app.serve.openapi import OpenApi
from app.serve.perfetto import Perfetto
from app.serve.places import placeless
from app.serve.reporting import Reporting
from app.serve.requests import json_object
from app.serve.resuming import Resuming
from app.serve.sharing import Sharing
from app.serve.shelving import Shelving, shelved
from app.serve.timeline import Timelines
from app.serve.timeline_marks import TimelineMarks
from app.serve.timeline_places import TimelinePlaces
from app.serve.tus import Tus
from app.serve.uploads import Uploads
from app.serve.working import Working
from app.summary import run_details
from app.topology_options import FAIL, SPEC
from app.whatif import WHATIFS
from app.whatif.base import named
from app.workspace import Workspace
from errors import ChipledgerError, InputError, QuestionError
from errors.options import Option, once_each
from runs.run import Run

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
MOST_SPECS, MOST_FAILURES = 4, 32  # of one question about topologies


class Api:
    """The handlers, over one workspace."""

    def __init__(self, place: Workspace, jobs: Jobs, beside: Sequence[Route] = ()):
        """`beside`: routes of others that the document of the API tells too."""
        self._place, self._beside, self._aside = place, beside, Aside()
        self._uploads = Uploads(place.store.uploads_folder, place)
        self._uploads.sweep()
        self._resuming = Resuming(self._uploads)
        self._jobs = jobs

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self.health, methods=["GET"]),
            Route("/api/runs", self.runs, methods=["GET"]),
            Route("/api/runs/{run_id}", self.run, methods=["GET"]),
            *Shelving(self._place, self._find).routes(),
            *Timelines(self._place, self._find).routes(),
            *TimelinePlaces(self._place, self._find).routes(),
            *TimelineMarks(self._place, self._find).routes(),
            *Perfetto(self._place, self._find).routes(),
            *Sharing(self._place, self._find).routes(),
            *Baselining(self._place).routes(),
            *Reporting(self._place, self._find).routes(),
            Route("/api/runs/{run_id}/facts", self.facts, methods=["GET"]),
            Route("/api/runs/{run_id}/facts", self.say, methods=["PATCH"]),
            Route("/api/runs/{run_id}/show/{analysis}", self.show, methods=["GET"]),
            Route("/api/runs/{run_id}/tables", self.tables, methods=["GET"]),
            Route("/api/runs/{run_id}/query", self.query, methods=["GET"]),
            *Fleets(self._place).routes(),
            *Comparing(self._place).routes(),
            Route("/api/questions", self.questions, methods=["GET"]),
            Route("/api/questions/{name}/form", self.form, methods=["GET"]),
            Route("/api/models/{model}/show/{analysis}", self.show_model, methods=["GET"]),
            Route("/api/catalog/{kind}", self.catalog, methods=["GET"]),
            Route("/api/catalog/{kind}/{name:path}", self.catalog, methods=["GET"]),
            Route("/api/published", self.published, methods=["GET"]),
            Route("/api/whatif/{name}", self.whatif, methods=["GET"]),
            Route("/api/topology", self.topology, methods=["GET"]),
            Route("/api/uploads", self.unused, methods=["GET"]),
            Route("/api/uploads/{upload_id}", self.refused, methods=["GET"]),
            Route("/api/uploads/{upload_id}", self.discard, methods=["DELETE"]),
            *Tus(self._place, self._uploads, self._resuming, self._unread, self._jobs.check).routes(),
            Route("/upload/{upload_id}/{name:path}", self.receive, methods=["PUT"]),
            *Working(self._place, self._jobs, self._uploads, self._resuming).routes(),
            *OpenApi(self._place, lambda: [*self.routes(), *self._beside]).routes(),
            Route("/api/{rest:path}", self.nothing, methods=METHODS),
            Route("/upload/{rest:path}", self.nothing, methods=METHODS),
        ]

    async def _run(self, request: Request) -> Run:
        return await found(self._find, request.path_params["run_id"])

    def _find(self, name: str) -> Run:
        try:
            return self._place.store.find(name)
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @_answering
    async def health(self, request: Request) -> Any:
        """200 where the store can be read, else 503 with one sentence."""
        try:
            await self._aside.run(self._place.store.check)
        except ChipledgerError as e:
            return JSONResponse({"status": "unhealthy", "error": f"{e.what}. {e.advice}"}, status_code=503)
        return {"status": "ok"}

    @_answering
    async def runs(self, request: Request) -> Any:
        """The runs of the store, newest first, or those that a search `q` finds: id, name, kind, facts, numbers, and
        what could not be read (`problems`). `sort`, `limit`, `offset` and `archived` as `chipledger runs` has them."""
        given = from_query(request.query_params.multi_items(), listing_options.ASKED)
        listed = await run_in_threadpool(list_runs, self._place, **given)
        return {**listed, "problems": placeless(listed["problems"], self._place.store.root)}

    @_answering
    async def run(self, request: Request) -> Any:
        """One run, by its id, the beginning of its id, or its name: facts, inputs, tables, tags, warnings."""
        run = await self._run(request)
        live = self._place.store.live.current(run.run_id)
        details = run_details(run, self._place.registry.extras(run.run_id), live)
        return {**details, **await run_in_threadpool(shelved, self._place, run.run_id)}

    @_answering
    async def facts(self, request: Request) -> Any:
        """What is known of a run and by whom, what does not agree, and what one fact more would tell."""
        told = await run_in_threadpool(facts_told, await self._run(request), self._place)
        return told.to_dict()

    @_answering
    async def say(self, request: Request) -> Any:
        """Keep what a person says of a run: {"chip": "v5p", "who": "ann"}; null takes back."""
        run, given = await self._run(request), await json_object(request)
        who = line(given.pop("who", None) or "", "who")
        return await run_in_threadpool(self._said, run, given, who)

    def _said(self, run: Run, given: Mapping[str, Any], who: str) -> dict[str, Any]:
        try:
            return facts_told(declare(run, given, who, self._place), self._place).to_dict()
        except ChipledgerError:
            if self._place.store.has(run.run_id):
                raise
        lying = self._place.store.bin.has(run.run_id)
        where = f"run {run.run_id[:12]} {'was put into the bin' if lying else 'was removed'} meanwhile"
        raise NotFound(f"{where}; look at its facts again once it is back")

    @_answering
    async def show(self, request: Request) -> Any:
        """The answer to a question about a run. Options of the question are parameters."""
        return await self._answer(await self._run(request), request)

    @_answering
    async def show_model(self, request: Request) -> Any:
        """The answer to a question that a model alone answers, such as `padding`, `flops` or `memory`."""
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
        """The tables of a run with their columns, as SQL sees them."""
        return {"tables": await run_in_threadpool(querying.tables, await self._run(request))}

    @_answering
    async def query(self, request: Request) -> Any:
        """The answer to SQL over the tables of a run, as JSON or as a file. Of one that was cut off JSON says `cut`; a
        file says so in its name and in the header `Chipledger-Cut`."""
        given = from_query(request.query_params.multi_items(), querying.ASKED)
        run = await self._run(request)
        answer, data = await run_in_threadpool(querying.given_out, run, **given)
        form = given.get(querying.FORMAT.name, querying.FORMAT.default)
        if querying.MEDIA[form] == querying.JSON:
            return Response(data, media_type=querying.JSON)
        headers = {"Content-Disposition": f"attachment; filename={querying.file_stem(answer)}.{form}"}
        headers |= {querying.CUT_HEADER: "true"} if answer.cut else {}
        return Response(data, media_type=querying.MEDIA[form], headers=headers)

    @_answering
    async def questions(self, request: Request) -> Any:
        """Every question: what it asks, what it needs, its options, and what its figures mean."""
        return {"questions": [described(q) for q in QUESTIONS]}

    @_answering
    async def form(self, request: Request) -> Any:
        """The form of a question's answer, as JSON Schema; a number's unit stands beside it as `unit`."""
        return form(self._question(request.path_params["name"]))

    @staticmethod
    def _question(name: str) -> Question[Any]:
        try:
            return question(name)
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @_answering
    async def catalog(self, request: Request) -> Any:
        """What is known of chips, models and slices, each number with its source: all of a `kind`, or one by any usual
        name."""
        kind, name = request.path_params["kind"], request.path_params.get("name")
        try:
            return catalog.entry(kind, name) if name else {"rows": catalog.as_rows(kind)}
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @_answering
    async def published(self, request: Request) -> Any:
        """MFU of published runs, each with its source and how its FLOPs were counted."""
        return {"runs": await run_in_threadpool(published_rows)}

    @_answering
    async def whatif(self, request: Request) -> Any:
        """The answer to a what-if. Its options are parameters; those of files exist on the command line alone."""
        try:
            asked = named(WHATIFS, request.path_params["name"])
        except QuestionError as e:
            raise NotFound(str(e)) from e
        given = asked.from_query(request.query_params.multi_items())
        if run := asked.run_of(given):
            await found(self._find, run)
        return await run_in_threadpool(lambda: asked.told(asked.answer(given, self._place)))

    @_answering
    async def topology(self, request: Request) -> Any:
        """Networks of chips, named by `spec`, which may be given up to four times: hops, bisection, loads, and with
        `fail` what is lost where parts fail."""
        given = from_query(request.query_params.multi_items(), topology_options.ASKED)
        specs, failed = _several(SPEC, given, 1, MOST_SPECS), _several(FAIL, given, 0, MOST_FAILURES)
        told = await run_in_threadpool(_topologies, specs, failed, self._place)
        return told if len(told) > 1 else told[0]

    @_answering
    async def unused(self, request: Request) -> Any:
        """Uploads that became no run, and are not being read into one."""
        listed, reading = await run_in_threadpool(self._uploads.unused), await run_in_threadpool(self._jobs.reading)
        return {"uploads": [one for one in listed if one["upload_id"] not in reading]}

    @_answering
    async def refused(self, request: Request) -> Any:
        """Why the last file of an upload was refused, null where it was not."""
        return {"refused": self._uploads.refused(request.path_params["upload_id"])}

    @_answering
    async def discard(self, request: Request) -> Any:
        """Throw away what was uploaded."""
        upload_id = await self._unread(request)
        await run_in_threadpool(self._uploads.discard, upload_id)
        return {"discarded": True}

    @_answering
    async def receive(self, request: Request) -> Any:
        """One file of an upload, as the body of the request, by its name or its path in a folder."""
        self._jobs.check()
        length = request.headers.get("content-length", "")
        announced = int(length) if length.isascii() and length.isdigit() else None
        upload_id, name = await self._unread(request), request.path_params["name"]
        return {"bytes": await self._uploads.receive(upload_id, name, request.stream(), announced)}

    async def _unread(self, request: Request) -> str:
        """The upload of a request. Raises InputError where a job reads it, or waits to: what changes meanwhile would be
        missed, or missing."""
        upload_id = request.path_params["upload_id"]
        self._uploads.files(upload_id)  # first: whoever else's it is, it is not there
        if upload_id in await run_in_threadpool(self._jobs.reading):
            advice = "Cancel its job first, or begin another upload."
            raise InputError("the upload is being read into a run", where=upload_id, advice=advice)
        return upload_id

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
