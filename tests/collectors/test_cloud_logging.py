"""Cloud Logging, from a real HTTP server: every entry exactly once, whatever goes wrong."""

import json
import os
import tempfile
import threading
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Source
from collectors.cloud_logging.fetch import OVERLAP_NS, SWEEP_NS
from collectors.cloud_logging.pace import Limiter, Patience, retry_after_s
from collectors.cloud_logging.query import stamp_ns
from collectors.cloud_logging.service import Denied, Door, Unreachable
from collectors.ingesting.gather import Cancelled
from collectors.training import goodput_log
from tests.collectors.fetching import DAY, NOW, fetcher, kept, same
from tests.collectors.job_entries import PROJECT, S, entry, job
from tests.collectors.logging_server import LoggingServer, stamp_of
from tests.collectors.reading import read


@pytest.fixture
def server():
    with LoggingServer() as running:
        yield running


@pytest.mark.parametrize(
    "faults",
    [
        [],
        [429],
        [(429, 0)],
        [503, 500, 502, 504],
        ["drop"],
        ["cut"],
        ["cut", "cut", 503, "drop", 429],
        ["slow"],
        ["empty", "empty"],
        [503, "empty", "cut", "slow", (503, "0"), "drop"],
    ],
    ids=str,
)
@pytest.mark.parametrize("page_size", [7, 1000])
def test_every_entry_comes_once_under_every_fault(tmp_path, server, faults, page_size):
    server.page_size = page_size
    entries = job(NOW - 3 * DAY, 60)
    server.add(*entries)
    for fault in faults:  # some at once, some between pages
        server.faults.extend([fault] if page_size == 1000 else ["", fault])
    got = fetcher(server, tmp_path)
    assert got.poll() == len(entries)
    assert kept(tmp_path) == entries
    assert not server.faults and not got.spool.cursor.counts
    assert got.poll() == 0 and len(kept(tmp_path)) == len(entries)


def test_an_answer_that_is_no_json_is_told_and_the_next_poll_goes_on(tmp_path, server):
    server.page_size = 10
    entries = job(NOW - DAY, 40)
    server.add(*entries)
    server.faults.extend(["", "", "", "", "", "garbage"])  # the back-fill asks for windows without entries first
    got = fetcher(server, tmp_path)
    with pytest.raises(Unreachable, match="cannot be read"):
        got.poll()
    assert 0 < len(kept(tmp_path)) < len(entries)
    got.poll()
    assert kept(tmp_path) == entries


def test_a_service_that_stays_away_is_told_after_all_patience(tmp_path, server):
    server.add(*job(NOW - DAY, 5))
    server.faults.extend([503] * 8)
    got = fetcher(server, tmp_path)
    with pytest.raises(Unreachable, match="Cloud Logging refuses .503: asked for: 503"):
        got.poll()
    assert len(server.asked) == 8
    server.faults.extend([429] * 8)
    with pytest.raises(Unreachable, match="quota for reading logs is used up"):
        got.poll()
    assert got.poll() == 9


def test_nobody_there_at_all(tmp_path, server):
    got = fetcher(server, tmp_path)
    got.service = Door(PROJECT, "http://127.0.0.1:1", patience=Patience(2, 0.01, 0.01)).open()
    with pytest.raises(Unreachable, match="cannot be read.*Is this machine's network up"):
        got.poll()


def test_retry_after_is_honoured(tmp_path, server):
    server.add(*job(NOW - DAY, 5))
    server.faults.extend([(429, 1)])
    begun = time.monotonic()
    fetcher(server, tmp_path, since=NOW - 2 * DAY).poll()
    assert 1.0 <= time.monotonic() - begun < 3
    assert retry_after_s("2.5") == 2.5 and retry_after_s("-3") == 0 and retry_after_s(None) is None
    assert 7 < retry_after_s(formatdate(time.time() + 9, usegmt=True)) <= 9
    assert retry_after_s("soon") is None and retry_after_s("") is None


