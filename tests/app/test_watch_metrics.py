"""`chipledger watch --metrics` against a real HTTP server: what it keeps, shows, and survives."""

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from analyzers.serving.counters import increase, resets
from analyzers.serving.histograms import observed
from app.follow import scraping, watching
from app.follow.scraping import MetricsPlan, MetricsWatcher, Spool, address, host, scrape
from app.workspace import workspace
from errors import InputError, QuestionError
from runs.live import TAG
from runs.tables import frame
from tests.app.commands import commanded
from tests.app.metrics_server import MetricsServer, exposition
from tests.app.serving import command, environment

NAME = "server"
FIRST_NS = 1_767_571_300_123_456_789


@pytest.fixture
def server():
    with MetricsServer() as running:
        yield running


def watcher(place, url, every_s=0.01, **more) -> MetricsWatcher:
    return MetricsWatcher(
        place, NAME, MetricsPlan(url, every_s, **more), threading.Event(), lambda _: None, lambda *_: None
    )


def kept(store) -> str:
    return gzip.decompress((store / "live" / NAME / scraping.SPOOL).read_bytes()).decode()


def run_of(place):
    return place.store.find(f"live:{NAME}")


def test_once_makes_a_live_run_of_what_is_there(tmp_path, server):
    done = command(
        "watch",
        "--store",
        tmp_path,
        "--metrics",
        f"127.0.0.1:{server.port}",
        "--name",
        NAME,
        "--once",
        "--chip",
        "v5e",
        "--chips",
        "8",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["state"], told["entries"], told["problem"]) == ("stopped", 1, None)
    run = run_of(workspace(str(tmp_path)))
    assert run.run_id == told["run_id"] and run.manifest.kind == "serving" and run.manifest.tags[TAG] == NAME
    assert (run.manifest.fact("chip"), run.manifest.fact("chips")) == ("v5e", 8)
    assert run.manifest.fact("model") == "meta-llama/Llama-3.1-8B-Instruct"
    [row] = frame(run.tables, "engine").to_dict("records")
    assert (row["running"], row["waiting"], row["kv_usage"]) == (3, 1, 0.25)
    assert (row["prompt_tokens"], row["output_tokens"], row["preemptions"]) == (10_000, 2_000, 10)
    assert abs(row["ts_ns"] / 1e9 - time.time()) < 300


def test_a_process_follows_until_it_is_told_to_stop(tmp_path, server):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "app.cli",
            "watch",
            "--store",
            str(tmp_path),
            "--metrics",
            server.address,
            "--every",
            "1s",
            "--for",
            "5m",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout.readline().startswith(f"live:127.0.0.1-{server.port}: following, 1 answer")
        server.requests = 300
        deadline = time.monotonic() + 60
        asked = server.asked
        while server.asked < asked + 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        rest, problems = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 0 and not problems
    assert "stopped" in rest.splitlines()[-1]
    run = workspace(str(tmp_path)).store.find(f"live:127.0.0.1-{server.port}")
    samples = frame(run.tables, "engine").sort_values("ts_ns")
    assert len(samples) >= 3 and samples["prompt_tokens"].iloc[[0, -1]].tolist() == [10_000, 30_000]


def test_a_server_that_goes_away_is_a_gap_and_one_that_restarts_a_reset(tmp_path, server):
    place = workspace(str(tmp_path))
    watched = watcher(place, server.address)
    watched.poll()
    server.requests = 160
    watched.poll()
    server.close()
    for _ in range(3):
        watched.poll()
    assert watched.live.state == "failing" and "does not answer" in watched.live.problem
    server.requests, server.began = 40, server.began + 900
    server.open()
    watched.poll()
    assert watched.live.state == "following" and watched.live.problem == ""
    watched._snapshot(at_once=True)
    run = run_of(place)
    assert watched.live.entries == 3 and watched.live.counts == {"gaps": 1, "restarts": 1}
    assert any("a gap: the server did not answer" in w for w in run.manifest.warnings)
    tokens = frame(run.tables, "engine").sort_values("order")["prompt_tokens"]
    assert tokens.tolist() == [10_000, 16_000, 4_000], "counters are kept as they stand"
    assert increase(tokens) == 6_000 + 4_000 and resets(tokens) == 1
    first_token = observed(run.tables, "vllm:time_to_first_token_seconds")
    assert first_token.observations == 60 + 40 and first_token.mean == pytest.approx(0.125)
    assert first_token.quantile(0.25).high == 0.01


def test_help_is_kept_once_and_every_answer_below_its_time(tmp_path, server):
    watched = watcher(workspace(str(tmp_path)), server.address)
    for _ in range(3):
        watched.poll()
    text = kept(tmp_path)
    assert text.count("# HELP vllm:num_requests_running") == 1 and text.count("# scraped_at ") == 3
    assert text.count("vllm:num_requests_running{") == 3


