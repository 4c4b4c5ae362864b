"""Who held memory by a recorded history: brute force over random histories, and what is said of it."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from analyzers.device import memory
from analyzers.device.snapshot import growth
from analyzers.device.snapshot.answer import snapshot as answer_of
from analyzers.device.snapshot.stacks import UNRECORDED
from app.questions.memory.snapshot_figure import treemap
from app.questions.memory.words import table, verdict
from catalog.frames import kind_of, named, phase_of
from collectors.base import Rows
from collectors.device import memory_snapshot
from collectors.ingest import ingest
from errors.options import parse_options
from runs.run import facts_of
from runs.store import Store
from runs.tables import MemoryTables
from tests.analyzers.test_memory import sampled
from tests.collectors.reading import source_of
from tests.collectors.snapshots import (
    BACK,
    STEP,
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

MB = 1_000_000


def tables_of(folder, *snapshots, **more):
    """The tables that snapshots become, each a capture."""
    batches = {}
    for number, told in enumerate(snapshots):
        source = source_of(folder, told if isinstance(told, bytes) else dumped(told), f"rank{number}.pickle")
        source = type(source)(source.path, source.name, number)
        for item in memory_snapshot.read(source):
            if isinstance(item, Rows):
                batches.setdefault(item.table, []).append(item.batch)
    columns = {name: pa.Table.from_batches(found).combine_chunks().to_pydict() for name, found in batches.items()}
    for name, rows in more.items():
        old = columns.get(name, {})
        size, added = len(next(iter(old.values()), [])), len(next(iter(rows.values())))
        columns[name] = {c: old.get(c, [None] * size) + rows.get(c, [None] * added) for c in old.keys() | rows.keys()}
    return MemoryTables(columns)


def asked(tables, facts=None, **options):
    result = memory.analyze(tables, facts_of(facts or {}), parse_options(memory.OPTIONS, options))
    json.dumps(result.to_dict(), allow_nan=False)
    return result


@pytest.mark.parametrize("seed", range(30))
def test_who_held_the_peak_by_brute_force(tmp_path, seed):
    made = Allocator(seed)
    made.run(200)
    last = len(made.events) - seed * 3
    first = len(made.events) - last
    told = answer_of(tables_of(tmp_path, made.snapshot(last)))
    levels = [made.levels[first - 1] if first else 0, *made.levels[first:]]
    assert told.peak_bytes == max(levels)
    place = levels.index(max(levels))  # after so many events of the history
    held, since = {}, {}
    for n, e in enumerate(made.events[: first + place]):
        if e["action"] == "alloc":
            held[e["addr"]], since[e["addr"]] = e["size"], n
        elif e["action"] == "free_completed":
            del held[e["addr"]]
    rest = made.events[first + place :]
    lines, blocks, freed = Counter(), Counter(), Counter()
    for addr, size in held.items():
        line = f"code.py:{addr // 512} f" if since[addr] >= first else UNRECORDED
        lines[line] += size
        blocks[line] += 1
        freed[line] += size * any(e["action"] == "free_completed" and e["addr"] == addr for e in rest)
    rows = told.holders
    assert dict(zip(rows["where"], rows["bytes"], strict=True)) == dict(lines)
    assert dict(zip(rows["where"], rows["blocks"], strict=True)) == dict(blocks)
    assert dict(zip(rows["where"], rows["freed_bytes"], strict=True)) == {w: freed[w] for w in lines}
    assert list(rows["bytes"]) == sorted(rows["bytes"], reverse=True)
    assert rows["share"].sum() == pytest.approx(1) and told.tree["bytes"].sum() == told.peak_bytes
    assert told.unrecorded_bytes == told.before_bytes == lines[UNRECORDED] == told.sizes["bytes"].sum()
    assert told.end["reserved"] == told.end["held"] + told.end["rounding"] + told.end["fragmented"] + told.end["cached"]
    assert told.end["held"] == levels[-1] == told.devices["end_bytes"].iloc[0]
    assert told.grew_bytes == levels[told.points.end] - levels[told.points.start]


def steps(rounds, leak=0, peak=900 * MB, base=100 * MB):
    """A program that allocates and frees in rounds, and keeps `leak` bytes more after each."""
    events, held, us = [], [], 0

    def give(addr, size, stack):
        nonlocal us
        us += 10
        events.append(event("alloc", addr, size, us, stack))

    for n in range(rounds):
        give(1 << 20, peak, TRAIN)
        give(1 << 30, 50 * MB, BACK)
        for addr, size in ((1 << 20, peak), (1 << 30, 50 * MB)):
            us += 10
            events.append(event("free_completed", addr, size, us))
        if leak:
            addr = (1 << 33) + n * (1 << 21)
            give(addr, leak, STEP)
            held.append(block(addr, leak, stack=STEP))
    base_block = block(512, base)
    return snapshot([segment(512, 4 * 10**9, [base_block, *held])], events)


def test_a_leak_is_told_where_every_low_point_lies_above_the_last(tmp_path):
    result = asked(tables_of(tmp_path, steps(8, leak=20 * MB)))
    told = result.snapshot
    assert told.points.equal and told.points.steady and told.grows and told.points.rounds == 7
    assert told.grew_bytes == 6 * 20 * MB
    assert verdict(result).endswith(
        "From the first low point to the last what stays in use grew by 120 MB, that of train.py:40 main by 120 MB."
    )
    assert verdict(result).whole.endswith(
        "Every one of 7 low points lies above the one before, as with a leak. Recomputing saved activations would give "
        "back up to 900 MB."
    )
    assert told.growth.iloc[0]["where"] == "train.py:40 main" and told.growth.iloc[0]["grew_bytes"] == 120 * MB


@pytest.mark.parametrize(("rounds", "leak"), [(8, 0), (8, 1 * MB), (2, 60 * MB), (1, 500 * MB)])
def test_no_leak_is_told_of_less_than_the_floor_or_of_few_rounds(tmp_path, rounds, leak):
    result = asked(tables_of(tmp_path, steps(rounds, leak)))
    assert "leak" not in verdict(result).whole
    assert not (result.snapshot.to_dict()["growth"]["steady"])


def test_a_forward_pass_alone_is_no_leak(tmp_path):
    """Layer after layer keeps its activations, each with a peak of its own."""
    events, kept, us = [], [], 0
    for n in range(40):
        us += 10
        events.append(event("alloc", (1 << 30) + n * (1 << 22), 3 * MB, us, TRAIN))
        kept.append(block((1 << 30) + n * (1 << 22), 3 * MB, stack=TRAIN))
        events.append(event("alloc", 1 << 20, 5 * MB, us + 1, TRAIN))
        events.append(event("free_completed", 1 << 20, 5 * MB, us + 2, TRAIN))
    result = asked(tables_of(tmp_path, snapshot([segment(1, 1 << 30, kept)], events)))
    assert not result.snapshot.points.steady and "leak" not in verdict(result).whole


def low_points_by_hand(level):
    """The least place between two rises, walked event by event."""
    least, most = min(level), max(level)
    low, high = least + 0.35 * (most - least), least + 0.65 * (most - least)
    state, since, found, rose = 0, None, [], False
    if least == most:
        return []
    for n, value in enumerate(level):
        if value >= high and state != 1:
            if rose:
                part = level[since:n]
                found.append(since + part.index(min(part)))
            state, since, rose = 1, n, True
        elif value <= low and state != -1:
            state = -1
    return found


@pytest.mark.parametrize("seed", range(50))
def test_low_points_by_brute_force(seed):
    random = np.random.default_rng(seed)
    level = np.abs(np.cumsum(random.integers(-30, 31, random.integers(1, 300))))
    assert growth.low_points(level).tolist() == low_points_by_hand(level.tolist())


def test_the_fullest_device_is_told_and_each_is_in_the_json(tmp_path):
    low = snapshot([segment(512, 512, [block(512, 512, requested=100)])], [event("alloc", 512, 100, 5, TRAIN)])
    high = snapshot([segment(512, 1024, [block(512, 512, requested=300)])], [event("alloc", 512, 300, 5, STEP)])
    result = asked(tables_of(tmp_path, low, high))
    assert result.peak_bytes == 300 and verdict(result).startswith(
        "At the peak 300 bytes of the 1.02 kB that PyTorch had reserved were in use, 100 % of it from train.py:40 main."
    )
    assert [(d["host"], d["peak_bytes"]) for d in result.to_dict()["snapshot"]["devices"]] == [
        ("rank1", 300),
        ("rank0", 100),
    ]
    assert any("Of several devices" in note for note in result.notes)


def test_failures_are_told_with_what_was_asked_and_where(tmp_path):
    result = asked(tables_of(tmp_path, small()))
    assert "An allocation of 1.07 GB at model.py:12 forward failed." in verdict(result)
    (failure,) = result.to_dict()["snapshot"]["refused"]
    assert (failure["asked_bytes"], failure["device_free_bytes"], failure["where"]) == (
        1 << 30,
        4096,
        "model.py:12 forward",
    )


def test_what_failed_on_another_device_is_told_of_it_alone(tmp_path):
    """What the fullest device reserved and did not use was to be given back, as more had been asked of it meanwhile."""
    full = snapshot([segment(512, 10**9, [block(512, 512)])], [event("alloc", 512, 3 * 10**8, 5, TRAIN)])
    full["segments"][0]["blocks"][0] |= {"size": 3 * 10**8, "requested_size": 3 * 10**8}
    result = asked(tables_of(tmp_path, small(), full))
    assert result.snapshot.devices["host"].tolist() == ["rank1", "rank0"] and len(result.snapshot.refused) == 1
    assert result.snapshot.unused_bytes == 7 * 10**8 and result.advice == ()
    assert "An allocation of 1.07 GB at model.py:12 forward on device 0 of rank0 failed." in verdict(result)


def test_the_limit_is_the_chips_and_other_allocators_are_left_out(tmp_path):
    beside = sampled([(0, 1, 3 * 10**9, 0, 77 * 10**9)])
    result = asked(tables_of(tmp_path, small(), **beside), {"chip": "H100 SXM"})
    assert result.peak_bytes == 5900 and set(result.samples["allocator"]) == {"PyTorch, snapshot"}
    assert any("Other allocators" in note for note in result.notes)
    assert result.limit_bytes == 80 * 10**9 and result.parts_bytes == result.peak_bytes
    assert result.padding_bytes is None
    alone = asked(tables_of(tmp_path, small()), {"chip": "H100 SXM"})
    assert "the catalogue" in alone.limit_source and "on a device of" in verdict(alone)


def test_a_snapshot_whose_history_was_not_recorded_tells_what_is_held(tmp_path):
    result = asked(tables_of(tmp_path, snapshot([segment(512, 4096, [block(512, 1024)])])))
    told = result.snapshot
    assert (told.peak_bytes, told.peak_ns, told.reserved_bytes, told.history_s) == (1024, None, 4096, None)
    assert result.peak_bytes is None and told.to_dict()["devices"][0]["peak_bytes"] is None
    assert verdict(result) == (
        "At the snapshot 1.02 kB of the 4.10 kB that PyTorch had reserved were in use, all allocated by calls that "
        "nobody recorded. No history was recorded, so the peak is not known."
    )
    assert told.end == {"reserved": 4096, "held": 1024, "rounding": 0, "fragmented": 3072, "cached": 0}
    assert not told.grows


def test_what_would_give_memory_back(tmp_path):
    loose = steps(3)
    assert {a.what: a.bytes for a in asked(tables_of(tmp_path, loose)).advice} == {"remat": 900 * MB}
    loose["device_traces"][0].insert(1, event("segment_alloc", 512, 10**9, 11))  # more, although so much lay unused
    result = asked(tables_of(tmp_path, loose))
    assert {a.what: a.bytes for a in result.advice} == {"segments": 10**9, "remat": 900 * MB}
    loose["device_traces"][0].append(event("oom", 4096, 10**10, 500, TRAIN))
    result = asked(tables_of(tmp_path, loose))
    assert {a.what: a.bytes for a in result.advice}["segments"] == 4 * 10**9 - result.peak_bytes
    loose["segments"][0]["is_expandable"] = True
    assert {a.what for a in asked(tables_of(tmp_path, loose)).advice} == {"remat"}
    history = [event("alloc", 512, 10**8, 1, TRAIN), event("free_completed", 512, 10**8, 2)]
    assert asked(tables_of(tmp_path, snapshot([segment(1, 10**8, [])], history))).advice == ()


def test_phases_and_lines():
    assert phase_of([]) == "unrecorded"
    as_tuples = [[(f["name"], f["filename"], f["line"]) for f in stack] for stack in (TRAIN, STEP, BACK)]
    assert [phase_of(s) for s in as_tuples] == ["forward", "optimizer", "backward"]
    assert [named(s) for s in as_tuples] == ["model.py:12 forward", "train.py:40 main", "MulBackward0 (backward pass)"]
    recomputed = [("forward", "/home/me/m.py", 1), ("torch::autograd::Engine::thread_main(x)", "??", 0)]
    assert phase_of(recomputed) == "backward"
    assert phase_of([("load", "/home/me/m.py", 1)]) == "elsewhere"
    optimizer = [("step", "/site-packages/torch/optim/adamw.py", 197), ("fit", "/home/me/train.py", 5)]
    closure = [("training_step", "/home/me/lit.py", 31), ("closure", "/site-packages/lightning/automatic.py", 129)]
    assert phase_of([("forward", "/home/me/m.py", 2), *closure, *optimizer]) == "forward"
    assert phase_of([("_init_group", "/site-packages/torch/optim/adamw.py", 130), *optimizer]) == "optimizer"
    assert phase_of([("c10d::ProcessGroupNCCL::allreduce(x)", "??", 0), ("f", "/h/a.py", 2)]) == "communication"
    files = (
        "/v/lib/python3.12/site-packages/x.py",
        r"C:\v\Lib\site-packages\torch\x.py",
        "<frozen runpy>",
        "a.cpp",
        "",
    )
    assert [kind_of(f) for f in files] == ["library", "library", "native", "native", "native"]
    assert [kind_of(f) for f in ("train.py", "/tmp/ipykernel_3/12.py", "<stdin>", r"C:\me\a.py")] == ["own"] * 4


def test_lines_of_different_files_that_read_alike_are_told_apart(tmp_path):
    held = [
        block(512 * n, 512, stack=frames(("f", f"/{folder}/model.py", 7))) for n, folder in enumerate("aab", start=1)
    ]
    told = asked(tables_of(tmp_path, snapshot([segment(512, 4096, held)]))).snapshot
    assert dict(zip(told.holders["where"], told.holders["bytes"], strict=True)) == {
        "/a/model.py:7 f": 1024,
        "/b/model.py:7 f": 512,
    }


def test_snapshots_of_one_name_in_two_folders_are_two_processes(tmp_path):
    files = []
    for rank, size in enumerate((100, 300)):
        files.append(tmp_path / f"rank{rank}" / "snap.pickle")
        files[-1].parent.mkdir()
        history = [event("alloc", 512, size, 5, TRAIN)]
        files[-1].write_bytes(dumped(snapshot([segment(512, 512, [block(512, 512, requested=size)])], history)))
    store = Store(tmp_path / "store")
    told = asked(store.get(ingest([tmp_path / "rank0", tmp_path / "rank1"], store).run_id).tables)
    hosts = told.snapshot.devices["host"].tolist()
    assert len(set(hosts)) == 2 and told.peak_bytes == 300 and len(told.devices) == 2


def test_the_terminal_lists_who_held_most(tmp_path):
    printed = table(asked(tables_of(tmp_path, small())))
    assert printed.rows[0] == ("MulBackward0 (backward pass)", "Backward pass", "3.00 kB", "50.8 %", "1", "3.00 kB")


def test_names_from_a_snapshot_never_become_markup(tmp_path):
    evil = frames(("<img src=x onerror=alert(1)>", "<script>.py", 1))
    result = asked(tables_of(tmp_path, snapshot([segment(512, 512, [block(512, 512, stack=evil)])])))
    drawn = json.dumps(treemap(result.snapshot).to_plotly_json(), default=str)
    assert "<img" not in drawn and "<script" not in drawn and "&lt;img" in drawn
