"""One or more small files of every format that is read, as (name, content): made here, or by the formats' own tests."""

import gzip
import json
from pathlib import Path

from collectors.device import compiled, kineto, nsys, xplane
from collectors.own import tables
from collectors.serving import aiperf, inferencex, llmperf
from collectors.training import goodput_log, maxtext, pipeline_trace
from tests.app.made_runs import goodput_log as a_goodput_log
from tests.collectors import (
    compiled_files,
    nsys_exports,
    test_aiperf,
    test_inferencex,
    test_llmperf,
    test_pipeline_trace,
    test_tables,
)
from tests.collectors.ingesting import LOG
from tests.fuzz import (
    test_kineto_fuzz,
    test_load_tools_fuzz,
    test_log_readers,
    test_metric_readers,
    test_serving_text_fuzz,
    test_text_readers,
    test_xplane_fuzz,
)

_FUZZED = (test_text_readers, test_log_readers, test_load_tools_fuzz, test_serving_text_fuzz, test_metric_readers)
FAILED = [test_aiperf.record(error={"type": "Timeout", "message": "no answer"}, metrics={}) for _ in range(3)]
MODEL_OF_ONES_OWN = LOG.replace("llama2-7b", "our-own-13b")
REPEATED = "".join(f"{line}\n{line}\n" for line in LOG.splitlines())  # as where two handlers print each line
BESIDES = {
    aiperf: [("failed/profile_export.jsonl", "".join(json.dumps(r) + "\n" for r in FAILED).encode())],
    inferencex: [("agg_one.json", json.dumps(test_inferencex.ONE).encode())],
    llmperf: [("all_failed.json", json.dumps([test_llmperf.response(error_code=1)] * 3).encode())],
    goodput_log: [("goodput.jsonl", a_goodput_log())],
    maxtext: [
        ("maxtext.log", LOG.encode()),
        ("own-model.log", MODEL_OF_ONES_OWN.encode()),
        ("repeated.log", REPEATED.encode()),
        ("zipped.log.gz", gzip.compress(LOG.encode())),
    ],
    compiled: [
        ("fits.compiled.json", compiled_files.text()),
        ("program.hlo.pb", compiled_files.program()),
        ("large.compiled.json", compiled_files.text(outcome="out_of_memory", programs=[])),
    ],
    pipeline_trace: [("trace.csv", test_pipeline_trace.CSV.encode())],
    tables: [("steps.parquet", test_tables.parquet(test_tables.STEPS))],
    nsys: [("report1.sqlite", nsys_exports.as_bytes())],
    kineto: [("rank0.pt.trace.json", test_kineto_fuzz.original())],
    xplane: [("small.xplane.pb", test_xplane_fuzz.trace())],
}


def small_files() -> dict[str, list[tuple[str, bytes]]]:
    """By name of the collector that reads them."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for module in _FUZZED:
        for collector, contents in module.VALID.items():
            named = [(f"{n}-{module.NAME}", content) for n, content in enumerate(contents)]
            found.setdefault(collector.NAME, []).extend(named)
    for collector, files in BESIDES.items():
        found.setdefault(collector.NAME, []).extend(files)
    return found


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
