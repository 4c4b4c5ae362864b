"""Which collector gets a file whose beginning tells little: deep logs, marks of encodings, lines of other programs."""

import gzip

import pytest

from collectors.ingesting.recognise import DEEP_BYTES, recognise
from collectors.ingesting.unpack import SafeSource
from collectors.training import job_log, maxtext, megatron, mllog, nvrx
from tests.collectors.reading import read
from tests.collectors.test_maxtext import steps
from tests.collectors.test_megatron import START, old
from tests.collectors.test_mllog import SUBMITTED

NOISE = "NCCL INFO channel 3 connected to the next, nothing of interest to anybody here\n"
QUIET = "bye\n" * 30_000  # no step at the end of the file either
CYCLE = "[ft] - Cycle: 0 Event: worker_start_started Node: n7_1_0 Rank: 0 Time: 2026-03-04 05:06:07.1 UTC\n"


def recognised(folder, text, name="out.log"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "scratch").mkdir(exist_ok=True)
    return recognise(SafeSource(path, name), folder / "scratch")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("noise_bytes", [110_000, 5_000_000])
@pytest.mark.parametrize(
    ("collector", "text", "table"),
    [
        (maxtext, steps(*range(20)), "steps"),
        (megatron, "".join(old(n, 1000.0) for n in range(1, 5)), "steps"),
        (mllog, SUBMITTED, "lifecycle"),
    ],
    ids=["maxtext", "megatron", "mllog"],
)
def test_lines_before_the_first_step(tmp_path, collector, text, table, noise_bytes, packed):
    whole = (NOISE * (noise_bytes // len(NOISE)) + text + QUIET).encode()
    best = recognised(tmp_path, gzip.compress(whole, 1) if packed else whole)
    assert best.collector is collector and read(collector, best.source).rows[table]


def test_what_lies_deeper_is_not_looked_for(tmp_path):
    best = recognised(tmp_path, NOISE * (DEEP_BYTES // len(NOISE) + 1) + steps(0) + QUIET)
    assert best.score < 0.5 or best.collector is job_log


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("packed", [False, True])
def test_byte_order_marks(tmp_path, encoding, packed):
    data = ("Config param model_name: llama2-7b\n" + steps(*range(20))).encode(encoding)
    best = recognised(tmp_path, gzip.compress(data) if packed else data)
    got = read(best.collector, best.source)
    assert got.column("steps", "step") == list(range(20)) and got.facts["model"] == "llama2-7b"


@pytest.mark.parametrize("noise", [0, 2_000])
def test_restart_cycles_within_a_log_leave_it_to_its_program(tmp_path, noise):
    best = recognised(tmp_path, CYCLE + NOISE * noise + START + old(1, 1000.0) + QUIET)
    assert best.collector is megatron
    assert recognised(tmp_path, CYCLE + NOISE * noise).collector is nvrx


def test_a_source_comes_back_fresh(tmp_path):
    assert "head" not in vars(recognised(tmp_path, steps(0)).source)


NAKED = [steps(n).rstrip("\n") for n in (*range(30), *range(20, 50))]  # a restart within
VLLM = [
    line
    for n in range(20)
    for line in (
        f"INFO 03-04 12:00:{n:02d} [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation "
        "throughput: 2.0 tokens/s, Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 50.0%",
        f"WARNING 03-04 12:00:{n:02d} [scheduler.py:1] Sequence group {n} is preempted by PreemptionMode.RECOMPUTE "
        f"mode because there is not enough KV cache space. total_num_cumulative_preemption={n}",
    )
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", [NAKED, VLLM], ids=["steps without times", "a server's log"])
def test_lines_newest_first_are_read_from_the_last_to_the_first(tmp_path, text, end, packed):
    """A year that is missing, or times altogether, do not hide which way a log stands."""
    written, turned = (end.join(lines) + end for lines in (text, text[::-1]))
    forwards = recognised(tmp_path, written)
    rows = read(forwards.collector, forwards.source).rows
    assert not forwards.notes
    backwards = recognised(tmp_path, gzip.compress(turned.encode()) if packed else turned)
    assert backwards.collector is forwards.collector and "newest first" in backwards.notes[0]
    name = "steps" if text is NAKED else "engine"
    got = read(backwards.collector, backwards.source).rows[name]
    assert [row | {"offset": 0} for row in got] == [row | {"offset": 0} for row in rows[name]]


@pytest.mark.parametrize(
    "text",
    [
        "".join(steps(n) for n in (5, 4, 3, 5, 6, 7, 8, 9, 10)),  # restarts, and no other way to see them
        "".join(
            f"2026-03-04T12:00:{50 - n if n < 20 else n:02d}Z {steps(n)}" for n in range(60)
        ),  # a clock that was off
        "".join(f"2026-03-04T12:00:{n // 3:02d}.{9 - n % 3}Z host {n % 3} {steps(n // 3)}" for n in range(90)),
    ],
    ids=["restarts", "clock", "hosts"],
)
def test_what_falls_now_and_then_stays_as_it_stands(tmp_path, text):
    best = recognised(tmp_path, text)
    assert best.source.content == best.source.path and not best.notes
