"""Room for sequences: against arithmetic by hand, beside what engines print, and what is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import kv_cache as kv
from analyzers.serving import speculation
from analyzers.serving.kv_cache.room import Setting, room, tensor_choices
from analyzers.serving.kv_cache.setting import precision_of
from app.questions.kv_cache import words
from catalog.inference import kv_bytes, weights_bytes
from catalog.models import model
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

GIB = 1 << 30
V6E = dict(chip="v6e", hbm_bytes=32e9, seq=1500, page_tokens=1)


def asked(name="llama-3.1-8b", tables=None, facts=None, **options):
    known = facts_of({**({"model": name} if name else {}), **(facts or {})})
    return kv.analyze(MemoryTables(tables or {}), known, parse_options(kv.OPTIONS, options))


def test_the_contract():
    told = asked("llama-2-13b", chip="v5e", chips=8, seq=8192).to_dict()
    json.dumps(told, allow_nan=False)
    assert told["kv_bytes_per_token"] == 2 * 40 * 40 * 128 * 2
    assert told["weights_bytes"] == weights_bytes(model("llama-2-13b"))
    memory = 15.75 * GIB * 0.9
    assert told["max_sequences"] == int((memory - told["weights_bytes"] / 8) / (819200 * 8192 / 8)) == 14
    parts = told["per_chip"]
    assert parts["usable_bytes"] == pytest.approx(memory)
    accounts = ("weights", "activations", "kv", "overhead", "kept_back")
    assert sum(parts[f"{k}_bytes"] for k in accounts) == pytest.approx(parts["hbm_bytes"])


@pytest.mark.parametrize("chips, quoted, own", [(4, 55, 55), (8, 174, 154)])
def test_gemma_31b_on_four_and_eight_v6e(chips, quoted, own):
    """The quoted arithmetic, and ours: on 8 chips each global key head is on two."""
    known = V6E | {"chips": chips, "weights_bytes": 62.3e9}
    assert asked("gemma-4-31b", **known, replication="no").max_sequences == quoted
    result = asked("gemma-4-31b", **known)
    assert result.max_sequences == own
    repeated = result.to_dict()["per_chip"]["kv_repeated_bytes_per_sequence"] * chips
    assert repeated == pytest.approx(0 if chips == 4 else 10 * 1500 * 4 * 2 * 512 * 2)


def test_eight_bits_double_what_fits():
    one, two = (asked(chip="H100", seq=8192, kv_precision=p) for p in ("bf16", "fp8"))
    assert two.room.lane_sequences == pytest.approx(2 * one.room.lane_sequences)


def test_replicas_each_hold_the_weights():
    result = asked(chip="H100", chips=8, tensor=2, seq=4096)
    assert result.room.lanes == 4 and result.max_sequences % 4 == 0
    assert result.room.chip_weights_bytes == weights_bytes(model("llama-3.1-8b")) / 2


def test_data_parallel_attention_keeps_a_latent_once():
    shared, own = (
        asked("deepseek-v3", chip="H200", chips=8, seq=8192, weights_precision="fp8", attention=a)
        for a in ("tensor", "data")
    )
    assert shared.room.sequence_bytes == own.room.sequence_bytes
    assert own.room.lanes == 8 and own.max_sequences > 6 * shared.max_sequences
    assert own.room.chip_weights_bytes > shared.room.chip_weights_bytes
    assert shared.changes[0][0] == "attention" and shared.changes[0][2].max_sequences == own.max_sequences
    assert any("latent has no heads" in n for n in shared.notes)


def test_pipeline_stages_share_layers():
    flat, staged = (
        asked("llama-3.1-70b", chip="H100", chips=8, seq=4096, tensor=t, pipeline=p) for t, p in ((8, 1), (4, 2))
    )
    assert staged.room.chip_weights_bytes == flat.room.chip_weights_bytes
    assert staged.max_sequences == flat.max_sequences and staged.room.lanes == 1


def test_pages_are_rounded_up():
    exact, paged = (asked(chip="H100", seq=1000, page_tokens=p).room for p in (1, 256))
    assert paged.sequence_bytes == kv_bytes(model("llama-3.1-8b"), 1024)
    assert paged.rounding_share == pytest.approx(24 / 1024) and exact.rounding_share == 0


def test_input_and_output_give_both_lengths():
    result = asked(chip="H100", input=1000, output=1000)
    assert result.seq == 2000
    assert result.mean_sequences == asked(chip="H100", seq=1500).max_sequences > result.max_sequences


def test_what_does_not_fit_is_said():
    result = asked("llama-3.1-70b", chip="v5e", chips=1)
    assert result.max_sequences == 0 and result.room.free_bytes < 0
    assert result.to_dict()["engine_tokens"] == 0


def test_without_a_chip_the_cache_of_a_token_is_still_told():
    told = asked().to_dict()
    assert told["kv_bytes_per_token"] == 131072 and told["max_sequences"] is None


RUN = {
    "engine": {"ts_ns": [1, 2, 3], "order": [0, 1, 2], "kv_usage": [0.2, 0.9, 1.7]},
    "requests": {"id": ["a", "b"], "prompt_tokens": [100, 200], "output_tokens": [29, 50], "preemptions": [0, 2]},
}


def test_beside_what_the_engine_found():
    facts = {
        "chip": "H100",
        "chips": 1,
        "kv_cache_tokens": 440_000,
        "kv_available_bytes": 54 * GIB,
        "gpu_memory_utilization": 0.9,
        "tensor_parallel_size": 1,
        "weights_loaded_bytes": 15 * GIB,
    }
    result = asked(tables=RUN, facts=facts, page_tokens=64)
    assert result.seq == 190 and result.requests == 2  # the mean of 129 and 250, rounded up
    assert result.page_rounding == pytest.approx(1 - 379 / (192 + 256))
    assert result.measured.peak_usage == 0.9  # 1.7 cannot be a share
    assert result.measured.preemptions == 2
    told = asked(tables=RUN, facts=facts, seq=8192).comparison
    by_hand = int((79.18 * GIB * 0.9 - weights_bytes(model("llama-3.1-8b"))) / 131072)
    assert told["arithmetic_tokens"] == pytest.approx(by_hand, rel=1e-4)
    assert told["difference"] == pytest.approx(told["arithmetic_tokens"] / 440_000 - 1)
    assert told["implied_bytes"] == pytest.approx((told["arithmetic_tokens"] - 440_000) * 131072)


def test_requests_that_failed_make_no_sequence_shorter():
    """Of four requests two were refused and one was cut off: the one that was answered tells how long one is."""
    requests = {
        "prompt_tokens": [1000] * 4,
        "output_tokens": [1000, 0, 0, 40],
        "status": ["completed", "failed", "aborted", "cut_off"],
        "id": list("abcd"),
    }
    found = asked(tables={"requests": requests}, chip="H100", chips=1)
    assert found.seq == 2000 and found.requests == 1
    assert found.max_sequences == asked(chip="H100", chips=1, seq=2000).max_sequences
    draft = parse_options(speculation.OPTIONS, {"acceptance": 0.7})
    assert speculation.analyze(MemoryTables({"requests": requests}), {}, draft).context == 1500
    traffic = {**requests, "status": [None] * 4}  # that nobody served
    assert asked(tables={"requests": traffic}, chip="H100", chips=1).requests == 4


def test_the_run_says_how_it_is_spread():
    facts = {
        "chip": "H100",
        "tensor_parallel_size": 2,
        "data_parallel_size": 3,
        "kv_precision": "fp8_e4m3",
        "precision": "bf16",
        "block_size": 32,
    }
    s = asked(facts=facts, seq=1000).room.setting
    assert (s.chips, s.tensor, s.kv_precision, s.page_tokens) == (6, 2, "fp8", 32)


def test_a_run_of_an_unknown_model_shows_what_its_engine_tells():
    result = asked("my/own-model", tables=RUN)
    assert result.room is None and result.measured.peak_usage == 0.9
    assert "not known here" in result.notes[0]
    with pytest.raises(QuestionError, match="not known here"):
        asked("my/own-model")
    with pytest.raises(QuestionError, match="no model is called"):
        asked("my/own-model", tables=RUN, model="neither")


def test_a_run_that_tells_nothing_is_refused():
    with pytest.raises(QuestionError, match="nothing says which model"):
        asked(None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"chips": 0},
        {"chips": 6, "tensor": 4},
        {"utilization": 0.0},
        {"utilization": 1.1},
        {"page_tokens": -1},
        {"activations_bytes": -1.0},
        {"hbm_bytes": 0.0},
        {"seq": 0},
        {"input": 0, "output": 0},
        {"input": -5, "output": 9},
        {"weights_bytes": -1.0},
    ],
)
def test_impossible_options_are_refused(wrong):
    with pytest.raises(QuestionError):
        asked(**({"chip": "v6e", "seq": 100} | wrong if "input" not in wrong else {"chip": "v6e"} | wrong))


def test_formats_as_frameworks_name_them():
    names = {
        "torch.bfloat16": "bf16",
        "fp8_e4m3": "fp8",
        "auto": None,
        None: None,
        "float16": "fp16",
        "mxfp4": "mxfp4",
        "awq_marlin": "awq",
    }
    assert {n: precision_of(n) for n in names} == names


def test_ways_to_share_weights():
    assert tensor_choices(model("llama-2-13b"), 16) == (1, 2, 4, 8)  # 40 heads
    assert tensor_choices(model("llama-3.1-8b"), 6) == (1, 2)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["llama-3.1-8b", "gemma-4-31b", "gpt-oss-20b", "deepseek-v2-lite"]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 100_000),
    st.sampled_from([1, 16, 128]),
    st.sampled_from(["tensor", "data"]),
)
def test_what_fits_is_the_most_that_fits(name, groups, tensor, seq, page, attention):
    found = room(
        model(name),
        Setting(chips=groups * tensor, tensor=tensor, hbm_bytes=95e9, seq=seq, page_tokens=page, attention=attention),
    )
    a_lane = found.max_sequences // found.lanes
    assert found.max_sequences == a_lane * found.lanes
    if found.free_bytes > 0:
        assert a_lane * found.sequence_bytes <= found.free_bytes * (1 + 1e-9)
        assert (a_lane + 1) * found.sequence_bytes > found.free_bytes * (1 - 1e-9)
    assert found.repeated_bytes >= 0 and 0 <= found.rounding_share < 1


def test_a_start_up_log_alone_tells_how_much_fits():
    """The engine printed its cache and the longest sequence, and nobody said on which chip."""
    facts = {"kv_cache_tokens": 153_360, "max_model_len": 32_768, "model": "qwen3-8b"}
    result = kv.analyze(MemoryTables({}), facts_of(facts), parse_options(kv.OPTIONS, {}))
    assert result.room is None and result.to_dict()["measured"]["engine_tokens"] == 153_360
    assert words.verdict(result) == "The engine found room for 153,360 tokens: 4.68 sequences of 32,768 at a time."


def test_what_a_device_held_tells_of_no_cache():
    """An exporter of GPUs beside a training job samples memory too."""
    memory = {"host": ["a"], "device": [0], "kind": ["bytes_in_use"], "bytes": [GIB]}
    with pytest.raises(QuestionError, match="no engine tells of its cache"):
        asked(None, {"memory": memory})
