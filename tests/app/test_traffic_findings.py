"""What devices copy and send while they compute nothing, and what a short profile of a long job tells of all of it."""

import json

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from collectors.ingest import ingest
from runs.store import Store
from tests.collectors.kineto_traces import BASE, collective, event, kernel, launch, op, step, trace

STEPS, STEP_US = 6, 1000


def stored(folder, *files):
    store = Store(folder / "store")
    run = store.get(ingest(list(files), store).run_id)
    assert run is not None
    return run


def told(place, run, **options):
    return ask(FINDINGS, run, options, place.registry)


def copying(name, dur_us):
    """A step that copies and then computes."""

    def events(n, at):
        copy = event("gpu_memcpy", name, at + 5, dur_us, 0, 7, device=0, stream=7, correlation=2 * n, bytes=1 << 20)
        left = STEP_US - 20 - dur_us
        return [
            launch(at + 1, 2, 2 * n, "cudaMemcpyAsync"),
            copy,
            launch(at + 3, 1, 2 * n + 1),
            kernel("k", at + 10 + dur_us, left, 2 * n + 1),
        ]

    return events


def written(folder, events, ranks=1, steps=STEPS, name="rank"):
    files = []
    for rank in range(ranks):
        rows = [op("aten::a", 0, 1)]
        for n in range(steps):
            rows += [step(n, STEP_US * n, STEP_US - 10), *events(n, STEP_US * n)]
        info = {"rank": rank, "world_size": ranks, "backend": "nccl"}
        files.append(folder / f"{name}-{rank}.json")
        files[-1].write_bytes(trace(rows, distributedInfo=info))
    return files


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "host_to_device"),
        ("Memcpy DtoH (Device -> Pinned)", "device_to_host"),
        ("Memcpy DtoD (Device -> Device)", "exposed_copies"),
    ],
)
def test_copies_that_nothing_covers_are_told_by_their_way(place, tmp_path, name, cause):
    (first, *_) = (found := told(place, stored(tmp_path, *written(tmp_path, copying(name, 400))))).findings
    copied_s = STEPS * 400e-6
    assert first.cause == cause and name in first.where.operations
    assert first.evidence[0].value == pytest.approx(copied_s, rel=0.01)
    assert first.gain.low < first.gain.likely <= first.gain.high == pytest.approx(copied_s, rel=0.01)
    others = {"host_to_device", "device_to_host", "exposed_copies"} - {cause}
    assert not others & {f.cause for f in found.findings} and others <= {r.cause for r in found.ruled_out}


def test_copies_can_be_hidden_behind_computing_and_no_further(place, tmp_path):
    """What 900 of 1,000 microseconds copy hides behind the 80 that compute."""
    (first, *_) = (found := told(place, stored(tmp_path, *written(tmp_path, copying("Memcpy HtoD", 900))))).findings
    assert "(7 % to 75 %; " in str(FINDINGS.verdict(found)), "a headline without its range would promise all of it"
    assert first.gain.low == pytest.approx(0.9 * STEPS * 80e-6, rel=0.05) and first.gain.likely > 5 * first.gain.low


def test_copies_beside_computing_cost_nothing(place, tmp_path):
    def events(n, at):
        copy = event("gpu_memcpy", "Memcpy HtoD", at + 20, 500, 0, 9, device=0, stream=9, correlation=2 * n)
        return [launch(at + 1, 1, 2 * n + 1), kernel("k", at + 5, STEP_US - 20, 2 * n + 1), copy]

    found = told(place, stored(tmp_path, *written(tmp_path, events)))
    assert "host_to_device" in {r.cause for r in found.ruled_out} and not found.findings


