"""Running jobs are recorded on demand, all their hosts at once, into one run; what fails costs no more than itself."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.capture import job_agent, profiler_server
from app.capture.addresses import MOST, Address, addresses, among_allowed
from app.capture.options import Asked
from app.capture.session import CONNECT_S
from app.capture.together import capture
from app.capture.wire import Tracing, host_name, profile_request, trace_of
from app.cli.commands.capture import captured
from collectors.ingesting.gather import Cancelled
from errors import ChipledgerError, InputError
from tests.app.capture_jobs import AGENT, NEVER_STEPS, SERVER, TOKEN, as_token, grpc_server, job, listening, slow
from tests.app.commands import out
from tests.app.serving import environment, free_port

pytest.importorskip("jax", reason="a job of JAX is captured: pip install 'chipledger[reference]'")
SHORT = Asked(duration_s=0.5, timeout_s=30)


@pytest.fixture(scope="module")
def two():
    with job(SERVER) as first, job(SERVER) as second:
        yield [f"127.0.0.1:{first}", f"127.0.0.1:{second}"]


@pytest.fixture(scope="module")
def with_agent():
    with job(AGENT) as port:
        yield f"agent://127.0.0.1:{port}"


def rows(place, run_id, table):
    folder = place.store.runs_folder / run_id / "tables"
    return [r for f in sorted(folder.glob(f"{table}*.parquet")) for r in pq.read_table(f).to_pylist()]


def kept(place):
    return sorted(p.name for p in place.store.uploads_folder.rglob("*.pb"))


# Of JAX's profiler server


def test_two_hosts_become_one_run_whose_traces_are_kept(place, two):
    told = captured(place, addresses(two), SHORT)
    captures = rows(place, told["run_id"], "captures")
    assert len(captures) == 2 and len({c["host"] for c in captures}) == 2  # two processes of one machine
    began, ended = max(c["start_ns"] for c in captures), min(c["stop_ns"] for c in captures)
    assert (ended - began) / 1e9 > 0.3  # of half a second: they were recorded at the same time
    by_host = {s["host"] for s in rows(place, told["run_id"], "steps")}
    assert len(by_host) == 2 and told["tables"]["op_events"] > 0
    assert [h["problem"] for h in told["hosts"]] == [None, None] and told["warnings"] == []
    assert len(kept(place)) == 2
    manifest = place.store.find(told["run_id"]).manifest
    assert manifest.fact("chips") == 2 and "on: 2 hosts." in manifest.fact("note") and not manifest.tags


def test_who_does_not_answer_is_named_and_costs_the_others_nothing(place, two):
    dead = f"127.0.0.1:{free_port()}"
    with (
        listening() as (silent, _),
        listening(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 5000) as (garbage, _),
        grpc_server(lambda *_: b"", "/other.Service/Profile") as other,
        grpc_server(lambda *_: b"\x42\xff\xff\xff\x7fshort") as cut,
        grpc_server(lambda *_: b"") as nothing,
        grpc_server(slow(60)) as never,
    ):
        odd = [f"127.0.0.1:{p}" for p in (silent, garbage, other, cut, nothing, never)]
        began = time.monotonic()
        asked = Asked(duration_s=0.5, timeout_s=4, name="partly")
        told = captured(place, addresses([*two, dead, *odd]), asked)
        took = time.monotonic() - began
    why = {h["address"]: h["problem"] for h in told["hosts"]}
    assert [why[a] for a in two] == [None, None]
    assert "Connection refused" in why[dead]
    assert "says nothing" in why[odd[0]] and "something else" in why[odd[1]]
    assert why[odd[2]] == "it is no profiler server" and "cut off" in why[odd[3]]
    assert "no trace" in why[odd[4]] and why[odd[5]] == "no answer within 4.5 s"
    assert took < CONNECT_S + 4.5 + 15
    run = place.store.find(told["run_id"])
    assert run.manifest.tags == {"captured": "2 of 9 hosts"} and told["tables"]["captures"] == 2
    assert (
        dead in run.manifest.fact("note")
        and told["warnings"][0].startswith("No trace of ")
        and "2 of 9 hosts" in run.manifest.fact("note")
    )


def test_all_or_nothing_stores_nothing_where_one_is_missing(place, two, capsys):
    dead = f"127.0.0.1:{free_port()}"
    code, said, error = out(capsys, "capture", *two, dead, "--duration-s", "0.3", "--all-or-nothing")
    assert code == 2 and said == "" and error.count("\n") == 1
    assert dead in error and "Nothing was stored" in error and two[0] not in error
    assert not place.store.runs() and not kept(place)
    assert not [p for p in place.store.uploads_folder.iterdir() if p.is_dir()]


def test_nobody_answers(place, capsys):
    dead = [f"127.0.0.1:{free_port()}" for _ in range(5)]
    code, _, error = out(capsys, "capture", *dead)
    assert code == 2 and "and 2 more: no connection (Connection refused)" in error
    assert not place.store.runs()


def test_the_command_prints_what_came_of_each(place, two, capsys):
    code, said, _ = out(capsys, "capture", ",".join(two), "--duration-s=0.3", "--json", "--tag=a=b", "--name=now")
    told = json.loads(said)
    assert code == 0 and [h["address"] for h in told["hosts"]] == two
    assert all(h["bytes"] > 1000 and h["host"] for h in told["hosts"])
    run = place.store.find("now")
    assert run.run_id == told["run_id"] and run.manifest.tags == {"a": "b"}


def test_an_answer_that_is_too_large_is_refused_before_it_is_held(place, two):
    block = b"\x0a\x04\x12\x02/h" * 4_000_000
    huge = b"\x42" + _length(len(block)) + block
    with grpc_server(lambda *_: huge) as port:
        where = addresses([*two, f"127.0.0.1:{port}"])
        told = captured(place, where, Asked(duration_s=0.3, memory_gb=0.09, timeout_s=30))
    assert "holds more than 10,000,000 bytes" in told["hosts"][2]["problem"]
    assert told["tables"]["captures"] == 2


def _length(value):
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def test_a_host_is_recorded_by_one_at_a_time(place, two):
    told: list[str | None] = []

    def take(name):
        try:
            told.append(captured(place, addresses(two[:1]), Asked(duration_s=1.5, name=name))["run_id"])
        except InputError as e:
            assert "a profile is being taken there already" in str(e)
            told.append(None)

    threads = [threading.Thread(target=take, args=(n,)) for n in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count(None) == 1 and len(place.store.runs()) == 1


def test_two_captures_of_different_hosts_at_once_are_two_runs(place, two):
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda a=a: made.append(captured(place, addresses([a]), SHORT)["run_id"])) for a in two
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2 == len(place.store.runs())


def test_cancelled_it_leaves_nothing_and_frees_the_hosts(place, two):
    began = time.monotonic()
    with pytest.raises(Cancelled):
        folder = place.store.root / "t"
        capture(addresses(two), Asked(duration_s=60), folder, stop=lambda: time.monotonic() - began > 1.5)
    assert time.monotonic() - began < 10
    deadline = time.monotonic() + 60
    while True:  # the server notices within a moment that nobody listens any more
        told = captured(place, addresses(two), Asked(duration_s=0.2))
        if all(h["problem"] is None for h in told["hosts"]) or time.monotonic() > deadline:
            break
    assert [h["problem"] for h in told["hosts"]] == [None, None]


def test_the_command_ends_at_a_signal_with_nothing_stored(place, two):
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "--store", str(place.store.root), "capture", *two, "--duration-s", "60"],
        stderr=subprocess.PIPE,
        env=environment(CHIPLEDGER_PROGRESS_JSON="1"),
    )
    try:
        for line in process.stderr:
            if b"Recording" in line:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(45) == 2
    finally:
        process.kill()
        process.stderr.close()
    assert not place.store.runs() and not kept(place)


def older(monkeypatch):
    """The real server, asked as one that does not know `emit_xspace` understands it."""
    asked = profiler_server.profile_request
    monkeypatch.setattr(profiler_server, "profile_request", lambda *a: asked(*a, emit=False))


def test_a_server_that_only_writes_needs_a_shared_folder(place, two, tmp_path, monkeypatch):
    older(monkeypatch)
    with pytest.raises(InputError, match="--shared"):
        captured(place, addresses(two[:1]), SHORT)
    told = captured(place, addresses(two), Asked(duration_s=0.5, shared=str(tmp_path / "shared")))
    assert told["tables"]["captures"] == 2
    assert len(list((tmp_path / "shared").rglob("*.xplane.pb"))) == 2


def test_settings_of_the_profiler_reach_it(place, two):
    for python in (False, True):
        told = captured(place, addresses(two[:1]), Asked(duration_s=0.5, python=python, name=f"python {python}"))
        (trace,) = (
            f for f in place.store.uploads_folder.rglob("*.pb") if f.stat().st_size == told["hosts"][0]["bytes"]
        )
        assert (b"$time sleep" in trace.read_bytes()) == python
    asked = Asked(duration_s=0.2, advanced=("tpu_trace_mode=TRACE_COMPUTE", "a=true", "b=7"))
    assert captured(place, addresses(two[:1]), asked)["hosts"][0]["problem"] is None


# Of the module for jobs


def test_an_agent_records_the_steps_asked(place, with_agent, monkeypatch):
    as_token(monkeypatch)
    told = captured(place, addresses([with_agent]), Asked(steps=7, timeout_s=30))
    steps = rows(place, told["run_id"], "steps")
    assert len(steps) == 7 and [s["step"] for s in steps] == list(range(steps[0]["step"], steps[0]["step"] + 7))
    assert "for 7 steps, from" in place.store.find(told["run_id"]).manifest.fact("note")


def test_an_agent_records_seconds_to_the_end_of_a_step(place, with_agent, monkeypatch):
    as_token(monkeypatch)
    told = captured(place, addresses([with_agent]), Asked(duration_s=0.5))
    steps = rows(place, told["run_id"], "steps")
    assert 2 < len(steps) < 60 and all(s["dur_ns"] > 0 for s in steps)


def test_an_agent_and_a_server_in_one_run(place, two, with_agent, monkeypatch):
    as_token(monkeypatch)
    told = captured(place, addresses([*two, with_agent]), SHORT)
    assert told["tables"]["captures"] == 3 and len({c["host"] for c in rows(place, told["run_id"], "captures")}) == 3


def test_who_does_not_know_the_token_gets_nothing(place, with_agent, monkeypatch, capsys):
    monkeypatch.setenv("CHIPLEDGER_CAPTURE_TOKEN", "x" * len(TOKEN))
    code, _, error = out(capsys, "capture", with_agent)
    assert code == 2 and "the token is another" in error
    monkeypatch.setenv("CHIPLEDGER_CAPTURE_TOKEN", "short")
    code, _, error = out(capsys, "capture", with_agent)
    assert code == 2 and "is not set" in error


def test_the_token_goes_to_no_profiler_server(place, monkeypatch):
    as_token(monkeypatch)
    asked = []
    with grpc_server(lambda request, _: asked.append(request) or b"") as port, pytest.raises(InputError):
        captured(place, addresses([f"127.0.0.1:{port}"]), SHORT)
    assert asked and TOKEN.encode() not in asked[0]


def test_an_agent_is_one_at_a_time_and_free_again_once_who_asked_hung_up(place, with_agent, monkeypatch):
    as_token(monkeypatch)
    began = time.monotonic()
    with pytest.raises(Cancelled):
        where = addresses([with_agent])
        capture(where, Asked(steps=1000), place.store.root / "t", stop=lambda: time.monotonic() - began > 1)
    time.sleep(1)
    assert captured(place, addresses([with_agent]), Asked(steps=2))["hosts"][0]["problem"] is None


def test_a_job_that_does_not_tell_its_steps(place, monkeypatch):
    as_token(monkeypatch)
    with job(NEVER_STEPS) as port:
        where = addresses([f"agent://127.0.0.1:{port}"])
        began = time.monotonic()
        with pytest.raises(Cancelled):
            capture(where, Asked(steps=2), place.store.root / "t", stop=lambda: time.monotonic() - began > 1)
        time.sleep(0.5)
        told = captured(place, where, Asked(duration_s=0.4))  # nothing of the other one is left
        assert told["tables"]["op_events"] > 0


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n" + b"x" * 100_000, "something else"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "something else"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "status 302"),
        (b'HTTP/1.1 500 X\r\nContent-Length: 25\r\n\r\n{"error": "a\\u001b[31mb"}\n', "a [31mb"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\nX-Chipledger-Name: h.xplane.pb\r\n\r\n",
            "holds more than",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Chipledger-Name: ../x.xplane.pb\r\n\r\nhello",
            "something else",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\nX-Chipledger-Name: h.xplane.pb\r\n\r\nhello", "something else"),
    ],
)
def test_what_is_no_agent_is_told_as_such(place, monkeypatch, says, why):
    as_token(monkeypatch)
    with listening(says) as (port, _), pytest.raises(InputError) as told:
        captured(place, addresses([f"agent://127.0.0.1:{port}"]), SHORT)
    assert why in str(told.value) and "\x1b" not in str(told.value)
    assert not place.store.runs() and not kept(place)


def test_a_stranger_that_says_the_token_again_tells_it_to_nobody(place, monkeypatch):
    as_token(monkeypatch)
    body = json.dumps({"error": f"got Bearer {TOKEN}!"})
    says = f"HTTP/1.1 500 X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    with listening(says) as (port, _), pytest.raises(InputError, match=r"got Bearer \.\.\.!") as told:
        captured(place, addresses([f"agent://127.0.0.1:{port}"]), SHORT)
    assert TOKEN not in str(told.value)


@pytest.mark.parametrize(
    "drips", [(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), (b"", b"HTTP"), (b"HTTP/1.1 200 OK\r\nX: ", b"y")]
)
def test_an_answer_that_drips_ends(place, monkeypatch, drips):
    as_token(monkeypatch)
    monkeypatch.setattr(job_agent, "READ_S", 1.0)
    began = time.monotonic()
    with listening(*drips) as (port, _), pytest.raises(InputError):
        captured(place, addresses([f"agent://127.0.0.1:{port}"]), SHORT)
    assert time.monotonic() - began < 10


def test_a_trace_that_drips_ends(place, monkeypatch):
    as_token(monkeypatch)
    monkeypatch.setattr(job_agent, "READ_S", 1.0)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nX-Chipledger-Name: h.xplane.pb\r\n\r\n"
    with listening(head, b"x") as (port, _), pytest.raises(InputError, match="too slowly"):
        captured(place, addresses([f"agent://127.0.0.1:{port}"]), SHORT)
    assert not [p for p in place.store.uploads_folder.rglob("*") if p.is_file() and p.suffix != ".runs"]


def test_a_job_that_is_killed_meanwhile_is_told(place, two, monkeypatch):
    as_token(monkeypatch)
    told = []
    with job(AGENT) as agent, job(SERVER) as server:
        where = addresses([two[0], f"agent://127.0.0.1:{agent}", f"127.0.0.1:{server}"])
        thread = threading.Thread(target=lambda: told.append(captured(place, where, Asked(duration_s=6))))
        thread.start()
        time.sleep(1.5)
    thread.join()
    problems = [h["problem"] for h in told[0]["hosts"]]
    assert problems[0] is None and "did the job?" in problems[1] and "did the job?" in problems[2]


def test_what_is_framed_like_a_trace_and_is_none_costs_a_warning(place, two):
    with grpc_server(lambda *_: b"\x42\x0c\x0a\x03abc\x22\x05other") as port:
        told = captured(place, addresses([two[0], f"127.0.0.1:{port}"]), SHORT)
        assert told["tables"]["captures"] >= 1 and told["warnings"]
        with pytest.raises(InputError):
            captured(place, addresses([f"127.0.0.1:{port}"]), SHORT)
    assert len(place.store.runs()) == 1


def test_addresses_that_are_spelt_alike_keep_their_own_traces(place, two, monkeypatch):
    alike = addresses(two)
    monkeypatch.setattr(Address, "label", "same")
    told = captured(place, alike, SHORT)
    assert told["tables"]["captures"] == 2 and len(kept(place)) == 2


# What can be asked


@pytest.mark.parametrize(
    "text",
    [
        "trainer",
        "trainer:",
        "trainer:0",
        "trainer:65536",
        "trainer:9-8",
        "trainer:1-9999",
        "http://trainer:80",
        "unix:/run/x.sock",
        "unix:///run/x.sock:1",
        "dns:///trainer:80",
        "xds:///trainer:80",
        "ipv4:1.2.3.4:80",
        "user@trainer:80",
        "trainer:80/path",
        "trainer:80?x",
        "tra iner:80",
        "trainer\n:80",
        "trainer:٨٠",
        "-trainer:80",
        "[::1:80",
        "agent://agent://trainer:80",
        "a" * 300 + ":80",
    ],
)
def test_what_is_no_address(text):
    with pytest.raises(InputError):
        addresses([text])


def test_addresses():
    found = addresses(["a:1, a:1,b.c-d_e:9012-9013", "[::1]:5", "agent://G:7", "jax://a:2"])
    assert [str(a) for a in found] == ["a:1", "b.c-d_e:9012", "b.c-d_e:9013", "[::1]:5", "agent://g:7", "a:2"]
    assert addresses(["", " , "]) == ()
    assert "." not in Address("jax", "10.0.0.1", 9012).label
    with pytest.raises(InputError, match=f"more than {MOST}"):
        addresses([f"a:{p}" for p in range(1, MOST + 2)])


@pytest.mark.parametrize(
    "flags",
    [
        ("--steps", "3"),
        ("--duration-s", "0"),
        ("--duration-s", "601"),
        ("--duration-s", "nan"),
        ("--duration-s", "1", "--steps", "2"),
        ("--advanced", "x"),
        ("--advanced", "a=1", "--advanced", "a=2"),
        ("--chips", "0"),
        ("--tag", "x"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_dialled(place, capsys, flags):
    with listening() as (port, heard):
        code, said, error = out(capsys, "capture", f"127.0.0.1:{port}", *flags)
        assert code == 2 and not said and error.startswith("error: ") and error.count("\n") == 1
        assert not heard


def test_a_name_among_those_allowed_is_the_operators_own_record():
    known = addresses(["a:1", "agent://b:2"])
    assert among_allowed(["agent://b:2", "a:1", "a:1"], known) == (known[1], known[0])
    assert among_allowed(["a:1"], known)[0] is known[0]
    for name in ("b:2", "A:1", " a:1", "a:1 ", "a:01", "a:1,c:3", "jax://a:1", "agent://a:1", ""):
        with pytest.raises(InputError):
            among_allowed([name], known)


# The messages


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading_of_an_answer(answer):
    try:
        space, _ = trace_of(answer)
        host_name(space)
    except InputError:
        pass


def test_a_message_of_very_many_fields_is_not_walked_to_its_end():
    began = time.monotonic()
    with pytest.raises(InputError):
        trace_of(b"\x38\x01" * 20_000_000)
    assert host_name(memoryview(b"\x38\x01" * 20_000_000 + b"\x22\x01h")) == ""
    assert time.monotonic() - began < 5


@given(st.integers(0, 400), st.binary(max_size=400))
def test_a_cut_answer_is_told(cut, data):
    answer = b"\x38\x01\x42" + _length(len(data)) + data
    space, empty = trace_of(answer)
    assert bytes(space) == data and empty
    if 2 < cut < len(answer):
        with pytest.raises(InputError):
            trace_of(answer[:cut])


def test_a_request_is_what_jaxlib_declares():
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    kinds = {"u": 4, "s": 9, "b": 8, "m": 11}
    for name, fields in {
        "Options": "python:u:4 host:u:2 device:u:3 version:u:5 hlo:b:7 ms:u:9",
        "Request": "ms:u:1 opts:m:4 root:s:5 session:s:6 host:s:7 emit:b:9",
    }.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            called, kind, number = text.split(":")
            made = message.field.add(name=called, number=int(number), type=kinds[kind], label=1)
            if kind == "m":
                made.type_name = ".p.Options"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    read = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Request"))()
    read.ParseFromString(profile_request(Tracing(2.5, True), "s", "h", "/f"))
    assert (read.ms, read.root, read.session, read.host, read.emit) == (2500, "/f", "s", "h", True)
    assert (read.opts.ms, read.opts.python, read.opts.host, read.opts.device) == (2500, 1, 2, 1)
    assert read.opts.version == 1 and read.opts.hlo


def test_an_error_is_one_of_ours():
    assert issubclass(Cancelled, ChipledgerError) and os.environ.get("GRPC_VERBOSITY")
