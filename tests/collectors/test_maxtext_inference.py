"""MaxText's inference microbenchmark: step times by length as iterations, what else it says as scalars and facts."""

import json

import pytest

from collectors.serving import maxtext_inference
from errors import InputError
from tests.collectors.reading import read, source_of

RESULT = {
    "prefill-result-sizes": {"64": {"total_cache_size": 5}},
    "prefill": {
        "1024": {"time_in_ms": 80.5, "total_tflops_per_device": 4.5, "tflops_per_sec_per_device": 56.0},
        "64": {"time_in_ms": 14.25, "total_tflops_per_device": 0.3, "tflops_per_sec_per_device": 20.0},
    },
    "insert": {"64": {"time_in_ms": 0.5}, "1024": {"time_in_ms": 1.25}},
    "autoregressive": {
        "step_in_ms": 38.5,
        "step_in_ms_per_seq": 0.401,
        "global_batch_size": 96,
        "total_throughput_tokens_per_second": 2493.5,
        "device_bandwidth_GB_per_second": 550.25,
    },
    "sizes": {"model_size_in_gb": 13.5, "cache_size_in_gb": 50.25, "model_params_in_billions": 6.75},
    "config": {"model_name": "llama2-7b", "steps": 3},
}
NEEDED = ("order", "dur_ns", "prefill_requests", "prefill_tokens", "decode_requests", "decode_tokens", "start_ns")


def test_steps(tmp_path):
    source = source_of(tmp_path, json.dumps(RESULT, indent=2), "results.json")
    assert maxtext_inference.sniff(source) > 0.5
    found = read(maxtext_inference, source)
    assert [tuple(row[c] for c in NEEDED) for row in found.rows["iterations"]] == [
        (0, 14_250_000, 1, 64, 0, 0, None),
        (1, 80_500_000, 1, 1024, 0, 0, None),
        (2, 38_500_000, 0, 0, 96, 96, None),
    ]
    scalars = {(row["name"], row["step"]): (row["value"], row["unit"]) for row in found.rows["scalars"]}
    assert scalars == {
        ("insert time by prompt length", 64): (0.0005, "s"),
        ("insert time by prompt length", 1024): (0.00125, "s"),
        ("prefill FLOP/s of a device by prompt length", 64): (20e12, "FLOP/s"),
        ("prefill FLOP/s of a device by prompt length", 1024): (56e12, "FLOP/s"),
        ("decode bandwidth of a device", None): (550.25e9, "B/s"),
    }
    assert found.facts == {
        "weights_bytes": 13.5e9,
        "kv_cache_bytes": 50.25e9,
        "parameters": 6.75e9,
        "model": "llama2-7b",
    }
    assert "mean over a loop" in found.reasons()


def test_the_older_names(tmp_path):
    old = {
        "Prefill": {
            "128": {
                "prefill_time_in_ms": 16.5,
                "prefill_total_tflops_per_device": 1.0,
                "prefill_tflops_per_sec_per_device": 60.0,
            }
        },
        "Prefill_Insert": {"128": {"prefill_insert_time_in_ms": 18.0}},
        "AutoRegressive": {
            "ar_step_in_ms": 20.5,
            "ar_step_in_ms_per_seq": 0.4,
            "ar_global_batch_size": 48,
            "ar_device_bandwidth_GB_per_second": 600.0,
        },
    }
    source = source_of(tmp_path, json.dumps(old))
    assert maxtext_inference.sniff(source) > 0.5
    found = read(maxtext_inference, source)
    assert found.column("iterations", "dur_ns") == [16_500_000, 20_500_000]
    assert found.column("scalars", "value") == [0.018, 60e12, 600e9]


def test_times_that_cannot_be(tmp_path):
    broken = {
        "prefill": {"64": {"time_in_ms": -1.0}, "128": {"time_in_ms": 0}, "256": {"time_in_ms": 5.0}, "x": 3},
        "autoregressive": {"step_in_ms": 38.5, "global_batch_size": 0},
    }
    found = read(maxtext_inference, source_of(tmp_path, json.dumps(broken)))
    assert found.column("iterations", "prefill_tokens") == [256]
    assert "prefill times (2)" in found.reasons() and "decode times" in found.reasons()


def test_what_is_no_result(tmp_path):
    for text in ("", "{}", '{"prefill": {"64": {"time_in_ms": 0}}}', json.dumps(RESULT)[:150], "[]"):
        with pytest.raises(InputError):
            read(maxtext_inference, source_of(tmp_path, text))
