"""`chipledger push` and the client, against real servers: whole, cut, killed, refused, and each recipe's last line."""

import contextlib
import http.server
import json
import os
import re
import shlex
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from app.client import Client, sending
from app.client.door import Door, Refused
from app.client.local import found
from app.serve.upload_names import clean_name
from errors import InputError, QuestionError
from tests.app.commands import out
from tests.app.serving import PROJECT, environment, free_port, get, request, serving
from tests.app.test_recipes import RECIPES, TITLED, commands, pipeline, written
from tests.collectors.ingesting import LOG

SIGNS = ("run_id", "existed", "files", "sent_bytes", "bytes", "url", "warnings", "job_id", "upload_id")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def server(store):
    with serving(store) as address:
        yield address


def log(number: int) -> str:
    return LOG.replace("loss: 2", f"loss: {number}")


def large(folder: Path, n_bytes: int) -> Path:
    """A folder with a log, and a file that no reader knows."""
    folder.mkdir()
    (folder / "train.log").write_text(log(n_bytes))
    (folder / "core.bin").write_bytes(os.urandom(1 << 20) * (n_bytes >> 20))
    return folder


def test_what_a_job_wrote_is_a_run_and_its_page_is_told(server, tmp_path, capsys):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/train.log").write_text(log(11))
    words = [
        "push",
        tmp_path / "logs",
        "--server",
        server,
        "--name",
        "pushed",
        "--chip",
        "v5e",
        "--tag",
        "a=b",
        "--wait",
    ]
    code, text, error = out(capsys, *words, "--chips", "4")
    assert (code, error) == (0, "") and text.startswith("Sent 1 file, ") and "Added: run " in text
    page = text.split()[-1]
    run = get(f"{server}/api/runs/{page.rpartition('=')[2]}")[1]
    assert page.startswith(f"{server}/findings?run=") and run["name"] == "pushed" and run["tags"] == {"a": "b"}
    assert run["facts"]["chips"]["value"] == 4
    code, text, error = out(capsys, *words, "--json", "--chips", "4")
    told = json.loads(text)
    assert (code, error, set(told)) == (0, "", set(SIGNS))
    assert (
        told["existed"] is True and told["sent_bytes"] == 0 and told["run_id"] == run["run_id"] and told["url"] == page
    )


