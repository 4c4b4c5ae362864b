"""The step's time against a second reckoning, layout by layout in plain numbers, and memory against the catalogue's."""

import math
from dataclasses import replace

import numpy as np
import pytest

from catalog import chip, model
from catalog.flops import flops_per_token
from catalog.models import parameters
from catalog.training_memory import Sharding, routed_parameters, training_memory
from errors import QuestionError
from simulators.placement.mesh import parse_mesh
from simulators.placement.traffic import Work as Placed
from simulators.placement.traffic import traffic
from simulators.training.efficiency import Efficiency, fitted, generation
from simulators.training.layout import REMATS, layouts, legal
from simulators.training.machine import NETWORK_LATENCY_S, machine
from simulators.training.memory import BUFFERS, memory
from simulators.training.plan import check_fixed, plan
from simulators.training.step import ACCOUNTS, steps
from simulators.training.work import work

H100, V5P = machine(chip("h100")), machine(chip("v5p"))
PLAIN = Efficiency()


def test_the_terms_of_a_model_are_those_that_mfu_counts():
    for name in ("llama3.1-70b", "mixtral-8x7b", "deepseek3-671b", "gpt-oss-20b", "gemma3-27b"):
        for seq in (2048, 32_768):
            assert work(model(name), seq).flops_per_token == pytest.approx(flops_per_token(model(name), seq).total)


@pytest.mark.parametrize("name", ["llama3.1-8b", "mixtral-8x7b", "deepseek3-671b"])
@pytest.mark.parametrize("remat", ["none", "full"])
def test_memory_is_the_catalogues_where_nothing_is_dealt_out(name, remat):
    whole = {"data": 1, "context": 1, "expert": 1, "pipeline": 1, "remat": REMATS.index(remat)}
    found = legal(model(name), 32, 32, 4096, domain=8, fixed=whole)
    held = memory(model(name), found, 4096, 80e9)
    for at in np.linspace(0, len(found) - 1, 25).astype(int):
        sharding = Sharding(
            fsdp=int(found.fsdp[at]),
            expert=int(found.expert[at]),
            tensor=int(found.tensor[at]),
            pipeline=int(found.pipeline[at]),
            interleave=int(found.interleave[at]),
            sequence_parallel=True,
        )
        kept = {"none": "selective", "full": "full"}[remat]
        told = training_memory(model(name), sharding, seq=4096, batch=int(found.micro[at]), remat=kept)
        assert held.bytes[at] == pytest.approx(BUFFERS * sum(told.values()))
        assert held.again[at] == (remat == "full")


def test_layers_are_computed_again_only_as_far_as_the_memory_asks():
    found = layouts(fsdp=8, micro=[1, 2, 4, 8, 16], remat=REMATS.index("part"))
    held = memory(model("llama3.1-8b"), found, 8192, 80e9)
    assert held.again[0] == 0 and np.all(np.diff(held.again) >= 0) and 0 < held.again[1] < 1
    assert held.bytes[1] == pytest.approx(80e9)  # no more than is needed


@pytest.mark.parametrize("name", ["llama3.1-8b", "llama3.1-405b", "gemma3-27b", "mixtral-8x7b", "deepseek3-671b"])
def test_memory_of_the_fullest_stage_is_that_of_a_second_reckoning(name):
    """State layer by layer and stage by stage; activations of the first stage, logits of the last."""
    of, seq, batch = model(name), 4096, 64
    found = legal(of, 64, batch, seq, domain=8, fixed={"remat": REMATS.index("full")})
    held = memory(of, found, seq, 80e9, batch)
    dense, routed = parameters(of).total - routed_parameters(of), routed_parameters(of)
    table = of.vocab * of.d_model
    for at in np.linspace(0, len(found) - 1, 60).astype(int):
        t, c, p, v, e, f, d, micro = (
            int(getattr(found, k)[at])
            for k in ("tensor", "context", "pipeline", "interleave", "expert", "fsdp", "data", "micro")
        )
        slots = math.ceil(of.layers / (p * v)) * v
        layer = (dense + routed - table * (2 - of.tied_embeddings)) / of.layers
        spare = (slots * p - of.layers) // 2  # of each end, for its table
        stages = [slots * layer, max(slots - spare, 0) * layer + table] if p > 1 else [dense + routed]
        part = max(stages) / (dense + routed) / t
        state = part * (dense * (6 / f + 12 / (f * d * c * e)) + routed / e * (6 / f + 12 / (f * d * c)))
        m = batch // (e * f * d * micro)
        tokens = micro * seq / c
        first = tokens * 2 * of.d_model / t * of.layers / p * min(p, m)
        first *= 1 + (p - 1) / (p * v) if v > 1 else 1
        last = tokens * 2 * of.d_model / t * of.layers / p + 4 * tokens * (of.d_model + of.vocab) / t
        assert held.bytes[at] == pytest.approx(BUFFERS * (state + max(first, last)))


