"""The bundled serving run against its truth, its two sides against each other, and the program that makes such runs."""

import gzip
import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import mean, median

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
LEAK = re.compile(rb"/(home|root|tmp|work|Users|mnt|opt|usr|var|private)/")
SAMPLE = re.compile(r"^vllm:(\w+)\{([^}]*)\} (\S+)$")
SPECULATION = re.compile(r"Accepted: (\d+) tokens, Drafted: (\d+) tokens, Per-position")


@dataclass(frozen=True)
class Recorded:
    """A run, the client's view of it and its truth, read with nothing of this project."""

    folder: Path

    @cached_property
    def client(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-client")

    @cached_property
    def truth_file(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.truth.json")

    @cached_property
    def truth(self) -> dict:
        return json.loads(self.truth_file.read_text())

    @cached_property
    def files(self) -> list[Path]:
        return sorted(p for f in (self.folder, self.client) for p in f.rglob("*") if p.is_file())

    @cached_property
    def requests(self) -> list[dict]:
        return pq.read_table(self.folder / "requests.parquet").to_pylist()

    @cached_property
    def iterations(self) -> list[dict]:
        return pq.read_table(self.folder / "iterations.parquet").to_pylist()

    @cached_property
    def scrapes(self) -> list[tuple[float, dict[tuple[str, str], float]]]:
        """(time, {(name, labels but engine and model): value}) of each."""
        found: list[tuple[float, dict]] = []
        for line in gzip.decompress((self.folder / "metrics.prom.gz").read_bytes()).decode().splitlines():
            if line.startswith("# scraped_at "):
                found.append((float(line[13:]), {}))
            elif match := SAMPLE.match(line):
                labels = ",".join(x for x in match[2].split(",") if not x.startswith(("engine=", "model_name=")))
                found[-1][1][match[1], labels] = float(match[3])
        return found

    @cached_property
    def bench(self) -> dict:
        return json.loads(gzip.decompress((self.client / "bench.json.gz").read_bytes()))

    @cached_property
    def log(self) -> str:
        (path,) = self.client.glob("engine_20[0-9][0-9][0-9][0-9][0-9][0-9].log")
        return path.read_text()

    def sidecar(self, folder: Path) -> dict:
        return json.loads((folder / "chipledger.json").read_text())

    def phase(self, name: str) -> dict:
        return next(p for p in self.truth["phases"] if p["phase"] == name)

    def ended(self, status: str) -> list[dict]:
        return [r for r in self.requests if r["status"] == status]

    def total(self, rows: list[dict], name: str) -> int:
        return sum(r[name] or 0 for r in rows)


BUNDLED = Recorded(ROOT / "reference" / "runs" / "serving")


# What holds for any run of the program, quiet machine or not.


def check_no_path_of_the_machine(run: Recorded) -> None:
    for path in (*run.files, run.truth_file):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert not LEAK.search(data), f"{path.name}: {LEAK.search(data)}"


def check_sidecars(run: Recorded) -> None:
    for folder in (run.folder, run.client):
        said = run.sidecar(folder)
        assert (said["kind"], said["chips"], said["simulated"]) == ("serving", 1, False)
        assert said["peak_flops_per_s"] == max(run.truth["peak"]["flops_per_s_by_size"].values())
        dims = said["model"]
        inner, kv = dims["heads"] * dims["head_dim"], 2 * dims["kv_heads"] * dims["head_dim"]
        layer = dims["d_model"] * (2 * inner + kv + 3 * dims["d_ff"])
        assert dims["parameters"] == dims["layers"] * layer + 2 * dims["vocab"] * dims["d_model"]


def check_requests(run: Recorded) -> None:
    assert [r["id"] for r in run.ended("failed")] == run.truth["failed"]
    assert [r["id"] for r in run.ended("aborted")] == run.truth["aborted"]
    assert set(run.truth["aborted"]) <= set(run.truth["left_by_the_client"])
    most = run.truth["plan"]["engine"]["context"]
    for r in run.requests:
        assert -(-r["prompt_tokens"] // 16) == len(r["hash_ids"])
        if r["status"] == "failed":
            assert r["prompt_tokens"] > most - 64 and "maximum context length" in r["error"] and not r["scheduled_ns"]
            continue
        times = [r[f"{name}_ns"] for name in ("arrival", "scheduled", "first_token", "last_token")]
        assert times == sorted(times)
        assert sum(r["gaps_ns"]) == r["last_token_ns"] - r["first_token_ns"]
        assert r["cached_tokens"] % 16 == 0 and r["cached_tokens"] < r["prompt_tokens"]
        assert r["prompt_tokens"] + r["output_tokens"] <= most
        # each piece is one sure token and what was accepted with it
        assert r["output_tokens"] == len(r["gaps_ns"]) + 1 + r["accepted"] and r["accepted"] <= r["drafted"]
    assert {r["id"]: r["preemptions"] for r in run.requests if r["preemptions"]} == run.truth["preempted"]


def check_arrivals(run: Recorded) -> None:
    rows = [dict(zip(run.truth["requests_columns"], r, strict=True)) for r in run.truth["requests"]]
    for said, kept in zip(rows, run.requests, strict=True):
        assert (said["id"], said["phase"], said["tenant"], said["arrival_ns"]) == (
            kept["id"],
            kept["stage"],
            kept["tenant"],
            kept["arrival_ns"],
        )
        assert -5e6 < said["sent_ns"] - said["planned_ns"] < 2e9
        assert -50e6 < said["arrival_ns"] - said["sent_ns"] < 2e9, "two clocks, one of them stepped by the system"


def check_iterations(run: Recorded) -> None:
    config, totals = run.truth["plan"]["engine"], run.truth["totals"]
    shapes = {rows * config["row"] for rows in config["row_buckets"]}
    before = 0
    for n, i in enumerate(run.iterations):
        assert i["order"] == n and i["start_ns"] >= before and 0 < i["device_ns"] < i["dur_ns"]
        before = i["start_ns"] + i["dur_ns"]
        rejected = i["drafted_tokens"] - i["accepted_tokens"]
        assert i["prefill_tokens"] + i["decode_tokens"] + rejected + i["padded_tokens"] in shapes
        assert i["decode_tokens"] == i["decode_requests"] + i["accepted_tokens"]
        assert i["recomputed_tokens"] <= i["prefill_tokens"] and 0 < i["kv_usage"] <= 1
        assert i["running"] <= config["max_seqs"]
    for name in (
        "prefill_tokens",
        "recomputed_tokens",
        "decode_tokens",
        "drafted_tokens",
        "accepted_tokens",
        "padded_tokens",
    ):
        assert run.total(run.iterations, name) == totals[name]
    assert run.total(run.iterations, "preempted") == totals["preemptions"] == sum(run.truth["preempted"].values())


def check_both_tables_tell_of_the_same_tokens(run: Recorded) -> None:
    totals = run.truth["totals"]
    assert len(run.requests) == totals["requests"] == totals["completed"] + totals["aborted"] + totals["failed"]
    for name in ("accepted", "drafted"):
        assert run.total(run.requests, name) == run.total(run.iterations, f"{name}_tokens")
    generated = run.total(run.requests, "output_tokens")
    assert generated == totals["generated_tokens"] == totals["decode_tokens"] + totals["generated_while_reading"]
    served = [r for r in run.requests if r["scheduled_ns"]]
    fresh = run.total(served, "prompt_tokens") - run.total(served, "cached_tokens")
    first_read = totals["prefill_tokens"] - totals["recomputed_tokens"]
    assert abs(first_read - fresh) <= totals["preemptions"] + 512 * totals["aborted"]
    assert sum(run.truth["speculation"]["accepted_at_position"]) == totals["accepted_tokens"]


def check_phases(run: Recorded) -> None:
    begun = [p["start_ns"] for p in run.truth["phases"]]
    assert begun == sorted(begun) and [p["phase"] for p in run.truth["phases"]] == [
        p["name"] for p in run.truth["plan"]["phases"]
    ]
    whole = run.truth["plan"]["engine"]["pages"]
    for planned, did in zip(run.truth["plan"]["phases"], run.truth["phases"], strict=True):
        assert did["pages_allowed"] == (planned["pages"] or whole)
        number = begun.index(did["start_ns"])
        inside = [i for i in run.iterations if bisect_right(begun, i["start_ns"]) - 1 == number]
        assert len(inside) == did["iterations"]
        assert sum(i["preempted"] for i in inside) == did["preemptions"]
        assert sum(r["stage"] == did["phase"] for r in run.requests) == did["requests"]
        for i in inside:  # whole pages, and no more than the sequences that run, or have just ended, can fill
            held = round(i["kv_usage"] * did["pages_allowed"], 6)
            config = run.truth["plan"]["engine"]
            most = (i["prefill_requests"] + i["decode_requests"]) * config["context"] / config["page"]
            assert held == round(held) and held <= max(most, i["running"] * config["context"] / config["page"])


def check_chip_seconds(run: Recorded) -> None:
    chip = run.truth["chip_seconds"]
    parts = ("peak_benchmark", "weights", "compilation", "device", "host_in_iterations", "idle", "between_iterations")
    assert all(chip[name] >= 0 for name in chip)
    assert sum(chip[name] for name in parts) == pytest.approx(chip["held"], abs=1e-6)
    kinds = [chip[f"device_{kind}"] for kind in ("prefill_only", "decode_only", "mixed")]
    assert sum(kinds) == pytest.approx(run.total(run.iterations, "device_ns") / 1e9, abs=1e-6)
    life = pq.read_table(run.folder / "lifecycle.parquet").to_pylist()
    assert life[0]["kind"] == "job"
    assert (life[0]["end_ns"] - life[0]["start_ns"]) / 1e9 == pytest.approx(chip["held"], abs=1e-6)
    assert sum(e["end_ns"] - e["start_ns"] for e in life[1:]) / 1e9 == pytest.approx(chip["start_up"], abs=1e-6)


def check_scrapes(run: Recorded) -> None:
    times = [at for at, _ in run.scrapes]
    every_s = run.truth["plan"]["scrape_every_s"]
    assert median(b - a for a, b in zip(times, times[1:], strict=False)) == pytest.approx(every_s, rel=0.2)
    for (_, a), (_, b) in zip(run.scrapes, run.scrapes[1:], strict=False):
        assert all(b[key] >= a[key] for key in a if key[0].endswith(("_total", "_bucket", "_count", "_sum")))
    end, totals = run.scrapes[-1][1], run.truth["totals"]
    for name, value in run.truth["counters"].items():
        assert end[f"{name}_total", ""] == value
    assert end["num_preemptions_total", ""] == totals["preemptions"]
    assert end["generation_tokens_total", ""] == totals["generated_tokens"]
    assert end["kv_cache_usage_perc", ""] == end["num_requests_running", ""] == end["num_requests_waiting", ""] == 0
    assert end["request_success_total", 'finished_reason="length"'] == len(run.ended("completed"))
    done = run.ended("completed")
    by_name = {
        "time_to_first_token_seconds": [
            r["first_token_ns"] - r["arrival_ns"] for r in run.requests if r["first_token_ns"]
        ],
        "e2e_request_latency_seconds": [r["last_token_ns"] - r["arrival_ns"] for r in done],
        "request_queue_time_seconds": [r["scheduled_ns"] - r["arrival_ns"] for r in done],
        "inter_token_latency_seconds": [gap for r in run.requests for gap in r["gaps_ns"] or ()],
    }
    for name, values in by_name.items():
        buckets = {labels: n for (metric, labels), n in end.items() if metric == f"{name}_bucket"}
        for labels, n in buckets.items():
            bound = float(labels.removeprefix('le="').removesuffix('"').replace("+Inf", "inf"))
            assert n == sum(value / 1e9 <= bound for value in values), (name, labels)
        assert end[f"{name}_sum", ""] == pytest.approx(sum(values) / 1e9, abs=1e-6)


def check_the_client_saw_the_same(run: Recorded) -> None:
    bench = run.bench
    assert bench["completed"] == len(run.ended("completed"))
    assert bench["completed"] + bench["failed"] == bench["num_prompts"] == len(run.requests)
    for n, r in enumerate(run.requests):
        assert bench["input_lens"][n] == r["prompt_tokens"]
        if r["status"] != "completed" or bench["errors"][n]:
            assert bench["errors"][n] and not bench["output_lens"][n]
            continue
        assert bench["output_lens"][n] == r["output_tokens"] and len(bench["itls"][n]) == len(r["gaps_ns"])
        ttft_s, e2e_s = ((r[name] - r["arrival_ns"]) / 1e9 for name in ("first_token_ns", "last_token_ns"))
        assert -0.005 < bench["ttfts"][n] - ttft_s < 3 and -0.005 < bench["latencies"][n] - e2e_s < 3
    done = [n for n, error in enumerate(bench["errors"]) if not error]
    ended = datetime.strptime(bench["date"] + "+0000", "%Y%m%d-%H%M%S%z").timestamp()
    assert abs(ended - max(r["last_token_ns"] for r in run.ended("completed")) / 1e9) < 3
    assert bench["mean_ttft_ms"] == pytest.approx(1e3 * mean(bench["ttfts"][n] for n in done))
    assert bench["median_itl_ms"] == pytest.approx(1e3 * median(g for n in done for g in bench["itls"][n]))
    tpot = [
        (bench["latencies"][n] - bench["ttfts"][n]) / (bench["output_lens"][n] - 1)
        for n in done
        if bench["output_lens"][n] > 1
    ]
    assert bench["mean_tpot_ms"] == pytest.approx(1e3 * mean(tpot))


def check_log(run: Recorded) -> None:
    assert "not vLLM" in run.log.splitlines()[0]
    config = run.truth["plan"]["engine"]
    assert f"GPU KV cache size: {config['pages'] * config['page']:,} tokens" in run.log
    pairs = [(int(a), int(d)) for a, d in SPECULATION.findall(run.log)]
    totals = run.truth["totals"]
    accepted, drafted = (sum(column) for column in zip(*pairs, strict=True))
    assert 0 < accepted <= totals["accepted_tokens"] and 0 < drafted <= totals["drafted_tokens"]
    assert len(re.findall(r"Engine 000: Avg prompt throughput", run.log)) >= len(pairs)


def check_profile(run: Recorded) -> None:
    """The trace holds the iterations of its window, each with operations of the compiled programs."""
    profile = pytest.importorskip("jax.profiler", reason="the trace is read with JAX's own reader").ProfileData
    (path,) = (run.folder / "profile").glob("*.xplane.pb.gz")
    start, stop = (e["ns"] for e in run.truth["profile"][:2])
    planes = {p.name: p for p in profile.from_serialized_xspace(gzip.decompress(path.read_bytes())).planes}
    marked = [e for line in planes["/host:CPU"].lines for e in line.events if e.name == "iteration"]
    inside = [i for i in run.iterations if i["start_ns"] >= start and i["start_ns"] + i["dur_ns"] <= stop]
    assert len(inside) <= len(marked) <= len(inside) + 4 and len(marked) > 0
    assert sum(e.duration_ns for e in marked) >= 0.9 * sum(i["device_ns"] for i in inside)


CHECKS = (
    check_no_path_of_the_machine,
    check_sidecars,
    check_requests,
    check_arrivals,
    check_iterations,
    check_both_tables_tell_of_the_same_tokens,
    check_phases,
    check_chip_seconds,
    check_scrapes,
    check_the_client_saw_the_same,
    check_log,
    check_profile,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__.removeprefix("check_"))
def test_bundled_run(check):
    check(BUNDLED)


# What the bundled run promises beyond that: it is small, and each phase does what it is there for.


def test_bundled_run_is_small_and_packed_without_a_date():
    assert sum(p.stat().st_size for p in (*BUNDLED.files, BUNDLED.truth_file)) < 3_000_000
    for path in BUNDLED.files:
        if path.suffix == ".gz":
            head = path.read_bytes()[:10]
            assert head[3] == 0 and head[4:8] == bytes(4), "no file name, no time"


def test_bundled_phases_do_what_they_are_there_for():
    calm, overloaded, starved = (BUNDLED.phase(name) for name in ("calm", "overloaded", "starved"))
    assert overloaded["most_waiting"] > 20 and overloaded["ttft_median_s"] > 5 * calm["ttft_median_s"]
    assert overloaded["preemptions"] == 0 and starved["preemptions"] >= 10
    assert starved["pages_allowed"] < overloaded["pages_allowed"] / 2
    last = BUNDLED.truth["phases"][-1]
    assert last["pages_allowed"] == calm["pages_allowed"] and last["preemptions"] == 0
    assert len(BUNDLED.truth["failed"]) == 4 and len(BUNDLED.truth["aborted"]) >= 3


def test_bundled_caches_and_drafts_are_worth_something():
    totals, speculation = BUNDLED.truth["totals"], BUNDLED.truth["speculation"]
    assert 0.3 < totals["cached_tokens"] / totals["prompt_tokens_looked_up"] < 0.9
    shares = [n / speculation["drafts"] for n in speculation["accepted_at_position"]]
    assert shares == sorted(shares, reverse=True) and 0.3 < shares[-1] < shares[0] < 0.98
    assert totals["recomputed_tokens"] > 100


def ingested(run: Recorded, root: Path):
    """Both sides as this project reads them."""
    from collectors.ingest import ingest
    from runs.store import Store

    store = Store(root)
    return [(done := ingest([folder], store), store.find(done.run_id)) for folder in (run.folder, run.client)]


def check_ingest(run: Recorded, root: Path) -> None:
    (engine, engine_run), (client, client_run) = ingested(run, root)
    assert engine.warnings == []
    assert (engine_run.manifest.kind, engine_run.manifest.simulated) == ("serving", False)
    assert engine.tables["requests"] == client.tables["requests"] == len(run.requests)
    assert engine.tables["iterations"] == len(run.iterations) and engine.tables["engine"] >= len(run.scrapes)
    assert engine.tables["histograms"] > 0 and engine.tables["ops"] > 0
    assert client.tables["stages"] == 1 and client.tables["engine"] > 0


def test_bundled_run_is_read_whole(tmp_path):
    check_ingest(BUNDLED, tmp_path)


# The program.


def test_who_leaves_a_small_run_leaves_long_before_the_end():
    """Else the engine may be done before it can know, and a request is completed there that nobody read."""
    plan = pytest.importorskip("reference.serve.plan", reason="needs the reference extra")
    asks = pytest.importorskip("reference.serve.traffic").traffic(plan.SMOKE)
    left = [a for a in asks if a.leave_after]
    assert left and all(a.max_tokens - a.leave_after >= 200 for a in left)


@pytest.mark.alone
def test_a_small_run_made_now_tells_its_truth(tmp_path):
    launch = pytest.importorskip("reference.serve.launch", reason="needs the reference extra")
    out = tmp_path / "smoke"
    assert launch.main(["--plan", "smoke", "--out", str(out)]) == 0
    run = Recorded(out)
    for check in CHECKS:
        check(run)
    check_ingest(run, tmp_path / "store")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["smoke", "smoke-client", "smoke.truth.json", "store"]


def test_a_folder_of_something_else_is_left_alone(tmp_path, capsys):
    launch = pytest.importorskip("reference.serve.launch")
    (tmp_path / "mine-client").mkdir()
    (tmp_path / "mine-client" / "notes.txt").write_text("keep me")
    assert launch.main(["--plan", "smoke", "--out", str(tmp_path / "mine")]) == 2
    assert "something else is there" in capsys.readouterr().err
    assert (tmp_path / "mine-client" / "notes.txt").read_text() == "keep me"
