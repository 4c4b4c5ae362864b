"""The server as it is started: its API over real HTTP, on loopback only, calling nobody."""

import http.client
import json
import os
import socket
import threading
import time
from urllib.parse import quote, urlsplit

import pytest

from app.questions import QUESTIONS
from app.questions.forms import form
from app.questions.ledger import LEDGER
from app.serve.uploads import LIMIT_VARIABLE
from runs.store import Store
from tests.app import made_runs
from tests.app.serving import PROJECT, command, get, request, serving


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def run(store):
    return made_runs.interrupted(Store(store))


@pytest.fixture(scope="module")
def server(store, run, called):
    path = os.pathsep.join([str(called.parent), str(PROJECT)])
    env = {"PYTHONPATH": path, "SPY": str(called), LIMIT_VARIABLE: str(3_000_000)}
    with serving(store, cwd=called.parent, **env) as address:
        yield address
    assert not called.exists(), called.read_text()  # whichever tests it served, in whatever order


def upload(server: str, name: str, data: bytes) -> str:
    upload_id = request("POST", f"{server}/api/uploads", {})[1]["upload_id"]
    status, told = request("PUT", f"{server}/upload/{upload_id}/{quote(name)}", data)
    assert (status, told) == (200, {"bytes": len(data)})
    return upload_id


def finished(server: str, job: dict) -> dict:
    deadline = time.monotonic() + 60
    while job["state"] in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        job = get(f"{server}/api/jobs/{job['job_id']}")[1]
    return job


def test_questions_are_described_with_their_terms_and_forms(server):
    status, told = get(f"{server}/api/questions")
    assert status == 200 and [q["name"] for q in told["questions"]] == [q.name for q in QUESTIONS]
    assert all(q["terms"] and q["terms"][0]["meaning"] for q in told["questions"])
    status, declared = get(f"{server}/api/questions/ledger/form")
    assert status == 200 and declared == form(LEDGER)
    assert get(f"{server}/api/questions/serving/form")[1]["title"] == "Latency", "an older name leads on"
    assert get(f"{server}/api/questions/nothing/form")[0] == 404


def test_runs_and_answers(server, run, store):
    assert get(f"{server}/healthz") == (200, {"status": "ok"})
    listed = get(f"{server}/api/runs")[1]["runs"]
    assert run.run_id in [r["run_id"] for r in listed]
    status, told = get(f"{server}/api/runs/{run.run_id}")
    assert status == 200 and told["facts"]["chip"]["value"] == "TPU v5p" and told["sources"]
    ledger = get(f"{server}/api/runs/{run.run_id}/show/ledger?usd_per_chip_hour=3")[1]
    said = command("show", run.run_id, "ledger", "--option", "usd_per_chip_hour=3", "--json", "--store", store)
    assert ledger == json.loads(said.stdout)
    assert get(f"{server}/api/runs/{run.run_id}/show/steps")[1]["median_step_s"] == 20.0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/runs/nothing", 404),
        ("GET", "/api/runs/nothing/show/ledger", 404),
        ("GET", "/api/runs/{run}/show/lodger", 404),
        ("GET", "/api/runs/{run}/show/ledger?price=3", 400),
        ("GET", "/api/runs/{run}/show/ledger?usd_per_chip_hour=x", 400),
        ("GET", "/api/nothing", 404),
        ("POST", "/api/runs", 404),
        ("GET", "/api/jobs/x", 404),
        ("DELETE", "/api/jobs/x", 404),
        ("POST", "/api/ingest", 400),
        ("PUT", "/upload/x/y", 400),
        ("DELETE", "/api/uploads/x", 400),
        ("GET", "/upload/x", 404),
        ("GET", "/api/runs/" + "a" * 300, 404),
        ("GET", "/api/runs/" + "%C3%A9" * 200 + "/show/ledger", 404),
        ("GET", "/api/runs?limits=3", 400),
        ("GET", "/api/runs?q=mfuu<3", 400),
        ("GET", "/api/runs?sort=nothing", 400),
        ("GET", "/api/runs?limit=0", 400),
        ("PATCH", "/api/runs/nothing", 404),
        ("PATCH", "/api/runs/{run}", 400),
        ("DELETE", "/api/runs/nothing", 404),
        ("POST", "/api/runs/nothing/restore", 404),
        ("DELETE", "/api/runs/{run}/notes/x", 404),
        ("DELETE", "/api/searches/nothing", 404),
        ("GET", "/api/runs/live%3A" + "a" * 300, 404),
        ("GET", "/api/models/" + "a" * 300 + "/show/mfu", 404),
        ("GET", "/api/jobs/" + "a" * 300, 404),
        ("DELETE", "/api/uploads/" + "a" * 300, 400),
        ("PUT", "/upload/" + "a" * 300 + "/x", 400),
        ("GET", "/healthz?x=1", 400),
        ("GET", "/api/catalog/chips?name=v5e", 400),
        ("GET", "/api/topology?spec=v5p:2x2x2&speck=1", 400),
        ("GET", "/api/topology", 400),
        ("GET", "/api/published?x=", 400),
        ("GET", "/api/whatif/checkpoint?save_s=60&mttf_s=nan", 400),
        ("GET", "/api/whatif/checkpoint?save=", 400),
        ("GET", "/api/whatif/checkpoint?save_s=60&mttf_s=9000&mttf_s=9", 400),
        ("GET", "/api/whatif/checkpoint?save_s=60&mttf_s=9000&slices=nan", 400),
        ("GET", "/api/whatif/checkpoint?run=" + "a" * 300, 404),
        ("GET", "/api/whatif/serving?model=llama3.1-8b&chip=v6e&chips=1&rate=1&input=9&output=0", 400),
        ("GET", "/api/whatif/serving-plan?model=llama3.1-8b&on=v6e&rate=1&input=9&output=9&ttft_s=nan", 400),
        ("GET", "/api/whatif/speculation?acceptance=0.5&cost=nan", 400),
        ("GET", "/api/runs/{run}/show/steps?x=1", 400),
        ("GET", "/api/runs/{run}/show/goodput?bins=9&bins=8", 400),
        ("GET", "/api/runs/{run}/show/goodput?bins=3.7", 400),
        ("GET", "/api/runs/{run}/show/ledger?ttft_s=-1", 400),
    ],
)
def test_wrong_requests_are_told_as_json(server, store, run, method, path, status):
    got, told = request(method, server + path.format(run=run.run_id))
    assert got == status
    assert set(told) == {"error"} and told["error"]
    assert str(store) not in told["error"] and str(store.parent) not in told["error"]


