"""The module that is copied beside a job: alone, off unless asked, one at a time, and never the job's trouble."""

import ast
import http.client
import json
import subprocess
import sys
import threading
import time

import pytest

from app.capture import agent as module
from tests.app.capture_jobs import AGENT_FILE, TOKEN
from tests.app.commands import out
from tests.app.serving import free_port


class Tracer:
    """A profiler that notes what is done to it, and may fail."""

    def __init__(self, folder, fails=""):
        self.folder, self.fails, self.done = folder, fails, []

    def _do(self, what):
        self.done.append(what)
        if what == self.fails:
            raise RuntimeError(f"no {what}")

    def start(self):
        self._do("start")

    def stop(self):
        self._do("stop")

    def mark(self, number):
        tracer = self

        class Mark:
            def __enter__(self):
                tracer._do(f"begin {number}")

            def __exit__(self, *_):
                tracer._do(f"end {number}")

        return Mark()

    def saved(self):
        file = self.folder / "host_1.2.pt.trace.json.gz"
        file.write_bytes(b"trace")
        return file


@pytest.fixture
def made(monkeypatch):
    """An agent that answers, and the tracers that it made."""
    tracers, fails = [], [""]

    def tracer(folder, at_once, stacks):
        tracers.append(Tracer(folder, fails[0]))
        return tracers[-1]

    monkeypatch.setattr(module, "_tracer", tracer)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    agent = module.serve("127.0.0.1:0", TOKEN)
    assert agent.port
    yield agent, tracers, fails


