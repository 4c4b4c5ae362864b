"""Why a number of chips has no layout, and why one loses: each kind, with numbers that can be counted again."""

import pytest

from catalog import chip, model
from simulators.training.layout import legal
from simulators.training.losing import KINDS, larger
from simulators.training.plan import plan
from simulators.training.refused import least_batch, no_layout

LLAMA, LARGE = model("llama3.1-8b"), model("llama3.1-405b")
H100 = chip("h100")


def why(of, chips, batch, seq=8192, **how):
    how = {"precision": "bf16", "remat": "part", **how}
    found = plan(of, H100, chips, batch, seq, **how)
    return no_layout(found, of, batch, seq, how.get("fixed"), how["precision"], how["remat"])


def test_one_that_has_a_layout_has_no_reason():
    assert why(LLAMA, 8, 512) is None


def test_what_does_not_fit_names_a_number_that_does_and_no_smaller_one_of_its_doublings():
    told = why(LARGE, 64, 512)
    [enough] = told.chips
    assert told.kind == "memory" and f"{enough} chips do" in told.text
    assert plan(LARGE, H100, enough, 512, 8192).layouts and not plan(LARGE, H100, enough // 2, 512, 8192).layouts


def test_a_batch_too_small_names_the_least_that_feeds_the_chips():
    told = why(LLAMA, 1024, 1)
    assert told.kind == "batch" and "can be fed from" in told.text
    assert len(legal(LLAMA, 1024, told.batch, 8192, domain=8))
    assert not any(len(legal(LLAMA, 1024, n, 8192, domain=8)) for n in range(1, told.batch))


@pytest.mark.parametrize(("chips", "seq"), [(96, 8192), (56, 4096), (1000, 8192), (7, 2048)])
def test_the_least_batch_by_trying_every_one(chips, seq):
    """A multiple of the copies: the least of all is the number of copies of some layout."""
    tried = [n for n in range(1, chips + 1) if len(legal(LLAMA, chips, n, seq, domain=8))]
    assert least_batch(LLAMA, chips, seq, 8) == min(tried, default=None)


def test_axes_that_divide_nothing():
    assert why(LLAMA, 48, 512, fixed={"tensor": 3}).kind == "axes"
    assert "has no experts that ep 2 could deal out" in why(LLAMA, 16, 512, fixed={"expert": 2}).text
    mixtral = why(model("mixtral-8x7b"), 64, 512, fixed={"expert": 16}).text
    assert "ep 16 does not divide the 8 experts of mixtral-8x7b; the nearest that does is 8" in mixtral
    assert "nearest that do are 2 and 4" in why(LLAMA, 24, 512, fixed={"tensor": 3}).text
    assert why(LLAMA, 7, 512).kind == "divisibility" and why(LLAMA, 7, 512).chips


def test_keeping_everything_may_be_what_does_not_fit():
    assert "It fits where layers are computed again" in why(model("llama3.1-70b"), 16, 512, remat="none").text


def test_what_a_loser_takes_more_adds_up():
    first, *others = plan(model("llama3.1-70b"), H100, 512, 512, 8192).layouts
    for one in others:
        more = larger(one, first)
        assert more.total == pytest.approx(512 * (one.step_s - first.step_s))
        gaps = {n: 512 * (one.accounts.get(n, 0.0) - first.accounts.get(n, 0.0)) for n in KINDS}
        assert more.by == pytest.approx(max(gaps.values())) and gaps[more.account] == pytest.approx(more.by)
    assert larger(first, first) is None
    assert larger(first, first, weight=2.0).total == pytest.approx(512 * first.step_s)


def test_a_layout_that_keeps_everything_and_fills_the_memory_is_tight():
    found = [p for p in plan(LLAMA, H100, 8, 512, 8192, remat="none", most=50).layouts]
    assert all(p.tight == (p.bytes_per_chip > 0.95 * p.hbm_bytes) for p in found)
    assert all(p.bytes_left == pytest.approx(p.hbm_bytes - p.bytes_per_chip) and p.bytes_left >= -1e-3 for p in found)
