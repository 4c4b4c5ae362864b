"""Two servers of one store and one registry on PostgreSQL: what is done at one is told by the other."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app import registry_place
from app.workspace import CACHE_VARIABLE, workspace
from errors import InputError
from runs.live import Live
from runs.postgres.presence import Presence
from runs.postgres.server import server
from runs.registry import Registry
from runs.store import Store
from tests.app import made_runs
from tests.app.replicas import address_file, replicas
from tests.app.serving import command, get, request
from tests.app.test_jobs import upload
from tests.collectors.ingesting import LOG
from tests.postgres import PASSWORD, QUOTED


@pytest.fixture(scope="module")
def two(tmp_path_factory, postgres):
    """Two servers, of which the second runs no jobs itself, and what they were told."""
    folder = tmp_path_factory.mktemp("replicas")
    file = address_file(folder, postgres.url(postgres.schema()))
    with replicas(folder / "store", 2, CHIPLEDGER_REGISTRY_FILE=file) as begun:
        yield begun[0].address, begun[1].address, folder, file, begun[0]


def until(ready, within_s=60.0):
    deadline = time.monotonic() + within_s
    while not (got := ready()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return got


def names(server):
    return {run["name"] for run in get(f"{server}/api/runs")[1]["runs"]}


def job_at(server, job_id):
    """The job once it ended, as this server tells it."""
    found = until(lambda: (j := get(f"{server}/api/jobs/{job_id}")[1])["state"] not in ("waiting", "running") and j)
    assert found["state"] == "done", found
    return found


def test_what_is_uploaded_to_one_is_read_told_and_listed_by_both(two):
    """By a process that can open no connection, which asks its server for the registry."""
    one, other, _, _, _ = two
    for asked_of, name in ((one, "first"), (other, "second")):
        text = LOG.replace("loss: 2", f"loss: 2.{len(name)}").encode()
        asked = {"upload_id": upload(asked_of, {"train.log": text}), "name": name}
        status, job = request("POST", f"{asked_of}/api/ingest", asked)
        assert status == 200, job
        for told in (one, other):
            done = job_at(told, job["job_id"])
            assert done["run"]["name"] == name and not done["warnings"], "where its input lies is noted too"
    for told in (one, other):
        until(lambda t=told: names(t) == {"first", "second"})


def test_what_is_said_at_one_is_told_by_the_other(two):
    one, other, _, _, _ = two
    [run] = get(f"{one}/api/runs?q=first")[1]["runs"]
    status, said = request("PATCH", f"{one}/api/runs/{run['run_id']}", {"tags": {"team": "ml"}})
    assert status == 200, said
    found = until(lambda: get(f"{other}/api/runs?q=tag:team%3Dml")[1]["runs"])
    assert [r["run_id"] for r in found] == [run["run_id"]]


def test_the_command_line_finds_the_registry_by_what_the_store_notes(two):
    """With the password where libpq looks for it, and never in the store."""
    _, _, folder, _, _ = two
    for file in (f for f in folder.joinpath("store").rglob("*") if f.is_file() and f.stat().st_size < 1 << 20):
        assert QUOTED.encode() not in file.read_bytes() and PASSWORD.encode() not in file.read_bytes(), file
    done = command("runs", "--json", "--store", folder / "store", PGPASSWORD=PASSWORD)
    assert {run["name"] for run in json.loads(done.stdout)["runs"]} >= {"first", "second"}, done.stderr
    refused = command("runs", "--store", folder / "store", PGPASSFILE="/dev/null")
    assert refused.returncode == 2 and "the password is wrong, or none was given" in refused.stderr
    assert not (folder / "store" / "registry.db").exists()


def test_nothing_that_is_told_or_logged_holds_the_password(two):
    one, _, folder, _, _ = two
    told = [json.dumps(get(f"{one}{path}")[1]) for path in ("/readyz", "/api/runs", "/api/jobs")]
    log = (folder / "replicas.log").read_text()
    assert not any(secret in text for text in (*told, log) for secret in (PASSWORD, QUOTED))
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert QUOTED.encode() not in process.read_bytes()
        except OSError:
            continue


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--registry", f"postgresql://a:{QUOTED}@127.0.0.1/x"], "a password stands in --registry"),
        (["--registry", "mysql://a@127.0.0.1/x"], "not understood"),
        (["--registry-file", "/dev/null"], "no address of a registry"),
        (["--registry-file", "/nowhere"], "cannot be read"),
        (["--registry", "postgresql://a@127.0.0.1/x", "--registry-file", "/dev/null"], "named twice"),
    ],
)
def test_what_cannot_be_a_registry_is_refused_before_a_server_starts(tmp_path, flags, says):
    done = command("serve", "--store", tmp_path / "store", "--port", 0, *flags)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert QUOTED not in done.stderr and PASSWORD not in done.stderr


def test_a_store_with_a_registry_in_a_file_is_not_begun_anew_elsewhere(tmp_path, postgres):
    store, url = tmp_path / "store", postgres.url(postgres.schema())
    before = Registry(Store(store).root / "registry.db")
    before.tag("a", "team", "ml")
    file = address_file(tmp_path, url)
    refused = command("runs", "--store", store, CHIPLEDGER_REGISTRY_FILE=file)
    assert refused.returncode == 2 and "chipledger registry move" in refused.stderr
    moved = command("registry", "move", "--registry-file", file, "--store", store)
    assert moved.returncode == 0 and "counted on both sides" in moved.stdout, moved.stderr
    assert Registry(server(url)).extras("a").tags == {"team": "ml"} and not (store / "registry.db").exists()
    with pytest.raises(InputError, match="the registry was moved"):
        before.standing()
    again = command("registry", "move", "--registry-file", file, "--store", store)
    assert again.returncode == 2 and "registry back" in again.stderr
    address_file(tmp_path, postgres.url(postgres.schema()))
    refused = command("runs", "--store", store, CHIPLEDGER_REGISTRY_FILE=file)
    assert refused.returncode == 2 and "not the registry of this store" in refused.stderr
    address_file(tmp_path, url)
    Registry(server(url)).tag("a", "seen", "yes")
    worker = Presence(server(url))
    worker.hold("w")
    refused = command("registry", "back", "--store", store, CHIPLEDGER_REGISTRY_FILE=file)
    worker.leave()
    assert refused.returncode == 2 and "1 server or worker of this registry is there" in refused.stderr
    back = command("registry", "back", "--store", store, CHIPLEDGER_REGISTRY_FILE=file)
    assert back.returncode == 0, back.stderr
    assert Registry(store / "registry.db").extras("a").tags == {"team": "ml", "seen": "yes"}
    assert not (store / "registry.at").exists()
    with pytest.raises(InputError, match="the registry was moved back"):
        Registry(server(url)).tag("a", "lost", "yes")


def test_a_registry_in_a_file_that_few_books_used_is_shown_whole(tmp_path):
    Registry(Store(tmp_path / "store").root / "registry.db").tag("a", "team", "ml")
    shown = command("registry", "--json", "--store", tmp_path / "store")
    assert shown.returncode == 0 and json.loads(shown.stdout)["rows"]["tags"] == 1, shown.stderr


def test_a_registry_belongs_to_one_store_until_another_takes_its_place(tmp_path, postgres, monkeypatch):
    """Under whatever address, and wherever the store is mounted."""
    url = postgres.url(postgres.schema())
    one, other = Store(tmp_path / "one").root, Store(tmp_path / "other").root
    monkeypatch.setenv(registry_place.VARIABLE, url)
    Registry(registry_place.registry_at(one)).tag("a", "team", "ml")
    for _ in range(2):
        with pytest.raises(InputError, match=f"another store, the one at {one}.*chipledger registry take"):
            registry_place.registry_at(other)
        assert not (other / "registry.at").exists(), "it may have another registry still"
    moved = one.rename(tmp_path / "moved")
    monkeypatch.setenv(registry_place.VARIABLE, f"{url}&connect_timeout=7")
    registry_place.registry_at(moved)
    taken = command("registry", "take", "--store", other, CHIPLEDGER_REGISTRY_FILE=address_file(tmp_path, url))
    assert taken.returncode == 0 and "belongs to this store from now on: 3 rows" in taken.stdout, taken.stderr
    assert Registry(registry_place.registry_at(other)).extras("a").tags == {"team": "ml"}
    with pytest.raises(InputError, match=f"the one at {other}"):
        registry_place.registry_at(moved)
    monkeypatch.setenv(registry_place.VARIABLE, postgres.url(postgres.schema()))
    with pytest.raises(InputError, match="not the registry of this store"):
        registry_place.registry_at(other)


def test_a_store_of_an_earlier_version_is_told_when_it_is_opened_next(tmp_path, postgres, monkeypatch):
    """By whichever of its servers comes first; then it is known by what is noted in it."""
    url = postgres.url(postgres.schema())
    root, another = Store(tmp_path / "store").root, Store(tmp_path / "another").root
    monkeypatch.setenv(registry_place.VARIABLE, url)
    noted = {"url": server(url).address.plain, "which": registry_place.which_of(server(url))}
    for folder in (root, another):
        (folder / "registry.at").write_text(json.dumps(noted))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: registry_place.registry_at(root), range(4)))
    assert {id(at) for at in found} == {id(server(url))} and registry_place.read_note(root).store
    with pytest.raises(InputError, match="belongs to another store"):
        registry_place.registry_at(another)
    with pytest.raises(InputError, match="belongs to another store"):
        registry_place.registry_at(root, "the one of a bucket", "s3://bucket")


def test_machines_of_a_bucket_have_live_runs_in_common_and_follow_each_on_one(tmp_path, postgres, monkeypatch):
    """And no registry but that of the store, whichever folder a machine has for it."""
    monkeypatch.setenv(registry_place.VARIABLE, postgres.url(postgres.schema()))
    places = []
    for machine in ("one", "other"):
        monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / machine))
        places.append(workspace(f"file://{tmp_path}/bucket"))
    one, other = places
    assert one.store.root != other.store.root and one.registry.at is other.registry.at
    with one.store.live.following("night"):
        one.store.live.write(Live("night", "p-1", "j"))
        refused = pytest.raises(InputError, match="followed already, on another machine")
        with refused, other.store.live.following("night"):
            pass
        with other.store.live.following("another"):
            pass
    assert other.store.live.read("night") == Live("night", "p-1", "j")
    with other.store.live.following("night"):
        pass
    with pytest.raises(InputError, match="belongs to another store"):
        workspace(f"file://{tmp_path}/another")


def test_doctor_looks_at_the_registry_that_a_server_would_have(tmp_path, postgres):
    name = postgres.schema()
    file = address_file(tmp_path, postgres.url(name))

    def looked(**env):
        told = command("doctor", "--server", "127.0.0.1:1024", "--store", tmp_path / "store", "--json", **env)
        [one] = [c for c in json.loads(told.stdout)["checks"] if c["what"] == "registry"]
        return one

    assert "the file registry.db" in looked()["found"]
    seen = looked(CHIPLEDGER_REGISTRY_FILE=file)
    assert "PostgreSQL 1" in seen["found"] and "not made yet" in seen["found"] and not seen["wrong"]
    assert postgres.sql(f"select count(*) from pg_tables where schemaname = '{name}'") == [(0,)], "nothing was made"
    address_file(tmp_path, postgres.url(password="wrong"))
    assert "the password is wrong" in looked(CHIPLEDGER_REGISTRY_FILE=file)["wrong"]


def test_a_job_of_a_replica_that_is_killed_is_done_by_the_other(two):
    """The last of this file: one of the two is gone then."""
    one, other, _, _, first = two
    asked = {"upload_id": upload(one, {"goodput.jsonl": made_runs.goodput_log(60_000, "long")}), "name": "long"}
    job = request("POST", f"{one}/api/ingest", asked)[1]
    until(lambda: get(f"{other}/api/jobs/{job['job_id']}")[1]["state"] == "running")
    first.kill()
    assert job_at(other, job["job_id"])["run"]["name"] == "long"
    assert [r["name"] for r in get(f"{other}/api/runs?q=long")[1]["runs"]] == ["long"], "and once"
