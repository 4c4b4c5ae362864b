"""What was measured lies inside the bands of a simulation that was calibrated on nothing, and the bands are no wider
than some use is left of them.

Every measurement of `data/inference` and of the cases whose model, chip and load are known: the two vLLM runs with
their setups beside them, the two blocks of `vllm bench serve` (Llama 3.3 70B on 8 TPU v6e by the facts), and the cases
of the catalogue (gpt-oss-120b on RTX PRO 6000 and B200). The other files name no chip or no model, or were made by
hand, or are of a hosted service; `LEFT_OUT` says which.
"""

import re
from pathlib import Path

import pytest

from app.whatif.serving.inputs import measured
from app.whatif.serving.known import band as assumed
from app.whatif.serving.load import load_of
from catalog import chip, model
from catalog.serving_figures import cases, figures
from collectors.ingest import ingest
from runs.store import Store
from simulators.serving.efficiency import FAST, SLOW, TYPICAL
from simulators.serving.engine import simulate
from simulators.serving.known import traffic_of
from simulators.serving.objectives import Objectives, Shape
from simulators.serving.planner import Wanted, plan
from simulators.serving.result import from_runs
from simulators.serving.setup import Setup
from simulators.serving.traffic import Traffic, closed

FILES = Path(__file__).resolve().parents[3] / "shared" / "data" / "inference"
pytestmark = pytest.mark.skipif(not FILES.is_dir(), reason="the measurements beside the project are absent")
LEFT_OUT = {
    "inference-perf": "neither model nor chip is told",
    "llmperf-leaderboard": "hosted services, chips unknown",
    "llm-d-benchmark": "examples made by hand or without a chip",
    "vllm_bench_blocks": "00, 03 to 05 hold no figures",
}
V6E_TOKENS = 1024  # of a step: what vLLM's server takes on a v6e where nothing is said, as here (its arg_utils.py)
WIDEST = 60.0  # the fast end by the slow one: B200 alone asks for 8 to 92 % of the bandwidth


def band(setup: Setup, traffic: Traffic):
    runs = [simulate(setup, traffic, e, record=False) for e in (TYPICAL, SLOW, FAST)]
    found = from_runs(runs[0], tuple(runs[1:]))
    return {
        "output_tokens_per_s": found["output_tokens_per_s"]["value"],
        "tpot_s": found["tpot_s"]["mean"],
        "ttft_s": found["ttft_s"]["mean"],
    }


def holds(name: str, told: dict[str, float], found: dict[str, tuple[float, float]]) -> None:
    for metric, value in told.items():
        low, high = found[metric]
        print(f"{name}: {metric} measured {value:.4g}, band {low:.4g} to {high:.4g}")
    for metric, value in told.items():
        low, high = found[metric]
        assert low <= value <= high, f"{name}: {metric} {value:.4g} outside {low:.4g} to {high:.4g}"
        assert high < WIDEST * low or metric == "ttft_s", f"{name}: {metric} from {low:.4g} to {high:.4g} says nothing"


def test_every_folder_is_used_or_left_out_for_a_reason():
    assert {p.name for p in FILES.iterdir() if p.is_dir()} == {*LEFT_OUT, "llmservingsim"}


@pytest.mark.parametrize(("named", "cards"), [("Llama-3.1-8B", 1), ("Qwen3-32B", 2)])
def test_vllm_on_rtx_pro_6000(tmp_path, named, cards):
    """Requests of a trace; both fall behind for as long as requests come, yet the band is of the same queue."""
    store = Store(tmp_path / "store")
    made = ingest([FILES / "llmservingsim" / f"RTXPRO6000__{named}__vllm__requests.jsonl"], store)
    run = measured(load_of(store.find(made.run_id)))
    setup = Setup(
        model=model(named), chip=chip("RTX PRO 6000 Server"), chips=cards, max_sequences=128, token_budget=2048
    )
    last = run.traffic.arrival_s + run.ttft_s + run.tpot_s * (run.traffic.output - 1)
    told = {
        "output_tokens_per_s": run.traffic.output.sum() / last.max(),
        "tpot_s": run.tpot_s.mean(),
        "ttft_s": run.ttft_s.mean(),
    }
    holds(named, {k: float(v) for k, v in told.items()}, band(setup, run.traffic))


@pytest.mark.parametrize(("block", "at_a_time"), [("01", 64), ("02", 128)])
def test_llama_70b_on_8_v6e(block, at_a_time):
    text = (FILES / "vllm_bench_blocks" / f"{block}.txt").read_text()

    def figure(what: str) -> float:
        return float(re.search(rf"{re.escape(what)}:\s+([\d.]+)", text)[1])

    requests = int(figure("Successful requests"))
    lengths = (int(figure("Total input tokens") / requests), int(figure("Total generated tokens") / requests))
    told = {
        "output_tokens_per_s": figure("Output token throughput (tok/s)"),
        "tpot_s": figure("Mean TPOT (ms)") / 1e3,
        "ttft_s": figure("Mean TTFT (ms)") / 1e3,
    }
    setup = Setup(model=model("llama-3.3-70b"), chip=chip("v6e"), chips=8, token_budget=V6E_TOKENS)
    holds(f"block {block}", told, band(setup, closed(at_a_time, requests, *lengths)))


@pytest.mark.parametrize(("name", "tpot"), [("rtx", "rtx.tpot_s.mean"), ("b200", "b200.tpot_s.mean")])
def test_the_customer_s_case(name, tpot):
    """All at once: far beyond what they bear, so that times to first token say how long it went on."""
    case = next(c for c in cases() if c.name == name)
    setup = Setup(model=model(case.model), chip=chip(case.chip), chips=case.chips, weights_precision=case.precision)
    load = traffic_of(case.requests, case.in_flight, case.input, case.answer_tokens, case.prefix)
    told = {"output_tokens_per_s": case.output_tokens_per_s, "tpot_s": figures()[tpot].value}
    holds(name, told, band(setup, load))


@pytest.mark.parametrize("name", ["rtx", "b200"])
def test_the_planner_s_own_band_uncalibrated(name):
    """Of what a replica bears, had nobody measured it."""
    case = next(c for c in cases() if c.name == name)
    wanted = Wanted(
        model=model(case.model),
        shape=Shape(case.input, case.answer_tokens, case.prefix),
        rate_per_s=20.0,
        objectives=Objectives(),
    )
    made = plan(wanted, [chip(case.chip)], {}, {})
    one = next(c for c in made.choices if c.feasible and (c.setup.tensor, c.setup.expert) == (case.chips, 1))
    low, high = assumed(wanted, one, None).output_tokens_per_s
    print(f"{name}: a replica bears {low:.4g} to {high:.4g} output tokens/s, measured {case.output_tokens_per_s}")
    assert low <= case.output_tokens_per_s <= high < WIDEST * low
