"""What a person may not see does not exist for them: asked through every door, nothing tells of it."""

import asyncio
import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

import app
from app import baselines, promises, sharing
from app.follow.alerts.evaluate import alerts_told
from app.identity import asking
from app.identity.asking import acting_as, who
from app.identity.base import Role
from app.library import changes
from app.library.mirroring import mirror
from app.library.rows import library
from app.library.table import table
from app.mcp.calling import call
from app.mcp.mounted import Mounted
from app.mcp.server import Asking
from app.mcp.tools import TOOLS, tool
from app.serve.api import METHODS, Api
from app.serve.jobs import MOST_WAITING, Jobs
from app.serve.uploads import Uploads
from app.serve.xprof import Xprof
from app.workspace import STORE_VARIABLE, workspace
from errors import ChipledgerError, InputError, QuestionError
from runs.job_book import USUAL, Wanted
from runs.share_book import MARK, ShareBook
from tests.app import made_runs
from tests.app.groups_store import GROUPS, OPEN, hidden_words, made, person

QUOKKA, WOMBAT, STRANGER = person("quokka"), person("wombat"), person()
BOTH = person("quokka", "wombat", name="both")
ADMIN = person(role=Role.ADMIN, name="root")
PEOPLE = (QUOKKA, WOMBAT, STRANGER, BOTH, ADMIN)
NAMED = {one.name: one for one in PEOPLE}
MAIN = str(Path(app.__file__).parent / "main.py")
NOBODYS = "f" * 64  # the id of no run
AS = "x-test-as"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("groups") / "store"
    return root, made(root)


@pytest.fixture(scope="module")
def teams(store):
    return store[1]


@pytest.fixture
def place(store, monkeypatch):
    monkeypatch.setenv(STORE_VARIABLE, str(store[0]))
    return workspace()


@pytest.fixture(scope="module")
def api(store):
    place = workspace(str(store[0]))
    jobs = Jobs()
    for name in NAMED:
        asked = {"what": "ingest", "arguments": ["ingest"], "about": {"title": f"{name}secret title"}}
        jobs._book.ask(Wanted(job_id=f"job{name}secret", who=name, priority=USUAL, **asked), MOST_WAITING)
        with jobs._book._connect() as db:
            failed = (f"{name}secret error", f"job{name}secret")
            db.execute("update jobs set state = 'failed', error = ?, ended_ns = 1 where job_id = ?", failed)
    return Api(place, jobs).routes() + Xprof(place).routes()


