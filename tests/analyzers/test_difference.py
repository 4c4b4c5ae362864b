"""Two jobs compared: chance is not told as a change, a change is found, accounts close, settings are named."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.difference import Side, difference
from analyzers.difference.accounts import of_ledgers, of_profiled
from analyzers.difference.differs import differs
from analyzers.difference.operations import BOTH, GONE, NEW, matched, of_programs
from analyzers.difference.step_time import FLOOR, change_of, change_of_exact, compare, settled, worth
from analyzers.time.step_accounts import StepAccounts
from app.comparing.gates import gate
from app.comparing.job_words import verdict
from errors import QuestionError
from runs.ledger import Account, Ledger
from runs.run import facts_of


def series(rng, n, hang=0.0, spread=0.02, mean=1.0):
    """Steps of which each is like the one before by `hang`."""
    drawn, x = rng.normal(0, 1, n + 60), np.zeros(n + 60)
    for i in range(1, n + 60):
        x[i] = hang * x[i - 1] + drawn[i] * math.sqrt(1 - hang**2)
    return mean * (1 + spread * x[60:])


def steps_of(seconds):
    n = len(seconds)
    return settled(np.arange(n), np.asarray(seconds, float), np.zeros(n, bool), np.zeros(n, bool))


@pytest.mark.parametrize("hang", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("n", [20, 60, 200])
def test_of_pairs_that_do_not_differ_hardly_one_in_two_hundred_is_called_different(n, hang):
    rng = np.random.default_rng(n)
    wrong = sum(change_of(series(rng, n, hang), series(rng, n, hang)).told for _ in range(400))
    assert wrong <= 400 * 0.005 + 3 * math.sqrt(400 * 0.005)  # three deviations of the count


@pytest.mark.parametrize(("n", "hang"), [(60, 0.0), (200, 0.5), (1000, 0.9)])
def test_a_change_that_could_be_seen_is_seen_in_most_pairs(n, hang):
    rng = np.random.default_rng(n)
    found = []
    for _ in range(200):
        a, b = series(rng, n, hang), series(rng, n, hang)
        seen = change_of(a, b).detectable
        assert seen is not None
        found.append(change_of(a, b * (1 + seen)).told)
    assert np.mean(found) >= 0.91  # 95 %, less three deviations of 200


def test_the_range_holds_the_truth():
    rng = np.random.default_rng(3)
    held = []
    for _ in range(300):
        told = change_of(series(rng, 100, 0.3), series(rng, 100, 0.3, mean=1.04))
        held.append(told.low <= 0.04 <= told.high)
    assert np.mean(held) >= 0.985


def test_steps_that_hang_together_are_worth_fewer():
    rng = np.random.default_rng(5)
    apart, together = (np.mean([worth(series(rng, 400, h)) for _ in range(40)]) for h in (0.0, 0.9))
    assert 250 < apart <= 400 and together < 400 * 0.1 / 1.9 * 1.2


def test_where_every_step_is_longer_by_far_few_steps_suffice():
    told = change_of(np.full(6, 1.0), np.full(6, 1.5))
    assert told.told and told.change == pytest.approx(0.5) and told.low == pytest.approx(0.5)
    close = change_of(np.full(6, 1.0), np.full(6, 1.05))
    assert not close.told and close.low is None and "too few" in close.why


def test_what_is_no_usual_step_is_set_apart_and_counted():
    seconds = np.r_[np.full(10, 1.3), np.linspace(0.99, 1.01, 90)]
    seconds[[50, 70]] = 9.0
    n = len(seconds)
    first, odd = np.zeros(n, bool), np.zeros(n, bool)
    first[0], odd[99] = True, True
    found = settled(np.arange(n), seconds, first, odd)
    assert found.apart == {
        "first of an attempt": 1,
        "cannot be true or hung": 1,
        "stalls": 2,
        "before the pace settled": 9,
    }
    assert found.stalls_s == pytest.approx(16 / 89, rel=0.02) and len(found.seconds) == 87
    assert settled(np.arange(2), np.ones(2), np.ones(2, bool), np.zeros(2, bool)) is None


@pytest.mark.parametrize("slow", [np.full(15, 1.4), np.full(15, 3.0), np.linspace(3, 1.6, 15)])
def test_a_beginning_is_warming_up_however_slow_it_is(slow):
    steady = series(np.random.default_rng(5), 200, spread=0.005)
    late = steady.copy()
    steady[: len(slow)], late[100 : 100 + len(slow)] = slow, slow
    found = steps_of(steady)
    assert found.apart == {"before the pace settled": 15} and (found.stalls_s, found.moved) == (0.0, ())
    assert "before the pace settled" not in steps_of(late).apart  # a stretch within is none


def test_stalls_at_the_beginning_are_no_pace():
    seconds = series(np.random.default_rng(5), 200, spread=0.005)
    seconds[[0, 2, 3, 7, 11, 60]] = 5.0
    assert steps_of(seconds).apart == {"stalls": 6}


def test_stalls_that_are_many_are_how_the_job_runs():
    seconds = np.ones(100)
    seconds[::5] = 4.0
    assert "stalls" not in steps_of(seconds).apart and steps_of(seconds).mean_s == pytest.approx(1.6)


def stalling(rng, share, n):
    """Of these steps about so many stall, each for a time of its own."""
    return steps_of(1 + rng.normal(0, 0.005, n) + np.where(rng.random(n) < share, rng.uniform(0.6, 3, n), 0))


@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("share", [0.1, 0.12, 0.14])
def test_of_pairs_that_stall_alike_hardly_any_is_called_different_whichever_side_of_many_each_is_on(n, share):
    rng = np.random.default_rng(n)
    found = [compare(stalling(rng, share, n), stalling(rng, share, n)).told for _ in range(200)]
    assert np.mean(found) <= 0.0075


def test_stalls_are_set_apart_in_both_or_in_neither():
    few, many = (np.ones(400) + 0.001 * np.arange(400) % 0.004 for _ in "ab")
    few[np.linspace(3, 398, 46).astype(int)] += 1.5
    many[np.linspace(3, 398, 50).astype(int)] += 1.5
    a, b = (Side(name=n, kind="training", facts={}, steps=steps_of(s)) for n, s in (("few", few), ("many", many)))
    assert a.steps.apart == {"stalls": 46} and b.steps.stalls_kept and not a.steps.stalls_kept
    for one, other in ((a, b), (b, a)):
        found = difference(one, other, FLOOR)
        assert not found.told and found.stalls_s == (0.0, 0.0)
        assert sorted((found.step.a, found.step.b)) == pytest.approx([few.mean(), many.mean()])
        assert any("Of many too many steps take long to be stalls" in n for n in found.notes)
    calm = Side(name="calm", kind="training", facts={}, steps=steps_of(np.ones(400) + 0.001 * np.arange(400) % 0.004))
    assert difference(calm, b, FLOOR).told  # who stalls where the other does not is slower
    assert difference(calm, a, FLOOR).stalls_s[1] == pytest.approx(1.5 * 46 / 400, rel=0.01)  # and few are told beside


def accounts(rng, base, n=16, spread=0.01):
    rows = pd.DataFrame({k: v * (1 + spread * rng.normal(size=n)) for k, v in base.items()})
    return StepAccounts(rows, np.full(n, 5), 4, 4 * 5 * n)


def sides(changed=0.0, **more):
    rng = np.random.default_rng(11)
    base = {"useful_maths": 0.5, "input_wait": 0.1, "exposed_communication": 0.2}
    made = []
    for name, extra in (("a", 0.0), ("b", changed)):
        profiled = accounts(rng, base | {"input_wait": base["input_wait"] + extra})
        made.append(
            Side(
                name=name,
                kind="training",
                facts=facts_of(more.get(name, {})),
                steps=steps_of(series(rng, 80, spread=0.01, mean=0.8 + extra)),
                profiled=profiled,
            )
        )
    return made


def test_the_account_that_changed_makes_the_difference_and_the_parts_sum_to_it():
    found = difference(*sides(0.08, a={"batch": 8}, b={"batch": 16}), FLOOR)
    assert found.told and found.makers[0].account == "input_wait"
    assert found.step.change == pytest.approx(0.1, abs=0.02)
    accounted = sum(c.change for c in found.ledger)
    assert accounted + found.unexplained_s == pytest.approx(found.change_s, rel=1e-9)
    assert found.explained_share == pytest.approx(1 - abs(found.unexplained_s) / found.change_s)
    assert [(d.name, d.a, d.b) for d in found.differs] == [("batch", 8, 16)]


def test_of_steps_with_twice_the_tokens_it_is_told_what_a_token_takes():
    a, b = sides(0.4)
    found = difference(*(replace(s, tokens_per_step_per_chip=n) for s, n in ((a, 1000.0), (b, 1875.0))), FLOOR)
    assert found.per_token == pytest.approx(1.5 / 1.875 - 1, abs=0.01)
    assert found.to_dict()["chip_time_per_token_change"] == found.per_token
    assert "a token takes 20 % less chip time" in verdict(found).whole
    assert difference(a, b, FLOOR).per_token is None


def test_where_nothing_changed_nothing_is_told():
    found = difference(*sides(0.0), FLOOR)
    assert not found.told and found.makers == () and found.differs == ()


def test_a_run_without_a_profile_or_without_steps_says_what_would_tell():
    a, b = sides(0.2)
    blind = difference(a, Side(name="b", kind="training", facts={}, steps=b.steps), FLOOR)
    assert blind.told and blind.ledger == () and blind.explained_share is None and "no profile" in blind.why[0]
    nothing = Side(name="nothing", kind="training", facts={})
    with pytest.raises(QuestionError, match="nothing tells of no settled step"):
        difference(a, nothing, FLOOR)


def test_compiled_steps_differ_by_their_ledgers_and_nothing_scatters():
    def one(comm):
        held = Account.total(
            "held",
            [
                Account(name="useful_maths", chip_seconds=8.0, basis="modelled"),
                Account(name="exposed_communication", chip_seconds=comm, basis="modelled"),
            ],
        )
        return Side(name=str(comm), kind="compiled", facts={}, ledger=Ledger(chips=4, account=held))

    found = difference(one(2.0), one(4.0), FLOOR)
    assert found.step.change == pytest.approx(0.2) and found.step.low == found.step.high == found.step.change
    assert found.makers[0].account == "exposed_communication" and found.explained_share == pytest.approx(1.0)
    assert found.makers[0].change == pytest.approx(0.5)  # of a step and chip


def test_settings_are_told_one_by_one_and_what_one_side_lacks_comes_last():
    a = facts_of({"chip": "v5p", "model": {"layers": 2, "width": 8}, "note": "x", "zeta": 1, "seq": 128})
    b = facts_of({"chip": "v6e", "model": {"layers": 4, "width": 8}, "note": "y", "seq": 128.0, "alpha": True})
    assert [(d.name, d.a, d.b) for d in differs(a, b)] == [
        ("chip", "v5p", "v6e"),
        ("model.layers", 2, 4),
        ("alpha", None, True),
        ("zeta", 1, None),
    ]


@given(
    st.dictionaries(
        st.text(max_size=4),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda x: st.dictionaries(st.text(max_size=2), x, max_size=3) | st.lists(x, max_size=3),
            max_leaves=5,
        ),
        max_size=5,
    )
)
@settings(max_examples=100, deadline=None)
def test_any_facts_can_be_held_beside_any_others(facts):
    assert [d for d in differs(facts_of(facts), facts_of(facts)) if d.a == d.a] == []
    assert all(d.a is None for d in differs({}, facts_of(facts)))


def test_a_measured_peak_is_no_setting_and_a_published_one_is():
    def of(peak, basis):
        return facts_of({"peak_flops_per_s": peak, "peak_basis": basis})

    assert differs(of(1.06e11, "measured"), of(1.07e11, "measured")) == ()
    assert [d.name for d in differs(of(1.97e14, "published"), of(4.59e14, "published"))] == ["peak_flops_per_s"]
    assert [d.name for d in differs(of(1.06e11, "measured"), of(4.59e14, "published"))] == ["peak_flops_per_s"]


def frame(*rows):
    return pd.DataFrame(
        [dict(zip(("op", "category", "scope", "shape", "seconds"), r, strict=True)) for r in rows]
    ).assign(framework_op=None)


def test_operations_are_matched_though_their_numbers_changed_and_time_is_neither_lost_nor_made():
    a = frame(
        ("fusion.1", "matmul", "mlp", "f32[8]", 3.0),
        ("fusion.2", "matmul", "mlp", "f32[8]", 1.0),
        ("all-reduce.7", "collective", "mlp", "f32[8]", 2.0),
        ("sort.1", "other", "loss", "s32[4]", 0.5),
    )
    b = frame(
        ("fusion.9", "matmul", "mlp", "f32[8]", 5.0),
        ("all-reduce.1", "collective", "mlp", "f32[16]", 2.5),
        ("copy.3", "copy", "embed", "f32[2]", 0.25),
    )
    found = matched(a, b)
    assert [(o.name, o.status) for o in found] == [
        ("fusion.1 and 1 alike", BOTH),
        ("all-reduce.7", BOTH),
        ("sort.1", GONE),
        ("copy.3", NEW),
    ]
    assert sum(o.a_s for o in found) == pytest.approx(6.5) and sum(o.b_s for o in found) == pytest.approx(7.75)


def test_operations_of_programs_are_those_of_their_pairs():
    pairs = pd.DataFrame(
        [("x.1", "y.1", "matmul"), ("x.2", None, "copy"), (None, "y.3", "copy")], columns=["op_a", "op_b", "category"]
    )
    found = of_programs(pairs, {"x.1": 2.0, "x.2": 1.0}, {"y.1": 5.0, "y.3": 0.5})
    assert [(o.name, o.a_s, o.b_s, o.status) for o in found] == [
        ("x.1", 2.0, 5.0, BOTH),
        ("x.2", 1.0, 0.0, GONE),
        ("y.3", 0.0, 0.5, NEW),
    ]


def test_an_account_of_one_run_alone_is_nothing_in_the_other():
    rng = np.random.default_rng(2)
    found = of_profiled(accounts(rng, {"useful_maths": 1.0}), accounts(rng, {"useful_maths": 1.0, "compilation": 0.3}))
    assert (found[0].account, found[0].a, found[0].clear) == ("compilation", 0.0, True)


def test_what_is_exact_needs_no_range():
    assert change_of_exact(1.0, 1.001).told is False and change_of_exact(1.0, 0.9).change == pytest.approx(-0.1)


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_of_steps_that_take_no_time_no_share_is_told(a, b):
    with pytest.raises(QuestionError, match="take 0 s on average"):
        change_of(np.full(60, a), np.full(60, b))
    with pytest.raises(QuestionError, match="take 0 s on average"):
        change_of_exact(a, b)


@pytest.mark.parametrize(("a", "b"), [(1.1, 1.16), (0.1, 0.105), (1.0, 1.05)])
def test_steps_that_do_not_scatter_are_told_apart_exactly(a, b):
    told = change_of(np.full(100, a), np.full(100, b))
    assert told.told and told.change == pytest.approx(b / a - 1) and told.low > 0


def test_what_is_held_a_step_is_all_that_was_held():
    """Whatever accounts a ledger opens: those that hosts or jobs gave names to, and what nothing tells."""

    def leaf(name, s):
        return Account(name=name, chip_seconds=s, basis="measured")

    wait = Account.total("straggler_wait", [leaf("waiting for vm/1", 5.0), leaf("no_single_rank", 2.0)])
    dark = Account.total("unattributed", [leaf("not_profiled", 3.0)])
    custom = Account.total("custom", [leaf("peak benchmark", 4.0)])
    held = Account.total("held", [Account.total("productive", [dark]), Account.total("badput", [custom, wait])])
    found = {c.account: c.a for c in of_ledgers(held, held, 2.0, 2.0)}
    assert found == {"unattributed": 1.5, "custom": 2.0, "straggler_wait": 3.5}
    assert sum(found.values()) == pytest.approx(held.chip_seconds / 2)


def test_what_stalls_add_is_told_and_no_gate_passes_on_it():
    calm, stalled = np.full(100, 1.0), np.full(100, 1.0)
    stalled[::10] = 2.5
    made = [Side(name=n, kind="training", facts={}, steps=steps_of(s)) for n, s in (("a", calm), ("b", stalled))]
    found = difference(*made, FLOOR)
    assert found.stalls_s == pytest.approx((0.0, 0.15)) and not found.told
    assert (
        "Stalls, which are set apart, add 150 ms to a step of it on average, and 0 s to one of a."
        in verdict(found).whole
    )
    assert gate("step_time>+5%").judge(found) == "cannot be told" and gate("step_time>+20%").judge(found) == "passed"


def test_an_account_of_too_few_profiled_steps_makes_nothing_and_passes_no_gate():
    rng = np.random.default_rng(4)
    few = [accounts(rng, {"useful_maths": 1.0, "input_wait": w}, n=2) for w in (0.1, 0.3)]
    steps = [series(rng, 80, spread=0.01, mean=m) for m in (1.1, 1.3)]
    made = [
        Side(name=n, kind="training", facts={}, steps=steps_of(s), profiled=p)
        for n, s, p in zip("ab", steps, few, strict=True)
    ]
    found = difference(*made, FLOOR)
    assert found.told and found.makers == () and not any(c.clear for c in found.ledger)
    for name in ("input_wait", "exposed_communication", "straggler_wait"):  # the others two stretches do not show
        assert gate(f"{name}>+1%").judge(found) == "cannot be told", name


@pytest.mark.parametrize("name", ["checkpoint_save", "held", "decode", "productive"])
def test_a_gate_on_what_no_step_is_compared_by_is_refused(name):
    with pytest.raises(QuestionError, match="no gate"):
        gate(f"{name}>+1%")


def test_idle_is_all_that_hosts_kept_devices_waiting_for():
    rng = np.random.default_rng(6)
    profiled = [accounts(rng, {"useful_maths": 1.0, "idle_host_code": i}) for i in (0.1, 0.4)]
    made = [
        Side(name=n, kind="training", facts={}, steps=steps_of(series(rng, 80, spread=0.01, mean=m)), profiled=p)
        for n, m, p in zip("ab", (1.1, 1.4), profiled, strict=True)
    ]
    assert gate("device_idle>+10%").judge(difference(*made, FLOOR)) == "failed"


def test_a_small_change_keeps_the_signs_of_its_range():
    rng = np.random.default_rng(8)
    a, b = series(rng, 4000, spread=0.01), series(rng, 4000, spread=0.01, mean=0.9965)
    made = [Side(name=n, kind="training", facts={}, steps=steps_of(s)) for n, s in (("a", a), ("b", b))]
    found = difference(*made, FLOOR)
    assert not found.told and found.step.high < 0
    assert re.search(r"takes −0.3\d+ % \(−0.\d+ % to −0.\d+ %\) beside one of a, too little", verdict(found))
