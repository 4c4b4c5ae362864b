"""The server records jobs where whoever started it allowed that, and dials nothing else, whatever it is asked."""

import os
import time

import pytest

from app.capture.addresses import ALLOWED_VARIABLE
from app.serve.capturing import REQUEST
from runs.store import Store
from tests.app.capture_jobs import AGENT, SERVER, TOKEN, job, listening
from tests.app.commands import out
from tests.app.serving import PROJECT, get, request, serving
from tests.app.test_pages import opened, words
from tests.app.test_server import finished

pytest.importorskip("jax", reason="a job of JAX is captured: pip install 'chipledger[reference]'")
PAGE = "pages/capture/page.py"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def jobs():
    with job(SERVER) as first, job(SERVER) as second, job(AGENT) as agent:
        yield [f"127.0.0.1:{first}", f"127.0.0.1:{second}", f"agent://127.0.0.1:{agent}"]


@pytest.fixture(scope="module")
def server(store, jobs, called, tmp_path_factory):
    listed = tmp_path_factory.mktemp("listed") / "addresses"
    listed.write_text(f"# the agents\n{jobs[2]}   # of rank 0\n\n")
    path = os.pathsep.join([str(called.parent), str(PROJECT)])
    env = {"PYTHONPATH": path, "SPY": str(called), "CHIPLEDGER_CAPTURE_TOKEN": TOKEN}
    with serving(store, "--capture", ",".join(jobs[:2]), "--capture-file", str(listed), **env) as address:
        yield address
    assert not called.exists(), called.read_text()


def ask(server, where, **more):
    return request("POST", f"{server}/api/capture", {"addresses": where, **more})


def test_it_lists_what_it_may_dial(server, jobs):
    assert get(f"{server}/api/capture") == (200, {"addresses": jobs})


def test_a_request_becomes_a_job_and_that_a_run(server, jobs, store):
    status, begun = ask(server, jobs, duration_s=0.5, name="asked for", chip="v5e")
    assert status == 200 and begun["state"] in ("waiting", "running")
    told = finished(server, begun)
    assert told["state"] == "done" and told["tables"]["captures"] == 3 and told["error"] is None
    run = Store(store).find(told["run_id"])
    assert run.manifest.name == "asked for" and "on: 3 hosts." in run.manifest.fact("note")


def test_an_agents_steps_over_http(server, jobs):
    told = finished(server, ask(server, jobs[2:], steps=4)[1])
    assert told["state"] == "done" and told["tables"]["steps"] == 4


def test_it_tells_how_far_it_is_and_can_be_cancelled(server, jobs, store):
    before = len(Store(store).runs())
    begun = ask(server, jobs[:2], duration_s=60)[1]
    deadline, told = time.monotonic() + 60, begun
    while "Recording" not in told["doing"]:
        assert time.monotonic() < deadline and told["state"] in ("waiting", "running"), told
        time.sleep(0.1)
        told = get(f"{server}/api/jobs/{begun['job_id']}")[1]
    assert 0 <= told["progress"] < 0.2
    assert request("DELETE", f"{server}/api/jobs/{begun['job_id']}")[1]["state"] == "cancelled"
    assert len(Store(store).runs()) == before
    again = finished(server, ask(server, jobs[:2], duration_s=0.3)[1])
    assert again["state"] == "done" and not again["warnings"]


def spellings(port):
    """One address that is not allowed, in every way in which a request might smuggle it in."""
    trap = f"127.0.0.1:{port}"
    return [
        trap,
        f"agent://{trap}",
        f"jax://{trap}",
        f"http://{trap}/",
        f"dns:///{trap}",
        f"ipv4:{trap}",
        f"localhost:{port}",
        f"[::1]:{port}",
        f"[::ffff:127.0.0.1]:{port}",
        f"2130706433:{port}",
        f"0x7f000001:{port}",
        f"127.1:{port}",
        f"0.0.0.0:{port}",
        f"127.0.0.1:{port}-{port}",
        f"ALLOWED,{trap}",
        f"{trap},ALLOWED",
        f"ALLOWED {trap}",
        f"ALLOWED\n{trap}",
        f"ALLOWED@{trap}",
        f"{trap}#ALLOWED",
        f"{trap}\x00ALLOWED",
        f"--shared=/tmp {trap}",
        "--print-agent",
        "example.invalid:80",
        "169.254.169.254:80",
        "metadata.google.internal:80",
    ]


