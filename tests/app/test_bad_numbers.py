"""Numbers that cannot be: every option of every what-if and question refuses them in one sentence, on each way in."""

import itertools
import json

import pytest

from app.questions import QUESTIONS
from app.questions import asking as questions
from app.whatif import WHATIFS
from app.whatif.checkpoint import CHECKPOINT
from app.whatif.serving import SERVING
from errors import ChipledgerError, QuestionError
from errors.numbers import ANY, ANY_WHOLE, COUNT, SECONDS, SHARE, Number
from errors.options import NUMBER, Option
from tests.app import made_runs, served_runs
from tests.app.commands import out

NEVER = (
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e400",
    "-1e400",
    "text",
    "9" * 400,
    "-1e29",
    "1,000",
    "0x10",
    "True",
    "1 2",
    "1_0",
    "٣",
)
ODD = ("", " ", "0", "-1", "3.7", "1e-300", "1e29", "999999999999999999", "٣", "1_0", "a=b", "%00", "9" * 400)
USUAL = {
    "checkpoint": {
        "save_s": 60,
        "mttf_s": 10800,
        "restart_s": 300,
        "wait_s": 600,
        "slices": 4,
        "chips": 8,
        "nodes": 2,
        "local_save_s": 1,
        "interval_s": 700,
        "usd_per_chip_hour": 2,
        "span_s": 1000,
        "resume_s": 30,
    },
    "serving": {
        "model": "llama3.1-8b",
        "chip": "v6e",
        "chips": 1,
        "rate": 5,
        "input": 20,
        "output": 4,
        "requests": 9,
        "draft": 2,
        "acceptance": 0.5,
    },
    "serving-plan": {"model": "llama3.1-8b", "on": "v6e", "input": 200, "output": 20, "rate": 5, "ttft_s": 1},
    "speculation": {"acceptance": 0.7, "draft": 3, "model": "llama3.1-8b", "chip": "v6e", "context": 100},
    "placement": {"topology": "v5p:2x2x2", "mesh": "data=2,model=4", "batch": 16, "seq": 1024},
    "collective": {"topology": "v5p:2x2x2", "kind": "all_gather", "bytes": "1MiB"},
    "scaling": {"points": "8:4,16:2.2,32:1.3,64:0.8"},
    "storage": {"step_s": 0.3, "batch_bytes": "3MB", "file_bytes": "100kB", "latency_s": 0.05, "latency_p99_s": 0.2},
    "goodput": {"chips": 1024, "mttf_chip_h": 45_000, "save_s": 30, "trials": 20},
    "training": {"model": "llama3.1-8b", "on": "v6e", "tokens": 1e12, "chips": "256"},
    "cost": {"model": "llama3.1-8b", "on": "v6e", "tokens": 1e12, "chips": "256"},
    "case": {},
}
INSTEAD = {"failures_per_1000_node_days": "mttf_s", "concurrency": "rate"}  # what is left out where one is given
DRAWN = {"faster"}  # of a trace or a run: refused beside a rate, whatever it is


def numbers_of(whatif):
    """The options of a what-if that are numbers, by their names in a query."""
    return [o.name for o in whatif.options if isinstance(o.kind, Number)]


def asked(whatif, name, value):
    query = {k: str(v) for k, v in USUAL[whatif.name].items() if k != INSTEAD.get(name)}
    return whatif.from_query([*{**query, name: value}.items()])


NUMBERS = [(w, name) for w in WHATIFS for name in numbers_of(w)]


@pytest.mark.parametrize(("whatif", "name"), NUMBERS, ids=[f"{w.name} {n}" for w, n in NUMBERS])
def test_no_whatif_takes_what_is_no_number(whatif, name):
    for value in NEVER:
        with pytest.raises(QuestionError) as e:
            whatif.answer(asked(whatif, name, value), None)
        assert "\n" not in str(e.value) and len(str(e.value)) < 1200, value


QUICK = [(w, n) for w, n in NUMBERS if w.name not in ("serving", "serving-plan")]


@pytest.mark.parametrize(("whatif", "name"), QUICK, ids=[f"{w.name} {n}" for w, n in QUICK])
def test_every_whatif_answers_or_refuses_odd_numbers(whatif, name):
    for value in ODD:
        try:
            told = whatif.answer(asked(whatif, name, value), None)
        except ChipledgerError:
            continue
        json.dumps(told.to_dict(), allow_nan=False)
        whatif.words(told)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--requests", "0"], "--requests 0; expected a whole number from 1 to 1,000,000,000,000"),
        (["--requests", "-5"], "--requests -5; expected a whole number from 1 to 1,000,000,000,000"),
        (["--peak-flops-per-s", "-1"], "--peak-flops-per-s -1; expected a number from 1"),
        (["--chips", "3.7"], "--chips 3.7; expected a whole number from 1"),
        (["--burst", "nan"], "--burst 'nan'; expected a number from 0 to 100"),
        (["--output", "0"], "--output 0; expected a whole number from 1"),
        (["--memory-utilization", "nan"], "--memory-utilization 'nan'; expected a share above 0 and up to 1"),
        (["--page-tokens", "0"], "--page-tokens 0; expected a whole number from 1"),
    ],
)
def test_serving_says_what_is_wrong(capsys, more, said):
    usual = {k: v for k, v in USUAL["serving"].items() if k not in ("draft", "acceptance")}
    given = [f"--{k}={v}" for k, v in usual.items()]
    code, text, errors = out(capsys, "whatif", "serving", *given, *more)
    assert (code, text) == (2, "") and errors.startswith("error: ") and errors.count("\n") == 1 and said in errors


