"""The bundled simulated run: small, marked, made by its program, and understood by the analyses it is there to show."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

from app.follow.alerts.rules import rule
from app.questions.asking import ask
from app.questions.checkpoints import CHECKPOINTS
from app.questions.goodput import GOODPUT
from app.questions.interruptions import INTERRUPTIONS
from app.questions.ledger import LEDGER
from app.questions.stragglers import STRAGGLERS
from catalog.causes import CAUSES as KNOWN
from collectors.ingest import ingest
from reference.fleet import CAUSES, CHIPS, FOLDER, STRAGGLER, TRUTH, plans
from runs.registry import Registry
from runs.store import Store
from simulators.fleet import host_name, simulate


@pytest.fixture(scope="module")
def truth():
    return json.loads(TRUTH.read_text())


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("fleet"))
    done = ingest([FOLDER], store)
    return store.find(done.run_id), Registry(store.root / "registry.db"), done


def test_it_is_small_and_marked(stored):
    run, _, done = stored
    assert sum(f.stat().st_size for f in FOLDER.iterdir()) < 4_000_000
    assert run.manifest.simulated and run.manifest.kind == "simulated" and done.warnings == []


def test_its_program_makes_it():
    made = simulate(plans()[0]).tables
    for table in ("steps", "lifecycle", "evidence"):
        kept = pq.read_table(FOLDER / f"{table}.parquet")
        for column in ("start_ns", "end_ns", "order", "step", "ts_ns", "cause", "text"):
            if column in kept.column_names:
                assert list(made[table][column]) == kept.column(column).to_pylist(), (table, column)


def test_the_truth_is_what_was_published(truth):
    causes = Counter(t["cause"] for t in truth["interruptions"])
    assert causes == CAUSES and causes.total() == 466
    assert sum(not t["planned"] for t in truth["interruptions"]) + 32 == 419  # maintenance that came unannounced


def test_interruptions_are_found_with_their_causes(stored, truth):
    run, registry, _ = stored
    told = ask(INTERRUPTIONS, run, {}, registry).to_dict()
    rows = told["interruptions"]
    assert told["count"] == len(rows) == 466
    named = [
        (r, t)
        for r, t in zip(rows, truth["interruptions"], strict=True)
        if r["cause"] != "unknown" and not KNOWN[r["cause"]].symptom
    ]
    assert len(named) > 390
    assert all(r["cause"] == t["cause"] for r, t in named)
    assert all(r["host"] == t["host"] for r, t in named)
    lemons = {h["host"] for h in told["by_host"] if h["lemon"]}
    assert lemons == {host_name(h) for h in plans()[0].lemons}
    mean = told["mttf_s"]
    assert mean["low"] < 54 * 86_400 / 466 < mean["high"]
    assert mean["mean"] == pytest.approx(54 * 86_400 / 466, rel=1e-6)


def test_goodput_closes_and_is_the_ledgers(stored):
    run, registry, _ = stored
    exact = ask(GOODPUT, run, {}, registry).to_dict()
    lost = sum(v if isinstance(v, int | float) else sum(v.values()) for v in exact["badput_s"].values())
    assert exact["total_s"] == pytest.approx(54 * 86_400, abs=1e-6)
    assert exact["productive_s"] + lost == pytest.approx(exact["total_s"], rel=1e-9)
    assert 0.9 < exact["goodput_share"] < 0.91, "over nine tenths, as is published of this job"
    ledger = ask(LEDGER, run, {}, registry).ledger
    assert ledger.find("productive").chip_seconds == pytest.approx(exact["productive_s"] * CHIPS, rel=1e-9)
    assert exact["disruptions"] == 466


def test_the_slow_rank_is_named(stored):
    run, registry, _ = stored
    told = ask(STRAGGLERS, run, {}, registry).to_dict()
    assert told["verdict"] == "persistent"
    assert [r["rank"] for r in told["ranks"] if r["confidence"] > 0.9] == [STRAGGLER]
    alert = rule("straggler").check(run, registry, 0.6, False)
    assert alert.open and alert.value == pytest.approx(23 / 24) and f"rank {STRAGGLER} is last" in alert.sentence
    near = rule("straggler").check(run, registry, 0.99, False)
    assert not near.open and not near.over, "96 % of the steps is not clearly below 99 %"


def test_more_frequent_saves_would_pay(stored):
    run, registry, _ = stored
    told = ask(CHECKPOINTS, run, {}, registry).to_dict()
    assert told["interval_s"] == pytest.approx(150 * plans()[0].step_s, rel=0.02)
    assert told["save"]["median_s"] == pytest.approx(plans()[0].save_s, rel=0.05)
