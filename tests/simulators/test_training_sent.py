"""What a step sends: rings and lines, tokens to experts, windows around a ring, gradients of every microbatch."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from catalog import chip, model
from simulators.collectives import rings
from simulators.training.efficiency import Efficiency
from simulators.training.layout import layouts, legal
from simulators.training.machine import machine
from simulators.training.sent import AXES, axis_bytes, sent
from simulators.training.sizes import sizes
from simulators.training.step import AtPeaks, at_peaks
from simulators.training.work import work
from simulators.training.written import MEGATRON, XLA

ONE = np.ones(1)
NONE = np.zeros(1)


@pytest.mark.parametrize(
    "name, size, chips, wraps",
    [
        ("v6e", 16, 256, True),
        ("v6e", 8, 256, False),  # half of an axis of 16
        ("v6e", 16, 64, False),  # 8 x 8
        ("v5p", 4, 64, True),  # 4 x 4 x 4
        ("v5p", 8, 512, True),
        ("v5p", 2, 64, False),
        ("v5p", 4, 32, False),  # 2 x 4 x 4
        ("v4", 4, 16, False),
    ],
)
def test_an_axis_that_does_not_wrap_is_a_line(name, size, chips, wraps):
    """Both as the collectives of slices have them, but for the last chip's part that a ring's formula leaves out."""
    on = machine(chip(name))
    link = on.links_per_s / (2 * on.torus)
    took = on.gather_s(np.full(1, 8e9), np.full(1, float(size)), ONE, True, np.full(1, float(chips)))[0] - on.latency_s
    real = rings.all_gather(8e9, (size,), (wraps,), link, 0.0).bandwidth_s
    assert took == pytest.approx(real * ((size - 1) / size if wraps else 1))


def test_all_axes_of_a_slice_gather_together():
    """Weights over a whole pod of v6e use both axes; beside tensor parallelism they have one."""
    on, v, n = machine(chip("v6e")), np.full(1, 8e9), np.full(1, 256.0)
    whole = on.gather_s(v, n, ONE, chips=n)[0] - on.latency_s
    beside = on.gather_s(v, n / 16, ONE * 16, chips=n)[0] - on.latency_s
    assert whole == pytest.approx(8e9 * 255 / 256 / on.links_per_s)
    assert beside == pytest.approx(8e9 * 15 / 16 / (on.links_per_s / 2))


@pytest.mark.parametrize("domains, copies", [(2, 2), (4, 3), (3, 4)])
def test_a_token_crosses_to_each_other_domain_once(domains, copies):
    """Against all choices of experts, one domain each, every one as likely."""
    met = [len(set(where) - {0}) for where in product(range(domains), repeat=copies)]
    on = machine(chip("h100"))
    size = np.full(1, 8.0 * domains)
    took = on.exchange_s(np.full(1, 1e12), size, ONE, copies)[0]
    assert took == pytest.approx(1e12 / copies * np.mean(met) / on.network_per_s, rel=1e-4)


def test_experts_lie_whole_over_tensor_parallelism_where_they_can():
    """128 experts over 2 x 16 ways: tokens go 32 ways, and nothing of an expert is summed over tensor parallelism."""
    w = work(model("qwen3-235b-a22b"), 4096)
    at = sizes(w, layouts(tensor=2, expert=16), 64)
    assert (at.dealt[0], at.cut[0]) == (32, 1)
    told = {one.account: one for one in sent(w, at, MEGATRON)}
    assert told["expert"].size[0] == 32 and told["tensor"].forward[0] == 2 * w.layers  # of attention alone
    three = sizes(w, layouts(tensor=2, expert=128), 128)
    assert (three.dealt[0], three.cut[0]) == (128, 2)  # 256 ways: each expert is cut in two
    assert {o.account: o for o in sent(w, three, MEGATRON)}["tensor"].forward[0] == 4 * w.layers


def test_gradients_are_scattered_after_every_microbatch():
    w = work(model("llama3.1-8b"), 4096)
    one, four = (axis_bytes(w, layouts(fsdp=8, micro=micro), NONE, 32, MEGATRON)["fsdp"][0] for micro in (4, 1))
    assert four == pytest.approx(4 * one)
    shard = w.dense * 7 / 8  # 2 bytes gathered twice, 4 scattered
    assert one == pytest.approx(8 * shard)


@pytest.mark.parametrize("name, context", [("gpt-oss-20b", 4), ("gemma3-27b", 8), ("llama3.1-8b", 4)])
def test_a_window_asks_for_no_more_keys_than_it_sees(name, context):
    """Token by token: which of those before its own a device's queries see, on the last device."""
    of, seq = model(name), 8192
    own = seq // context
    needed = []
    for a in of.attention:
        reach = min(a.window_tokens or seq, seq) if a.span != "full" else seq
        first = max(seq - own - (reach - 1), 0)  # of the first of its queries
        heads = a.kv_heads * (a.head_dim + a.value_head_dim)
        needed.append(heads * (seq - own - first))
    told = work(of, seq).keys_around(ONE, ONE * context)[0] * (seq - own)
    assert told == pytest.approx(np.mean(needed), rel=2e-3)  # a window is counted with its own token


def test_a_layer_computed_again_is_not_done_again_whole_by_a_compiler():
    """Megatron repeats all four collectives of a layer; XLA drops the last, whose result nobody reads."""
    w, laid = work(model("llama3.1-8b"), 4096), layouts(tensor=4, remat=2)
    plain, again = (axis_bytes(w, laid, part, 8, MEGATRON)["tensor"][0] for part in (NONE, ONE))
    pruned = axis_bytes(w, laid, ONE, 8, replace(MEGATRON, pruned=True))["tensor"][0]
    layer = plain - axis_bytes(replace(w, layers=w.layers), laid, NONE, 8, MEGATRON)["tensor"][0]
    assert layer == 0 and again > pruned > plain
    assert (again - plain) / (pruned - plain) == pytest.approx(4 / 3)


