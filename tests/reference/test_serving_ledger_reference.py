"""The ledger of the bundled serving run against the record of those who made it."""

import json
from pathlib import Path

import pytest

from analyzers.time import ledger
from errors.options import parse_options
from tests.bundled import bundled

RUNS = Path(__file__).parents[2] / "reference" / "runs"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, "serving")


@pytest.fixture(scope="module")
def truth():
    return json.loads((RUNS / "serving.truth.json").read_text())


def accounts(run, **options):
    return ledger.analyze(run.tables, run.manifest.facts, parse_options(ledger.OPTIONS, options)).ledger


def test_it_is_a_serving_run(run):
    assert run.manifest.kind == "serving" and not run.manifest.simulated


def test_time_by_use_is_that_of_the_record(run, truth):
    got, told = accounts(run), truth["chip_seconds"]
    assert got.chip_seconds == pytest.approx(told["held"], rel=0.01)
    assert got.amount("program_startup") == pytest.approx(told["start_up"], rel=0.01)
    assert got.amount("no_requests") == pytest.approx(told["idle"], rel=0.03)
    device = got.amount("served") + got.amount("lost_work")
    assert device == pytest.approx(told["device"], rel=0.01)
    host = told["host_in_iterations"] + told["between_iterations"]
    assert got.amount("scheduling") == pytest.approx(host, abs=0.02 * told["held"])


def test_what_was_lost_is_of_the_tokens_that_were_lost(run, truth):
    got, total = accounts(run), truth["totals"]
    useful = total["prefill_tokens"] - total["recomputed_tokens"] + total["decode_tokens"]
    served = got.amount("served") / useful  # chip-seconds of a token that an answer needed
    lost = {
        "bucket_padding": "padded_tokens",
        "rejected_speculation": "rejected_tokens",
        "preemption_recompute": "recomputed_tokens",
    }
    for account, tokens in ((account, total[name]) for account, name in lost.items()):
        each = got.amount(account) / tokens
        assert 0 < each < served, "one more token costs less than a token and its share of the weights"


def test_strict_objectives_move_time_from_served_to_late(run):
    free, strict = accounts(run), accounts(run, ttft_s=1.0)
    assert strict.amount("missed_objective") > 0 == free.amount("missed_objective")
    assert strict.chip_seconds == pytest.approx(free.chip_seconds)
    lost = strict.amount("served") + strict.amount("missed_objective")
    assert lost == pytest.approx(free.amount("served"))