class AsAsked:
    """As the guard does: whoever a request names asks."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        name = dict(scope["headers"]).get(AS.encode(), b"").decode()
        with acting_as(NAMED[name]):
            return await self._app(scope, receive, send)


@pytest.fixture(scope="module")
def client(api):
    return TestClient(AsAsked(Starlette(routes=api)), base_url="http://127.0.0.1", follow_redirects=False)


def said(answer, asked: str = "") -> str:
    """All that an answer tells, but for what was asked."""
    text = f"{answer.status_code} {dict(answer.headers)} {answer.text}"
    return text.replace(asked, "ASKED") if asked else text


def held_to(text: str, words) -> None:
    for word in words:
        assert word not in text, f"{word}: {text[max(0, text.find(word) - 200) : text.find(word) + 100]}"


PARAMETERS = {  # of routes that ask nothing without
    "/api/compare": [{"a": "everyonessecret renamed", "b": "everyonessecret live"}],
    "/api/compare/report": [{"a": "everyonessecret renamed", "b": "everyonessecret live"}],
    "/api/several": [{"q": "secret"}, {"q": "tag:owner", "curve": "loss"}, {"group": "quokkasecret project"}],
    "/api/history": [{"metric": "goodput"}, {"metric": "goodput", "search": "secret"}],
    "/api/runs": [{}, {"q": "secret"}, {"q": "quokka wombat"}, {"q": "-kind:serving", "archived": "true"}],
    "/api/topology": [{"spec": "v5e:4x4"}],
}
LISTS = [
    "/api/runs", "/api/bin", "/api/baselines", "/api/searches", "/api/fleet", "/api/budgets", "/api/digest",
    "/api/several", "/api/history", "/api/compare", "/api/jobs", "/api/uploads",
]  # fmt: skip


@pytest.mark.parametrize("asks", PEOPLE, ids=lambda p: p.name)
@pytest.mark.parametrize("path", LISTS)
def test_no_list_tells_of_what_is_hidden(client, teams, asks, path):
    words = [
        *hidden_words(teams, asks),
        *(f"{p.name}secret title" for p in PEOPLE if p is not asks and asks is not ADMIN),
    ]
    for given in PARAMETERS.get(path, [{}]):
        held_to(said(client.get(path, params=given, headers={AS: asks.name}), "quokkasecret project"), words)


def test_whoever_may_see_a_run_is_told_of_it(client, teams):
    """Else an answer that tells nothing would pass for one that hides."""
    for asks in PEOPLE:
        for path in ("/api/runs", "/api/bin", "/api/baselines", "/api/several", "/api/history"):
            for given in PARAMETERS.get(path, [{}])[:1]:
                text = client.get(path, params=given, headers={AS: asks.name}).text
                for team in teams.values():
                    assert (team.word in text) == (not hidden_words({team.group: team}, asks)), (path, asks.name)
        told = [job["title"] for job in client.get("/api/jobs", headers={AS: asks.name}).json()["jobs"]]
        everyones = [f"{name}secret title" for name in reversed(NAMED)]
        assert told == (everyones if asks is ADMIN else [f"{asks.name}secret title"])


def of_a_run(api):
    """(method, path) of every route with a run or a job in it."""
    found = [
        (m, r.path)
        for r in api
        if isinstance(r, Route) and "{run_id}" in r.path
        for m in sorted((r.methods or set()) - {"HEAD"})
    ]
    assert len(found) > 20 and ("PATCH", "/api/runs/{run_id}/groups") in found
    return found


BODIES = [{"name": "x"}, {"groups": ["quokka"]}]
FILLED = {"analysis": "ledger", "number": "1", "rest:path": "/", "rest": ""}


def alike(text: str) -> str:
    """Without what is suggested: that follows from the letters of a name, and is held to what is hidden by itself."""
    return re.sub(r"'content-length': '\d+'|Did you mean [^?]*\? ", "", text)


def test_a_hidden_run_is_answered_as_one_that_is_not_there(client, api, teams):
    """By id, the beginning of one, name, former name, live name: of each route the same words and status."""
    hidden, asks = teams["quokka"], WOMBAT
    others = (f"{hidden.word} renamed", f"live:{hidden.word}-live")
    for method, path in of_a_run(api):
        for name in (hidden.run, hidden.binned, hidden.run[:12], *others):
            none = NOBODYS[: len(name)] if name not in others else name.replace(hidden.word, "zebrassecret")
            told = {}
            for asked in (name, none):
                at = path.format(run_id=asked, **FILLED) if "rest:path" not in path else f"/xprof/{asked}/app/"
                told[asked] = list[str]()
                for body in BODIES if method in ("PATCH", "POST") else [None]:
                    answer = client.request(method, at, json=body, headers={AS: asks.name})
                    bare = asked.removeprefix("live:")
                    text = said(answer, quote(bare)).replace(bare, "ASKED")
                    told[asked].append(text if name in hidden.ids else alike(text))
                    assert answer.status_code < 500
            assert told[name] == told[none], (method, path, name)
            held_to("\n".join(told[name]), hidden_words(teams, asks))


def test_what_is_nearly_the_name_of_a_hidden_run_is_not_suggested(client, teams):
    for near in ("quokkasecret renamad", "quokkasecre", "live:quokkasecret-liv", "qokkasecret run"):
        for path in (f"/api/runs/{near}", f"/api/compare?a={near}&b={near}x", f"/api/several?runs={near},{near}z",
                     f"/api/whatif/checkpoint?run={near}", "/api/baselines/quokkasecret%20baselin",
                     "/api/baselines/quokkasecret%20baseline", "/api/baselines/quokkasecret%20former"):  # fmt: skip
            text = client.get(path, headers={AS: "wombat"}).text
            for asked in (
                near.removeprefix("live:"),
                f"{near}x",
                f"{near}z",
                near,
                "quokkasecret baseline",
                "quokkasecret baselin",
                "quokkasecret former",
            ):
                text = text.replace(asked, "")
            held_to(text, hidden_words(teams, WOMBAT))
            assert "quokkasecret" in client.get(path, headers={AS: "quokka"}).text or "whatif" in path


def test_a_job_of_another_is_no_job(client):
    mine, none = "jobquokkasecret", "jobnobodysecret"
    for method in ("GET", "DELETE"):
        told = {
            name: said(client.request(method, f"/api/jobs/{name}", headers={AS: "wombat"}), name)
            for name in (mine, none)
        }
        assert told[mine] == told[none] and told[mine].startswith("404")
    assert client.get(f"/api/jobs/{mine}", headers={AS: "quokka"}).json()["error"] == "quokkasecret error"


TOOL_ARGUMENTS = {
    "runs": [{}, {"search": "secret"}, {"history": "goodput"}, {"baseline": "quokkasecret baseline"}],
    "compare_many": [{"q": "secret"}, {"runs": "quokkasecret renamed,wombatsecret renamed,numbatsecret renamed"}],
    "compare": [{"a": "baseline:quokkasecret baseline", "b": "wombatsecret renamed"}],
    "fleet": [{}],
    "show": [
        {"run": "quokkasecret renamed", "question": "ledger"},
        {"run": "quokkasecret rename", "question": "ledger"},
    ],
    "query": [{"run": "quokkasecret renamed", "sql": "select 1"}],
    "facts": [{"run": "quokkasecret ren"}],
    "findings": [{"run": "live:quokkasecret-live"}],
    "topology": [{"spec": "v5e:4x4"}],
    "whatif": [{"name": "checkpoint", "options": {"run": "quokkasecret renamed"}}],
    "whatif_training": [{"name": "scaling", "options": {"run": "quokkasecret renamed"}}],
}


@pytest.mark.parametrize("asks", [WOMBAT, STRANGER], ids=lambda p: p.name)
def test_no_tool_of_agents_tells_of_what_is_hidden(place, teams, asks):
    assert {t.name for t in TOOLS} == TOOL_ARGUMENTS.keys()
    for name, several in TOOL_ARGUMENTS.items():
        for given in several:
            with acting_as(asks):
                try:
                    text = call(tool(name), given, place)
                except ChipledgerError as e:
                    text = str(e)
            for value in re.findall(r"\w+secret[\w -]*", json.dumps(given)):
                text = text.replace(value, "ASKED")
            held_to(text, hidden_words(teams, asks))


def test_agents_are_answered_in_threads_as_who_asks(place, teams):
    async def asked() -> str:
        with acting_as(WOMBAT):
            return (await Asking(place).tool("runs", {}))[0] + await Asking(place).resource(
                f"chipledger://runs/{teams['wombat'].run}"
            )

    text = asyncio.run(asked())
    assert "wombatsecret" in text
    held_to(text, hidden_words(teams, WOMBAT))


def test_agents_over_http_are_answered_as_who_asks(place, teams):
    mounted = Mounted(place)
    served = AsAsked(Starlette(routes=mounted.routes(), lifespan=lambda app: mounted.running()))
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "runs", "arguments": {}}}
    heads = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    with TestClient(served, base_url="http://127.0.0.1:8501") as client:
        for asks in (QUOKKA, WOMBAT, QUOKKA):
            answer = client.post("/mcp", json=message, headers={AS: asks.name, **heads})
            assert answer.status_code == 200 and f"{asks.name}secret" in answer.text
            held_to(answer.text, hidden_words(teams, asks))


def shown(page: str, asks, monkeypatch) -> str:
    """All texts and data that a page sends to the browser. Who asks is told by the session, as of a served page."""
    monkeypatch.setattr(asking, "_pages", [lambda: asks])
    at = AppTest.from_file(MAIN, default_timeout=60).run()
    if page != "library":
        at.switch_page(f"pages/{page}/page.py").run()
    assert not at.exception, at.exception
    return repr(at)


@pytest.mark.parametrize("page", ["library", "alerts", "promises", "fleet", "several", "compare"])
def test_pages_show_what_the_person_sees_and_no_more(place, teams, page, monkeypatch):
    for asks in (QUOKKA, STRANGER):
        text = shown(page, asks, monkeypatch)
        seen = [team.word for team in teams.values() if not hidden_words({team.group: team}, asks)]
        assert all(word in text for word in seen) or page in ("fleet", "several", "compare")
        held_to(text, hidden_words(teams, asks))


def test_two_who_list_one_after_the_other_are_each_told_their_own(place, teams):
    """The rows are scanned once for all; what is kept of them is kept for those who see the same."""
    for _ in range(2):
        for asks in (*PEOPLE, *reversed(PEOPLE)):
            with acting_as(asks):
                found = library(place, "")
                rows = table(place).rows()
            seen = {t.word for t in teams.values() if not hidden_words({t.group: t}, asks)}
            assert {row.name.split()[0] for row in found.rows} == seen == {row.name.split()[0] for row in rows}
            assert (found.found, found.total) == (2 * len(seen), 2 * len(seen))
            groups = {name.split("secret")[0] for name in found.facets["group"]}
            assert groups == {word.removesuffix("secret") for word in seen}
    with acting_as(replace(QUOKKA, name="another")):
        first = table(place).rows()
    with acting_as(QUOKKA):
        assert table(place).rows() is first  # those who see the same share it


def test_a_member_of_two_groups_sees_both_and_an_admin_all(place, teams):
    for asks, words in ((BOTH, {"quokka", "wombat", OPEN}), (ADMIN, {*GROUPS, OPEN}), (STRANGER, {OPEN})):
        with acting_as(asks):
            assert {r.run_id for r in place.store.runs()} == {i for w in words for i in (teams[w].run, teams[w].live)}
            assert {b.run.run_id for b in place.store.binned()} == {teams[w].binned for w in words}
            assert {v.run_id for v in place.store.live.all()} == {teams[w].live for w in words}
            assert set(place.store.ids()) == set(place.store.states()) == {r.run_id for r in place.store.runs()}
            assert {a.run_id for a in alerts_told(place)} == {teams[w].run for w in words}
            assert {b.move.run_id for b in baselines.baselines(place)} == {teams[w].run for w in words}
            assert {p.run_id for p in promises.standing(place)} == {teams[w].run for w in words}


def test_the_server_itself_sees_all_in_threads_that_it_starts(place, teams):
    """A thread starts without whoever asked: what is done on somebody's behalf runs where the context goes along."""
    found = []
    with acting_as(STRANGER):
        thread = threading.Thread(target=lambda: found.append((who().how, len(place.store.runs()))))
        thread.start()
        thread.join()
    assert found == [("server", 2 * len(teams))]


