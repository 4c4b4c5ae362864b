"""Who hangs whom, against jobs in which the faults were planted."""

import random

import pytest

from analyzers.ranks.blocked import MISSING, analyze
from analyzers.ranks.blocked.causes import DIFFER, IN_FLIGHT, LIKELY, NOT_ENTERED, NOT_KNOWN, RING, SHOWN, UNKNOWN
from app.questions.hangs import words
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.hung_worlds import Job, Op, a_job, tables
from tests.collectors.flight_dumps import dump, entry

WORLDS = 25


def asked(dumps, folder):
    result = analyze(tables(dumps, folder), {}, {})
    said = words.verdict(result)
    assert said.strip() and "nan" not in said and words.table(result).rows
    return result


def one_stops(rng, ranks=1):
    """A job in which hosts stop before their end, and something is open for it."""
    while True:
        job = a_job(rng)
        for rank in rng.sample(job.ranks(), min(ranks, len(job.ranks()) - 1)):
            job.stops[rank] = rng.randint(0, len(job.mine(rank)))
        if any(job.open().values()):
            return job


def test_a_job_that_does_not_hang_accuses_nobody(tmp_path):
    rng = random.Random(1)
    for n in range(WORLDS):
        job = a_job(rng)
        result = asked(job.dumps(active=n % 2 == 0), tmp_path)
        assert not result.hung and result.named == () and result.causes == ()
        assert words.verdict(result).startswith("Nothing hangs")


def named_or_not_known(result, rank):
    """Whether the rank is named; where it is not, it is the one of which it cannot be told. Nobody else is either."""
    told = {(c.kind, r) for c in result.causes for r in c.ranks}
    assert result.named == ((rank,) if (NOT_ENTERED, rank) in told else ())
    assert {r for _, r in told} == {rank}
    assert (NOT_ENTERED, rank) in told or told == {(NOT_KNOWN, rank)}
    return (NOT_ENTERED, rank) in told


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("streams", [True, False])
def test_one_host_that_stops_is_named_and_nobody_else(tmp_path, active, streams):
    rng, named = random.Random(2), 0
    for _ in range(WORLDS):
        job = one_stops(rng)
        job.streams = streams
        waiting = {r for r, mine in job.open().items() if mine}
        if not waiting:
            continue
        (rank,) = job.stops
        result = asked(job.dumps(active=active), tmp_path)
        named += named_or_not_known(result, rank)
        assert {r for c in result.causes for r in c.held} == waiting  # it alone is to blame: all that hangs hangs on it
        for cause in result.causes:
            assert {*cause.waiting} <= waiting and (cause.sure == SHOWN) <= (cause.doubt == "")
            assert _lacked(job, rank, cause), (cause, job)
    assert named > WORLDS * 0.6


def _lacked(job, rank, cause):
    """Operations of the cause's group that the rank did not enter and just those ranks have open."""
    open_ = job.open()
    return [
        n
        for n in job.mine(rank)[job.stops[rank] :]
        if job.program[n].group == cause.group and {*cause.waiting} == {r for r in open_ if n in open_[r]}
    ]


@pytest.mark.parametrize("ranks", [2, 3])
def test_of_several_that_stop_only_these_are_named(tmp_path, ranks):
    rng = random.Random(4)
    for _ in range(WORLDS):
        job = one_stops(rng, ranks)
        result = asked(job.dumps(active=rng.random() < 0.5), tmp_path)
        assert {*result.named} <= {*job.stops}, job
        assert {r for c in result.causes if c.kind in (NOT_ENTERED, NOT_KNOWN) for r in c.ranks} <= {*job.stops}
        assert result.causes and {c.kind for c in result.causes} <= {NOT_ENTERED, NOT_KNOWN}
        for rank in result.named:
            lacking = {*job.mine(rank)[job.stops[rank] :]}
            assert any(lacking & {*mine} for mine in job.open().values())  # somebody does wait for it


