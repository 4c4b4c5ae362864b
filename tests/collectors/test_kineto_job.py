"""Traces of all ranks of a job, from files to a verdict: no clock is trusted, and nobody is accused on a guess."""

import random

import pytest

from analyzers.flops import padding
from analyzers.ranks import stragglers
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store
from tests.collectors.kineto_traces import collective, kernel, launch, op, step, trace

LATE_US = 40


def job(folder, ranks, *, late=None, steps=24, clocks=None, told=True):
    """A run of traces in which every rank meets the others three times a step, `late` after them."""
    rng, files, correlation = random.Random(1), [], 0
    meetings = [[1000 * s + 100 + 250 * k for k in range(3)] for s in range(steps)]
    arrives = {
        (r, at): at + rng.random() * 3 + LATE_US * (r == late) for s in meetings for at in s for r in range(ranks)
    }
    for rank in range(ranks):
        events = []
        for number, times in enumerate(meetings):
            events.append(step(number, 1000 * number, 1000))
            for at in times:
                begin, end = arrives[rank, at], max(arrives[r, at] for r in range(ranks)) + 30
                correlation += 2
                events += [launch(at - 95, 2, correlation), launch(at - 90, 2, correlation + 1)]
                events.append(kernel("gemm", at - 80, 60 + LATE_US * (rank == late), correlation))
                if told:
                    members, size = str(list(range(ranks))), {"Group size": ranks}
                    events.append(collective("allreduce", begin, end - begin, correlation + 1, members, **size))
                else:
                    events.append(kernel("ncclDevKernel_AllReduce_x", begin, end - begin, correlation + 1, stream=20))
        for e in events:
            e["ts"] = round(e["ts"] + 1e6 + (clocks or {}).get(rank, 0), 3)
        info = {"rank": rank, "world_size": ranks, "backend": "nccl"}
        files.append(folder / f"rank-{rank}.json")
        files[-1].write_bytes(trace(events, distributedInfo=info))
    store = Store(folder / "store")
    run = store.get(ingest(files, store).run_id)
    assert run is not None
    return run


def verdict(run):
    answer = stragglers.analyze(run.tables, run.manifest.facts, parse_options(stragglers.OPTIONS, {}))
    return answer.verdict, [c["rank"] for c in answer.to_dict()["causes"] if c["named"]]


@pytest.mark.parametrize("clocks", [{}, {1: 5000, 3: -7000}])
def test_the_late_rank_is_named_whatever_the_clocks(tmp_path, clocks):
    assert verdict(job(tmp_path, 4, late=2, clocks=clocks)) == ("persistent", [2])


def test_of_ranks_that_arrive_alike_none_is_named(tmp_path):
    assert verdict(job(tmp_path, 4)) == ("none", [])


def test_where_groups_are_not_told_nobody_is_named(tmp_path):
    assert verdict(job(tmp_path, 4, late=2, told=False)) == ("unknown", [])


def test_matrix_products_are_told_by_the_shapes_that_ran(tmp_path):
    shapes = {"dims": [[100, 64], [64, 32]], "types": ["c10::BFloat16"] * 2}
    events = [step(1, 0, 100)]
    for n in range(1, 4):
        events += [op("aten::mm", 10 * n, 5, **shapes), launch(10 * n + 1, 1, n), kernel("gemm", 10 * n + 3, 4, n)]
    file = tmp_path / "trace.json"
    file.write_bytes(trace(events, deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]))
    store = Store(tmp_path / "store")
    run = store.get(ingest([file], store).run_id)
    assert run is not None
    answer = padding.analyze(run.tables, run.manifest.facts, parse_options(padding.OPTIONS, {})).to_dict()
    (row,) = answer["matmuls"]
    assert (row["m"], row["k"], row["n"], row["count"]) == (100, 64, 32, 3)
    assert row["useful_flops"] == 3 * 2 * 100 * 64 * 32