def test_without_waiting_the_job_is_told_and_a_program_asks_on(server, tmp_path, monkeypatch, capsys):
    (tmp_path / "train.log").write_text(log(12))
    monkeypatch.setenv("CHIPLEDGER_SERVER", server)
    code, text, error = out(capsys, "push", tmp_path / "train.log", "--name", "asked")
    assert (code, error) == (0, "") and server in text
    with Client(server) as client:
        done = client.wait(text.split("Job ")[1].split()[0])
        assert done.state == "done" and done.run_id in [r["run_id"] for r in client.runs("asked")]
        assert client.show("asked", "steps")["run_id"] == done.run_id == client.run("asked")["run_id"]
        with pytest.raises(Refused, match="no parameter 'bims'"):
            client.show("asked", "goodput", bims=3)
        with pytest.raises(Refused, match="no field 'chipz' here; expected one of upload_id"):
            client.push([tmp_path], chipz=4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing-here"], "there is no such file or folder"),
        (["empty"], "there is no file in it"),
        (["train.log", "--server", "ftp://x"], "no address of a server"),
        (["train.log", "--server", "http://a b"], "no address of a server"),
        (["train.log", "--server", "http://host:99999"], "is no address"),
        (["train.log", "--server", "https://user:secret@host"], "a name or a password in it"),
        (["train.log", "--chips", "0"], "--chips 0"),
        (["train.log", "--tag", "x"], "tag 'x' is not understood"),
        (["train.log", "--patience", "-1s"], "--patience"),
        (["train.log", "--token-file", "nothing"], "nothing: cannot be read"),
        (["train.log", "--token-file", "empty.txt"], "holds no token"),
        (["train.log", "--token", "x"], "no option --token here"),
        (["train.log", "--server", "http://127.0.0.1:1", "--patience", "1s"], "does not answer (Connection refused)"),
        (["train.log", "--server", "http://192.0.2.1", "--token-file", "token.txt"], "not sent over plain http"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(server, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHIPLEDGER_SERVER", server)
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "token.txt").write_text("t0ken\n")
    code, text, error = out(capsys, "push", *words)
    assert (code, text) == (2, "") and error.count("\n") == 1 and said in error and "secret" not in error


def test_without_a_server_it_is_said_how_one_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CHIPLEDGER_SERVER", raising=False)
    code, _, error = out(capsys, "push", tmp_path)
    assert code == 2 and "expected --server URL, or $CHIPLEDGER_SERVER" in error


def test_it_starts_without_what_is_heavy():
    code = "import sys, app.cli.commands.push, app.client; print([m for m in %r if m in sys.modules])"
    heavy = ("numpy", "streamlit", "pyarrow", "starlette", "anyio", "pandas", "requests")
    done = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, env=environment())
    assert done.stdout.strip() == "[]", done.stderr


def test_files_of_one_name_and_odd_names_all_arrive(server, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.log").write_text(log(ord(folder)))
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.log"))
    odd.write_text(log(21))
    (tmp_path / ".hidden").write_text(log(22))
    with Client(server) as client:
        pushed = client.push([tmp_path / "a/train.log", tmp_path / "b/train.log", odd, tmp_path / ".hidden"])
        told = get(f"{server}/api/uploads/{pushed.upload_id}/files")[1]["files"]
        client.wait(pushed)
    assert pushed.files == 4 == len(told) and all(f["whole"] for f in told)
    assert {"train.log", "2/train.log"} < {f["name"] for f in told}


def named(folder: Path, *relative: str | bytes) -> list[Path]:
    """Files that each hold their own name."""
    paths = [Path(os.fsdecode(os.fsencode(folder) + b"/" + os.fsencode(one))) for one in relative]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(path))
    return paths


@pytest.mark.parametrize(
    "files, given",
    [
        (("3/log", "a/log", "b/log"), ("3", "a/log", "b/log")),  # the third `log` is not put over that of the folder 3
        (("a/log", "x/3/log", "b/log"), ("a/log", "x/3", "b/log")),
        (("a/3", "b/log", "c/log"), ("a/3", "b/log", "c/log")),  # nor is the file 3 made a folder
        (("a/log", "b/log/1"), ("a/log", "b/log")),
        ((b"d/\xff.log", rb"d/\xff.log", "d/xff.log", "d/d/xff.log"), ("d",)),  # all but the last one place
        ((b"a/\xff.log", "a/xff.log"), (b"a/\xff.log", "a/xff.log")),
    ],
)
def test_no_file_is_sent_to_the_place_of_another(tmp_path, files, given):
    made = named(tmp_path, *files)
    sent = found([Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + os.fsencode(one))) for one in given])
    places = {clean_name(one.name): one.path for one in sent}
    assert sorted(places.values()) == sorted(made)
    assert not any(parent in places for place in places for parent in place.parents)


def test_of_three_files_of_which_one_lies_in_a_folder_called_3_all_arrive(server, tmp_path):
    for number, path in enumerate(named(tmp_path, "3/log", "a/log", "b/log"), 31):
        path.write_text(log(number))
    with Client(server) as client:
        pushed = client.push([tmp_path / "3", tmp_path / "a/log", tmp_path / "b/log"])
        told = get(f"{server}/api/uploads/{pushed.upload_id}/files")[1]["files"]
    assert pushed.files == 3 and sorted(f["name"] for f in told) == ["3/log", "4/log", "log"]


def started(store: Path, port: int) -> subprocess.Popen:
    """A server at a port that stays the same over its lives."""
    words = [sys.executable, "-m", "app.cli", "serve", "--store", str(store), "--port", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if get(f"http://127.0.0.1:{port}/healthz")[0] == 200:
                return process
        time.sleep(0.1)
    raise AssertionError("the server does not answer")


def until_there(store: Path, least: int) -> int:
    """Waits until so many bytes of a file are there that is not whole."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in store.glob("uploads/*/*.coming"):
            with contextlib.suppress(OSError):
                if (n := path.stat().st_size) >= least:
                    return n
        time.sleep(0.001)
    raise AssertionError("nothing came")


def refused_for(server: str, upload_id: str, other_than: str) -> str:
    """Why no run is made of an upload, once it is for something else."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status, told = request("POST", f"{server}/api/ingest", {"upload_id": upload_id})
        assert status == 400, told
        if other_than not in told["error"]:
            return told["error"]
        time.sleep(0.02)
    raise AssertionError(f"it is refused for the same all the time: {other_than}")


def test_a_server_that_is_killed_in_the_middle_and_started_anew_has_it_all_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sending, "PIECE_BYTES", 1 << 18)
    folder, store, port = large(tmp_path / "out", 12 << 20), tmp_path / "store", free_port()
    process = started(store, port)
    try:
        with Client(f"http://127.0.0.1:{port}", patience_s=60) as client:
            found: list = []
            thread = threading.Thread(target=lambda: found.append(client.push([folder])))
            thread.start()
            until_there(store, 4 << 20)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert list(store.glob("uploads/*/*.coming")), "it was killed before the file was whole"
            process = started(store, port)
            thread.join(120)
            [pushed] = found
            assert pushed.n_bytes <= pushed.sent_bytes < pushed.n_bytes + (1 << 20)
            done = client.wait(pushed)
            [there] = store.glob("uploads/*/files/out/core.bin")
            assert done.state == "done" and there.read_bytes() == (folder / "core.bin").read_bytes()
            assert not list(store.glob("uploads/*/*.coming"))
    finally:
        process.kill()
        process.wait()


