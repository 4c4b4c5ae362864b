"""Hostile, damaged and cut files of AMD's profilers: nothing in them is run, and what is not read is told."""

import json
import sqlite3
import time
from collections import Counter

import pytest

from collectors.base import Source
from collectors.device.rocm import rocpd, rocprofv3, rpd
from collectors.ingest import ingest
from errors import InputError
from runs.store import Store
from tests.collectors.reading import read, source_of
from tests.collectors.rocm_files import BOOT, Process, everything, write_rocpd
from tests.collectors.rocprofv3_files import Tool, whole_tool
from tests.collectors.rpd_files import Rpd, chrome, whole_rpd
from tests.collectors.test_rocm import FILES, each_file, ops


@pytest.fixture
def got(tmp_path):
    def reading(*processes: Process):
        path = write_rocpd(tmp_path / "made_results.db", *processes)
        return read(rocpd, Source(path, path.name))

    return reading


HOSTILE = {
    "a view for a table": "CREATE VIEW rocpd_kernel_dispatch_00ff AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL "
    "SELECT start + 1 FROM n) SELECT start AS id, start, start AS end FROM n",
    "a generated column": "CREATE TABLE rocpd_memory_copy_00ff (id INTEGER PRIMARY KEY, start INTEGER, end INTEGER "
    "GENERATED ALWAYS AS (length(hex(zeroblob(900000000)))) VIRTUAL)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON rocpd_thing BEGIN DELETE FROM rocpd_thing; END",
    "a virtual table": "CREATE VIRTUAL TABLE rocpd_region_00ff USING fts5(start)",
    "text for numbers": "CREATE TABLE rocpd_region_00ff (start TEXT, end BLOB, name_id REAL, event_id TEXT)",
    "a large value": "INSERT INTO rocpd_thing VALUES (zeroblob(3000000))",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_nothing_in_the_file_is_run(tmp_path, what):
    also = ["CREATE TABLE rocpd_thing (a)", HOSTILE[what]]
    if what == "text for numbers":
        also.append("INSERT INTO rocpd_region_00ff VALUES ('12abc', x'ff00', 1e300, 'x')")
    path = write_rocpd(tmp_path / "made.db", everything(), also=also)
    result = read(rocpd, Source(path, "made.db"))
    assert len(result.rows["steps"]) == 2 and 26 <= len(result.rows["op_events"]) <= 27
    rows = whole_rpd().write(tmp_path / "made.rpd", *also)
    assert len(read(rpd, Source(rows, "made.rpd")).rows["steps"]) == 2


@each_file
def test_a_file_cut_anywhere_is_read_in_part_or_refused_in_one_sentence(tmp_path, what):
    collector, made, name = FILES[what]
    whole, ended = made(), Counter()
    for cut in range(100, len(whole), min(1024, len(whole) // 20)):
        try:
            result = read(collector, source_of(tmp_path, whole[:cut], name))
        except InputError as error:
            assert name in str(error)
            ended["refused"] += 1
        else:
            assert any(end in result.reasons() for end in ("the end of the file", "the file ends in the middle"))
            ended["read in part"] += 1
    assert ended["refused"] + ended["read in part"] > 5


@each_file
@pytest.mark.parametrize("n", range(25))
def test_a_damaged_file_is_read_or_refused(tmp_path, what, n):
    collector, made, name = FILES[what]
    data = bytearray(made())
    for k in range(1 + n % 7):
        data[(n * 7919 + k * 104_729) % len(data)] ^= 1 << (n % 8)
    try:
        read(collector, source_of(tmp_path, bytes(data), name))
    except InputError as error:
        assert name in str(error)


@pytest.mark.parametrize("what", ["rocpd", "rpd", "rocprofv3"])
def test_rows_in_any_order_are_the_same(tmp_path, what):
    def told(result):
        return sorted((o["op"], o["count"], o["total_ns"], o["self_ns"], str(o["module"])) for o in result.rows["ops"])

    if what == "rocpd":
        made = everything()
        before = read(rocpd, Source(write_rocpd(tmp_path / "a.db", made), "a.db"))
        for rows in made.rows.values():
            rows.reverse()
        after = read(rocpd, Source(write_rocpd(tmp_path / "b.db", made), "a.db"))
    elif what == "rpd":
        rpd_made = whole_rpd()
        before = read(rpd, Source(rpd_made.write(tmp_path / "a.rpd"), "a.rpd"))
        for rows in rpd_made.rows.values():
            rows.reverse()
        after = read(rpd, Source(rpd_made.write(tmp_path / "b.rpd"), "a.rpd"))
    else:
        tool = whole_tool()
        before = read(rocprofv3, source_of(tmp_path, tool.text(), "a.json"))
        tool.records = dict(reversed(tool.records.items()))
        for records in tool.records.values():
            records.reverse()
        after = read(rocprofv3, source_of(tmp_path, tool.text(), "a.json"))
    assert told(before) == told(after) and before.rows["steps"] == after.rows["steps"]


def test_odd_names_stay_as_they_are(got):
    names = ['a "quoted" \\ name', "<script>alert(1)</script>", "[list]", "é" * 50, "\x01"]
    made = Process()
    made.agent(2)
    for n, name in enumerate(names):
        made.range(name, BOOT + 1000 * n, 500)
    assert {o["op"] for o in ops(got(made), role="host")} >= set(names)


def test_json_that_is_odd_is_read_as_far_as_it_goes(tmp_path):
    tool = whole_tool()
    tool.records["kernel_dispatch"] += [None, 3, "x", {"start_timestamp": None, "end_timestamp": "7"}, [1]]
    tool.records["kernel_dispatch"].append({"start_timestamp": 1 << 70, "end_timestamp": BOOT, "dispatch_info": 3})
    tool.metadata = {"pid": "many", "node": [], "command": 7}
    whole = tool.told() | {"agents": {"a": 1}, "strings": [], "kernel_symbols": 12}
    text = json.dumps({"before": [1, {"a": [2]}], "rocprofiler-sdk-tool": [whole, 7, []], "after": {}})
    result = read(rocprofv3, source_of(tmp_path, text, "made.json"))
    assert len([o for o in result.rows["ops"] if o["role"] == "compute"]) == 4
    assert "4 records: they are no JSON objects" in result.reasons()
    assert "their time or duration is missing" in result.reasons()


def test_what_is_not_read_of_json_may_nest_as_deep_as_it_likes(tmp_path):
    """Values that nobody needs are passed over without being decoded, in pieces or whole."""
    deep = "[" * 100_000 + "]" * 100_000
    long = json.dumps([{"a": "x" * 1000, "b": [n]} for n in range(9_000)])  # longer than what is at hand at once
    text = whole_tool().text()[:-1] + f',"deep":{deep},"long":{long}}}'
    result = read(rocprofv3, source_of(tmp_path, text, "made.json"))
    assert len(result.rows["steps"]) == 2 and "the end of the file" not in result.reasons()
    before = f'{{"deep":{deep},"long":{long},' + whole_tool().text()[1:]
    assert read(rocprofv3, source_of(tmp_path, before, "made.json")).rows == result.rows


def test_one_long_message_of_many_ranges_is_read_once(tmp_path):
    made = Process()
    made.agent(2)
    made.range("m" * 900_000, BOOT, 10)
    event = made.rows["event"][-1]["id"]
    for n in range(5_000):
        whose = {"nid": 1, "pid": made.pid, "tid": made.pid}
        made.put("region", start=BOOT + 20 * n, end=BOOT + 20 * n + 9, name_id=1, event_id=event, **whose)
    path = write_rocpd(tmp_path / "made.db", made)
    began = time.monotonic()
    assert len(read(rocpd, Source(path, "made.db")).rows["op_events"]) == 5_001
    assert time.monotonic() - began < 60


def test_calls_of_rccl_before_the_end_of_a_cut_file_are_kept(tmp_path):
    text = whole_tool().text()
    cut = text.index('"counter_collection"', text.index('"rccl_api"'))
    result = read(rocprofv3, source_of(tmp_path, text[:cut], "made.json"))
    assert sum(o["count"] for o in ops(result, op="ncclAllReduce")) == 2
    assert "the end of the file" in result.reasons()


@pytest.mark.parametrize("whole", [False, True])
def test_json_that_is_cut_between_two_events_is_told_to_be(tmp_path, whole):
    text = chrome(whole_rpd(), whole)
    for cut in (text.rindex("\n,"), text.rindex("\n,") + 1, text.rindex("\n,") + 2, text.rindex("]")):
        assert "the end of the file" in read(rpd, source_of(tmp_path, text[:cut], "trace.json")).reasons()
    assert "the end of the file" not in read(rpd, source_of(tmp_path, text, "trace.json")).reasons()


def test_nothing_is_stored_of_one_that_is_refused(tmp_path):
    paths = [write_rocpd(tmp_path / "empty_results.db", Process()), Rpd().write(tmp_path / "empty.rpd")]
    (tmp_path / "empty.json").write_text(Tool().text())
    for path in (*paths, tmp_path / "empty.json"):
        with pytest.raises(InputError, match="no event that can be read"):
            ingest([path], Store(tmp_path / "store"))
    assert Store(tmp_path / "store").runs() == []


def test_a_database_of_something_else_is_not_taken(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
    assert rocpd.sniff(Source(path, path.name)) == rpd.sniff(Source(path, path.name)) == 0
