"""Dumps of PyTorch's flight recorder: read as data alone, and nothing in them is run."""

import gzip
import json
import os
import pickle
import time
import tracemalloc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Source
from collectors.device import flight_recorder
from collectors.device.flight_recorder import ranks, reader
from collectors.device.flight_recorder.ranks import paired
from collectors.ingest import ingest
from collectors.reading import plain_pickle
from collectors.reading.plain_pickle import codes
from errors import InputError
from tests.collectors.flight_dumps import T0, Calls, as_json, dump, entry, pickled, with_reference
from tests.collectors.reading import read, source_of

GROUPS = {"0": [0, 1, 2, 3], "7": [2, 3]}
ENTRIES = [
    entry("all_reduce", seq=5, state="completed", time_discovered_completed_ns=T0 + 9, duration_ms=1.5),
    entry("_all_gather_base", "7", 3, described="TP", pg_id=4, sizes=[[2, 3], [5]], kinds=["Float", "Byte"]),
    entry("send 0->1", "7", 3, described="TP", pg_id=4, p2p=11),
    entry("recv 0<-1", "7", 3, described="TP", pg_id=4, p2p=12),
]
STATUS = {"0": (5, -1, 5), "4": (12, -1, 2)}
WHOLE = dump(GROUPS, ENTRIES, STATUS)
NAME = "nccl_trace_rank_2"


def told(tmp_path, data, name=NAME):
    return read(flight_recorder, source_of(tmp_path, data, name))


def test_what_a_rank_enqueued_and_how_far_it_came(tmp_path):
    got = told(tmp_path, pickled(WHOLE))
    rows = got.rows["enqueued"]
    assert [r["call"] for r in rows] == ["all_reduce", "_all_gather_base", "send 0->1", "recv 0<-1"]
    assert [r["kind"] for r in rows] == ["all-reduce", "all-gather", "send", "recv"]
    assert {r["rank"] for r in rows} == {2}
    assert [r["group"] for r in rows] == ["0,1,2,3", "2,3", "2,3", "2,3"]
    assert [r["peer"] for r in rows] == [None, None, 3, 3]  # the second of the group, as a global rank
    assert [(r["seq"], r["p2p_seq"]) for r in rows] == [(5, None), (3, None), (3, 11), (3, 12)]
    assert [r["bytes"] for r in rows] == [64.0, 2 * 3 * 4 + 5, 64.0, 64.0]
    assert rows[1]["shape"] == "2x3, 5 -> 2x3, 5" and rows[1]["dtype"] == "f32"
    assert [r["state"] for r in rows] == ["completed", *["scheduled"] * 3]
    assert rows[0]["completed_ns"] == T0 + 9 and rows[0]["dur_ns"] == 1_500_000 and rows[1]["completed_ns"] is None
    progress = {r["group_name"]: r for r in got.rows["group_progress"]}
    assert progress["0"]["last_enqueued"] == 5 and progress["0"]["last_started"] is None
    assert progress["7"]["local_group"] == 4 and progress["7"]["last_completed"] == 2 and progress["7"]["entries"] == 3
    assert "collectives" not in got.rows and got.lost == []


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_any_protocol_of_plain_data_and_json_tell_the_same(tmp_path, protocol):
    first = told(tmp_path, pickled(WHOLE)).rows
    assert told(tmp_path, pickled(WHOLE, protocol)).rows == first
    assert told(tmp_path, as_json(WHOLE)).rows == first
    assert told(tmp_path, gzip.compress(pickled(WHOLE))).rows == first


def test_an_older_format_without_progress_and_with_one_counter(tmp_path):
    old = {
        k: v for k, v in entry("all_reduce", seq=4).items() if "seq_id" not in k and k not in ("is_p2p", "timeout_ms")
    }
    got = told(tmp_path, pickled({"version": "1.5", "entries": [{**old, "seq_id": 4}]}))
    assert got.rows["enqueued"][0]["seq"] == 4 and got.rows["enqueued"][0]["group"] is None
    assert [r["group_name"] for r in got.rows["group_progress"]] == ["0"]


