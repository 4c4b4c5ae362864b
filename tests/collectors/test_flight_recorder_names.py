"""Which files are dumps of the flight recorder: by what they hold, where a world of many ranks fills their beginning,
and by their names."""

import gzip
import json
import pickle

import pytest

from collectors.device import flight_recorder
from tests.collectors.flight_dumps import as_json, dump, entry, pickled
from tests.collectors.reading import source_of

WORLD = 16_384  # ranks whose list is longer than what is looked at
LARGE = dump({"0": [*range(WORLD)]}, [entry("all_reduce")], {"0": (1, -1, 0)})
WORDS = "version pg_config desc ranks: "


def sure(tmp_path, data, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    return flight_recorder.sniff(source_of(tmp_path, data, name))


@pytest.mark.parametrize("name", ["nccl_trace_rank_0.pkl", "nccl_trace_rank_node07_0", "_dump_0.bin", "whatever"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_dump_of_a_large_world_is_known_by_its_groups(tmp_path, name, protocol):
    assert sure(tmp_path, pickled(LARGE, protocol), name) == 0.95
    assert sure(tmp_path, gzip.compress(pickled(LARGE, protocol)), name + ".gz") == 0.95


def test_json_of_a_large_world_that_lists_no_operation_is_known(tmp_path):
    assert sure(tmp_path, as_json({**LARGE, "entries": []}), "x.json") == 0.95


@pytest.mark.parametrize(
    "other",
    [
        {"log": WORDS + "x" * 70_000},
        {"version": 1, "desc": "a model", "ranks": [*range(WORLD)], "words": WORDS},
        {"version": 1, "pg_config": {"backend": "nccl"}, "ranks": [0, 1]},
    ],
    ids=["a text with the words", "other keys", "groups without what they hold"],
)
def test_another_pickle_with_such_words_is_not_taken_for_one(tmp_path, other):
    for protocol in (2, 4):
        assert sure(tmp_path, pickle.dumps(other, protocol), "x.pkl") == 0
    assert sure(tmp_path, json.dumps(other).encode(), "x.json") == 0


@pytest.mark.parametrize(
    "name",
    [
        "nccl_trace_rank_0.pkl",
        "nccl_trace_rank_12.json.gz",
        "a/nccl_trace_rank_node07_0",
        "nccl_trace_rank_gpu-3.rack_b_117.pickle",
        "comm_lib_trace_rank_3.bin",
        "comm_traces/rank_5.gz",
        "_dump_4.gz",
    ],
)
def test_an_empty_file_with_a_name_that_tells_the_rank_is_a_rank_that_left_nothing(tmp_path, name):
    assert sure(tmp_path, b"", name) == 0.6 and flight_recorder.apart(name) is not None


@pytest.mark.parametrize("name", ["core_dump_4.txt", "dump_4.pkl", "nccl_trace_rank_node07", "trace_rank_0.pkl"])
def test_an_empty_file_with_another_name_is_not_one(tmp_path, name):
    assert sure(tmp_path, b"", name) == 0
