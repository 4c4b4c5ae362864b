"""Runs by the beginning of a name or an id: one, none or several."""

import random

import pytest

from errors import QuestionError
from errors.nearest import did_you_mean, nearest
from runs.naming import CANDIDATES, LEAST_OF_NAME
from runs.store import Store
from tests.app import made_runs


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_a_beginning_that_fits_one_name_leads_there_and_the_newest_of_that_name_counts(store):
    made_runs.interrupted(store, "nightly-v5p")
    newest = made_runs.write(store, "nightly-v5p", {"steps": {"step": [1]}}, {"chips": 1})
    made_runs.interrupted(store, "llama")
    named = [r for r in store.runs() if r.manifest.name == "nightly-v5p"]
    assert len(named) == 2 and newest in named
    assert store.find("nig").run_id == named[0].run_id
    assert store.find("llama").manifest.name == "llama"


def test_a_whole_name_counts_before_a_beginning(store):
    short = made_runs.interrupted(store, "base")
    made_runs.write(store, "baseline", {}, {})
    assert store.find("base").run_id == short.run_id
    assert store.find("basel").manifest.name == "baseline"


def test_several_are_named_at_most_five_of_them(store):
    for number in range(8):
        made_runs.write(store, f"sweep-{number}", {}, {"chips": number + 1})
    with pytest.raises(QuestionError, match="'sweep' is the beginning of 8 names and ids of runs") as told:
        store.find("sweep")
    assert told.value.expected.count("'sweep-") == CANDIDATES and told.value.expected.endswith("and 3 more")
    assert told.value.advice == "Give more characters."


def test_too_few_characters_lead_nowhere_but_say_what_begins_so(store):
    made_runs.interrupted(store, "nightly")
    with pytest.raises(QuestionError, match="Did you mean 'nightly'") as told:
        store.find("nightly"[: LEAST_OF_NAME - 1])
    assert "chipledger runs" in str(told.value)


def test_what_was_probably_meant_is_said(store):
    made_runs.interrupted(store, "reference-training")
    with pytest.raises(QuestionError, match="Did you mean 'reference-training'"):
        store.find("refrence-traning")
    with pytest.raises(QuestionError) as told:
        store.find("zzzzzzzz")
    assert "Did you mean" not in str(told.value)


def test_any_beginning_leads_to_the_one_run_that_it_fits_or_is_refused(store):
    chance = random.Random(5)
    names = ["".join(chance.choice("ab") for _ in range(chance.randint(3, 7))) for _ in range(40)]
    for number, name in enumerate(names):
        made_runs.write(store, name, {}, {"chips": number + 1})
    runs = store.runs()
    for name in names:
        for end in range(1, len(name) + 1):
            part = name[:end]
            whole = [r for r in runs if r.manifest.name == part]
            fitting = {r.manifest.name for r in runs if r.manifest.name.startswith(part)}
            fitting |= {r.run_id for r in runs if end >= 4 and r.run_id.startswith(part)}
            if whole:
                assert store.find(part).run_id == whole[0].run_id
            elif len(part) >= LEAST_OF_NAME and len(fitting) == 1:
                assert store.find(part).manifest.name in fitting
            else:
                with pytest.raises(QuestionError):
                    store.find(part)


def test_nearest_does_not_mind_case_length_or_emptiness():
    assert nearest("LEDGR", ["ledger", "load"]) == ["ledger"]
    assert nearest("", ["ledger"]) == [] == nearest("ledger", [])
    assert did_you_mean("x" * 100_000, ["ledger"]) == ""