def test_the_innermost_line_of_the_program_itself(tmp_path):
    frames = [
        {"name": "all_reduce", "filename": "/x/site-packages/torch/distributed/c10d.py", "line": 2696},
        {"name": "step", "filename": "/job/train.py", "line": 77},
        {"name": "main", "filename": "/job/train.py", "line": 99},
    ]
    got = told(tmp_path, pickled(dump(GROUPS, [entry("all_reduce", frames=frames)])))
    assert got.rows["enqueued"][0]["frame"] == "/job/train.py:77 step"


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("_dump_12", 12),
        ("a/nccl_trace_rank_7", 7),
        ("nccl_trace_rank_7.json.gz", 7),
        ("run3/rank-5_step100.pkl", 5),
        ("trace", None),
        ("dump.pkl", None),
    ],
)
def test_whose_a_dump_is_by_its_name(name, rank):
    assert ranks.rank_told(name) == rank == flight_recorder.apart(name)


def test_groups_hold_against_what_a_name_says(tmp_path):
    alone = dump({**GROUPS, "9": [3]}, [])
    assert told(tmp_path, pickled(alone), "whatever").rows["group_progress"][0]["rank"] == 3
    assert told(tmp_path, pickled(alone), "copy_of_1").rows["group_progress"][0]["rank"] == 3
    with pytest.raises(InputError, match="which rank wrote it"):
        told(tmp_path, pickled(WHOLE), "dump_9")


def test_groups_are_paired_by_their_order_where_nothing_else_tells():
    assert ranks.paired(["0", "40", "73"], [0, 5, 10], {}) == {0: "0", 5: "40", 10: "73"}
    assert ranks.paired(["0", "40", "73"], [0, 5, 7, 10], {10: "73"}) == {10: "73"}
    assert ranks.paired(["0", "40", "73", "80"], [0, 5, 10, 11], {5: "40"}) == {0: "0", 5: "40", 10: "73", 11: "80"}
    assert ranks.paired(["0", "ab"], [0, 5], {}) == {}
    assert ranks.paired(["0", "4"], [0, 5], {0: "4", 5: "0"}) == {0: "4", 5: "0"}  # not in order: nothing is added


def test_an_operation_past_its_timeout_is_evidence(tmp_path):
    entries = [entry("all_reduce", seq=5, retired=True), entry("all_reduce", seq=6)]
    rows = told(tmp_path, pickled(dump(GROUPS, entries))).rows["evidence"]
    assert [(r["cause"], r["ts_ns"]) for r in rows] == [("collective_timeout", T0 + 5_000_000 + 180 * 10**9)]
    assert "rank 2: all_reduce of default_pg, number 5, had not completed after 180 s" in rows[0]["text"]
    assert "evidence" not in told(tmp_path, pickled(dump(GROUPS, [entry("all_reduce")]))).rows


def test_what_was_launched_as_one_ends_with_its_launch(tmp_path):
    def timed_out(state, launch=True):
        entries = []
        for n in range(1, 6):
            at = {"p2p": n, "time_created_ns": T0 + n * 100 * 10**9}
            entries += [entry(call, seq=0, **at) for call in ("send 0->1", "recv 0<-1")]
            entries += [entry("coalesced", seq=0, state=state, **at)] if launch else []
        return "evidence" in told(tmp_path, pickled(dump(GROUPS, entries))).rows

    assert not timed_out("completed") and not timed_out("completed", launch=False) and timed_out("scheduled")


@pytest.mark.parametrize("library", ["gloo", "c10d"])
def test_what_is_over_where_nothing_tells_how_has_no_state(tmp_path, library):
    entries = [entry("all_reduce", seq=n, profiling_name=f"{library}:all_reduce", retired=n < 3) for n in (1, 2, 3)]
    rows = told(tmp_path, pickled(dump(GROUPS, entries))).rows
    assert [r["state"] for r in rows["enqueued"]] == [None, None, "scheduled"] and "evidence" not in rows


def test_a_rank_that_left_nothing_is_told(tmp_path):
    for data in (b"", pickled(WHOLE)[:-200], gzip.compress(pickled(WHOLE))[:-40], as_json(WHOLE)[:-100]):
        got = told(tmp_path, data)
        assert [(r["rank"], bool(r["fault"])) for r in got.rows["group_progress"]] == [(2, True)]
        assert "the dump of rank 2" in got.reasons()
    with pytest.raises(InputError, match="does not tell whose it is"):
        told(tmp_path, b"", "trace")


