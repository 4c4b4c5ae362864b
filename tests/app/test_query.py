"""SQL over a run's tables, on the command line and over the API: as a table, JSON, CSV and Parquet."""

import csv
import io
import json
import re
import resource
import signal
import urllib.request
from urllib.parse import urlencode

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app import querying
from app.pages.query.examples import EXAMPLES, fitting
from errors import InputError, QuestionError
from runs.query import query
from runs.schema import TABLES
from runs.store import Store
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import get, serving
from tests.app.test_pages import opened, words

STEPS = "select attempt, count(*) as steps from steps group by attempt order by attempt"


@pytest.fixture
def run(place):
    return made_runs.interrupted(place.store, "run a")


def test_an_answer_is_printed_as_a_table_with_a_note(capsys, run):
    code, text, _ = out(capsys, "query", "run a", STEPS)
    lines = text.splitlines()
    assert code == 0 and [line.split() for line in lines[:3]] == [["attempt", "steps"], ["0", "100"], ["1", "160"]]
    assert lines[-1].startswith("2 rows in ")


def test_an_answer_is_json_with_values_that_json_has(capsys, run):
    sql = "select 1 as a, 'nan'::double as b, [1.5, 'inf'::double] as c, map {'k': date '2026-01-02'} as d, null as e"
    sql += ", sum(step) as f, 1.25 as g from steps where step < 3"
    code, text, _ = out(capsys, "query", "run a", sql, "--json")
    told = json.loads(text)
    assert code == 0 and told["columns"] == list("abcdefg") and not told["cut"]
    assert told["rows"] == [[1, None, [1.5, None], [["k", "2026-01-02"]], None, 3, 1.25]]


def test_numbers_of_up_to_38_digits_are_json(capsys, run):
    sql = "select sum(9223372036854775807::hugeint * 4000000000) as sum from range(3)"
    code, text, _ = out(capsys, "query", "run a", sql, "--json")
    assert code == 0 and json.loads(text)["rows"] == [[9223372036854775807 * 4_000_000_000 * 3]]
    sql = f"select -{10**37 + 7}::decimal(38, 0) as whole, {10**35 + 7}.25::decimal(38, 2) as parts, 3.00 as three"
    code, text, _ = out(capsys, "query", "run a", sql, "--json")
    assert code == 0 and json.loads(text)["rows"] == [[-(10**37) - 7, 10**35 + 7.25, 3]]
    _, text, _ = out(capsys, "query", "run a", f"select [{10**37}::hugeint] as list", "--csv")
    assert text.splitlines()[1] == f"[{10**37}]"


def test_rows_that_are_cut_off_are_told(capsys, run):
    assert json.loads(out(capsys, "query", "run a", "select * from steps", "--rows", "3", "--json")[1])["cut"]
    text = out(capsys, "query", "run a", "select step from steps", "--rows", "3")[1]
    assert text.splitlines()[-1].startswith("3 rows in ") and text.endswith("; there are more, which were cut off\n")


def test_that_a_file_does_not_hold_all_rows_is_told_beside_it(capsys, run, tmp_path):
    for to in (["--csv"], ["--parquet", tmp_path / "answer.parquet"]):
        code, text, error = out(capsys, "query", "run a", "select step from steps", "--rows", "3", *to)
        assert code == 0 and len(text.splitlines()) in (0, 4)
        assert error.startswith("warning: the first 3 rows alone; there are more") and "--rows takes" in error
    assert out(capsys, "query", "run a", "select step from steps", "--csv")[2] == ""


def test_cells_of_csv_do_nothing_in_a_spreadsheet(capsys, run):
    sql = "select '=1+1' as a, -2 as b, ['=x'] as c, '-3' as d, 'x,\"y' as e, null as \"=f\""
    code, text, _ = out(capsys, "query", "run a", sql, "--csv")
    assert code == 0
    assert list(csv.reader(io.StringIO(text))) == [
        ["a", "b", "c", "d", "e", "'=f"],
        ["'=1+1", "-2", "['=x']", "-3", 'x,"y', ""],
    ]


def test_an_answer_becomes_a_parquet_file_that_is_never_overwritten(capsys, run, tmp_path):
    path = tmp_path / "answer.parquet"
    assert out(capsys, "query", "run a", STEPS, "--parquet", path)[0] == 0
    assert pq.read_table(path).to_pylist() == [{"attempt": 0, "steps": 100}, {"attempt": 1, "steps": 160}]
    before = path.read_bytes()
    code, text, error = out(capsys, "query", "run a", "select 1", "--parquet", path)
    assert (code, text, path.read_bytes()) == (2, "", before) and "cannot be written (File exists)" in error


