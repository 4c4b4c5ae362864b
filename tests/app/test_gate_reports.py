"""What gates found, as files that a build reads: JUnit XML and Markdown, whatever the runs are called."""

import re
from xml.etree import ElementTree as Xml

import pytest

from app.cli import main
from app.comparing.gates import FAILED, NOT_TOLD, PASSED, Judged, gate
from app.comparing.junit import CLASS, junit
from app.comparing.markdown import plain
from errors import QuestionError
from tests.app.commands import out
from tests.app.test_compare_jobs import job

HOSTILE = (
    "b ]]> \x00\x07\x1b[31m \ud800 \ufffe &<\"'>\n|x| @team #12 https://x.example `c` [l](u) <img src=x> " + "y" * 9000
)


@pytest.fixture
def two(place):
    return job(place.store, "a", batch=8), job(place.store, "<b> @team |x|", 1.06, seed=2, batch=16)


def asked(two, tmp_path, capsys, *gates):
    """(exit code, Markdown, the XML's tree) of the command."""
    files = [str(tmp_path / name) for name in ("out.md", "out.xml")]
    flags = [part for g in gates for part in ("--fail-if", g)]
    code, _, _ = out(capsys, "compare", "a", two[1].run_id, *flags, "--markdown", files[0], "--junit", files[1])
    return code, (tmp_path / "out.md").read_text(), Xml.parse(files[1]).getroot()


def test_each_gate_is_one_case_and_its_outcome_is_that_of_the_exit_code(two, tmp_path, capsys):
    told = ("step_time>+1%", "input_wait>+1%", "step_time>+50%")
    code, text, suites = asked(two, tmp_path, capsys, *told, told[0])
    cases = suites.findall("testsuite/testcase")
    assert code == 3 and [c.get("name") for c in cases] == list(told)
    assert {c.get("classname") for c in cases} == {CLASS}
    assert [[e.tag for e in c] for c in cases] == [["failure"], ["error"], ["system-out"]]
    for of in (suites, suites[0]):
        assert [of.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "0"]
    assert text.startswith("### Failed: 1 of 3 gates, and 1 could not be told\n\n**")
    assert "| batch | 8 | 16 |" in text and "could be seen" in text and "slower a step than a" in text


@pytest.mark.parametrize(
    ("gates", "code", "head"),
    [
        (("step_time>+50%",), 0, "### Passed: the gate holds"),
        (("step_time>+50%", "step_time<-1%"), 0, "### Passed: all 2 gates hold"),
        (("input_wait>+1%",), 4, "### Could not be told: 1 of 1 gate"),
    ],
)
def test_the_first_line_of_the_comment_says_how_it_stands(two, tmp_path, capsys, gates, code, head):
    found = asked(two, tmp_path, capsys, *gates)
    assert found[0] == code and found[1].splitlines()[0] == head


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--fail-if", "nogate>1%"), "no gate"),
        ((), "no gate to tell of"),
        (("b", "--fail-if", "mfu<-1"), "more than two"),
    ],
)
def test_what_cannot_be_asked_leaves_no_earlier_answer_behind(two, tmp_path, capsys, given, said):
    for name in ("out.md", "out.xml"):
        (tmp_path / name).write_text("an earlier build")
    files = ["--markdown", str(tmp_path / "out.md"), "--junit", str(tmp_path / "out.xml")]
    assert out(capsys, "compare", "a", two[1].run_id, *given, *files)[0] == 2
    (case,) = Xml.parse(tmp_path / "out.xml").getroot().findall("testsuite/testcase")
    assert said in case.find("error").get("message")
    assert "were not compared" in (tmp_path / "out.md").read_text()


def test_a_comparison_that_is_refused_leaves_no_earlier_answer_behind(two, tmp_path, capsys):
    for name in ("out.md", "out.xml"):
        (tmp_path / name).write_text("an earlier build")
    flags = ["--fail-if", "step_time>+1%", "--markdown", str(tmp_path / "out.md"), "--junit", str(tmp_path / "out.xml")]
    assert out(capsys, "compare", "a", "nobody", *flags)[0] == 2
    (case,) = Xml.parse(tmp_path / "out.xml").getroot().findall("testsuite/testcase")
    assert "no run 'nobody'" in case.find("error").get("message")
    assert "were not compared" in (tmp_path / "out.md").read_text()


def test_xml_holds_any_text_and_is_read_back_as_far_as_xml_has_it():
    judged = [Judged(gate="step_time>+1%", outcome=o, why=HOSTILE) for o in (FAILED, NOT_TOLD, PASSED)]
    text = junit(HOSTILE, HOSTILE, judged, HOSTILE)
    read = Xml.fromstring(text.encode())
    said = read.find("testsuite/testcase/failure").get("message")
    assert said.startswith("b ]]> ???[31m ? ? &<\"'>") and len(said) <= 2000 and len(text) < 20_000
    allowed = re.compile("[\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")  # XML 1.0, production 2
    assert allowed.fullmatch(text)


def test_names_in_markdown_are_shown_and_never_act():
    text = plain(HOSTILE)
    assert "\n" not in text and "\x1b" not in text
    for acts in ("@team", "#12", "https://"):
        assert acts not in text
    assert re.search(r"(?<!\\)[<>|`\[\]*_]", text) is None
    assert [plain(t) for t in ("- x", "1. x", "# x", "a-b 1.5")] == ["\\- x", "1\\. x", "\\# x", "a-b 1.5"]


@pytest.mark.parametrize("acts", ["GH-12", "GL-12", ":tada:", ":+1:", "a5c3785ed8d6a35868bc169f07e40e889087fd2e"])
def test_what_a_forge_would_make_a_link_or_a_picture_of_stays_text(acts):
    shown = plain(f"run {acts} x")
    assert acts not in shown and shown.replace("\u2060", "").replace("\\", "") == f"run {acts} x"
    assert plain("run 21344781eadc took 0.12 s") == "run 21344781eadc took 0.12 s"


def test_what_cannot_be_written_is_said(two, tmp_path, capsys):
    code, _, error = out(capsys, "compare", "a", two[1].run_id, "--markdown", tmp_path / "none" / "x.md")
    assert code == 2 and "cannot be written (No such file or directory)" in error and error.count("\n") == 1
    assert "cannot be written" in out(capsys, "compare", "a", two[1].run_id, "--markdown", tmp_path)[2]
    assert "cannot be written" in out(capsys, "compare", "a", two[1].run_id, "--markdown", "x\0y")[2]
    assert "no gate to tell of" in out(capsys, "compare", "a", two[1].run_id, "--junit", tmp_path / "x.xml")[2]
    assert main(["compare", "a", two[1].run_id, "--markdown", "/dev/null"]) == 0


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("step_time>1", "step_time>+1%"),
        ("steptime > 2,5", "step_time>+2.5%"),
        ("Step time >= 1%", "step_time>+1%"),
        ("input-wait", "input_wait>+1%"),
        ("pading<-3%", "padding<-3%"),
    ],
)
def test_what_is_no_gate_is_refused_with_the_nearest_that_is_one(text, meant):
    with pytest.raises(QuestionError, match=re.escape(f"Did you mean '{meant}'?")):
        gate(text)
    assert gate(meant).text == meant


@pytest.mark.parametrize(
    "text", ["", ">", "%%%", "\0", "step_time>nan%", "step_time>inf%", "step_time>1e308%", "x" * 10_000]
)
def test_no_text_is_too_odd_to_be_refused(text):
    with pytest.raises(QuestionError, match="no gate"):
        gate(text)