def test_recognised_by_content(tmp_path):
    assert flight_recorder.sniff(source_of(tmp_path, pickled(WHOLE), "x")) == 0.95
    assert flight_recorder.sniff(source_of(tmp_path, as_json(WHOLE), "x.json")) == 0.95
    assert flight_recorder.sniff(source_of(tmp_path, b"", NAME)) > 0.5
    assert flight_recorder.sniff(source_of(tmp_path, b"", "notes_12.txt")) == 0
    assert flight_recorder.sniff(source_of(tmp_path, pickled({"segments": [], "device_traces": []}), "x")) == 0
    assert flight_recorder.sniff(source_of(tmp_path, b'{"version": 1, "entries": []}', "x.json")) == 0


def test_two_ranks_with_the_same_bytes_are_two_ranks(store, folder):
    same = pickled(dump({"0": [0, 1]}, [], {"0": (5, -1, 5)}))
    for rank in (0, 1):
        (folder / f"_dump_{rank}").write_bytes(same)
    run = store.get(ingest([folder], store).run_id)
    assert sorted(run.tables.arrow("group_progress")["rank"].to_pylist()) == [0, 1]


def ran(*_):
    os.environ["FLIGHT_RECORDER_RAN"] = "yes"


HOSTILE = {
    "a call": pickle.dumps({"version": "2.9", "pg_config": {}, "entries": Calls(os.system, "touch ran")}, 2),
    "a call of builtins": pickle.dumps({"pg_config": Calls(eval, "1/0"), "entries": []}, 4),
    "an object": pickle.dumps({"pg_config": {}, "entries": ValueError("x")}, 2),
    "a reference": with_reference(WHOLE),
    "protocol 0": b"(dp0\nVpg_config\np1\ncos\nsystem\n(S'true'\ntRs.",
    "INST": b"\x80\x02(S'true'\nios\nsystem\n.",
    "EXT": b"\x80\x02}X\x09\x00\x00\x00pg_config\x82\x01s.",
    "a number of 200 bytes": b"\x80\x02}X\x07\x00\x00\x00entries\x8a\xc8" + b"\x7f" * 200 + b"s.",
    "keys that are numbers": b"\x80\x02}K\x01K\x02s.",
    "nothing to fill": b"\x80\x02K\x01K\x02a.",
    "no mark": b"\x80\x02e.",
    "a reference to nothing": b"\x80\x02h\x07.",
    "an empty program": b"\x80\x02.",
    "bytes": pickle.dumps({"pg_config": {}, "entries": b"x" * 300}, 4),
    "a set": pickle.dumps({"pg_config": {}, "entries": {1, 2}}, 4),
    "buffers": b"\x80\x05\x97.",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_in_a_file_is_run(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "system", lambda *_: pytest.fail("it was run"))
    with pytest.raises(InputError) as refused:
        told(tmp_path, data)
    assert "\n" not in str(refused.value) and not (tmp_path / "ran").exists()


def test_only_codes_that_make_data_are_known():
    import pickletools

    names = {op.name for op in pickletools.opcodes if codes.WIDTH[ord(op.code)] != codes.UNKNOWN}
    made = (
        "GLOBAL",
        "REDUCE",
        "BUILD",
        "INST",
        "OBJ",
        "NEWOBJ",
        "EXT",
        "PERSID",
        "BUFFER",
        "BYTES",
        "SET",
        "POP",
        "DUP",
    )
    assert not [name for name in names if any(part in name for part in made if part != "SET")]
    assert {name for name in names if "SET" in name} == {"SETITEM", "SETITEMS"}


def test_bombs_stay_small(tmp_path, monkeypatch):
    nested = b"\x80\x02" + b"](" * 200_000 + b"e" * 200_000 + b"."
    shared = b"\x80\x02]q\x00" + b"".join(b"]q%c(h%ch%ce" % (i + 1, i, i) for i in range(60)) + b"."
    many = b"\x80\x02" + b"}" * 100_001 + b"."
    monkeypatch.setattr(plain_pickle, "MOST_CONTAINERS", 100_000)
    tracemalloc.start()
    with pytest.raises(InputError):
        told(tmp_path, nested)
    with pytest.raises(InputError):
        told(tmp_path, shared)
    with pytest.raises(InputError, match="more than 100,000 dicts"):
        told(tmp_path, many)
    with pytest.raises(InputError):
        told(tmp_path, b'{"pg_config": ' + b"[" * 300_000)
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    monkeypatch.setattr(plain_pickle, "MOST_CODES", 1000)
    with pytest.raises(InputError, match="more than 1,000 codes"):
        told(tmp_path, b"\x80\x02]" + b"h\x00" * 0 + b"]q\x01h\x01a" * 1000 + b".")


def test_lists_that_hold_each_other_end(tmp_path):
    loop: dict = dump(GROUPS, [entry("all_reduce")])
    loop["entries"].append(loop["entries"])
    loop["entries"][0]["input_sizes"] = loop["entries"]
    loop["pg_config"]["loop"] = loop
    got = told(tmp_path, pickled(loop))
    assert len(got.rows["enqueued"]) == 1 and got.rows["enqueued"][0]["bytes"] is None


def test_what_does_not_fit_is_null_and_named(tmp_path):
    odd = entry("all_reduce", time_created_ns=1 << 70, timeout_ms="soon", duration_ms=float("nan"), state="flying")
    odd |= {"input_sizes": [[1 << 50]], "frames": [{"line": 3}, 7], "retired": 1}
    wrong = entry("all_reduce", process_group=None)
    got = told(tmp_path, pickled({**dump(GROUPS, [odd, wrong, 7]), "pg_status": {"x": 3, "0": {}}}))
    row = got.rows["enqueued"][0]
    names = ("enqueued_ns", "timeout_ms", "dur_ns", "state", "bytes", "frame", "retired")
    assert [row[name] for name in names] == [None] * len(names)
    assert "which process group they are of" in got.reasons() and "no record of an operation" in got.reasons()
    assert "progress of groups (1)" in got.reasons()


def either(tmp_path, data):
    """Rows, or one sentence; never anything else."""
    try:
        return told(tmp_path, data)
    except InputError as e:
        assert "\n" not in str(e)
        return None


@pytest.mark.parametrize("whole", [pickled(WHOLE), as_json(WHOLE)], ids=["pickle", "json"])
def test_cut_at_every_64_bytes(tmp_path, whole):
    for cut in range(0, len(whole), 64):
        got = either(tmp_path, whole[:cut])
        assert got is None or got.rows["group_progress"][0]["fault"]


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, 100_000), value=st.integers(0, 255), as_text=st.booleans())
def test_a_flipped_byte_gives_rows_or_one_sentence(tmp_path_factory, at, value, as_text):
    data = bytearray(as_json(WHOLE) if as_text else pickled(WHOLE))
    data[at % len(data)] = value
    either(tmp_path_factory.mktemp("flip"), bytes(data))


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
ANY = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=8), v, max_size=4), max_leaves=12
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["version", "pg_config", "pg_status", "entries"]), ANY),
    st.dictionaries(st.sampled_from([*entry("all_reduce"), "frames", "seq_id"]), ANY),
)
def test_any_values_under_known_keys_give_rows_or_one_sentence(tmp_path_factory, top, one):
    folder = tmp_path_factory.mktemp("any")
    either(folder, pickled({"entries": [one, {**entry("all_reduce"), **one}], "pg_config": {}, **top}))
    either(folder, pickled({**top, "entries": [{**entry("send 0->1"), **one}]}))


