"""The OpenAPI document: it is one, it names every route and what each takes, and real answers have its schemas."""

import json
import re
import shutil
from html.parser import HTMLParser
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from app.manual.api_routes import routes
from app.openapi.document import FOLDER, OF_MODELS, document, operations
from app.openapi.page import page
from app.openapi.takes import TAKES
from app.questions import QUESTIONS
from app.whatif import WHATIFS
from tests.app.answer_forms import asked, changes, learned
from tests.app.serving import get, request, serving
from tests.app.test_tus import BEGIN, VERSION
from tests.app.test_tus import asked as tus_asked
from tests.bundled import bundled

UNKNOWN = "chipz"
NEEDS = {"runs": None, "text": "x", "run": "x", "query": "x"}  # what must be there before fields are looked at
SENT = {**VERSION, "Upload-Length": "3", "Upload-Metadata": BEGIN["Upload-Metadata"], "Upload-Offset": "0"}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return document(routes())


@pytest.fixture(scope="module")
def run_and_server(tmp_path_factory):
    store = tmp_path_factory.mktemp("api") / "store"
    run = bundled(tmp_path_factory, "training")
    shutil.copytree(run.folder.parent.parent, store)
    with serving(store) as address:
        for other in [r["run_id"] for r in get(f"{address}/api/runs")[1]["runs"] if r["run_id"] != run.run_id]:
            request("DELETE", f"{address}/api/runs/{other}?now=true")
        yield run.run_id, address


@pytest.fixture(scope="module")
def server(run_and_server):
    return run_and_server[1]


@pytest.fixture(scope="module")
def places(run_and_server):
    """What stands for each place of a path: things that are there."""
    run_id, server = run_and_server
    upload_id = request("POST", f"{server}/api/uploads")[1]["upload_id"]
    at = tus_asked(server, "POST", f"/api/uploads/{upload_id}/files", BEGIN)[1]["location"]
    request("POST", f"{server}/api/runs/{run_id}/notes", {"text": "a note"})
    request("PUT", f"{server}/api/baselines/first", {"run": run_id})
    request("PUT", f"{server}/api/searches/name", {"query": "mfu>1"})
    request("PUT", f"{server}/upload/{upload_id}/x.log", b"no log")
    job = request("POST", f"{server}/api/ingest", {"address": "file:///nowhere"})[1].get("job_id", "none")
    found = {"run_id": run_id, "model": "llama3.1-8b", "kind": "chips", "upload_id": upload_id, "number": "1"}
    token = request("POST", f"{server}/api/tokens", {"name": "one", "role": "viewer"})[1]
    request("POST", f"{server}/api/runs/{run_id}/timeline/marks", {"at": 5, "from": 0, "to": 10})
    found["token_id"] = token["token_id"]
    return {**found, "file_id": at.rpartition("/")[2], "job_id": job}


def filled(path: str, places: dict[str, str]) -> str:
    names = {"/api/baselines/{name}": "first", "/api/searches/{name}": "name", "/api/catalog/{kind}/{name}": "v5p"}
    names |= {"/upload/{upload_id}/{name}": "y.log", "/api/questions/{name}/form": "ledger"}
    return re.sub(r"\{(\w+)\}", lambda m: places.get(m[1]) or names[path], path)


def test_it_is_an_openapi_document_that_names_every_route(told):
    OpenAPIV31SpecValidator(told).validate()
    there = {f"{method} {path}" for method, path, _ in operations(routes())}
    listed = {f"{method.upper()} {path}" for path, one in told["paths"].items() for method in one}
    assert there == listed
    plain = {
        f"{method} {re.sub(r':path', '', r.path)}"
        for r in routes()
        for method in (r.methods or set()) - ({"HEAD"} if "GET" in (r.methods or ()) else set())
    }
    assert set(TAKES) <= plain, "a route that is not there takes nothing"
    assert {f"GET /api/whatif/{w.name}" for w in WHATIFS} | {
        f"GET /api/runs/{{run_id}}/show/{q.name}" for q in QUESTIONS
    } <= listed


def test_every_operation_says_what_it_does_and_has_a_name_of_its_own(told):
    every = [one for path in told["paths"].values() for one in path.values()]
    names = [one["operationId"] for one in every]
    assert len(names) == len(set(names)) and all(one["description"] for one in every)


