"""One or more small files of every format that is read, as (name, content): made here, or by the formats' own tests."""

import gzip
import json
from pathlib import Path

from collectors.device import compiled, flight_recorder, kineto, memory_snapshot, nccl_inspector, nsys, viewer, xplane
from collectors.device.rocm import rocpd, rocprofv3, rpd
from collectors.own import tables
from collectors.serving import aiperf, inferencex, llmperf
from collectors.training import goodput_log, maxtext, pipeline_trace
from tests.app.made_runs import goodput_log as a_goodput_log
from tests.collectors import (
    compiled_files,
    flight_dumps,
    nsys_exports,
    rocm_files,
    rocprofv3_files,
    rpd_files,
    snapshots,
    test_aiperf,
    test_flight_recorder,
    test_inferencex,
    test_llmperf,
    test_nccl_inspector,
    test_pipeline_trace,
    test_tables,
    test_viewer,
    viewer_files,
)
from tests.collectors.ingesting import LOG
from tests.fuzz import (
    test_kept_metrics,
    test_kineto_fuzz,
    test_load_tools_fuzz,
    test_log_readers,
    test_metric_readers,
    test_serving_text_fuzz,
    test_tensorboard_fuzz,
    test_text_readers,
    test_xplane_fuzz,
)

_FUZZED = (
    test_text_readers,
    test_log_readers,
    test_tensorboard_fuzz,
    test_load_tools_fuzz,
    test_serving_text_fuzz,
    test_metric_readers,
    test_kept_metrics,
)
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
    flight_recorder: [
        ("nccl_trace_rank_2", flight_dumps.pickled(test_flight_recorder.WHOLE)),
        ("nccl_trace_rank_3.json", flight_dumps.as_json(test_flight_recorder.WHOLE)),
        ("nccl_trace_rank_1", b""),
    ],
    nccl_inspector: [
        ("node7-pid1.log", test_nccl_inspector.lines(test_nccl_inspector.record()).encode()),
        ("traced-pid1.log", test_nccl_inspector.lines(test_nccl_inspector.record(test_nccl_inspector.TRACED)).encode()),
    ],
    nsys: [("report1.sqlite", nsys_exports.as_bytes())],
    rocpd: [("908_results.db", rocm_files.rocpd_bytes()), ("other.db", rocm_files.rocpd_bytes(shared=True))],
    rpd: [
        ("trace.rpd", rpd_files.rpd_bytes()),
        ("trace.json", rpd_files.chrome(rpd_files.whole_rpd()).encode()),
    ],
    rocprofv3: [("908_results.json", rocprofv3_files.whole_tool().text().encode())],
    memory_snapshot: [("rank0.pickle", snapshots.small()), ("rank1.pickle.gz", gzip.compress(snapshots.small()))],
    kineto: [("rank0.pt.trace.json", test_kineto_fuzz.original())],
    viewer: [("small.trace.json.gz", viewer_files.viewer_file(test_viewer.made()))],
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