@pytest.mark.parametrize("status", [True, False])
def test_a_rank_without_a_dump_is_not_accused_and_neither_is_another(tmp_path, status):
    rng = random.Random(5)
    for _ in range(WORLDS):
        job = one_stops(rng)
        (rank,) = job.stops
        dumps = job.dumps(status=status)
        del dumps[rank]
        result = asked(dumps, tmp_path)
        assert result.named == (), job
        silent = result.ranks[result.ranks["reason"].notna()]["rank"].tolist()
        assert rank in silent
        if result.hung:
            assert {c.kind for c in result.causes} == {NOT_KNOWN} and any(rank in c.ranks for c in result.causes)
            assert not status or {r for c in result.causes for r in c.ranks} == {rank}


@pytest.mark.parametrize("status", [True, False])
def test_an_empty_file_is_a_rank_of_which_nothing_is_known(tmp_path, status):
    rng = random.Random(6)
    for _ in range(WORLDS):
        job = one_stops(rng)
        (rank,) = job.stops
        result = asked({**job.dumps(status=status), rank: b""}, tmp_path)
        assert result.named == ()
        reason = result.ranks.set_index("rank").loc[rank, "reason"]
        assert reason == "the file is empty"


def test_without_progress_nobody_but_the_one_is_named(tmp_path):
    """Older dumps state no progress: a rank that lists nothing may have completed all, or not have entered it."""
    rng, named = random.Random(7), 0
    for n in range(WORLDS):
        job = one_stops(rng)
        result = asked(job.dumps(status=False, active=n % 2 == 0), tmp_path)
        assert {*result.named} <= {*job.stops}, job
        (rank,) = job.stops
        named += named_or_not_known(result, rank)
    assert named > WORLDS // 4


def test_where_all_entered_nobody_is_accused(tmp_path):
    rng, seen = random.Random(8), 0
    for _ in range(WORLDS):
        job = a_job(rng)
        job.stuck = {rng.randrange(len(job.program))}
        (stuck,) = job.stuck
        result = asked(job.dumps(active=rng.random() < 0.5), tmp_path)
        assert result.named == (), job
        enqueued, _ = job.run()
        if all(stuck in enqueued[r] for r in job.members(stuck)):
            seen += 1
            assert [c.kind for c in result.causes] == [IN_FLIGHT]
            assert {*result.causes[0].ranks} == {*job.members(stuck)}
    assert seen > WORLDS // 2


def test_a_device_that_stops_telling_is_named_and_nobody_else(tmp_path):
    rng, seen = random.Random(9), 0
    for _ in range(WORLDS):
        job = a_job(rng, p2p=False)
        rank = rng.choice(job.ranks())
        mine = job.mine(rank)
        if not mine:
            continue
        job.dies = {rank: rng.randrange(len(mine))}
        job.stops = {rank: rng.randint(job.dies[rank] + 1, len(mine))}
        active = rng.random() < 0.5
        result = asked(job.dumps(active=active), tmp_path)
        enqueued, done = job.run()
        unseen = [n for n in enqueued[rank][job.dies[rank] :] if n in done and len(job.members(n)) > 1]
        assert {*result.named} <= {rank}, job
        for cause in result.causes:
            assert cause.unseen <= len(unseen)
        seen += active and result.named == (rank,) and bool(unseen)
        if unseen and not active:  # peers list what they completed
            assert result.named == (rank,) and max(c.unseen for c in result.causes) == len(unseen)
    assert seen


def test_an_operation_that_one_rank_skipped(tmp_path):
    """Its numbers lag by one: the calls differ, or it seems not to have entered the last; the others are not named."""
    rng, differ = random.Random(10), 0
    for _ in range(WORLDS):
        job = a_job(rng, p2p=False)
        rank = rng.choice(job.ranks())
        if len(job.mine(rank)) < 2 or len(job.ranks()) < 3:
            continue
        job.skips = {rank: {rng.choice(job.mine(rank))}}
        result = asked(job.dumps(), tmp_path)
        assert {*result.named} <= {rank}, job
        differ += any(c.kind == DIFFER for c in result.causes)
    assert differ


