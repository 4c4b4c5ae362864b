"""Our ledger against numbers computed independently: it agrees where that library is right, and closes where not."""

import json
from pathlib import Path

import pytest

from analyzers.time import ledger
from collectors.ingest import ingest
from runs.store import Store

ORACLES = Path(__file__).parents[2].parent / "shared" / "oracles" / "goodput"
SCENARIOS = sorted(p.parent.name for p in ORACLES.glob("*/entries.jsonl"))
pytestmark = pytest.mark.skipif(not SCENARIOS, reason="no goodput oracles beside the project")

AGREE = {  # account: the library's bucket
    "accelerator_initialization": "TPU_INITIALIZATION",
    "training_preparation": "TRAINING_PREP",
    "infrastructure_recovery": "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
    "checkpoint_save": "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
    "elastic_slice_down": "ELASTIC_SLICE_DOWN",
    "elastic_scale_up": "ELASTIC_SCALE_UP",
    "elastic_reinitialization": "ELASTIC_REINITIALIZATION",
}
# where the library is wrong or guesses, and what is right instead (see its own entries)
WRONG_THERE = {
    ("crash_in_init", "training_preparation"),  # it never ended: the library drops it, so do we: no next event
    ("restart_without_repeat", "infrastructure_recovery"),  # 200 s of downtime that the library calls productive
    ("data_loading_badput", "infrastructure_recovery"),  # 1 s less: data was still fetched after the last step start
}


def book(scenario, tmp_path):
    store = Store(tmp_path)
    done = ingest([ORACLES / scenario / "entries.jsonl"], store, chips=1)
    run = store.get(done.run_id)
    result = ledger.analyze(run.tables, run.manifest.facts, {})
    expected = json.loads((ORACLES / scenario / "expected.json").read_text())["expected"]["cumulative"]
    return result, expected


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_closes_and_agrees_where_the_library_is_right(scenario, tmp_path):
    result, expected = book(scenario, tmp_path)
    accounts = result.ledger
    assert sum(c.chip_seconds for c in accounts.account.children) == pytest.approx(accounts.chip_seconds, rel=1e-9)
    for account, bucket in AGREE.items():
        if (scenario, account) not in WRONG_THERE:
            theirs = expected["unproductive_s"].get(bucket, 0.0)
            assert accounts.amount(account) == pytest.approx(theirs, abs=1e-3), account


@pytest.mark.parametrize("scenario", ["clean_run", "restart_wasted_steps", "exclusions"])
def test_productive_time_agrees_where_nothing_is_hidden(scenario, tmp_path):
    result, expected = book(scenario, tmp_path)
    assert result.ledger.amount("productive") == pytest.approx(expected["productive_s"]["TOTAL"], abs=1e-3)


def test_downtime_before_a_restart_that_repeats_no_step_is_found(tmp_path):
    result, expected = book("restart_without_repeat", tmp_path)
    assert result.ledger.amount("infrastructure_recovery") == pytest.approx(200, abs=1e-3)
    assert result.ledger.amount("productive") == pytest.approx(60, abs=1e-3)
    assert expected["productive_s"]["TOTAL"] == pytest.approx(343)  # what the library makes of the same entries
