"""The KV cache page: of a model alone, of a run with an engine's log, of a run that tells nothing."""

import numpy as np
import pytest

from analyzers.serving import kv_cache as kv
from app import theme
from app.questions.kv_cache.figure import COLOURS, LENGTHS, by_length, lines, memory, over_time
from app.questions.kv_cache.words import memory_parts, rows, table, verdict
from catalog.models import model
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.app import made_runs
from tests.app.test_pages import ODD, opened, words

PAGE = "questions/kv_cache/page.py"
SAMPLES = {"engine": {"ts_ns": [0, 10**9, 2 * 10**9], "order": [0, 1, 2], "kv_usage": [0.1, 0.5, 0.93]}}
FOUND = {"model": "llama-3.1-8b", "chip": "H100", "chips": 1, "kv_cache_tokens": 442_528, "max_model_len": 8192}


def answered(name="llama-3.1-8b", tables=None, facts=None, **options):
    known = facts_of({"model": name} | (facts or {}))
    return kv.analyze(MemoryTables(tables or {}), known, parse_options(kv.OPTIONS, options))


def test_verdicts():
    text = verdict(answered(tables=SAMPLES, facts=FOUND)).whole
    assert text.startswith("56 sequences of 8,192 tokens of llama3.1-8b fit 1 chip of H100 SXM at a time")
    assert "The engine found room for 442,528 tokens; arithmetic gives 461,246, 4.2 % more: 2.45 GB of a chip" in text
    assert "At its fullest the cache was 93 % full." in text and "An 8-bit cache would let 112 fit." in text
    assert "does not fit 1 chip" in verdict(answered("llama-3.1-70b", chip="v5e", chips=1))
    assert verdict(answered("llama-3.1-8b", chip="v6e", seq=10**6)).startswith("Not one sequence")
    assert "none is named" in verdict(answered())
    assert "1 request was put back" in verdict(
        answered(tables=SAMPLES | {"requests": {"id": ["a"], "preemptions": [1]}}, facts=FOUND)
    )
    latent = answered("deepseek-v3", chip="H200", chips=8, weights_precision="fp8")
    assert "Data-parallel attention would let 576 fit." in verdict(latent)


@pytest.mark.parametrize("name, chips, tensor", [("gemma-4-31b", 8, 8), ("llama-3.1-8b", 4, 2), ("deepseek-v3", 8, 8)])
def test_parts_of_a_chip_add_up(name, chips, tensor):
    result = answered(name, chip="TPU 7x", chips=chips, tensor=tensor, seq=1500, page_tokens=256)
    assert sum(size for _, _, size in memory_parts(result.room)) == pytest.approx(result.room.setting.hbm_bytes)
    figure = memory({"as asked": result.room})
    assert sum(bar.x[0] for bar in figure.data) == pytest.approx(result.room.setting.hbm_bytes / 1e9)
    assert {key for key, _, _ in memory_parts(result.room)} == set(COLOURS)
    assert set(COLOURS.values()) <= set(theme.COLOURS.values())


def test_lines_hold_what_rooms_hold():
    result = answered("gemma-4-31b", chip="v6e", chips=8, seq=4096)
    figure = by_length(result.model, result.room)
    drawn = {line.name: line for line in figure.data if line.mode == "lines"}
    assert {"bf16, TP 8", "fp8, TP 8"} <= set(drawn)
    at = LENGTHS[20]
    assert drawn["bf16, TP 8"].y[20] == answered("gemma-4-31b", chip="v6e", chips=8, seq=at).max_sequences
    mark = next(trace for trace in figure.data if trace.mode == "markers")
    assert (mark.x[0], mark.y[0]) == (4096, result.max_sequences)
    assert [line.asked for line in lines(model("gemma-4-31b"), result.room.setting)].count(True) == 1


def test_the_cache_over_time():
    result = answered(tables=SAMPLES, facts=FOUND)
    line = over_time(result).data[0]
    assert list(line.x) == [0, 1, 2] and np.allclose(line.y, [10, 50, 93])
    assert over_time(answered(chip="H100")) is None


def test_the_table_tells_gb_and_gib():
    told = dict(rows(answered(chip="H100", seq=8192)))
    assert told["memory of a chip"] == "85.0 GB"
    assert told["sequences at a time"] == "56"
    assert len(table(answered()).rows) == 2


def test_the_page_of_a_model(place):
    at = opened(PAGE, model="gemma4-31b", chips="8", seq="1500")
    assert not at.exception and not at.warning
    assert "165 sequences of 1,500 tokens of gemma4-31b fit 8 chips of TPU v6e" in words(at)
    shown = {m.label[:-2]: m.value for m in at.metric}
    assert shown["Sequences at a time"] == "165" and shown["Weights on a chip"] == "7.70 GB"
    at.selectbox(key="pick_kv_precision").set_value("fp8").run()
    assert at.query_params["kv_precision"] == "fp8" and "331 sequences" in words(at)


def test_the_page_of_a_run_follows_the_run(place):
    run = made_runs.write(place.store, "served", SAMPLES, FOUND, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception
    assert "The engine found room for 442,528 tokens" in words(at)
    assert [m.value for m in at.metric][:1] == ["56"] and len(at.metric) == 5
    at = opened(PAGE, run=run.run_id, chip="TPU v6e", chips="4")
    assert not at.exception and "fit 4 chips of TPU v6e" in words(at)


def test_a_run_on_an_unknown_chip_is_not_put_on_another(place):
    known = {"model": "llama-3.1-8b", "chip": "cpu-process", "chips": 1, "kv_cache_tokens": 5760}
    run = made_runs.write(place.store, "cpu", SAMPLES, known, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "at a time: the cache" not in words(at)
    assert "the cache was 93 % full" in words(at)
    assert {m.label[:-2]: m.value for m in at.metric}["The engine's cache"] == "5,760 tokens"
    at.selectbox(key="pick_chip").set_value("H100 SXM").run()
    assert not at.exception and "fit 1 chip of H100 SXM" in words(at)
    assert "The engine found room" not in words(at)  # it ran elsewhere


def test_a_run_of_a_model_with_an_odd_name(place):
    run = made_runs.write(place.store, ODD, SAMPLES, {"model": ODD, "chip": ODD}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "At its fullest the cache was 93 % full." in words(at)


def test_a_run_that_tells_nothing_is_told_kindly(place):
    run = made_runs.write(place.store, "empty", {"requests": {"id": ["a"]}}, {}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "nothing says which model this is" in words(at)
    at = opened(PAGE, run=run.run_id, model="llama3.1-8b", chip="H100 SXM")
    assert not at.exception and "of llama3.1-8b" in words(at)


@pytest.mark.parametrize(
    "address",
    [
        {"chips": "0"},
        {"tensor": "3"},
        {"attention": "none"},
        {"utilization": "2"},
        {"page_tokens": "x"},
        {"chip": "x"},
        {"chips": "7", "tensor": "8"},
        {"activations": "-1"},
        {"seq": "99999999999999"},
    ],
)
def test_an_address_that_cannot_be_falls_back(place, address):
    at = opened(PAGE, model="llama3.1-8b", **address)
    assert not at.exception and not at.warning
