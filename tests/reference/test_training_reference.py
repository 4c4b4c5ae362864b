"""The bundled training run against its truth, and the program that makes such runs."""

import gzip
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEP_LINE = re.compile(
    r"^I\d{4} [\d:]{8}\.\d{6} +\d+ metric_logger\.py:\d+\] completed step: (\d+), seconds: ([\d.]+), "
    r"TFLOP/s/device: ([\d.]+), Tokens/s/device: ([\d.]+), total_weights: (\d+), loss: ([\d.]+)$",
    re.MULTILINE,
)
LEAK = re.compile(rb"/(home|root|tmp|work|Users|mnt|opt|usr|var|private)/")


@dataclass(frozen=True)
class Recorded:
    """A run and its truth, read with nothing but the standard library."""

    folder: Path

    @cached_property
    def truth(self) -> dict:
        return json.loads((self.folder.parent / f"{self.folder.name}.truth.json").read_text())

    @cached_property
    def files(self) -> list[Path]:
        return sorted(p for p in self.folder.rglob("*") if p.is_file())

    @cached_property
    def attempts(self) -> list[dict]:
        return self.truth["attempts"]

    @cached_property
    def payloads(self) -> list[list[dict]]:
        """Goodput payloads per attempt, which a job_start_time opens."""
        result: list[list[dict]] = []
        for line in (self.folder / "goodput.jsonl").read_text().splitlines():
            payload = json.loads(line)["jsonPayload"]
            if "job_start_time" in payload:
                result.append([])
            result[-1].append(payload)
        return result

    def log(self, attempt: int) -> str:
        (path,) = (self.folder / "logs").glob(f"attempt_{attempt}_20[0-9][0-9][0-9][0-9][0-9][0-9].log")
        return path.read_text()

    def log_steps(self, attempt: int) -> dict[int, tuple[float, ...]]:
        """{step: (seconds, TFLOP/s, tokens/s, weights, loss)}"""
        return {int(m[1]): tuple(float(x) for x in m.groups()[1:]) for m in STEP_LINE.finditer(self.log(attempt))}

    def spans(self, attempt: int, process: int) -> dict[int, tuple[int, int | None]]:
        return {s: (b, e) for a, p, s, b, e in self.truth["steps"] if (a, p) == (attempt, process)}

    def done(self, what: str) -> list[dict]:
        return [i for i in self.truth["injections"] if i["what"] == what]

    def loads(self, attempt: int) -> dict[int, float]:
        """{step: seconds of its data loading} by the goodput entries."""
        result, start, took = {}, 0.0, 0.0
        for p in self.payloads[attempt]:
            if "data_loading_start_time" in p:
                start = p["data_loading_start_time"]
            elif "data_loading_end_time" in p:
                took = p["data_loading_end_time"] - start
            elif "step_count" in p:
                result[p["step_count"]] = took
        return result


BUNDLED = Recorded(ROOT / "reference" / "runs" / "training")


# What holds for any run of the program, quiet machine or not.


def check_no_path_of_the_machine(run: Recorded) -> None:
    for path in (*run.files, run.folder.parent / f"{run.folder.name}.truth.json"):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert not LEAK.search(data), f"{path.name}: {LEAK.search(data)}"
        assert str(ROOT).encode() not in data, path


def check_sidecar(run: Recorded) -> None:
    sidecar = json.loads((run.folder / "chipledger.json").read_text())
    assert (sidecar["kind"], sidecar["chips"], sidecar["topology"]) == ("training", 4, "data=2,model=2")
    assert sidecar["peak_basis"] == "measured" and sidecar["usd_per_chip_hour"] is None
    rounds = run.truth["peak"]["rounds_flops_per_s_by_process"].values()
    assert sidecar["peak_flops_per_s"] == pytest.approx(max(sum(r) / len(r) for r in rounds), rel=1e-9)


