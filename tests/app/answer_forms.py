"""What every GET of the API is asked for, and the schemas that real answers have.

`python -m tests.app.answer_forms STORE` asks a server over a store of the bundled runs, which it changes, or over one
that is empty for changing routes alone, and writes the schemas of routes that are no question's below
`app/openapi/answers/`, to be read over before they are kept. Of answers whose keys follow from what is asked (WIDE)
only what was seen is claimed: more keys may come.
"""

import contextlib
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from app.openapi.document import FOLDER, OF_MODELS, slug
from app.questions import QUESTIONS
from app.questions.forms import unit_of
from tests.app.serving import get, request, serving
from tests.collectors.ingesting import LOG

NAME = re.compile(r"[a-z][a-z0-9_]*")
WHATIF = {  # what a what-if needs to answer
    "checkpoint": "save_s=60&mttf_s=10800",
    "serving": "model=llama3.1-8b&chip=v6e&chips=1&rate=1&input=100&output=20",
    "serving-plan": "model=llama3.1-8b&on=v6e&rate=1&input=100&output=20&ttft_s=2&tpot_s=0.1",
    "case": "name=cost",
    "speculation": "acceptance=0.7&draft=4",
    "placement": "topology=v5p:4x4x4&mesh=data=4,model=16&model=llama3.1-8b&batch=64&seq=2048",
    "collective": "topology=v5p:4x4x4&kind=all_reduce&bytes=1e9",
    "training": "model=llama3.1-8b&on=v5p&chips=64&tokens=1e11",
    "cost": "model=llama3.1-8b&on=v5p&chips=64&tokens=1e12&price=v5p=4",
    "goodput": "chips=1024&mttf_chip_h=50000&save_s=60&restart_s=300",
    "scaling": "points=64:1,128:1.9,256:3.6",
    "storage": "step_s=1&batch=1024&sample_bytes=1e5&hosts=8&latency_s=0.05&stream_bytes_per_s=1e8",
}
RUN_PARTS = ("", "/facts", "/tables", "/notes", "/timeline", "/timeline/search?q=a", "/timeline/event?event=0")
RUN_PARTS += ("/timeline/selection?start=0&end=100000000", "/timeline/arrows?event=0", "/timeline/step?number={step}")
RUN_PARTS += ("/query?sql=SELECT%201%20AS%20one", "/groups", "/timeline/ranks", "/timeline/marks")
PLAIN = ("/healthz", "/api/runs", "/api/bin", "/api/searches", "/api/baselines", "/api/fleet", "/api/budgets")
PLAIN += (
    "/api/digest",
    "/api/questions",
    "/api/questions/ledger/form",
    "/api/published",
    "/api/uploads",
    "/api/ingest",
)
PLAIN += (
    "/readyz",
    "/api/whoami",
    "/api/tokens",
    "/api/audit",
    "/api/capture",
    "/api/jobs",
    "/api/openapi.json",
    "/api/topology?spec=v5p:2x2x2",
)
PLAIN += ("/api/topology?spec=v5p:2x2x2&spec=v5p:4x4x4&fail=chip=0",)
PLAIN += tuple(f"/api/catalog/{kind}" for kind in ("chips", "models", "slices"))
PLAIN += ("/api/catalog/chips/v5p", "/api/catalog/models/llama3.1-8b", "/api/catalog/slices/v5p-8")
WIDE = re.compile(
    r"(?:get|patch)_(compare|several|history|fleet|digest|budgets|topology|whatif_\w+|runs_run_id(_facts)?|catalog\w*)"
)
FIXED = (
    "get_openapi_json",
    "get_questions_name_form",
    "get_uploads",
    "get_jobs",
    "job",
    "get_uploads_upload_id_files_file_id",
)  # written by hand
Asked = tuple[str, str, str]  # method and path of the document, name of the schema, address


def asked(runs: list[dict[str, Any]], paths: Iterable[str]) -> Iterator[Asked]:
    """Addresses of every GET of the document, over runs as `/api/runs` lists them."""
    known = set(paths)
    for address in (*PLAIN, *_of_runs(runs), *_of_two(runs), *_whatifs(known)):
        path = _path(address.partition("?")[0], known)
        shown = re.fullmatch(r"/api/(?:runs|models)/\{\w+\}/show/(\w+)", path)
        yield path, f"show_{shown[1]}" if shown else slug("GET", path), address


