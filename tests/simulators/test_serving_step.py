"""How long a step takes: by hand, and against numbers that are published for the models and chips."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import chip, model
from catalog.inference import kv_bytes, token_flops, weights_bytes
from catalog.models import parameters
from catalog.serving_figures import cases
from errors import QuestionError
from simulators.collectives.rings import all_reduce
from simulators.serving.efficiency import FAST, IDEAL, SLOW, TYPICAL, Efficiency
from simulators.serving.engine import simulate
from simulators.serving.known import anchored, traffic_of
from simulators.serving.machine import machine, scaleup_bytes_per_s
from simulators.serving.memory import kv_capacity_bytes, kv_capacity_tokens, max_sequences, room
from simulators.serving.setup import Setup, Speculation
from simulators.serving.step import COMM_S_PER_TOKEN, decode_s, positions, prefill_s, step_model, step_time


def made(name: str, on: str, chips: int = 1, **more) -> Setup:
    return Setup(model=model(name), chip=chip(on), chips=chips, **more)


@pytest.mark.parametrize(("batch", "ms"), [(1, 4.98), (8, 12.13), (16, 20.30), (32, 36.65), (64, 69.33), (240, 249.09)])
def test_llama2_13b_on_8_v5e_reads_weights_and_cache_in_the_published_time(batch, ms):
    step = step_time(step_model(made("llama-2-13b", "v5e", 8), IDEAL), [8192] * batch)
    assert step.bound == "memory"
    assert step.memory_s * 1e3 == pytest.approx(ms, rel=0.01)


def test_llama3_70b_int8_on_8_v5e_reads_weights_and_cache_in_the_published_time():
    setup = made("llama-3-70b", "v5e", 8, weights_precision="int8", kv_precision="int8")
    model_ = step_model(setup, IDEAL)
    cache_s = 32 * kv_bytes(setup.model, 8192, "int8", 8) / 819e9
    whole = step_time(model_, [8192] * 32).memory_s
    assert cache_s + step_time(model_, [0]).memory_s == pytest.approx(17.28e-3, rel=0.01)
    # beside them the activations of 32 tokens, which the published number leaves out
    assert 0 < whole - 17.28e-3 < 0.8e-3


def test_reading_a_prompt_of_8192_on_16_v5e_at_40_per_cent():
    setup = made("llama-3-70b", "v5e", 16)
    step = step_time(step_model(setup, Efficiency(compute=0.4, hop_s=0.0)), chunks=[(8192, 0)])
    attention = 80 * 4 * 64 * 128 * 8192 * 8193 / 2 / 16 / (0.4 * 197e12)
    counts = parameters(setup.model)
    matrices = counts.total - 2 * counts.embedding  # a prompt needs neither table, but for its last token
    head = 2 * counts.embedding / 16 / (0.4 * 197e12)
    # the published 0.910 s counts 2 x 70e9 FLOPs a token, and neither attention nor what lies between matrices
    assert (step.compute_s - attention - head) / matrices * 70e9 == pytest.approx(0.910, abs=5e-4)
    assert step.bound == "compute"


def test_a_step_of_llama_8b_by_hand():
    setup = made("llama-3.1-8b", "h100")
    step = step_time(
        step_model(setup, Efficiency(bandwidth=0.5, compute=0.25, step_s=1e-3, sequence_s=1e-5)),
        contexts=[1000, 3000],
        chunks=[(512, 256)],
    )
    bytes_s, flops_s = 0.5 * 3.35e12, 0.25 * 989.4e12
    matrices = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    head = 128256 * 4096
    flops = (514 * 2 * matrices + 3 * 2 * head) / flops_s
    through = 514 * 2 * 32 * (4 * 4096 + 2 * 4096 + 2 * 1024 + 3 * 14336) / bytes_s
    weights = 2 * (matrices + head) / bytes_s
    between = 514 * 2 * 32 * (8 * 4096 + 3 * 14336) / bytes_s
    decode = 4000 * 131072 / bytes_s
    prompt = sum(32 * 4 * 32 * 128 * (256 + i) for i in range(1, 513)) / flops_s
    assert flops > weights + through and prompt > 768 * 131072 / bytes_s
    assert step.seconds == pytest.approx(flops + between + decode + prompt + 1e-3 + 3e-5, rel=1e-9)
    assert step.overhead_s == pytest.approx(1e-3 + 3e-5)


def test_tensor_parallel_all_reduces_by_hand():
    setup = made("llama-3.1-70b", "h100", 8)
    step = step_time(step_model(setup, Efficiency(communication=0.5, hop_s=1e-6)), contexts=[100] * 64)
    each = 2 * 7 / 8 * 64 * 8192 * 2 / (0.5 * 450e9) + 2 * 7 * 1e-6
    assert step.communication_s == pytest.approx(2 * 80 * each, rel=1e-9)
    assert step_time(step_model(made("llama-3.1-8b", "h100")), [100]).communication_s == 0


def test_experts_met_grow_with_the_batch_as_random_choice_has_it():
    setup = made("qwen3-30b-a3b", "h200")
    m = setup.model
    block = m.feedforward[0]
    one = 3 * m.d_model * block.d_ff * 2 * sum(bool(f.experts) for f in m.feedforward)
    quiet = step_model(setup, IDEAL)

    def reads(tokens: int) -> float:
        return step_time(quiet, [0] * tokens).memory_s * 4.8e12

    share = [1 - (1 - block.experts_per_token / block.experts) ** n for n in (1, 8)]
    activations = reads(9) - reads(8) - one * block.experts * (1 - (1 - 8 / 128) ** 9 - share[1])
    assert reads(8) - reads(1) == pytest.approx(one * block.experts * (share[1] - share[0]) + 7 * activations, rel=1e-6)
    assert reads(2000) < weights_bytes(m) + 2001 * activations


def test_latent_attention_is_absorbed_when_generating_and_expanded_when_reading():
    setup = made("deepseek-v3", "h200", 8, weights_precision="fp8")
    columns = step_model(setup).spans[0]
    assert columns[2] == pytest.approx(61 * 2 * 128 * (2 * 512 + 64) / 8)
    assert columns[3] == pytest.approx(61 * 2 * 128 * (192 + 128) / 8)
    assert columns[0] == 61 * (512 + 64) * 2  # the latent is repeated on every chip


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 400), st.integers(0, 500), st.integers(1, 300))
def test_windows_are_summed_position_by_position(tokens, cached, window):
    told = positions(float(cached + tokens), float(window)) - positions(float(cached), float(window))
    assert told == sum(min(p, window) for p in range(cached + 1, cached + tokens + 1))
    assert positions(float(tokens), math.inf) == tokens * (tokens + 1) / 2


def test_sliding_layers_look_back_only_their_window():
    setup = made("gpt-oss-120b", "b200", experts_precision="fp4")
    model_ = step_model(setup, IDEAL)
    far, near = (step_time(model_, [context]).memory_s for context in (10_128, 128))
    assert (far - near) * 8e12 == pytest.approx(10_000 * 18 * 2 * 8 * 64 * 2, rel=1e-6)  # full layers alone


def test_experts_dealt_out_cost_all_to_alls_and_no_all_reduce():
    setup = made("qwen3-30b-a3b", "h200", 8, expert=8, tensor=1)
    step = step_time(step_model(setup, Efficiency(hop_s=0.0)), [10] * 80)
    one = 2 * 7 / 8 * 8 * 2048 * 2 / 450e9 * 10
    assert step.communication_s == pytest.approx(48 * one, rel=1e-9)
    assert room(setup).weights_bytes < room(made("qwen3-30b-a3b", "h200")).weights_bytes


def test_a_chunked_prompt_takes_at_least_as_long_as_a_whole_one():
    model_ = step_model(made("llama-3.1-8b", "h100"), TYPICAL)
    assert prefill_s(model_, 8192, budget=512) > prefill_s(model_, 8192)
    assert prefill_s(model_, 8192, cached=8000) < prefill_s(model_, 8192) / 10
    assert prefill_s(model_, 100, cached=100) == 0


def test_a_slower_machine_is_slower_and_no_share_beats_the_peak():
    setup = made("llama-3.1-70b", "h100", 8)
    times = [decode_s(step_model(setup, e), 64, 2000) for e in (IDEAL, FAST, TYPICAL, SLOW)]
    assert times == sorted(times)
    assert times[0] > weights_bytes(setup.model) * 0.98 / 8 / 3.35e12


def test_speculation_costs_its_draft_steps():
    slow = made("llama-3.1-70b", "h100", 8, speculation=Speculation(5, 0.8, 0.05))
    none, with_draft = (
        step_time(step_model(s, IDEAL), [2000] * 4).seconds for s in (made("llama-3.1-70b", "h100", 8), slow)
    )
    assert with_draft == pytest.approx(1.25 * none, rel=0.01)


def test_room_shares_out_the_memory():
    setup = made("llama-3.1-8b", "h100", reserve_bytes=2e9)
    found = room(setup)
    usable = setup.machine.memory_bytes * 0.9
    assert found.cache_bytes == pytest.approx(usable - weights_bytes(setup.model) - 2e9)
    assert kv_capacity_tokens(setup) == int(found.cache_bytes / 131072)
    assert max_sequences(setup, 8192) == int(found.cache_bytes / 131072 / 8192)
    assert room(made("llama-3.1-8b", "h100")).reserve_bytes == pytest.approx(
        8192 * (2 * 14336 + 6 * 4096) * 2 + 256 * 128256 * 4 + 0.5e9
    )


def test_what_does_not_fit_is_refused_with_the_reason():
    big = made("llama-3.1-405b", "h100")
    assert not room(big).fits
    with pytest.raises(QuestionError, match="the weights alone take 81"):
        kv_capacity_bytes(big)
    assert "one sequence of 900,000 tokens" in room(made("llama-3.1-8b", "rtx pro 6000 ws"), 900_000).why


def test_data_parallel_replicas_hold_everything_themselves():
    one, two = made("llama-3.1-8b", "h100"), made("llama-3.1-8b", "h100", 2, replicas=2)
    assert room(one) == room(two)
    assert step_time(step_model(one), [100]) == step_time(step_model(two), [100])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"chips": 0}, "chips: 0"),
        ({"chips": 3, "replicas": 2}, "3 chips for 2 replicas"),
        ({"chips": 8, "tensor": 2}, "are not 8 chips"),
        ({"memory_utilization": 1.5}, "utilization"),
        ({"token_budget": 100}, "100 tokens a step for 256 sequences"),
        ({"chips": 2, "expert": 2}, "no routed experts"),
        ({"weights_precision": "fp5"}, "fp5"),
    ],
)
def test_setups_that_cannot_be_are_refused(more, said):
    with pytest.raises(QuestionError, match=said):
        Setup(**{"model": model("llama-3.1-8b"), "chip": chip("h100"), **more})


def test_the_machine_says_what_it_assumes():
    server = made("llama-3.1-8b", "RTX PRO 6000 Server", 2).machine
    assert server.flops_per_s == 503.8e12 and server.link == "PCIe"
    assert any("stands in" in n for n in server.notes) and any("PCIe" in n for n in server.notes)
    assert made("llama-3.1-8b", "h100", weights_precision="fp8").machine.flops_per_s == 1978.9e12
    fallen = made("llama-3.1-8b", "v5e", 4, weights_precision="fp8").machine
    assert (fallen.computes_in, fallen.flops_per_s) == ("bf16", 197e12) and fallen.notes
    assert made("llama-3.1-8b", "h100", 16).machine.link == "network"
    with pytest.raises(QuestionError, match="peak of TPU v1"):
        assert made("llama-3.1-8b", "TPU v1").machine
    assert made("llama-3.1-8b", "TPU v1", peak_flops_per_s=1e12).machine.flops_per_s == 1e12


def test_flops_of_a_prompt_token_and_a_generated_one_add_up():
    setup = made("llama-3.1-8b", "h100", 4)
    scalars = step_model(setup).scalars
    assert (scalars[0] + scalars[1]) * 4 == pytest.approx(token_flops(setup.model))
    assert np.isfinite(scalars).all()


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_the_assumed_range_holds_what_was_measured(case):
    ran = made(case.model, case.chip, case.chips, weights_precision=case.precision)
    load = traffic_of(case.requests, case.in_flight, case.input, case.answer_tokens, case.prefix)
    low, high = (simulate(ran, load, e, record=False).output_tokens_per_s for e in (SLOW, FAST))
    assert low < case.output_tokens_per_s < high
    held = anchored(ran, load, case.request_rate_per_s, case.name)
    again = simulate(ran, load, held.efficiency, record=False).output_tokens_per_s
    assert again == pytest.approx(case.output_tokens_per_s, rel=0.02)


@pytest.mark.parametrize(
    ("name", "chips", "dims", "wraps"),
    [
        ("v6e", 2, [2], [False]),
        ("v6e", 8, [2, 4], [False, False]),
        ("v5p", 4, [2, 2], [False, False]),
        ("v5e", 16, [4, 4], [False, False]),
        ("v5p", 64, [4, 4, 4], [True, True, True]),
    ],
)
def test_a_group_of_tpus_has_the_links_of_its_slice(name, chips, dims, wraps):
    """An all-reduce at full rate takes as long as the formula of lines and rings says; a ring drops (N - 1)/N there."""
    kind, tokens = made("llama-3.1-8b", name, 4), 8192
    size, link = tokens * kind.model.d_model * 2, chip(name).need("link_oneway_bytes_per_s")
    told = 2 * (chips - 1) / chips * size / scaleup_bytes_per_s(chip(name), chips)
    exact = (chips - 1) / chips if all(wraps) else 1.0
    assert told == pytest.approx(all_reduce(size, dims, wraps, link, 0.0).bandwidth_s * exact)


def test_a_switch_and_a_full_pod_give_all_links_of_a_chip():
    for name, chips in (("h100", 2), ("h100", 8), ("v5e", 256), ("TPU 8i", 8)):
        assert scaleup_bytes_per_s(chip(name), chips) == chip(name).need("scaleup_bidi_bytes_per_s") / 2


def busiest(dims: list[int], wraps: list[bool]) -> float:
    """Pairs of chips whose ways, one axis after another, take the busiest link one way."""
    loads: dict[tuple, float] = defaultdict(float)
    for here, there in product(product(*map(range, dims)), repeat=2):
        at = list(here)
        for axis, k in enumerate(dims):
            off = (there[axis] - at[axis]) % k if wraps[axis] else there[axis] - at[axis]
            ways = [(off, 1.0)] if not wraps[axis] or 2 * off < k else [(off - k, 1.0)]
            ways = [(off, 0.5), (off - k, 0.5)] if wraps[axis] and 2 * off == k else ways
            for hops, part in ways:
                for n in range(abs(hops)):
                    sign = 1 if hops > 0 else -1
                    place = (*at[:axis], (at[axis] + sign * n) % k, *at[axis + 1 :])
                    loads[place, axis, sign] += part
            at[axis] = there[axis]
    return max(loads.values())


@pytest.mark.parametrize(
    ("name", "chips", "dims", "wraps"),
    [
        ("v6e", 8, [2, 4], [False, False]),
        ("v5e", 16, [4, 4], [False, False]),
        ("v5p", 64, [4, 4, 4], [True, True, True]),
        ("v6e", 5, [5], [False]),
        ("h100", 8, None, None),
    ],
)
def test_experts_over_a_mesh_wait_for_its_busiest_link(name, chips, dims, wraps):
    """On 16 TPU v5e tokens went to their experts over both links of a chip, in less than half of the time."""
    setup = made("qwen3-30b-a3b", name, chips, expert=chips) if chips != 5 else None
    on = setup.machine if setup else machine(chip(name), made("qwen3-30b-a3b", name, 4).kept, chips)
    if dims is None:
        assert on.spread_bytes_per_s == on.link_bytes_per_s
        return
    link = chip(name).need("link_oneway_bytes_per_s")
    assert on.spread_bytes_per_s == pytest.approx(min(link * (chips - 1) / busiest(dims, wraps), on.link_bytes_per_s))
    if setup:
        size = setup.model.d_model * 2 * 8  # of a token, for the 8 experts that it visits
        per_token = step_model(setup, IDEAL).scalars[COMM_S_PER_TOKEN]
        told = 2 * setup.model.layers * size * busiest(dims, wraps) / chips**2 / link
        assert per_token == pytest.approx(told)
