"""One option list for each what-if: its flags, its query, its frozen question, its checks and the docs all agree."""

import argparse
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from app.compile_options import OPTIONS as COMPILE
from app.compile_options import Asked as CompileAsked
from app.components.option import by_name
from app.docs import DOCS, FILES
from app.options import add_flags, from_args, from_query
from app.questions import QUESTIONS
from app.serve.compiling import FIELDS, compile_request
from app.whatif import WHATIFS
from app.whatif.collective.asked import OPTIONS as COLLECTIVE
from app.whatif.placement.asked import OPTIONS as PLACEMENT
from errors import InputError, QuestionError
from errors.numbers import COUNT, Number
from errors.options import Option
from simulators.collectives.cost import NAMES
from simulators.collectives.settings import RATES
from simulators.placement.search import OVERLAPS
from simulators.placement.traffic import DTYPES
from simulators.topology.flow import ROUTINGS
from simulators.tpu_compile.launch import DEFAULT_MEMORY_BYTES, DEFAULT_SECONDS
from simulators.tpu_compile.request import ATTENTIONS, DEFAULT_SEQ, OPTIMIZERS, REMATS, WEIGHTS
from tests.app.commands import out
from tests.app.serving import request, serving
from tests.app.test_pages import opened, words

EACH = pytest.mark.parametrize("whatif", WHATIFS, ids=lambda w: w.name)
LOCAL = [(w, o) for w in WHATIFS for o in w.options if o.local]
BOUNDED = [(w, o) for w in WHATIFS for o in w.options if isinstance(o.kind, Number)]


def by_flag(options, *given):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser, options)
    return from_args(parser.parse_args(list(given)), options)


def value_of(option):
    """A text that this option takes."""
    if option.switch:
        return "true"
    if isinstance(option.kind, tuple):
        return option.kind[-1]
    return f"{max(option.kind.low, 1):g}" if isinstance(option.kind, Number) else "a text"


@EACH
def test_what_is_asked_has_a_field_for_each_option_with_its_default(whatif):
    assert is_dataclass(whatif.asked) and whatif.asked.__dataclass_params__.frozen
    asked = {f.name: f.default for f in fields(whatif.asked)}
    assert asked == {o.name: o.default for o in whatif.options} and len(asked) == len(whatif.options)


@EACH
def test_flags_and_parameters_give_the_same_question(whatif):
    shared = [o for o in whatif.options if not o.local]
    flags = [o.flag if o.switch else f"{o.flag}={value_of(o)}" for o in shared]
    asked = whatif.asked(**by_flag(whatif.options, *flags))
    assert asked == whatif.from_query({o.name: value_of(o) for o in shared})
    assert asked == whatif.from_query([(o.flag[2:], value_of(o)) for o in shared])  # with dashes, as ever
    assert whatif.asked(**by_flag(whatif.options)) == whatif.asked() == whatif.from_query({})


@EACH
def test_options_say_what_they_mean_and_in_what_unit(whatif):
    for o in whatif.options:
        assert o.help and not o.help.endswith("."), o.name
        assert o.unit == "s" or not o.name.endswith("_s") or o.name.endswith("per_s"), o.name
        assert isinstance(o.kind, Number) or not o.unit, o.name


@pytest.mark.parametrize(("whatif", "option"), LOCAL, ids=[f"{w.name} {o.name}" for w, o in LOCAL])
def test_an_option_of_a_file_is_unknown_to_the_server(whatif, option):
    assert by_flag(whatif.options, option.flag, "a/file")[option.name] == "a/file"
    for name in (option.name, option.flag[2:]):
        with pytest.raises(QuestionError, match=f"no parameter '{option.name}' here"):
            whatif.from_query({name: "/etc/hosts"})


def test_the_files_of_who_asks_are_the_local_options():
    assert {(w.name, o.name) for w, o in LOCAL} == {
        ("serving", "trace"),
        ("serving", "out"),
        ("serving-plan", "chip_file"),
    }
    assert {(w.name, o.name) for w in WHATIFS for o in w.options if o.of_run} == {
        ("checkpoint", "run"),
        ("serving", "calibrate"),
        ("serving-plan", "calibrate"),
        ("storage", "run"),
        ("training", "calibrate"),
    }


@pytest.mark.parametrize(("whatif", "option"), BOUNDED, ids=[f"{w.name} {o.name}" for w, o in BOUNDED])
def test_ranges_are_those_of_the_option_on_every_way_in(whatif, option):
    number = option.kind
    wrong = [number.low if number.above else number.low - 1, number.high * 2, "many"]
    for value in (f"{v:.0f}" if isinstance(v, float) else str(v) for v in wrong):
        said = []
        for ask in (
            lambda v=value: by_flag(whatif.options, f"{option.flag}={v}"),
            lambda v=value: from_query({option.name: v}, whatif.options),
        ):
            with pytest.raises(QuestionError) as e:
                ask()
            said.append(str(e.value))
        assert said[0] == said[1] and said[0].startswith(f"{option.flag} ")
        assert said[0].endswith(f"expected {number.expected}")


