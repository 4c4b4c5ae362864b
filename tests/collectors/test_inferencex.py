"""InferenceX results: rates of all GPUs from rates per GPU, latencies in seconds."""

import json

import pytest

from collectors import COLLECTORS
from collectors.serving import inferencex
from errors import InputError
from tests.collectors.reading import read, source_of

ONE = {
    "hw": "mi355x",
    "conc": 4,
    "image": "some/image:1",
    "model": "a/model",
    "infmax_model_prefix": "a",
    "tp": 8,
    "framework": "vllm",
    "precision": "int4",
    "disagg": False,
    "isl": 1024,
    "osl": 1024,
    "tput_per_gpu": 56.0,
    "output_tput_per_gpu": 28.0,
    "input_tput_per_gpu": 28.0,
    "mean_ttft": 0.317,
    "median_ttft": 0.297,
    "p99_ttft": 0.586,
    "p99.9_ttft": 0.659,
    "mean_tpot": 0.0173,
    "median_intvty": 57.5,
    "p99_tpot": 0.0185,
    "median_itl": 0.044,
    "p90_e2el": 17.9,
}


def test_a_result(tmp_path):
    source = source_of(tmp_path, json.dumps(ONE, indent=2), "agg_a.json")
    assert [c.NAME for c in COLLECTORS if c.sniff(source) >= 0.5] == ["inferencex"]
    found = read(inferencex, source)
    (load,) = found.rows["stages"]
    assert (load["max_concurrency"], load["output_tokens_per_s"], load["total_tokens_per_s"]) == (4, 224.0, 448.0)
    assert load["completed"] is None and load["duration_s"] is None and load["outcome"] == "measured"
    said = {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}
    assert said == {
        ("ttft", "mean"): 0.317,
        ("ttft", "p50"): 0.297,
        ("ttft", "p99"): 0.586,
        ("ttft", "p99.9"): 0.659,
        ("tpot", "mean"): 0.0173,
        ("tpot", "p99"): 0.0185,
        ("itl", "p50"): 0.044,
        ("e2e", "p90"): 17.9,
    }
    assert found.facts["chips"] == found.facts["tensor_parallel_size"] == 8
    assert (found.facts["model"], found.facts["chip"], found.facts["engine"]) == ("a/model", "MI355X", "vllm")


def test_two_pools_have_gpus_of_their_own(tmp_path):
    pools = {**ONE, "disagg": True, "num_prefill_gpu": 4, "num_decode_gpu": 12, "decode_tp": 4}
    other = {**pools, "conc": 8}
    found = read(inferencex, source_of(tmp_path, json.dumps([pools, other]), "agg.json"))
    assert [load["max_concurrency"] for load in found.rows["stages"]] == [4, 8]
    assert found.rows["stages"][0]["output_tokens_per_s"] == 28.0 * 12
    assert found.rows["stages"][0]["total_tokens_per_s"] == 56.0 * 16
    assert found.facts["chips"] == 16 and found.facts["decode_chips"] == 12 and found.facts["tensor_parallel_size"] == 4


@pytest.mark.parametrize(("hw", "name"), [("b200-trt", "B200"), ("gb200_nvl72", "GB200"), ("h200", "H200 SXM")])
def test_chips_and_formats_have_the_names_of_the_catalogue(tmp_path, hw, name):
    found = read(inferencex, source_of(tmp_path, json.dumps({**ONE, "hw": hw, "precision": "FP8_E4M3"}), "agg.json"))
    assert (found.facts["chip"], found.facts["weights_precision"]) == (name, "fp8") and not found.lost


def test_a_name_that_the_catalogue_lacks_is_kept_and_said(tmp_path):
    odd = {**ONE, "hw": "zz9000", "precision": "fp7"}
    found = read(inferencex, source_of(tmp_path, json.dumps(odd), "agg.json"))
    assert (found.facts["chip"], found.facts["weights_precision"]) == ("zz9000", "fp7")
    told = found.reasons()
    assert "'zz9000' is no chip of the catalogue" in told and "'fp7' is no format of weights" in told


def test_what_is_no_result(tmp_path):
    with pytest.raises(InputError, match="no result of InferenceX"):
        read(inferencex, source_of(tmp_path, '{"hw": "x"}', "agg.json"))