@settings(max_examples=200, deadline=None)
@given(ANY)
def test_plain_data_comes_back_as_it_was_written(value):
    def clean(v):
        if isinstance(v, float) and v != v:
            return "nan"
        if isinstance(v, list):
            return [clean(x) for x in v]
        return {k: clean(x) for k, x in v.items()} if isinstance(v, dict) else v

    for protocol in (2, 3, 4, 5):
        try:
            assert clean(plain_pickle.loads(pickle.dumps(value, protocol))) == clean(value)
        except plain_pickle.Refused as e:
            assert "a number of" in str(e)


def test_a_dump_of_usual_size_is_read_in_bounded_memory(tmp_path):
    frames = [{"name": f"f{i}", "filename": f"/job/m{i}.py", "line": i} for i in range(20)]
    many = dump(GROUPS, [entry("all_reduce", seq=n, frames=[*frames]) for n in range(2_000)])
    source = source_of(tmp_path, pickled(many), NAME)
    tracemalloc.start()
    got = read(flight_recorder, source)
    assert len(got.rows["enqueued"]) == 2_000 and tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


def test_names_are_kept_as_text(tmp_path):
    evil = entry("<script>alert(1)</script>", described="<b>x</b>\ud800")
    row = told(tmp_path, as_json(dump(GROUPS, [evil]))).rows["enqueued"][0]
    assert row["call"] == "<script>alert(1)</script>" and row["description"] == "<b>x</b>?" and row["kind"] is None


