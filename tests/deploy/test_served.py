"""The command, the environment and the probes that the files name, against a server that runs."""

import json
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from app.bundled_runs import reference_runs
from app.operations import probe
from app.operations.metrics import MEDIA_TYPE
from runs.demo_runs import DemoRuns
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import environment, free_port, get, request
from tests.bundled import demo_store
from tests.deploy.manifests import KUBERNETES, compose, container, objects

pytestmark = pytest.mark.slow
TOKEN = "0123456789abcdef-of-a-monitor"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(port, the server's store, its log) of a server started as Kubernetes starts it, and told to load the bundled
    runs, which its store has already: that takes a minute."""
    folder = tmp_path_factory.mktemp("served")
    store, port, log = demo_store(tmp_path_factory), free_port(), folder / "log"
    said = container(objects(KUBERNETES / "base"))
    env = {e["name"]: e["value"] for e in said["env"] if "value" in e}
    env |= {"CHIPLEDGER_STORE": str(store), "CHIPLEDGER_METRICS_TOKEN": TOKEN}
    env |= {"CHIPLEDGER_IDENTITY": "", "CHIPLEDGER_OPEN_TO_ALL": "1"}  # as the overlay of the demo has it
    arguments = [str(port) if a == "8501" else a for a in said["args"][1:]]
    with log.open("w") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", *arguments, "--with-demo"],
            stdout=subprocess.DEVNULL,
            stderr=written,
            env=environment(**env),
            cwd=folder,
        )
        try:
            _until(lambda: probed(port)[0] == 0 or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield port, store, log
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _until(true, patience_s=300.0):
    deadline = time.monotonic() + patience_s  # of a machine on which much else runs
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def probed(port):
    """(exit code, what it says) of the check that compose and the image make."""
    test = compose()["services"]["app"]["healthcheck"]["test"]
    assert test[:2] == ["CMD", "python"]
    done = subprocess.run(
        [sys.executable, *test[2:], str(port)], capture_output=True, text=True, timeout=120, env=environment()
    )
    return done.returncode, done.stdout


def test_every_probe_is_answered(served):
    port, _, _ = served
    said = container(objects(KUBERNETES / "base"))
    for name in ("startup", "liveness", "readiness"):
        asked = said[f"{name}Probe"]["httpGet"]
        told = urllib.request.Request(f"http://127.0.0.1:{port}{asked['path']}", headers={"Host": "10.1.2.3:8501"})
        with urllib.request.urlopen(told, timeout=60) as answer:
            assert answer.status == 200
    assert probed(port) == (0, "ready\n") or "kernels" in probed(port)[1]


def test_a_monitor_with_the_token_reads_figures_and_nobody_else_from_elsewhere(served):
    port, _, _ = served
    address = f"http://127.0.0.1:{port}/metrics"
    elsewhere = {"Host": "chipledger.example"}
    assert request("GET", address, headers=elsewhere)[0] == 403
    asked = urllib.request.Request(address, headers={**elsewhere, "Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.headers["content-type"] == MEDIA_TYPE and answer.read().endswith(b"# EOF\n")


def test_of_a_query_that_is_asked_without_end_some_are_told_to_come_later(served):
    port, _, _ = served
    codes = [get(f"http://127.0.0.1:{port}/api/runs/none/query?sql=select+1")[0] for _ in range(60)]
    assert set(codes) == {404, 429} and codes[0] == 404


def test_a_run_is_uploaded_read_and_each_step_logged_without_its_name(served):
    port, store, log = served
    here = f"http://127.0.0.1:{port}"
    upload = request("POST", f"{here}/api/uploads", {})[1]["upload_id"]
    body = made_runs.goodput_log(50, "uploaded")
    assert request("PUT", f"{here}/upload/{upload}/secret-name.log", body)[0] == 200
    job = request("POST", f"{here}/api/ingest", {"upload_id": upload, "name": "secret-name"})[1]
    _until(lambda: get(f"{here}/api/jobs/{job['job_id']}")[1]["state"] not in ("waiting", "running"))
    request("GET", f"{here}/api/runs/secret-name?token=secret-name", headers={"Authorization": "Bearer secret-name"})
    _until(lambda: all(w in log.read_text() for w in ("job_ended", '"/api/runs/{run_id}"')))
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]  # each is an object: Streamlit's and uvicorn's too
    assert "secret-name" not in text and TOKEN not in text
    requests = [line for line in lines if line["event"] == "request"]
    assert {"/upload/{upload_id}/{name:path}", "/api/ingest", "/api/runs/{run_id}"} <= {r["route"] for r in requests}
    (put,) = [r for r in requests if r["route"].startswith("/upload/")]
    assert (put["status"], put["received_bytes"]) == (200, len(body))
    assert [line["what"] for line in lines if line["event"] == "job_ended"] == ["ingest"]


def test_doctor_finds_it_as_it_is(served, capsys):
    port, _, _ = served
    code, text, _ = out(capsys, "doctor", "--server", f"http://127.0.0.1:{port}", "--json")
    found = {c["what"]: c for c in json.loads(text)["checks"]}
    assert code == 0 and not any(c["fails"] for c in found.values())
    assert found["sessions"]["found"] == "a WebSocket opens" and found["other sites"]["found"] == "refused (403)"
    assert found["ready"]["found"] == "yes" and "runs of schema" in found["version"]["found"]
    code, text, _ = out(capsys, "doctor", "--server", f"127.0.0.1:{port}", "--json")
    found = {c["what"]: c for c in json.loads(text)["checks"]}
    assert code == 3 and "cannot be listened on" in found["address"]["wrong"]


def test_the_probe_says_why_where_nobody_answers(capsys):
    assert probe.main([str(free_port())]) == 1
    assert capsys.readouterr().out.startswith("no answer at port")


def test_with_demo_loads_what_the_store_lacks_while_the_server_answers(served):
    port, store, log = served
    _until(lambda: "demo_loaded" in log.read_text())
    (told,) = [one for one in map(json.loads, log.read_text().splitlines()) if one["event"] == "demo_loaded"]
    assert told["exit_code"] == 0 and told["said"].count("Already here: ") == len(reference_runs())
    assert probed(port)[0] == 0 and len(DemoRuns(store / "registry.db").ids()) == len(reference_runs())
