"""The declared forms of answers: they are what they claim to be, they bite, and they hold of what is asked here.

That they hold of small files of every format is seen where all questions are asked of those.
"""

import copy
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.questions import QUESTIONS
from app.questions.asking import ModelSubject, answer_dict, ask
from app.questions.flops import FLOPS
from app.questions.forms import FOLDER, form, unit_of
from app.questions.kv_cache import KV_CACHE
from app.questions.ledger import LEDGER
from app.questions.padding import PADDING
from tests.app import made_runs
from tests.app.asking import PROJECT, answers
from tests.app.forms import misfits
from tests.app.one_story import disagreements
from tests.bundled import RUNS, bundled

EVERY = pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)


def numbers(schema: Any, key: str = "", unit: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(key, the unit that its name or a name above it tells, what is declared) of every number of a form."""
    unit = unit_of(key) or unit
    kinds = schema.get("type", ())
    if {"number", "integer"} & set([kinds] if isinstance(kinds, str) else kinds):
        yield key, unit, schema
    for name, part in schema.get("properties", {}).items():
        yield from numbers(part, name, unit)
    for part in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            yield from numbers(part, key, unit)
    for part in schema.get("$defs", {}).values():
        yield from numbers(part)


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object that a form tells of."""
    if "properties" in schema or "additionalProperties" in schema:
        yield schema
    parts = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    parts += [p for p in (schema.get("items"), schema.get("additionalProperties")) if isinstance(p, dict)]
    for part in parts:
        yield from objects(part)


@EVERY
def test_a_form_is_a_schema_that_forbids_keys_it_does_not_name(question):
    declared = form(question)
    Draft202012Validator.check_schema(declared)
    assert declared["title"] == question.title
    assert all("additionalProperties" in part for part in objects(declared))
    assert declared["additionalProperties"] is False


@EVERY
def test_every_number_has_the_unit_that_its_name_tells(question):
    wrong = [(key, unit) for key, unit, schema in numbers(form(question)) if schema.get("unit", "") != unit]
    assert wrong == []


def test_a_unit_follows_from_how_a_name_ends():
    names = ("step_s", "start_ns", "model_flops_per_s", "usd_per_chip_hour", "chip_seconds", "requests", "share")
    assert [unit_of(n) for n in names] == ["s", "ns", "FLOP/s", "USD per chip-hour", "chip-seconds", "", "1"]


@pytest.mark.parametrize("question", [FLOPS, KV_CACHE, PADDING], ids=lambda q: q.name)
def test_what_is_said_of_a_model_alone_has_its_form(place, question):
    model = ModelSubject("llama3.1-8b", "llama3.1-8b")
    assert misfits(question, answer_dict(model, ask(question, model, {}, place.registry))) == []


def test_a_key_more_or_less_a_word_for_a_number_and_an_answer_about_nothing_do_not_fit(place):
    run = made_runs.interrupted(place.store)
    answer = answer_dict(run, ask(LEDGER, run, {}, place.registry))
    assert misfits(LEDGER, answer) == []
    deep = copy.deepcopy(answer)
    deep["account"]["children"][0]["colour"] = "red"
    nobody = {k: v for k, v in answer.items() if k != "run_id"}
    for wrong in (answer | {"more": 1}, answer | {"chips": "four"}, deep, nobody):
        assert misfits(LEDGER, wrong)
    assert misfits(LEDGER, {k: v for k, v in answer.items() if k != "chip_seconds"})


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.iterdir() if path.is_dir()))
def test_every_answer_about_a_bundled_run_has_its_form_and_numbers_of_one_name_agree(place, tmp_path_factory, name):
    said, wrong = answers(bundled(tmp_path_factory, name), place)
    assert wrong == []
    assert any(isinstance(answer, dict) for answer in said.values())
    assert disagreements(said) == {}


def test_two_numbers_of_one_name_are_found_wherever_the_run_as_a_whole_is_told_of():
    said = {
        "latency": {"requests": 273, "metrics": {"requests": 264}, "stages": [{"requests": 3}], "ttft_s": {"p50": 1.0}},
        "traffic": {"requests": 273, "step_s": {"0": 1.0}, "prompt_tokens": {"p50": 264.0}},
        "engine": {"step_s": {"0": 2.0}, "ttft_s": {"p50": 1.5}, "duration_s": 1.0 + 1e-9},
        "load": {"duration_s": 1.0, "fits": True, "seq": 8},
        "kv_cache": {"fits": False, "seq": 9},
        "mfu": "there are no steps",
    }
    assert disagreements(said) == {
        "requests": {"latency": 273.0, "latency.requests": 264.0, "traffic": 273.0},
        "ttft_s.p50": {"latency": 1.0, "engine": 1.5},
    }


def test_forms_are_in_the_wheel():
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    globs = settings["tool"]["setuptools"]["package-data"]["*"]
    packed = {path for pattern in globs for path in (PROJECT / "app").glob(pattern)}
    assert {FOLDER / q.name / "form.json" for q in QUESTIONS} <= packed