def test_a_sender_that_is_killed_in_the_middle_goes_on_when_it_is_started_anew(server, store, tmp_path, capsys):
    folder = large(tmp_path / "job", 12 << 20)
    slow = "import app.client.sending as s, sys; s.PIECE_BYTES = 1 << 18; from app.cli import main; main(sys.argv[1:])"
    words = ["push", str(folder), "--server", server, "--name", "cut"]
    process = subprocess.Popen([sys.executable, "-c", slow, *words], env=environment(), stdout=subprocess.DEVNULL)
    there = until_there(store, 4 << 20)
    process.kill()
    process.wait()
    unfinished = list(store.glob("uploads/*/*.coming"))
    assert len(unfinished) == 1, "it was killed before the file was whole"
    upload_id = unfinished[0].parent.name
    told = refused_for(server, upload_id, other_than="is still on the way")  # until the server saw that it is gone
    assert "did not arrive whole, such as 'job/core.bin'" in told
    code, text, error = out(capsys, *words, "--wait", "--json")
    told = json.loads(text)
    assert (code, error) == (0, "") and told["upload_id"] == upload_id
    assert told["sent_bytes"] <= told["bytes"] - there + (1 << 18)


def test_a_file_that_changes_while_it_is_sent_is_told(server, tmp_path, monkeypatch):
    path = tmp_path / "train.log"
    path.write_bytes(os.urandom(3 << 20))
    monkeypatch.setattr(sending, "PIECE_BYTES", 1 << 20)

    def grows(done: int, total: int, what: str) -> None:
        if what.startswith("Sending") and done == 1 << 20:
            with path.open("r+b") as f:
                f.seek(2 << 20)
                f.write(b"changed")

    with Client(server) as client, pytest.raises(InputError, match=r"train\.log: changed while it was sent"):
        client.push([path], progress=grows)


@pytest.fixture
def elsewhere():
    """A server that leads elsewhere, and what it was sent."""
    heard: list[dict[str, str]] = []

    class Leads(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(dict(self.headers))
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{port}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Leads) as httpd:
        port = httpd.server_port
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{port}", heard
        httpd.shutdown()


def test_a_token_goes_where_it_was_sent_and_not_where_that_leads(elsewhere):
    address, heard = elsewhere
    with (
        Client(address, "t0ken") as client,
        pytest.raises(Refused, match="the server leads to .*/elsewhere; give that"),
    ):
        client.runs()
    assert [h["Authorization"] for h in heard] == ["Bearer t0ken"]


