"""Dumps as PyTorch writes them of calls with several tensors, of dumps of what is open alone, and of older writers: who
is missing is named, and nobody else."""

import pytest

from analyzers.ranks.blocked.causes import DIFFER, NOT_ENTERED, NOT_KNOWN, UNSEEN
from tests.analyzers.test_blocked import asked
from tests.collectors.flight_dumps import dump, entry

FOUR = {"0": [0, 1, 2, 3]}
COALESCED = ("reduce_scatter_tensor_coalesced", "allreduce_coalesced", "all_gather_into_tensor_coalesced")


def causes(result):
    return [(c.kind, c.ranks) for c in result.causes]


@pytest.mark.parametrize("call", [*COALESCED, "_reduce_scatter_base"])
def test_a_rank_that_enters_with_a_larger_bucket_is_told(tmp_path, call):
    dumps = {}
    for rank in range(4):
        sizes = [[4000 if rank < 3 else 8000], [4000]]
        done = entry("all_reduce", "0", 4, op_id=4, state="completed")
        dumps[rank] = dump(FOUR, [done, entry(call, "0", 5, op_id=5, sizes=sizes)], {"0": (5, -1, 4)})
    assert causes(asked(dumps, tmp_path)) == [(DIFFER, (3,))]


@pytest.mark.parametrize("call", [*COALESCED, "_reduce_scatter_base"])
def test_a_device_that_stopped_is_the_one_that_did_not_complete(tmp_path, call):
    dumps = {}
    for rank in range(4):
        last = entry(call, "0", 5, op_id=5, state="completed" if rank else "scheduled")
        done = entry("all_reduce", "0", 4, op_id=4, state="completed")
        dumps[rank] = dump(FOUR, [done, last], {"0": (5, -1, 5 if rank else 4)})
    assert causes(asked(dumps, tmp_path)) == [(UNSEEN, (0,))]


@pytest.mark.parametrize("sizes", [([[1000]], [[777]]), ([[1000]], [[1000]])])
def test_operations_that_are_launched_as_one_hide_nobody(tmp_path, sizes):
    dumps = {}
    for rank in range(4):
        of_launch = [entry("_all_gather_base", "0", 2, sizes=s, op_id=2 + n) for n, s in enumerate(sizes)]
        of_launch.append(entry("coalesced", "0", 2, sizes=[], op_id=4))
        first = entry("all_reduce", "0", 1, state="completed", op_id=1)
        mine = [first, *of_launch] if rank != 3 else [first]
        dumps[rank] = dump(FOUR, mine, {"0": (2 if rank != 3 else 1, -1, 1)})
    result = asked(dumps, tmp_path)
    assert result.named == (3,) and causes(result) == [(NOT_ENTERED, (3,))]


def test_who_says_that_it_completed_an_operation_is_not_accused_of_it(tmp_path):
    """Dumps of what is open alone: the devices of ranks 0 to 3 stopped telling, the others completed number 100."""
    dumps = {}
    for rank in range(8):
        open_ = [entry("all_reduce", "0", 100, op_id=100)] if rank < 4 else []
        dumps[rank] = dump({"0": [*range(8)]}, open_, {"0": (100, -1, 99 if rank < 4 else 100)})
    result = asked(dumps, tmp_path)
    assert result.named == () and not any(kind == NOT_ENTERED for kind, _ in causes(result))


def test_who_went_on_until_its_entry_was_overwritten_is_not_accused(tmp_path):
    dumps = {}
    for rank in range(3):
        entries = [entry("all_reduce", "0", n, state="completed", op_id=n) for n in range(1, 5)]
        entries += [entry("all_reduce", "0", 5, op_id=5)] if rank != 2 else []
        dumps[rank] = dump(FOUR, entries, {"0": (5 if rank != 2 else 4, -1, 4)})
    others = [entry("all_reduce", "9", n, pg_id=1, state="completed", op_id=n) for n in range(501, 900)]
    dumps[3] = dump({**FOUR, "9": [3, 4]}, others, {"0": (5, -1, 4), "1": (899, -1, 899)})
    dumps[4] = dump({"9": [3, 4]}, [{**e, "pg_id": 0} for e in others], {"0": (899, -1, 899)})
    assert asked(dumps, tmp_path).named == (2,)


def test_a_number_among_sends_is_none_of_collectives(tmp_path):
    """All completed number 100 but for rank 3, whose device stopped; then ranks 0 and 1 sent, their seventh time."""
    dumps = {}
    for rank in range(4):
        stated = (7, -1, 7) if rank < 2 else (100, -1, 100 if rank == 2 else 99)
        open_ = [entry("all_reduce", "0", 100, op_id=100)] if rank == 3 else []
        dumps[rank] = dump(FOUR, open_, {"0": stated})
    assert not {0, 1, 2} & {*asked(dumps, tmp_path).named}


def test_where_no_dump_lists_the_members_nobody_can_say_that_none_is_missing(tmp_path):
    dumps = {}
    for rank in range(3):
        dumps[rank] = dump({"0": [0]}, [entry("all_reduce", "0", 50, op_id=50)], {"0": (50, -1, 49)}, version="2.0")
        dumps[rank]["pg_config"]["0"]["ranks"] = "[]"
    result = asked(dumps, tmp_path)
    assert [kind for kind, _ in causes(result)] == [NOT_KNOWN]