@pytest.mark.parametrize(("sent_us", "named", "hidden_us"), [(60, False, 0), (300, True, 150), (900, True, 90)])
def test_communication_that_nothing_covers_is_told_where_it_is_much(place, tmp_path, sent_us, named, hidden_us):
    """Of ranks that enter and leave together, so that none waits for another. Computing hides it, and nothing else."""

    def events(n, at):
        left = STEP_US - 20 - sent_us
        sent = collective("allreduce", at + 5, sent_us, 2 * n, Seq=n)
        return [
            launch(at + 1, 1, 2 * n),
            sent,
            launch(at + 3, 1, 2 * n + 1),
            kernel("k", at + 6 + sent_us, left, 2 * n + 1),
        ]

    found = told(place, stored(tmp_path, *written(tmp_path, events, ranks=2, steps=24)))
    mine = [f for f in found.findings if f.cause == "exposed_communication"]
    assert bool(mine) == named, found.findings
    if named:
        assert mine[0].evidence[0].value == pytest.approx(2 * 24 * sent_us * 1e-6, rel=0.1)
        assert mine[0].gain.likely == pytest.approx(2 * 24 * hidden_us * 1e-6, rel=0.05)
    else:
        assert "exposed_communication" in {r.cause for r in found.ruled_out}


def test_a_short_profile_of_a_long_job_is_carried_over_to_all_of_it(place, tmp_path):
    """Six steps of 6,000 were profiled: what devices waited in them is a thousandth of the chip time, and what they
    wait in all steps is not."""

    def events(n, at):
        return [op("aten::a", at, 200), launch(at + 197, 1, n), kernel("k", at + 200, STEP_US - 220, n)]

    short = stored(tmp_path, *written(tmp_path, events))
    (own,) = (f for f in told(place, short).findings if f.cause == "launch_bound")
    lines = [
        json.dumps({"step": n, "start_ns": BASE + n * STEP_US * 1000, "dur_ns": STEP_US * 1000}) for n in range(6000)
    ]
    log = tmp_path / "steps.parquet"
    _parquet(log, lines)
    (whole,) = (
        f
        for f in told(place, stored(tmp_path, *written(tmp_path, events, name="of_long"), log)).findings
        if f.cause == "launch_bound"
    )
    assert whole.evidence[0].value == pytest.approx(own.evidence[0].value, rel=0.1)
    assert whole.gain.likely == pytest.approx(1000 * own.gain.likely, rel=0.15)


def test_a_copy_of_one_step_is_no_copy_of_those_that_none_saw(place, tmp_path):
    """Three of 100 steps are profiled, and the last of them saves for ten times as long as it trains."""
    took = [STEP_US * (11 if n == 2 else 1) for n in range(100)]
    begins = [sum(took[:n]) for n in range(100)]
    rows = [op("aten::a", 0, 1)]
    for n, at in enumerate(begins[:3]):
        saved = took[n] - STEP_US
        rows += [step(n, at, took[n] - 10), launch(at + 1, 1, 2 * n), kernel("k", at + saved + 20, 950, 2 * n)]
    copy = event("gpu_memcpy", "Memcpy DtoH", begins[2] + 5, 10 * STEP_US, 0, 7, device=0, stream=7, correlation=9)
    path, log = tmp_path / "rank-0.json", tmp_path / "steps.parquet"
    path.write_bytes(trace([*rows, launch(begins[2] + 2, 2, 9, "cudaMemcpyAsync"), copy]))
    lines = [{"step": n, "start_ns": BASE + at * 1000, "dur_ns": took[n] * 1000} for n, at in enumerate(begins)]
    _parquet(log, map(json.dumps, lines))
    found = told(place, stored(tmp_path, path, log))
    (own,) = (f for f in found.findings if f.cause == "device_to_host")
    assert own.gain.likely == pytest.approx(0.9 * 10 * STEP_US / 1e6, rel=0.02) and own.gain.high < 0.12 * found.whole


def _parquet(path, lines):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist([json.loads(line) for line in lines]), path)


def test_idle_devices_of_which_nothing_is_known_are_not_said_to_be_nothing(place, tmp_path):
    """Launches without a step, and a device without a host: neither stands out as something, nor as nothing."""
    launched = [op("aten::a", 0, 900), launch(897, 1, 1), kernel("k", 900, 100, 1)]
    alone = [kernel("k", 1000 * n, 100, n) for n in range(5)]
    for name, events, said in (("a", launched, "no step is marked"), ("b", alone, "nothing tells what their hosts")):
        path = tmp_path / f"{name}.json"
        path.write_bytes(trace([kernel("j", -900, 5, 9), *events]))
        run = stored(tmp_path, path)
        found = told(place, run)
        assert found.unjudged is not None and found.to_dict()["verdict"] == "not_told", found.gap
        assert found.unjudged[1] > 0.8 and said in found.unjudged[2].why
        text = FINDINGS.verdict(found)
        assert "Nothing stands out" not in str(text) and "is not told" in str(text)