def check_log(run: Recorded) -> None:
    model = json.loads((run.folder / "chipledger.json").read_text())["model"]
    tokens = model["seq_len"] * model["global_batch_size"]
    for a in run.attempts:
        steps, spans = run.log_steps(a["attempt"]), run.spans(a["attempt"], 0)
        assert list(steps) == list(range(a["first_step"], a["last_completed_step"] + 1))
        for step, (seconds, tflops, tokens_per_s, weights, _) in steps.items():
            assert weights == tokens
            assert tokens_per_s * seconds * 4 == pytest.approx(tokens, rel=0.0006 / seconds)
            half_digit = 5e-7 / max(tflops, 1e-12) + 0.0006 / seconds
            assert tflops * 1e12 * seconds * 4 == pytest.approx(model["model_flops_per_step"], rel=half_digit)
            if step > a["first_step"]:  # MaxText counts from the end of the step before
                assert seconds == pytest.approx((spans[step][1] - spans[step - 1][1]) / 1e9, abs=0.005)
        text = run.log(a["attempt"])
        if a["restored_step"] is None:
            assert "No existing checkpoints found" in text
        else:
            assert f"restoring from this run's directory step {a['restored_step']}\n" in text


def check_goodput(run: Recorded) -> None:
    lines = [json.loads(x) for x in (run.folder / "goodput.jsonl").read_text().splitlines()]
    assert {x["severity"] for x in lines} == {"INFO"} and len({x["insertId"] for x in lines}) == len(lines)
    assert [x["timestamp"] for x in lines] == sorted(x["timestamp"] for x in lines)
    assert len(run.payloads) == len(run.attempts)
    for a, entries in zip(run.attempts, run.payloads, strict=True):
        assert entries[0]["job_start_time"] == pytest.approx(a["job_start_ns"] / 1e9, abs=0.05)
        ended = [p["job_end_time"] for p in entries if "job_end_time" in p]
        assert len(ended) == (1 if a["finished"] else 0), "a killed attempt has no job_end_time"
        spans = run.spans(a["attempt"], 0)
        starts = {p["step_count"]: p["step_start_time"] for p in entries if "step_count" in p}
        assert set(starts) <= set(spans) and set(spans) - set(starts) <= {max(spans)}
        for step, start in starts.items():  # after the step's data loading and any work put before the dispatch
            assert spans[step][0] / 1e9 <= start <= (spans[step][1] or a["ended_ns"]) / 1e9
        saves = [p for p in entries if p.get("event_type") == "save"]
        assert [p["step"] for p in saves] == a["checkpoint_steps"]
        assert all(p["directory"] == "checkpoints" and p["synchronous"] for p in saves)
        assert all(p["checkpoint_manager_blocking_duration_secs"] > 0 for p in saves)
        restores = [p for p in entries if p.get("event_type") == "restore"]
        assert [p["step"] for p in restores] == ([] if a["restored_step"] is None else [a["restored_step"]])
        for name in ("tpu_init", "training_prep"):
            assert [list(p)[-1] for p in entries if any(name in k for k in p)] == [
                f"{name}_start_time",
                f"{name}_end_time",
            ]
        exports = [p for p in entries if p.get("custom_badput_event_type") == "profile_export"]
        assert len(exports) == 2 * len(saves)


def check_kills(run: Recorded) -> None:
    kills = run.done("kill")
    assert [k["attempt"] for k in kills] == [a["attempt"] for a in run.attempts if not a["finished"]]
    for k in kills:
        times = [k[n] for n in ("kill_ns", "noticed_ns", "all_ended_ns", "relaunched_ns", "next_job_start_ns")]
        assert times == sorted(times)
        start, end = run.spans(k["attempt"], k["process"])[k["step"]]
        assert start < k["kill_ns"] and end is None, "it died in that step"
        assert k["downtime_s"] >= run.truth["plan"]["reschedule_s"]
        assert k["next_first_step"] == k["restored_step"] + 1
        assert k["wasted_steps"] == list(range(k["restored_step"] + 1, k["step"]))
        spans = run.spans(k["attempt"], 0)
        assert k["wasted_steps_s"] == pytest.approx(sum(spans[s][1] - spans[s][0] for s in k["wasted_steps"]) / 1e9)
        assert run.log_steps(k["attempt"] + 1).keys() >= set(k["wasted_steps"]), "they were done again"