def test_what_one_axis_cuts_off_goes_over_no_other():
    """A layout of one axis sends over that axis alone, and one of none sends nothing."""
    w = work(model("mixtral-8x7b"), 4096)
    assert all(sent_[0] == 0 for sent_ in axis_bytes(w, layouts(), NONE, 8, MEGATRON).values())
    for axis, name in (("tensor", "tensor"), ("fsdp", "fsdp"), ("data", "data"), ("pipeline", "pipeline")):
        told = axis_bytes(w, layouts(**{name: 4}), NONE, 8, XLA)
        assert {a for a in AXES if told[a][0] > 0} == {axis}
    folded = axis_bytes(w, layouts(tensor=4), NONE, 8, MEGATRON)
    assert {a for a in AXES if folded[a][0] > 0} == {"tensor", "expert"}  # experts lie whole over it
    assert {a for a, v in axis_bytes(w, layouts(expert=4), NONE, 8, MEGATRON).items() if v[0] > 0} == {"expert"}


def test_a_tpu_waits_for_no_host():
    w, laid = work(model("llama3.1-8b"), 4096), layouts(fsdp=4)
    assert at_peaks(w, laid, NONE, 4, machine(chip("v5p"))).layers[0] == 0
    assert at_peaks(w, laid, NONE, 4, machine(chip("h100"))).layers[0] == w.layers


def test_layouts_that_are_timed_together_take_what_they_take_alone():
    jobs = [
        at_peaks(work(model(name), 4096), found, np.full(len(found), 0.5), 64, machine(chip(on)))
        for name, on in (("llama3.1-8b", "h100"), ("mixtral-8x7b", "v5p"))
        for found in [legal(model(name), 16, 64, 4096, domain=8)]
    ]
    together = AtPeaks.joined(jobs).timed(Efficiency())
    alone = np.concatenate([job.timed(Efficiency()).seconds for job in jobs])
    assert together.seconds == pytest.approx(alone)


def test_a_program_that_sums_whole_arrays_sends_what_one_that_halves_them_does():
    """An all-reduce is a scatter and a gather; only layers computed again differ."""
    w, laid = work(model("llama3.1-8b"), 4096), layouts(tensor=4)
    whole = replace(XLA, sequence_parallel=False)
    assert axis_bytes(w, laid, NONE, 8, whole)["tensor"] == pytest.approx(axis_bytes(w, laid, NONE, 8, XLA)["tensor"])
    assert axis_bytes(w, laid, ONE, 8, whole)["tensor"][0] < axis_bytes(w, laid, ONE, 8, XLA)["tensor"][0]


def test_attention_takes_what_its_heads_leave_of_a_matrix_unit():
    """By hand: heads of 64, 128 and 256, and of 192 with values of 128, on units of 128 and 256 and on GPUs."""
    told = {
        64: ("gpt-oss-20b", 2.0, 2.0, 4 / 3),
        128: ("llama3.1-8b", 1.0, 1.0, 1.0),
        256: ("gemma2-9b", 1.0, 0.5, 5 / 6),
    }
    for name, small, large, gpu in told.values():
        w = work(model(name), 4096)
        plain = w.attention_flops
        efforts = [w.attention_effort(unit) / plain for unit in (128, 256, 0)]
        assert efforts == pytest.approx([small, large, gpu]), name
    w = work(model("deepseek3-671b"), 4096)
    efforts = [w.attention_effort(unit) / w.attention_flops for unit in (128, 256, 0)]
    assert efforts == pytest.approx([1.2, 0.8, (160 + 64) / 160 / 1.5])


def test_weights_fill_the_sides_of_a_matrix_unit():
    """gpt-oss: 2,880 wide and 2,880 hidden, of which 256 make 3,072, and 128 2,944; 8 key heads of 64 fill 512."""
    w = work(model("gpt-oss-20b"), 4096)
    _, experts = w.padding(256)
    assert experts == pytest.approx((3072 / 2880) ** 2)
    assert w.padding(128)[1] == pytest.approx((2944 / 2880) ** 2)
    assert w.padding(256)[0] == pytest.approx(3072 / 2880)  # queries, keys, values and output: one side of 2,880
    assert w.padding(0) == (1.0, 1.0) and work(model("llama3.1-8b"), 4096).padding(256) == (1.0, 1.0)


def test_an_exchange_beside_another_microbatch_waits_for_what_lasts_longer():
    w, on = work(model("deepseek3-671b"), 4096), machine(chip("h800"))
    laid, beside = layouts(pipeline=16, expert=64), replace(MEGATRON, exchange_beside=True)
    usual, hidden = (at_peaks(w, laid, NONE, 512, on, how).timed(Efficiency()).parts for how in (MEGATRON, beside))
    assert hidden["expert"][0] < usual["expert"][0] and hidden["products"] == usual["products"]
    slow = at_peaks(w, laid, NONE, 512, replace(on, network_per_s=1e9), beside)
    parts, share = slow.timed(Efficiency()).parts, Efficiency().network
    computed = sum(parts[a][0] for a in ("products", "experts")) + parts["attention"][0] * 3 / 3.5
    assert parts["expert"][0] == pytest.approx(slow.microbatches[0] * slow.expert[0] / share - computed)


def test_a_matrix_unit_that_nobody_published_is_told():
    on = machine(chip("TPU 8t"), "fp4")
    assert on.unit == 128 and on.assumed(64)[-1].startswith("TPU 8t: the side of its matrix unit is not published")
    assert not any("matrix unit" in text for name in ("v6e", "h100") for text in machine(chip(name)).assumed(64))