def test_a_parquet_file_that_does_not_fit_leaves_nothing(capsys, run, tmp_path, monkeypatch):
    """More than a file of this process may hold is refused as a full disk refuses it."""
    monkeypatch.setattr(querying, "parquet_bytes", lambda _: bytes(1 << 20))
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(InputError, match="cannot be written .File too large"):
            querying.write_parquet(query(run, "select 1"), str(tmp_path / "answer.parquet"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.glob("*.parquet"))


def test_without_sql_every_table_is_listed_with_its_columns(capsys, run):
    code, text, _ = out(capsys, "query", "run a", "--json")
    told = {t["name"]: t for t in json.loads(text)["tables"]}
    assert code == 0 and list(told) == [t.name for t in TABLES]
    assert told["steps"]["rows"] == 260 and told["scalars"]["rows"] == 0
    assert {c["name"]: c["type"] for c in told["steps"]["columns"]}["start_ns"] == "BIGINT"
    lines = out(capsys, "query", "run a")[1].splitlines()
    assert len(lines) == 1 + sum(len(t.columns) for t in TABLES)
    assert lines[1].split()[:3] == ["steps", "260", TABLES[0].columns[0].name]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run a", "select * from nothing"), "no table 'nothing'. The tables are steps"),
        (("run a", "select from"), "SQL: Parser Error"),
        (("run a", "select x from steps"), 'SQL: Binder Error: Referenced column "x" not found'),
        (("run b", "select 1"), "no run"),
        (("run a", "select 1", "--rows", "0"), "--rows 0"),
        (("run a", "select 1", "--timeout", "301"), "--timeout 301"),
        (("run a", "select 'infinity'::timestamp as t"), "the column 't' holds a time out of range"),
        (("run a", "select interval 1 month as t", "--parquet", "x.parquet"), "no Parquet can be written"),
        (("run a", "select 1", "--json", "--csv"), "not allowed with"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_exit_code_2(capsys, run, arguments, said):
    code, text, error = out(capsys, "query", *arguments)
    assert code == 2 and said in error
    assert (said in json.loads(text)["error"]["what"]) if "--json" in arguments else text == ""
    assert said == "not allowed with" or error.count("\n") == 1


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The addresses of a run on a server, and the folder of its store."""
    store = tmp_path_factory.mktemp("queried") / "store"
    run = made_runs.interrupted(Store(store), "run a")
    with serving(store) as address:
        yield f"{address}/api/runs/{run.run_id}", store


def test_the_api_lists_tables_and_answers_as_json_csv_and_parquet(served):
    at, _ = served
    status, told = get(f"{at}/tables")
    assert status == 200 and {t["name"]: t["rows"] for t in told["tables"]}["steps"] == 260
    status, told = get(f"{at}/query?{urlencode({'sql': STEPS})}")
    assert status == 200 and told["columns"] == ["attempt", "steps"] and told["rows"] == [[0, 100], [1, 160]]
    assert get(f"{at}/query?{urlencode({'sql': STEPS, 'rows': 1})}")[1]["cut"]
    for form, read in (
        ("csv", lambda data: data.decode()),
        ("parquet", lambda data: pq.read_table(pa.py_buffer(data))),
    ):
        with urllib.request.urlopen(f"{at}/query?{urlencode({'sql': STEPS, 'format': form})}") as answer:
            assert answer.headers["Content-Disposition"] == f"attachment; filename=query.{form}"
            found = read(answer.read())
            assert "Chipledger-Cut" not in answer.headers
        assert found == "attempt,steps\n0,100\n1,160\n" if form == "csv" else found["steps"].to_pylist() == [100, 160]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_api_tells_of_a_file_that_it_does_not_hold_all_rows(served, form):
    with urllib.request.urlopen(f"{served[0]}/query?{urlencode({'sql': STEPS, 'format': form, 'rows': 1})}") as answer:
        assert answer.headers["Content-Disposition"] == f"attachment; filename=query-first-1-rows.{form}"
        assert answer.headers["Chipledger-Cut"] == "true"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"sql": "select * from '/etc/passwd'"}, "no table"),
        ({"sql": "select x from steps"}, "Binder Error"),
        ({"sql": "select 1 --" + "x" * 16_000}, "up to 16,000 characters"),
        ({}, "a SELECT statement"),
        ({"sql": "select 1", "format": "xlsx"}, "one of json, csv, parquet"),
        ({"sql": "select 1", "rows": "0"}, "--rows 0"),
        ({"sql": "select 1", "limit": "3"}, "no parameter 'limit'"),
    ],
)
def test_the_api_tells_what_cannot_be_asked_without_folders_of_its_machine(served, asked, said):
    at, store = served
    status, told = get(f"{at}/query?{urlencode(asked)}")
    assert status == 400 and set(told) == {"error"} and said in told["error"]
    assert str(store.parent) not in told["error"] and "/etc" not in told["error"]


def test_the_api_knows_no_query_of_a_run_that_is_not_there(served):
    at, _ = served
    other = at.rpartition("/")[0] + "/nothing"
    assert get(f"{other}/query?sql=select+1")[0] == 404 and get(f"{other}/tables")[0] == 404


def test_a_few_queries_at_once_are_run_and_others_wait(run, monkeypatch):
    monkeypatch.setattr(querying, "WAIT_S", 0)
    with querying.free, querying.free, pytest.raises(QuestionError, match="2 queries are running"):
        querying.answered(run, "select 1")
    assert querying.answered(run, "select 1 as n").table.to_pylist() == [{"n": 1}]
    with pytest.raises(QuestionError):
        querying.answered(run, "select")
    assert all(querying.free.acquire(blocking=False) for _ in range(querying.AT_ONCE)), "a refused query left its place"
    querying.free.release(querying.AT_ONCE)


def page(run, sql=""):
    return opened("pages/query/page.py", run=run.run_id, **({"sql": sql} if sql else {}))


def asked(at):
    """The SQL in the address, which is text or a list of one."""
    said = at.query_params["sql"]
    return said if isinstance(said, str) else said[0]


def test_the_page_answers_the_sql_in_its_address_and_offers_what_fits_the_run(run):
    at = page(run, STEPS)
    assert not at.exception and at.text_area[0].value == STEPS
    assert at.dataframe[0].value.to_dict("list") == {"attempt": [0, 1], "steps": [100, 160]}
    assert "2 rows in" in words(at) and [b.label for b in at.download_button] == ["CSV", "Parquet"]
    examples = [b.label for b in at.button if b.label != "Run"]
    assert examples == [e.label for e in fitting({"steps": 1, "lifecycle": 1})] == [e.label for e in EXAMPLES[:2]]


def test_the_page_says_what_its_files_hold(run):
    said = words(page(run, "select * from range(10_001)"))
    assert "there are more, which were cut off" in said and "the files below hold the first 10,000 alone" in said
    assert "the files below hold all" in words(page(run, "select * from range(10_000)"))


def test_the_page_keeps_what_is_entered_in_its_address(run):
    at = page(run)
    assert not at.exception and not at.download_button and "Tables of this run" in words(at)
    at.text_area[0].input("select 7 as n")
    next(b for b in at.button if b.label == "Run").click().run()
    assert asked(at) == "select 7 as n" and at.dataframe[0].value["n"].tolist() == [7]
    next(b for b in at.button if b.label == EXAMPLES[0].label).click().run()
    assert asked(at) == EXAMPLES[0].sql == at.text_area[0].value
    assert not at.warning and "seconds" in at.dataframe[0].value


def test_the_page_tells_why_there_is_no_answer(run):
    at = page(run, "select * from nothing")
    assert not at.exception and "no table 'nothing'" in at.warning[0].value.replace("\\", "")
    assert at.text_area[0].value == "select * from nothing" and not at.download_button


def test_the_page_draws_values_that_it_cannot_count_as_text(run):
    sql = "select 9007199254740993 as a, null::bigint as b, [1, 2] as c, interval 1 month as d, date '2026-01-02' as e"
    frame = page(run, f"{sql}, true as f, 'x' as g, 1.5 as h, 0.5::double as i, '*x*' as j").dataframe[0].value
    [row] = frame.to_dict("records")
    assert row["a"] == 9007199254740993 and pd.isna(row["b"]) and row["c"] == "[1, 2]" and "months=1" in row["d"]
    assert (row["e"], row["f"], row["g"], row["h"], row["i"]) == ("2026-01-02", True, "x", 1.5, 0.5)
    assert page(run, "select step from steps where false").dataframe[0].value.columns.tolist() == ["step"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.label)
def test_an_example_reads_the_tables_that_it_names(run, example):
    """On a run that lacks most tables: all names in it are those of the schema."""
    querying.answered(run, example.sql)
    assert {t.name for t in TABLES if re.search(rf"(from|join) {t.name}\b", example.sql)} == set(example.tables)
