"""Memory snapshots of PyTorch: what they tell, brute force over random histories, and pickles that mean harm."""

import gzip
import io
import os
import pickle
import pickletools
import random
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import COLLECTORS
from collectors.device import memory_snapshot
from collectors.device.memory_snapshot import timeline
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.snapshots import (
    BACK,
    PAGE,
    STEP,
    T0_US,
    TRAIN,
    Allocator,
    block,
    dumped,
    event,
    frames,
    segment,
    small,
    snapshot,
)
from tests.fuzz.damage import damaged


def got(tmp_path, told, name="snap.pickle"):
    return read(memory_snapshot, source_of(tmp_path, told if isinstance(told, bytes) else dumped(told), name))


def refused(tmp_path, data):
    with pytest.raises(InputError) as told:
        got(tmp_path, data)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_snapshot_is_known_by_what_it_holds(tmp_path):
    for data in (small(), gzip.compress(small()), dumped(snapshot([], [event("alloc", 512, 1, 0)]))):
        source = source_of(tmp_path, data, "x")
        assert max(COLLECTORS, key=lambda c: c.sniff(source)) is memory_snapshot
    for other in (pickle.dumps({"entries": [], "pg_config": {}}), pickle.dumps([1, 2]), b"", b'{"segments": []}'):
        assert memory_snapshot.sniff(source_of(tmp_path, other, "snapshot.pickle")) == 0


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("pickler", [pickle.Pickler, pickle._Pickler])
def test_lives_stacks_segments_and_failures(tmp_path, protocol, pickler):
    file = io.BytesIO()
    pickler(file, protocol).dump(pickle.loads(small()))
    result = got(tmp_path, file.getvalue(), "rank3.pickle.gz")
    lives = {row["address"]: row for row in result.rows["allocations"]}
    stacks = {}
    for row in result.rows["stacks"]:
        stacks.setdefault(row["stack"], []).append((row["function"], row["file"], row["line"], row["kind"]))
    before, made, freed = lives[1 << 16], lives[1 << 20], lives[(1 << 20) + 1024]
    assert {row["host"] for row in lives.values()} == {"rank3"}
    assert (before["bytes"], before["placed_bytes"], before["alloc_event"], before["free_event"]) == (
        2000,
        2048,
        None,
        None,
    )
    assert stacks[before["stack"]][0] == ("step", "/v/site-packages/torch/optim/adam.py", 3, "library")
    assert stacks[before["stack"]][1] == ("main", "/home/me/train.py", 40, "own")
    assert (made["bytes"], made["placed_bytes"], made["alloc_event"], made["free_event"]) == (900, 1024, 1, None)
    assert made["alloc_ns"] == (T0_US + 1) * 1000 and made["free_ns"] is None
    assert (freed["bytes"], freed["placed_bytes"], freed["alloc_event"], freed["free_event"]) == (3000, None, 2, 4)
    assert freed["free_ns"] == (T0_US + 4) * 1000
    assert stacks[freed["stack"]] == [(BACK[0]["name"], "??", None, "native")]
    first, second = result.rows["memory_segments"]
    assert (first["held_bytes"], first["requested_bytes"], first["free_bytes"]) == (2048, 2000, 2048)
    assert (second["bytes"], second["largest_free_bytes"]) == (1 << 20, (1 << 20) - 1024)
    used = [(r["ts_ns"] // 1000 - T0_US, r["bytes"]) for r in result.rows["memory"] if r["kind"] == "bytes_in_use"]
    assert used == [(0, 2000), (1, 2900), (2, 5900), (4, 2900), (6, 2900)]
    pool = [(r["ts_ns"] // 1000 - T0_US, r["bytes"]) for r in result.rows["memory"] if r["kind"] == "pool_bytes"]
    assert pool == [(0, 4096 + (1 << 20)), (6, 4096 + (1 << 20))]
    (failure,) = result.rows["evidence"]
    assert failure["cause"] == "device_memory" and failure["order"] == 5 and failure["ts_ns"] == (T0_US + 5) * 1000
    assert failure["text"] == (
        "CUDA out of memory: 1.07 GB asked for on device 0 at model.py:12 forward, 4.10 kB free on the device; 2.90 kB "
        "in use of 1.05 MB reserved"
    )
    told = {r["kind"]: r["bytes"] for r in result.rows["memory"] if r["kind"] in ("refused", "device_free")}
    assert told == {"refused": 1 << 30, "device_free": 4096}
    assert result.lost == []


def test_stacks_and_frames_are_kept_once_however_they_are_written(tmp_path):
    own = [event("alloc", 512 * n, 10, n, frames(("f", "a.py", 1), ("g", "b.py", 2))) for n in range(1, 50)]
    result = got(tmp_path, snapshot([], own))
    assert len(result.rows["stacks"]) == 2 and set(result.column("allocations", "stack")) == set()
    kept = [block(512 * n, 512, requested=10) for n in range(1, 50)]
    result = got(tmp_path, snapshot([segment(512, 49 * 512, kept)], own))
    assert set(result.column("allocations", "stack")) == {0} and len(result.rows["allocations"]) == 49


def test_a_stack_deeper_than_a_batch_of_the_pickler_is_whole(tmp_path):
    deep = frames(*((f"f{n}", "deep.py", n) for n in range(2500)))
    result = got(tmp_path, snapshot([segment(512, 512, [block(512, 512, stack=deep)])]))
    rows = result.rows["stacks"]
    used = result.column("allocations", "stack")
    mine = [r["line"] for r in rows if r["stack"] == used[0]]
    assert mine[1:] == list(range(1, 2500)) and [r["depth"] for r in rows if r["stack"] == used[0]] == list(range(2500))


def test_the_oldest_form_is_a_list_of_segments_whose_blocks_have_no_address(tmp_path):
    blocks = [block(0, 1024), block(0, 512, "inactive"), block(0, 2048)]
    for b in blocks:
        del b["address"], b["requested_size"]
    result = got(tmp_path, [segment(4096, 3584, blocks)])
    assert [(r["address"], r["bytes"]) for r in result.rows["allocations"]] == [(4096, 1024), (5632, 2048)]


@pytest.mark.parametrize("seed", range(40))
def test_random_histories_cut_off_anywhere_tell_what_was_in_use(tmp_path, seed):
    made = Allocator(seed)
    made.run(300)
    last = random.Random(seed).randint(0, len(made.events))
    result = got(tmp_path, made.snapshot(last))
    first = len(made.events) - last
    lives = result.rows.get("allocations", [])
    assert result.lost == []
    for place in range(last):
        held = {
            r["address"]: r["bytes"]
            for r in lives
            if (r["alloc_event"] is None or r["alloc_event"] <= place)
            and (r["free_event"] is None or r["free_event"] > place)
        }
        assert set(held) == made.owners[first + place] and sum(held.values()) == made.levels[first + place]
    samples = [(r["ts_ns"], r["bytes"]) for r in result.rows.get("memory", []) if r["kind"] == "bytes_in_use"]
    if last:
        start = made.levels[first - 1] if first else 0
        assert max(b for _, b in samples) == max([start, *made.levels[first:]])
        assert [ns for ns, _ in samples] == sorted({ns for ns, _ in samples})


def test_many_samples_become_few_and_keep_every_local_peak_that_matters():
    random_ = random.Random(1)
    ns = list(range(1, 200_001))
    level = [random_.randint(0, 1000) for _ in range(200_001)]
    level[77_777] = 5000
    times, held = timeline.samples(np.array(ns) * 1000, np.array(level))
    assert len(times) <= 4 * timeline.BUCKETS and held.max() == 5000 and times[held.argmax()] == 77_777_000
    assert (np.diff(times) > 0).all() and times[0] == 1000 and times[-1] == 200_000_000
    width = 200_000 // timeline.BUCKETS
    for start in range(1, 200_001 - width, 7 * width):
        inside = (times >= (start - width) * 1000) & (times <= (start + 2 * width) * 1000)
        assert held[inside].max() >= max(level[start : start + width])


def test_what_contradicts_itself_is_counted_and_never_negative(tmp_path):
    twice = [event("alloc", 512, 100, 0), event("alloc", 512, 300, 1), event("free_completed", 512, 300, 2)]
    freed = [event("free_completed", 512, 300, 3), event("alloc", 1024, 50, 4)]
    result = got(tmp_path, snapshot([segment(512, 1024, [block(512, 512, requested=7)])], [*twice, *freed]))
    assert "contradict" in result.reasons() and result.lost[0].what.startswith("4 ")
    used = [r["bytes"] for r in result.rows["memory"] if r["kind"] == "bytes_in_use"]
    assert min(used) >= 0 and used[-1] == 7


def test_numbers_that_cannot_be_are_left_out_and_said(tmp_path):
    history = [
        event("alloc", 512, -5, 0),
        event("alloc", 1024, 1 << 50, 1),
        event("alloc", 1 << 70, 5, 2),
        event("alloc", 2048, 10, 3) | {"time_us": 10**18},
        event("alloc", 4096, 10, 3) | {"time_us": -1},
        event("alloc", 8192, 10, 4) | {"size": "10"},
        event("alloc", 16384, 10, 5) | {"time_us": 10**30},
    ]
    held = [block(2048, 512, requested=10), block(4096, 512, requested=10), block(16384, 512, requested=10)]
    odd = [segment(1 << 30, -1, []), segment(1 << 31, 10, [block(-4, 5), block(1 << 31, -5), block(9, 9, "who knows")])]
    result = got(tmp_path, snapshot([segment(2048, 1 << 20, held), *odd], history))
    assert "4 events: no size or address" in result.reasons() and "4 segments and blocks" in result.reasons()
    assert result.column("allocations", "alloc_ns") == [None, None, None]
    assert result.column("allocations", "bytes") == [10, 10, 10]
    assert all(r["ts_ns"] is None or 0 < r["ts_ns"] < 5 * 10**18 for r in result.rows.get("memory", []))


def test_sizes_beyond_64_bits_together_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "_MOST_SUM", 4000.0)  # 2^62 takes two million blocks of the largest size
    assert "more than 64 bits" in refused(tmp_path, small())


OTHER_SHAPES = [
    {"segments": 5},
    {"segments": [], "device_traces": {}},
    {"segments": [1, "x", None, [2]], "device_traces": [[1], "x", [[event("alloc", 1, 1, 1)]]]},
    {"segments": [{"total_size": "x", "blocks": 3}], "device_traces": [None]},
    {"segments": [{"total_size": 5, "device": -1, "address": 1, "blocks": []}]},
    {"segments": [{"total_size": 5, "device": 10**9, "address": 1, "blocks": []}]},
    [],
    [[segment(1, 2, [])]],
    event("alloc", 1, 1, 1),
    {"total": segment(1, 2, [])},
    "segments total_size blocks",
]


@pytest.mark.parametrize("told", OTHER_SHAPES, ids=range(len(OTHER_SHAPES)))
def test_other_shapes_are_refused_in_a_sentence(tmp_path, told):
    refused(tmp_path, dumped(told))


def test_frames_of_odd_shapes_are_no_stack(tmp_path):
    odd = [frames(("f", "a.py", 1)) + [5], [{"filename": 3, "name": None, "line": "x"}], "frames", {"filename": "x"}]
    held = [block(512 * n, 512) | {"frames": f} for n, f in enumerate(odd, 1)]
    result = got(tmp_path, snapshot([segment(512, 4096, held)]))
    assert [s is None for s in result.column("allocations", "stack")] == [True, False, True, True]
    assert [(r["function"], r["file"], r["line"]) for r in result.rows["stacks"]] == [(None, None, None)]


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def with_opcode(raw: bytes) -> bytes:
    """A snapshot in which an opcode stands where a segment should."""
    return b"\x80\x04}\x94(\x8c\x08segments]\x94(\x8c\ntotal_size" + raw + b"e\x8c\x0ddevice_traces]u."


HARMFUL = {
    "GLOBAL": b"cos\nmkdir\n",
    "STACK_GLOBAL": b"\x8c\x02os\x8c\x05mkdir\x93",
    "INST": b"(\x8c\x01xios\nmkdir\n",
    "OBJ": b"(cos\nmkdir\n\x8c\x01xo",
    "REDUCE": b"cos\nmkdir\n\x8c\x01x\x85R",
    "NEWOBJ": b"N)\x81",
    "NEWOBJ_EX": b"N)}\x92",
    "BUILD": b"}}b",
    "EXT1": b"\x82\x01",
    "EXT2": b"\x83\x01\x00",
    "EXT4": b"\x84\x01\x00\x00\x00",
    "PERSID": b"Px\n",
    "BINPERSID": b"NQ",
    "NEXT_BUFFER": b"\x97",
    "FROZENSET": b"(\x91",
    "EMPTY_SET": b"\x8f",
    "INT": b"I5\n",
    "unknown": b"\xff",
}


@pytest.mark.parametrize("name", HARMFUL)
def test_what_imports_calls_or_builds_is_refused_and_not_run(tmp_path, name):
    data = with_opcode(HARMFUL[name])
    assert memory_snapshot.sniff(source_of(tmp_path, data + b"blocks")) > 0.9
    assert "more than plain values" in refused(tmp_path, data)
    assert not (tmp_path / "x").exists() and not os.path.exists("x")


def test_a_pickle_that_would_run_code_when_loaded_runs_none(tmp_path):
    harm = tmp_path / "harm"
    told = snapshot([segment(512, 512, [block(512, 512)])]) | {"user": Harm(str(harm))}
    assert "opcode" in refused(tmp_path, dumped(told)) and not harm.exists()
    pickle.loads(dumped(told))
    assert harm.exists()  # it was a pickle that does harm


def test_every_opcode_is_either_read_as_plain_or_refused():
    from collectors.device.memory_snapshot.values import WIDTH

    plain = {op.name for op in pickletools.opcodes if WIDTH[ord(op.code)] != -2}
    assert plain == {
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "MEMOIZE", "BINPUT", "LONG_BINPUT"),
        *("BINGET", "LONG_BINGET", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "LONG4"),
        *("BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES"),
        *("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEM", "SETITEMS"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    }


@pytest.mark.parametrize("at", [*range(0, 60), *range(60, len(small()), 37)])
def test_a_file_that_ends_early_is_refused(tmp_path, at):
    assert "ends in the middle" in refused(tmp_path, small()[:at])


def test_a_broken_archive_is_refused(tmp_path):
    whole = gzip.compress(small())
    assert "unpacked" in refused(tmp_path, whole[: len(whole) // 2])
    assert "byte" in refused(tmp_path, whole[:40] + bytes(30) + whole[70:])


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damage_is_refused_or_read_and_never_fails_else(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    changed = data.draw(damaged(small()))
    try:
        result = got(folder, changed)
    except InputError as e:
        assert "\n" not in str(e)
    else:
        assert all(r["bytes"] >= 0 for r in result.rows.get("allocations", []))


BOMBS = {
    "a text of 4 GB": b"\x80\x04X\xff\xff\xff\xff" + b"x" * 100,
    "a text of 2^60 bytes": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"x",
    "a text of 2^63 bytes": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 63) + b"x",
    "a number of 2 GB": b"\x80\x04\x8b\xff\xff\xff\x7f" + b"x" * 100,
    "a memo entry beyond all": b"\x80\x04}r\xff\xff\xff\x7f.",
    "what was never kept": b"\x80\x04}j\xff\xff\xff\x7f.",
    "marks without end": b"\x80\x04" + b"(" * 3_000_000,
    "lists without end": b"\x80\x04" + b"]" * 3_000_000,
    "a list in itself": b"\x80\x04]\x94h\x00a" * 1000 + b".",
    "doublings": b"\x80\x04]\x94" + b"(h\x00h\x00e" * 1000 + b".",
    "nothing left to append to": b"\x80\x04(e.",
    "a mark below": b"\x80\x04](]e.",
    "text for a list": b"\x80\x04\x8c\x01x(]e.",
    "an odd dictionary": b"\x80\x04}(]u.",
    "nothing": b"\x80\x04.",
    "two ends": b"\x80\x04]].",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_bounded_memory(tmp_path, name):
    got(tmp_path, small())  # compiled
    tracemalloc.start()
    refused(tmp_path, BOMBS[name])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200_000_000


def test_an_archive_that_unpacks_without_end_is_left_at_its_first_byte(tmp_path):
    bomb = gzip.compress(b"\x80\x04" + bytes(50_000_000))
    assert "opcode 0x00 at byte 2" in refused(tmp_path, bomb)


def test_a_text_that_is_long_is_read_across_the_edge_of_what_is_read_at_once(tmp_path):
    told = snapshot([segment(512, 512, [block(512, 512, stack=frames(("n" * 9_000_000, "a.py", 1)))])])
    result = got(tmp_path, told)
    assert result.rows["stacks"][0]["function"].startswith("nnn") and len(result.rows["stacks"][0]["function"]) == 1000
    longer = snapshot([segment(512, 512, [block(512, 512, stack=frames(("n" * (1 << 26), "a.py", 1)))])])
    assert "a text longer than" in refused(tmp_path, dumped(longer))


def test_devices_are_told_apart(tmp_path):
    held = [
        segment(512, 512, [block(512, 512)], device=0),
        segment(512, 1024, [block(512, 512, requested=400)], device=2),
    ]
    result = got(
        tmp_path, snapshot(held, [event("alloc", 512, 512, 5, STEP)], [], [event("alloc", 512, 400, 6, TRAIN)])
    )
    told = {(r["device"], r["bytes"], r["alloc_event"]) for r in result.rows["allocations"]}
    assert told == {(0, 512, 0), (2, 400, 0)}
    assert {(r["device"], r["bytes"]) for r in result.rows["memory_segments"]} == {(0, 512), (2, 1024)}
    assert PAGE == 512