@pytest.mark.parametrize(
    "more",
    [
        {"name": "a\x00b"},
        {"name": "two\nlines"},
        {"name": "\ud800"},
        {"kind": "x"},
        {"tags": {"k": 1}},
        {"tags": []},
        {"tags": {"a=b": "c"}},
        {"chips": 0},
        {"chips": -4},
        {"chips": 3.7},
        {"chips": True},
        {"chips": "many"},
        {"chips": [4]},
        {"chips": 10**400},
        {"model": {"layers": 2}},
        {"chip": 5},
        {"name": 0},
        {"again": "yes"},
        {"chipz": "v5e"},
        {"paths": ["/etc/passwd"]},
        {"store": "/elsewhere"},
        {"json": True},
        {"tag": "a=b"},
        {"": 1},
        {"name": "x" * 20_000},
    ],
)
def test_what_cannot_stand_on_a_command_line_is_refused(server, more):
    upload_id = upload(server, "goodput.jsonl", made_runs.goodput_log(3))
    status, told = request("POST", f"{server}/api/ingest", {"upload_id": upload_id, **more})
    assert status == 400 and told["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[",
        b"[]",
        b'{"upload_id": 3}',
        b'{"upload_id": "x"}',
        b"x" * 70_000,
        b"[" * 60_000,
        b'{"tags":' * 8_000,
        b'{"upload_id": NaN}',
    ],
)
def test_a_wrong_ingest_request_is_told(server, body):
    status, told = request("POST", f"{server}/api/ingest", body)
    assert status == 400 and told["error"]


@pytest.mark.parametrize(
    "more",
    [
        '"chips": 4, "chips": 8',
        '"tags": {"a": "1", "a": "2"}',
        '"tags": {"a": "1", " a": "2"}',
    ],
)
def test_what_is_given_twice_is_refused_rather_than_half_of_it_dropped(server, more):
    upload_id = upload(server, "goodput.jsonl", made_runs.goodput_log(3))
    status, told = request("POST", f"{server}/api/ingest", f'{{"upload_id": "{upload_id}", {more}}}'.encode())
    assert status == 400 and told["error"].endswith("is given twice; expected once")


