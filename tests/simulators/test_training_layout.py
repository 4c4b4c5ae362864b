"""Legal layouts against all that can be written down, and what their columns mean."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import model
from simulators.training.layout import (
    ENDS,
    INTERLEAVES,
    REMATS,
    Layouts,
    divisors,
    layouts,
    legal,
    nearest,
    stages,
    tensors,
)

LLAMA, MIXTRAL, QWEN = (model(n) for n in ("llama3.1-8b", "mixtral-8x7b", "qwen3-30b-a3b"))


def tuples(found: Layouts) -> set[tuple[int, ...]]:
    return set(zip(*(getattr(found, n).tolist() for n in NAMES), strict=True))


NAMES = ("tensor", "context", "pipeline", "interleave", "expert", "fsdp", "data", "micro", "remat")


@pytest.mark.parametrize(
    ("which", "chips", "batch", "seq"),
    [(LLAMA, 16, 32, 8192), (MIXTRAL, 24, 48, 4096), (QWEN, 8, 8, 2048), (LLAMA, 16, 16, 8196)],
)
def test_all_that_divides_and_nothing_else(which, chips, batch, seq):
    """Brute force: every product of sizes that makes up the chips, filtered by what must divide."""
    found = legal(which, chips, batch, seq, domain=8)
    assert len(tuples(found)) == len(found), "none twice"
    experts = max((b.experts for b in which.feedforward), default=0)
    heads = {a.heads for a in which.attention} | {b.d_ff for b in which.feedforward}
    expected = set()
    sizes = divisors(chips)
    for t, c, p, e, f, d in product(sizes, repeat=6):
        if t * c * p * e * f * d != chips or t > 8 or any(h % t for h in heads):
            continue
        if not (p & (p - 1) == 0 or which.layers % p == 0) or p > which.layers:
            continue
        if c > max(seq // 4096, 1) or seq % c or batch % (e * f * d) or (e > 1 and (not experts or experts % e)):
            continue
        if f not in {1, f * d, 8, 16, 32, 64, 256}:
            continue
        for v in INTERLEAVES:
            if v > 1 and (p == 1 or p * v > which.layers + ENDS):
                continue
            for micro in (1, 2, 4, 8, 16):
                at_once = batch // (e * f * d) // micro
                if batch // (e * f * d) % micro == 0 and (v == 1 or at_once >= p) and seq % (c * t) == 0:
                    expected.add((t, c, p, v, e, f, d, micro, REMATS.index("part")))
    assert tuples(found) == expected


@given(st.sampled_from([LLAMA, MIXTRAL]), st.integers(1, 200), st.integers(1, 64))
def test_every_layout_uses_all_chips_and_deals_out_all_sequences(which, chips, batch):
    found = legal(which, chips, batch, 4096, domain=8)
    assert (found.chips == chips).all() and (batch % (found.replicas * found.micro) == 0).all()


def test_what_is_fixed_stays():
    found = legal(LLAMA, 64, 64, 8192, domain=8, fixed={"tensor": 4, "pipeline": 2, "micro": 1})
    assert set(found.tensor) == {4} and set(found.pipeline) == {2} and set(found.micro) == {1}
    copies = legal(LLAMA, 64, 64, 8192, domain=8, fixed={"data": 4})
    assert set(copies.data) == {4} and {2, 4, 16} <= set(copies.fsdp), "what is left is dealt out"
    assert set(legal(LLAMA, 64, 64, 8192, domain=8, fixed={"interleave": 4}).pipeline) <= {2, 4, 8}
    for axis in (
        {"tensor": 3},
        {"pipeline": 5},
        {"context": 3},
        {"expert": 2},
        {"fsdp": 7},
        {"data": 128},
        {"micro": 5},
    ):
        assert not len(legal(LLAMA, 64, 64, 8192, domain=8, fixed=axis)), axis


def test_a_layout_as_it_is_written():
    one = layouts(tensor=8, pipeline=[4, 2], data=[1, 2], remat=2).one(1)
    assert one == {"dp": 2, "fsdp": 1, "tp": 8, "pp": 2, "cp": 1, "ep": 1, "vp": 1, "micro": 1, "remat": "full"}


def test_pipelines_and_tensors_of_a_model():
    assert stages(LLAMA, 64) == [1, 2, 4, 8, 16, 32]
    assert stages(model("llama3.1-405b"), 20) == [
        1,
        2,
        3,
        4,
        6,
        7,
        8,
        9,
        14,
        16,
        18,
    ]  # 126 layers: 16 is built unevenly
    assert tensors(LLAMA, 64) == [1, 2, 4, 8, 16, 32] and np.all(np.diff(divisors(360)) > 0)


def test_chunks_need_a_microbatch_for_each_stage():
    """One microbatch takes p stages' time on its way through p stages, in however many chunks: no bubble is shorter."""
    found = legal(LLAMA, 16, 16, 8192, domain=8)
    microbatches = 16 // (found.replicas * found.micro)
    assert (microbatches[found.interleave > 1] >= found.pipeline[found.interleave > 1]).all()
    assert ((microbatches < found.pipeline) & (found.interleave == 1)).any(), "without chunks it only waits longer"


def test_tensor_parallelism_cuts_the_tokens_between_its_blocks():
    assert set(legal(LLAMA, 16, 16, 4098, domain=8).tensor) == {1, 2}
    assert not len(legal(LLAMA, 16, 16, 8192, domain=8, fixed={"tensor": 8, "context": 2048}))


@pytest.mark.parametrize(("which", "batch", "seq"), [(LLAMA, 12, 8192), (MIXTRAL, 35, 4096)])
def test_the_nearest_numbers_of_chips_that_have_layouts(which, batch, seq):
    having = [n for n in range(1, 400) if len(legal(which, n, batch, seq, domain=8))]
    for n in set(range(1, 200)) - set(having):
        less, more = [m for m in having if m < n], [m for m in having if m > n]
        assert nearest(which, n, batch, seq, 8) == [less[-1], more[0]], n
