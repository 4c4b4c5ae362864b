"""KV cache, speculation and prefix cache of the bundled serving run, against what its engine counted itself."""

import json
from pathlib import Path

import pytest

from analyzers.serving import kv_cache as kv
from analyzers.serving import prefix_cache as prefix
from analyzers.serving import speculation
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

RUNS = Path(__file__).parents[2] / "reference" / "runs"
TRUTH = json.loads((RUNS / "serving.truth.json").read_text())
FILES = ("chipledger.json", "iterations.parquet", "metrics.prom.gz", "requests.parquet")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All but its profile, which these questions do not need."""
    folder = tmp_path_factory.mktemp("serving")
    for name in FILES:
        (folder / "in").mkdir(exist_ok=True)
        (folder / "in" / name).write_bytes((RUNS / "serving" / name).read_bytes())
    store = Store(folder / "store")
    return store.find(ingest([folder / "in"], store, name="serving").run_id)


def asked(run, question, **options):
    return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))


def test_acceptance_by_position_is_the_engine_s(run):
    result = asked(run, speculation)
    truth = TRUTH["speculation"]
    assert result.observed.drafts == truth["drafts"]
    assert list(result.positions["acceptance"]) == pytest.approx(
        [n / truth["drafts"] for n in truth["accepted_at_position"]]
    )
    assert result.observed.rate == pytest.approx(TRUTH["totals"]["accepted_tokens"] / TRUTH["totals"]["drafted_tokens"])
    assert len(result.passes) and 1 < result.measured_speedup < result.length


def test_the_prefix_cache_found_what_the_engine_counted(run):
    result = asked(run, prefix)
    totals = TRUTH["totals"]
    assert result.measured.hit_rate == pytest.approx(totals["cached_tokens"] / totals["prompt_tokens_looked_up"])
    assert result.block_tokens == TRUTH["plan"]["engine"]["page"]
    assert result.size_blocks == TRUTH["plan"]["engine"]["pages"]
    assert result.requests == totals["requests"]
    assert result.hit_rate == pytest.approx(result.measured.hit_rate, abs=0.05)  # blocks replayed by tokens counted
    assert {t for t in result.tenants["tenant"]} == {t["name"] for t in TRUTH["plan"]["tenants"]}
    rates = result.tenants.set_index("tenant")["infinite_hit_rate"]
    assert rates["batch"] < 0.05 < rates.drop("batch").min()  # it alone shares no prefix


def test_the_cache_was_full_and_requests_were_put_back(run):
    result = asked(run, kv)
    dims = TRUTH["plan"]["dims"]
    elements = 2 * dims["layers"] * dims["kv_heads"] * dims["head_dim"]
    assert asked(run, kv, kv_precision="bf16").kv_bytes_per_token == 2 * elements
    assert result.measured.preemptions == TRUTH["totals"]["preemptions"]
    assert result.measured.peak_usage > 0.95 and result.room is None
    engine = TRUTH["plan"]["engine"]
    assert result.measured.engine_tokens == engine["page"] * engine["pages"]
    assert 0 < result.page_rounding < 0.5
