"""What can have moved an account, single figures, and what a measured step is beside a compiler's bound."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from analyzers.difference import Side, difference
from analyzers.difference.causes import HEADS, KINDS, because, kind_of, settings
from analyzers.difference.differs import Differs, differs
from analyzers.difference.figures import changes, of_steps
from analyzers.difference.step_time import FLOOR, change_beside_exact, change_of, settled
from analyzers.serving.ab_parts import request_change
from analyzers.time.step_accounts import StepAccounts
from app.comparing.cause_words import alone, reason
from app.comparing.job_words import verdict
from runs.ledger import Account, Ledger
from runs.run import facts_of

BATCH = {"model": {"global_batch_size": 8, "model_flops_per_step": 1.0}, "per_device_batch_size": 4.0}
MORE = {"model": {"global_batch_size": 12, "model_flops_per_step": 1.5}, "per_device_batch_size": 6.0}


def steps_of(mean, n=80, seed=1):
    took = mean * (1 + 0.01 * np.random.default_rng(seed).normal(size=n))
    return settled(np.arange(n), took, np.zeros(n, bool), np.zeros(n, bool))


def accounts(seed=2, **base):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({k: v * (1 + 0.01 * rng.normal(size=16)) for k, v in base.items()})
    return StepAccounts(rows, np.full(16, 5), 2, 160)


def side(name, mean, facts=None, figures=None, **base):
    return Side(
        name=name,
        kind="training",
        facts=facts_of(facts or {}),
        steps=steps_of(mean, seed=len(name)),
        profiled=accounts(**base),
        figures=figures or {},
    )


def test_every_head_of_a_setting_is_of_a_kind_that_exists():
    assert set(HEADS.values()) <= {kind.name for kind in KINDS}


def test_what_follows_from_one_setting_is_one_and_what_is_counted_from_it_is_none():
    (found,) = settings(differs(facts_of(BATCH), facts_of(MORE)))
    assert found.kind.name == "batch" and [d.a for d in found.parts] == [8, 4.0]
    assert kind_of("model.model_flops_per_step") is None and kind_of("model.emb_dim") == "model"


def test_a_setting_is_the_reason_only_where_no_other_can_be():
    one = settings(differs(facts_of({"log_period_steps": 25}), facts_of({"log_period_steps": 1})))
    two = settings(
        differs(
            facts_of({"log_period_steps": 25, "remat": "full", "attention": "a"}),
            facts_of({"log_period_steps": 1, "remat": "none", "attention": "b"}),
        )
    )
    assert because(one, ["idle_logging"]).only.kind.name == "logging"
    assert because(one, ["exposed_communication"]) == because((), ["useful_maths"])
    assert [s.kind.name for s in because(two, ["below_roofline"]).among] == ["remat", "attention"]
    assert because(two, ["idle_logging", "below_roofline"]).only.kind.name == "logging"
    assert reason(because(two, ["below_roofline"])) == "which remat (full, then none) or attention (a, then b) may make"


def test_an_axis_that_one_mesh_does_not_name_has_one_place():
    facts = [facts_of({"parallelism": axes}) for axes in ({"fsdp": 4}, {"data": 2, "model": 2})]
    assert {d.name: (d.a, d.b) for d in differs(*facts)} == {
        "parallelism.data": (1, 2),
        "parallelism.fsdp": (4, 1),
        "parallelism.model": (1, 2),
    }
    assert reason(because(settings(differs(*facts)), ["useful_maths"])) == (
        "because the mesh is data=2, model=2, not fsdp=4"
    )
    assert differs(facts_of({}), facts_of({"parallelism": {"data": 2}}))[0].a is None


def test_the_sentence_gives_the_reason_and_names_what_differs_besides():
    a = side("a", 0.6, BATCH, useful_maths=0.5, exposed_communication=0.1)
    b = side("bb", 0.85, MORE | {"log_period_steps": 1}, useful_maths=0.75, exposed_communication=0.1)
    said = verdict(difference(a, b, FLOOR)).whole
    assert "useful maths +2" in said and "because the batch is 12, not 8" in said and "differ in" not in said
    assert difference(a, b, FLOOR).to_dict()["because"][0]["name"] == "model.global_batch_size"


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        (({"collective_bytes": 8e6}, {"collective_bytes": 8e6}), "though collectives move the same bytes"),
        (({"collective_bytes": 8e6}, {"collective_bytes": 16e6}), "as collectives move 16.0 MB a step, not 8.00 MB"),
        (({}, {}), ""),
    ],
)
def test_without_a_setting_collectives_tell_whether_more_is_sent_or_the_same_slower(figures, says):
    sides = [
        side(name, 0.5 + wait, None, figure, useful_maths=0.5, exposed_communication=wait)
        for name, wait, figure in zip(("a", "bb"), (0.1, 0.3), figures, strict=True)
    ]
    said = verdict(difference(*sides, FLOOR)).whole
    assert says in said and "exposed communication +2" in said
    assert says or "collectives" not in said


def test_another_program_is_told_and_the_same_one_too():
    same = {"program_operations": 100.0, "program_flops": 1e9, "program_bytes": 1e8}
    other = same | {"program_operations": 180.0}
    for figures, says in ((same, "though the program is the same"), (other, "180 operations, not 100")):
        a, b = side("a", 0.5, None, same, below_roofline=0.5), side("bb", 0.7, None, figures, below_roofline=0.7)
        assert says in verdict(difference(a, b, FLOOR)).whole


def test_where_one_account_makes_up_for_another_both_are_told():
    a = side("a", 1.0, below_roofline=0.5, exposed_communication=0.5)
    b = side("bb", 1.1, below_roofline=0.8, exposed_communication=0.3)
    said = verdict(difference(a, b, FLOOR)).whole
    assert "against exposed communication −2" in said and "% of it" not in said.split(",")[0]


def compiled(name, **accounts_s):
    parts = [Account(name=n, chip_seconds=4 * s, basis="modelled") for n, s in accounts_s.items()]
    return Side(name=name, kind="compiled", facts={}, ledger=Ledger(chips=4, account=Account.total("held", parts)))


def test_a_measured_step_stands_beside_a_compilers_bound_account_by_account():
    ran = side("ran", 0.9, useful_maths=0.4, below_roofline=0.3, exposed_communication=0.2)
    found = difference(ran, compiled("bound", useful_maths=0.4, exposed_communication=0.1), FLOOR)
    assert found.bound == "b" and found.told and found.step.change == pytest.approx(0.5 / 0.9 - 1, abs=0.01)
    assert found.step.low < 0.5 / found.step.a - 1 < found.step.high
    by_name = {c.account: c.change for c in found.ledger}
    assert by_name["below_roofline"] == pytest.approx(-0.3, rel=0.02) and found.explained_share > 0.99
    assert "times the 500 ms that the compiler's bound of bound allows at least" in verdict(found).whole
    back = difference(compiled("bound", useful_maths=0.4, exposed_communication=0.1), ran, FLOOR)
    assert back.bound == "a" and back.makers[0].account == "below_roofline"
    said, other = verdict(found).whole, verdict(back).whole
    assert said == other and "below roofline +30" in said and "exposed communication +" in said


def test_a_bound_names_no_setting_as_a_reason_and_is_none_of_another_job():
    of = {"useful_maths": 0.4, "below_roofline": 0.5}
    for facts, bound_s, says in (
        (({"remat": "full"}, {"remat": "none"}), 0.5, "They differ in remat (full, then none)."),
        (
            ({"remat": "full"}, {"remat": "none"}),
            1.5,
            "the 1.50 s that bound tells is no bound of this job: it takes",
        ),
        (
            ({"model": "m", "chips": 4}, {"model": "n", "chips": 8}),
            0.5,
            "of this job: another number of chips and another",
        ),
    ):
        ran = side("ran", 0.9, facts[0], **of)
        bound = dataclasses.replace(compiled("bound", useful_maths=bound_s), facts=facts_of(facts[1]))
        said = verdict(difference(ran, bound, FLOOR))
        assert says in said.whole and "because" not in said.whole and "may make" not in said.whole
        assert ("allows at least" in said.whole) == ("no bound" not in said.whole)


def test_the_reason_given_can_have_moved_the_account_that_changed_most():
    a = side("a", 1.0, {"remat": "none"}, below_roofline=0.9, input_wait=0.1)
    b = side("bb", 1.33, {"remat": "full"}, below_roofline=0.93, input_wait=0.4)
    found = difference(a, b, FLOOR)
    assert [c.account for c in found.makers] == ["input_wait", "below_roofline"]
    assert "because" not in verdict(found).whole and "They differ in remat (none, then full)." in verdict(found).whole


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (
            {"parallelism": {"data": 4, "model": 2}},
            {"parallelism": {"data": 4, "model": 1}},
            "mesh is model=1, not",
        ),
        ({"remat": True}, {"remat": False}, "because remat is no, not yes"),
        ({"remat": "a", "planned_steps": 9}, {"remat": "b", "planned_steps": 99}, "because remat is b, not a"),
        (
            {"compiler_flags": {"xla_a": 2}},
            {"compiler_flags": {"xla_a": 1}},
            "because the compiler's flag xla_a is 1",
        ),
        (
            {"jax": "0.4", "libtpu_version": "1", "jaxlib_version": "4"},
            {"jax": "0.5", "libtpu_version": "2", "jaxlib_version": "5"},
            "which the version of jax (0.4, then 0.5, and 2 more versions) may make",
        ),
        (
            {"model": {"heads": 4, "mlp_dim": 1024, "vocab_size": 256}},
            {"model": {"heads": 5, "mlp_dim": 1000, "vocab_size": 250}},
            "which the model's heads (4, then 5, and 2 more dimensions) may make",
        ),
        (
            {"precision": "bf16", "dtype": "f32", "quantization": "none"},
            {"precision": "int8", "dtype": "s8", "quantization": "int8"},
            "and 2 more precision settings) may make",
        ),
        (
            {"precision": "bf16", "fused_mlp": False},
            {"precision": "int8", "fused_mlp": True},
            "which precision (bf16, then int8) may make; the rest is noise. They differ too in fused mlp (no, then",
        ),
        (
            {"remat": 1, "precision": 1, "batch_size": None, "weights": 1, "optimizer": 1},
            {"remat": 2, "precision": 2, "batch_size": None, "weights": 2, "optimizer": 2},
            "or 1 more setting may make",
        ),
    ],
)
def test_a_reason_hides_no_other_that_differs(a, b, says):
    sides = side("a", 0.5, a, below_roofline=0.5), side("bb", 0.7, b, below_roofline=0.7)
    found = difference(*sides, FLOOR)
    assert says in verdict(found).whole
    assert bool(found.because.only) == ("because" in says or "mesh" in says)


def test_what_is_evident_is_a_reason_only_where_it_points_the_same_way():
    program = {"program_operations": 100.0, "program_flops": 2e12, "program_bytes": 1e8, "collective_bytes": 2e9}
    less = program | {"program_flops": 1e12, "collective_bytes": 1e9}
    for account, says in (
        ("below_roofline", "though the program is another: 1.00"),
        ("exposed_communication", "though collectives move 1.00 GB a step, not 2.00 GB"),
        ("straggler_wait", "; the rest is noise"),
    ):
        a, b = side("a", 0.5, None, program, **{account: 0.5}), side("bb", 0.7, None, less, **{account: 0.7})
        said = verdict(difference(a, b, FLOOR)).whole
        assert says in said and ", as " not in said


def test_accounts_that_miss_a_change_by_more_than_all_of_it_tell_no_share_of_it():
    a, b = side("a", 1.0, below_roofline=1.0), side("bb", 1.05, below_roofline=1.4)
    said = verdict(difference(a, b, FLOOR)).whole
    assert "What accounts tell misses the change by −3" in said and "% of the change no" not in said


def test_beside_what_is_exact_only_the_other_scatters():
    values = steps_of(1.0, 400).seconds
    told = change_beside_exact(2.0, values)
    both = change_of(np.full(400, 2.0), values)
    assert told.change == pytest.approx(both.change) and told.high - told.low < both.high - both.low
    few, alike = change_beside_exact(2.0, values[:10]), change_beside_exact(2.0, np.linspace(1.0, 1.2, 500))
    assert not few.told and few.why == "10 settled steps are too few: 20 are needed"
    assert not alike.told and alike.why == "steps hang together so much that 500 are worth 0: 6 are needed"


def test_figures_are_told_where_both_tell_them_and_tails_where_there_are_steps():
    few, many = of_steps(steps_of(1.0, 12)), of_steps(steps_of(1.0, 200))
    assert set(few) == {"step_median_s", "step_p90_s"} and "step_p99_s" in many
    assert few["step_median_s"] == pytest.approx(np.median(steps_of(1.0, 12).seconds))
    found = changes({"mfu": 0.4, "goodput_share": 0.9}, {"mfu": 0.404, "memory_peak_bytes": 1.0})
    assert [(f.name, f.same) for f in found] == [("mfu", True)] and of_steps(None) == {}


class Requests:
    """As `Served` gives them, as far as parts need it."""

    def __init__(self, queue, seed=3, n=200):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame({"prefill_s": 0.02 + 0.001 * rng.random(n), "decode_s": 0.3 + 0.02 * rng.random(n)})
        rows["queue_s"] = queue
        rows["ttft_s"] = rows["queue_s"] + rows["prefill_s"]
        self.rows = self.timed = rows.assign(e2e_s=rows["ttft_s"] + rows["decode_s"])


@pytest.mark.parametrize("paired", [True, False])
def test_the_time_of_a_request_is_told_with_what_makes_it(paired):
    pairs = pd.DataFrame({"at_a": range(200), "at_b": range(200)}) if paired else None
    found = request_change(Requests(0.01), Requests(0.11, seed=4), pairs)
    assert found.told and found.parts[0].account == "queue_s"
    assert found.parts[0].change == pytest.approx(0.1) and found.whole.b - found.whole.a == pytest.approx(
        sum(p.change for p in found.parts)
    )
    assert found.to_dict()["explained_share"] == pytest.approx(1.0)
    assert not request_change(Requests(0.01), Requests(0.01, seed=5), pairs).told


def test_of_too_few_requests_nothing_is_told():
    found = request_change(Requests(0.01, n=5), Requests(5.0, n=5), None)
    assert found.whole is None and not found.told and found.to_dict()["request_time"] is None


def test_slices_of_other_chips_have_other_names_and_are_no_setting_beside_the_chip():
    found = settings([Differs("chip", "v5p", "v6e"), Differs("topology", "v5p:2x2x4", "v6e:4x4")])
    assert [s.kind.name for s in found] == ["chip"]
    one = settings([Differs("topology", "v5p:2x2x4", "v5p:4x4x1")])
    assert [s.kind.name for s in one] == ["mesh"]
    both = settings([Differs("chip", "v5p", "v6e"), Differs("parallelism.data", 4, 8)])
    assert [s.kind.name for s in both] == ["chip", "mesh"]


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("because the mesh is data=8, not data=4", "It is so because the mesh is data=8, not data=4."),
        ("which the batch (8, then 16) may make", "The batch (8, then 16) may make the difference."),
        ("though the program is the same", "The program is the same."),
        ("as the program is another: 5 operations, not 4", "The program is another: 5 operations, not 4."),
    ],
)
def test_a_reason_without_room_beside_the_change_is_a_sentence_of_its_own(why, said):
    assert alone(why) == said