def both_orders(first, second):
    """Two ranks, two groups of both; each rank has enqueued one operation, in the group told."""

    def one(group):
        status = {name: (1, -1, -1) if name == group else (-1, -1, -1) for name in ("0", "3")}
        return dump({"0": [0, 1], "3": [0, 1]}, [entry("all_reduce", group, 1, pg_id=int(group))], status)

    return {0: one(first), 1: one(second)}


def test_two_orders_are_a_ring_and_nobody_alone_is_at_fault(tmp_path):
    result = asked(both_orders("0", "3"), tmp_path)
    assert [(c.kind, c.ranks, c.sure) for c in result.causes] == [(RING, (0, 1), UNKNOWN)]
    assert result.named == () and "wait for each other in a ring" in words.verdict(result)


def differing(call="all_reduce", **other):
    """Three ranks with one operation open, of which rank 0 tells otherwise."""
    one, usual = entry(call, "0", 7, **other), entry("all_reduce", "0", 7)
    return {rank: dump({"0": [0, 1, 2]}, [usual if rank else one], {"0": (7, -1, 6)}) for rank in (0, 1, 2)}


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"call": "_all_gather_base"}, "kind"),
        ({"kinds": ["Float"]}, "element type"),
        ({"sizes": [[4, 9]]}, "size"),
    ],
)
def test_calls_that_differ_under_one_number(tmp_path, other, what):
    result = asked(differing(**other), tmp_path)
    assert [(c.kind, c.ranks, c.differs, c.sure) for c in result.causes] == [(DIFFER, (0,), what, LIKELY)]
    assert "calls otherwise than its peers" in words.verdict(result)


def test_a_rank_that_has_not_come_to_where_calls_differ_is_no_end(tmp_path):
    groups = {"0": [0, 1, 2, 3]}
    done = entry("all_reduce", seq=1, state="completed")
    dumps = {r: dump(groups, [done, entry("broadcast" if r == 0 else "all_reduce", seq=2)]) for r in (0, 1, 2)}
    result = asked({**dumps, 3: dump(groups, [done])}, tmp_path)
    assert [(c.kind, c.ranks, c.held) for c in result.causes] == [(DIFFER, (0,), (0, 1, 2))]


def test_sizes_of_an_all_to_all_may_differ(tmp_path):
    dumps = {
        rank: dump({"0": [0, 1, 2]}, [entry("all_to_all", "0", 7, sizes=[[rank + 1]])], {"0": (7, -1, 6)})
        for rank in (0, 1, 2)
    }
    assert [c.kind for c in asked(dumps, tmp_path).causes] == [IN_FLIGHT]


def test_operations_launched_as_one_have_the_state_of_their_launch(tmp_path):
    groups = {"0": [0, 1]}
    singles = [entry("send 0->1", "0", 3, p2p=5), entry("recv 0<-1", "0", 3, p2p=5)]
    launch = entry("coalesced", "0", 3, p2p=5)
    other = dump(groups, [], {"0": (9, -1, 9)})
    done = dump(groups, [*singles, {**launch, "state": "completed"}], {"0": (5, -1, 5)})
    assert not asked({0: done, 1: other}, tmp_path).hung
    left_out = asked({0: dump(groups, singles, {"0": (5, -1, 5)}), 1: other}, tmp_path)
    assert not left_out.hung and "launched as one" in " ".join(left_out.notes)
    open_ = asked({0: dump(groups, [*singles, launch], {"0": (5, -1, 4)}), 1: other}, tmp_path)
    assert open_.hung and [(c.kind, c.ranks) for c in open_.causes] == [(NOT_KNOWN, (1,))]  # by one other alone


