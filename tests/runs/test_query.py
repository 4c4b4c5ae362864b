"""SQL over a run's tables: right answers, and nothing else than answers."""

import pytest

from errors import QuestionError
from runs.query import query
from runs.schema import TABLES
from tests.bundled import bundled

HOSTILE = (
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from glob('/*')",
    "select getenv('HOME')",
    "select current_setting('allowed_paths')",
    "select * from duckdb_settings()",
    "select * from duckdb_views()",
    "select * from information_schema.tables",
    "select * from query('select 1')",
    "with a as (select * from read_blob('/etc/passwd')) select * from a",
    "copy steps to 'x.csv'",
    "attach 'x.db'",
    "install httpfs",
    "load httpfs",
    "set memory_limit = '9GB'",
    "pragma version",
    "select 1; select 2",
    "select 1 /* one */ ; -- two\n drop view steps",
    "show tables",
    "",
    "select " + "(" * 5000 + "1" + ")" * 5000,
)
SLOW = (
    "select count(*) from generate_series(1000000000000)",
    "select list_sum(range(100000000))",
    "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
    "select count(*) from range(10000000) a, range(10000000) b where a.range + b.range = 3.5",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, "training")


def test_a_query_counts_the_rows_of_each_table(run):
    for table in TABLES:
        found = query(run, f"select count(*) as n from {table.name}").table["n"].to_pylist()
        assert found == [run.tables.rows(table.name)], table.name


def test_an_answer_is_cut_at_the_rows_asked_for(run):
    exact, cut = query(run, "select * from range(7)", rows=7), query(run, "select * from range(8)", rows=7)
    assert (exact.table.num_rows, exact.cut, cut.table.num_rows, cut.cut) == (7, False, 7, True)


@pytest.mark.parametrize("sql", HOSTILE)
def test_sql_that_is_no_select_over_the_tables_is_refused_in_one_line(run, sql):
    with pytest.raises(QuestionError) as told:
        query(run, sql)
    assert "\n" not in str(told.value) and "root:" not in str(told.value)


@pytest.mark.parametrize("sql", SLOW)
def test_a_query_without_end_is_ended(run, sql):
    with pytest.raises(QuestionError, match="took more than 1 s|MiB of memory"):
        query(run, sql, timeout=1)


def test_a_query_that_needs_too_much_memory_is_ended(run):
    with pytest.raises(QuestionError, match="MiB of memory"):
        query(run, "select length(repeat('x', 3000000000))")
