"""Options that are on or off, and what is said of a run as it is read: one record each for every way in."""

import argparse
import json

import pytest
from streamlit.testing.v1 import AppTest

from app.docs import formats_text
from app.ingest_options import OPTIONS
from app.options import add_flags, from_args, from_query
from app.serve.ingesting import fields, ingest_arguments
from collectors.own import sidecar
from errors import InputError, QuestionError
from errors.options import SWITCH, Option
from tests.app.commands import out
from tests.collectors.ingesting import LOG

LOUD = Option("loud", SWITCH, False, "say more", label="Say more")


def by_flag(*given):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_flags(parser, (LOUD,))
    return from_args(parser.parse_args(list(given)), (LOUD,))


def test_a_switch_is_a_flag_without_a_value():
    assert by_flag("--loud") == {"loud": True} and by_flag() == {}
    with pytest.raises(argparse.ArgumentError, match="ignored explicit argument"):
        by_flag("--loud=yes")


@pytest.mark.parametrize("text", ["true", "True", "yes", "on", "1", True])
def test_a_switch_is_on_by_any_usual_word(text):
    assert LOUD.parse(text) is True and from_query({"loud": str(text)}, (LOUD,)) == {"loud": True}


@pytest.mark.parametrize("text", ["false", "FALSE", "no", "off", "0", False])
def test_a_switch_is_off_by_any_usual_word(text):
    assert LOUD.parse(text) is False and from_query({"loud": str(text)}, (LOUD,)) == {"loud": False}


@pytest.mark.parametrize("text", ["maybe", "2", "-1", "nan", "truefalse", " "])
def test_a_switch_refuses_everything_else_with_what_would_be_right(text):
    with pytest.raises(QuestionError, match=r"^--loud .*expected true or false$"):
        from_query({"loud": text}, (LOUD,))
    assert LOUD.parse(None) is False and LOUD.to_dict()["expected"] == "true or false"


def _page():
    import streamlit as st

    from app.components.option import control
    from errors.options import SWITCH, Option

    st.write(f"it is {control(Option('loud', SWITCH, False, 'say more', label='Say more'))}")


def test_a_switch_is_a_toggle_on_a_page_and_stands_in_the_address():
    at = AppTest.from_function(_page).run()
    [toggle] = at.toggle
    assert toggle.label == "Say more" and toggle.help == "Say more." and at.markdown[0].value == "it is False"
    toggle.set_value(True).run()
    assert at.query_params["loud"] in ("true", ["true"]) and at.markdown[0].value == "it is True"
    at.toggle[0].set_value(False).run()
    assert "loud" not in at.query_params and at.markdown[0].value == "it is False"
    at.query_params["loud"] = "nonsense"
    assert at.run().markdown[0].value == "it is False" and not at.exception


def test_each_thing_said_of_a_run_is_a_flag_a_field_and_a_line_of_the_docs(capsys):
    told, docs = _help(capsys), formats_text()
    for option in OPTIONS:
        assert f"{option.flag} " in told and f"| `{option.flag}` |" in docs
    assert fields().keys() == {o.name for o in OPTIONS} - {"tag"}
    given = {"kind": "training", "chip": "v5e", "chips": 4, "again": True, "name": "a name"}
    assert set(ingest_arguments(given)) == {
        "--kind=training",
        "--chip=v5e",
        "--chips=4",
        "--again",
        "--name=a name",
    }
    assert ingest_arguments({"again": False, "chips": "8"}) == ["--chips=8"]


@pytest.mark.parametrize("chips", ["0", "-4", "2147483648", "9" * 40])
def test_a_number_of_chips_that_no_run_has_is_refused_alike_everywhere(chips, place, capsys, tmp_path):
    (log := tmp_path / "run.log").write_text(LOG)
    code, text, error = out(capsys, "ingest", log, "--chips", chips)
    assert (code, text) == (2, "") and error.count("\n") == 1
    assert error == f"error: --chips {chips}; expected a whole number from 1 to 2,147,483,647\n"
    for given in (chips, int(chips)):
        with pytest.raises(InputError, match="chips"):
            ingest_arguments({"chips": given})
    with pytest.raises(InputError, match="chips is"):
        sidecar.check("chips", int(chips), "chipledger.json")
    assert not place.store.runs()


def test_what_is_said_of_a_run_is_kept_as_before(place, capsys, tmp_path):
    (log := tmp_path / "run.log").write_text(LOG)
    said = ("--name", "A name", "--chip", "v5e", "--chips", "2147483647", "--model", "llama3.1-8b", "--tag", "a=b=c")
    code, text, _ = out(capsys, "ingest", log, "--json", *said)
    run = place.store.find(json.loads(text)["run_id"])
    facts = {k: run.manifest.facts[k] for k in ("chip", "chips", "model")}
    assert code == 0 and run.manifest.name == "A name" and run.manifest.tags == {"a": "b=c"}
    assert {k: (f.value, f.basis) for k, f in facts.items()} == {
        "chip": ("v5e", "declared"),
        "chips": (2147483647, "declared"),
        "model": ("llama3.1-8b", "declared"),
    }


def _help(capsys):
    code, text, _ = out(capsys, "ingest", "--help")
    assert code == 0
    return text