def test_a_kill_in_the_middle_of_writing_costs_that_answer_alone(tmp_path, server):
    place = workspace(str(tmp_path))
    watched = watcher(place, server.address)
    watched.poll()
    path = tmp_path / "live" / NAME / scraping.SPOOL
    whole = path.read_bytes()
    path.write_bytes(whole + gzip.compress(exposition(7).encode())[:-30])
    again = watcher(place, server.address)
    assert path.read_bytes() == whole
    again.poll()
    again._snapshot(at_once=True)
    assert frame(run_of(place).tables, "engine")["prompt_tokens"].tolist() == [10_000, 10_000]
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match="shorter than when it was written"):
        watcher(place, server.address)


def test_it_ends_when_its_time_is_over_with_all_answers_in_the_run(tmp_path, server):
    place = workspace(str(tmp_path))
    watched = watcher(place, server.address, every_s=0.05, for_s=0.5)
    watched.follow()
    assert watched.live.state == "stopped"
    assert place.store.live.read(NAME).entries == len(frame(run_of(place).tables, "engine")) == server.asked > 1


def test_the_newest_snapshot_alone_is_listed_and_the_old_address_leads_on(tmp_path, server, monkeypatch):
    monkeypatch.setattr(scraping.MetricsWatcher, "least_pause_s", 0.0)
    monkeypatch.setattr(watching, "INGEST_SHARE", 1)
    place = workspace(str(tmp_path))
    watched = watcher(place, server.address)
    watched.poll()
    first = watched.live.run_id
    place.registry.tag(first, "team", "serving")
    server.requests = 200
    watched.poll()
    second = watched.live.run_id
    assert first != second and [r.run_id for r in place.store.runs()] == [second]
    assert place.store.find(first).run_id == second
    assert place.registry.extras(second).tags == {"team": "serving"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": 404}, "answered with 404"),
        ({"text": "<html>hello</html>"}, "something else than metrics"),
        ({"text": ""}, "something else than metrics"),
        ({"cut": 40}, "cut off"),
    ],
)
def test_what_is_no_answer_is_told(server, change, said):
    for name, value in change.items():
        setattr(server, name, value)
    with pytest.raises(InputError, match=said):
        scrape(server.address)


