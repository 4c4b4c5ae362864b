"""What agents can ask: schemas made of the options' records, answers that are those of the API, sentences for what
cannot be."""

import json
from pathlib import Path

import anyio
import jsonschema
import pytest

from app.mcp import resources
from app.mcp.base import CUT
from app.mcp.calling import call
from app.mcp.schemas import of_option, schema
from app.mcp.server import DEFECT, MOST_WAITING, Asking
from app.mcp.tools import TOOLS, tool
from app.questions import QUESTIONS
from app.questions.asking import answer_dict, ask
from app.questions.findings import FINDINGS
from app.whatif import WHATIFS
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from errors.numbers import Number
from errors.options import Option
from runs.registry import Registry
from runs.run import Run
from tests.app import made_runs, served_runs
from tests.bundled import bundled

MOST = 50_000
TOOL = pytest.mark.parametrize("asked", TOOLS, ids=lambda t: t.name)
NESTED = [(owner, o) for t in TOOLS for owner, options in (t.choices or {}).items() for o in options]
EVERY = [*((t.name, o) for t in TOOLS for o in (*t.options, *CUT)), *NESTED]
PROBES = (-1e29, -2, -1, 0, 1e-12, 0.5, 1, 1.0, 2, 7, 100, 501, 1e6, 1e9, 1e12, 1e13, 1e18, 1e24, 1e29, True, False)
PROBES += ("", "nothing of that", "1e3", [], ["x"], {})


@pytest.fixture
def run(place: Workspace) -> Run:
    return made_runs.interrupted(place.store)


@pytest.fixture(scope="module")
def training(tmp_path_factory) -> tuple[Workspace, Run]:
    run = bundled(tmp_path_factory, "training")
    return _beside(run, tmp_path_factory.mktemp("registry")), run


@pytest.fixture(scope="module")
def serving(tmp_path_factory) -> tuple[Workspace, Run]:
    run = bundled(tmp_path_factory, "serving-client")
    return _beside(run, tmp_path_factory.mktemp("registry")), run


def _beside(run: Run, folder: Path) -> Workspace:
    from runs.store import Store

    return Workspace(Store(run.folder.parents[1]), Registry(folder / "registry.db"))


def asked_of(name: str, place: Workspace, /, **given) -> dict:
    return json.loads(call(tool(name), given, place))


@TOOL
def test_a_tool_is_described_for_who_has_to_choose(asked):
    made = schema(asked)
    jsonschema.Draft202012Validator.check_schema(made)
    assert made["type"] == "object" and not set(made) & {"oneOf", "anyOf", "allOf"}, "models' APIs take none at the top"
    assert set(asked.needed) == set(made["required"]) <= set(made["properties"])
    assert all(kind["description"] for kind in made["properties"].values())
    assert len(asked.help) > 40 and len(json.dumps(made)) < 20_000


@pytest.mark.parametrize(("owner", "option"), EVERY, ids=lambda x: x if isinstance(x, str) else x.name)
def test_a_schema_allows_what_its_option_takes(owner, option):
    made = of_option(option)
    kinds = made.get("items", made)
    for probe in PROBES:
        if kinds["type"] in ("number", "integer") and isinstance(probe, str | bool):
            continue  # a number may be given as text, which no schema needs to know
        one = jsonschema.Draft202012Validator({k: v for k, v in kinds.items() if k not in ("default", "description")})
        assert one.is_valid(probe) == _takes(option, probe) or _read_on(option, probe), (probe, made)
    if "default" in made and not option.several:
        assert option.parse(made["default"]) == option.default
    assert option.help in made["description"]


def _takes(option: Option, probe: object) -> bool:
    one = Option(option.name, option.kind, option.default, option.help)
    if isinstance(probe, list | dict) or (isinstance(probe, bool) != (option.switch)):
        return False
    if not isinstance(probe, str) and not isinstance(option.kind, Number) and not option.switch:
        return False
    try:
        one.parse(probe)
    except QuestionError:
        return False
    return True


def _read_on(option: Option, probe: object) -> bool:
    """Text of a form that JSON Schema cannot tell: times."""
    return isinstance(probe, str) and hasattr(option.kind, "read") and not isinstance(option.kind, Number)


