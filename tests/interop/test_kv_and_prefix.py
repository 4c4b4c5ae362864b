"""KV room and prefix replay on real traces and runs from beside the project."""

import json
from pathlib import Path

import numpy as np
import pytest

from analyzers.serving import kv_cache as kv
from analyzers.serving import prefix_cache as prefix
from catalog.inference import weights_bytes
from catalog.models import model
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
MOONCAKE = SHARED / "requests" / "mooncake" / "synthetic_trace.jsonl"
SERVED = SHARED / "inference" / "llmservingsim"


def ingested(files, folder):
    store = Store(folder)
    return store.find(ingest(files, store, name="served").run_id)


@pytest.fixture(scope="module")
def mooncake(tmp_path_factory):
    if not MOONCAKE.exists():
        pytest.skip("no Mooncake trace beside the project")
    return ingested([MOONCAKE], tmp_path_factory.mktemp("store"))


def asked(run, question, **options):
    return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))


def test_mooncake_finds_what_is_published(mooncake):
    """63.96 % of all blocks lie at the start of their prompt and came before: 77,953 of 121,877."""
    result = asked(mooncake, prefix)
    assert result.infinite_hit_rate == 77953 / 121877 == pytest.approx(0.6396, abs=5e-5)
    assert (result.requests, result.blocks, result.distinct_blocks) == (3993, 121877, 43924)
    assert result.block_tokens == 512
    rates = result.by_size["hit_rate"].to_numpy()
    assert (np.diff(rates) >= 0).all() and rates[-1] == result.infinite_hit_rate


def test_mooncake_at_one_size_as_simulated_block_by_block(mooncake):
    from tests.analyzers.test_prefix import simulated

    prompts = [json.loads(line)["hash_ids"] for line in MOONCAKE.read_text().splitlines()]
    for size in (100, 5000, 20368):
        found = simulated(prompts, size) / 121877
        assert asked(mooncake, prefix, blocks=size).hit_rate == pytest.approx(found, rel=1e-12)
    assert asked(mooncake, prefix).enough_blocks == 20368


def test_mooncake_in_bytes_of_a_model(mooncake):
    result = asked(mooncake, prefix, model="llama-3.1-70b", chip="H100", gigabytes=1000.0)
    assert result.block_bytes == 512 * 327680 and result.size_blocks == int(1e12 / (512 * 327680))
    assert 0.28 < result.hit_rate < 0.34 and result.saved["size"]["flops_share"] > result.hit_rate


@pytest.mark.skipif(not SERVED.exists(), reason="no served runs beside the project")
@pytest.mark.parametrize("name, chips", [("RTXPRO6000__Llama-3.1-8B", 1), ("RTXPRO6000__Qwen3-32B", 2)])
def test_room_of_real_vllm_runs(tmp_path, name, chips):
    """No start-up lines are there: the setting is the run's own, and what ran at a time fits what arithmetic finds."""
    run = ingested(sorted(SERVED.glob(f"{name}__*")), tmp_path / "store")
    result = asked(run, kv)
    assert (result.room.setting.chips, result.room.setting.tensor, result.requests) == (chips, chips, 300)
    weights = weights_bytes(model(name.split("__")[1]))
    assert result.room.chip_weights_bytes == pytest.approx(weights / chips)
    assert result.room.setting.hbm_bytes * 0.9 == pytest.approx(result.room.usable_bytes)
    running = run.tables.arrow("engine", ["running"])["running"].to_numpy()
    assert running.max() == 128 < result.max_sequences