def test_waits_grow_with_chance_and_are_bounded():
    patience = Patience(base_s=1, most_s=20)
    for attempt, longest in enumerate([1, 2, 4, 8, 16, 20, 20]):
        delays = {patience.delay_s(attempt, None) for _ in range(50)}
        assert len(delays) > 1 and min(delays) >= longest / 2 and max(delays) <= longest


def test_stopping_ends_a_wait_at_once(tmp_path, server):
    stop = threading.Event()
    server.faults.extend([(503, 60)])
    got = fetcher(server, tmp_path, wait=stop.wait)
    threading.Timer(0.3, stop.set).start()
    begun = time.monotonic()
    with pytest.raises(Cancelled):
        got.poll()
    assert time.monotonic() - begun < 5


def test_twenty_days_come_in_windows_of_a_week(tmp_path, server):
    entries = job(NOW - 20 * DAY, 300, step_s=5600.0)
    server.add(*entries)
    got = fetcher(server, tmp_path)
    assert got.poll(NOW) == len(entries) and kept(tmp_path) == entries
    windows = [_window(asked["filter"]) for asked in server.asked]
    assert [(begin, end) for begin, end in windows if end] == [
        (max(NOW - (30 - 7 * i) * DAY, _overlap(entries, NOW - (30 - 7 * i) * DAY)), NOW - (23 - 7 * i) * DAY)
        for i in range(4)
    ]
    assert windows[-1][1] is None
    assert all(end - begin <= 7 * DAY for begin, end in windows if end)


def _window(text: str) -> tuple[int, int | None]:
    begin, end = text.partition('timestamp>="')[2], text.partition('timestamp<"')[2]
    return stamp_ns(begin.partition('"')[0]), stamp_ns(end.partition('"')[0])


def _overlap(entries: list[dict], before: int) -> int:
    """Where a read would begin that goes on after the newest entry before a moment."""
    return max((stamp_ns(e["timestamp"]) for e in entries if stamp_ns(e["timestamp"]) < before), default=0) - OVERLAP_NS


def test_a_back_fill_goes_on_where_it_was_cut_off(tmp_path, server):
    """Stopped at every single read in turn: whatever was read stays, nothing comes twice."""
    server.page_size = 9
    entries = job(NOW - 20 * DAY, 60, step_s=20000.0)
    server.add(*entries)
    fetcher(server, tmp_path / "whole").poll(NOW)
    reads = len(server.asked)
    for cut in range(reads):
        server.faults.extend([""] * cut + ["garbage"])
        with pytest.raises(Unreachable):
            fetcher(server, tmp_path / str(cut)).poll(NOW)
        server.faults.clear()
        fetcher(server, tmp_path / str(cut)).poll(NOW)
        assert kept(tmp_path / str(cut)) == entries


def test_entries_that_arrive_while_pages_are_read(tmp_path, server):
    server.page_size = 10
    entries = job(NOW - 3600 * S, 100)
    early, later = entries[:60], entries[60:]
    rest = iter([early.pop(12), *later])  # one belongs behind what is read by then
    server.add(*early)

    def arrive(number):
        for _ in range(2 if number > 6 else 0):
            if (more := next(rest, None)) is not None:
                server.add(more)

    server.before = arrive
    got = fetcher(server, tmp_path)
    for _ in range(12):
        got.poll()
    assert next(rest, None) is None
    got.poll()
    assert same(kept(tmp_path), entries) and got.spool.cursor.counts == {"late": 1}


