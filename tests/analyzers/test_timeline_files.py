"""A timeline kept as files is the one that is made in memory, whatever becomes of the files."""

import errno
import json
import os
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers import timeline as made
from analyzers.timeline import Timeline, pyramid, stored, timeline, traced
from analyzers.timeline.pyramid import LEAST_EVENTS
from analyzers.timeline.window import window
from errors import QuestionError
from runs.derived import FOLDER, Derived
from runs.run import Run, facts_of
from runs.store import Store
from runs.tables import MemoryTables
from tests.app import made_runs

T0 = 1_760_000_000_000_000_000
COLUMNS = ("number", "capture", "event", "op")


def tables(events: list[tuple[int, int, int, int, int]], step: int = 1) -> dict[str, dict[str, list]]:
    """Of (capture, device, op, start, dur) each; numbers of operations are `step` apart. Devices 0 and 1 number theirs
    alike; device 2 stands for none."""
    of = list(zip(*events, strict=True)) or [()] * 5
    ops = [(c, d, o, line) for c in (0, 1) for d in (0, 1, None) for o, line in ((0, "x"), (1, "x"), (2, "y"))]
    return {
        "captures": {"capture": [1, 0], "host": ["a", "a"], "start_ns": [T0 + 3, T0]},
        "ops": {
            "capture": [c for c, *_ in ops],
            "op_id": [step * (o if d is not None else o + 3) for _, d, o, _ in ops],
            "host": ["a"] * len(ops),
            "device": [d for _, d, *_ in ops],
            "line": [line for *_, line in ops],
            "role": ["compute" if d is not None else "host" for _, d, *_ in ops],
            "op": [f"{line} {o} of {d}" for _, d, o, line in ops],
            "category": ["matmul" if o else "copy" for *_, o, _ in ops],
        },
        "op_events": {
            "capture": list(of[0]),
            "event": list(range(len(events))),
            "device": [d if d < 2 else None for d in of[1]],
            "op_id": [step * (o if d < 2 else o + 3) for d, o in zip(of[1], of[2], strict=True)],
            "start_ps": list(of[3]),
            "dur_ps": list(of[4]),
        },
        "requests": {
            "id": ["p", "q"],
            "arrival_ns": [T0, T0 + 4],
            "scheduled_ns": [T0 + 2, None],
            "first_token_ns": [T0 + 5, T0 + 6],
            "last_token_ns": [T0 + 9, T0 + 8],
        },
    }


def same(a: Timeline, b: Timeline) -> None:
    for name in (f.name for f in fields(Timeline)):
        if name in COLUMNS:
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
        elif name not in ("tiles", "held_bytes", "names", "name"):  # names are numbered as they are met
            assert getattr(a, name) == getattr(b, name), name
    assert [a.names[n] for n in a.name] == [b.names[n] for n in b.name] and set(a.names) == set(b.names)
    for name in ("start", "dur", "code", "first"):
        assert np.array_equal(getattr(a.tiles, name), getattr(b.tiles, name)), name
    assert a.tiles.told == b.tiles.told
    for kind in ("levels", "longs"):
        for one, other in zip(getattr(a.tiles, kind), getattr(b.tiles, kind), strict=True):
            assert all(np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))


EVENT = st.tuples(
    st.integers(0, 1), st.integers(0, 2), st.integers(0, 2), st.integers(-30, 9_000), st.integers(-2, 4_000)
)