def test_a_source_is_what_ingest_gives(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(pickled(WHOLE))
    assert json.dumps([r.batch.num_rows for r in flight_recorder.read(Source(path, NAME)) if hasattr(r, "batch")])


def test_what_stands_in_every_operation_is_read_in_time(tmp_path, monkeypatch):
    """The same text, sizes or list of ranks by reference: a small file, and hours of work where each is looked at in
    full each time."""
    blank, shapes = " " * 3_000_000 + "x", [[1]] * 50_000
    one = entry("all_reduce", blank, sizes=shapes, kinds=["Float"] * 50_000, described=blank, state=blank, pg_id=blank)
    one["frames"] = [{"filename": "/torch/" + blank, "name": blank, "line": blank}] * 200
    wide = entry("all_reduce", sizes=[[2, 2]], kinds=["Float"])
    many = dump({"0": list(range(100_000))}, [wide, one, *[one, wide] * 300], {"0": (1, 1, 1)})
    for config in range(1, 60):
        many["pg_config"][str(config)] = {"ranks": blank}
    began = time.monotonic()
    got = told(tmp_path, pickled(many), "nccl_trace_rank_7")
    assert time.monotonic() - began < 15
    rows = got.rows["enqueued"]
    assert len(rows) == 602 and rows[0]["bytes"] == 16 and rows[1]["bytes"] == 200_000
    assert {row["group"] for row in rows if row["group_name"]} == {",".join(map(str, range(100_000)))}
    assert any("4,000,000 tensors" in lost.reason for lost in got.lost)


def test_more_operations_than_recorders_keep_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST_ENTRIES", 3)
    assert len(told(tmp_path, pickled(dump(GROUPS, [entry("all_reduce")] * 3))).rows["enqueued"]) == 3
    with pytest.raises(InputError, match="more than 3 operations"):
        told(tmp_path, pickled(dump(GROUPS, [entry("all_reduce")] * 4)))


def test_many_numbers_of_groups_are_paired_in_time():
    numbers = range(0, 200_000, 2)
    known = {n: str(n) for n in numbers}
    began = time.monotonic()
    assert paired([*known.values(), "7"], [*numbers, 7], known) == {**known, 7: "7"}
    assert time.monotonic() - began < 10


def test_of_dumps_that_are_refused_none_is_held_until_all_are_read(store, tmp_path, monkeypatch):
    """An error holds the frames in which it rose, and those all that was read."""
    held, most = weakref.WeakSet(), []

    class Dump(reader._Dump):
        def __init__(self, *given):
            held.add(self)
            most.append(len(held))
            super().__init__(*given)

    monkeypatch.setattr(reader, "_Dump", Dump)
    (tmp_path / "dumps").mkdir()
    for rank in range(6):
        content = pickled(dump({"0": [0, 1], "1": [2, 3]}, [entry("all_reduce", seq=rank)]))
        (tmp_path / "dumps" / f"{rank}.dump").write_bytes(content)
    with pytest.raises(InputError, match="which rank wrote it.*5 other files"):
        ingest([tmp_path / "dumps"], store)
    assert len(most) == 6 and max(most) <= 2