def test_what_is_kept_of_a_run_that_is_gone_for_good_is_told_to_who_sees_all_alone(tmp_path):
    teams = made(tmp_path / "gone")
    place = workspace(str(tmp_path / "gone"))
    changes.bin_many(place, [teams["quokka"].run], now=True)
    assert place.shares.of(teams["quokka"].run) == {"quokka"}, "or what is kept beside it would be told"
    for asks in (WOMBAT, STRANGER, QUOKKA):
        with acting_as(asks):
            kept = [m.run_id for b in baselines.baselines(place) for m in (b.move, *baselines.shown(place, b.name)[1])]
            kept += [a.run_id for a in alerts_told(place)] + [p.run_id for p in promises.standing(place)]
        assert teams["quokka"].run not in kept and kept
    assert any(b.state == baselines.GONE for b in baselines.baselines(place))


def test_the_name_of_a_hidden_baseline_is_taken_and_nothing_is_told_of_it(place, teams):
    with acting_as(WOMBAT), pytest.raises(QuestionError) as refused:
        baselines.set_baseline(place, "quokkasecret baseline", teams["wombat"].run)
    assert str(refused.value) == "baseline 'quokkasecret baseline' is taken; expected a name that is free"
    for act in (baselines.accept, lambda p, n, r: baselines.remove(p, n)):
        with acting_as(WOMBAT), pytest.raises(QuestionError, match="no baseline 'quokkasecret baseline'"):
            act(place, "quokkasecret baseline", teams["wombat"].run)