@pytest.mark.parametrize("name", ["show", "whatif", "whatif_training"])
def test_options_of_several_are_told_with_who_takes_them(name):
    made = schema(tool(name))["properties"]["options"]["properties"]
    for owner, options in (tool(name).choices or {}).items():
        for option in options:
            either = made[option.name].get("anyOf", [made[option.name]])
            own = of_option(option)
            (fit,) = [k for k in either if {**own, "description": ""} == {**k, "description": ""}]
            said = dict(reversed(part.split(": ", 1)) for part in fit["description"].split(" | "))
            owners = said[own["description"]]
            assert owner in owners.split(", ") or owners.endswith("...")
    assert all(not o.local for o in (o for options in tool(name).choices.values() for o in options)), "no file of ours"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
@pytest.mark.parametrize("which", ["training", "serving"])
def test_every_answer_is_the_apis_or_a_part_of_it(question, which, request):
    place, run = request.getfixturevalue(which)
    try:
        expected = json.loads(json.dumps(answer_dict(run, ask(question, run, {}, place.registry))))
    except ChipledgerError as e:
        with pytest.raises(type(e)) as error:
            asked_of("show", place, run=run.run_id, question=question.name)
        assert str(error.value) == str(e)
        return
    whole = asked_of("show", place, run=run.run_id, question=question.name, tokens=MOST)
    assert whole["says"] and whole["links"]["json"] == f"/api/runs/{run.run_id}/show/{question.name}"
    if "left_out" not in whole:
        assert whole["answer"] == expected
    for tokens in (500, 3000):
        made = call(tool("show"), {"run": run.run_id, "question": question.name, "tokens": tokens}, place)
        assert len(made.encode()) <= tokens * 4
        assert set(json.loads(made)["answer"]) <= set(expected)
    for key, value in expected.items():
        told = asked_of("show", place, run=run.run_id, question=question.name, part=f"/{key}", tokens=MOST)
        assert told["answer"] == value or told["left_out"][0]["part"].startswith(f"/{key}")


def test_options_reach_the_answer_and_its_links(place, run):
    told = asked_of("show", place, run=run.run_id, question="ledger", options={"usd_per_chip_hour": 3})
    assert told["answer"] == answer_dict(run, ask(_question("ledger"), run, {"usd_per_chip_hour": 3}, place.registry))
    assert told["links"] == {
        "page": f"/ledger?run={run.run_id}&usd_per_chip_hour=3",
        "json": f"/api/runs/{run.run_id}/show/ledger?usd_per_chip_hour=3",
    }
    assert asked_of("findings", place, run=run.run_id, usd_per_chip_hour=3)["answer"]["usd"]
    assert asked_of("findings", place, run=run.run_id, floor=0.5)["answer"]["floor"] == 0.5


def _question(name: str):
    return next(q for q in QUESTIONS if q.name == name)


def test_what_figures_mean_is_told_where_asked(place, run):
    terms = asked_of("show", place, run=run.run_id, question="steps", explain=True)["answer"]["terms"]
    assert terms == [t.to_dict() for t in _question("steps").terms]
    assert "terms" not in asked_of("show", place, run=run.run_id, question="steps")["answer"]


def test_a_model_alone_is_asked_by_its_name(place):
    told = asked_of("show", place, run="model:llama-3.1-8b", question="padding", options={"mxu": 256})
    assert told["answer"]["model"] == "llama3.1-8b"
    assert told["links"]["json"] == "/api/models/llama3.1-8b/show/padding?mxu=256"


