"""Logs of several pods as stern prints them."""

import gzip

import pytest

from runs.tables import frame
from tests.collectors.test_log_export import run_of

STEP = "completed step: {n}, seconds: 1.0{w}, TFLOP/s/device: 100.000, loss: 2.000"
ITERATION = (
    " iteration {n:8}/     100 | consumed samples: 8 | elapsed time per iteration (ms): 10{w}0.0 "
    "| global batch size: 8 | lm loss: 2.5 |"
)
THROUGHPUT = (
    "INFO 03-04 05:06:{n:02} [loggers.py:123] Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg generation "
    "throughput: 50.0 tokens/s, Running: 10 reqs, Waiting: 0 reqs, GPU KV cache usage: 10.0%"
)
PREFIXES = {
    "a set's": ("train-{w} main ", "train-{w}"),
    "a job's": ("train-0-{w}-x7k2p jax-tpu ", "train-0-{w}-x7k2p"),
    "with times": ("train-{w} main 2026-03-04T05:06:{n:02}.1{w}Z ", "train-{w}"),
    "of all namespaces": ("team train-{w} main ", "train-{w}"),
    "coloured": ("\x1b[32mtrain-{w}\x1b[0m \x1b[92mmain\x1b[0m ", "train-{w}"),
}


def printed(prefix, line, pods=2, lines=20):
    head = "+ train-0 › main\n"
    return head + "".join(f"{prefix}{line}\n".format(n=n, w=w) for n in range(lines) for w in range(pods))


@pytest.mark.parametrize("line", [STEP, ITERATION])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_lines_are_of_their_pods(folder, store, prefix, line):
    before, pod = PREFIXES[prefix]
    steps = frame(run_of(folder, store, printed(before, line), "job.log").tables, "steps", ["host", "step", "attempt"])
    assert steps["host"].value_counts().to_dict() == {pod.format(w=w): 20 for w in (0, 1)}
    assert set(steps["attempt"]) == {0} and sorted(set(steps["step"])) == list(range(20))


def test_servers_are_told_apart(folder, store):
    run = run_of(folder, store, printed("vllm-{w} vllm ", THROUGHPUT, 3), "server.log")
    assert set(frame(run.tables, "engine", ["replica"])["replica"]) == {f"vllm-{w}/0" for w in range(3)}


@pytest.mark.parametrize("line", ["{n} steps done", "worker-{w} main", "train-{w} {n} " + STEP])
def test_what_begins_otherwise_stays_as_it_is(folder, store, line):
    text = "".join(f"{line}\n".format(n=n, w=0) for n in range(5)) + "".join(
        f"{STEP}\n".format(n=n, w=0) for n in range(20)
    )
    steps = frame(run_of(folder, store, text, "job.log").tables, "steps", ["host"])
    assert steps["host"].isna().all()


@pytest.mark.parametrize("line", ["worker-{w} " + STEP, "rank-{w}" + ITERATION, "2026-03-04 info " + STEP])
def test_words_of_a_line_behind_a_name_are_no_container(folder, store, line):
    steps = frame(run_of(folder, store, printed("", line), "job.log").tables, "steps", ["step", "host"])
    assert sorted(steps["step"]) == [n for n in range(20) for _ in (0, 1)] and steps["host"].isna().all()


def test_one_that_was_packed_and_cut_off_is_read_as_far_as_it_goes(folder, store):
    packed = gzip.compress(printed("train-{w} main ", STEP, lines=3000).encode())
    run = run_of(folder, store, packed[: len(packed) // 2], "job.log.gz")
    steps = frame(run.tables, "steps", ["host"])
    assert len(steps) > 1000 and set(steps["host"]) == {"train-0", "train-1"}
    assert any("the rest: it cannot be read" in warning for warning in run.manifest.warnings)