def test_upload_then_ingest_makes_a_run(server, store):
    data = made_runs.goodput_log(50, "api")
    upload_id = upload(server, "logs/goodput.jsonl", data)
    assert (store / "uploads" / upload_id / "files" / "logs" / "goodput.jsonl").read_bytes() == data
    asked = {
        "upload_id": upload_id,
        "name": "--by api",
        "tags": {"team": "x", "k": "a=b"},
        "chip": "v5e",
        "chips": 4,
        "model": "llama3.1-8b",
        "kind": "training",
    }
    job = finished(server, request("POST", f"{server}/api/ingest", asked)[1])
    assert (job["state"], job["error"], job["progress"]) == ("done", None, 1.0)
    told = get(f"{server}/api/runs/{job['run_id']}")[1]
    assert (told["name"], told["tags"], told["tables"]["steps"]) == ("--by api", {"team": "x", "k": "a=b"}, 50)
    facts = {name: told["facts"][name]["value"] for name in ("chip", "chips", "model")}
    assert facts == {"chip": "v5e", "chips": 4, "model": "llama3.1-8b"}


def test_an_upload_that_cannot_be_read_fails_in_one_line_and_the_server_goes_on(server, store):
    before = set(Store(store).ids())
    upload_id = upload(server, "x.xplane.pb", b"\x00\xff" * 1000)
    job = finished(server, request("POST", f"{server}/api/ingest", {"upload_id": upload_id})[1])
    assert job["state"] == "failed" and job["error"] and "\n" not in job["error"] and "defect" not in job["error"]
    assert str(store) not in json.dumps(job)
    assert get(f"{server}/healthz")[0] == 200
    assert set(Store(store).ids()) == before
    assert (store / "uploads" / upload_id / "files" / "x.xplane.pb").exists()


def test_an_ingest_can_be_cancelled_and_leaves_nothing(server, store):
    before = set(Store(store).ids())
    upload_id = upload(server, "goodput.jsonl", made_runs.goodput_log(8000, "cancelled"))
    job = request("POST", f"{server}/api/ingest", {"upload_id": upload_id})[1]
    assert request("DELETE", f"{server}/api/jobs/{job['job_id']}")[1]["state"] == "cancelled"
    assert finished(server, get(f"{server}/api/jobs/{job['job_id']}")[1])["state"] == "cancelled"
    time.sleep(1)
    assert set(Store(store).ids()) == before
    assert not list((store / "partial").iterdir())


@pytest.mark.parametrize("name", ["..%2f..%2f..%2fescaped", "%2e%2e/escaped", "a%2F..%2F..%2Fescaped", "/escaped"])
def test_a_name_cannot_leave_the_upload(server, store, name):
    upload_id = request("POST", f"{server}/api/uploads", {})[1]["upload_id"]
    status, _ = request("PUT", f"{server}/upload/{upload_id}/{name}", b"x")
    found = [p for p in store.parent.rglob("*escaped*")]
    assert status in (200, 400, 404)
    assert all(p.is_relative_to(store / "uploads" / upload_id / "files") for p in found)


@pytest.mark.parametrize("name", ["x.json", "chipledger.json", "config.json", "a.jsonl", "trace.pt.trace.json"])
def test_json_that_is_nested_deeply_fails_in_one_line(server, store, name):
    for data in (b"[" * 200_000, b'{"a":' * 100_000):
        job = finished(server, request("POST", f"{server}/api/ingest", {"upload_id": upload(server, name, data)})[1])
        assert job["state"] == "failed" and "\n" not in job["error"] and "defect" not in job["error"]
        assert str(store) not in job["error"]


def test_a_broken_run_is_told_without_where_it_lies(server, store, run):
    broken = store / "runs" / "b0"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    try:
        said = json.dumps(get(f"{server}/api/runs")[1]["problems"])
        assert "b0" in said and str(store) not in said
        assert str(store) not in json.dumps(get(f"{server}/api/runs/b0")[1])
    finally:
        (broken / "run.json").unlink()
        broken.rmdir()


def test_a_model_and_the_catalogue_can_be_asked_without_a_run(server):
    status, said = get(f"{server}/api/models/llama3.1-8b/show/padding?mxu=256&seq=8192")
    assert status == 200 and said["model"] == "llama3.1-8b" and round(said["tax"], 3) == 0.125
    status, said = get(f"{server}/api/models/llama3.1-8b/show/flops?seq=8192")
    assert status == 200 and round(said["flops_per_token"]["causal"] / 1e9, 2) == 51.47
    assert get(f"{server}/api/models/no-such/show/padding")[0] == 404
    assert get(f"{server}/api/models/llama3.1-8b/show/nothing")[0] == 404
    assert get(f"{server}/api/models/llama3.1-8b/show/padding?seq=-1")[0] == 400
    assert get(f"{server}/api/catalog/chips/v5e")[1]["name"] == "TPU v5e"
    assert {row["entry"] for row in get(f"{server}/api/catalog/models")[1]["rows"]} >= {"llama3.1-8b"}
    assert get(f"{server}/api/catalog/chips/v99")[0] == get(f"{server}/api/catalog/boats")[0] == 404