def test_runs_are_searched_and_turned_over(place):
    ids = [made_runs.interrupted(place.store, name=f"run {i} {'odd' if i % 2 else 'even'}").run_id for i in range(7)]
    listed = asked_of("runs", place, rows=3)
    assert (listed["answer"]["pages"], listed["answer"]["found"], len(listed["answer"]["runs"])) == (3, 7, 3)
    every = [r for page in (1, 2, 3) for r in asked_of("runs", place, rows=3, page=page)["answer"]["runs"]]
    assert sorted(r["run_id"] for r in every) == sorted(ids) and every[0]["links"]["json"].startswith("/api/runs/")
    found = asked_of("runs", place, search="ODD v5p", sort="name")
    assert found["answer"]["found"] == 3
    assert found["links"] == {"page": "/?q=ODD%20v5p&sort=name", "json": "/api/runs?q=ODD%20v5p&sort=name"}
    assert listed["links"] == {"page": "/", "json": "/api/runs"}
    assert asked_of("runs", place, search="nothing")["answer"] == {"runs": [], "page": 1, "pages": 1, "found": 0}
    with pytest.raises(QuestionError, match="page 4 of the runs; expected 1 to 3"):
        call(tool("runs"), {"rows": 3, "page": 4}, place)


def test_links_of_a_fleet_lead_to_what_was_asked_of_it(place, run):
    links = asked_of("fleet", place, by="tag:team", every="month", since="2000-01-01", search="chip:v5p", runs=3)[
        "links"
    ]
    asked = "?by=tag:team&search=chip:v5p&since=2000-01-01&every=month&runs=3"
    assert links == {"page": f"/fleet{asked}", "json": f"/api/fleet{asked}"}
    assert asked_of("fleet", place)["links"] == {"page": "/fleet", "json": "/api/fleet"}


def test_a_run_that_cannot_be_read_is_listed_without_its_folder(place, run):
    (run.folder / "run.json").write_text("{")
    text = call(tool("runs"), {}, place)
    (row,) = json.loads(text)["answer"]["runs"]
    assert row["run_id"] == run.run_id and row["problem"] and str(place.store.root) not in text


def test_tables_and_their_rows(place, run):
    told = asked_of("query", place, run="llama-70b v5p")["answer"]["tables"]
    assert {t["name"]: t["rows"] for t in told} == {k: v for k, v in run.manifest.tables.items() if v}
    assert all(c["meaning"] for t in told for c in t["columns"])
    told = asked_of("query", place, run=run.run_id, sql="select max(step) as last from steps")
    assert told["answer"]["columns"] == ["last"] and told["answer"]["rows"] == [[250]]
    assert told["links"]["json"].endswith("?sql=select%20max%28step%29%20as%20last%20from%20steps")
    cut = asked_of("query", place, run=run.run_id, sql="from steps", rows=100, tokens=500)
    assert cut["answer"]["cut"] and cut["left_out"][0]["part"] == "/rows" and cut["left_out"][0]["of"] == 100


def test_what_ifs_and_networks_are_those_of_the_api(place, run):
    for whatif, given in (("checkpoint", {"save_s": 30, "mttf_s": 10000}), ("checkpoint", {"run": run.run_id})):
        asked = next(w for w in WHATIFS if w.name == whatif)
        expected = asked.told(asked.answer(asked.from_query([(k, str(v)) for k, v in given.items()]), place))
        told = asked_of("whatif", place, name=whatif, options=given, tokens=MOST)
        assert told["answer"] == json.loads(json.dumps(expected))
        assert told["links"]["json"].startswith(f"/api/whatif/{whatif}?") and told["links"]["page"]
    one = asked_of("topology", place, spec=["v5e:4x4"])
    two = asked_of("topology", place, spec=["v5e:4x4", "v5e:4x8"], fail=["chip=5"], tokens=MOST)
    assert one["answer"]["spec"] == "v5e:4x4" and [r["spec"] for r in two["answer"]] == ["v5e:4x4", "v5e:4x8"]
    assert two["links"]["json"] == "/api/topology?spec=v5e:4x4&spec=v5e:4x8&fail=chip%3D5"


