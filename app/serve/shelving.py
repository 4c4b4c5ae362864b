"""Keeping runs in order over the API: names, notes, tags, stars, groups, the bin, and searches that are kept."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from app.identity.may import changing
from app.library import changes
from app.library.table import shelf
from app.options import from_query
from app.serve.answering import NotFound, answering, found
from app.serve.ingesting import line
from app.serve.requests import json_object
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors.options import SWITCH, Option
from runs.run import Run
from runs.shelf import clean_group

NOW = Option("now", SWITCH, False, "for good at once, not into the bin")
WHO = Option("who", str, "", "who does it")
WHERE = "request"
MARKS = ("starred", "archived", "group", "tags")
LABELS = (*MARKS, "who")
FIELDS = ("name", "was", *LABELS)


class Shelving:
    """The handlers. `find`: a run by its name in an address; raises NotFound."""

    def __init__(self, place: Workspace, find: Callable[[str], Run]):
        self._place, self._find = place, find

    def routes(self) -> list[Route]:
        return [
            Route("/api/runs", self.label_many, methods=["PATCH"]),
            Route("/api/runs/{run_id}", self.label, methods=["PATCH"]),
            Route("/api/runs/{run_id}", self.delete, methods=["DELETE"]),
            Route("/api/runs/{run_id}/restore", self.restore, methods=["POST"]),
            Route("/api/runs/{run_id}/notes", self.notes, methods=["GET"]),
            Route("/api/runs/{run_id}/notes", self.add_note, methods=["POST"]),
            Route("/api/runs/{run_id}/notes/{number}", self.edit_note, methods=["PATCH"]),
            Route("/api/runs/{run_id}/notes/{number}", self.delete_note, methods=["DELETE"]),
            Route("/api/bin", self.bin, methods=["GET"]),
            Route("/api/searches", self.searches, methods=["GET"]),
            Route("/api/searches/{name}", self.save_search, methods=["PUT"]),
            Route("/api/searches/{name}", self.delete_search, methods=["DELETE"]),
        ]

    async def _run_id(self, request: Request) -> str:
        return (await found(self._find, request.path_params["run_id"])).run_id

    @answering
    async def label(self, request: Request) -> Any:
        """Change what people say of a run: `{"name": "...", "starred": true, "archived": false, "group":
        "project/experiment", "tags": {"key": "value", "old": null}, "who": "ann"}`, each as wanted. An empty name gives
        back the stored one. With `was`, the name that you have seen, nothing is changed where another renamed it."""
        run = await found(self._find, request.path_params["run_id"])
        given = await json_object(request)
        return await run_in_threadpool(self._labelled, run, checked(given, FIELDS))

    def _labelled(self, run: Run, labels: Mapping[str, Any]) -> dict[str, Any]:
        """The name first, which alone may be refused for what another did."""
        run_id, name = run.run_id, run.manifest.name
        if "name" in labels:
            who, was = labels.get("who", ""), labels.get("was")
            name = changes.rename(self._place, run_id, labels["name"], who=who, was=was).after
        if marks := {name: value for name, value in labels.items() if name in MARKS}:
            label(self._place, [run_id], marks)
        return {"run_id": run_id, "name": name, **shelved(self._place, run_id)}

    @answering
    async def label_many(self, request: Request) -> Any:
        """Star, archive, group or tag several runs at once: `{"runs": ["..."], "starred": true, ...}`."""
        given = await json_object(request)
        runs = given.pop("runs", None)
        if not isinstance(runs, list) or not runs or not all(isinstance(r, str) for r in runs):
            raise InputError("'runs' is not understood", where=WHERE, expected="a list of runs")
        labels = checked(given, LABELS)
        ids = await run_in_threadpool(lambda: [self._find(name).run_id for name in runs])
        await run_in_threadpool(label, self._place, ids, labels)
        return {"runs": ids}

    @answering
    async def delete(self, request: Request) -> Any:
        """Put a run into the bin, from which it can be brought back for 30 days; with `now=true` it goes for good.
        `who`: who does it, as the bin tells it."""
        given = from_query(request.query_params.multi_items(), [NOW, WHO])
        now, who = bool(given.get(NOW.name)), line(given.get(WHO.name, ""), WHO.name)
        name = request.path_params["run_id"]
        lying = now and await run_in_threadpool(self._place.store.find_binned, name)
        run_id = name if lying else (await found(self._find, name)).run_id
        done = await run_in_threadpool(lambda: changes.bin_many(self._place, [run_id], who=who, now=now))
        return {"deleted" if now else "bin": done[0].to_dict()}

    @answering
    async def restore(self, request: Request) -> Any:
        """Bring a run back from the bin, with all that was added to it."""
        name = request.path_params["run_id"]
        if await run_in_threadpool(self._place.store.find_binned, name) is None:
            raise NotFound(f"no run {name[:80]!r} in the bin")
        done = await run_in_threadpool(changes.restore, self._place, [name])
        return {"restored": done[0].to_dict()}

    @answering
    async def bin(self, request: Request) -> Any:
        """What was deleted and can be brought back: by whom, since when, until when."""
        lying = await run_in_threadpool(changes.binned, self._place)
        return {"bin": [b.to_dict() for b in lying]}

    @answering
    async def notes(self, request: Request) -> Any:
        """The notes of a run, the oldest first: number, Markdown as it was typed, by whom and when."""
        return await run_in_threadpool(self._notes, await self._run_id(request))

    def _notes(self, run_id: str) -> dict[str, Any]:
        return {"notes": [note.to_dict() for note in shelf(self._place).notes(run_id)]}

    @answering
    async def add_note(self, request: Request) -> Any:
        """Write a note: `{"text": "...", "who": "ann"}`."""
        run_id, given = await self._run_id(request), checked(await json_object(request), ("text", "who"), ("text",))
        add = changes.add_note
        await run_in_threadpool(lambda: add(self._place, run_id, given["text"], who=given.get("who", "")))
        return await run_in_threadpool(self._notes, run_id)

    @answering
    async def edit_note(self, request: Request) -> Any:
        """Write a note anew. With `was`, the text that you have seen, nothing is changed where another edited it."""
        run_id, number = await self._run_id(request), _number(request)
        given = checked(await json_object(request), ("text", "was", "who"), ("text",))
        more = {"who": given.get("who", ""), "was": given.get("was")}
        await run_in_threadpool(lambda: changes.edit_note(self._place, run_id, number, given["text"], **more))
        return await run_in_threadpool(self._notes, run_id)

    @answering
    async def delete_note(self, request: Request) -> Any:
        """Delete a note."""
        run_id = await self._run_id(request)
        await run_in_threadpool(changes.delete_note, self._place, run_id, _number(request))
        return await run_in_threadpool(self._notes, run_id)

    @answering
    async def searches(self, request: Request) -> Any:
        """The searches that are kept."""
        kept = await run_in_threadpool(changes.searches, self._place)
        return {"searches": [search.to_dict() for search in kept]}

    @answering
    async def save_search(self, request: Request) -> Any:
        """Keep a search under a name: `{"query": "...", "columns": ["name", "mfu"], "sort": "-mfu", "who": "ann"}`."""
        given = checked(await json_object(request), ("query", "columns", "sort", "who"), ("query",))
        name, query = request.path_params["name"], given.pop("query")
        kept = await run_in_threadpool(lambda: changes.save_search(self._place, name, query, **given))
        return kept.to_dict()

    @answering
    async def delete_search(self, request: Request) -> Any:
        """Delete a search that was kept."""
        name = request.path_params["name"]
        try:
            await run_in_threadpool(changes.delete_search, self._place, name)
        except QuestionError as e:
            raise NotFound(str(e)) from e
        return {"deleted": name}


def shelved(place: Workspace, run_id: str) -> dict[str, Any]:
    """What people said of a run beside its tags and notes, as JSON."""
    kept = shelf(place)
    where = kept.place(run_id)
    return {
        "starred": where.starred,
        "archived": where.archived,
        "project": where.project or None,
        "experiment": where.experiment or None,
        "groups": sorted(place.shares.of(run_id)),
        "renames": [r.to_dict() for r in kept.renames(run_id)],
    }


@changing("mark runs")
def label(place: Workspace, run_ids: list[str], labels: Mapping[str, Any]) -> None:
    """Star, archive, group and tag, as far as given. The runs were found: of one that somebody puts into the bin
    meanwhile all is kept as well, so that no request is done by half."""
    kept = shelf(place)
    if "starred" in labels:
        kept.star(run_ids, labels["starred"])
    if "archived" in labels:
        kept.archive(run_ids, labels["archived"])
    if "group" in labels:
        kept.group(run_ids, *clean_group(labels["group"]))
    if "tags" in labels:
        kept.tag(run_ids, labels["tags"])


def checked(given: Mapping[str, Any], allowed: tuple[str, ...], needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a request, each of its type; null counts as empty. All is looked at before anything is changed.
    Raises InputError."""
    if unknown := next((name for name in given if name not in allowed), None):
        raise InputError(f"no field {str(unknown)[:40]!r} here", where=WHERE, expected=f"one of {', '.join(allowed)}")
    if not given or any(given.get(name) is None for name in needed):
        raise InputError("nothing is asked", where=WHERE, expected=f"{' and '.join(needed) or ', '.join(allowed)}")
    told = {name: _field(name, value) for name, value in given.items()}
    return {name: value for name, value in told.items() if value is not None}


def _field(name: str, value: Any) -> Any:
    if name in ("starred", "archived"):
        if not isinstance(value, bool):
            raise InputError(f"{name!r} is not understood", where=WHERE, expected="true or false")
        return value
    if name == "tags":
        return changes.checked_tags(_tags(value))
    if name == "columns":
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise InputError(f"{name!r} is not understood", where=WHERE, expected="a list of columns")
        return value
    if value is None:
        return "" if name in ("name", "group") else None
    if not isinstance(value, str):
        raise InputError(f"{name!r} is not understood", where=WHERE, expected="a text")
    if name == "group":
        clean_group(value)
    return line(value, name) if name == "who" else value


def _tags(value: Any) -> dict[str, str | None]:
    if not isinstance(value, dict) or not all(v is None or isinstance(v, str) for v in value.values()):
        raise InputError("'tags' is not understood", where=WHERE, expected="texts by name, or null to take one away")
    return value


def _number(request: Request) -> int:
    text = request.path_params["number"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound(f"no note {text[:40]!r}")
    return int(text)
