"""Which runs go by age, number and size: held against a count of them, and those that are kept never go."""

import json
import random
import time

import pytest

from app.cli import main
from app.library import changes, retention
from app.library.retention import DAY_NS, Policy, apply, plan
from errors import QuestionError
from runs.baseline_book import BaselineBook
from runs.live import Live
from runs.promise_book import MOST, Promise, PromiseBook
from runs.registry import Registry
from runs.shelf import Shelf
from tests.app import made_runs

NAMES = ("a", "a", "a", "b", "b", "c")


@pytest.fixture
def stored(place, monkeypatch):
    """Six runs, stored a day apart, the oldest first; ids in that order."""
    now, ids = time.time_ns(), []
    for n, name in enumerate(NAMES):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda n=n: now - (len(NAMES) - n) * DAY_NS - 1000)
            made = made_runs.write(place.store, name, {"steps": made_runs.step_columns([n + 1] * (n + 1))}, {})
        ids.append(made.run_id)
    return ids


def gone(place, **rules) -> list[str]:
    return [j.run_id for j in plan(place, Policy(**rules)).going]


def test_by_age_by_number_of_a_name_and_of_a_group(place, stored):
    assert gone(place, older_than_days=3) == stored[:4]
    assert gone(place, older_than_days=400) == []
    assert gone(place, per_name=1) == [stored[0], stored[1], stored[3]]
    changes.move_to_group(place, [stored[0], stored[3], stored[5]], "p/e")
    changes.move_to_group(place, [stored[1]], "p")
    assert gone(place, per_group=2) == [stored[0]], "those in no group are of none"
    assert gone(place, per_group=2, per_name=2) == [stored[0]]


@pytest.mark.parametrize("seed", range(20))
def test_by_size_the_oldest_go_until_it_is_no_more(place, stored, seed):
    chance = random.Random(seed)
    kept = [i for i in stored if chance.random() < 0.3]
    if kept:
        changes.star(place, kept)
    sizes = {r.run_id: retention.bytes_of(r) for r in place.store.runs()}
    most = chance.randint(0, sum(sizes.values()) + 10)
    planned = plan(place, Policy(most_bytes=most))
    expected, left = [], sum(sizes.values())
    for run_id in stored:
        if left > most and run_id not in kept:
            expected.append(run_id)
            left -= sizes[run_id]
    assert [j.run_id for j in planned.going] == expected
    assert planned.over_bytes == max(0, left - most) and planned.library_bytes == sum(sizes.values())
    assert all(j.kept == "starred" and j.run_id in kept for j in planned.kept)


def test_what_is_starred_a_baseline_promised_followed_tagged_or_bundled_stays(place, stored):
    changes.star(place, [stored[0]])
    BaselineBook(place.registry.path).set("main", stored[1], "a")
    said = {"low_share": 0.1, "likely_share": 0.2, "high_share": 0.3, "draws": {}}
    PromiseBook(place.registry.path).keep(Promise(run_id=stored[2], job="a", cause="c", title="t", **said))
    changes.tag_many(place, [stored[3]], {"keep": "for the paper"})
    place.store.live.write(Live("job", "p", "j", run_id=stored[4]))
    place.demo.add(stored[5])
    planned = plan(place, Policy(older_than_days=0, per_name=1, most_bytes=0))
    assert planned.going == [] and [j.kept for j in planned.kept] == [
        "starred",
        "a baseline",
        "promised",
        "tagged keep",
        "followed",
        "bundled",
    ]
    BaselineBook(place.registry.path).remove("main")
    assert [j.run_id for j in plan(place, Policy(older_than_days=0)).going] == [stored[1]]


def test_what_is_promised_stays_however_much_was_promised_since(place, stored):
    said = {"low_share": 0.1, "likely_share": 0.2, "high_share": 0.3, "draws": {}}
    book = PromiseBook(place.registry.path)
    for n in range(MOST + 1):
        book.keep(Promise(run_id=stored[n > 0], job="a", cause=f"c{n}", title="t", **said))
    assert gone(place, older_than_days=0) == stored[2:]


def test_a_run_that_came_with_the_tag_keep_stays(place, stored):
    run = made_runs.interrupted(place.store, "golden", tags={"keep": "release"}).run_id
    planned = plan(place, Policy(older_than_days=0))
    assert [(j.run_id, j.kept) for j in planned.kept] == [(run, "tagged keep")]
    went, problems = apply(place, planned)
    assert [j.run_id for j in went] == stored and problems == []
    assert [r.run_id for r in place.store.runs()] == [run]


def test_what_was_planned_and_starred_since_stays_and_the_rest_lies_in_the_bin(place, stored):
    planned = plan(place, Policy(older_than_days=0))
    changes.star(place, [stored[1]])
    changes.bin_many(place, [stored[2]])
    went, problems = apply(place, planned)
    assert [j.run_id for j in went] == [stored[0], *stored[3:]] and problems == []
    assert [r.run_id for r in place.store.runs()] == [stored[1]]
    assert {b.run_id for b in changes.binned(place)} == {*stored} - {stored[1]}
    assert {b.who for b in changes.binned(place) if b.run_id != stored[2]} == {"retention"}
    changes.restore(place, [stored[0]])
    assert place.store.has(stored[0])


def test_what_goes_is_looked_at_once_more_without_all_that_was_said_of_others(place, stored, monkeypatch):
    planned = plan(place, Policy(per_name=1))
    for kind in (Shelf, Registry):
        name = "places" if kind is Shelf else "added"
        asked = getattr(kind, name)

        def few(self, owners=None, asked=asked):
            assert owners is not None and len(owners) == 1
            return asked(self, owners)

        monkeypatch.setattr(kind, name, few)
    assert [j.run_id for j in apply(place, planned)[0]] == [stored[0], stored[1], stored[3]]


def test_no_rule_is_refused_and_a_clock_that_is_set_back_takes_nothing(place, stored, monkeypatch):
    with pytest.raises(QuestionError):
        plan(place, Policy())
    assert plan(place, Policy(older_than_days=1), now_ns=0).going == []


def test_the_command_tells_first_and_does_when_asked(place, stored, capsys):
    assert main(["tidy", "--per-name", "1"]) == 0
    said = capsys.readouterr().out
    assert "3 runs would go into the bin" in said and len(place.store.runs()) == 6
    assert main(["tidy", "--per-name", "1", "--apply", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["gone"] == [stored[0], stored[1], stored[3]] and told["problems"] == []
    assert len(place.store.runs()) == 3
    assert main(["tidy", "--apply"]) == 0 and len(place.store.runs()) == 3
    assert "0 runs put into the bin" in capsys.readouterr().out
    for wrong in ([], ["--per-name", "0"], ["--older-than-days", "-1"], ["--most-bytes", "nan"]):
        assert main(["tidy", *wrong]) == 2
