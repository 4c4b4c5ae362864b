"""Live runs: a name that leads to the newest of a row of runs, and what old addresses lead to."""

import contextlib
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from errors import InputError, QuestionError
from runs.live import GRACE_NS, Live, LiveRuns, live_name
from runs.live_book import LiveBook
from runs.registry import Registry
from runs.run import Run
from runs.schema import SCHEMAS
from runs.store import Store

S = 1_000_000_000


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def snapshot(store: Store, run_id: str, name: str = "job") -> Run:
    with store.writer() as writer:
        writer.rows("steps", SCHEMAS["steps"].batch({"step": [1], "source": ["x"]}))
        return writer.commit(run_id=run_id, name=name, kind="training", facts={}, sources=[])


def followed(store: Store, *ids: str) -> Live:
    live = Live("night", "p-1", "night")
    for number, run_id in enumerate(ids):
        snapshot(store, run_id)
        live = store.live.move(live, run_id, number)
    return live


def test_the_name_leads_to_the_newest_snapshot_and_old_ids_lead_on(store):
    followed(store, "aaaa1111", "bbbb2222", "cccc3333")
    assert store.find("live:night").run_id == "cccc3333"
    for old in ("aaaa1111", "bbbb2222"):  # still on disk
        assert store.find(old).run_id == "cccc3333" and store.get(old).run_id == old
        store.remove(old)
        assert store.find(old).run_id == "cccc3333" and store.get(old) is None
    assert [r.run_id for r in store.runs()] == ["cccc3333"]
    assert store.find("job").run_id == "cccc3333"


def test_machines_that_have_a_registry_in_common_tell_the_same_live_runs(tmp_path, registry_at):
    """Of which each has folders of its own; and one that read less of a job does not go on with it."""
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    before = replace(Live("before", "p-1", "j"), run_id="eeee5555")
    one.live.write(before)
    for store in (one, other):
        store.live.shared_by(LiveBook(registry_at), lambda name: contextlib.nullcontext())
    with one.live.following("night"):
        for run_id in ("aaaa1111", "bbbb2222"):
            live = one.live.move(replace(one.live.read("night") or Live("night", "p-1", "j"), bytes=10), run_id, 1)
    assert other.live.read("night") == live and other.live.all() == [live] and one.live.all() == [before, live]
    assert other.live.current("aaaa1111") == live and other.live.retiring() == {"aaaa1111"}
    one.live.write(replace(live, retiring=[]))
    assert other.live.leading("aaaa1111") is not None
    refused = pytest.raises(InputError, match="lies on another machine.*where it was followed before, or under another")
    with refused, other.live.following("night"):
        pass
    for again in (one, Store(tmp_path / "one")):
        with again.live.following("night"):
            pass
    with other.live.following("another"):
        other.live.write(Live("another", "p-1", "j"))
    assert one.live.read("another") is not None


def test_only_the_newest_snapshot_is_listed(store):
    followed(store, "aaaa1111", "bbbb2222")
    snapshot(store, "dddd4444", "another")
    runs, problems = store.listing()
    assert {r.run_id for r in runs} == {"bbbb2222", "dddd4444"} and not problems
    assert store.live.current("aaaa1111").name == store.live.current("bbbb2222").name == "night"
    assert store.live.current("dddd4444") is None and store.live.leading("dddd4444") is None


def test_a_snapshot_that_comes_back_does_not_retire(store):
    live = followed(store, "aaaa1111", "bbbb2222")
    live = store.live.move(live, "aaaa1111", 5)
    assert [i for i, _ in live.retiring] == ["bbbb2222"] and store.find("bbbb2222").run_id == "aaaa1111"
    assert store.live.move(live, "aaaa1111", 9) is live