def test_idle_devices_that_cannot_be_judged_are_told_beside_the_little_that_is_found(place, tmp_path):
    """A tenth of the time copies, and three quarters of it a host launches of which no step is marked."""
    path = tmp_path / "a.json"
    copy = event("gpu_memcpy", "Memcpy HtoD", 900, 120, 0, 7, device=0, stream=7, correlation=2, bytes=1 << 20)
    calls = [op("aten::a", 0, 900), launch(2, 1, 1), launch(880, 2, 2, "cudaMemcpyAsync")]
    path.write_bytes(trace([*calls, kernel("k", 5, 100, 1), copy]))
    run = stored(tmp_path, path)
    found = told(place, run)
    (own,) = found.findings
    assert own.cause == "host_to_device" and found.to_dict()["verdict"] == "found"
    account, share, why = found.unjudged
    idle = sum(seconds for name, seconds in found.gap if name.startswith("idle")) / found.whole
    assert account == "idle_launching" and share == pytest.approx(idle) and "no step is marked" in why.why
    text = str(FINDINGS.verdict(found))
    assert text.startswith(own.title) and "Devices are idle otherwise" in text


def test_computing_of_unknown_flops_is_not_told_to_lack_a_profile(place, tmp_path):
    """A profile that covers a device from end to end, of kernels that nobody counted FLOPs of, on a chip that nobody
    names."""
    path = tmp_path / "a.json"
    path.write_bytes(trace([kernel("k", 1000 * n, 990, n) for n in range(20)]))
    found = told(place, stored(tmp_path, path))
    text = FINDINGS.verdict(found)
    assert found.blind and "of the chip time can be told" in text
    assert "which chip it was" in text and "more of its steps" not in text


@pytest.mark.parametrize(
    ("name", "types", "beside", "chip"),
    [
        ("ampere_sgemm_128x64_nn", "float", True, None),
        ("maxwell_sgemm_128x64_nn", "float", False, "Tesla P100-SXM2-16GB"),  # which has none
        ("maxwell_sgemm_128x64_nn", "float", False, "NVIDIA GeForce GTX 1080 Ti"),
        ("ampere_sgemm_128x64_nn", "float", True, "NVIDIA RTX 6000 of another name"),
        ("ampere_s1688gemm_128x64_tn", "float", False, None),  # TF32
        ("my_own_matmul", "float", False, None),
        ("ampere_bf16_s16816gemm_bf16_128x64_tn", "c10::BFloat16", False, None),
    ],
)
def test_products_in_float32_beside_tensor_cores_are_a_finding(place, tmp_path, name, types, beside, chip):
    """Six steps of 1,000 µs, 900 of them a product of matrices."""
    events = []
    for n in range(STEPS):
        at = STEP_US * n
        events += [step(n, at, STEP_US), op("aten::mm", at + 2, 20, [[4096, 4096], [4096, 4096]], [types, types])]
        events += [launch(at + 5, 3, 2 * n + 1), kernel(name, at + 10, 900, 2 * n + 1)]
        events += [launch(at + 30, 3, 2 * n + 2), kernel("vectorized_elementwise_kernel", at + 911, 85, 2 * n + 2)]
    beside_it = {} if chip is None else {"deviceProperties": [{"id": 0, "name": chip}]}
    (tmp_path / "rank.json").write_bytes(trace(events, **beside_it))
    found = told(place, stored(tmp_path, tmp_path / "rank.json"))
    gains = {f.cause: f.gain for f in found.findings}
    assert ("precision" in gains) == beside
    if beside:
        assert gains["precision"].likely == pytest.approx(0.75 * 0.9 * found.whole, rel=0.02)
        assert gains["precision"].high < 0.9 * found.whole
    assert any(r.cause == "precision" for r in found.ruled_out) != beside
