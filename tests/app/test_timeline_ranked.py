"""Ranks by lateness and aligned clocks over HTTP: in a sentence, and in every answer that tells of times."""

import re
import urllib.error
import urllib.request

import numpy as np
import pytest

from analyzers.timeline import timeline
from app.timeline.ranked import ranked_of
from runs.store import Store
from tests.analyzers.rank_worlds import RankWorld
from tests.app import made_runs
from tests.app.serving import get, serving
from tests.app.test_timeline import asked, read

CLOCK_S = np.repeat([0.0, 0.4, -0.25], 2)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder)
    made = RankWorld(ranks=6, per_host=2, steps=22, slow={4: 0.2}, traced=True, clock_s=CLOCK_S).tables()
    names = ("captures", "steps", "ops", "op_events", "collectives")
    tables = {name: made.arrow(name).to_pydict() for name in names}
    tables["op_events"]["event"] = list(range(made.rows("op_events")))
    run = made_runs.write(store, "ranks", tables, {})
    alone = made_runs.interrupted(store)
    with serving(folder) as address:
        yield f"{address}/api/runs/{run.run_id}/timeline", run, timeline(run.tables, run.manifest.facts), address, alone


def test_the_order_and_the_offsets_are_said_in_sentences(served):
    begin, _, of, *_ = served
    told = get(f"{begin}/ranks")[1]
    assert told["lateness"].startswith("Later at matched collectives than the median of their peers, in the mean over ")
    assert re.search(r": rank 4 by (19|20)\d ms", told["lateness"])
    assert "400 ms ahead" in told["clocks"] and "250 ms behind" in told["clocks"] and "good to" in told["clocks"]
    assert sorted(told["order"]) == list(range(len(of.lanes))) and len(told["ahead_ticks"]) == len(of.lanes)
    first = get(begin)[1]["lanes"][next(n for n in told["order"] if of.lanes[n].lane.group == "device")]
    assert (first["host"], first["device"]) == ("host-2", 0)
    assert told["ranks"][0]["late_s"] == pytest.approx(0.2, rel=0.1)


def test_marks_searches_steps_and_arrows_stand_by_aligned_clocks_where_that_is_asked(served):
    begin, run, of, *_ = served
    found = ranked_of(run, of)
    rows = f"rows=0-{of.tiles.rows - 1}&start={found.start}&end={found.end}&pixels=20000"
    head, marks = read(asked(f"{begin}/tiles?{rows}&clocks=aligned"))
    assert int(marks["count"].sum()) == of.events and head["shift"] is None
    at = head["start_tick"] + marks["begin"].astype(np.int64) * head["unit_ticks"]
    wanted = of.tiles.start[marks["event"]] - found.rows(of)[marks["row"]]
    assert (np.abs(at - wanted) <= head["unit_ticks"]).all()
    hits = get(f"{begin}/search?q=fusion&clocks=aligned")[1]
    raw = get(f"{begin}/search?q=fusion")[1]
    assert hits["hits"] == raw["hits"] and hits["events"] != raw["events"]
    starts = [start for _, start, _ in hits["events"]]
    assert starts == sorted(starts)
    ahead = found.rows(of)
    for event, start, dur in hits["events"]:
        row = int(np.searchsorted(of.tiles.first, event, side="right")) - 1
        assert (start, dur) == (int(of.tiles.start[event] - ahead[row]), int(of.tiles.dur[event]))
    aligned, recorded = (get(f"{begin}/step?number=5{more}")[1] for more in ("&clocks=aligned", ""))
    assert recorded["end"] - recorded["start"] > aligned["end"] - aligned["start"]
    whole = get(f"{begin}/selection?clocks=aligned&start={found.start}")[1]
    assert whole["events"] == of.events - of.strips
    assert get(f"{begin}/arrows?event=5&clocks=aligned")[0] == 200


@pytest.mark.parametrize("path", ["tiles?clocks=mine", "search?q=a&clocks=", "ranks?clocks=aligned", "step?clocks=1"])
def test_other_clocks_are_refused(served, path):
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"{served[0]}/{path}", timeout=60)


@pytest.mark.parametrize("path", ["ranks", "tiles?clocks=aligned&pixels=9", "selection?clocks=aligned"])
def test_a_run_without_collectives_says_so(served, path):
    *_, address, alone = served
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(f"{address}/api/runs/{alone.run_id}/timeline/{path}", timeout=60)
    assert b"tells of no collectives" in refused.value.read()
