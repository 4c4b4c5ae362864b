"""SQL over a run's tables: right answers, and nothing else than answers."""

import json
import re
import sys
from datetime import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errors import InputError, QuestionError
from runs.query import ANSWER_BYTES, _in_a_line, query
from runs.query_child import cut_to, size
from runs.run import Run
from runs.schema import TABLES
from runs.store import Store
from tests.app import made_runs
from tests.bundled import bundled

ONLY = "only one SELECT statement is run"
UNREADABLE, UNASKED = "cannot be read from here", "cannot be asked here"
HOSTILE = (
    ("select * from read_csv('/etc/passwd')", UNREADABLE),
    ("select * from read_text('/etc/passwd')", UNREADABLE),
    ("select * from '/etc/passwd'", "no table '/etc/passwd'"),
    ("select * from glob('/*')", UNREADABLE),
    ("select * from steps where chip in (select size from read_blob('/etc/passwd'))", UNREADABLE),
    ("select 1 order by (select content from read_text('/etc/passwd'))", UNREADABLE),
    ("with a as (select * from read_blob('/etc/passwd')) select * from a", UNREADABLE),
    ('with "/etc/hosts" as (select 1) select * from "/etc/hosts"', "WITH cannot be named '/etc/hosts'"),
    ("select * from sqlite_master, (with sqlite_master as (select 1) select 1)", "WITH cannot be named"),
    ("select getenv('HOME')", UNASKED),
    ("select list_transform(['HOME'], lambda x: x.getenv())", UNASKED),
    ("select current_setting('allowed_paths')", UNASKED),
    ("select json_serialize_plan('select current_setting(''allowed_paths'')', optimize := true)", UNASKED),
    ("select * from duckdb_settings()", UNREADABLE),
    ("select * from duckdb_views()", UNREADABLE),
    ("select * from duckdb_views", "no table 'duckdb_views'"),
    ("select * from information_schema.tables", "no table 'tables'"),
    ("select * from query('select 1')", UNREADABLE),
    ("copy steps to 'x.csv'", ONLY),
    ("attach 'x.db'", ONLY),
    ("install httpfs", ONLY),
    ("set memory_limit = '9GB'", ONLY),
    ("pragma version", ONLY),
    ("select 1; select 2", ONLY),
    ("select 1 /* one */ ; -- two\n drop view steps", ONLY),
    ("show tables", ONLY),
    ("", "a SELECT statement of up to 16,000 characters"),
    ("select 1 --" + "x" * 16_000, "a SELECT statement of up to 16,000 characters"),
    ("select " + "(" * 5000 + "1" + ")" * 5000, "depth"),
)
SLOW = (
    "select count(*) from generate_series(1000000000000)",
    "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
    "select count(*) from range(10000000) a, range(10000000) b where a.range + b.range = 3.5",
)
LARGE = ("select length(repeat('x', 3000000000))", "select list_sum(range(200000000))")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, "training")


def test_a_query_counts_the_rows_of_each_table(run):
    counts = (f"select '{t.name}' as name, count(*) as n from {t.name}" for t in TABLES)
    found = query(run, " union all ".join(counts)).table.to_pylist()
    assert {f["name"]: f["n"] for f in found} == {t.name: run.tables.rows(t.name) for t in TABLES}


def test_each_table_has_its_columns_with_their_values(run):
    held = [t for t in TABLES if run.tables.rows(t.name)]
    each = {t.name: ", ".join(f'count("{c.name}")' for c in t.columns) for t in held}
    columns = ", ".join(f"(select [{counts}] from {name})" for name, counts in each.items())
    found = [list(row.values()) for row in query(run, f"select {columns}").table.to_pylist()][0]
    for table, counts in zip(held, found, strict=True):
        arrow = run.tables.arrow(table.name)
        assert counts == [arrow.num_rows - arrow[c.name].null_count for c in table.columns], table.name


def test_an_answer_is_cut_at_the_rows_asked_for(run):
    exact, cut = query(run, "select * from range(7)", rows=7), query(run, "select * from range(8)", rows=7)
    assert (exact.table.num_rows, exact.cut, cut.table.num_rows, cut.cut) == (7, False, 7, True)


def test_an_answer_is_cut_at_the_bytes_that_may_be_given(run):
    found = query(run, "select repeat('x', 1000000) as x from range(100)")
    assert found.cut and ANSWER_BYTES // 2 < found.table.nbytes <= ANSWER_BYTES
    with pytest.raises(QuestionError, match="one row alone is larger than 64 MiB"):
        query(run, f"select repeat('x', {ANSWER_BYTES + 1})")


def test_a_dictionary_that_is_larger_than_what_may_be_given():
    column = pa.array(["x" * 1000, "y", "y"]).dictionary_encode()
    assert [cut_to(pa.record_batch([column], ["x"]), most).num_rows for most in (5000, 10)] == [3, 0]


def test_values_of_which_arrow_holds_eight_in_a_byte_count_as_who_reads_them_has_them(run):
    """Half a gigabyte of truth values is 60 MiB of Arrow, and tens of gigabytes where they are read."""
    found = query(run, f"select {', '.join(['true'] * 10)} from range(1000000)", rows=1_000_000)
    assert found.cut and ANSWER_BYTES // 16 < found.table.num_rows * 10 <= ANSWER_BYTES // 8


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[True] * 99] * 16),
        pa.array([[True] * 99] * 16, pa.list_(pa.bool_(), 99)),
        pa.array([{f"k{n}": True for n in range(99)}] * 16),
        pa.array([[(n, True) for n in range(49)]] * 16, pa.map_(pa.int8(), pa.bool_())),
    ],
)
def test_values_within_lists_and_structs_count_too(column):
    batch = pa.record_batch([column], ["x"])
    row = size(batch) // 16
    assert row >= 98 * 8 and [cut_to(batch, most * row).num_rows for most in (16, 15, 3, 0)] == [16, 8, 2, 0]


