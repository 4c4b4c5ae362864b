"""The spool: entries on disk, each once and whole, after kills, full disks and other questions."""

import json
import resource

import pytest

from collectors.cloud_logging.fetch import Fetcher
from collectors.cloud_logging.query import Wanted, stamp_ns
from collectors.cloud_logging.service import Door
from collectors.cloud_logging.spool import Spool
from errors import InputError
from tests.collectors.fetching import DAY, NOW, fetcher, kept, same
from tests.collectors.job_entries import PROJECT, S, entry, job
from tests.collectors.logging_server import LoggingServer


@pytest.fixture
def server():
    with LoggingServer() as running:
        yield running


def test_half_a_line_is_cut_off_and_read_again(tmp_path, server):
    entries = job(NOW - DAY, 20)
    server.add(*entries)
    fetcher(server, tmp_path).poll()
    path = tmp_path / "entries.jsonl"
    whole = path.read_bytes()
    cursor = (tmp_path / "cursor.json").read_text()
    for size in (len(whole) - 1, len(whole) - 300, len(whole) - len(whole.splitlines(True)[-1])):
        path.write_bytes(whole[:size])
        said = json.loads(cursor)
        keeping = whole[:size].rfind(b"\n") + 1
        (tmp_path / "cursor.json").write_text(json.dumps({**said, "bytes": min(said["bytes"], keeping) // 2}))
        fetcher(server, tmp_path).poll()
        assert same(kept(tmp_path), entries)


def test_entries_that_the_cursor_does_not_know_of_are_known_again(tmp_path, server):
    entries = job(NOW - DAY, 20)
    server.add(*entries)
    first = fetcher(server, tmp_path)
    first.poll()
    (tmp_path / "cursor.json").unlink()
    again = fetcher(server, tmp_path)
    assert again.spool.cursor.entries == len(entries) and again.spool.cursor.ended == first.spool.cursor.ended
    assert again.poll() == 0 and kept(tmp_path) == entries
    (tmp_path / "cursor.json").write_text("{")
    assert fetcher(server, tmp_path).poll() == 0


def test_a_spool_that_lost_entries_is_told(tmp_path, server):
    server.add(*job(NOW - DAY, 20))
    fetcher(server, tmp_path).poll()
    (tmp_path / "entries.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match="shorter than when it was written"):
        fetcher(server, tmp_path)


def test_on_a_full_disk_nothing_is_lost(tmp_path, server):
    """A write that the system refuses in the middle (a limit on the file's size) is made again when there is room."""
    entries = job(NOW - DAY, 60)
    server.add(*entries[:30])
    got = fetcher(server, tmp_path)
    got.poll()
    server.add(*entries[30:])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "entries.jsonl").stat().st_size + 1000, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot be written.*Is the disk full"):
            got.poll()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "entries.jsonl").read_bytes().endswith(b"\n"), "the refused write left half an entry"
    assert got.poll() == len(entries) - 30 and kept(tmp_path) == entries


def test_an_earlier_beginning_or_another_filter_reads_again_without_repeating(tmp_path, server):
    entries = job(NOW - 10 * DAY, 100, step_s=8000.0)
    server.add(*entries)
    text = {
        **entry(NOW - 4 * DAY, {}, "night-run", 7000),
        "logName": f"projects/{PROJECT}/logs/stderr",
        "severity": "ERROR",
        "textPayload": "Xid 79: GPU has fallen off the bus",
    }
    del text["jsonPayload"]
    server.add(text)
    first = fetcher(server, tmp_path, since=NOW - 5 * DAY)
    assert 0 < first.poll(NOW) < len(entries)
    assert fetcher(server, tmp_path, since=NOW - 3 * DAY).poll(NOW) == 0
    fetcher(server, tmp_path).poll(NOW)
    assert same(kept(tmp_path), entries)
    more = Wanted(PROJECT, "night-run", also=('severity>=ERROR AND textPayload:"xid"',))
    got = Fetcher(Door(PROJECT, server.address).open(), more, Spool(tmp_path, "night-run"))
    got.begin(NOW - 30 * DAY)
    assert got.poll(NOW) == 1
    assert same(kept(tmp_path), [*entries, text])


def test_a_job_has_ended_when_it_said_so_and_nothing_follows(tmp_path, server):
    entries = job(NOW - DAY, 20)
    server.add(*entries[:-1])
    got = fetcher(server, tmp_path)
    got.poll(NOW)
    assert not got.ended(NOW)
    server.add(entries[-1])
    got.poll(NOW)
    end = stamp_ns(entries[-1]["timestamp"])
    assert not got.ended(end + 60 * S) and got.ended(end + 3600 * S)
    server.add(*job(end + 7200 * S, 3, first=500, ends=False))
    got.poll(NOW)
    assert not got.ended(NOW)


def test_when_a_job_was_heard_is_told_by_the_clock_of_the_service(tmp_path):
    from collectors.cloud_logging.spool import Cursor

    cursor = Cursor()
    stamps = [
        ("2026-01-01T09:00:00Z", "2026-01-01T11:00:01Z"),  # a host two hours behind
        ("2027-01-01T00:00:00Z", "2026-01-01T11:00:05Z"),  # one that is a year ahead
        ("2026-01-01T10:00:00Z", "2026-01-01T11:00:03Z"),
    ]
    for number, (when, received) in enumerate(stamps):
        cursor.note(
            {
                "timestamp": when,
                "receiveTimestamp": received,
                "insertId": str(number),
                "jsonPayload": {"job_name": "j", "step_count": number},
            },
            "j",
        )
    assert cursor.heard == stamp_ns("2026-01-01T11:00:05Z") and cursor.active == stamp_ns("2027-01-01T00:00:00Z")
    end = {"job_name": "j", "job_end_time": 1.0}
    cursor.note({"timestamp": "2026-01-01T12:00:00Z", "insertId": "e", "jsonPayload": end}, "j")
    cursor.note({"timestamp": "2026-01-01T13:00:00Z", "insertId": "f", "jsonPayload": {"job_name": "other"}}, "j")
    assert cursor.heard == stamp_ns("2026-01-01T11:00:05Z"), "neither its end nor another job"