def test_an_answer_that_does_not_end_is_given_up(server, monkeypatch):
    server.text, server.drip = "x 1\n" * 200_000, True
    with pytest.raises(InputError, match="takes too long"):
        scrape(server.address, 0.3)
    server.drip = False
    monkeypatch.setattr(scraping, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        scrape(server.address)


def test_nothing_at_the_address_is_told_and_leaves_no_run(tmp_path, server):
    server.close()
    done = command("watch", "--store", tmp_path, "--metrics", server.address, "--once")
    assert done.returncode == 2 and "does not answer" in done.stderr
    assert workspace(str(tmp_path)).store.ids() == []
    with pytest.raises(QuestionError, match="not one answer"):
        watcher(workspace(str(tmp_path)), server.address, for_s=0.05).follow()


def test_a_name_is_followed_once_and_means_one_server(tmp_path, server):
    place = workspace(str(tmp_path))
    watcher(place, server.address).poll()
    with pytest.raises(InputError, match="follows http"):
        watcher(place, server.address.replace("metrics", "other"))
    with place.store.live.following(NAME):
        refused = command("watch", "--store", tmp_path, "--metrics", server.address, "--name", NAME, "--once")
    assert refused.returncode == 2 and f"followed already, by process {os.getpid()}" in refused.stderr


def test_the_spool_takes_up_where_it_was(tmp_path):
    spool = Spool(tmp_path / "s")
    spool.silence(FIRST_NS, "no\nroute")
    spool.silence(FIRST_NS + 1, "no route")
    spool.answer(exposition(1).encode(), FIRST_NS + 2)
    again = Spool(tmp_path / "s")
    assert again.cursor == spool.cursor and again.cursor.counts == {"gaps": 1}
    text = gzip.decompress(again.path.read_bytes()).decode()
    assert text.startswith("# no_answer 1767571300.123456789 no route\n# scraped_at 1767571300.123456791\n")


def test_what_a_full_disk_refuses_is_not_told_as_kept(tmp_path, monkeypatch):
    spool = Spool(tmp_path / "s")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for act in (spool.answer, spool.answer):
            with pytest.raises(InputError, match="No space left on device"):
                act(exposition(1).encode(), FIRST_NS)
        with pytest.raises(InputError, match="No space left on device"):
            spool.silence(FIRST_NS + 1, "no route")
    assert (spool.cursor.entries, spool.cursor.newest, spool.cursor.counts) == (0, None, {})
    spool.silence(FIRST_NS + 2, "no route")
    spool.answer(exposition(1).encode(), FIRST_NS + 3)
    text = gzip.decompress(spool.path.read_bytes()).decode()
    assert text.startswith("# no_answer 1767571300.123456791 no route\n# scraped_at 1767571300.123456792\n")
    assert exposition(1).count("# HELP") == text.count("# HELP") > 0
    assert (spool.cursor.entries, spool.cursor.counts) == (1, {"gaps": 1})


def _gone(cursor):
    cursor.unlink()


def _cut(cursor):
    cursor.write_text(cursor.read_text()[:30])


def _of_a_newer_version(cursor):
    cursor.write_text(json.dumps({**json.loads(cursor.read_text()), "another": 1}))


def test_servers_behind_one_address_that_answer_in_turn_did_not_start_again(tmp_path):
    """Of a Service each answer is of another pod, and what one counts says nothing of another."""
    spool = Spool(tmp_path / "s")
    for n, (began, requests) in enumerate([(10.0, 500), (90.0, 400), (10.0, 510), (90.0, 410), (99.5, 3), (10.0, 520)]):
        spool.answer(exposition(requests, began).encode(), FIRST_NS + n * 10**9)
    assert spool.cursor.counts == {"servers in turn": 3} and spool.cursor.entries == 6
    (tmp_path / "s" / scraping.CURSOR).unlink()
    assert Spool(tmp_path / "s").cursor == spool.cursor


def test_times_beside_samples_and_several_servers_in_one_answer_are_no_restarts(tmp_path):
    """As a Prometheus tells them that is asked for its federation."""
    spool, at_ms = Spool(tmp_path / "s"), FIRST_NS // 10**6
    for n in range(4):
        spool.answer(b"process_start_time_seconds 10.5 %d\n" % (at_ms + n), FIRST_NS + n)
    for n in range(4):
        told = [b'process_start_time_seconds{instance="%s"} %s\n' % one for one in ((b"a", b"10.5"), (b"b", b"9e1"))]
        spool.answer(told[n % 2] + told[1 - n % 2], FIRST_NS + 4 + n)
    assert spool.cursor.entries == 8 and not spool.cursor.counts


@pytest.mark.parametrize("harm", [_gone, _cut, _of_a_newer_version])
def test_a_cursor_that_cannot_be_read_is_made_anew_of_the_answers_and_none_of_them_is_lost(tmp_path, harm):
    spool = Spool(tmp_path / "s")
    for n in range(40):
        began = b"process_start_time_seconds 1.0\n" if n < 30 else b"process_start_time_seconds 2.0\n"
        spool.answer(began + b"vllm:num_requests_running %d\n" % n, FIRST_NS + n)
        if n == 20:
            spool.silence(FIRST_NS + n, "it does not answer")
    before, known = spool.path.read_bytes(), spool.cursor
    harm(tmp_path / "s" / scraping.CURSOR)
    spool.path.write_bytes(before + gzip.compress(b"# scraped_at 1.0\n" * 99)[:20])  # half an answer
    again = Spool(tmp_path / "s")
    assert again.cursor == known and again.path.read_bytes() == before
    assert (known.entries, known.counts, known.newest) == (40, {"gaps": 1, "restarts": 1}, FIRST_NS + 39)
    again.silence(FIRST_NS + 50, "gone")
    (tmp_path / "s" / scraping.CURSOR).unlink()
    assert Spool(tmp_path / "s").cursor == again.cursor and again.cursor.silent


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("localhost:8000", "http://localhost:8000/metrics"),
        ("http://10.0.0.1:8000/", "http://10.0.0.1:8000/metrics"),
        ("https://serve.example/v1/metrics?x=1#part", "https://serve.example/v1/metrics?x=1"),
        ("http://[::1]:9", "http://[::1]:9/metrics"),
    ],
)
def test_addresses(given, asked):
    assert address(given) == asked
    assert host(asked)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "ftp://a/metrics",
        "http://",
        "http://user:secret@a/metrics",
        "http://a b/",
        "file:///etc/passwd",
        "http://a:99999/",
    ],
)
def test_what_is_no_address(given):
    with pytest.raises(InputError, match="--metrics") as error:
        address(given)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to follow"),
        (("--metrics", "localhost:1", "--job", "x"), "--job with --metrics"),
        (("--metrics", "localhost:1", "--log-name", "x"), "--log-name with --metrics"),
        (("--job", "x", "--project", "some-project", "--for", "5m"), "--for with --job"),
        (("--metrics", "localhost:1", "--every", "0.1s"), "at least 1s"),
        (("--metrics", "localhost:1", "--for", "soon"), "--for 'soon'; expected a time such as 30s, 5m, 12h or 30d"),
    ],
)
def test_what_cannot_be_meant(tmp_path, arguments, said):
    done = commanded("watch", "--store", tmp_path, *arguments)
    assert done.returncode == 2 and said in done.stderr
