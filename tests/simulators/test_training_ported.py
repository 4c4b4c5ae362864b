"""A measured step carried over: it closes, the same setup is the same step, there and back too, and closed forms."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from catalog import chip, model
from errors import QuestionError
from runs.ledger import Account, Ledger
from simulators.training.efficiency import Efficiency
from simulators.training.layout import layouts
from simulators.training.machine import machine
from simulators.training.plan import plan
from simulators.training.ported import BUBBLE, COMMUNICATION, Terms, one_step, ported
from simulators.training.step import steps
from simulators.training.work import work

TOLD = Terms(useful_s=0.4, beyond_s=0.3, communication_s=0.2, bubble_s=0.0, launching_s=0.1, again=1.0)
OTHER = Terms(useful_s=0.2, beyond_s=0.25, communication_s=0.3, bubble_s=0.0, launching_s=0.05, again=1.0)


def leaf(name: str, seconds: float, basis: str = "measured") -> Account:
    return Account(name=name, chip_seconds=seconds, basis=basis, source="a trace")


def profiled(chips: int = 8, times: float = 1.0, bubble: float = 0.0) -> Ledger:
    """A step with an account of every kind that a profile tells; seconds of a chip times the chips."""
    s = chips * times
    parts = [
        leaf("useful_maths", 0.38 * s),
        leaf("padding", 0.02 * s, "modelled"),
        leaf("recomputation", 0.1 * s),
        leaf("below_roofline", 0.25 * s),
        leaf(COMMUNICATION, 0.11 * s),
        leaf("exposed_copies", 0.003 * s),
        Account.total("straggler_wait", [leaf("waiting for host 7", 0.04 * s), leaf("no_single_rank", 0.01 * s)]),
        leaf("input_wait", 0.06 * s),
        Account.total("device_idle", [leaf("idle_launching", 0.05 * s), leaf("idle_host_code", 0.02 * s)]),
        Account.total("unattributed", [leaf("not_profiled", 0.07 * s, "unattributed")]),
    ]
    parts += [leaf(BUBBLE, bubble * s)] if bubble else []
    return Ledger(chips=chips, account=Account.total("productive", parts))


def amounts(ledger: Ledger) -> dict[tuple[str, ...], float]:
    return {path: a.chip_seconds / ledger.chips for path, a in ledger.account.walk()}


def altered(dice: random.Random, terms: Terms) -> Terms:
    """Another setup, in which each term is up to three times more or less."""
    return Terms(**{name: value * dice.uniform(1 / 3, 3) for name, value in vars(terms).items()})


def drawn(dice: random.Random, bubble: bool = True) -> Terms:
    return Terms(
        useful_s=dice.uniform(0.1, 1),
        beyond_s=dice.uniform(0.05, 1),
        communication_s=dice.uniform(0.01, 0.5),
        bubble_s=dice.uniform(0.01, 0.5) if bubble else 0.0,
        launching_s=dice.uniform(0.001, 0.1),
        again=dice.uniform(0.1, 1),
    )


def test_each_account_goes_by_its_own_terms():
    made = ported(profiled(), TOLD, OTHER, 32)
    after = amounts(made.after)
    at = {path[-1]: seconds for path, seconds in after.items()}
    assert at["useful_maths"] == pytest.approx(0.38 / 2) and at["padding"] == pytest.approx(0.02 / 2)
    assert at["recomputation"] == pytest.approx(0.1 / 2)
    assert at["below_roofline"] == pytest.approx(0.25 * 0.25 / 0.3)
    assert at[COMMUNICATION] == pytest.approx(0.11 * 1.5) and at["idle_launching"] == pytest.approx(0.05 / 2)
    assert at["not_profiled"] == pytest.approx(0.07 * (0.8 - 0.2) / (1.0 - 0.4))
    for name, seconds in {"input_wait": 0.06, "straggler_wait": 0.05, "idle_host_code": 0.02}.items():
        assert at[name] == pytest.approx(seconds), "no model of it: as it was, for each step"
    assert made.after.chips == 32 and made.after_s == pytest.approx(sum(r.ported_s for r in made.rows))
    assert made.unchanged_s == pytest.approx(0.06 + 0.05 + 0.02 + 0.003)
    assert made.factor == pytest.approx((made.before_s - made.unchanged_s) / 1.0)
    assert {r.name for r in made.rows if r.kept_s} == {
        "exposed_copies",
        "straggler_wait/waiting for host 7",
        "straggler_wait/no_single_rank",
        "input_wait",
        "device_idle/idle_host_code",
    }


def test_what_is_not_known_stays_unknown_and_the_rest_is_modelled():
    after = ported(profiled(), TOLD, OTHER, 8).after
    bases = {a.name: a.basis for _, a in after.account.walk() if not a.children}
    assert bases.pop("not_profiled") == "unattributed" and set(bases.values()) == {"modelled"}
    assert after.unknown == pytest.approx(after.find("not_profiled").chip_seconds)


def test_the_same_setup_is_the_same_ledger():
    for terms in (TOLD, replace(TOLD, bubble_s=0.2), drawn(random.Random(1))):
        for before in (profiled(), one_step(0.38, 1.1, 64)):
            made = ported(before, terms, terms, before.chips)
            assert made.after == before and all(r.change_s == 0 for r in made.rows)


def test_there_and_back_is_the_step_that_it_was():
    dice = random.Random(20)
    for _ in range(200):
        old = drawn(dice, bubble=dice.random() < 0.5)
        new = altered(dice, old)
        before = profiled(dice.choice([1, 8, 4096]), times=dice.uniform(0.8, 1.2) * old.step_s)
        there = ported(before, old, new, dice.choice([1, 16, 100_000]))
        back = ported(there.after, new, old, before.chips)
        for path, seconds in amounts(before).items():
            assert amounts(back.after)[path] == pytest.approx(seconds, rel=1e-9), path


def test_it_closes_whatever_the_terms_are():
    dice = random.Random(7)
    for _ in range(300):
        old, new = drawn(dice, dice.random() < 0.5), drawn(dice, dice.random() < 0.5)
        old = replace(old, communication_s=dice.choice([0.0, old.communication_s]), again=dice.choice([0.0, old.again]))
        new = replace(new, communication_s=dice.choice([0.0, new.communication_s]), again=dice.choice([0.0, new.again]))
        before = dice.choice([profiled(times=old.step_s), one_step(0.5 * old.step_s, old.step_s, 8)])
        made = ported(before, old, new, 16)
        for path, account in made.after.account.walk():
            assert account.chip_seconds >= 0 and math.isfinite(account.chip_seconds), path
        assert math.fsum(r.measured_s for r in made.rows) == pytest.approx(made.before_s, rel=1e-12)
        assert math.fsum(r.ported_s for r in made.rows) == pytest.approx(made.after_s, rel=1e-12)


def test_a_step_of_which_only_useful_maths_is_known_goes_by_the_rest_as_one():
    made = ported(one_step(0.5, 1.25), TOLD, OTHER, 1)
    assert made.after_s == pytest.approx(0.5 * 0.2 / 0.4 + 0.75 * (0.8 - 0.2) / (1.0 - 0.4))
    assert made.factor == pytest.approx(1.25)
    nothing = Ledger(chips=1, account=Account.total("productive", [leaf("not_profiled", 1.25, "unattributed")]))
    assert ported(nothing, TOLD, OTHER, 1).after_s == pytest.approx(1.25 * 0.8 / 1.0)
    bare = Ledger(chips=1, account=leaf("productive", 1.25))
    assert ported(bare, TOLD, OTHER, 1).after_s == pytest.approx(1.25 * 0.8 / 1.0)


def test_what_the_old_setup_cannot_have_comes_in_with_the_runs_factor():
    alone, apart = replace(TOLD, communication_s=0.0), replace(OTHER, bubble_s=0.1)
    lone = Ledger(
        chips=1, account=Account.total("productive", [leaf("useful_maths", 0.6), leaf("below_roofline", 0.6)])
    )
    made = ported(lone, alone, apart, 16)
    at = {r.name: r.ported_s for r in made.rows}
    assert made.factor == pytest.approx(1.2 / 0.8)
    assert at[COMMUNICATION] == pytest.approx(0.3 * 1.5) and at[BUBBLE] == pytest.approx(0.1 * 1.5)
    back = ported(made.after, apart, alone, 1)
    assert back.after_s == pytest.approx(1.2), "and goes with it"
    assert COMMUNICATION not in {r.name for r in ported(one_step(0.6, 1.2), alone, apart, 16).rows}, "in the rest"


def test_what_is_far_beyond_the_model_does_not_grow_with_it():
    """A model that has next to nothing of an account says next to nothing of it: a tenfold of that is no tenfold."""
    old, new = replace(TOLD, communication_s=0.01), replace(TOLD, communication_s=0.1)
    (row,) = [r for r in ported(profiled(), old, new, 8).rows if r.name == COMMUNICATION]
    assert row.kept_s == pytest.approx(0.11 - 4 * 0.01) and row.ported_s == pytest.approx(0.07 + 4 * 0.1)
    assert row.rule == "modelled communication; 63.6 % as it was, for each step"
    back = ported(ported(profiled(), old, new, 8).after, new, old, 8)
    assert back.after.amount(COMMUNICATION) == pytest.approx(8 * 0.11, rel=1e-12)


def test_a_pipelines_bubble_is_in_what_a_profile_shows_as_waiting():
    old, new = replace(TOLD, bubble_s=0.2), replace(TOLD, bubble_s=0.05)
    at = {r.name: r.ported_s for r in ported(profiled(), old, new, 8).rows}
    assert at[COMMUNICATION] == pytest.approx(0.11 * 0.25 / 0.4)
    told = {r.name: r.ported_s for r in ported(profiled(bubble=0.2), old, new, 8).rows}
    assert told[COMMUNICATION] == pytest.approx(0.11) and told[BUBBLE] == pytest.approx(0.05)


def test_recomputation_of_which_the_model_knows_nothing_goes_with_the_maths():
    at = {r.name: r.ported_s for r in ported(profiled(), replace(TOLD, again=0.0), OTHER, 8).rows}
    assert at["recomputation"] == pytest.approx(0.1 / 2)


@pytest.mark.parametrize("times", [0.2, 6.0])
def test_a_step_that_the_model_misses_by_far_is_refused(times):
    with pytest.raises(QuestionError, match=r"the model says 1.00 s of a step of which the run shows .* global_batch"):
        ported(one_step(0.1 * times, times), TOLD, OTHER, 8)


def test_a_step_of_nothing_but_waits_is_refused():
    waits = Ledger(chips=1, account=Account.total("productive", [leaf("input_wait", 1.0)]))
    with pytest.raises(QuestionError, match="shows 0 s"):
        ported(waits, TOLD, OTHER, 1)
    with pytest.raises(QuestionError, match="took no time"):
        ported(Ledger(chips=1, account=leaf("productive", 0.0)), TOLD, OTHER, 1)


def test_a_better_chip_is_no_slower():
    """More FLOP/s, more bytes/s of memory or of network: the step as carried over never grows."""
    one = model("llama3.1-8b")
    terms, cut = work(one, 8192), layouts(tensor=4, fsdp=4, micro=1, remat=0)
    on = machine(chip("v5p"))

    def modelled(like) -> Terms:
        timed = steps(terms, cut, np.zeros(1), 16, like, Efficiency())
        part = {name: float(values[0]) for name, values in timed.parts.items()}
        useful = terms.flops_per_token * 16 * 8192 / 16 / like.peak_flops_per_s
        waits = sum(part[n] for n in ("tensor", "context", "expert", "sends", "exposed"))
        rest = float(timed.seconds[0]) - useful - waits - part["launches"]
        return Terms(useful_s=useful, beyond_s=rest, communication_s=waits, launching_s=part["launches"])

    old = modelled(on)
    before = profiled(16, times=old.step_s)
    for names in (
        ("peak_flops_per_s", "bf16_flops_per_s"),
        ("hbm_bytes_per_s",),
        ("links_per_s",),
    ):
        last = math.inf
        for times in (0.5, 1, 2, 4):
            like = replace(on, **{name: getattr(on, name) * times for name in names})
            after = ported(before, old, modelled(like), 16).after_s
            assert after <= last * (1 + 1e-12), (names, times)
            last = after
        assert last < ported(before, old, modelled(replace(on, **{n: getattr(on, n) / 2 for n in names})), 16).after_s


def test_terms_of_a_planned_step_add_up_to_it():
    for name, on, chips, fixed in (
        ("llama3.1-8b", "v6e", 64, {}),
        ("llama3.1-405b", "h100", 1024, {"pipeline": 8}),
        ("gpt-oss-20b", "h100", 16, {"expert": 4}),
    ):
        for one in plan(model(name), chip(on), chips, 512, 8192, fixed=fixed).layouts:
            made = Terms.of(one.accounts, one.recomputed)
            assert made.step_s == pytest.approx(one.step_s, rel=1e-9)
            assert min(made.useful_s, made.beyond_s, made.communication_s, made.bubble_s) >= 0