def test_too_much_is_refused_with_413_before_it_is_sent(server, store):
    upload_id = request("POST", f"{server}/api/uploads", {})[1]["upload_id"]
    address = urlsplit(server)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.putrequest("PUT", f"/upload/{upload_id}/big")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    assert "more than 3.00 MB in one upload" in json.loads(answer.read())["error"]
    connection.close()
    assert not any(p.is_file() for p in (store / "uploads" / upload_id).rglob("*"))


def test_too_much_without_an_announced_length_is_refused_too(server, store):
    upload_id = request("POST", f"{server}/api/uploads", {})[1]["upload_id"]
    address = urlsplit(server)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.putrequest("PUT", f"/upload/{upload_id}/big")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    try:
        for _ in range(8):
            connection.send(b"%x\r\n" % 1_000_000 + b"x" * 1_000_000 + b"\r\n")
    except OSError:
        pass  # the server has answered and closed: nothing more is read
    else:
        assert connection.getresponse().status == 413
    connection.close()
    deadline = time.monotonic() + 60
    while any(p.is_file() for p in (store / "uploads" / upload_id).rglob("*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_connection_that_breaks_off_leaves_no_file(server, store):
    upload_id = request("POST", f"{server}/api/uploads", {})[1]["upload_id"]
    address = urlsplit(server)
    with socket.create_connection((address.hostname, address.port)) as s:
        head = f"PUT /upload/{upload_id}/half HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 1000000\r\n\r\n"
        s.sendall(head.encode() + b"x" * 500_000)
        time.sleep(0.5)
    deadline = time.monotonic() + 60
    while any(p.is_file() for p in (store / "uploads" / upload_id).rglob("*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_other_sites_and_other_names_are_refused(server):
    assert request("POST", f"{server}/api/uploads", {}, {"Origin": "http://evil.example"})[0] == 403
    assert request("POST", f"{server}/api/uploads", {}, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert request("GET", f"{server}/api/runs", None, {"Host": "evil.example"})[0] == 403


@pytest.mark.parametrize(("origin", "status"), [("http://evil.example", 403), (None, 101)])
def test_only_its_own_pages_open_a_session(server, origin, status):
    address = urlsplit(server)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.putrequest("GET", "/_stcore/stream")
    wanted = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": origin or server,
    }
    for key, value in wanted.items():
        connection.putheader(key, value)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


def test_pages_carry_the_headers_that_keep_them_at_home(server):
    address = urlsplit(server)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert "default-src 'self'" in answer.getheader("Content-Security-Policy")
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    connection.close()


def test_many_ask_at_once(server, run):
    codes = []

    def ask():
        codes.append(get(f"{server}/api/runs/{run.run_id}/show/ledger")[0])

    threads = [threading.Thread(target=ask) for _ in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert codes == [200] * 16


def test_it_listens_on_loopback_only(server):
    port = urlsplit(server).port
    listening = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as f:
                rows = [line.split() for line in f][1:]
        except OSError:
            pytest.skip("no /proc/net here")
        listening += [r[1] for r in rows if r[3] == "0A" and int(r[1].rpartition(":")[2], 16) == port]
    assert listening == [f"0100007F:{port:04X}"]


def test_a_port_that_is_taken_is_told(server, tmp_path):
    port = urlsplit(server).port
    done = command("serve", "--port", port, "--store", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: 127.0.0.1:{port}: cannot listen there") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("half", ["\ud800", {"data": "\ud800"}, {"\ud800": 1}, None])
@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("PUT", "/api/searches/s", "query"),
        ("POST", "/api/runs/{run}/notes", "text"),
        ("PATCH", "/api/runs/{run}", "tags"),
        ("PATCH", "/api/runs/{run}/facts", "parallelism"),
    ],
)
def test_half_a_character_and_nothing_at_all_are_refused_wherever_they_stand(server, run, method, path, field, half):
    if half is None and field == "parallelism":
        half = "\udfff"  # null takes a fact back
    got, told = request(method, server + path.format(run=run.run_id), {field: half})
    assert got == 400 and told["error"]
