"""Several dumps of one rank: which are of the newest hang, by their times, their folders and their names."""

import time

import pytest

from analyzers.ranks.blocked import analyze
from analyzers.ranks.blocked.causes import NOT_ENTERED, NOT_KNOWN, SHOWN, UNKNOWN
from analyzers.ranks.blocked.world import LEFT_OUT
from runs.tables import MemoryTables
from tests.analyzers.hung_worlds import tables
from tests.collectors.flight_dumps import T0, dump, entry

RANKS = range(4)
HOUR = 3600 * 10**9


def hang(number, guilty, hours, *, full=False):
    """{rank: dump} of a hang at an all-reduce of this number that one rank did not enter; `full`: what completed is
    listed too."""

    def one(rank):
        waits = rank != guilty
        told = [entry("all_reduce", "0", number, op_id=number, time_created_ns=T0 + hours * HOUR + rank)] * waits
        done = entry("all_reduce", "0", number - 1, op_id=number - 1, time_created_ns=T0 + hours * HOUR - 9)
        told = [{**done, "state": "completed"}, *told] if full else told
        return dump({"0": [*RANKS]}, told, {"0": (number - 1 + waits, -1, number - 1)})

    return {rank: one(rank) for rank in RANKS}


def named(dumps, pattern):
    """The dumps under names with their rank and host, two ranks a host."""
    return {pattern.format(rank=rank, host=rank // 2): told for rank, told in dumps.items()}


def reasons(result):
    rows = result.ranks.dropna(subset=["reason"])
    return dict(zip(rows["rank"], rows["reason"], strict=True))


def told(result):
    return [(c.kind, c.ranks, c.waiting, c.sure) for c in result.causes]


@pytest.mark.parametrize("before", [0, 2], ids=["another rank before", "the same rank before"])
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("hang1_rank_{rank}", "hang2_rank_{rank}"),
        ("second_rank_{rank}", "first_rank_{rank}"),
        ("h/{host}/b_{rank:03}.pkl", "h/{host}/a_{rank:03}.pkl"),
    ],
)
def test_a_rank_that_lists_nothing_is_not_where_it_was_in_an_earlier_hang(tmp_path, before, older, newer):
    both = named(hang(900, before, 0), older) | named(hang(50, 2, 5), newer)
    result = analyze(tables(both, tmp_path), {}, {})
    assert told(result) == [(NOT_ENTERED, (2,), (0, 1, 3), SHOWN)] and result.causes[0].number == 50
    assert "the 4 of" in result.notes[0] and "4 left out" in result.notes[0] and not reasons(result)


def test_where_names_do_not_tell_the_hang_of_an_empty_dump_nothing_is_known_of_its_rank(tmp_path):
    both = named(hang(900, 0, 0), "1{rank}7_rank_{rank}") | named(hang(50, 2, 5), "2{rank}8_rank_{rank}")
    result = analyze(tables(both, tmp_path), {}, {})
    assert result.named == () and [(c.kind, c.ranks) for c in result.causes] == [(NOT_KNOWN, (2,))]
    assert reasons(result) == {2: LEFT_OUT} and result.dumps == 3 and "5 left out" in result.notes[0]


@pytest.mark.parametrize("full", [True, False])
def test_a_rank_that_left_no_dump_of_the_newer_hang_is_not_where_it_was_in_the_earlier(tmp_path, full):
    older, newer = hang(900, 0, 0, full=full), hang(50, 2, 5, full=full)
    del newer[2]
    both = named(older, "hang1_rank_{rank}") | named(newer, "hang2_rank_{rank}")
    result = analyze(tables(both, tmp_path), {}, {})
    assert told(result) == [(NOT_KNOWN, (2,), (0, 1, 3), UNKNOWN)] and reasons(result) == {2: LEFT_OUT}


def test_a_dump_that_is_a_little_older_is_of_the_same_hang_though_an_empty_one_lies_beside_it(tmp_path):
    new = named(hang(50, 2, 5), "2{rank}8_rank_{rank}")
    copies = {f"copy_{name}": one for name, one in new.items()}
    both = named(hang(900, 0, 0), "1{rank}7_rank_{rank}") | new | copies
    result = analyze(tables(both, tmp_path), {}, {})
    assert result.causes[0].waiting == (0, 1, 3) and 0 not in reasons(result)


@pytest.mark.parametrize("guilty", [1, 3])
@pytest.mark.parametrize(
    "pattern",
    [
        "{attempt}/host{{host}}/nccl_trace_rank_{{rank}}",
        "job/{attempt}/h{{host}}/gpu{{rank}}/nccl_trace_rank_{{rank}}",
        "/logs/{attempt}/host{{host}}/tmp/_dump_{{rank}}",
    ],
)
def test_each_host_may_have_a_folder_of_its_own(tmp_path, guilty, pattern):
    old, new = (pattern.format(attempt=f"attempt{n}") for n in (1, 2))
    both = named(hang(50, 4 - guilty, 0, full=True), old) | named(hang(50, guilty, 5, full=True), new)
    result = analyze(with_sources(both, tmp_path), {}, {})
    assert told(result) == [(NOT_ENTERED, (guilty,), tuple(r for r in RANKS if r != guilty), SHOWN)]
    assert "/attempt2 " in result.notes[0].replace("folder ", "folder /") and not reasons(result)


def with_sources(dumps, folder):
    """The tables, with the names as sources where they begin at the root of a file system."""
    read = tables({name.lstrip("/"): one for name, one in dumps.items()}, folder)
    found = {name: read.arrow(name).to_pydict() for name in ("enqueued", "group_progress")}
    rooted = {name for name in dumps if name.startswith("/")}
    for rows in found.values():
        rows["source"] = [f"/{name}" if f"/{name}" in rooted else name for name in rows["source"]]
    return MemoryTables(found)


def test_a_copy_beside_a_dump_does_not_keep_other_hosts_away(tmp_path):
    old, new = (named(hang(50, r, h, full=True), f"a{h}/host{{host}}/rank_{{rank}}") for r, h in ((1, 0), (3, 5)))
    copied = {"a5/host0/rank_0.copy.pkl": new["a5/host0/rank_0"]}
    result = analyze(tables(old | new | copied, tmp_path), {}, {})
    assert told(result) == [(NOT_ENTERED, (3,), (0, 1, 2), SHOWN)]


def test_a_rank_whose_dumps_lie_in_other_folders_is_not_said_to_have_left_none(tmp_path):
    by_host = [named(hang(50, 1, hours, full=True), f"host{{host}}/a{hours}/rank_{{rank}}") for hours in (0, 5)]
    result = analyze(tables(by_host[0] | by_host[1], tmp_path), {}, {})
    assert reasons(result) == {0: LEFT_OUT, 1: LEFT_OUT} and result.named == ()
    assert f"ranks 0 and 1: {LEFT_OUT}." in result.notes


def test_a_large_group_takes_no_time_for_each_rank_of_each_operation(tmp_path):
    ranks, calls = 50_000, range(1, 501)
    opened = [entry("all_reduce", "0", n, op_id=n) for n in calls]
    read = tables({0: dump({"0": [*range(ranks)]}, opened, {"0": (500, -1, 0)})}, tmp_path)
    began = time.process_time()
    result = analyze(read, {}, {})
    assert time.process_time() - began < 6
    assert [(c.kind, c.ranks) for c in result.causes] == [(NOT_KNOWN, tuple(range(1, ranks)))]
