"""XProf behind the guard: links to this run's traces alone, its own process, and plain words where it cannot open."""

import csv
import gzip
import hashlib
import http.client
import importlib.util
import io
import json
import os
import threading
import time
from dataclasses import dataclass

import pytest
import uvicorn
from starlette.applications import Starlette

from app.cli.commands.ingest import remember
from app.serve import xprof
from app.serve.guard import HEADERS, Guard
from app.serve.xprof import APP, Xprof, lay_out, traces
from app.serve.xprof_answers import must_be_read, read_answer
from app.serve.xprof_child import guarded
from app.serve.xprof_door import Closed
from runs.run import facts_of
from runs.schema import SCHEMAS
from tests.app.serving import free_port
from tests.collectors.riegeli_files import continuous
from tests.collectors.traces import PlaneBuilder, XSpace, environment

needs_xprof = pytest.mark.skipif(importlib.util.find_spec("xprof") is None, reason="xprof is not installed")
TPU, CPU = "TPU v6 Lite", "cpu"


def tpu_space(number=0):
    """A trace of one TPU that ran a few operations."""
    space = XSpace()
    plane = PlaneBuilder(space, "/device:TPU:0").stats(
        device_type_string="TPU v6 Lite", peak_teraflops_per_second=918.0, peak_hbm_bw_gigabytes_per_second=1638.0
    )
    plane.metadata("%fusion.1 = f32[8] fusion()", hlo_category="fusion", flops=1024, bytes_accessed=384, program_id=9)
    plane.line("XLA Modules", [("jit_step(9)", 0, 500 + number)])
    plane.line("XLA Ops", [("%fusion.1 = f32[8] fusion()", i * 100, 50 + number) for i in range(5)])
    environment(space)
    return space.SerializeToString()


def profiled(place, folder, names, device=TPU, content=None, run_id="abcdef0123456789"):
    """A run whose inputs are traces below `folder`, remembered as an ingest does."""
    sources = []
    for number, name in enumerate(names):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        data = content or tpu_space(number)
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        stored = file.read_bytes()
        sources.append(
            {"name": name, "sha256": hashlib.sha256(stored).hexdigest(), "bytes": len(stored), "collector": "xplane"}
        )
    with place.store.writer() as writer:
        writer.rows("captures", SCHEMAS["captures"].batch({"capture": [0], "host": ["h"], "device_type": [device]}))
        run = writer.commit(run_id=run_id, name="profiled", kind="training", facts=facts_of({}), sources=sources)
    remember([folder], place, run.run_id)
    return run


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: dict
    text: str

    def json(self):
        return json.loads(self.text)


class Client:
    """Requests to one server; redirects are not followed."""

    def __init__(self, port):
        self._port = port

    def get(self, path, method="GET", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, headers={"Host": "localhost", **(headers or {})})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        found = {n.lower(): v for n, v in answer.getheaders()}
        body = gzip.decompress(body) if found.get("content-encoding") == "gzip" else body
        return Answer(answer.status, found, body.decode("utf-8", "replace"))


@pytest.fixture
def served(place):
    """(client, routes) of a server with XProf's routes behind the guard."""
    mounted = Xprof(place)
    app = Guard(Starlette(routes=mounted.routes()), loopback=True)
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Client(port), mounted
    server.should_exit = True
    thread.join(10)
    mounted.servers.close()


def test_its_folder_holds_links_to_the_traces_of_the_run_alone(place, tmp_path):
    names = ["a/2026_01_01/vm.xplane.pb", "b/2026_01_01/vm.xplane.pb", "c/2026_01_02/vm.xplane.pb.gz"]
    run = profiled(place, tmp_path / "in", names)
    folder = tmp_path / "logdir"
    lay_out(run, place.registry, folder)
    found = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.pb"))
    assert found == [f"plugins/profile/2026_01_01/vm-{i}.xplane.pb" for i in (0, 1)] + [
        "plugins/profile/2026_01_02/vm-2.xplane.pb"
    ]
    assert (folder / found[1]).read_bytes() == (tmp_path / "in" / names[1]).read_bytes()
    assert (folder / found[2]).read_bytes() == tpu_space(2)


@pytest.mark.parametrize("harm", ["moved", "changed"])
def test_a_trace_that_is_gone_or_changed_is_told(place, tmp_path, served, harm):
    run = profiled(place, tmp_path / "in", ["s/vm.xplane.pb"])
    file = tmp_path / "in" / "s" / "vm.xplane.pb"
    if harm == "moved":
        file.rename(file.with_name("elsewhere"))
    else:
        file.write_bytes(file.read_bytes()[:-1] + b"?")  # of the same size
    with pytest.raises(Closed) as told:
        lay_out(run, place.registry, tmp_path / "logdir")
    assert told.value.reason == "gone" and told.value.details == ("s/vm.xplane.pb",)
    answer = served[0].get(f"/xprof/{run.run_id}")
    assert answer.status_code == (409 if importlib.util.find_spec("xprof") else 503)
    assert f"/ledger?run={run.run_id}" in answer.text
    assert not list((place.store.root / "partial").iterdir())


