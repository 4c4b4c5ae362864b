"""A or B: the page and the command, the partner in the address, and what is said of chance."""

import json

import pytest

from analyzers.serving.ab import compare
from analyzers.serving.served import served
from app.cli import main
from app.comparing import words as said
from app.comparing.answer import Compared
from app.pages.compare import figure as draw
from tests.analyzers.served_worlds import world
from tests.app import made_runs, served_runs
from tests.app.test_pages import opened, words

PAGE = "pages/compare/page.py"
LIGHT = {"n": 500, "rate": 3.0, "slots": 32, "seed": 1}


@pytest.fixture
def pair(place):
    return tuple(
        served_runs.write(place.store, name, world(**LIGHT, slower=speed), passes=False)
        for name, speed in (("usual", 1.0), (served_runs.ODD, 0.85))
    )


def test_the_page(place, pair):
    a, b = pair
    at = opened(PAGE, run=a.run_id, **{"with": b.run_id})
    assert not at.exception and not at.warning
    assert said.verdict(compare(served(a.tables), served(b.tables)), "usual", served_runs.ODD) in words(at)
    assert "is better where it can be told" in words(at) and at.metric[-1].value == "500 · 500"


def test_the_page_says_what_is_known_to_differ(place):
    tables = {"requests": world(**LIGHT).requests}, {"requests": world(**LIGHT, slower=0.85).requests}
    a, b = (
        made_runs.write(place.store, str(batch), made, {"max_num_seqs": batch}, kind="serving")
        for made, batch in zip(tables, (8, 16), strict=True)
    )
    told = words(opened(PAGE, run=a.run_id, **{"with": b.run_id}))
    assert "because the limit of running requests is 16, not 8" in told
    assert all(said in told for said in Compared(a, b, place).verdict.rest)


def test_a_partner_is_chosen_on_the_page(place, pair):
    a, b = pair
    at = opened(PAGE, run=a.run_id)
    assert "Choose B" in words(at)
    at.selectbox[0].set_value(b.run_id).run()
    assert at.query_params["with"] in (b.run_id, [b.run_id]) and "lower" in words(at)
    by_name = opened(PAGE, run=a.run_id, **{"with": served_runs.ODD})
    assert not by_name.exception and "is better" in words(by_name)


def test_who_is_alone_or_unknown_is_told(place):
    run = served_runs.busy(place.store)
    assert "the only run with single requests" in words(opened(PAGE, run=run.run_id))
    at = opened(PAGE, run=run.run_id, **{"with": "no such run"})
    assert not at.exception and "no run 'no such run'" in words(at)


def test_traffic_that_differs_is_warned_of(place, pair):
    other = served_runs.write(place.store, "denser", world(**{**LIGHT, "rate": 6.0}), passes=False)
    at = opened(PAGE, run=pair[0].run_id, **{"with": other.run_id})
    assert not at.exception and any("requests sent per second" in w.value.replace("\\", "") for w in at.warning)


def test_the_command(place, pair, capsys):
    assert main(["compare", "usual", pair[1].run_id, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["a"] == pair[0].run_id and answer["paired"] == 500
    tpot = next(d for d in answer["differences"] if (d["metric"], d["statistic"]) == ("tpot_s", "mean"))
    assert tpot["clear"] and tpot["better"] == "B" and tpot["high"] < 0
    assert main(["compare", "usual", pair[1].run_id]) == 0
    shown = capsys.readouterr().out
    assert "mean TPOT" in shown and "B is better" in shown and "Paired" in shown
    assert main(["compare", "usual", "nobody"]) == 2
    assert "no run 'nobody'" in capsys.readouterr().err
    assert main(["compare", "usual", "usual", "--load-a", "x"]) == 2


def test_words():
    a = served(world(**LIGHT).without_passes)
    same = compare(a, a)
    assert said.verdict(same, "a", "b").startswith("No difference between a (A) and b (B) can be told from chance.")
    twice = compare(a, served(world(**LIGHT, slower=3.0).without_passes))
    assert "times (" in said.verdict(twice, "a", "b") and said.verdict(twice, "a", "b").startswith("A (a) is better")
    table = said.table(twice)
    assert all(len(r) == len(table.head) for r in table.rows)
    few = compare(*(served(world(n=60, rate=200.0, seed=s).without_passes) for s in (1, 2)))
    assert "there is no interval" in said.verdict(few, "a", "b").whole


def test_every_difference_is_drawn_once():
    result = compare(*(served(world(**{**LIGHT, "seed": s}).without_passes) for s in (1, 2)))
    figure = draw.differences(result)
    drawn = [y for t in figure.data for y in t.y]
    assert sorted(drawn) == sorted(said.name(d) for d in result.differences)