def test_logits_of_the_last_stage_are_made_room_for():
    """Gemma's 262,144 tokens: 9 GB of logits a sequence, beyond what the first of two stages keeps in full remat."""
    held = [
        memory(model("gemma3-27b"), layouts(pipeline=2, tensor=4, fsdp=8, remat=r, micro=4), 8192, 60e9, 64)
        for r in (REMATS.index("part"), REMATS.index("full"), REMATS.index("none"))
    ]
    part, full, none = (h.bytes[0] for h in held)
    assert full < part <= 60e9 * (1 + 1e-9) < none and 0 < held[0].again[0] < 1
    assert held[1].activations[0] < held[1].activations[0] / 2 + held[1].logits[0]


def test_keys_around_the_ring_are_those_that_placement_counts():
    for name, t in (("llama3.1-8b", 16), ("llama3.1-8b", 4), ("deepseek3-671b", 8)):
        axes = parse_mesh(f"context=4,tensor={t}")
        told = [x for x in traffic(axes, Placed(model=model(name), batch=1, seq=8192)) if x.axis == "context"]
        around = sum(x.array_bytes * x.times for x in told if "ring" in x.what)
        ours = 3 * 2 * work(model(name), 8192).keys_held(np.array([float(t)]))[0] * 8192 * model(name).layers
        assert ours == pytest.approx(around)


