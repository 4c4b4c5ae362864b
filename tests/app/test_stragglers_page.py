"""The stragglers page: what it says first, what the address chooses, what is drawn, and how much of it."""

import json

import numpy as np
import pytest

from analyzers.ranks import stragglers
from app.questions.stragglers import figure as draw
from app.questions.stragglers.words import table, verdict
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.rank_worlds import RankWorld
from tests.app import made_runs
from tests.app.test_pages import opened, words

TABLES = ("captures", "ops", "op_events", "collectives", "steps")
SLOW = RankWorld(ranks=16, steps=40, segments=2, slow={5: 0.08}, cause="copies", traced=True, per_host=4)


def ask(world, **options):
    tables = world if isinstance(world, MemoryTables) else world.tables()
    return stragglers.analyze(tables, facts_of({"chips": 16}), options)


def stored(place, world, name="world"):
    tables = world.tables()
    columns = {n: tables.arrow(n).to_pydict() for n in TABLES if tables.rows(n)}
    return made_runs.write(place.store, name, columns, {"chip": "v5p", "chips": world.ranks})


@pytest.fixture
def run(place):
    return stored(place, SLOW)


def test_the_page_says_who_since_when_why_and_at_what_cost(place, run):
    at = opened("questions/stragglers/page.py", run=run.run_id)
    assert not at.exception and not at.warning
    said = words(at)
    assert "Rank 5 (host-1) makes the others wait: it arrives 8" in said and "of a usual step) on average" in said
    assert "Why: it copies memory for longer." in said and "chip-seconds of waiting" in said
    assert [m.value for m in at.metric][0] == "Straggler" and at.metric[4].value == "16 ranks, 39 steps"
    assert len(at.dataframe[0].value) == 16


@pytest.mark.parametrize("view", ["lateness", "causes", "compare", "clocks", "time", "nonsense"])
def test_every_view_stands(place, run, view):
    at = opened("questions/stragglers/page.py", run=run.run_id, view=view)
    assert not at.exception and not at.warning


def test_two_ranks_are_chosen_by_the_address_and_into_it(place, run):
    at = opened("questions/stragglers/page.py", run=run.run_id, view="compare", pair="12,5")
    assert not at.exception and [s.value for s in at.selectbox] == ["12", "5"]
    assert set(at.dataframe[0].value.columns) >= {"cause", "12", "5"}
    at.selectbox(key="pair 0").set_value("3").run()
    assert at.query_params["pair"] == "3,5"
    wrong = opened("questions/stragglers/page.py", run=run.run_id, view="compare", pair="99,<b>")
    assert not wrong.exception and "no rank '99' in this run" in words(wrong)


def test_a_block_of_many_ranks_is_opened_by_the_address(place):
    run = stored(place, RankWorld(ranks=300, steps=25, slow={217: 0.1}), "many")
    at = opened("questions/stragglers/page.py", run=run.run_id)
    assert not at.exception and "A row is 3 ranks" in words(at)
    at.selectbox(key="straggler_block").set_value("72").run()
    assert at.query_params["block"] == "72" and "A row is" not in words(at)
    assert not opened("questions/stragglers/page.py", run=run.run_id, block="4000").exception


def test_without_collectives_the_step_log_is_shown_and_what_is_missing(place):
    at = opened("questions/stragglers/page.py", run=made_runs.interrupted(place.store).run_id)
    assert not at.exception
    assert "No straggler can be named: step logs tell that a job is slow, not who makes it slow" in words(at)
    assert "Missing: a profile" in words(at)


def test_verdicts_in_words():
    assert verdict(ask(RankWorld(ranks=16, steps=40))).startswith(
        "Nothing is wrong with these ranks: they arrive within 9.60 ms of each other."
    )
    assert verdict(ask(RankWorld(steps=7))) == ("No straggler can be named: only 6 steps were captured; 20 are needed.")
    rng = np.random.default_rng(0)
    extra = np.zeros((40, 2, 16))
    extra[np.arange(40), 0, rng.integers(0, 16, 40)] = 0.3
    assert verdict(ask(RankWorld(ranks=16, steps=40, segments=2, extra=extra))).startswith(
        "No rank is slow, but they are late in turn: one rank stands out in 39 of 39 steps"
    )
    once = np.zeros((40, 1, 16))
    once[20, 0, 7] = 2.0
    one = verdict(ask(RankWorld(ranks=16, steps=40, extra=once)))
    assert one.startswith("One step only, nothing persistent: rank 7 (host-0) was 2.0") and "in step 20" in one
    slow = verdict(ask(RankWorld(ranks=16, steps=60, slow_network=range(20, 45))))
    assert slow.startswith("The network is slow, not a rank: moving data took 2.5 times as long")
    several = verdict(ask(RankWorld(ranks=16, steps=40, slow={4: 0.1, 5: 0.1}, per_host=4)))
    assert several.startswith("2 ranks make the others wait, all on host-1: rank ")


def test_the_terminal_has_the_ranks():
    named = table(ask(SLOW))
    assert named.rows[0][0] == "5" and named.rows[0][6] == "copies"
    assert len(table(ask(RankWorld(ranks=16, steps=40))).rows) == 10
    assert table(ask(MemoryTables({"steps": {"step": [0, 1], "dur_ns": [10**9] * 2, "source": ["x"] * 2}}))).rows == ()


def test_the_heat_map_holds_the_latest_of_each_block():
    result = ask(RankWorld(ranks=300, steps=400, slow={217: 0.2}))
    (heat,) = draw.lateness(result).data
    z = np.asarray(heat.z, dtype=float)
    assert z.shape == (100, draw.MOST_COLUMNS)
    values = result.lateness.to_numpy()
    assert np.nanmax(z) == pytest.approx(np.nanmax(values) * 1e3, rel=1e-3)
    assert (z[72] > 150).mean() > 0.99 and heat.y[72] == "216 to 218"  # rank 217, all the time
    (zoomed,) = draw.lateness(result, 216, 218).data
    assert list(zoomed.y) == ["216", "217", "218"]
    assert np.asarray(zoomed.z, dtype=float)[1].min() > 100


def test_what_was_not_compared_stays_empty():
    rows = RankWorld(ranks=8, steps=30).tables().arrow("collectives").to_pydict()
    keep = [not (r == 3 and s == 12) for r, s in zip(rows["rank"], rows["step"], strict=True)]
    result = ask(
        MemoryTables({"collectives": {n: [v for v, k in zip(c, keep, strict=True) if k] for n, c in rows.items()}})
    )
    assert 12 not in result.steps["step"].to_list() and len(result.steps) == 28


def test_bars_of_causes_add_up_to_the_lateness():
    result = ask(SLOW)
    figure = draw.causes(result)
    total = sum(float(bar.x[0]) for bar in figure.data)
    assert total == pytest.approx(result.ranks.iloc[0]["lag_s"] * 1e3, rel=0.1)
    copies = next(bar for bar in figure.data if bar.name == "copies")
    assert copies.marker.pattern.shape == "."  # not by colour alone
    pair = draw.compare(ask(SLOW, compare="5,9"), ("5", "9"))
    assert [n for n in pair.data[0].y] == ["rank 5", "rank 9"]


def test_blame_has_intervals_and_figures_stay_small():
    result = ask(RankWorld(ranks=2000, steps=60, slow={5: 0.05}))
    bars = draw.blame(result).data[0]
    assert bars.y[0] == "5 · host-0" and (np.asarray(bars.error_x.array) > 0).all()
    for figure in (draw.lateness(result), draw.blame(result)):
        assert len(figure.to_json()) < 1_000_000
    json.dumps(result.to_dict(), allow_nan=False)