def check_stalls(run: Recorded) -> None:
    for stall in run.done("input_stall"):
        assert len(stall["rows"]) == stall["last_step"] - stall["first_step"] + 1
        if stall["process"] == 0:  # the one that writes the goodput entries
            loads = run.loads(stall["attempt"])
            seen = sum(loads[step] for step, _, _ in stall["rows"])
            assert seen == pytest.approx(stall["total_s"], rel=0.1)


def check_profiles(run: Recorded) -> None:
    """Every step between a window's start and stop is in the process's trace, with its ops, collectives and waits."""
    profile = pytest.importorskip("jax.profiler", reason="the traces are read with JAX's own reader").ProfileData
    closed = {(w["attempt"], w["window"], w["process"]): w for w in run.truth["windows"]}
    traces = [p for p in run.files if p.name.endswith(".xplane.pb.gz")]
    assert len(traces) == len(closed) and not any(p.suffix == ".pb" for p in run.files)
    stalls = {
        (i["attempt"], i["process"], step): (end - start) / 1e9
        for i in run.done("input_stall")
        for step, start, end in i["rows"]
    }
    extra = {(i["attempt"], r[0]): i["process"] for i in run.done("straggler") for r in i["rows"]}
    waits: dict[tuple[int, int], dict[int, float]] = {}
    for path in traces:
        attempt, window, process = (int(part.rpartition("_")[2]) for part in path.relative_to(run.folder).parts[1:4])
        truth = closed[attempt, window, process]
        spans = run.spans(attempt, process)
        inside = [s for s, (b, e) in spans.items() if truth["start_ns"] <= b and e and e <= truth["stop_ns"]]
        data = gzip.decompress(path.read_bytes())
        planes = {p.name: p for p in profile.from_serialized_xspace(data).planes}
        clock = dict(planes["Task Environment"].stats)
        assert abs(clock["profile_start_time"] - truth["start_ns"]) < 0.2e9
        assert abs(clock["profile_stop_time"] - truth["stop_ns"]) < 0.2e9
        assert b"Hlo Proto" in data and b"jit_train_step" in data
        steps, loads, ops, reduces = {}, [], [], []
        for line in planes["/host:CPU"].lines:
            for e in line.events:
                if e.name == "train":
                    steps[dict(e.stats)["step_num"]] = (e.start_ns, e.start_ns + e.duration_ns)
                elif e.name == "data_loading":
                    loads.append((e.start_ns, e.duration_ns / 1e9))
                elif not e.name.startswith("end: ") and dict(e.stats).get("hlo_module") == "jit_train_step":
                    (reduces if e.name.startswith("all-reduce") else ops).append((e.start_ns, e.duration_ns / 1e9))
        assert sorted(int(s) for s in steps) == inside
        for step, (start, end) in steps.items():
            step = int(step)
            assert (end - start) == pytest.approx(spans[step][1] - spans[step][0], abs=5e6)
            (load,) = (took for at, took in loads if start <= at < end)
            assert load == pytest.approx(stalls.get((attempt, process, step), 0.0), abs=0.1)
            assert sum(start <= at < end for at, _ in ops) > 50
            wait = sum(took for at, took in reduces if start <= at < end)
            assert wait > 0
            if (attempt, step) in extra:
                waits.setdefault((attempt, step), {})[process] = wait
    assert waits
    slow = [w[extra[key]] for key, w in waits.items()]
    others = [min(v for p, v in w.items() if p != extra[key]) for key, w in waits.items()]
    assert median(slow) < median(others), "the straggler waits least"


CHECKS = (
    check_no_path_of_the_machine,
    check_sidecar,
    check_log,
    check_goodput,
    check_kills,
    check_stalls,
    check_profiles,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__.removeprefix("check_"))
def test_bundled_run(check):
    check(BUNDLED)