def test_a_live_run_without_entries_or_that_is_not_there_is_told(store):
    with pytest.raises(QuestionError, match="no live run 'night' in this store.*none yet"):
        store.find("live:night")
    store.live.write(Live("night", "p-1", "night", problem="the network is down"))
    with pytest.raises(QuestionError, match="no entries yet .the network is down"):
        store.find("live:night")
    with pytest.raises(QuestionError, match="expected night"):
        store.find("live:day")
    for bad in ("live:", "live:../runs", "live:.hidden", "live:a/b", "live:" + "x" * 200):
        with pytest.raises(QuestionError):
            store.find(bad)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 1}', '{"retiring": 3}', "\x00"])
def test_a_broken_pointer_hides_no_run(store, text):
    followed(store, "aaaa1111")
    (store.root / "live" / "night" / "live.json").write_text(text)
    assert [r.run_id for r in store.runs()] == ["aaaa1111"] and store.find("aaaa1111").run_id == "aaaa1111"


def test_names_fit_folders_and_never_become_one():
    assert live_name("night-run.v2_x") == "night-run.v2_x"
    odd = ["a/b", "a b", "a-b", "../a", ".a", "", "é", "x" * 300, "x" * 301, "a/b ", "日本"]
    names = [live_name(o) for o in odd]
    assert len(set(names)) == len(odd)
    for name in names:
        LiveRuns(Path("x")).of(name)


def test_the_state_seen_from_outside():
    live = Live("n", "p-1", "j", last_poll_ns=1000 * S, every_s=30.0)
    assert live.state_at(1100 * S) == "following"
    assert live.state_at(1000 * S + 211 * S) == "stopped", "its process was killed"
    assert replace(live, state="finished").state_at(10**6 * S) == "finished"
    assert replace(live, state="failing").state_at(1001 * S) == "failing"
    assert live.to_dict()["problem"] is None and GRACE_NS >= 60 * S


def _hold(folder, ready, stay):
    with LiveRuns(folder).following("night"):
        ready.set()
        stay.wait(60)


def test_one_process_follows_and_a_killed_one_leaves_no_lock(store):
    context = multiprocessing.get_context("spawn")
    ready, stay = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(store.live.folder, ready, stay))
    holder.start()
    assert ready.wait(60)
    with (
        pytest.raises(InputError, match=f"being followed already, by process {holder.pid}"),
        store.live.following("night"),
    ):
        pass
    with store.live.following("day"):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with store.live.following("night") as folder:
        assert (folder / "watch.lock").read_text() == str(os.getpid())


def test_a_pointer_is_whole_at_any_moment(store):
    """Read as fast as it is written, it is never half."""
    live = followed(store, "aaaa1111")
    until = time.monotonic() + 0.5
    number = 0
    while time.monotonic() < until:
        number += 1
        store.live.write(replace(live, entries=number))
        assert store.live.read("night").entries == number
    assert not list((store.root / "live" / "night").glob(".live.json*"))


def test_snapshots_share_what_people_add(tmp_path, store):
    registry = Registry(tmp_path / "registry.db")
    registry.tag("aaaa1111", "mine", "hidden while it stands for another")
    for run_id in ("aaaa1111", "bbbb2222"):
        registry.stand_for(run_id, "live:night")
    registry.tag("aaaa1111", "team", "x")
    registry.note("bbbb2222", "a remark")
    registry.price("aaaa1111", 4.2)
    for run_id in ("aaaa1111", "bbbb2222"):
        extras = registry.extras(run_id)
        assert (extras.tags, extras.notes, extras.usd_per_chip_hour) == ({"team": "x"}, ["a remark"], 4.2)
    registry.forget("aaaa1111")
    assert registry.extras("aaaa1111").tags == {"mine": "hidden while it stands for another"}
    registry.tag("bbbb2222", "team", None)
    registry.price("bbbb2222", None)
    assert registry.extras("bbbb2222").tags == {} and registry.extras("bbbb2222").usd_per_chip_hour is None


def test_a_run_that_is_removed_is_gone_whole_and_others_stay(store):
    snapshot(store, "aaaa1111")
    snapshot(store, "bbbb2222")
    store.remove("aaaa1111")
    store.remove("aaaa1111")
    store.remove("../runs")
    assert store.ids() == ["bbbb2222"] and not list((store.root / "partial").iterdir())