def test_the_command_line_reads_numbers_as_the_server_does(capsys, tmp_path):
    (tmp_path / "a.log").write_text("completed step: 1, seconds: 2.0\n")
    code, _, errors = out(capsys, "ingest", str(tmp_path), "--chips", "1_6", "--store", str(tmp_path / "store"))
    assert code == 2 and errors == "error: --chips '1_6'; expected a whole number from 1 to 2,147,483,647\n"
    code, _, errors = out(capsys, "whatif", "checkpoint", "--save-s=1_0", "--mttf-s=9")
    assert code == 2 and "--save-s '1_0'; expected a number from 1e-09" in errors


@pytest.mark.parametrize("burst", ["1e-300", "1e-160", "1e-9", "0"])
def test_gaps_that_hardly_vary_are_even(burst):
    given = {k: str(v) for k, v in USUAL["serving"].items() if k not in ("draft", "acceptance")}
    told = [SERVING.answer(SERVING.from_query({**given, "burst": b}), None).to_dict() for b in (burst, "0")]
    assert told[0] == told[1]


@pytest.mark.parametrize("name", ["ttft_s", "tpot_s", "e2e_s"])
def test_an_objective_that_is_no_number_is_not_dropped(capsys, name):
    given = {**USUAL["serving-plan"], name: "nan"}
    code, _, errors = out(capsys, "whatif", "serving-plan", *(f"--{k.replace('_', '-')}={v}" for k, v in given.items()))
    assert code == 2 and f"--{name.replace('_', '-')} 'nan'; expected a number above 0" in errors


@pytest.mark.parametrize("name", ["chips", "slices"])
def test_a_part_of_a_chip_is_not_rounded(name):
    with pytest.raises(QuestionError, match=rf"--{name} 3\.7; expected a whole number from 1"):
        CHECKPOINT.answer(asked(CHECKPOINT, name, "3.7"), None)


OPTIONS = [(a, o) for a in QUESTIONS for o in a.options if o.kind is not str and not isinstance(o.kind, tuple)]


@pytest.mark.parametrize(("analyzer", "option"), OPTIONS, ids=[f"{a.name} {o.name}" for a, o in OPTIONS])
def test_no_question_takes_what_is_no_number(analyzer, option):
    for value in (*NEVER, float("nan"), float("inf"), 10**400, True, [], {}):
        if value == "-1e29" and option.kind is NUMBER:
            continue  # its bounds are those of the question
        with pytest.raises(QuestionError, match=f"option {option.name}="):
            option.parse(value)
    if isinstance(option.kind, Number) and option.kind.whole:
        for value in (3.7, "3.7"):
            with pytest.raises(QuestionError, match=r"option \w+=3\.7; expected a whole number"):
                option.parse(value)
        assert option.parse(3.0) == 3 and isinstance(option.parse(3.0), int)


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    from app.workspace import workspace

    place = workspace(str(tmp_path_factory.mktemp("store")))
    made = (made_runs.interrupted(place.store), served_runs.busy(place.store))
    return place, (*made, questions.ModelSubject("llama3.1-8b", "llama3.1-8b"))


def _answers(subject, asked, place):
    try:
        return bool(questions.ask(asked, subject, {}, place.registry))
    except ChipledgerError:
        return False


@pytest.mark.parametrize("analyzer", QUESTIONS, ids=lambda a: a.name)
def test_every_question_answers_or_refuses_odd_options(analyzer, subjects):
    place, known = subjects
    numbers = [o for o in analyzer.options if (analyzer, o) in OPTIONS]
    asked_of = [s for s in known if _answers(s, analyzer, place)][:1]
    for subject, option, value in itertools.product(asked_of, numbers, ("0", "-1", "1e-300", "1e29", "999999999999")):
        try:
            result = questions.ask(analyzer, subject, {option.name: value}, place.registry)
        except ChipledgerError as e:
            assert "\n" not in str(e)
            continue
        json.dumps(questions.answer_dict(subject, result), allow_nan=False)
        analyzer.verdict(result)
        analyzer.table(result)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (COUNT, "a whole number from 1 to 1,000,000,000,000"),
        (SECONDS, "a number above 0 and up to 1,000,000,000,000"),
        (SHARE, "a share from 0 to 1"),
        (ANY, "a number"),
        (Number(high=5), "a number up to 5"),
    ],
)
def test_a_number_says_what_it_wants(number, said):
    assert number.expected == said


@pytest.mark.parametrize(
    ("number", "given", "value"),
    [
        (ANY, " 1.5e3 ", 1500.0),
        (ANY, ".5", 0.5),
        (ANY, "5.", 5.0),
        (ANY, 7, 7.0),
        (COUNT, "12", 12),
        (COUNT, "+3", 3),
        (ANY_WHOLE, "-4", -4),
        (SHARE, "1", 1.0),
        (SHARE, 0, 0.0),
    ],
)
def test_a_number_is_read_as_written(number, given, value):
    assert number.read(given, "x") == value and type(number.read(given, "x")) is type(value)


def test_an_option_without_bounds_is_a_finite_number():
    assert Option("x", NUMBER, None, "").parse("2") == 2.0 and Option("x", NUMBER, 4.0, "").parse(None) == 4.0