def test_a_file_inside_an_archive_or_under_another_name_is_not_taken_for_the_trace(place, tmp_path):
    run = profiled(place, tmp_path / "in", ["s/vm.xplane.pb"])
    source = traces(run)[0]
    other = tmp_path / "other.bin"
    other.write_bytes(b"x" * source["bytes"])
    remember([other], place, run.run_id)
    assert place.registry.find_file(source["sha256"]) == tmp_path / "in" / "s" / "vm.xplane.pb"
    assert place.registry.find_file("0" * 64) is None


def test_of_equal_names_and_sizes_the_content_decides(place, tmp_path):
    data = [tpu_space(1), tpu_space(1)[:-1] + b"\x00"]
    for name, one in zip("ab", data, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vm.xplane.pb").write_bytes(one)
    sources = [
        {"name": n, "sha256": hashlib.sha256(d).hexdigest(), "bytes": len(d), "collector": "xplane"}
        for n, d in zip(("vm.xplane.pb", "2/vm.xplane.pb"), data, strict=True)
    ]
    with place.store.writer() as writer:
        writer.commit(run_id="two", name="two", kind="training", facts={}, sources=sources)
    remember([tmp_path / "a", tmp_path / "b"], place, "two")
    assert [place.registry.find_file(s["sha256"]) for s in sources] == [tmp_path / n / "vm.xplane.pb" for n in "ab"]


def test_the_door_says_plainly_what_is_lacking(place, tmp_path, served, monkeypatch):
    client, _ = served
    assert client.get("/xprof/nothing").status_code == 404
    with place.store.writer() as writer:
        run = writer.commit(run_id="plain", name="<b>plain</b>", kind="training", facts={}, sources=[])
    answer = client.get(f"/xprof/{run.run_id}")
    assert answer.status_code == 404 and "This run has no profile" in answer.text
    assert "&lt;b&gt;plain" in answer.text and "<b>plain</b></b>" not in answer.text
    cpu = profiled(place, tmp_path / "in", ["vm.xplane.pb"], CPU)
    answer = client.get(f"/xprof/{cpu.run_id}")
    assert answer.status_code == 200 and "nearly nothing" in answer.text and "?anyway=1" in answer.text
    monkeypatch.setattr(xprof, "missing", lambda: True)
    answer = client.get(f"/xprof/{cpu.run_id}?anyway=1")
    assert answer.status_code == 503 and "chipledger[xprof]" in answer.text
    assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/capture_profile?service_addr=x",
        "/local",
        "/data?run=r&session_path=/etc",
        "/runs?run_path=/",
        "/data?run=../../x&tag=overview_page",
        "/hosts?run=r&host=..%2Fx",
    ],
)
def test_it_is_asked_about_this_run_only(place, tmp_path, served, path):
    client, mounted = served
    run = profiled(place, tmp_path / "in", ["vm.xplane.pb"])
    answer = client.get(f"/xprof/{run.run_id}{APP}{path}")
    assert answer.status_code == 403 and not mounted.servers._children


def test_it_stands_behind_the_guard_and_takes_no_writes(served):
    client, _ = served
    assert client.get("/xprof/x", headers={"Host": "evil.example"}).status_code == 403
    assert client.get(f"/xprof/x{APP}/data", "POST").status_code == 405


def test_the_process_refuses_who_does_not_know_the_secret():
    said = []
    app = guarded(lambda environ, start: start("200 OK", []) or [b"in"], "secret")
    assert app({}, lambda status, headers: said.append(status)) == [b"Forbidden"]
    assert app({"HTTP_X_CHIPLEDGER_XPROF": "secret"}, lambda status, headers: said.append(status)) == [b"in"]
    assert said == ["403 Forbidden", "200 OK"]