def test_an_upload_whose_run_is_hidden_stays_and_does_not_name_it(tmp_path):
    teams = made(tmp_path / "kept")
    place = workspace(str(tmp_path / "kept"))
    uploads = Uploads(place.store.uploads_folder, place)
    upload = uploads.begin()
    path = uploads.files(upload) / "a.log"
    path.write_text("x")
    place.store.uploads_folder.joinpath(f"{upload}.runs").write_text(teams["quokka"].run)
    with acting_as(WOMBAT):
        assert upload not in [one["upload_id"] for one in uploads.unused()]
        assert uploads._made.run_of(path.parent.parent) == teams["quokka"].run  # it is no leftover, whoever looks


def test_a_viewer_says_nothing_and_an_uploader_what_concerns_their_groups(tmp_path):
    teams = made(tmp_path / "said")
    place = workspace(str(tmp_path / "said"))
    run = teams["quokka"].run
    refusals = [
        (person("quokka", role=Role.VIEWER), [run], ["quokka"], "may not say who sees runs"),
        (QUOKKA, [run], ["wombat"], "you are not in group 'wombat'"),
        (QUOKKA, [run], ["quoka"], "Did you mean 'quokka'"),
        (QUOKKA, [run, teams["wombat"].run], ["quokka"], "no run"),
        (QUOKKA, [], ["quokka"], "0 runs are named"),
        (QUOKKA, [run], [" "], "a group's name of 0 characters"),
        (QUOKKA, [run], ["x" * 10_000], "a group's name of 10,000 characters"),
        (QUOKKA, [run], ["a\u202eb"], "invisible character"),
    ]
    for asks, runs, groups, why in refusals:
        with acting_as(asks), pytest.raises((QuestionError, InputError), match=re.escape(why)):
            sharing.share(place, runs, groups)
        assert place.shares.of(run) == {"quokka"}, "nothing was changed"
    with acting_as(BOTH):
        assert sharing.share(place, [run], ["wombat", "quokka"]).groups == ("quokka", "wombat")
    with acting_as(WOMBAT):  # one of its groups now: the other may stay, and they must be left in
        assert place.store.find(run).run_id == run
        with pytest.raises(QuestionError, match="you would not see the run any more"):
            sharing.share(place, [run], ["quokka"])
        assert sharing.share(place, [run], ["wombat"]).sentence == "1 run is seen by members of wombat, and admins."
    with acting_as(QUOKKA):
        assert not place.store.has(run)
    open_run = teams[OPEN].run
    place.shares.share([run], ["quokka", "wombat"])
    place.shares.share([open_run], ["wombat"])
    with acting_as(WOMBAT), pytest.raises(QuestionError, match="you are not in group 'quokka'"):
        sharing.share(place, [run, open_run], ["quokka", "wombat"])  # one of both would get more than it had
    place.shares.share([run], ["wombat"])
    place.shares.share([open_run], [])
    with acting_as(WOMBAT):
        assert sharing.share(place, [run], []).sentence == "1 run is seen by all who are signed in."
    with acting_as(STRANGER):
        assert place.store.has(run)


