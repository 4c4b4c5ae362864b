"""Reports: the numbers of the pages in one file, in which no text from a run is anything but text."""

import base64
import gzip
import hashlib
import json
import os
import re
import signal
import stat
import time
import urllib.request
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from app.cli.commands import report as command
from app.questions import QUESTIONS
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.ledger import LEDGER
from app.reporting.document import Head, Items, Numbers, Picture, Rows, Text
from app.reporting.files import check, keep
from app.reporting.formats import FORMATS, HTML, MARKDOWN, PDF, asked_for, written
from app.reporting.made import of_pair, of_run
from app.reporting.pictures import DRAWINGS
from app.reporting.writers import pdf as printing
from app.reporting.writers.markdown import md
from app.reporting.writers.pdf import _run
from app.workspace import workspace
from errors import ChipledgerError, InputError, QuestionError
from tests.analyzers.served_worlds import world
from tests.app import made_runs, served_runs
from tests.app.commands import out
from tests.app.serving import get, request, serving

HOSTILE = "</script><img src=x onerror=alert(1)>\"'`|[a](javascript:x)\u2028${1}<!--"
PARTS = ["short", "findings", "ledger", "losses", "own", "untold", "facts", "definitions", "inputs"]


class Read(HTMLParser):
    """What a browser would make of a file: tags with their attributes, the text of scripts, the rest of the text."""

    def __init__(self, page: bytes):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self._inside = ""
        self.feed(page.decode())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self._inside:
            self.text += data


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return workspace(str(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def run(place):
    return made_runs.interrupted(place.store)


@pytest.fixture(scope="module")
def hostile(place):
    more = {"warnings": [HOSTILE], "tags": {HOSTILE: HOSTILE}}
    return made_runs.interrupted(place.store, HOSTILE, **more)


@pytest.fixture(scope="module")
def document(run, place):
    return of_run(run, place)


@pytest.fixture(scope="module")
def page(document):
    return written(document, HTML)


def test_a_report_has_its_parts_in_their_order(document):
    assert [part.name for part in document.parts] == PARTS
    assert all(part.blocks for part in document.parts)


def test_its_numbers_are_those_of_the_answers(run, place, page):
    told = Read(page).text
    for question in (FINDINGS, LEDGER):
        result = ask(question, run, {}, place.registry)
        assert question.verdict(result).whole in told
        cells = [cell.strip() for row in question.table(result).rows for cell in row]
        lacks = [cell for cell in cells if cell not in told and question is LEDGER]
        assert not lacks
    findings = ask(FINDINGS, run, {}, place.registry)
    assert findings.findings
    assert all(f.title in told and findings.cure(f) in told for f in findings.findings)


def test_the_first_part_has_a_figure_and_every_figure_is_whole_json(document, page):
    assert any(isinstance(block, Picture) for block in document.parts[0].blocks)
    figures = [json.loads(text) for known, text in Read(page).scripts if known.get("type") == "application/json"]
    assert len(figures) == len(list(document.pictures())) >= 2
    assert all(figure["figure"]["data"] for figure in figures)


def test_of_scripts_only_those_may_run_whose_hashes_the_policy_names(page):
    read = Read(page)
    policy = next(a["content"] for tag, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';") and "unsafe-eval" not in policy
    allowed = next(rule for rule in policy.split("; ") if rule.startswith("script-src ")).split()[1:]
    runs = [text for known, text in read.scripts if "type" not in known]
    packed = next(text for known, text in read.scripts if known.get("id") == "plotly")
    texts = [*runs, gzip.decompress(base64.b64decode(packed)).decode()]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    assert allowed == [f"'sha256-{digest}'" for digest in hashes]
    assert not any(name.startswith("on") or name == "src" for _, attrs in read.tags for name in attrs)
    assert not [a for _, a in read.tags if not (a.get("href") or "#").startswith("#")]


@pytest.mark.parametrize("of", ["run", "pair"])
def test_what_a_run_says_is_text_and_nothing_else(of, run, hostile, place, page):
    document = of_run(hostile, place) if of == "run" else of_pair(run, hostile, place)
    made, usual = Read(written(document, HTML)), Read(page)
    assert {tag for tag, _ in made.tags} <= {tag for tag, _ in usual.tags} | {"h3", "ul"}
    assert HOSTILE.split("\u2028")[0] in made.text
    assert len(made.scripts) == len(list(document.pictures())) + 2
    for known, text in made.scripts:
        if known.get("type") == "application/json":
            assert not re.search("[<>&\u2028\u2029]", text)
            assert json.loads(text)
    told = written(document, MARKDOWN).decode()
    assert not re.search(r"(?<!\\)<|(?<!\\)\]\(", told)


def test_markdown_has_whole_tables_and_every_word_but_no_figure(document, hostile, place):
    for made in (document, of_run(hostile, place)):
        told = written(made, MARKDOWN).decode()
        lines = told.splitlines()
        for block in (b for part in made.parts for b in part.blocks if isinstance(b, Rows)):
            head = f"| {' | '.join(map(md, block.table.head))} |"
            at = lines.index(head)
            for line in lines[at : at + 2 + len(block.table.rows)]:
                assert len(re.findall(r"(?<!\\)\|", line)) == len(block.table.head) + 1
        assert "plotly" not in told


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b*c", r"a\_b\*c"),
        ("1. x", r"1\. x"),
        ("- x", r"\- x"),
        ("--x", r"\--x"),
        ("3.5 s", "3.5 s"),
        ("-5 %", "-5 %"),
        ("a | b", r"a \| b"),
        ("<b>", r"\<b\>"),
        ("two\nlines", "two lines"),
    ],
)
def test_markdown_shows_a_text_as_it_is(text, shown):
    assert md(text) == shown


def test_two_runs_tell_what_differs_and_each_by_itself(run, place):
    quicker = made_runs.interrupted(place.store, "again", tags={"batch": "8"})
    document = of_pair(run, quicker, place)
    assert [part.name for part in document.parts][:2] == ["short", "differs"]
    assert {"alone", "definitions", "inputs"} <= {part.name for part in document.parts}
    told = Read(written(document, HTML)).text
    assert f"A: {run.manifest.name}" in told and "B: again" in told


def test_two_runs_tell_what_reading_each_told(run, hostile, place):
    said = next(part for part in of_pair(run, hostile, place).parts if part.name == "read")
    assert said.blocks == (Head(f"B: {HOSTILE}"), Items((HOSTILE,)))


def test_two_runs_without_a_figure_have_no_empty_table(place):
    facts = {"chip": "TPU v5p", "chips": 4}
    step = {"step": [0], "start_ns": [0], "attempt": [0], "order": [0], "source": ["x"]}
    a, b = (made_runs.write(place.store, name, {"steps": step}, facts) for name in ("one step", "one more"))
    document = of_pair(a, b, place)
    assert all(block.numbers for part in document.parts for block in part.blocks if isinstance(block, Numbers))


def two_served(place):
    """The same requests, to engines of other settings."""
    made = []
    for name, batch in (("usual", 8), ("wider", 16)):
        requests = world(n=500, rate=3.0, slots=32, seed=1, slower=8 / batch).requests
        facts = {"max_num_seqs": batch}
        made.append(made_runs.write(place.store, name, {"requests": requests}, facts, kind="serving"))
    return made


def test_two_served_runs_tell_what_is_known_to_differ(place):
    one, other = two_served(place)
    document = of_pair(one, other, place)
    assert [part.name for part in document.parts][:3] == ["short", "differs", "traffic"]
    cells = next(b.table.rows for b in document.parts[1].blocks if isinstance(b, Rows))
    assert cells == (("max num seqs", "8", "16"),)


def test_one_run_twice_is_said_in_a_sentence(run, place):
    with pytest.raises(QuestionError, match="is both runs"):
        of_pair(run, run, place)
    served = served_runs.busy(place.store, "x" * 90)
    with pytest.raises(QuestionError, match="^x{20}…x{19} is both runs; expected two different runs, or two loads"):
        of_pair(served, served, place)


def test_a_run_that_tells_nothing_has_a_report_that_says_so(place):
    bare = made_runs.write(place.store, "bare", {}, {})
    told = Read(written(of_run(bare, place), HTML)).text
    assert "cannot be told" in told and "Nothing is known of it beyond its inputs." in told


def test_what_nobody_ran_is_marked_at_the_top(place):
    made = made_runs.interrupted(place.store, "made up", kind="simulated")
    assert any("nobody ran this" in mark for mark in of_run(made, place).marks)


def test_a_program_that_did_not_compile_is_marked_as_one_without_times(place):
    facts = {"outcome": "out_of_memory", "fits": False, "needed_bytes": 40 << 30, "limit_bytes": 31 << 30}
    document = of_run(made_runs.write(place.store, "too large", {}, facts, kind="compiled"), place)
    assert document.marks == ("Did not compile: nobody ran this, and it has no times.",)
    first, *_, last = (block.text for block in document.parts[0].blocks if isinstance(block, Text))
    assert first.startswith("It does not fit") and last.startswith("What is wrong with this run cannot be told")


def test_a_damaged_run_says_what_is_damaged(tmp_path):
    place = workspace(str(tmp_path))
    made = made_runs.interrupted(place.store)
    next(made.folder.rglob("steps*.parquet")).write_bytes(b"no table")
    try:
        document = of_run(place.store.find(made.run_id), place)
    except ChipledgerError as e:
        assert str(e)
    else:
        assert any(mark.startswith("Damaged: ") for mark in document.marks)


def test_each_picture_is_of_a_question_that_there_is():
    assert {drawing.question for drawing in DRAWINGS} <= {q.name for q in QUESTIONS}


@pytest.mark.parametrize(("file", "format"), [("a.html", HTML), ("b.HTM", HTML), ("c.md", MARKDOWN), ("d.pdf", PDF)])
def test_the_ending_says_the_format(file, format):
    assert asked_for(file, None) is format
    assert all(asked_for(file, f.name) is f for f in FORMATS)


@pytest.mark.parametrize("file", ["a.docx", "a", "a.html.gz", ".html" * 100 + ".x", ""])
def test_an_ending_of_no_format_is_refused(file):
    with pytest.raises(QuestionError, match="ending|ends with"):
        asked_for(file, None)


def test_a_file_that_is_there_is_written_over_only_when_asked(run, place, tmp_path, capsys):
    store, file = str(place.store.root), tmp_path / "r.md"
    assert out(capsys, "--store", store, "report", run.run_id, "-o", file)[0] == 0
    first = file.read_bytes()
    assert first.startswith(b"# llama-70b v5p")
    code, _, said = out(capsys, "--store", store, "report", run.run_id, "--output", file)
    assert code == 2 and "there already" in said and "--force" in said and file.read_bytes() == first
    code, told, _ = out(capsys, "--store", store, "report", run.run_id, "-o", file, "--force", "--json")
    assert code == 0 and json.loads(told)["bytes"] == len(file.read_bytes())
    assert [f.name for f in tmp_path.iterdir()] == ["r.md"]


@pytest.mark.parametrize("where", ["missing/r.md", "."])
def test_where_nothing_can_be_written_is_said_before_anything_is_asked(where, run, place, tmp_path, capsys):
    flags = ("-o", tmp_path / where, "--format", "markdown")
    code, _, said = out(capsys, "--store", str(place.store.root), "report", run.run_id, *flags)
    assert code == 2 and "folder" in said and not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["~nosuchuser/r.md", f"{'a' * 300}.md", f"{'d' * 300}/r.md"])
