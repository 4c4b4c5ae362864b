"""Published traces of traffic, where they lie beside the project: rows, first lines, and how they come."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analyzers.serving import traffic as workload
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

DATA = Path(__file__).parents[3] / "shared" / "data" / "requests"
AZURE = {  # rows, CV of the gaps as published, shape
    "code": (8_819, 13.15, "bursty"),
    "conv": (19_366, 1.09, "drifting"),
}
MOONCAKE = DATA / "mooncake" / "synthetic_trace.jsonl"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="request traces are not beside the project")


def stored(tmp_path, path):
    store = Store(tmp_path / "store")
    done = ingest([path], store)
    assert not done.warnings
    return store.get(done.run_id)


def traffic(run):
    return workload.analyze(run.tables, run.manifest.facts, parse_options(workload.OPTIONS, {}))


@needs_data
@pytest.mark.parametrize("name", AZURE)
def test_azure_2023(tmp_path, name):
    rows, cv, shape = AZURE[name]
    path = DATA / "azure2023" / f"AzureLLMInferenceTrace_{name}.csv"
    run = stored(tmp_path, path)
    assert run.manifest.kind == "serving" and run.manifest.tables == {"requests": rows}
    with path.open() as f:
        lines = list(csv.DictReader(f))
    table = run.tables.arrow("requests").to_pydict()
    assert table["prompt_tokens"] == [int(line["ContextTokens"]) for line in lines]
    assert table["output_tokens"] == [int(line["GeneratedTokens"]) for line in lines]
    times = pd.to_datetime([line["TIMESTAMP"] for line in lines]).as_unit("ns").asi8
    assert table["arrival_ns"] == times.tolist()
    found = traffic(run)
    assert round(found.gaps.cv, 2) == cv and found.shape == shape
    between = np.diff(times) / 1e9
    assert found.gaps.cv == pytest.approx(between.std(ddof=0) / between.mean(), rel=1e-12)
    assert found.prompt_tokens["p99"] == pytest.approx(np.percentile(table["prompt_tokens"], 99))
    per_10s = np.bincount(((times - times[0]) // 10_000_000_000).astype(int))[:-1]
    ten = found.window(10.0)
    assert ten.peak_per_s * 10 == per_10s.max()
    assert ten.dispersion == pytest.approx(per_10s.var() / per_10s.mean())


@needs_data
def test_mooncake_synthetic(tmp_path):
    run = stored(tmp_path, MOONCAKE)
    lines = [json.loads(line) for line in MOONCAKE.read_text().splitlines()]
    assert run.manifest.tables == {"requests": len(lines)} == {"requests": 3_993}
    assert run.manifest.fact("block_tokens") == 512
    table = run.tables.arrow("requests").to_pydict()
    assert table["hash_ids"] == [line["hash_ids"] for line in lines]
    assert table["prompt_tokens"] == [line["input_length"] for line in lines]
    assert table["arrival_ns"] == [line["timestamp"] * 1_000_000 for line in lines]
    assert table["status"] == [None] * len(lines)
    found = traffic(run)
    assert found.shape == "poisson" and not found.served
    total = sum(line["input_length"] for line in lines), sum(line["output_length"] for line in lines)
    assert found.prompt_share == total[0] / sum(total)