def test_a_page_refuses_what_the_command_line_and_the_server_refuse(place, tmp_path, capsys):
    given = {"model": "llama3.1-8b", "on": "h100", "input": "500", "output": "100", "rate": "-1"}
    code, _, errors = out(capsys, "whatif", "serving-plan", *(f"--{k}={v}" for k, v in given.items()))
    assert code == 2 and "expected a number from 1e-09 to 1,000,000,000" in errors
    at = opened("pages/serving_planner/page.py", **given)
    assert not at.exception and "Requests per second: -1; expected a number from 1e-09 to 1,000,000,000" in words(at)
    with serving(tmp_path / "s") as address:
        query = "&".join(f"{k}={v}" for k, v in given.items())
        code, told = request("GET", f"{address}/api/whatif/serving-plan?{query}")
        assert code == 400 and told["error"] in errors
        code, told = request("GET", f"{address}/api/whatif/serving?out=/tmp/x")
        assert code == 400 and told["error"].startswith("no parameter 'out' here")


def test_a_field_of_a_page_has_the_bounds_label_and_help_of_its_option(place):
    at = opened("pages/checkpoint_planner/page.py")
    options = by_name(next(w for w in WHATIFS if w.name == "checkpoint").options)
    for name in ("save_s", "mttf_s", "restart_s", "slices", "usd_per_chip_hour"):
        field, option = at.number_input(key=f"pick_{name}"), options[name]
        assert (field.min, field.max) == (option.kind.low, option.kind.high)
        assert field.label.removesuffix(" ◇") == option.title
        assert field.help.startswith(option.help[0].upper() + option.help[1:])


def test_words_that_are_written_twice_are_the_same():
    """Options are read by `--help` too, which must not load the simulators."""
    here = by_name((*PLACEMENT, *COLLECTIVE))
    assert here["dtype"].kind == tuple(DTYPES) and here["overlap"].kind == tuple(OVERLAPS)
    assert (here["kind"].kind, here["rates"].kind, here["routing"].kind) == (NAMES, RATES, tuple(ROUTINGS))


def test_a_request_to_compile_has_the_options_of_the_command_but_for_those_of_a_terminal():
    assert {f.name: f.default for f in fields(CompileAsked)} == {o.name: o.default for o in COMPILE}
    options = by_name(COMPILE)
    assert options["remat"].kind == REMATS and options["attention"].kind == ATTENTIONS
    assert (options["optimizer"].kind, options["weights"].kind) == (OPTIMIZERS, WEIGHTS)
    assert (
        options["timeout"].default == DEFAULT_SECONDS
        and f"{DEFAULT_MEMORY_BYTES / 1e9:.1f}" in options["memory_gb"].help
    )
    assert str(DEFAULT_SEQ) in options["seq"].help
    assert list(FIELDS) == ["model", *(o.name for o in COMPILE if not o.local)]
    for name in ("name", "timeout", "weights"):
        with pytest.raises(InputError, match=f"no field '{name}' here"):
            compile_request({"model": "llama3.1-8b", "topology": "v6e:4x4", name: "1"})


def test_no_simulator_and_no_dashboard_is_loaded_to_say_what_can_be_asked():
    code = (
        "import sys; from app.cli import parser; parser(); "
        "print([m for m in sys.modules if m.partition('.')[0] in ('simulators', 'streamlit')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_docs_hold_every_option_as_it_is():
    files = ("whatifs.md", *(f"questions/{q.name}.md" for q in QUESTIONS))
    told = {name: (DOCS / name).read_text(encoding="utf-8") for name in files}
    assert told == {name: FILES[name]() for name in told}, "make docs"
    for question in QUESTIONS:
        assert all(f"| `{o.name}` |" in told[f"questions/{question.name}.md"] for o in question.options)
    for whatif in WHATIFS:
        assert f"## {whatif.name}: " in told["whatifs.md"]
        assert all(f"| `{o.flag}` |" in told["whatifs.md"] for o in whatif.options)


def test_an_option_given_again_is_all_of_what_was_given():
    option = Option("fail", str, (), "what failed", several=True)
    assert by_flag([option], "--fail", "a", "--fail", "b") == {"fail": ("a", "b")}
    assert from_query([("fail", "a"), ("fail", "b")], [option]) == {"fail": ("a", "b")}
    with pytest.raises(QuestionError, match="'chips' is given twice"):
        from_query([("chips", "1"), ("chips", "2")], [Option("chips", COUNT, None, "chips")])


def test_a_flag_that_stands_alone_says_yes():
    option = Option("disaggregate", ("yes", "no"), "no", "two pools", bare="yes")
    assert by_flag([option], "--disaggregate") == {"disaggregate": "yes"}
    assert by_flag([option], "--disaggregate", "no") == {"disaggregate": "no"} and by_flag([option]) == {}