def test_an_error_behind_the_first_rows_is_told_as_one_among_them_is(run):
    wrong = "select cast(case when range = {} then 'a' else '1' end as int) from range(200000)"
    for at in (5, 150_000):
        with pytest.raises(QuestionError, match="Conversion Error: Could not convert string 'a' to INT32$"):
            query(run, wrong.format(at), rows=1_000_000)


def test_columns_of_one_name_are_told_apart(run):
    assert query(run, "select 1 as a, 2 as a, 3 as a_1").table.to_pylist() == [{"a": 1, "a_1": 2, "a_1_1": 3}]


def test_sums_of_whole_numbers_are_whole_numbers_of_64_bits_where_they_fit(run):
    found = query(run, "select sum(x) as small, sum(9223372036854775807) as large from range(2) t(x)").table
    assert found.schema.types == [pa.int64(), pa.decimal128(38, 0)]
    assert found.to_pylist() == [{"small": 1, "large": 2 * (2**63 - 1)}]


DAY = "time '24:00:00'"


@pytest.mark.parametrize(
    "value", [DAY, f"[null, {DAY}]", f"{{'a': [{DAY}]}}", f"map {{{DAY}: 1}}", "time_ns '24:00:00'"]
)
def test_the_end_of_a_day_is_not_given_as_its_beginning(run, value):
    with pytest.raises(QuestionError, match=r"^SQL: the column 't' holds 24:00:00, a time out of range"):
        query(run, f"select {value} as t from range(3)")
    assert query(run, f"select {DAY}::varchar as t").table.to_pylist() == [{"t": "24:00:00"}]
    latest = query(run, "select time '23:59:59.999999' as t, null::time as n, [time '00:00:00'] as l").table.to_pylist()
    assert latest == [{"t": time(23, 59, 59, 999999), "n": None, "l": [time(0)]}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("timetz '12:00:00+05'", "12:00:00+05"),
        ("340282366920938463463374607431768211455::uhugeint", "340282366920938463463374607431768211455"),
        ("bitstring '0101'", "0101"),
    ],
)
def test_what_arrow_would_have_as_something_else_is_not_given_but_as_text(run, value, text):
    for nested in (value, f"[{value}]", f"{{'a': {value}}}", f"map {{1: {value}}}", f"array_value({value})"):
        with pytest.raises(QuestionError, match=r"^SQL: the column 'v' holds .*: cast it to VARCHAR"):
            query(run, f"select {nested} as v")
    assert query(run, f"select ({value})::varchar as v").table.to_pylist() == [{"v": text}]


@pytest.mark.parametrize(("sql", "refused"), HOSTILE)
def test_sql_that_is_no_select_over_the_tables_is_refused_in_one_line(run, sql, refused):
    with pytest.raises(QuestionError, match=re.escape(refused)) as told:
        query(run, sql)
    assert "\n" not in str(told.value) and str(run.folder) not in str(told.value)


def test_a_table_that_is_not_there_is_told_with_those_that_are(run):
    with pytest.raises(QuestionError, match="no table 'stepz'. The tables are steps, lifecycle,"):
        query(run, "select * from stepz")


@pytest.mark.parametrize("sql", SLOW)
def test_a_query_without_end_is_ended(run, sql):
    with pytest.raises(QuestionError, match="took more than 1 s"):
        query(run, sql, timeout=1)


@pytest.mark.parametrize("sql", LARGE)
def test_a_query_that_needs_too_much_memory_is_ended(run, sql):
    with pytest.raises(QuestionError, match="more than 512 MiB of memory"):
        query(run, sql)


def test_a_query_whose_process_is_ended_by_the_system_is_one_out_of_memory_and_by_another_fault_is_not(
    run, monkeypatch
):
    for dies, told in (("os.kill(os.getpid(), 9)", "MiB of memory"), ("os.abort()", r"signal 6"), ("1/0", "code 1")):
        monkeypatch.setattr("runs.query.COMMAND", [sys.executable, "-c", f"import os; {dies}"])
        with pytest.raises(QuestionError, match=told):
            query(run, "select 1")


def test_an_error_names_tables_and_not_files():
    error = "IO Error: Cannot read '/runs/1/tables/steps.parquet'\n\nLINE 1: select ..."
    said = _in_a_line(error, [{"name": "steps", "path": "/runs/1/tables/steps.parquet"}, {"name": "ops", "path": None}])
    assert said == "IO Error: Cannot read 'steps'"


def test_a_store_may_lie_in_a_folder_with_odd_letters(tmp_path):
    run = made_runs.interrupted(Store(tmp_path / "a [b]* 'c'"))
    assert query(run, "select count(*) as n from steps").table.to_pylist() == [{"n": 260}]


def test_a_table_of_an_earlier_version_without_a_column_reads_as_null_there(tmp_path):
    run = made_runs.interrupted(Store(tmp_path))
    path = run.folder / "tables" / "steps.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["loss", "host"]), path)
    unmarked = json.loads((run.folder / "run.json").read_text())
    del unmarked["files"], unmarked["crc32"]
    (run.folder / "run.json").write_text(json.dumps(unmarked))
    found = query(Run(run.folder), "select count(*) as n, count(loss) as a, count(host) as b from steps").table
    assert found.to_pylist() == [{"n": 260, "a": 0, "b": 0}]


def test_a_table_that_was_damaged_is_told(tmp_path):
    run = made_runs.interrupted(Store(tmp_path))
    (run.folder / "tables" / "steps.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"tables/steps.parquet: is 7 bytes long"):
        query(run, "select 1")