def ask(agent, wanted, token=TOKEN, path="/capture", verb="POST"):
    connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=20)
    body = wanted if isinstance(wanted, str) else json.dumps(wanted)
    connection.request(verb, path, body, {"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data if answer.status == 200 else json.loads(data)["error"]


def later(agent, wanted):
    told = []
    thread = threading.Thread(target=lambda: told.append(ask(agent, wanted)))
    thread.start()
    return thread, told


def until(holds, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_is_one_file_of_pythons_own_library(capsys):
    tree = ast.parse(AGENT_FILE.read_text())
    outer = {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    outer |= {n.module for n in tree.body if isinstance(n, ast.ImportFrom) if n.module}
    assert {name.partition(".")[0] for name in outer} <= set(sys.stdlib_module_names)
    assert out(capsys, "capture", "--print-agent") == (0, AGENT_FILE.read_text(), "")


def test_steps_are_whole_and_marked(made):
    agent, tracers, _ = made
    agent.step()
    thread, told = later(agent, {"steps": 2})
    until(lambda: tracers)
    for _ in range(5):
        agent.step()
    thread.join()
    assert told == [(200, b"trace")]
    assert tracers[0].done == ["start", "begin 2", "end 2", "begin 3", "end 3", "stop"]
    agent.step()
    assert tracers[0].done[-1] == "stop" and len(tracers) == 1


def test_seconds_end_with_the_step_that_runs(made):
    agent, tracers, _ = made
    thread, told = later(agent, {"duration_s": 0.3})
    until(lambda: tracers and tracers[0].done)
    agent.step()
    agent.step()
    time.sleep(0.6)
    assert "stop" not in tracers[0].done
    agent.step()
    thread.join()
    assert told[0][0] == 200 and tracers[0].done == ["start", "begin 1", "end 1", "begin 2", "end 2", "stop"]


def test_seconds_of_a_job_without_steps(made):
    agent, tracers, _ = made
    began = time.monotonic()
    assert ask(agent, {"duration_s": 0.2})[0] == 200
    assert tracers[0].done == ["start", "stop"] and time.monotonic() - began < 3


def test_one_at_a_time(made):
    agent, tracers, _ = made
    thread, told = later(agent, {"steps": 1})
    until(lambda: tracers)
    status, why = ask(agent, {"duration_s": 1})
    assert status == 409 and "already" in why
    agent.step()
    agent.step()
    thread.join()
    assert told[0][0] == 200 and ask(agent, {"duration_s": 0.1})[0] == 200


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({}, 400),
        ({"steps": 0}, 400),
        ({"steps": 1001}, 400),
        ({"steps": True}, 400),
        ({"steps": 1.5}, 400),
        ({"steps": "2"}, 400),
        ({"duration_s": 0}, 400),
        ({"duration_s": 601}, 400),
        ('{"duration_s": NaN}', 400),
        ('{"duration_s": Infinity}', 400),
        ({"steps": 1, "duration_s": 1}, 400),
        ({"steps": 1, "folder": "/tmp"}, 400),
        ({"steps": 1, "python": 1}, 400),
        ("[]", 400),
        ("[" * 4000, 400),
        ("\xff", 400),
        ("x" * 5000, 404),
    ],
)
def test_what_cannot_be_meant(made, wanted, status):
    agent, tracers, _ = made
    assert ask(agent, wanted)[0] == status and not tracers


def test_only_who_knows_the_token_and_the_way(made):
    agent, tracers, _ = made
    for token in ("", "x", TOKEN[:-1], TOKEN + "0", TOKEN.upper() + "\xe9"):
        assert ask(agent, {"steps": 1}, token)[0] == 401
    assert ask(agent, {"steps": 1}, path="/capture/..")[0] == 404
    assert not tracers


@pytest.mark.parametrize("fails", ["start", "stop", "begin 1", "end 1"])
def test_a_profiler_that_fails_is_told_to_who_asked_and_not_to_the_job(made, fails):
    agent, tracers, failing = made
    failing[0] = fails
    thread, told = later(agent, {"steps": 1})
    until(lambda: tracers)
    for _ in range(3):
        agent.step()  # raises nothing
    thread.join()
    assert told[0] == (500, f"the profiler failed (RuntimeError: no {fails})")
    failing[0] = ""
    assert ask(agent, {"duration_s": 0.1})[0] == 200


def test_who_hangs_up_ends_it_with_the_next_step(made):
    agent, tracers, _ = made
    connection = http.client.HTTPConnection("127.0.0.1", agent.port)
    connection.request("POST", "/capture", '{"steps": 100}', {"Authorization": f"Bearer {TOKEN}"})
    until(lambda: tracers)
    agent.step()
    connection.close()
    until(lambda: "stop" in tracers[0].done or (agent.step() or time.sleep(0.05)))
    assert ask(agent, {"duration_s": 0.1})[0] == 200


def test_steps_that_never_come(made, monkeypatch):
    agent, tracers, _ = made
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.3)
    status, why = ask(agent, {"steps": 3})
    assert status == 504 and "agent.step()" in why and tracers[0].done == []
    thread, told = later(agent, {"steps": 3})
    until(lambda: len(tracers) == 2)
    agent.step()
    thread.join()
    assert "0 of 3 steps ended" in told[0][1]
    assert ask(agent, {"duration_s": 0.1})[0] == 409  # it still records: the thread that trains alone can end that
    agent.step()
    assert tracers[1].done[-1] == "stop" and ask(agent, {"duration_s": 0.1})[0] == 200


def test_a_trace_that_is_too_large_is_not_sent(made, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 4)
    assert ask(made[0], {"duration_s": 0.1})[0] == 413


def test_many_connections_that_say_nothing_take_few_threads(made):
    agent, _, _ = made
    idle = [http.client.HTTPConnection("127.0.0.1", agent.port, timeout=5) for _ in range(30)]
    before = threading.active_count()
    for one in idle:
        one.connect()
    time.sleep(0.5)
    assert threading.active_count() - before <= module.MOST_CONNECTIONS
    for one in idle:
        one.close()
    until(lambda: threading.active_count() <= before)
    assert ask(agent, {"duration_s": 0.1})[0] == 200


@pytest.mark.parametrize(
    ("listen", "token"),
    [("", TOKEN), ("127.0.0.1:0", "short"), ("127.0.0.1", TOKEN), ("127.0.0.1:x", TOKEN), ("127.0.0.1:99999", TOKEN)],
)
def test_what_is_missing_or_wrong_leaves_the_job_alone(listen, token, monkeypatch):
    for name in (module.LISTEN, module.TOKEN):
        monkeypatch.delenv(name, raising=False)
    agent = module.serve(listen, token)
    agent.step()
    assert agent.port == 0 and agent.steps == 1


def test_a_port_that_is_taken_is_told(made, capsys):
    assert module.serve(f"127.0.0.1:{made[0].port}", TOKEN).port == 0
    assert "nothing can be captured" in capsys.readouterr().err


def test_ranks_of_a_machine_listen_side_by_side(monkeypatch):
    first = free_port()
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert module.serve(f"127.0.0.1:{first}", TOKEN).port in (first + 3, 0)


def test_a_script_runs_as_python_runs_it(tmp_path):
    (tmp_path / "beside.py").write_text("WORD = 'beside'")
    script = tmp_path / "train.py"
    script.write_text("import sys, beside\nprint(__name__, sys.argv[1:], beside.WORD, sys.path[0])\nsys.exit(3)")
    done = subprocess.run([sys.executable, AGENT_FILE, script, "--lr", "1"], capture_output=True, text=True)
    assert done.returncode == 3 and done.stdout == f"__main__ ['--lr', '1'] beside {tmp_path}\n"
    done = subprocess.run([sys.executable, AGENT_FILE, "-m", "beside_main", "x"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1 and b"beside_main" in done.stderr
    (tmp_path / "beside_main.py").write_text("import sys; print(__name__, sys.argv[1:])")
    done = subprocess.run([sys.executable, AGENT_FILE, "-m", "beside_main", "x"], cwd=tmp_path, capture_output=True)
    assert done.stdout == b"__main__ ['x']\n"
    assert subprocess.run([sys.executable, AGENT_FILE], capture_output=True).returncode == 1


def test_the_first_optimizer_counts_and_an_explicit_step_wins():
    agent = module.Agent()
    first, second = object(), object()
    for optimizer in (first, second, first):
        agent._optimizer_stepped(optimizer, (), {})
    assert agent.steps == 2
    agent.step()
    agent._optimizer_stepped(first, (), {})
    assert agent.steps == 3


def test_a_step_that_outlasts_the_recording_closes_its_mark_in_its_own_thread(made, monkeypatch):
    agent, tracers, _ = made
    monkeypatch.setattr(module, "LAST_STEP_SECONDS", 0.2)
    thread, told = later(agent, {"duration_s": 0.3})
    until(lambda: tracers and tracers[0].done)
    agent.step()
    thread.join()
    assert told[0][0] == 200 and tracers[0].done == ["start", "begin 1", "stop"]
    assert ask(agent, {"duration_s": 0.1})[0] == 409
    agent.step()
    assert tracers[0].done[-1] == "end 1" and ask(agent, {"duration_s": 0.1})[0] == 200


def test_who_hangs_up_leaves_no_mark_open(made):
    agent, tracers, _ = made
    connection = http.client.HTTPConnection("127.0.0.1", agent.port)
    connection.request("POST", "/capture", '{"duration_s": 60}', {"Authorization": f"Bearer {TOKEN}"})
    until(lambda: tracers and tracers[0].done)
    agent.step()
    connection.close()
    time.sleep(0.5)
    assert "stop" not in tracers[0].done
    agent.step()
    until(lambda: "stop" in tracers[0].done)
    assert tracers[0].done == ["start", "begin 1", "end 1", "stop"]


@pytest.mark.parametrize("wanted", [{"steps": 9}, {"duration_s": 60}])
def test_a_job_that_ends_stops_what_records_and_tells_who_asked(made, wanted):
    agent, tracers, _ = made
    thread, told = later(agent, wanted)
    until(lambda: tracers)
    time.sleep(0.2)
    agent.step()
    agent.leave()  # as the interpreter calls it at its end
    assert not agent.answering and "stop" in tracers[0].done
    thread.join()
    assert told == [(503, "the job ended meanwhile")]
    assert tracers[0].done == ["start", "begin 1", "end 1", "stop"]