def by_hand(w, n, batch, on, eff, again) -> dict[str, float]:
    """A dense layout's step on a switched network, in plain numbers."""
    t, c, p, v, f, d, micro = (n[k] for k in ("tensor", "context", "pipeline", "interleave", "fsdp", "data", "micro"))
    tokens, m = micro * w.seq / c, batch / (f * d * micro)
    layers = math.ceil(w.layers / (p * v)) * v
    share = layers / w.layers
    width = w.width / t
    intensity = on.bf16_flops_per_s / on.hbm_bytes_per_s
    full = width / (width + eff.narrow * intensity) * tokens / (tokens + eff.few * intensity)
    products = w.weight_flops * tokens * share / t / (on.peak_flops_per_s * eff.products * full)
    attention = w.attention_flops * tokens * share / t / (on.bf16_flops_per_s * eff.attention)
    sweeps = (w.swept_whole + w.swept_cut) / t * tokens * share / (on.hbm_bytes_per_s * eff.memory)

    def gather(size_bytes, size, stride):
        inside = min(max(on.domain // stride, 1), size)
        outside = math.ceil(size / inside)
        time = size_bytes * (inside - 1) / inside / on.links_per_s + (on.latency_s if inside > 1 else 0)
        beyond = size_bytes / inside * (outside - 1) / outside / on.network_per_s
        return time + beyond + (NETWORK_LATENCY_S if outside > 1 else 0)

    tensor = 4 * layers * gather(2 * w.width * tokens, t, 1) / eff.network * (1 - eff.hidden) if t > 1 else 0
    heads = w.model.attention[0]
    keys = max(heads.kv_heads / t, 1) * (heads.head_dim + heads.value_head_dim)
    ring = layers * gather(2 * keys * tokens * c, c, t) / eff.network
    context = max(ring - attention, 0) if c > 1 else 0
    behind = max(2 * ring - 2.5 * attention, 0) if c > 1 else 0
    forward = products + attention + sweeps + eff.launch_s * layers + tensor + context
    cheap, dear = min(again / 0.4, 1), max(again - 0.4, 0) / 0.6
    told = {
        "products": 3 * products * m,
        "attention": 3.5 * attention * m,
        "sweeps": 3 * sweeps * m,
        "launches": 3 * eff.launch_s * layers * m,
        "tensor": 2 * tensor * m,
        "context": (context + behind) * m,
        "recomputed": m * (cheap * (1 - dear) * sweeps + dear * forward),
    }
    told["bubble"] = (p - 1) / v * sum(told.values()) / m
    stride = t * c * f * d
    near = stride < on.domain
    send = 2 * w.width * tokens / t / (on.links_per_s if near else on.network_per_s)
    send = (send + (on.latency_s if near else NETWORK_LATENCY_S)) / eff.network
    told["sends"] = 2 * m * v * send * (1 - eff.hidden) if p > 1 else 0
    shard = w.dense / (t * p)
    weights = m * 2 * gather(2 * shard, f, t * c) + m * gather(4 * shard, f, t * c) if f > 1 else 0
    weights += gather(4 * shard / f, d * c, t * c * f) + gather(2 * shard / f, d * c, t * c * f) if d * c > 1 else 0
    beside = told["products"] + told["attention"]
    told["exposed"] = max(weights / eff.network - eff.overlap * beside, 0)
    told["update"] = shard / (f * d * c) * 36 / (on.hbm_bytes_per_s * eff.memory)
    told["vocabulary"] = 3 * m * w.output_flops * tokens / t / p / (on.bf16_flops_per_s * eff.products)
    rows = 4 * gather(2 * w.width * tokens, t, 1) / eff.network * (1 - eff.hidden) if t > 1 else 0
    told["vocabulary"] += m * rows / p  # rows of tokens and the projection's input, forward and backward
    return told


@pytest.mark.parametrize("name", ["llama3.1-8b", "llama3.1-405b"])
def test_a_step_is_that_of_a_second_reckoning(name):
    w, batch = work(model(name), 8192), 64
    found = legal(model(name), 64, batch, 8192, domain=8)
    again = np.linspace(0, 1, len(found))
    timed = steps(w, found, again, batch, H100, PLAIN)
    for at in np.linspace(0, len(found) - 1, 60).astype(int):
        n = {k: int(getattr(found, k)[at]) for k in vars(found)}
        told = by_hand(w, n, batch, H100, PLAIN, again[at])
        for account in told:
            assert timed.parts[account][at] == pytest.approx(told[account]), (account, n)
        assert timed.seconds[at] == pytest.approx(sum(told.values()))


@pytest.mark.parametrize("name", ["llama3.1-70b", "deepseek3-671b"])
def test_accounts_add_up_and_none_is_negative(name):
    for on in (H100, V5P):
        w, found = work(model(name), 4096), legal(model(name), 64, 128, 4096, domain=on.domain)
        timed = steps(w, found, np.zeros(len(found)), 128, on, PLAIN)
        assert set(timed.parts) == set(ACCOUNTS)
        assert timed.seconds == pytest.approx(sum(timed.parts.values()))
        assert all((values >= 0).all() and np.isfinite(values).all() for values in timed.parts.values())


def test_a_pipelines_bubble_is_its_share_of_the_step():
    """(p - 1) / (v m + p - 1) of forward and backward: Narayanan et al. 2021."""
    w = work(model("llama3.1-8b"), 4096)
    for p, v in ((2, 1), (4, 1), (4, 2), (8, 4)):
        timed = steps(w, layouts(pipeline=p, interleave=v), np.zeros(1), 32, H100, PLAIN)
        busy = sum(timed.parts[a][0] for a in ("products", "attention", "sweeps", "launches"))
        bubble = timed.parts["bubble"][0]
        assert bubble / (bubble + busy) == pytest.approx((p - 1) / (v * 32 + p - 1))


def test_collectives_are_those_of_rings():
    """An all-gather of V bytes over n chips of a switch: V (n - 1) / n at its rate; a ring of a torus has 2 links."""
    one = np.ones(1)
    v, n = np.full(1, 8e9), np.full(1, 8.0)
    assert H100.gather_s(v, n, one)[0] == pytest.approx(8e9 * 7 / 8 / 450e9 + H100.latency_s)
    assert V5P.gather_s(v, n, one, inner=True)[0] == pytest.approx(8e9 * 7 / 8 / 200e9 + V5P.latency_s)
    wide = H100.gather_s(v, np.full(1, 64.0), one)[0]
    assert wide == pytest.approx(8e9 * 7 / 8 / 450e9 + 1e9 * 7 / 8 / 50e9 + H100.latency_s + NETWORK_LATENCY_S)


@pytest.mark.parametrize("what", ["products", "attention", "memory", "network", "overlap", "hidden"])
def test_a_better_share_makes_no_step_slower(what):
    w, found = work(model("mixtral-8x7b"), 8192), legal(model("mixtral-8x7b"), 64, 64, 8192, domain=8)
    again = np.full(len(found), 0.5)
    base = steps(w, found, again, 64, H100, PLAIN).seconds
    better = steps(w, found, again, 64, H100, replace(PLAIN, **{what: getattr(PLAIN, what) * 1.2})).seconds
    assert (better <= base + 1e-12).all() and (better < base).any()


def test_shares_of_a_chip_that_nobody_published_are_those_of_all_with_the_widest_band():
    seen, unseen = fitted("H100 SXM", "bf16", experts=False), fitted("MI300X", "bf16", experts=False)
    assert seen.runs > 0 and unseen.runs == 0 and generation("MI300X") == ""
    assert unseen.low < seen.low and unseen.high > seen.high
    assert fitted("TPU v5p", "bf16", experts=True).high > fitted("TPU v5p", "bf16", experts=False).high


def test_the_accounts_of_a_plan_close():
    for of, on in (("llama3.1-70b", "v6e"), ("deepseek3-671b", "h800")):
        for p in plan(model(of), chip(on), 256, 512, 4096).layouts:
            assert sum(p.accounts.values()) == pytest.approx(p.step_s, rel=1e-12) and min(p.accounts.values()) >= 0
            assert p.accounts["useful_maths"] / p.step_s == pytest.approx(p.mfu)
            assert p.low_s < p.step_s < p.high_s


def test_axes_of_any_size_are_multiplied_out():
    with pytest.raises(QuestionError, match="cuts 18,446,744,073,709,551,616 ways, on 64 chips"):
        check_fixed({"tensor": 1 << 32, "pipeline": 1 << 32}, 64)
