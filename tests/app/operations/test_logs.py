"""What a server says of itself: an object a line, no secret in it, and nobody waits for who reads it."""

import io
import json
import logging
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.operations import logs
from app.operations.log_options import AS_JSON, TEXT
from errors import InputError


def told(kind, *says):
    stream = io.StringIO()
    with logs.logging_to(stream, kind):
        for say in says:
            say()
    return stream.getvalue()


def test_each_line_is_an_object_that_says_when_what_and_for_which_request():
    def say():
        with logs.answering_request("abc"):
            logs.tell("request", method="GET", duration_s=0.25, who=None)

    lines = told(AS_JSON, say, lambda: logs.tell("job_ended", job_id="7")).splitlines()
    first, second = map(json.loads, lines)
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "event": "request",
        "request_id": "abc",
        "method": "GET",
        "duration_s": 0.25,
        "who": None,
    }
    assert (second["event"], second["job_id"], second["request_id"]) == ("job_ended", "7", None)


@given(st.text(max_size=200))
def test_whatever_is_named_takes_one_line(text):
    written = told(AS_JSON, lambda: logs.tell("request", route=text))
    assert written.count("\n") == 1 and isinstance(json.loads(written)["route"], str)
    plain = told(TEXT, lambda: logs.tell("request", route=text))
    assert plain.count("\n") == 1 and plain[:-1].isprintable()


def test_half_a_character_breaks_no_line_and_any_terminal_takes_it():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    with logs.logging_to(stream, AS_JSON):
        logs.tell("request", who="\ud800 \u00e9")
    assert json.loads(raw.getvalue())["who"] == "\ud800 \u00e9"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_has_no_word_for_is_not_known(value):
    assert json.loads(told(AS_JSON, lambda: logs.tell("request", duration_s=value)))["duration_s"] is None


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer s3cr3t-value",
        "authorization: Basic s3cr3t-value",
        "{'Authorization': 'Bearer s3cr3t-value'}",
        "Cookie: s3cr3t-value",
        "password=s3cr3t-value",
        '"client_secret": "s3cr3t-value"',
        "api_key=s3cr3t-value&x=1",
        "GET /api/runs?q=s3cr3t-value HTTP/1.1",
        "token s3cr3t-value",
        "clp_s3cr3t-value-of-some-length-and-more",
        "chipledger_s3cr3t-value-of-some-length",
    ],
)
def test_no_line_holds_what_looks_like_a_secret_or_the_values_of_a_query(text):
    def defect():
        try:
            raise ValueError(text)
        except ValueError as e:
            logs.tell_defect(e)

    library = logging.getLogger("chipledger.of_a_library")
    for say in (defect, lambda: logs.tell("x", what=text), lambda: library.warning("%s", text)):
        for kind in (AS_JSON, TEXT):
            written = told(kind, say)
            assert written and "s3cr3t" not in written and "[left out]" in written


def test_what_anything_prints_to_stderr_becomes_objects_too():
    written = told(AS_JSON, lambda: print("two\nlines, and half", file=sys.stderr))
    assert [json.loads(line)["text"] for line in written.splitlines()] == ["two", "lines, and half"]
    before = sys.stderr
    told(TEXT, lambda: None)
    assert sys.stderr is before


def test_where_a_defect_is_stands_in_its_line_and_without_a_log_on_stderr(capsys):
    def defect():
        try:
            raise KeyError("odd")
        except KeyError as e:
            logs.tell_defect(e)

    line = json.loads(told(AS_JSON, defect))
    assert (line["event"], line["level"], line["error"]) == ("defect", "error", "KeyError")
    assert "raise KeyError" in line["traceback"]
    assert "raise KeyError" in told(TEXT, defect).splitlines()[-2]
    capsys.readouterr()
    defect()
    assert "raise KeyError" in capsys.readouterr().err


class Stalled(io.StringIO):
    """A pipe that nobody reads, until `go`."""

    def __init__(self):
        super().__init__()
        self.go, self.reached = threading.Event(), threading.Event()

    def write(self, text):
        self.reached.set()
        self.go.wait(60)
        return super().write(text)


def test_a_log_that_nobody_reads_holds_nobody_up_and_what_is_lost_is_counted(monkeypatch):
    monkeypatch.setattr(logs, "STOP_S", 0.05)
    stream, before = Stalled(), logs.lost()
    try:
        with logs.logging_to(stream, AS_JSON):
            logs.tell("first")
            assert stream.reached.wait(60)
            for _ in range(logs.WAITING + 7):
                logs.tell("more")
            assert logs.lost() - before == 7
    finally:
        stream.go.set()
    deadline = threading.Event()
    while not logs._QUEUE.queue.empty() and not deadline.wait(0.01):
        pass


@pytest.mark.parametrize(
    ("said", "kind"), [("", TEXT), ("text", TEXT), ("json", AS_JSON), ("xml", None), ("JSON", None)]
)
def test_a_way_to_write_it_that_there_is_not_is_refused(monkeypatch, said, kind):
    monkeypatch.setenv(logs.LOG_VARIABLE, said)
    if kind:
        assert logs.kind_asked() == kind
    else:
        with pytest.raises(InputError, match="expected one of text, json"):
            logs.kind_asked()


def test_a_long_text_is_cut_in_the_middle():
    text = logs.without_secrets("a" * 9_000 + "the end")
    assert len(text) <= logs.LONGEST + 10 and text.endswith("the end")


SECRET = "SECRETSECRET"
SAID_OF_SECRETS = (
    "CHIPLEDGER_METRICS_TOKEN={}",
    "{{'access_token': '{}', 'id_token': '{}'}}",
    "AWS_SECRET_ACCESS_KEY={}",
    "Cookie: _ga=GA1.2; __Host-chipledger_session={}",
    "[(b'cookie', b'theme=dark; session={}')]",
    "[(b'authorization', b'Bearer {}')]",
    "Authorization: Bearer {}",
    "https://user:{}@host/x",
    "code={}&state={}",
)


@pytest.mark.parametrize("said", SAID_OF_SECRETS)
def test_no_secret_is_told_whatever_says_it_and_wherever_the_text_is_cut(said):
    text = said.replace("{}", SECRET).replace("{{", "{").replace("}}", "}")
    for before in (0, 1, logs.LONGEST // 2 - 5, logs.LONGEST - 10, 3 * logs.LONGEST):
        told = logs.without_secrets("x" * before + " " + text + " " + "y" * (logs.LONGEST - 20))
        assert SECRET not in told and SECRET[3:] not in told


def test_what_an_error_says_forges_no_line():
    said = {"error": "X", "traceback": "Traceback\nValueError: a\n2026-11-26T14:00:00.000Z info job_ended\x1b[2J"}
    record = logging.LogRecord("chipledger", logging.ERROR, "", 0, "defect", (), None)
    record.what = said
    first, *rest = logs.line_of(record, TEXT).split("\n")
    assert "defect" in first and all(line.startswith("    ") and line.isprintable() for line in rest)