# What the bundled run promises beyond that: it is small, and its losses stand well above its noise.


def test_bundled_run_is_small_and_packed_without_a_date():
    assert sum(p.stat().st_size for p in BUNDLED.files) < 8_000_000
    for path in BUNDLED.files:
        if path.suffix == ".gz":
            head = path.read_bytes()[:10]
            assert head[3] == 0 and head[4:8] == bytes(4), "no file name, no time"


def test_bundled_run_learns():
    assert BUNDLED.log_steps(0)[0][4] > 5.4, "about ln 256 at the start"
    assert BUNDLED.log_steps(2)[120][4] < 3.0


def test_bundled_run_is_quiet():
    for attempt in BUNDLED.attempts:
        calm = attempt["untouched_steps"]
        assert calm["mad_s"] < 0.1 * calm["median_s"]


def test_bundled_straggler_costs_what_was_injected():
    (straggler,) = BUNDLED.done("straggler")
    spans = BUNDLED.spans(straggler["attempt"], 0)
    calm = BUNDLED.attempts[straggler["attempt"]]["untouched_steps"]["median_s"]
    excess = sum((spans[s][1] - spans[s][0]) / 1e9 - calm for s, _, _ in straggler["rows"])
    assert len(straggler["rows"]) == 12 and straggler["total_s"] > 2 * 12 * calm
    assert excess == pytest.approx(straggler["total_s"], rel=0.1)


def test_bundled_stalls_are_the_only_long_loads():
    loads = BUNDLED.loads(1)
    stalled = {s for i in BUNDLED.done("input_stall") for s, _, _ in i["rows"]}
    assert max(took for s, took in loads.items() if s not in stalled) < 0.1 < min(loads[s] for s in stalled)


def test_bundled_compile_cache():
    def first(attempt: int) -> list[dict]:
        return [process["from_first_step"] for process in BUNDLED.attempts[attempt]["compile"]]

    assert [a["cache"] for a in BUNDLED.attempts] == ["cold", "warm", "cold"]
    (deleted,) = BUNDLED.done("compile_cache_deleted")
    assert deleted["attempt"] == 2
    for cold in (*first(0), *first(2)):
        assert cold["cache_misses"] > 0 and cold["backend_compile_duration_s"] > 2
    for warm in first(1):
        assert "cache_misses" not in warm and warm["backend_compile_duration_s"] < 1


# The program.


@pytest.mark.slow
@pytest.mark.alone
def test_a_small_run_made_now_tells_its_truth(tmp_path):
    launch = pytest.importorskip("reference.train.launch", reason="needs the reference extra")
    out = tmp_path / "smoke"
    assert launch.main(["--plan", "smoke", "--out", str(out)]) == 0
    run = Recorded(out)
    assert [a["finished"] for a in run.attempts] == [False, True]
    for check in CHECKS:
        check(run)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["smoke", "smoke.truth.json"]


def test_a_worker_dies_with_its_launcher(tmp_path):
    pytest.importorskip("jax")
    from reference.train.launch import free_port
    from reference.train.plan import SMOKE

    (tmp_path / "truth").mkdir()
    (tmp_path / "plan.json").write_text(SMOKE.to_json())
    command = [sys.executable, "-m", "reference.train.worker", "plan.json", "0", "0", str(free_port())]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    worker = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        record = tmp_path / "truth" / "attempt_0.process_0.jsonl"
        deadline = time.monotonic() + 60
        while not (record.exists() and b"job_start" in record.read_bytes()):  # now it waits for the other three
            assert worker.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        worker.stdin.close()
        assert worker.wait(timeout=60) == 1
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


def test_a_folder_of_something_else_is_left_alone(tmp_path, capsys):
    launch = pytest.importorskip("reference.train.launch")
    (tmp_path / "mine.txt").write_text("keep me")
    (tmp_path / "chipledger.json").write_text("{}")
    assert launch.main(["--out", str(tmp_path)]) == 2
    assert "something else is there" in capsys.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "keep me"