def test_every_schema_is_one_and_is_used(told):
    text = json.dumps(told["paths"])
    for name, schema in told["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert f'"#/components/schemas/{name}"' in text, name
    assert {p.stem for p in FOLDER.glob("*.json")} <= set(told["components"]["schemas"])


def test_a_parameter_that_is_not_known_is_refused_by_every_route_with_those_that_are(told, server, places):
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            known = {p["name"] for p in one["parameters"] if p["in"] == "query"}
            at = f"{filled(path, places)}?{UNKNOWN}=4"
            status, _, text = tus_asked(server, method.upper(), at, SENT if "file" in path else {})
            assert status == 400, (method, path, status, text)
            if method == "head":
                continue
            error = json.loads(text)["error"]
            named = re.search(rf"no (?:parameter|option) '{UNKNOWN}' here; expected one of ([^.]*)", error)
            assert named, (method, path, error)
            said = set(named[1].split(", ")) - {"none"}
            assert said == known, (method, path)


def test_a_field_that_is_not_known_is_refused_by_every_route_that_changes_something(told, server, places):
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            content = one.get("requestBody", {}).get("content", {"application/json": {"schema": {"properties": {}}}})
            if method in ("get", "head", "options") or "application/json" not in content:
                continue
            known = content["application/json"]["schema"]["properties"]
            needs = {n: [places["run_id"]] if n == "runs" else v for n, v in NEEDS.items() if n in known}
            headers = {"Content-Type": "application/json", **(VERSION if "file" in path else {})}
            body = json.dumps({**needs, UNKNOWN: 4}).encode()
            status, _, text = tus_asked(server, method.upper(), filled(path, places), headers, body)
            error = json.loads(text)["error"]
            assert status == 400 and (UNKNOWN in error or "no field is taken" in error), (method, path, error)
            unnamed = [name for name in known if name not in error and name not in ("runs", "who")]
            assert unnamed == [], (method, path, error)


def test_the_answers_of_a_real_server_about_the_bundled_run_have_its_schemas(told, run_and_server):
    run_id, server = run_and_server
    store = {"components": told["components"]}
    wrong, seen = [], set()
    gets = [path for path, one in told["paths"].items() if "get" in one]
    runs = [r for r in get(f"{server}/api/runs")[1]["runs"] if r["run_id"] == run_id]
    for path, name, at in asked(runs, gets):
        status, answer = get(server + at)
        seen.add(path)
        schema = {"$ref": f"#/components/schemas/{name if status == 200 else 'error'}", **store}
        wrong += [f"{at}: {e.json_path}: {e.message[:160]}" for e in Draft202012Validator(schema).iter_errors(answer)]
    assert wrong == []
    files = {p for p in gets if "application/json" not in told["paths"][p]["get"]["responses"]["200"]["content"]}
    assert set(gets) - files - seen <= {p for p in gets if re.search(r"\{(file_id|job_id|upload_id|name)\}", p)}


def test_the_answers_of_what_changes_something_have_their_schemas_too(told, server):
    store, wrong = {"components": told["components"]}, []
    for name, answer in changes(server):
        schema = {"$ref": f"#/components/schemas/{name}", **store}
        wrong += [f"{name}: {e.json_path}: {e.message[:160]}" for e in Draft202012Validator(schema).iter_errors(answer)]
    assert wrong == []


def test_a_question_is_told_of_models_where_a_model_alone_answers(server):
    answered = {q.name for q in QUESTIONS if get(f"{server}/api/models/llama3.1-8b/show/{q.name}")[0] == 200}
    assert set(OF_MODELS) == answered


def test_a_schema_that_was_learned_holds_of_its_samples_and_of_no_other_record():
    samples = [{"a_s": 1, "b": [{"c": None}, {"c": "x"}]}, {"a_s": 1.5, "b": []}]
    schema = learned(samples)
    assert all(Draft202012Validator(schema).is_valid(s) for s in samples)
    assert schema["properties"]["a_s"] == {"type": ["number", "null"], "unit": "s"}
    for other in ({"a_s": "1", "b": []}, {"a_s": 1}, {"a_s": 1, "b": [], "d": 1}, {"a_s": 1, "b": [{"c": 3}]}):
        assert not Draft202012Validator(schema).is_valid(other)


class Loads(HTMLParser):
    """What a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe", "object") or any(
            n in ("src", "srcset") or n.startswith("on") for n, _ in attrs
        ):
            self.found.append(tag)


def test_the_page_names_every_operation_and_loads_nothing(told, server):
    text = page(told)
    reader = Loads()
    reader.feed(text)
    assert reader.found == [] and "url(" not in text and "@import" not in text
    for path in told["paths"]:
        assert f"<code>{path}</code>" in text
    status, headers, shown = tus_asked(server, "GET", "/api/", {})
    assert status == 200 and shown == text and headers["content-security-policy"].startswith("default-src 'none'")
    assert get(f"{server}/api/openapi.json")[1] == json.loads(json.dumps(told))
