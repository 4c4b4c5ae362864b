"""A real trace of Chakra, and numbers that were computed from it independently."""

import json
import tarfile
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.device import chakra
from errors import InputError
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
MORE, ORACLE = SHARED / "data" / "more", SHARED / "oracles" / "more" / "chakra_et.json"

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="no traces of Chakra beside the project")


def test_a_trace_of_a_job(tmp_path):
    archive = "chakra_et/chakra_feeder_tests.tar.gz"
    [(member, truth)] = json.loads(ORACLE.read_text())[archive].items()
    with tarfile.open(MORE / archive) as files:
        files.extract(member, tmp_path, filter="data")
    source = Source(tmp_path / member, "chakra.0.et")
    assert chakra.sniff(source) == 0.9
    ops = read(chakra, source).rows["ops"]
    assert sum(op["count"] for op in ops) == truth["messages"] - 1  # the first tells of the whole
    assert sum(op["total_ns"] for op in ops) == truth["duration_micros_sum"] * 1000
    nccl = sum(op["count"] for op in ops if op["category"] == "collective")
    on_host = sum(op["count"] for op in ops if op["op"].startswith("c10d::"))
    assert nccl + on_host == truth["node_types"]["7"]


def test_one_that_was_generated_is_refused():
    name = "chakra_et/astra_ring_allreduce.0.et"
    nodes = json.loads(ORACLE.read_text())[name]["messages"] - 1
    source = Source(MORE / name, name)
    assert chakra.sniff(source) == 0.9
    with pytest.raises(InputError, match=f"{nodes} nodes"):
        read(chakra, source)