@needs_xprof
def test_the_installed_xprof_answers_through_the_proxy(place, tmp_path, served):
    """Holds the internal functions of XProf that are used against the version that is installed."""
    client, mounted = served
    run = profiled(place, tmp_path / "in", ["2026_01_01/vm.xplane.pb"])
    before = (tmp_path / "in" / "2026_01_01").stat().st_mtime_ns
    opened = client.get(f"/xprof/{run.run_id}")
    assert opened.status_code == 303 and opened.headers["location"] == f"/xprof/{run.run_id}{APP}/"
    page = client.get(opened.headers["location"])
    assert page.status_code == 200 and "XProf" in page.text
    assert client.get(f"/xprof/{run.run_id}{APP}/runs").json() == ["2026_01_01"]
    tools = client.get(f"/xprof/{run.run_id}{APP}/run_tools?run=2026_01_01").json()
    assert any(t.startswith("trace_viewer") for t in tools) and "overview_page" in tools
    overview = client.get(f"/xprof/{run.run_id}{APP}/data?run=2026_01_01&tag=overview_page&host=vm-0")
    assert overview.status_code == 200 and len(overview.json()) >= 2
    assert (tmp_path / "in" / "2026_01_01").stat().st_mtime_ns == before, "nothing is written beside the original"
    assert len(list((tmp_path / "in" / "2026_01_01").iterdir())) == 1

    (child,) = mounted.servers._children.values()
    child.process.kill()
    child.process.wait()
    assert client.get(f"/xprof/{run.run_id}{APP}/runs").json() == ["2026_01_01"], "a process that broke is replaced"
    mounted.servers.close()
    assert not list((place.store.root / "partial").iterdir())


@needs_xprof
def test_the_installed_xprof_answers_of_a_profile_in_pieces(place, tmp_path, served):
    client, _ = served
    run = profiled(
        place, tmp_path / "in", ["2026_01_01/vm.xplane.riegeli"], content=continuous([tpu_space(), tpu_space()])
    )
    assert client.get(f"/xprof/{run.run_id}{APP}/runs").json() == ["2026_01_01"]
    overview = client.get(f"/xprof/{run.run_id}{APP}/data?run=2026_01_01&tag=overview_page&host=vm-0")
    assert overview.status_code == 200 and len(overview.json()) >= 2


@needs_xprof
def test_an_error_of_xprof_names_no_folder(place, tmp_path, served):
    client, _ = served
    run = profiled(place, tmp_path / "in", ["s/vm.xplane.pb"])
    at = f"/xprof/{run.run_id}{APP}"
    answer = client.get(f"{at}/data?run=s&tag=graph_viewer&module_name=x&node_name=y")
    assert answer.status_code >= 400 and "x.hlo_proto.pb" in answer.text
    assert str(tmp_path) not in answer.text and not answer.text.startswith("/")
    answer = client.get(f"{at}/data_csv?run=s&tag=overview_page")
    assert answer.status_code == 200 and answer.text.startswith('"Time (%)","Cumulative time (%)"')
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"].startswith("attachment")


@needs_xprof
def test_a_csv_file_of_xprof_runs_nothing_in_a_spreadsheet(tmp_path):
    from xprof.convert import csv_writer

    names = ["=HYPERLINK(1),x", "@a", "-x", 'a "quoted", name', "two\nlines", "x" * 200_000, "%fusion.1"]
    rows = [{"c": [{"v": name}, {"v": -1.5}]} for name in names]
    made = csv_writer.json_to_csv_string({"cols": [{"label": "=Operation"}, {"label": "Time"}], "rows": rows})
    headers = {"Content-Encoding": "gzip", "Content-Length": "9", "Content-Type": "text/csv; charset=utf-8"}
    answer = read_answer(gzip.compress(made.encode()), 200, headers, tmp_path)
    found = list(csv.reader(io.StringIO(answer.body.decode(), newline="")))
    told = ["'=HYPERLINK(1),x", "'@a", "'-x", *names[3:]]
    assert found == [["'=Operation", "Time"], *([name, "-1.5"] for name in told)]
    assert "content-encoding" not in answer.headers and answer.headers["content-length"] == str(len(answer.body))
    assert must_be_read("/data_csv", 200) and must_be_read("/data", 500) and not must_be_read("/data", 200)


@needs_xprof
def test_idle_and_surplus_processes_end(place, tmp_path, served, monkeypatch):
    _, mounted = served
    runs = [profiled(place, tmp_path / str(i), ["vm.xplane.pb"], run_id=f"run{i}") for i in range(3)]
    children = [mounted.servers.child(run) for run in runs]
    assert len(mounted.servers._children) == xprof.AT_ONCE
    assert children[0].process.poll() is not None and not children[0].folder.exists()
    assert mounted.servers.child(runs[2]) is children[2]
    monkeypatch.setattr(xprof, "IDLE_SECONDS", 0.0)
    time.sleep(0.01)
    mounted.servers._sweep()
    assert not mounted.servers._children
    with pytest.raises(ProcessLookupError):
        os.kill(children[2].process.pid, 0)
