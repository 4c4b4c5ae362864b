"""The planner's bytes, seconds and days against figures of the book "How to Scale Your Model", worked out by hand.

v5p: 459 TFLOP/s over 180 GB/s of an axis both ways is 2,550 tokens.
"""

import pytest

from catalog import model, parameters
from tests.simulators import book

C, W = 459e12, 180e9


def test_weights_hide_from_2550_tokens_a_chip():
    assert book.alpha(C, W) == pytest.approx(2550)
    assert book.alpha(C, 3 * W) == pytest.approx(850)  # along three axes
    assert book.hidden_from(C, W) == pytest.approx(2550, rel=1e-4)  # by seconds of a whole step
    assert book.alpha(3.8e18, 50e12) == pytest.approx(76_000)  # of a pod over the data-centre network


@pytest.mark.parametrize("f, ways", [(30_000, 11.7647), (20_400, 8.0), (50_000, 19.6078)])
def test_tensor_parallelism_hides_up_to_its_width_over_2550(f, ways):
    assert book.tensor_ways(C, W, f) == pytest.approx(ways, rel=1e-5)
    assert book.tensor_ways(2 * C, 2 * W, f) == pytest.approx(ways, rel=1e-5)  # int8: both twice as fast


@pytest.mark.parametrize("tokens, chips, f, best", [(48_000, 64, 32_768, 13.693), (4 * 2**20, 8960, 28_672, 1618.96)])
def test_the_best_mixture_of_weights_and_activations(tokens, chips, f, best):
    """X = sqrt(B / F x 2 N): two axes for fsdp, one for tensor parallelism."""
    assert book.best_fsdp(tokens, chips, f, (2, 1)) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("f, tokens", [(32_768, 396.88), (30_000, 433.5), (28_672, 453.578), (13_824, 940.755)])
def test_both_hide_from_fewer_tokens_than_either(f, tokens):
    """2 x 2550^2 / F on two axes and one."""
    assert book.mixed_tokens(C, W, f, (2, 1)) == pytest.approx(tokens, rel=1e-5)


def test_a_70b_model_on_a_pod():
    n = parameters(model("llama3.1-70b"))
    assert n.total == 70_552_387_584  # 3 d f L + L (2 d N H + 2 d K H) + 2 V d
    assert book.days(6 * 70e9, 15e12, 8960, C, 0.4) == pytest.approx(44.3247, rel=1e-5)
    assert book.days(6 * 70e9, 15e12, 1, C, 1.0) / 365 == pytest.approx(435.2324, rel=1e-5)
    assert book.days(6 * 70e9, 15e12, 18_823, C, 0.5) == pytest.approx(16.8793, rel=1e-5)
    assert book.state(13e9) == pytest.approx(130e9)  # 2 bytes of weights and 8 of moments