def test_late_entries_are_found_within_the_overlap_and_long_after(tmp_path, server):
    entries = job(NOW - 3 * DAY, 2000, step_s=100.0)
    near, far = entries.pop(-20), entries.pop(100)
    server.add(*entries)
    got = fetcher(server, tmp_path)
    got.poll(NOW)
    server.add({**near, "receiveTimestamp": stamp_of(NOW + 60 * S)})
    assert got.poll(NOW + 61 * S) == 0  # it is 33 minutes older than the newest: not within the overlap
    newest = stamp_ns(entries[-1]["timestamp"])
    server.add(entry(newest - OVERLAP_NS + S, {"job_name": "night-run"}, "night-run", 900_000))
    assert got.poll(NOW + 62 * S) == 1
    server.add({**far, "receiveTimestamp": stamp_of(NOW + 70 * S)})
    assert got.poll(NOW + SWEEP_NS + S) == 2, "both are found by when they were received"
    assert got.spool.cursor.counts["late"] == 3
    assert got.poll(NOW + 2 * SWEEP_NS + 2 * S) == 0
    ids = [e["insertId"] for e in kept(tmp_path)]
    assert len(ids) == len(set(ids)) == len(entries) + 3


@settings(deadline=None, max_examples=6)
@given(
    st.lists(st.tuples(st.integers(0, 3 * 3600), st.sampled_from([0, 1, 30, 700, 4000])), min_size=1, max_size=30),
    st.sampled_from([3, 1000]),
    st.lists(st.integers(900, 6000), min_size=1, max_size=8),
    st.integers(-1800, 1800),
)
def test_whenever_entries_arrive_each_comes_once(arrivals, page_size, waits, skew_s):
    """(written, delay) of each in seconds, polls at any moments, and this machine's clock wrong by half an hour."""
    begin = NOW - 10 * DAY
    entries = [
        entry(begin + at * S, {"step_count": i, "step_start_time": 1.0}, "night-run", i, begin + (at + delay) * S)
        for i, (at, delay) in enumerate(arrivals)
    ]
    with LoggingServer(page_size=page_size) as server, tempfile.TemporaryDirectory() as folder:
        got = fetcher(server, Path(folder), since=begin - DAY)
        now, last = begin, begin + 8 * 3600 * S
        while now < last:
            now = min(now + waits[len(server.asked) % len(waits)] * S, last) if now > begin else begin + waits[0] * S
            server.entries = [e for e in entries if stamp_ns(e["receiveTimestamp"]) <= now]
            got.poll(now + skew_s * S)
        got.poll(last + SWEEP_NS + skew_s * S)
        assert same(kept(Path(folder)), entries)


def test_duplicates_are_dropped_and_counted(tmp_path, server):
    entries = job(NOW - DAY, 100)
    server.add(*entries, *entries[10:20])
    server.twice = 10
    got = fetcher(server, tmp_path)
    assert got.poll() == len(entries) and kept(tmp_path) == entries
    repeated = got.spool.cursor.counts["repeated"]
    assert repeated == 10 + (len(entries) + 10) // 10
    got.poll()
    assert got.spool.cursor.counts["repeated"] == repeated, "that the overlap is read again repeats nothing"


def test_entries_of_one_second_with_the_same_time(tmp_path, server):
    server.page_size = 3
    entries = [entry(NOW - DAY, {"step_count": i, "step_start_time": i}, "night-run", i) for i in range(20)]
    server.add(*entries)
    got = fetcher(server, tmp_path)
    assert got.poll() == 20 and kept(tmp_path) == entries and not got.spool.cursor.counts


def test_what_is_odd_is_kept_and_counted(tmp_path, server):
    good = job(NOW - DAY, 5)
    ahead = NOW + 3 * 3600 * S
    future = entry(ahead, {"step_count": 9, "step_start_time": 1.0}, "night-run", 99, received_ns=NOW - DAY)
    nameless = {k: v for k, v in good[3].items() if k != "insertId"}
    nulls = entry(
        NOW - DAY + S,
        {
            "event_type": "save",
            "step": 1,
            "checkpoint_manager_blocking_start_time": None,
            "checkpoint_manager_blocking_duration_secs": None,
        },
        "night-run",
        100,
    )
    others = [
        entry(NOW - DAY, {"step_count": 1, "step_start_time": 2.0}, "another", 101),
        {**good[4], "insertId": "w", "severity": "WARNING"},
    ]
    server.add(*good, future, nameless, nulls, *others)
    got = fetcher(server, tmp_path)
    got.poll()
    assert same(kept(tmp_path), [*good, future, nameless, nulls])
    assert got.spool.cursor.counts == {"future": 1, "odd": 1}
    assert got.poll() == 0, "an entry without insertId is known again by its content"
    # one from the future must not hide what comes before it
    server.add(entry(NOW - DAY + 20 * 60 * S, {"step_count": 10, "step_start_time": 1.0}, "night-run", 102))
    assert got.poll() == 1
    read(goodput_log, Source(got.spool.path, "entries.jsonl"))