def test_snapshots_of_a_live_run_are_seen_by_whom_the_live_run_is(tmp_path):
    teams = made(tmp_path / "live")
    place = workspace(str(tmp_path / "live"))
    team = teams["quokka"]
    place.registry.stand_for(teams[OPEN].run, f"live:{team.word}-live")  # as the next snapshot of it
    with acting_as(WOMBAT):
        assert not place.store.has(teams[OPEN].run) and not place.store.has(team.live)
    with acting_as(QUOKKA):
        sharing.share(place, [f"live:{team.word}-live"], [])
    with acting_as(WOMBAT):
        assert place.store.has(teams[OPEN].run) and place.store.find(f"live:{team.word}-live").run_id == team.live


def test_a_run_comes_back_from_the_bin_for_its_members_alone(tmp_path):
    teams = made(tmp_path / "bin")
    place = workspace(str(tmp_path / "bin"))
    lying = teams["quokka"].binned
    with acting_as(WOMBAT), pytest.raises(QuestionError, match="in the bin"):
        changes.restore(place, [lying])
    with acting_as(QUOKKA):
        changes.restore(place, [lying])
        assert place.store.has(lying)
    with acting_as(WOMBAT):
        assert not place.store.has(lying)


def test_a_run_that_is_copied_to_another_store_is_seen_there_by_its_members_alone(tmp_path):
    here, there = (workspace(str(tmp_path / name)) for name in ("here", "there"))
    run_id, open_id = (made_runs.interrupted(here.store, name=name).run_id for name in ("theirs", "all see"))
    here.shares.share([run_id], ["quokka"])
    assert set(mirror(here, there).copied) == {run_id, open_id}
    seen = dict[str, set[str]]()
    for asks in (person("quokka"), WOMBAT):
        with acting_as(asks):
            seen[asks.name] = {run.run_id for run in there.store.runs()}
    assert seen == {"quokka": {run_id, open_id}, "wombat": {open_id}}
    # the registry of here may come into the place of the one there, as where a store moves
    with acting_as(person("quokka")):
        assert ShareBook(here.registry.at, there.store.root).hidden(frozenset()) == {run_id}
    (here.store.root / MARK).write_text("another")
    made_runs.interrupted(here.store, name="later")
    assert mirror(here, there).copied == [] and "was said who sees which run" in mirror(here, there).problems[0]


def test_every_method_is_asked():
    assert set(METHODS) == {"GET", "POST", "PUT", "PATCH", "DELETE"}
