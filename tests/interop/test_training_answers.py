"""What is told of real training logs, where they lie beside the project."""

import gzip
from pathlib import Path

import pytest

from analyzers.lost import goodput, interruptions
from analyzers.time import ledger
from app.questions.goodput.words import verdict as goodput_verdict
from app.questions.ledger.words import verdict as ledger_verdict
from collectors.ingest import ingest
from runs.store import Store

SHARED = Path(__file__).parents[2].parent / "shared"
MLPERF = sorted(
    [
        *(SHARED / "data" / "logs").glob("mlperf_*/**/result_*.txt"),
        *(SHARED / "data" / "more" / "corrections" / "mlperf").glob("*.txt.gz"),
    ]
)
MEGATRON = sorted((SHARED / "data" / "logs" / "bigscience").rglob("*.out"))


def stored(tmp_path, *paths):
    store = Store(tmp_path / "store")
    run = store.get(ingest(list(paths), store).run_id)
    return run.tables, run.manifest.facts


@pytest.mark.skipif(not MLPERF, reason="no MLPerf logs beside the project")
@pytest.mark.parametrize("path", MLPERF, ids=lambda p: f"{p.parent.parent.name}-{p.name}")
def test_goodput_of_an_mlperf_log_is_told_where_its_steps_are_and_never_0(path, tmp_path):
    tables, facts = stored(tmp_path, path)
    told = goodput.analyze(tables, facts, {"rules": "exact"})
    book = ledger.analyze(tables, facts, {})
    if tables.rows("steps"):
        assert told.goodput_share > 0.1 and not told.disruptions
    else:
        assert told.goodput_share is None and "cannot be told: no step was read" in goodput_verdict(told)
        assert "cannot be told" in ledger_verdict(book) and "None of" not in ledger_verdict(book)
    assert told.productive_s + told.badput_total_s == pytest.approx(told.total_s, rel=1e-9)


@pytest.mark.skipif(not MEGATRON, reason="no Megatron logs beside the project")
@pytest.mark.parametrize("path", MEGATRON, ids=lambda p: p.name)
def test_a_second_rank_of_a_real_log_changes_nothing(path, tmp_path):
    """The same log once more as another rank would write it: a moment later, and not byte for byte."""
    text = path.read_bytes()
    other = tmp_path / f"rank1-{path.name}.gz"
    other.write_bytes(gzip.compress(text + b"\n", mtime=0))
    alone, both = (stored(tmp_path / name, *paths) for name, paths in (("a", (path,)), ("b", (path, other))))
    first, second = (ledger.analyze(*told, {}) for told in (alone, both))
    assert second.ledger.chip_seconds == pytest.approx(first.ledger.chip_seconds, rel=0.01)
    assert second.ledger.amount("productive") == pytest.approx(first.ledger.amount("productive"), rel=0.01)
    counts = [interruptions.analyze(*told, {}).count for told in (alone, both)]
    assert counts[0] == counts[1]
