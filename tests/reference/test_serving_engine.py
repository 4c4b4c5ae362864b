"""The reference engine: whatever it does to save work, every answer is what the model alone would say."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.serve.cache import PageCache
from reference.serve.plan import SMOKE, EngineConfig, Phase, Plan
from reference.serve.scheduler import Scheduler, Sequence
from reference.serve.traffic import traffic

CONFIG = EngineConfig(context=128, pages=60, max_seqs=6, token_budget=48, row_buckets=(6, 12), page_buckets=(8,))
PLAN = dataclasses.replace(SMOKE, engine=CONFIG)
TIE = 1e-3  # two tokens whose logits differ by less may change places with the order of additions


@pytest.fixture(scope="module")
def models():
    pytest.importorskip("jax", reason="needs the reference extra")
    from reference.serve.model import init

    target = {name: 3 * w for name, w in init(PLAN.dims, 0).items()}  # sure enough of itself to be worth drafting
    draft = init(PLAN.draft_dims, 1)
    for name in ("embedding", "unembedding"):
        draft[name] = target[name]
    return target, draft


@pytest.fixture(scope="module")
def plain(models):
    """Logits with noise after each token of a sequence, no cache, no batch."""
    import jax
    import jax.numpy as jnp

    from reference.serve.model import logits_of, noise

    weights = jax.tree.map(jnp.asarray, models[0])
    run = jax.jit(lambda tokens: logits_of(weights, tokens, PLAN.dims)[0])
    by_position = noise(CONFIG.context, PLAN.dims, PLAN.temperature, PLAN.seed)

    def after(tokens: bytes) -> np.ndarray:
        padded = np.zeros((1, CONFIG.context), np.int32)
        padded[0, : len(tokens)] = np.frombuffer(tokens, np.uint8)
        return np.asarray(run(padded))[len(tokens) - 1] + by_position[len(tokens) - 1]

    return after


@pytest.fixture(scope="module")
def compiled(models):
    from reference.serve.engine import Engine

    return Engine(PLAN, *models)


@pytest.fixture
def engine(compiled):
    """The engine without a past; its programs stay compiled."""
    compiled.scheduler = Scheduler(CONFIG)
    compiled.iterations, compiled.done, compiled.drafts = [], [], 0
    compiled.accepted_at = [0] * (CONFIG.row - 1)
    return compiled


def sequences(count: int, shared: int = 40, longest: int = 60) -> list[Sequence]:
    rng = np.random.default_rng(7)
    lengths = (shared, *rng.integers(3, longest - shared, count))
    words = [bytes(rng.integers(32, 127, n).astype(np.uint8)) for n in lengths]
    return [
        Sequence(f"r{i}", "t", "p", words[0] * (i % 3 > 0) + own, int(rng.integers(1, 40)), i)
        for i, own in enumerate(words[1:])
    ]


def serve(engine, asked: list[Sequence], events=None) -> None:
    """Serves all; `events`: {iteration: what to do before it}."""
    for s in asked:
        engine.add(s)
    for _ in range(2000):
        (events or {}).get(len(engine.iterations), lambda: None)()
        if not engine.busy:
            assert engine.scheduler.cache.held == 0, "all pages were given back"
            return
        engine.step()
    raise AssertionError("it never came to an end")


def check_answers(asked: list[Sequence], plain) -> None:
    for s in asked:
        assert len(s.output) == s.max_tokens
        for i in range(len(s.prompt), len(s.tokens)):
            scores = plain(bytes(s.tokens[:i]))
            assert scores[s.tokens[i]] >= scores.max() - TIE, (s.id, i)


def test_answers_are_the_models_own_under_preemption_shared_prefixes_and_speculation(engine, plain):
    asked = sequences(14)
    events = {4: lambda: engine.scheduler.cache.allow(14), 30: lambda: engine.scheduler.cache.allow(60)}
    serve(engine, asked, events)
    assert sum(s.preemptions for s in asked) > 2 and engine.scheduler.prefix_hits > 100
    assert 0 < sum(s.accepted for s in asked) < sum(s.drafted for s in asked)
    assert max(i["prefill_requests"] for i in engine.iterations) > 1
    assert any(i["prefill_requests"] and i["decode_requests"] for i in engine.iterations)
    check_answers(asked, plain)


def test_every_position_of_a_compiled_shape_is_accounted_for(engine):
    asked = sequences(10)
    serve(engine, asked, {6: lambda: engine.scheduler.cache.allow(12)})
    for i in engine.iterations:
        lost = i["drafted_tokens"] - i["accepted_tokens"] + i["padded_tokens"]
        assert (i["prefill_tokens"] + i["decode_tokens"] + lost) // CONFIG.row in CONFIG.row_buckets
        assert i["recomputed_tokens"] <= i["prefill_tokens"] and 0 < i["device_ns"] < i["dur_ns"]
    total = {k: sum(i[k] for i in engine.iterations) for k in ("prefill_tokens", "recomputed_tokens", "decode_tokens")}
    preemptions = sum(i["preempted"] for i in engine.iterations)
    assert preemptions == sum(s.preemptions for s in asked) > 0
    # A sequence put back reads what it had, which is recomputation, and its last token, which was not computed yet;
    # the pass that ends its reading gives a token, as the first pass did.
    read = total["prefill_tokens"] - total["recomputed_tokens"]
    assert 0 <= read - sum(len(s.prompt) - s.cached_tokens for s in asked) <= preemptions
    assert 0 <= sum(s.max_tokens for s in asked) - total["decode_tokens"] - len(asked) <= preemptions


def test_a_draft_that_is_the_target_is_always_right_and_one_that_knows_nothing_never():
    pytest.importorskip("jax", reason="needs the reference extra")
    from reference.serve.engine import Engine
    from reference.serve.model import init

    small = dataclasses.replace(CONFIG, row_buckets=(12,))
    plan = dataclasses.replace(PLAN, dims=PLAN.draft_dims, engine=small, temperature=1e-6)
    target = {name: 3 * w for name, w in init(plan.dims, 0).items()}
    backwards = target | {"unembedding": -target["unembedding"]}
    for draft, share in ((target, 1.0), (backwards, 0.0)):
        engine, asked = Engine(plan, target, draft), sequences(3)
        serve(engine, asked)
        assert sum(s.accepted for s in asked) == share * sum(s.drafted for s in asked)
        assert engine.accepted_at[0] == share * engine.drafts


def test_a_client_that_leaves_gives_its_pages_back(engine):
    gone, stays = sequences(2)
    gone.max_tokens = stays.max_tokens = 40
    serve(engine, [gone, stays], {4: lambda: setattr(gone, "left", True)})
    assert (gone.status, stays.status) == ("aborted", "completed")
    assert 0 < len(gone.output) < 40 == len(stays.output)
    assert not gone.pages


def test_prefixes_are_named_alike_where_they_are_alike():
    cache = PageCache(10, 4)
    a, b, c = cache.blocks(b"abcdefgh"), cache.blocks(b"abcdefghij"), cache.blocks(b"abcXefgh")
    assert a == b[:2] and len(b) == 3 and not set(c) & set(b)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_pages_are_neither_lost_nor_given_twice(data):
    cache, held = PageCache(12, 4), []  # held: pages of each sequence, and how many of them it found
    for _ in range(data.draw(st.integers(1, 40))):
        what = data.draw(st.sampled_from(("admit", "release", "allow")))
        if what == "allow":
            cache.allow(data.draw(st.integers(1, 12)))
            while cache.held > cache.allowed:
                cache.release(held.pop())
        elif what == "release" and held:
            cache.release(held.pop(data.draw(st.integers(0, len(held) - 1))))
        elif what == "admit":
            tokens, names = bytes(data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=16))), []
            cache.names(tokens, names)
            found = cache.find(names)
            cache.hold(found)
            more = cache.allocate(len(names) - len(found) + 1)
            if more is None:
                cache.release(found)
                continue
            held.append(found + more)
            for page, name in zip(held[-1], names, strict=False):
                cache.know(page, name)
        owners = [set(pages) for pages in held]
        assert all(len(o) == len(p) and 0 not in o for o, p in zip(owners, held, strict=True))
        assert cache.held == len(set().union(*owners)) <= cache.allowed
        assert cache.held + len(cache._idle) <= cache.allowed and not set(cache._idle) & set().union(*owners)
        assert cache.held + len(cache._idle) + len(cache._free) == 12


def test_who_came_last_gives_way_and_returns_first():
    scheduler = Scheduler(EngineConfig(context=64, pages=5, max_seqs=4, token_budget=72))
    asked = [Sequence(f"r{i}", "t", "p", bytes([65 + i]) * 30, 30, i) for i in range(4)]
    for s in asked:
        s.tokens = bytearray(s.prompt)
    scheduler.waiting.extend(asked)
    parts, preempted = scheduler.schedule(0)
    assert [(p.sequence.id, p.count) for p in parts] == [("r0", 30), ("r1", 30), ("r2", 8)] and not preempted
    for p in parts:
        p.sequence.computed += p.count
    asked[0].tokens += b"x"
    asked[1].tokens += b"x"  # both now take a third page for 4 more tokens: r2 must go for the first of them
    parts, preempted = scheduler.schedule(1)
    assert [(p.sequence.id, p.count, p.drafts) for p in parts] == [("r0", 4, 3)] and preempted == 2
    assert [s.id for s in scheduler.waiting] == ["r1", "r2", "r3"]
    assert scheduler.cache.held == 3 and not asked[1].pages
    assert scheduler.schedule(2)[1] == 0, "nobody is put back for one who waits"


def test_traffic_is_bursty_shares_beginnings_and_fits_what_was_asked_for():
    plan = Plan("x", (Phase("long", seconds=2000.0, cv=3.0, rate_per_s=1.0, too_long=2, aborted=3),))
    asks = traffic(plan)
    gaps = np.diff([a.at_s for a in asks])
    assert gaps.std() / gaps.mean() == pytest.approx(3.0, rel=0.25) and 1 / gaps.mean() == pytest.approx(1.0, rel=0.25)
    assert sum(len(a.prompt) + a.max_tokens > plan.engine.context for a in asks) == 2
    assert sum(a.leave_after is not None for a in asks) == 3
    for tenant in plan.tenants:
        begun = {a.prompt[: tenant.shared_tokens] for a in asks if a.tenant == tenant.name}
        assert len(begun) == 1
        share = sum(a.tenant == tenant.name for a in asks) / len(asks)
        assert share == pytest.approx(tenant.share, abs=0.05)
    assert traffic(plan) == asks, "the same from the same seed"
