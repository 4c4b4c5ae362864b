"""The verdict says what is true of the ledger, in a sentence that reads."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from analyzers.lost import goodput
from analyzers.time import ledger
from analyzers.time.ledger import LedgerResult
from app.questions.goodput.words import verdict as goodput_verdict
from app.questions.ledger.figures import figures as ledger_figures
from app.questions.ledger.words import PHRASES, losses
from app.questions.ledger.words import verdict as ledger_verdict
from app.questions.steps.words import verdict as steps_verdict
from errors import format as fmt
from runs.accounts import ACCOUNTS
from runs.ledger import Account, Ledger
from runs.tables import MemoryTables
from tests.app import ledgers
from tests.app.test_figures import taken


def test_a_usual_ledger_names_goodput_and_the_largest_loss():
    said = ledger_verdict(ledgers.usual(4.0))
    assert said.startswith("70 % of 12,400 chip-hours went into steps that were kept; useful maths")
    assert "peak needs 34 %." in said
    assert "Computing below the chip's peak cost the most: 15 % (1,800 chip-hours, about $7,200)." in said
    assert said.whole.endswith(
        "10 % cannot be told: a profile covers 50.0 % of step time. Add one that was captured while they ran."
    )


def test_without_a_price_no_dollar_is_said():
    assert "$" not in ledger_verdict(ledgers.usual())


def test_what_cannot_be_told_comes_first_where_it_is_most():
    said = ledger_verdict(ledgers.dark())
    assert said.startswith("92 % of 1.20 chip-hours cannot be told: no profile covers these steps. Add one")
    assert "Useful maths" not in said and "useful maths" not in said


def test_an_empty_ledger_claims_nothing():
    assert ledger_verdict(ledgers.empty()).startswith("No chip time can be accounted for")


def test_a_job_that_kept_nothing():
    held = Account.total("held", [Account.total("badput", [ledgers.leaf("wasted_progress", 5)])])
    said = ledger_verdict(
        LedgerResult(
            ledger=Ledger(chips=1, account=held),
            start_ns=None,
            end_ns=None,
            interruptions=(),
            profiled_share=None,
            notes=(),
        )
    )
    assert said == (
        "None of 5.00 chip-hours went into steps that were kept. Steps lost to an interruption and taken "
        "again cost the most: 100 % (5.00 chip-hours)."
    )


def test_a_part_named_after_a_host_is_not_a_loss_of_its_own():
    found = dict(losses(ledgers.usual().ledger))
    assert found["straggler_wait"] == pytest.approx(170 * 3600)
    assert "waiting for host 7" not in found and "useful_maths" not in found and "unattributed" not in found
    assert found["<b>evil</b> & $5 v1.2"] == pytest.approx(90 * 3600)


def test_known_useful_and_unknown_are_all_there_is():
    ledger = ledgers.usual().ledger
    known = sum(amount for _, amount in losses(ledger))
    assert known + ledger.unknown + ledger.amount("useful_maths") == pytest.approx(ledger.chip_seconds)


def test_a_custom_event_is_named_as_the_job_named_it():
    held = Account.total("held", [Account.total("badput", [Account.total("custom", [ledgers.leaf("eviction", 2)])])])
    result = LedgerResult(
        ledger=Ledger(chips=1, account=held),
        start_ns=None,
        end_ns=None,
        interruptions=(),
        profiled_share=None,
        notes=(),
    )
    assert "The event “eviction” cost the most: 100 %" in ledger_verdict(result)


def test_phrases_are_of_accounts_that_exist_and_fit_the_sentence():
    assert set(PHRASES) <= set(ACCOUNTS)
    for phrase in PHRASES.values():
        assert phrase[0].isupper() and not phrase.endswith(".")


def test_steps_verdict():
    said = steps_verdict(taken(kept=[i not in (10, 11) for i in range(30)], implausible=["no"] + [""] * 29))
    assert said == (
        "A usual step takes 1.00 s, as fast as the best. 2 steps were lost and taken again. 1 step cannot "
        "be true as printed and is left out."
    )
    slow = steps_verdict(type(taken())(**{**vars(taken()), "median_step_s": 1.25}))
    assert slow.startswith("A usual step takes 1.25 s, 25 % longer than the best.")
    unknown_times = steps_verdict(type(taken())(**{**vars(taken()), "median_step_s": None, "best_step_s": None}))
    assert unknown_times.startswith("30 steps recorded, but no duration that can be trusted.")


def test_no_sentence_has_a_double_space_or_a_lost_number():
    for result in (ledgers.usual(), ledgers.usual(3.0), ledgers.dark(), ledgers.empty()):
        said = ledger_verdict(result)
        assert not re.search(r"  |None|nan| ,|\.\.| \.", said.replace("None of", ""))
    assert pd.notna(said)


def test_a_profile_alone_does_not_claim_that_its_steps_were_kept():
    productive = Account.total(
        "productive",
        [
            Account(name="useful_maths", chip_seconds=30.0, basis="derived"),
            Account(name="device_idle", chip_seconds=70.0, basis="measured"),
        ],
    )
    ledger = Ledger(chips=1, account=Account.total("held", [productive]))
    result = LedgerResult(ledger=ledger, start_ns=None, end_ns=None, interruptions=(), profiled_share=1.0, notes=())
    assert ledger_verdict(result) == (
        "Useful maths at the chip's peak needs 30 % of 100 chip-seconds. "
        "An idle device inside steps cost the most: 70 % (70.0 chip-seconds)."
    )


def test_a_compiled_step_is_told_as_modelled():
    parts = [Account(name=n, chip_seconds=s, basis="modelled") for n, s in (("useful_maths", 2.0), ("padding", 6.0))]
    ledger = Ledger(chips=4, account=Account.total("held", [Account.total("productive", parts)]), useful_flops=1e12)
    said = ledger_verdict(
        LedgerResult(ledger=ledger, start_ns=None, end_ns=None, interruptions=(), profiled_share=None, notes=())
    )
    assert said.startswith("A compiled step needs at least 8.00 chip-seconds: modelled")
    assert "Useful maths at the chip's peak needs 25 % of it." in said


def without_peak(**told) -> LedgerResult:
    """Kept steps whose FLOPs are known, on a chip that nobody named."""
    unseen = Account.total("unattributed", [ledgers.leaf("not_profiled", 95, "unattributed")])
    held = Account.total(
        "held", [Account.total("productive", [unseen]), Account.total("badput", [ledgers.leaf("other", 5)])]
    )
    return LedgerResult(
        ledger=Ledger(chips=1, account=held, useful_flops=1e20),
        start_ns=None,
        end_ns=None,
        interruptions=(),
        notes=(),
        peak_known=False,
        **told,
    )


def test_where_the_peak_lacks_the_advice_is_to_name_the_chip():
    said = ledger_verdict(without_peak(profiled_share=0.0))
    assert said.startswith("95 % of 100 chip-hours cannot be told: the chip's peak is not known")
    assert "Say which chip it was; for the rest, add a profile" in said and "no profile covers" not in said
    covered = ledger_verdict(without_peak(profiled_share=1.0))
    assert "Say which chip it was." in covered and "add a profile" not in covered


def test_no_step_read_is_not_told_as_none_kept():
    held = Account.total(
        "held",
        [
            Account.total("badput", [ledgers.leaf("training_preparation", 30)]),
            ledgers.leaf("unattributed", 70, "unattributed"),
        ],
    )
    found = LedgerResult(
        ledger=Ledger(chips=1, account=held),
        start_ns=None,
        end_ns=None,
        interruptions=(),
        profiled_share=None,
        notes=(),
        steps_read=False,
    )
    said = ledger_verdict(found)
    assert said.startswith("70 % of 100 chip-hours cannot be told: no step was read.")
    assert "None of" not in said and "Preparing the training cost the most of what is known: 30 %" in said
    little = Account.total(
        "held",
        [
            Account.total("badput", [ledgers.leaf("training_preparation", 95)]),
            ledgers.leaf("unattributed", 5, "unattributed"),
        ],
    )
    said = ledger_verdict(replace(found, ledger=Ledger(chips=1, account=little)))
    assert said.startswith("How much of 100 chip-hours went into steps cannot be told: no step was read.")


@pytest.mark.parametrize("rules", ["exact", "ml-goodput"])
def test_goodput_without_a_step_is_no_0_per_cent(rules):
    start = 1_767_571_200_000_000_000
    here = MemoryTables(
        {
            "lifecycle": {
                "kind": ["job", "training_preparation"],
                "start_ns": [start] * 2,
                "end_ns": [start + 10**12, start + 3 * 10**11],
            }
        }
    )
    said = goodput_verdict(goodput.analyze(here, {}, {"rules": rules}))
    assert "ow much of 16 min 40 s went into steps cannot be told: no step was read." in said
    assert "0 % of" not in said and "Time between" not in said
    assert "Preparing the training cost the most: 30 %" in said


def test_a_hang_is_called_one():
    start = 1_767_571_200_000_000_000
    at = [start + (10 * n + (21_600 if n > 20 else 0)) * 10**9 for n in range(50)]
    here = MemoryTables(
        {
            "steps": {"step": range(50), "order": range(50), "start_ns": at},
            "lifecycle": {"kind": ["job"], "start_ns": [start], "end_ns": [at[-1] + 10**10]},
        }
    )
    assert "Steps that hung cost the most: 98 %" in goodput_verdict(goodput.analyze(here, {}, {"rules": "exact"}))
    assert "Steps that hung cost the most: 98 %" in ledger_verdict(ledger.analyze(here, {}, {}))


@pytest.mark.parametrize(
    ("useful", "said"),
    [
        (0.4, "How much of 100 chip-hours was useful maths is not known."),
        (12, "needs at least 12 % of 100 chip-hours."),
    ],
)
def test_computing_whose_flops_nobody_counted_is_not_told_as_little_maths(useful, said):
    result = LedgerResult(
        ledger=ledgers.uncounted(useful),
        start_ns=None,
        end_ns=None,
        interruptions=(),
        notes=(),
        peak_known=True,
        profiled_share=1.0,
    )
    told, (shown,) = ledger_verdict(result), (f for f in ledger_figures(result) if f.label == "Useful maths")
    assert said in told
    assert shown.value == ("at least 12.0 %" if useful == 12 else fmt.NO_VALUE) and shown.amount is None
    assert "40 % cannot be told: devices computed then, and nothing tells with how many FLOPs." in told


@pytest.mark.parametrize(("chips", "seen", "add"), [(1, 1, True), (8, 8, False), (8, 4, True)])
def test_collectives_that_were_not_compared_are_not_told_as_steps_without_a_profile(chips, seen, add):
    """The profile covers all steps, and nothing tells how long each collective waited for ranks to come."""
    dark = Account.total("unattributed", [ledgers.leaf("communication_or_wait", 40, "unattributed")])
    held = Account.total("held", [Account.total("productive", [ledgers.leaf("device_idle", 60), dark])])
    told = ledger_verdict(
        LedgerResult(
            ledger=Ledger(chips=chips, account=held),
            start_ns=None,
            end_ns=None,
            interruptions=(),
            notes=(),
            peak_known=True,
            profiled_share=1.0,
            profiled_chips=seen,
        )
    ).whole
    if seen < chips:
        assert "40 % cannot be told: profiles show 4 of 8 chips. Add those of the other hosts" in told
    else:
        assert "40 % cannot be told: collectives ran then, and nothing tells when the other ranks came to them." in told
        assert ("Add profiles of all ranks, captured at the same time." in told) is add
    assert "covers 100 %" not in told
