"""The document: every route with what it takes, and the schema of what it answers.

Answers to questions have the forms that stand beside them (`app/questions`), those of other routes lie in `answers/`, a
file for each. A route with a question or a what-if in its address stands there once for each of them.
"""

import contextlib
import functools
import importlib.metadata
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from starlette.routing import Route

from app.mcp.schemas import of_option
from app.openapi.takes import TAKES, Takes
from app.questions import QUESTIONS
from app.questions.forms import form
from app.whatif import WHATIFS
from errors.options import Option

FOLDER = Path(__file__).parent / "answers"
SCHEMAS = "#/components/schemas/"
OF_MODELS = ("padding", "flops", "memory", "kv_cache")  # questions that a model alone answers
JOB = (
    "post_ingest",
    "post_compile",
    "post_capture",
    "get_jobs_job_id",
    "delete_jobs_job_id",
    "post_jobs_job_id_retry",
)  # they answer alike
EMPTY = ("OPTIONS", "HEAD")  # methods whose answers hold nothing but headers
_PLACE = re.compile(r"\{(\w+)(?::path)?\}")
_SHOW = re.compile(r"(/api/(?:runs/\{run_id\}|models/\{model\})/show/)\{analysis\}")
Operation = tuple[str, str, dict[str, Any]]  # method, path, what is said of it


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Of the routes of the API. Raises FileNotFoundError for one whose answer has no schema: a defect."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path, told in operations(routes):
        paths.setdefault(path, {})[method.lower()] = told
    head = {
        "title": "Chipledger",
        "version": _version(),
        "description": "Everything a page shows, as JSON. Keys carry units, what is not known is null. A parameter "
        "or field that is not named here is refused.",
    }
    return {
        "openapi": "3.1.0",
        "info": head,
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": _schemas(), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def operations(routes: Iterable[Route]) -> Iterator[Operation]:
    """Each method of each route; one with a question or a what-if in its path once for each."""
    for route in routes:
        if route.endpoint.__name__ == "nothing":
            continue
        path = _PLACE.sub(r"{\1}", route.path)
        for method in sorted((route.methods or set()) - ({"HEAD"} if "GET" in (route.methods or ()) else set())):
            yield from _operations(method, path, _said(route))


def slug(method: str, path: str) -> str:
    """The name of a route's schema, and of the file that holds it."""
    words = re.sub(r"\W+", "_", path.replace("/api/", "/")).strip("_")
    return f"{method.lower()}_{words or 'api'}"


def _operations(method: str, path: str, said: str) -> Iterator[Operation]:
    takes = TAKES.get(f"{method} {path}", Takes())
    if shown := _SHOW.fullmatch(path):
        of_model = "models" in path
        for q in QUESTIONS:
            if not of_model or q.name in OF_MODELS:
                whole = Takes(query=q.options)
                yield method, shown[1] + q.name, _operation(method, shown[1] + q.name, q.asks, whole, f"show_{q.name}")
    elif path == "/api/whatif/{name}":
        for w in WHATIFS:
            whole = Takes(query=tuple(o for o in w.options if not o.local))
            one = path.replace("{name}", w.name)
            yield method, one, _operation(method, one, f"{w.title}: {w.help}.", whole, slug(method, one))
    else:
        yield method, path, _operation(method, path, said, takes, slug(method, path))


def _operation(method: str, path: str, said: str, takes: Takes, schema: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": slug(method, path),
        "summary": textwrap.shorten(said.split(". ")[0].rstrip("."), 140, placeholder=" ...") or slug(method, path),
        "description": said,
        "parameters": [*_of_path(path), *map(_parameter, takes.query), *_of_headers(takes)],
        "responses": {str(takes.answers): _answer(method, takes, schema), "default": _refusal()},
    }
    if takes.body or takes.raw:
        told["requestBody"] = _body(takes)
    return told


def _answer(method: str, takes: Takes, schema: str) -> dict[str, Any]:
    if method in EMPTY or takes.answers != 200:
        return {"description": "done; what there is to say stands in its headers"}
    content = {
        m: {"schema": {"$ref": SCHEMAS + ("job" if schema in JOB else schema)}} if m == "application/json" else {}
        for m in takes.media
    }
    return {"description": "the answer", "content": content}


def _refusal() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"{SCHEMAS}error"}}}
    return {"description": "why not, in one sentence", "content": content}


def _body(takes: Takes) -> dict[str, Any]:
    if takes.raw:
        return {"content": {takes.raw: {}}}
    schema = {"type": "object", "properties": dict(takes.body), "additionalProperties": False}
    needed = {"required": list(takes.needed)} if takes.needed else {}
    return {"required": bool(takes.needed), "content": {"application/json": {"schema": {**schema, **needed}}}}


def _of_path(path: str) -> list[dict[str, Any]]:
    names = _PLACE.findall(path)
    return [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]


def _of_headers(takes: Takes) -> list[dict[str, Any]]:
    schema = {"schema": {"type": "string"}}
    return [{"name": n, "in": "header", "required": needed, **schema} for n, needed in takes.headers.items()]


def _parameter(option: Option) -> dict[str, Any]:
    schema = of_option(option)
    told = {"name": option.name, "in": "query", "description": schema.pop("description", option.help)}
    return {**told, "required": False, "schema": schema}


def _version() -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("chipledger")
    return "0"  # of a clone that was never installed


def _said(route: Route) -> str:
    return " ".join((inspect.getdoc(route.endpoint) or "").split())


@functools.cache
def _schemas() -> dict[str, Any]:
    """Every schema by name. Those of questions have `$defs` of their own, which references in them mean."""
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    told = {f"show_{q.name}": _moved(form(q), f"show_{q.name}") for q in QUESTIONS}
    files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
    return {"error": error, **told, **files}


def _moved(schema: Any, name: str) -> Any:
    """The same schema where it lies within the document: `#` is the document's root there."""
    if isinstance(schema, dict):
        return {
            k: v.replace("#/", f"{SCHEMAS}{name}/", 1) if k == "$ref" and isinstance(v, str) else _moved(v, name)
            for k, v in schema.items()
            if k != "$schema"
        }
    return [_moved(one, name) for one in schema] if isinstance(schema, list) else schema