def gloo(last, over):
    """A dump as Gloo leaves it: nothing but that an operation is over changes, and its groups are not listed."""
    calls = [
        entry("x", "0", n, profiling_name="gloo:all_reduce", retired=n <= over, op_id=2 * n) for n in range(1, last + 1)
    ]
    return dump({}, calls, {"0": (last, -1, over)})


def test_what_is_over_without_a_state_is_not_open(tmp_path):
    assert not asked({rank: gloo(9, 9) for rank in range(3)}, tmp_path).hung
    one_lacks = {0: gloo(9, 8), 1: gloo(9, 8), 2: gloo(8, 8)}
    result = asked(one_lacks, tmp_path)
    assert result.named == (2,) and result.unfinished == 2 and "number 9" in words.verdict(result)


def test_what_is_over_and_a_rank_did_not_enter_has_failed(tmp_path):
    result = asked({0: gloo(9, 9), 1: gloo(9, 9), 2: gloo(8, 8)}, tmp_path)
    assert result.named == (2,) and result.unfinished == result.timed_out == 2
    assert any("failed" in note for note in result.notes)


def test_dumps_that_list_no_operations_tell_nothing(tmp_path):
    silent = {rank: dump({"0": [0, 1]}, [], {"0": (5 + rank, -1, 4)}) for rank in (0, 1)}
    result = asked(silent, tmp_path)
    assert not result.hung and result.dumps == 0 and "cannot be told" in words.verdict(result)


def test_two_sets_of_dumps_are_not_mixed(tmp_path):
    job = Job({"0": [0, 1, 2]}, [Op("0", "all_reduce") for _ in range(4)], stops={1: 2})
    old, new = tables(a_job(random.Random(12)).dumps(active=False), tmp_path), tables(job.dumps(), tmp_path)

    def moved(one, folder):
        return {
            name: {c: v if c != "source" else [f"{folder}/{x}" for x in v] for c, v in rows.to_pydict().items()}
            for name in ("enqueued", "group_progress")
            if (rows := one.arrow(name)).num_rows
        }

    first, second = moved(old, "first"), moved(new, "second")
    for rows in (second["enqueued"],):
        rows["enqueued_ns"] = [n + 10**12 for n in rows["enqueued_ns"]]
    both = {name: {c: first.get(name, {}).get(c, []) + second[name][c] for c in second[name]} for name in second}
    result = analyze(MemoryTables(both), {}, {})
    assert result.named == tuple(job.stops) and "folder second" in result.notes[0]


def test_a_run_without_dumps_says_how_to_get_them():
    with pytest.raises(QuestionError, match="no dump of a flight recorder"):
        analyze(MemoryTables({}), {}, {})


def test_places_tell_how_far_behind(tmp_path):
    job = Job({"0": [0, 1, 2]}, [Op("0", "all_reduce") for _ in range(5)], stops={1: 2})
    result = asked(job.dumps(), tmp_path)
    rows = result.places.set_index("rank")
    assert rows["behind"].tolist() == [0, 3, 0] and rows["missing"].tolist() == [0, 3, 0]
    assert rows.loc[1, "state"] == MISSING and rows.loc[0, "unfinished"] == 3
    assert "Rank 1 did not enter all_reduce number 3 of GROUP_0, for which ranks 0 and 2 wait" in words.verdict(result)


def test_names_of_groups_that_are_no_numbers(tmp_path):
    dumps = Job({"0": [0, 1, 2]}, [Op("0", "all_reduce")] * 3, stops={2: 1}).dumps()
    for told in dumps.values():
        told["pg_config"] = {"ab": {**told["pg_config"]["0"], "name": "ab"}}
        for one in told["entries"]:
            one["process_group"] = ("ab", "default_pg")
    result = asked(dumps, tmp_path)
    assert result.named == (2,) and result.causes[0].sure == LIKELY  # its own number of the group is not tied to a name
