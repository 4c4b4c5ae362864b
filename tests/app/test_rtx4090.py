"""A real run on one RTX 4090, as its owner has it: ingested by name, calibrated on, and told about truly."""

import json

import numpy as np
import pytest

from analyzers.serving import kv_cache as kv
from app.whatif.serving import SERVING
from app.whatif.serving.answers import find, fit
from app.whatif.serving.inputs import measured, run_setup, setup
from app.whatif.serving.load import load_of
from collectors.ingest import ingest
from errors import QuestionError
from errors.options import parse_options
from runs.store import Store
from tests.app.commands import asked_by
from tests.app.rtx4090 import SETUP, SUMMARY, records


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rtx4090")
    (folder / "agents.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records()), encoding="utf-8")
    store = Store(folder / "store")
    made = ingest([folder / "agents.jsonl"], store, chip="NVIDIA GeForce RTX 4090", chips=1, model="openai/gpt-oss-20b")
    return store.find(made.run_id)


def asked(run, *more):
    return asked_by(SERVING, "--calibrate", run.run_id, *more)


def test_the_figures_are_those_of_the_summary_of_the_load_generator():
    for users, (count, prompt, output, ttft, longest) in SUMMARY.items():
        rows = [r for r in records() if r["cell"] == f"agent_u{users}"]
        assert len(rows) == count
        assert np.mean([r["n_in"] for r in rows]) == pytest.approx(prompt, abs=0.05)
        assert np.mean([r["n_out"] for r in rows]) == pytest.approx(output, abs=0.05)
        assert np.median([r["ttft_s"] for r in rows]) == pytest.approx(ttft, abs=0.001)
        assert max(r["ttft_s"] for r in rows) == longest


def test_a_log_of_a_load_generator_of_ones_own_is_read_whole(run):
    found = run.tables.arrow("requests", ["ttft_ns", "e2e_ns", "prompt_tokens", "cached_tokens", "status"]).to_pylist()
    assert found[0] == {
        "ttft_ns": 91_000_000,
        "e2e_ns": 401_000_000,
        "prompt_tokens": 1161,
        "cached_tokens": 1120,
        "status": "completed",
    }
    share = sum(r["cached_tokens"] for r in found) / sum(r["prompt_tokens"] for r in found)
    assert share == pytest.approx(0.794, abs=0.0005)


def test_weights_are_as_the_maker_hands_them_out_where_nobody_says_else(run):
    """In bf16 they would take 41.8 GB of a card of 24: the run would be refused for what it did."""
    for made in (run_setup(asked(run), run), setup(asked(run), run)):
        assert (made.chip.name, made.kept.name) == ("RTX 4090", "mxfp4")
    assert setup(asked(run, "--precision", "bf16"), run).kept.name == "bf16"
    told = kv.analyze(run.tables, run.manifest.facts, parse_options(kv.OPTIONS, {}))
    assert told.room.chip_weights_bytes == pytest.approx(13.7e9, rel=0.01) and told.max_sequences > 16


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("someone/gpt-oss-20b-mine-AWQ", "awq"),
        ("someone/gpt-oss-20b-mine.w4a16", "gptq"),
        ("someone/mine-FP8", "fp8-linear"),
        ("someone/mine", "mxfp4"),
    ],
)
def test_a_model_of_ones_own_naming_is_one_of_the_catalogue_by_a_word(tmp_path, name, precision):
    """Its name tells of a format; which dimensions it has, --ran or --model says."""
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records()[:4]), encoding="utf-8")
    store = Store(tmp_path / "store")
    run = store.find(ingest([tmp_path / "few.jsonl"], store, chip="NVIDIA RTX 4090", chips=1, model=name).run_id)
    with pytest.raises(QuestionError, match="no model of the catalogue.*--ran model=NAME"):
        setup(asked(run), run)
    for more in (["--ran", "model=gpt-oss-20b"], ["--model", "gpt-oss-20b"]):
        for made in (setup(asked(run, *more), run), run_setup(asked(run, *more), run)):
            assert (made.model.name, made.chip.name, made.kept.name) == ("gpt-oss-20b", "RTX 4090", precision)


def test_a_run_of_summaries_says_how_to_record_single_requests(tmp_path):
    """Printed of vLLM on an RTX 4090 (github.com/vllm-project/vllm/pull/28280): two lines of its block."""
    (tmp_path / "block.txt").write_text(
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     100\nBenchmark duration (s):                  7.29\n"
        "Mean TTFT (ms):                          925.91\n" + "=" * 50 + "\n",
        encoding="utf-8",
    )
    store = Store(tmp_path / "store")
    run = store.find(ingest([tmp_path / "block.txt"], store, chip="RTX4090", chips=1, model="qwen3-8b").run_id)
    for more in ([], ["--rate", "3", "--input", "100", "--output", "20"]):
        with pytest.raises(QuestionError, match="no single requests.*--save-detailed"):
            find(asked(run, *more), run)


def test_it_calibrates_and_the_error_on_what_was_held_back_is_small(run):
    """The first half of the time is of 12 users and the start of 16; it predicts the rest. Without the prompt tokens
    that were cached, and taking the first token for the first that the client saw, errors were ten times so large."""
    found = fit(run, run_setup(asked(run, "--ran", SETUP), run))
    assert found.setup.silent_tokens == 3 and found.requests == 224 and found.batch == 16
    assert max(map(abs, found.splits["every other request"].values())) < 0.06
    assert max(map(abs, found.errors.values())) < 0.09
    assert 0.5 < found.efficiency.compute < 0.8 and found.efficiency.bandwidth > 0.8
    answer, times = find(asked(run, "--ran", SETUP), run), measured(load_of(run))
    rows = answer.outcome.served
    assert np.corrcoef(rows["ttft_s"], times.ttft_s)[0, 1] > 0.95
    assert np.corrcoef(rows["tpot_s"], times.tpot_s)[0, 1] > 0.95
    assert any("those of token 4" in n and "header of 3 tokens" in n for n in answer.notes)