def _of_runs(runs: list[dict[str, Any]]) -> Iterator[str]:
    for run in runs:
        one = f"/api/runs/{run['run_id']}"
        yield from (f"{one}{part.format(step=1)}" for part in RUN_PARTS)
        yield from (f"{one}/show/{q.name}" for q in QUESTIONS)
    yield from (f"/api/models/llama3.1-8b/show/{name}" for name in OF_MODELS)


def _of_two(runs: list[dict[str, Any]]) -> Iterator[str]:
    a, b = (runs[0]["run_id"], runs[-1]["run_id"])
    yield from (f"/api/compare?a={a}&b={b}", f"/api/compare?a={b}&b={a}", f"/api/several?runs={a}&runs={b}")
    yield from (f"/api/compare?a={run['run_id']}&b={run['run_id']}" for run in runs[:4])
    yield "/api/history?metric=mfu&name=" + quote(runs[0]["name"])


def _whatifs(paths: set[str]) -> Iterator[str]:
    for path in sorted(p for p in paths if p.startswith("/api/whatif/")):
        yield f"{path}?{WHATIF.get(path.rpartition('/')[2], '')}"


def _path(address: str, known: set[str]) -> str:
    """The path of the document that an address belongs to, the one with the fewest places."""
    fitting = [p for p in known if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", p), address)]
    return min(fitting, key=lambda p: p.count("{"))


def learned(samples: list[Any], key: str = "", unit: str = "") -> dict[str, Any]:
    """A schema that all samples have: keys that all have are required; what is a word or a number may be null, for what
    is not known is."""
    unit = unit_of(key) or unit
    kinds = sorted({_kind(s) for s in samples} - {"null"})
    told: dict[str, Any] = {"type": [*kinds, "null"] if kinds and "null" in map(_kind, samples) else kinds}
    if objects := [s for s in samples if isinstance(s, dict)]:
        told |= _object(objects, key, unit)
    if lists := [s for s in samples if isinstance(s, list)]:
        elements = [e for one in lists for e in one]
        told["items"] = learned(elements, key, unit) if elements else {}
    if set(kinds) & {"number", "string", "boolean"} and "null" not in told["type"]:
        told["type"].append("null")
    if "number" in kinds and unit:
        told["unit"] = unit
    if len(told["type"]) == 1:
        told["type"] = told["type"][0]
    return told if kinds else {}


def widened(schema: Any, deep: bool = False) -> Any:
    """The same, but that more keys may come, and below the first level fewer."""
    if isinstance(schema, list):
        return [widened(one, deep) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = schema.get("additionalProperties") is False
    kept = {
        k: v for k, v in schema.items() if not (closed and (k == "additionalProperties" or (deep and k == "required")))
    }
    told = {
        k: {n: widened(v, True) for n, v in v.items()} if k == "properties" else widened(v, True)
        for k, v in kept.items()
    }
    return told if deep else {"description": "Seen in real answers; more keys may come.", **told}


def _object(samples: list[dict[str, Any]], key: str, unit: str) -> dict[str, Any]:
    names = sorted({n for s in samples for n in s})
    always = [n for n in names if all(n in s for s in samples)]
    if _any_name(samples, names, always):
        return {"additionalProperties": learned([v for s in samples for v in s.values()], key, unit)}
    parts = {n: learned([s[n] for s in samples if n in s], n, unit) for n in names}
    return {"properties": parts, "required": always, "additionalProperties": False} if names else {}


def _any_name(samples: list[dict[str, Any]], names: list[str], always: list[str]) -> bool:
    """Whether keys are names of what is told of, and not those of a record."""
    if not all(NAME.fullmatch(n) for n in names):
        return True
    values = {_kind(v) for s in samples for v in s.values()} - {"null"}
    return len(samples) > 1 and len(names) > 8 and len(always) < len(names) / 4 and len(values) == 1


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def changes(address: str) -> Iterator[tuple[str, Any]]:
    """(name of the schema, answer) of every route that changes something, and of those that tell of it: over a store
    that has nothing yet."""
    one, job, upload_id = _stored(address, "one", 2)
    other, _, _ = _stored(address, "other", 3)
    yield "post_uploads", {"upload_id": upload_id}
    yield from (("job", job), ("job", request("DELETE", f"{address}/api/jobs/{job['job_id']}")[1]))
    yield "get_jobs", get(f"{address}/api/jobs")[1]
    yield from _sent(address)
    number = ""
    for method, path, body in (
        ("PATCH", "/api/runs", {"runs": [one], "starred": True}),
        ("PATCH", f"/api/runs/{one}", {"name": "a", "tags": {"k": "v"}, "who": "ann"}),
        ("PATCH", f"/api/runs/{one}/facts", {"chip": "v5p"}),
        ("POST", f"/api/runs/{one}/notes", {"text": "x", "who": "ann"}),
        ("PATCH", f"/api/runs/{one}/notes/{{number}}", {"text": "y"}),
        ("GET", f"/api/runs/{one}/notes", None),
        ("PATCH", f"/api/runs/{one}/groups", {"groups": ["llm"]}),
        ("PATCH", f"/api/runs/{one}/groups", {"groups": []}),
        ("DELETE", f"/api/runs/{one}/notes/{{number}}", None),
        ("PUT", "/api/searches/all", {"query": "mfu>1", "columns": ["name", "mfu"], "sort": "-mfu"}),
        ("GET", "/api/searches", None),
        ("DELETE", "/api/searches/all", None),
        ("PUT", "/api/baselines/main", {"run": one, "why": "first"}),
        ("PATCH", "/api/baselines/main", {"run": other, "who": "ann"}),
        ("GET", "/api/baselines", None),
        ("GET", "/api/baselines/main", None),
        ("DELETE", "/api/baselines/main", None),
        ("GET", "/api/baselines/main", None),
        ("DELETE", f"/api/runs/{one}", None),
        ("GET", "/api/bin", None),
        ("POST", f"/api/runs/{one}/restore", None),
        ("DELETE", f"/api/runs/{one}?now=true", None),
    ):
        status, answer = request(method, address + path.replace("{number}", number), body)
        assert status == 200, (method, path, answer)
        if "/notes" in path and answer.get("notes"):
            number = str(answer["notes"][0]["id"])
        place = re.sub(r"/runs/[0-9a-f]{16}", "/runs/{run_id}", path.partition("?")[0])
        yield slug(method, place.replace("main", "{name}").replace("/all", "/{name}")), answer


def _sent(address: str) -> Iterator[tuple[str, Any]]:
    upload_id = request("POST", f"{address}/api/uploads")[1]["upload_id"]
    yield "put_upload_upload_id_name", request("PUT", f"{address}/upload/{upload_id}/a.log", b"x")[1]
    told = {"Tus-Resumable": "1.0.0", "Upload-Length": "3", "Upload-Metadata": "filename YQ=="}
    with contextlib.suppress(ValueError):
        request("POST", f"{address}/api/uploads/{upload_id}/files", b"", told)
    yield "get_uploads_upload_id_files", get(f"{address}/api/uploads/{upload_id}/files")[1]
    yield "get_uploads_upload_id", get(f"{address}/api/uploads/{upload_id}")[1]
    yield "delete_uploads_upload_id", request("DELETE", f"{address}/api/uploads/{upload_id}")[1]


def _stored(address: str, name: str, loss: int) -> tuple[str, dict[str, Any], str]:
    """(id of a new run, its job, its upload)."""
    upload_id = request("POST", f"{address}/api/uploads")[1]["upload_id"]
    request("PUT", f"{address}/upload/{upload_id}/train.log", LOG.replace("loss: 2", f"loss: {loss}").encode())
    job = request("POST", f"{address}/api/ingest", {"upload_id": upload_id, "name": name})[1]
    until_s = time.monotonic() + 120
    while job["state"] in ("waiting", "running") and time.monotonic() < until_s:
        time.sleep(0.2)
        job = get(f"{address}/api/jobs/{job['job_id']}")[1]
    return job["run_id"], job, upload_id


def write(store: Path) -> None:
    """Ask, and write what was learned."""
    found: dict[str, list[Any]] = {}
    with serving(store) as address:
        paths = get(f"{address}/api/openapi.json")[1]["paths"]
        runs = get(f"{address}/api/runs")[1]["runs"]
        for _, name, at in asked(runs, [p for p, told in paths.items() if "get" in told]) if runs else ():
            status, answer = get(address + at)
            print(status, at, "" if status == 200 else answer, file=sys.stderr)
            if status == 200 and not name.startswith("show_"):
                found.setdefault(name, []).append(answer)
        for name, answer in changes(address):
            found.setdefault(name, []).append(answer)
    for name, samples in found.items():
        if name in FIXED:
            continue
        schema = widened(learned(samples)) if WIDE.fullmatch(name) else learned(samples)
        (FOLDER / f"{name}.json").write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
