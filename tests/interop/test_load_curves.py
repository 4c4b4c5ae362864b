"""Load curves and engine timelines of published load tests, where their files lie beside us, against those files.

Seven loads each of three setups of vLLM (inference-perf), two loads of 8 TPU v6e (vLLM's tool), and single requests
with engine samples of two models on one card (LLMServingSim's validation data).
"""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from analyzers.serving import engine, load
from collectors.ingest import ingest
from runs.store import Store
from tests.analyzers.load_tests import ask

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "inference"
KNEES = {  # by eye on the published figures: the last load with usual latency, and the first of the queue
    "vllm": (92.19, 122.59, 101.2, 103.1),
    "vllm+eagle": (52.49, 69.65, 67.5, 68.1),
    "vllm+batch_size": (74.94, 111.92, 112.8, 114.4),
}
MODELS = ("Llama-3.1-8B", "Qwen3-32B")

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="no load tests beside the project")


def taken(pattern: str, tmp_path_factory, **options):
    store = Store(tmp_path_factory.mktemp("store"))
    return store.get(ingest(sorted(DATA.glob(pattern)), store, kind="serving", **options).run_id)


def answer(run, question, **options):
    return ask(question, run.tables, {n: f.value for n, f in run.manifest.facts.items()}, **options)


@pytest.fixture(scope="module", params=sorted(KNEES))
def curve(request, tmp_path_factory):
    name = request.param
    files = f"inference-perf/kubecon-na-2025__{name}__results__stage_*_lifecycle_metrics.json"
    run = taken(files, tmp_path_factory)
    published = [json.loads(f.read_text()) for f in sorted(DATA.glob(files))]
    return name, answer(run, load), published, run


def test_each_load_as_published(curve):
    _, result, published, _ = curve
    assert len(result.rows) == 7
    for (_, row), stage in zip(result.rows.iterrows(), published, strict=True):
        done = stage["successes"]
        assert row["load"] == pytest.approx(stage["load_summary"]["requested_rate"])
        assert row["request_rate_per_s"] == pytest.approx(done["throughput"]["requests_per_sec"], rel=1e-6)
        assert row["output_tokens_per_s"] == pytest.approx(done["throughput"]["output_tokens_per_sec"], rel=1e-4)
        for ours, theirs in (
            ("ttft", "time_to_first_token"),
            ("tpot", "time_per_output_token"),
            ("e2e", "request_latency"),
        ):
            for statistic, key in (("mean", "mean"), ("p50", "median"), ("p99", "p99")):
                assert row[f"{ours}_{statistic}_s"] == pytest.approx(done["latency"][theirs][key])


def test_the_knee_where_the_curve_bends(curve):
    name, result, _, _ = curve
    low, high, least, most = KNEES[name]
    assert (result.knee.low_load, result.knee.high_load) == (low, high)
    assert least < result.knee.capacity_per_s[0] <= result.knee.capacity_per_s[2] < most


def test_a_load_that_keeps_up_is_not_said_to_fall_behind(curve):
    """The tool's own sending took as long as planned in just those loads that keep up."""
    _, result, published, _ = curve
    for (_, row), stage in zip(result.rows.iterrows(), published, strict=True):
        sent = stage["load_summary"]
        late = sent["achieved_rate"] < 0.95 * sent["requested_rate"]
        assert bool(row["falls_behind"]) == late


def test_objectives_leave_the_loads_whose_percentiles_keep_them(curve):
    _, _, published, run = curve
    result = answer(run, load, ttft_s=0.2, tpot_s=0.012)
    kept = [
        s["successes"]["latency"]["time_to_first_token"]["p99"] <= 0.2
        and s["successes"]["latency"]["time_per_output_token"]["p99"] <= 0.012
        for s in published
    ]
    assert result.rows["keeps_objectives"].tolist() == kept
    rates = [s["successes"]["throughput"]["requests_per_sec"] for s in published]
    best = max((r for r, k in zip(rates, kept, strict=True) if k))
    assert result.row(result.best)["request_rate_per_s"] == pytest.approx(best)


def test_two_loads_on_eight_v6e(tmp_path_factory):
    """Printed blocks: 2,494.8 and 3,544.46 tokens/s are 52 and 44 % of the roofline; the rate still grows."""
    run = taken("vllm_bench_blocks/0[12].txt", tmp_path_factory, chip="v6e", chips=8, model="llama-3.3-70b")
    result = answer(run, load)
    assert result.axis == "concurrency" and result.rows["load"].tolist() == [64, 128]
    assert result.rows["output_tokens_per_s"].tolist() == pytest.approx([2494.8, 3544.46], rel=2e-5)
    assert result.rows["roofline_share"].tolist() == pytest.approx([0.52, 0.44], abs=0.005)
    assert result.knee is None and "No knee was seen up to 128" in result.knee_words
    assert result.rows["little_difference"].tolist() == pytest.approx([-0.003, -0.0143], abs=0.001)
    assert result.rows["pareto"].all()


@pytest.fixture(scope="module", params=MODELS)
def served(request, tmp_path_factory):
    name = request.param
    run = taken(f"llmservingsim/RTXPRO6000__{name}__*", tmp_path_factory)
    text = (DATA / "llmservingsim" / f"RTXPRO6000__{name}__vllm__timeseries.csv").read_text()
    samples = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(text.splitlines())]
    return name, run, samples


def test_littles_law_holds_between_requests_and_engine(served):
    """Two independent records: latencies of requests, and the engine's counts once a second."""
    _, run, samples = served
    row = answer(run, load).rows.iloc[0]
    level = [s["running"] + s["waiting"] for s in samples]
    busy = [i for i, n in enumerate(level) if n]
    assert row["in_flight_measured"] == pytest.approx(np.mean(level[busy[0] : busy[-1] + 1]))
    assert abs(row["little_difference"]) < 0.03


def test_the_steady_part_makes_what_the_engine_printed(served):
    """An overloaded server: from a full batch to the last request scheduled, against the printed rates there."""
    _, run, samples = served
    steady = answer(run, load).steady
    assert steady.is_steady and steady.counted == "running" and steady.in_flight == pytest.approx(128, rel=0.001)
    inside = [s["gen_throughput"] for s in samples if steady.start_s + 1 < s["t"] < steady.end_s]
    assert steady.output_tokens_per_s == pytest.approx(np.mean(inside), rel=0.01)
    assert steady.outside > 0.15


def test_the_engine_as_sampled(served):
    name, run, samples = served
    result = answer(run, engine)
    n = len(samples)
    assert (result.samples, result.origin_ns, result.seats) == (n, None, 128)
    waits = [s for s in samples if s["waiting"]]
    assert result.bound["seats"] == pytest.approx(sum(s["running"] == 128 for s in waits) / n)
    assert result.bound["unknown"] == pytest.approx(sum(s["running"] < 128 for s in waits) / n)
    assert result.figures["kv_usage"] == {"mean": None, "max": None}  # the file says 0.0 throughout
    assert result.figures["waiting"]["max"] == max(s["waiting"] for s in samples)
    assert result.figures["generated_tokens_per_s"] == pytest.approx(np.mean([s["gen_throughput"] for s in samples]))
    config = (DATA / "llmservingsim" / f"RTXPRO6000__{name}__vllm__meta.json").read_text()
    assert re.search(r'"max_num_seqs": 128', config)