def test_no_request_makes_it_dial_anything_else(server, jobs, called):
    with listening() as (port, heard):
        for spelling in spellings(port):
            for where in ([spelling.replace("ALLOWED", jobs[0])], [jobs[0], spelling.replace("ALLOWED", jobs[0])]):
                status, told = ask(server, where, duration_s=0.1)
                assert status == 400 and "job_id" not in told, where
        for field in ("address", "shared", "advanced", "timeout_s", "memory_gb", "tag", "print_agent", "store", "json"):
            status, told = ask(server, jobs[:1], **{field: f"127.0.0.1:{port}"})
            assert status == 400 and f"no field {field!r}" in told["error"]
        for name in ("name", "chip", "model"):  # what goes onto the command line beside the addresses
            told = finished(
                server, ask(server, jobs[:1], **{name: f"x --shared=/tmp 127.0.0.1:{port}"}, duration_s=0.1)[1]
            )
            assert told["state"] == "done"
        assert not heard
    assert not called.exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"addresses": []},
        {"addresses": "127.0.0.1:1"},
        {"addresses": {"a": 1}},
        {"addresses": [1]},
        {"addresses": [None]},
        {"addresses": ["x"] * 10_000},
    ],
)
def test_what_names_no_address_is_refused(server, body):
    status, told = request("POST", f"{server}/api/capture", body)
    assert status == 400 and told["error"]


@pytest.mark.parametrize(
    "given", [{"duration_s": 61}, {"duration_s": 0}, {"duration_s": "x"}, {"steps": 101}, {"steps": 2, "duration_s": 1}]
)
def test_what_is_out_of_bounds_is_refused(server, jobs, given):
    assert ask(server, jobs[2:], **given)[0] == 400
    assert ask(server, jobs[:1], steps=3)[0] == 400  # a profiler server knows no steps


def test_no_page_of_another_site_begins_one(server, jobs):
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        assert request("POST", f"{server}/api/capture", {"addresses": jobs[:1]}, headers)[0] == 403


def test_a_server_that_was_not_told_captures_nowhere(asked):
    assert get(f"{asked}/api/capture") == (200, {"addresses": []})
    with listening() as (port, heard):
        status, told = ask(asked, [f"127.0.0.1:{port}"])
        assert status == 400 and "chipledger serve --capture" in told["error"] and not heard


def test_what_is_no_address_is_told_before_the_server_starts(place, capsys, tmp_path):
    code, _, error = out(capsys, "serve", "--capture", "http://trainer:80")
    assert code == 2 and "no address to capture from" in error
    code, _, error = out(capsys, "serve", "--capture-file", tmp_path / "none")
    assert code == 2 and "cannot be read" in error
    (tmp_path / "large").write_text("a:1\n" * 40_000)
    assert out(capsys, "serve", "--capture-file", tmp_path / "large")[0] == 2


# The page


def test_the_page_offers_the_addresses_allowed_and_no_field_for_another(place, monkeypatch):
    monkeypatch.setenv(ALLOWED_VARIABLE, "trainer-0:9012,agent://gpu-0:9013")
    at = opened(PAGE)
    assert not at.exception
    (hosts,) = at.get("button_group")
    assert [o.content for o in hosts.proto.options] == ["trainer-0:9012", "agent://gpu-0:9013"]
    assert [f.label for f in at.text_input] == ["How long to record (s)", "Steps to record", "Name"]
    assert not at.text_area and not at.selectbox


def test_the_page_of_a_server_that_may_dial_nothing_teaches(place, monkeypatch):
    monkeypatch.delenv(ALLOWED_VARIABLE, raising=False)
    at = opened(PAGE)
    assert not at.exception and "may capture from no address" in words(at)
    assert not at.text_input and any("serve --capture" in c.value for c in at.code)


def test_the_page_says_what_cannot_be_asked(place, monkeypatch):
    monkeypatch.setenv(ALLOWED_VARIABLE, "trainer-0:9012")
    at = opened(PAGE)
    at.text_input[0].input("500")
    at.button[0].click().run()
    assert not at.exception and "from 0.05 to 60" in "\n".join(e.value for e in at.error) + words(at)


def test_fields_of_a_request_are_those_of_the_command_that_are_not_local():
    assert [o.name for o in REQUEST] == [
        "duration_s",
        "steps",
        "name",
        "chip",
        "chips",
        "model",
        "python",
        "all_or_nothing",
    ]