def test_two_served_runs_are_compared(serving, place):
    a, b = (served_runs.busy(place.store, f"seed {seed}", seed=seed).run_id for seed in (3, 4))
    told = asked_of("compare", place, a=a, b=b)
    assert told["answer"]["differences"] and told["links"]["page"] == f"/compare?run={a}&with={b}"
    with pytest.raises(ChipledgerError, match="is both runs"):
        asked_of("compare", serving[0], a=serving[1].run_id, b=serving[1].run_id)


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("findings", None, "no 'run' is given; expected id or name of a run, or the beginning of either"),
        ("findings", [], "the arguments are a list; expected an object"),
        ("findings", {"run": ""}, "no 'run' is given"),
        ("findings", {"run": "nope"}, "no run 'nope' in this store"),
        ("findings", {"run": {"id": 1}}, "'run' is an object; expected text"),
        ("findings", {"run": ["a", "b"]}, "'run' is given twice"),
        ("findings", {"run": "a\0b"}, "characters that no text has"),
        ("findings", {"run": "\ud800"}, "characters that no text has"),
        ("findings", {"run": "../../../etc/passwd"}, "no run"),
        ("findings", {"run": "é" * 5000}, "no run"),
        ("findings", {"run": "live:" + "a" * 5000}, "no live run"),
        ("findings", {"run": "RUN", "floor": 2}, "--floor 2; expected a share from 0 to 1"),
        ("findings", {"run": "RUN", "lodger": 2}, "no parameter 'lodger' here"),
        ("findings", {"run": "RUN", "tokens": 1}, "--tokens 1; expected a whole number from 500 to 50,000"),
        ("findings", {"run": "RUN", "tokens": 10**400}, "--tokens 'a number of more than 30 digits'"),
        ("findings", {"run": "RUN", "tokens": float("nan")}, "--tokens 'nan'"),
        ("findings", {"run": "RUN", "start": -1}, "--start -1"),
        ("findings", {"run": "RUN", "start": 10**11}, "that part has 12 entries"),
        ("findings", {"run": "RUN", "part": "/nothing"}, "the answer has no part '/nothing'; expected one of /run_id"),
        ("show", {"run": "RUN", "question": "lodger"}, "--question 'lodger'; expected one of findings, ledger"),
        ("show", {"run": "RUN"}, "no 'question' is given"),
        ("show", {"run": "RUN", "question": "ledger", "options": "x"}, "options text; expected an object"),
        (
            "show",
            {"run": "RUN", "question": "ledger", "options": {"x": 1}},
            "no parameter 'x' here; expected one of usd",
        ),
        ("show", {"run": "RUN", "question": "goodput", "options": {"bins": 3.7}}, "bins=3.7; expected a whole number"),
        ("show", {"run": "RUN", "question": "goodput", "options": {"rules": []}, "x": 1}, "no parameter 'x' here"),
        ("show", {"run": "RUN", "question": "latency"}, "."),
        ("show", {"run": "model:nothing", "question": "padding"}, "no model is called 'nothing'"),
        ("show", {"run": "model:/etc/passwd", "question": "padding"}, "no model is called"),
        ("show", {"run": "model:llama3.1-8b", "question": "findings"}, "findings are about a run"),
        ("query", {"run": "RUN", "sql": "drop table steps"}, "SQL"),
        ("query", {"run": "RUN", "sql": "select * from read_csv('/etc/passwd')"}, "read_csv cannot be read from here"),
        ("query", {"run": "RUN", "sql": "x" * 20_000}, "up to 16,000 characters"),
        ("query", {"run": "RUN", "sql": "select 1", "timeout": 1e9}, "--timeout 1000000000; expected a number"),
        ("whatif", {"name": "else"}, "--name 'else'; expected one of checkpoint"),
        ("whatif", {"name": "serving", "options": {"trace": "/etc/passwd"}}, "no parameter 'trace' here"),
        ("whatif", {"name": "checkpoint", "options": {"run": "nope"}}, "no run 'nope'"),
        ("compare", {"a": "RUN", "b": "RUN"}, "is both runs"),
        ("compare", {"a": "RUN", "b": "RUN", "load_a": "1"}, "no record of single requests"),
        ("topology", {"spec": []}, "no 'spec' is given"),
        ("topology", {"spec": ["v5p:4x4x8"] * 5}, "5 times 'spec'; expected at most 4"),
        ("topology", {"spec": ["v5p:4x4x8"], "fail": ["chip=5"] * 33}, "33 times 'fail'"),
        ("topology", {"spec": ["graph:/etc/passwd"]}, "is no edge list of this store"),
        ("topology", {"spec": ["v5p:4x4x8"], "fail": ["chip=999"]}, "has chips 0 to 127"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(place, run, name, given, sentence):
    named = given if not isinstance(given, dict) else {k: run.run_id if v == "RUN" else v for k, v in given.items()}
    with pytest.raises(ChipledgerError) as error:
        call(tool(name), named, place)
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_a_value_may_be_given_as_text_or_alone_where_several_may_be(place, run):
    by_number = call(tool("findings"), {"run": run.run_id, "floor": 0.5}, place)
    assert call(tool("findings"), {"run": run.run_id, "floor": "0.5"}, place) == by_number
    assert call(tool("findings"), {"run": [run.run_id], "floor": [0.5], "part": None}, place) == by_number
    assert call(tool("topology"), {"spec": "v5e:4x4"}, place) == call(tool("topology"), {"spec": ["v5e:4x4"]}, place)


def test_all_that_is_listed_can_be_read(place, run):
    listed = [r.uri for r in resources.listed()]
    assert len(listed) == len(set(listed)) > len(QUESTIONS) + len(WHATIFS)
    read = {uri: json.loads(json.dumps(resources.read(uri, place))) for uri in listed}
    assert read["chipledger://questions/ledger"]["terms"] and read["chipledger://whatifs/checkpoint"]["options"]
    assert read["chipledger://tables/steps"]["columns"][0]["meaning"]
    told = resources.read(f"chipledger://runs/{run.run_id}", place)
    assert told["facts"]["chip"]["value"] == "TPU v5p" and {"name": "steps", "rows": 260} in told["tables"]
    forms = {t.uri for t in resources.templates()}
    assert all(f"{uri.rpartition('/')[0]}/{{name}}" in forms for uri in listed)


@pytest.mark.parametrize(
    "uri",
    ["", "x", "chipledger://", "chipledger://[", "chipledger://runs", "chipledger://runs/nope", "file:///etc/passwd"]
    + [
        "chipledger://runs/..%2f..%2fetc",
        "chipledger://tables/x",
        "chipledger://questions/x",
        "chipledger://whatifs/x",
    ],
)
def test_nothing_else_can_be_read(place, uri):
    with pytest.raises(QuestionError):
        resources.read(uri, place)


def test_findings_lead_to_the_pages_that_show_them(training):
    place, run = training
    told = asked_of("findings", place, run=run.run_id)
    assert told["says"] == FINDINGS.verdict(ask(FINDINGS, run, {}, place.registry))
    for found in told["answer"]["findings"]:
        assert told["links"][found["question"]] == f"/{found['question']}?run={run.run_id}"


def test_more_calls_than_may_wait_are_refused_and_the_others_answered(place, run):
    async def ask(asking: Asking, said: list) -> None:
        said.append(await asking.tool("findings", {"run": run.run_id}))

    async def all_at_once() -> list[tuple[str, bool]]:
        asking, said = Asking(place), []
        async with anyio.create_task_group() as group:
            for _ in range(MOST_WAITING + 6):
                group.start_soon(ask, asking, said)
        said.append(await asking.tool("runs", {}))
        return said

    said = anyio.run(all_at_once)
    refused = [text for text, failed in said if failed]
    assert len(refused) == 6 and len(said) == MOST_WAITING + 7 and not said[-1][1]
    assert set(refused) == {f"{MOST_WAITING} calls are waiting already. Ask again when they are answered."}


def test_a_defect_is_told_without_its_traceback(place, run, monkeypatch, capsys):
    def breaks(*given: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("app.mcp.server.call", breaks)

    async def ask() -> tuple[str, bool]:
        return await Asking(place).tool("runs", {})

    assert anyio.run(ask) == (DEFECT, True)
    assert "RuntimeError: secret" in capsys.readouterr().err


def test_every_whatif_can_be_asked_by_one_tool():
    asked = [name for t in TOOLS if t.name.startswith("whatif") for name in t.choices or {}]
    assert sorted(asked) == sorted(w.name for w in WHATIFS)
