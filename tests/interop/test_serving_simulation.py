"""The serving simulator against vLLM's records on RTX PRO 6000, and against an estimator's numbers."""

import re
from pathlib import Path

import numpy as np
import pytest

from app.whatif.serving.inputs import measured
from app.whatif.serving.load import load_of
from catalog import chip, model
from collectors.ingest import ingest
from runs.store import Store
from simulators.serving.calibrate import calibrate, errors
from simulators.serving.efficiency import FAST, IDEAL, SLOW
from simulators.serving.engine import simulate
from simulators.serving.memory import kv_capacity_tokens
from simulators.serving.setup import Setup
from simulators.serving.step import decode_s, prefill_s, step_model
from simulators.serving.traffic import of_tables

SHARED = Path(__file__).resolve().parents[3] / "shared"
RUNS = SHARED / "data" / "inference" / "llmservingsim"
ESTIMATES = SHARED / "oracles" / "inference_sim" / "aiconfigurator"
MOONCAKE = SHARED / "data" / "requests" / "mooncake" / "synthetic_trace.jsonl"
needs_runs = pytest.mark.skipif(not RUNS.is_dir(), reason="the vLLM records beside the project are absent")
needs_estimates = pytest.mark.skipif(not ESTIMATES.is_dir(), reason="the estimates beside the project are absent")
needs_trace = pytest.mark.skipif(not MOONCAKE.is_file(), reason="the trace beside the project is absent")
MODELS = {"Llama-3.1-8B": 1, "Qwen3-32B": 2}  # with the cards each ran on
WITHIN = 0.10


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """{model: (its setup, what was measured)}"""
    store, found = Store(tmp_path_factory.mktemp("records") / "store"), {}
    for name, cards in MODELS.items():
        setup = Setup(
            model=model(name), chip=chip("RTX PRO 6000 Server"), chips=cards, max_sequences=128, token_budget=2048
        )
        made = ingest([RUNS / f"RTXPRO6000__{name}__vllm__requests.jsonl"], store, name=name)
        found[name] = setup, measured(load_of(store.find(made.run_id)))
    return found


@needs_runs
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_held_back_requests_come_within_ten_per_cent(records, name, seed):
    setup, run = records[name]
    half = None if seed is None else np.random.default_rng(seed).permutation(len(run.traffic)) < len(run.traffic) // 2
    found = calibrate(setup, run, half)
    print(name, seed, {k: f"{v:+.2%}" for k, v in found.errors.items()}, found.efficiency)
    assert max(abs(e) for e in found.errors.values()) < WITHIN


@needs_runs
@pytest.mark.parametrize(("fitted", "tested"), [("Llama-3.1-8B", "Qwen3-32B"), ("Qwen3-32B", "Llama-3.1-8B")])
def test_on_another_model_the_measured_times_lie_in_the_widened_band(records, fitted, tested):
    found = calibrate(*records[fitted])
    setup, run = records[tested]
    outcome = simulate(setup, run.traffic, found.for_setup(setup)[0])
    missed = errors(outcome.requests, run, np.ones(len(run.traffic), dtype=bool))
    print(fitted, "->", tested, {k: f"{v:+.1%}" for k, v in missed.items()})
    band, notes = found.band(outcome)
    assert notes
    for metric, error in missed.items():
        low, high = band[metric]
        assert low <= 1 / (1 + error) - 1 <= high, metric


def estimate(name: str) -> tuple[float, float]:
    """(TTFT, TPOT) in seconds."""
    text = (ESTIMATES / name).read_text()
    return tuple(float(re.search(rf"{what}:\s+([\d.]+) ms", text)[1]) / 1e3 for what in ("TTFT", "TPOT"))


@needs_estimates
@pytest.mark.parametrize("batch", [1, 4, 16, 64, 256])
def test_speed_of_light_of_llama_70b_on_8_h100(batch):
    """The estimator's ideal: prompts of 2,048 tokens read one after the other, then 256 tokens at the mean context."""
    setup = Setup(model=model("llama-3.1-70b"), chip=chip("h100"), chips=8)
    ideal = step_model(setup, IDEAL)
    ttft, tpot = estimate(f"static_llama70b_h100_tp8_SOL_bs{batch}.txt")
    assert batch * prefill_s(ideal, 2048) == pytest.approx(ttft, rel=0.01)
    assert decode_s(ideal, batch, 2048 + 128) == pytest.approx(tpot, rel=0.002)


@needs_estimates
@pytest.mark.parametrize("batch", [1, 4, 16, 64, 256])
def test_calibrated_estimates_of_llama_70b_on_8_h100_lie_in_the_assumed_range(batch):
    setup = Setup(model=model("llama-3.1-70b"), chip=chip("h100"), chips=8)
    ttft, tpot = estimate(f"static_llama70b_h100_tp8_bs{batch}.txt")
    slow, fast = (step_model(setup, e) for e in (SLOW, FAST))
    assert batch * prefill_s(fast, 2048) < ttft < batch * prefill_s(slow, 2048)
    assert decode_s(fast, batch, 2048 + 128) < tpot < decode_s(slow, batch, 2048 + 128)


@needs_trace
def test_prefix_hits_of_the_mooncake_trace_with_an_endless_cache(tmp_path):
    """What is found of each prompt is its longest beginning that went before, told here block by block."""
    store = Store(tmp_path / "store")
    traffic = of_tables(store.find(ingest([MOONCAKE], store).run_id).tables, "synthetic")
    setup = Setup(model=model("qwen3-0.6b"), chip=chip("TPU 7x"), chips=64, max_sequences=1024)
    assert traffic.block_tokens == 512
    # one request at a time, so that each finds all that went before, in a cache that forgets nothing
    far = traffic.faster(1e-3).first(600)
    assert kv_capacity_tokens(setup) > far.prompt.sum() + far.output.sum()
    outcome = simulate(setup, far)
    blocks = far.prompt // 512
    seen: set[int] = set()
    found = 0
    for i in range(len(far)):
        ids = far.hash_ids[far.hash_start[i] : far.hash_start[i + 1]]
        known = next((k for k, b in enumerate(ids) if b not in seen), len(ids))
        found += min(known, (far.prompt[i] - 1) // 512)
        seen.update(ids[: blocks[i]].tolist())
    assert outcome.requests["cached"].sum() == found * 512