def test_numbers_of_grpc_and_http_make_the_same_rows(tmp_path, server):
    server.add(*job(NOW - DAY, 50))
    fetcher(server, tmp_path / "http").poll()
    server.grpc = True
    fetcher(server, tmp_path / "grpc").poll()
    http, grpc = (kept(tmp_path / which) for which in ("http", "grpc"))
    assert any(isinstance(e["jsonPayload"].get("step_count"), float) for e in grpc)
    assert not any(isinstance(e["jsonPayload"].get("step_count"), float) for e in http)
    rows = [read(goodput_log, Source(tmp_path / which / "entries.jsonl", "x")).rows for which in ("http", "grpc")]
    assert rows[0] == rows[1] and len(rows[0]["steps"]) == 50


# Quota


def test_two_jobs_at_once_keep_within_the_quota(tmp_path, server):
    server.page_size, server.quota, server.quota_s = 5, 10, 0.5
    limiter = Limiter(8, 0.5)
    jobs = {name: job(NOW - DAY, 60, name=name) for name in ("one", "two")}
    for entries in jobs.values():
        server.add(*entries)
    made = [fetcher(server, tmp_path / name, name=name, limiter=limiter) for name in jobs]
    threads = [threading.Thread(target=one.poll) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, entries in jobs.items():
        assert kept(tmp_path / name) == entries
    assert server.over_quota == 0 and len(server.asked) > 30


def test_where_others_use_up_the_quota_it_is_tried_again(tmp_path, server):
    server.page_size, server.quota, server.quota_s = 5, 4, 1.0
    entries = job(NOW - DAY, 60)
    server.add(*entries)
    fetcher(server, tmp_path, patience=Patience(8, 0.1, 0.4)).poll()
    assert kept(tmp_path) == entries and server.over_quota > 0


# What a person is told


@pytest.mark.parametrize(
    "status, words",
    [
        (401, "does not accept the credentials.*gcloud auth application-default login"),
        (403, "may not read its logs.*roles/logging.viewer"),
        (404, "knows no such project.*gcloud projects list"),
        (400, "does not understand what was asked.*--also"),
    ],
)
def test_refusals_say_what_to_do(tmp_path, server, status, words):
    server.faults.extend([status] * 3)
    with pytest.raises(Denied, match=words):
        fetcher(server, tmp_path).poll()


def test_no_credentials_and_wrong_ones(tmp_path, server, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(Denied, match="no credentials.*missing.json was not found.*gcloud auth application-default"):
        fetcher(server, tmp_path, anonymous=False)
    (tmp_path / "missing.json").write_text("{}")
    with pytest.raises(Denied, match="no credentials.*roles/logging.viewer"):
        fetcher(server, tmp_path, anonymous=False)
    (tmp_path / "missing.json").write_text(json.dumps(_revoked_account(server)))
    with pytest.raises(Denied, match="not valid any more.*invalid_grant.*gcloud auth application-default login"):
        fetcher(server, tmp_path, anonymous=False).poll()
    assert not server.asked


def _revoked_account(server) -> dict:
    """A service account's key file, whole and well-formed, that its issuer does not know any more."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": key.decode(),
        "client_email": f"watch@{PROJECT}.example",
        "client_id": "1",
        "token_uri": f"{server.address}/token",
    }


def test_no_credentials_are_looked_for_where_none_are_needed(tmp_path, server, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", os.devnull)
    server.add(*job(NOW - DAY, 3))
    assert fetcher(server, tmp_path).poll() == 7