@settings(max_examples=12, deadline=None)
@given(st.lists(EVENT, max_size=60), st.sampled_from((1, 10**13)), st.sampled_from((7, 1 << 20)))
def test_made_in_pieces_and_in_files_it_is_what_it_is_in_memory(tmp_path_factory, events, step, piece):
    folder, columns = tmp_path_factory.mktemp("made"), tables(events, step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analyzers.timeline.building.strips", lambda *_: ())  # the ledger's, which takes its time
        patch.setattr(pyramid, "LEAST_EVENTS", 5)
        leveled = made._in_memory(MemoryTables(columns), {})
        patch.setattr(pyramid, "CHUNK", piece)
        patch.setattr("analyzers.timeline.placing.CHUNK", piece)
        patch.setattr(traced.traced, "__defaults__", (piece,))
        kept = folder / "kept"
        kept.mkdir()
        made._by_this_process(MemoryTables(columns), {}, kept)
        read = stored.read(kept)
    same(read, leveled)
    assert [p.name for p in folder.iterdir()] == ["kept"]
    brute(read, events)
    span = read.span
    for a, b, pixels in ((0, span, 3), (span // 3, span // 3 + 40, 9), (-5, span // 2, 1)):
        shown, told = (window(t.tiles, np.arange(t.tiles.rows), a, max(b, a + 1), pixels) for t in (read, leveled))
        assert all(np.array_equal(getattr(shown, f.name), getattr(told, f.name)) for f in fields(shown))


def brute(of: Timeline, events: list[tuple[int, int, int, int, int]]) -> None:
    """Every event of the profile is there once, with its name, its time and its capture."""
    base = {0: 0, 1: 3_000}
    begin = min([0, *(base[c] + s for c, _, _, s, _ in events)])
    wanted = Counter(
        (c, n, base[c] + s - begin, max(d, 0), f"{'x' if o < 2 else 'y'} {o} of {dev if dev < 2 else None}")
        for n, (c, dev, o, s, d) in enumerate(events)
    )
    some = np.flatnonzero(of.event >= 0)
    shift = of.origin_ns - T0
    found = Counter(
        (
            int(of.capture[i]),
            int(of.event[i]),
            int(of.tiles.start[i]) + shift * 1_000 - begin,
            int(of.tiles.dur[i]),
            of.names[of.name[i]],
        )
        for i in some
    )
    assert found == wanted


@pytest.fixture(scope="module")
def many() -> dict[str, dict[str, list]]:
    draw = np.random.default_rng(7)
    count = LEAST_EVENTS + 500
    start, dur = draw.integers(0, 10**10, count), draw.lognormal(12, 2, count).astype(np.int64)
    columns = (draw.integers(0, 2, count), draw.integers(0, 3, count), draw.integers(0, 3, count), start, dur)
    return tables(list(zip(*(c.tolist() for c in columns), strict=True)))


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def run(store, many) -> Run:
    return made_runs.write(store, "many", many, {"chip": "v5p"})


def asked(run: Run) -> Timeline:
    return timeline(run.tables, run.manifest.facts, few=0)


def folders(store: Store) -> list:
    return sorted((store.root / FOLDER).glob("*/*"))


def test_of_a_stored_run_it_is_made_once_and_holds_no_memory(run, store, many, monkeypatch):
    first = asked(run)
    same(first, made._in_memory(MemoryTables(many), run.manifest.facts))
    assert len(folders(store)) == 1 and first.held_bytes == 0 and len(first.tiles.levels) > 2
    assert [p.name for p in (store.root / "partial").iterdir()] == []
    monkeypatch.setattr(made, "build", lambda *_: pytest.fail("made twice"))
    same(asked(run), first)


def test_few_events_stay_in_memory_and_are_counted(run, store):
    found = timeline(run.tables, run.manifest.facts)
    assert not folders(store) and found.held_bytes > found.events * 17


@pytest.mark.parametrize("harm", ["cut", "grown", "gone", "touched", "index", "no index", "rubbish"])
def test_what_is_damaged_is_made_anew(run, store, harm):
    first = asked(run)
    [kept] = folders(store)
    column, index = kept / stored.WHOLE, kept / "index.json"
    if harm == "cut":
        os.truncate(column, column.stat().st_size - 8)
    elif harm == "grown":
        column.write_bytes(column.read_bytes() + b"12345678")
    elif harm == "gone":
        column.unlink()
    elif harm == "touched":
        column.write_bytes(bytes(column.stat().st_size))
    elif harm == "index":
        index.write_text(index.read_text().replace('"stored": ', '"stored": 1'))
    elif harm == "no index":
        index.unlink()
    else:
        text = json.dumps({"columns": {}})
        index.write_text(f"{stored._sum(text)}\n{text}")
    again = asked(run)
    assert (again.events, again.tiles.told, again.span) == (first.events, first.tiles.told, first.span)
    assert len(folders(store)) == 1 and stored.read(kept).events == first.events


def test_a_timeline_holds_one_file_open_and_what_cannot_be_opened_now_is_no_damage(run, store, monkeypatch):
    asked(run)
    before = len(os.listdir("/proc/self/fd"))
    held = [asked(run) for _ in range(5)]
    assert len(os.listdir("/proc/self/fd")) - before <= len(held)

    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(stored, "_mapped", refused)
    assert asked(run).held_bytes > 0 and len(folders(store)) == 1


def test_other_facts_have_files_of_their_own(run, store):
    asked(run)
    timeline(run.tables, facts_of({"chip": "v4"}), few=0)
    assert len(folders(store)) == 2


def test_it_goes_with_its_run(run, store):
    asked(run)
    store.bin.put(run.run_id)
    assert not folders(store)
    store.bin.restore(run.run_id)
    asked(store.find(run.run_id))
    assert folders(store)
    store.remove(run.run_id)
    assert not folders(store)


def test_where_nothing_can_be_written_it_is_made_in_memory(run, store, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    whole = asked(run)
    (store.root / FOLDER / run.run_id).rename(store.root / "aside")
    monkeypatch.setattr("analyzers.timeline.columns.InFiles.add", full)
    found = asked(run)
    assert found.held_bytes > 0 and not folders(store) and not list((store.root / "partial").iterdir())
    same(replace(found, held_bytes=0), whole)


def test_a_run_without_times_keeps_no_files(store):
    run = made_runs.write(store, "nothing", {"lifecycle": {"kind": ["eval"], "start_ns": [None]}}, {})
    with pytest.raises(QuestionError, match="no place in time|nothing of this run"):
        asked(run)
    assert not folders(store) and not list((store.root / "partial").iterdir())


def test_of_two_who_make_it_at_once_one_wins_and_both_have_it(run, store):
    def first(folder):
        (folder / "a").write_text("first")
        assert derived.get("key", read, lambda f: (f / "a").write_text("second")) == "second"

    def read(folder):
        return (folder / "a").read_text()

    derived = Derived(store.root, run.run_id)
    assert derived.get("key", read, first) == "second"
    assert not list((store.root / "partial").iterdir())


def test_what_was_not_asked_for_longest_goes_first(store):
    derived = Derived(store.root, "run", most_bytes=250)
    for n, key in enumerate(("a", "b", "c")):
        derived.get(key, lambda f: (f / "x").read_bytes(), lambda f: (f / "x").write_bytes(bytes(100)))
        os.utime(store.root / FOLDER / "run" / key, ns=(n, n))
        if key == "b":
            derived.get("a", lambda f: (f / "x").read_bytes(), lambda f: None)
            os.utime(store.root / FOLDER / "run" / "a", ns=(5, 5))
    assert [p.name for p in folders(store)] == ["a", "c"]