@pytest.fixture
def stranger():
    """Another program that answers everything with what it is told to, and what it was asked."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_any(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            path = next((p for p in told if p and self.path.endswith(p)), "")
            status, headers, body = told.get(path, told[""])
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_HEAD = do_any

        def log_message(self, *_: object) -> None: ...

    told: dict[str, tuple[int, dict[str, str], bytes]] = {}
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}", told
        httpd.shutdown()


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"null", b"<html>Sign in</html>", b'{"upload_id": 1, "files": 2}', b"\xff\xfe"]
)
def test_another_program_at_the_address_is_named_as_one(stranger, tmp_path, body):
    address, told = stranger
    told[""] = 200, {}, body
    (tmp_path / "train.log").write_text("x")
    with Client(address, patience_s=0.0) as client:
        with pytest.raises(InputError, match="answers (with no JSON|as no server of Chipledger does)"):
            client.push([tmp_path / "train.log"])
        with pytest.raises(InputError, match="answers (with no JSON|as no server of Chipledger does)"):
            client.runs()
        with pytest.raises(InputError, match="answers (with no JSON|as no server of Chipledger does)"):
            client.job("1")


def test_what_takes_pieces_and_keeps_none_is_not_sent_to_for_ever(stranger, tmp_path):
    address, told = stranger
    told[""] = 204, {"Upload-Offset": "0"}, b""
    told["/files"] = (
        201,
        {"Location": f"/api/uploads/{'0' * 32}/files/{'1' * 32}", "Upload-Offset": "0"},
        b'{"files": []}',
    )
    told["/uploads"] = 200, {}, b'{"upload_id": "' + b"0" * 32 + b'"}'
    (tmp_path / "train.log").write_bytes(bytes(1 << 20))
    with Client(address, patience_s=0.0) as client, pytest.raises(InputError, match="as no server of Chipledger does"):
        client.push([tmp_path / "train.log"])


@pytest.mark.parametrize("token", ["two words", "line\r\nX-Evil: 1", "é", "x" * 5000])
def test_a_token_that_is_none_is_refused_before_anything_is_sent(token):
    with pytest.raises(QuestionError, match="token"):
        Door("https://host", token)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    subprocess.run([*words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as httpd:
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        address = f"https://localhost:{httpd.server_port}"
        with Client(address, "t0ken") as client, pytest.raises(InputError, match="its certificate is not trusted"):
            client.runs()
        httpd.shutdown()


SET = {"$RUN": "night-run", "$SLURM_JOB_ID": "4242"}


def pushes(recipe: Path) -> list[list[str]]:
    """The words of each `chipledger push` in a recipe: in a block of commands, in a script, or in YAML."""
    found = [words for words in commands(recipe) if words[0] == "push"]
    for name, text in TITLED.findall(recipe.read_text(encoding="utf-8")):
        if name.endswith(".yaml"):
            lines = [line for line in pipeline(yaml.safe_load(text)) if line.startswith("push ")]
        else:
            lines = re.findall(r"^(?:exec )?chipledger (push .*)$", text, re.MULTILINE)
        found += [[re.sub(r"\$\w+", lambda m: SET[m[0]], w) for w in shlex.split(line)] for line in lines]
    return found


WITH_PUSH = [r for r in RECIPES if "chipledger push" in r.read_text(encoding="utf-8")]


def test_the_kinds_of_jobs_that_were_asked_for_end_with_a_line():
    assert {r.stem for r in WITH_PUSH} >= {"maxtext", "jax", "pytorch", "vllm", "kubernetes", "slurm"}
    assert all(pushes(recipe) for recipe in WITH_PUSH)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", WITH_PUSH, ids=lambda p: p.stem)
def test_each_recipe_ends_with_a_line_that_makes_its_run(server, tmp_path, monkeypatch, capsys, recipe):
    written(recipe, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHIPLEDGER_SERVER", server)
    for words in pushes(recipe):
        code, text, error = out(capsys, *words, *([] if "--wait" in words else ["--wait"]))
        assert code == 0, error
        run = get(f"{server}/api/runs/{text.split()[-1].rpartition('=')[2]}")[1]
        assert run["name"] == words[words.index("--name") + 1]
    shown = next(words for words in commands(recipe) if words[0] == "show")
    assert get(f"{server}/api/runs/{run['run_id']}/show/{shown[2]}")[0] == 200


@pytest.mark.slow
def test_the_scripts_of_recipes_run_as_they_stand(server, tmp_path):
    (tmp_path / "chipledger").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m app.cli "$@"\n')
    (tmp_path / "chipledger").chmod(0o755)
    env = environment(CHIPLEDGER_SERVER=server, SLURM_JOB_ID="4711", RUN="beside-it")
    env["PATH"] = f"{tmp_path}{os.pathsep}{env['PATH']}"
    [slurm] = [r for r in RECIPES if r.stem == "slurm"]
    written(slurm, tmp_path)
    done = subprocess.run(["/bin/sh", "push.sh"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    [beside] = [r for r in RECIPES if r.stem == "kubernetes"]
    (tmp_path / "pod").mkdir()
    written(beside, tmp_path / "pod")
    [container] = yaml.safe_load((tmp_path / "pod/job.yaml").read_text())["spec"]["template"]["spec"]["initContainers"]
    words = [*container["command"], *container["args"]]
    process = subprocess.Popen(words, cwd=tmp_path / "pod", env=env, stdout=subprocess.PIPE, text=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while not children.read_text().strip() and time.monotonic() < deadline:  # its first pause comes after its trap
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    with Client(server) as client:
        for told in (done.stdout, said):
            assert client.run(client.wait(told.split("Job ")[1].split()[0]).run_id)["sources"]


def test_the_program_of_the_recipe_for_jax_pushes(server, tmp_path):
    [jax] = [r for r in RECIPES if r.stem == "jax"]
    [program] = [text for name, text in TITLED.findall(jax.read_text(encoding="utf-8")) if name == "push.py"]
    (tmp_path / "push.py").write_text(program)
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile/train.log").write_text(log(31))
    env = environment(CHIPLEDGER_SERVER=server)
    done = subprocess.run(
        [sys.executable, "push.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert urlsplit(done.stdout.strip()).path == "/findings" and PROJECT.is_dir()