def test_a_place_that_cannot_be_is_one_line(file, run, place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, said = out(capsys, "--store", str(place.store.root), "report", run.run_id, "-o", file)
    assert code == 2 and said.count("\n") == 1 and len(said) < 300 and not list(tmp_path.iterdir())


def test_what_is_no_file_stays_what_it_is(tmp_path):
    pipe, link, here = tmp_path / "pipe", tmp_path / "link", tmp_path / "here"
    os.mkfifo(pipe)
    for force in (True, False):
        with pytest.raises(InputError, match="is no file.*Give - to print it"):
            check(pipe, force)
    here.write_bytes(b"old")
    here.chmod(0o600)
    link.symlink_to(here)
    check(link, True)
    keep(link, b"new", True)
    assert link.is_symlink() and here.read_bytes() == b"new" and stat.S_IMODE(here.stat().st_mode) == 0o600


def test_where_there_are_no_links_it_is_written_all_the_same_and_over_nothing(tmp_path, monkeypatch):
    def none(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    keep(tmp_path / "r.md", b"first", False)
    with pytest.raises(InputError, match="is there already"):
        keep(tmp_path / "r.md", b"second", False)
    assert [(f.name, f.read_bytes()) for f in tmp_path.iterdir()] == [("r.md", b"first")]


def test_a_load_of_one_run_alone_is_refused(run, place, capsys):
    code, _, said = out(capsys, "--store", str(place.store.root), "report", run.run_id, "-o", "-", "--load-a", "x")
    assert code == 2 and "two runs" in said


def test_a_pdf_without_a_browser_says_what_to_do(monkeypatch):
    monkeypatch.setattr(printing, "chromium", lambda: None)
    with pytest.raises(QuestionError, match="Install the package chromium"):
        printing.pdf(b"<p>x")


def test_a_browser_that_prints_nothing_is_said_to(monkeypatch):
    monkeypatch.setattr(printing, "chromium", lambda: "/bin/false")
    with pytest.raises(QuestionError, match="printed no PDF"):
        printing.pdf(b"<p>x")


def test_the_command_names_the_route_that_gives_the_same():
    assert command.API == "/api/runs/RUN/report"


def fetched(url: str):
    """(headers, body) of what is no JSON."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.headers, answer.read()


def test_a_server_gives_both_reports_apart_from_its_pages_and_as_files(tmp_path, capsys):
    place = workspace(str(tmp_path / "store"))
    one, two = made_runs.interrupted(place.store, "a é"), made_runs.interrupted(place.store, "b", tags={"x": "y"})
    with serving(place.store.root) as address:
        of_one, of_two = f"{address}/api/runs/{one.run_id}/report", f"{address}/api/compare/report"
        assert request("PUT", f"{address}/api/baselines/main", {"run": two.run_id})[0] == 200
        pair = f"{of_two}?a={one.run_id}&b=baseline:main"
        for url, name in ((f"{of_one}?", "a é"), (f"{pair}&", "a é and b")):
            for format, media, ending in (("html", "text/html", ".html"), ("markdown", "text/markdown", ".md")):
                headers, body = fetched(f"{url}format={format}")
                assert headers["Content-Security-Policy"] == "sandbox allow-scripts allow-downloads"
                assert headers["X-Content-Type-Options"] == "nosniff" and headers["Content-Disposition"] is None
                assert headers["Content-Type"].startswith(media) and len(body) == int(headers["Content-Length"])
                kept = fetched(f"{url}format={format}&download=true")[0]["Content-Disposition"]
                assert kept == f"attachment; filename*=UTF-8''{quote(name + ending)}"
        wrong = ((f"{of_one}?format=pdf", 400), (f"{of_two}?a=b", 400), (f"{of_two}?a=b&b=baseline:none", 404))
        assert [get(url)[0] for url, _ in wrong] == [code for _, code in wrong]
        served = fetched(f"{pair}&format=markdown")[1].decode()
    code, told, _ = out(capsys, "--store", place.store.root, "report", one.run_id, "baseline:main", "-o", "-")
    assert code == 0 and told.splitlines()[:3] == served.splitlines()[:3]


def test_what_a_printer_leaves_behind_is_not_waited_for(tmp_path):
    left = f"exec python3 -c 'import os, time; os.setsid(); time.sleep(60)' & echo $! > {tmp_path}/left; echo why >&2"
    began = time.monotonic()
    assert _run(["bash", "-c", left], tmp_path / "said") == "a PDF, and it said: why"
    assert time.monotonic() - began < 30
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
