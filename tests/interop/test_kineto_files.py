"""Real traces of the PyTorch profiler from beside the project, against sums over their JSON, HTA and TraceLens."""

import csv
import functools
import gzip
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from analyzers.device import memory, overlap, roofline
from analyzers.device import operations as ops_question
from analyzers.ranks import collectives, stragglers
from analyzers.time import ledger, steps
from collectors.base import Lost, Rows, Source
from collectors.device import kineto
from collectors.ingest import ingest
from errors import QuestionError
from errors.options import parse_options
from runs.store import Store

SHARED = Path(__file__).parents[2].parent / "shared"
DATA, ORACLES = SHARED / "data", SHARED / "oracles"
FILES = sorted(DATA.glob("kineto/*/*.json.gz")) + sorted(DATA.glob("more/kineto/**/*.json.gz"))
FILES += sorted(DATA.glob("more/chakra_et/hta_simple_add_trace.json.gz"))
FOLDERS = {p.parent.name for p in ORACLES.glob("hta/*/temporal_breakdown.csv")}
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
QUESTIONS = (ledger, overlap, ops_question, collectives, stragglers, steps, roofline, memory)
COUNT = re.compile(r"([\d,]+) (?:arrows|names of rows|events|memory events|values among the events)\b")

pytestmark = pytest.mark.skipif(not FILES, reason="no traces of PyTorch beside the project")
each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: p.name.removesuffix(".json.gz"))


@functools.cache
def written(path):
    """The events as any reader of JSON sees them, times exact."""
    trace = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"), strict=False, parse_float=Decimal)
    return trace["traceEvents"] if isinstance(trace, dict) else trace


@functools.cache
def found(path):
    """(rows by table as Arrow tables' lists of batches, losses)."""
    rows, lost = {}, []
    for item in kineto.read(Source(path, path.name)):
        if isinstance(item, Rows):
            rows.setdefault(item.table, []).append(item.batch)
        elif isinstance(item, Lost):
            lost.append(item)
    return rows, lost


def column(rows, table, name):
    return [v for b in rows.get(table, []) for v in b.column(name).to_pylist()]


def ns(value):
    return int(Decimal(value) * 1000)


def stored(paths, folder):
    """The run of some files."""
    store = Store(folder)
    run = store.get(ingest(paths, store).run_id)
    assert run is not None
    return run


@each_file
def test_every_event_is_stored_or_told(path):
    rows, lost = found(path)
    kept = len(column(rows, "op_events", "event"))
    kept += sum(k == "bytes_in_use" for k in column(rows, "memory", "kind"))
    told = sum(int(n.replace(",", "")) for item in lost for n in COUNT.findall(item.what))
    assert kept + told == len(written(path))


@each_file
def test_kernels_are_those_of_the_file_to_the_nanosecond(path):
    rows, _ = found(path)
    mine = [e for e in written(path) if (e.get("cat") or "").lower() in ON_DEVICE and e["ph"] == "X"]
    ops = {
        op: (role, device)
        for op, role, device in zip(*(column(rows, "ops", c) for c in ("op_id", "role", "device")), strict=True)
    }
    events = [e for e in zip(*(column(rows, "op_events", c) for c in ("op_id", "start_ps", "dur_ps")), strict=True)]
    work = [(s, d, ops[o][1]) for o, s, d in events if ops[o] == ("compute", ops[o][1]) and ops[o][1] is not None]
    assert len(work) == len(mine)
    assert sum(d for _, d, _ in work) == 1000 * sum(ns(e["dur"]) for e in mine)
    assert {(d, busy) for d, busy in busy_ps(work).items()} == {
        (d, busy)
        for d, busy in busy_ps(
            [(1000 * ns(e["ts"]), 1000 * ns(e["dur"]), e["args"].get("device", e["pid"])) for e in mine]
        ).items()
    }


def busy_ps(events):
    """Time in which each device ran anything, by brute force."""
    busy: Counter = Counter()
    for device in {d for *_, d in events}:
        end = None
        for start, dur in sorted((s, d) for s, d, of in events if of == device):
            last = start if end is None else max(end, start)
            busy[device] += max(start + dur - last, 0)
            end = start + dur if end is None else max(end, start + dur)
    return busy


@each_file
def test_own_times_on_a_thread_cover_it_once(path):
    rows, _ = found(path)
    columns = ("line", "device", "role", "self_ns", "total_ns", "count")
    ops = list(zip(*(column(rows, "ops", c) for c in columns), strict=True))
    assert all(0 <= own <= total and count > 0 for *_, own, total, count in ops)
    for line in {o[0] for o in ops if o[1] is None and o[2] == "host"}:
        ids = [i for i, o in zip(column(rows, "ops", "op_id"), ops, strict=True) if o[0] == line and o[1] is None]
        spans = (
            sorted(
                (s, s + d)
                for o, s, d in zip(
                    *(column(rows, "op_events", c) for c in ("op_id", "start_ps", "dur_ps")), strict=True
                )
                if o in set(ids)
            )
            if len(ids) < 50
            else []
        )
        if spans:
            covered = busy_ps([(a, b - a, 0) for a, b in spans])[0] / 1000
            own = sum(o[3] for o in ops if o[0] == line and o[1] is None)
            assert own == pytest.approx(covered, rel=0.02, abs=5)  # events that overlap without nesting clip


@each_file
def test_every_question_has_an_answer_or_says_why_not(path, tmp_path):
    run = stored([path], tmp_path)
    for question in QUESTIONS:
        try:
            answer = question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, {}))
        except QuestionError:
            continue
        if question is stragglers:
            assert answer.verdict == "unknown" and not answer.to_dict()["ranks"]  # of one rank nobody can be accused


def test_sums_are_those_of_the_oracle():
    told = json.loads((ORACLES / "more" / "kineto.json").read_text())
    for name, of in told.items():
        rows, lost = found(DATA / "more" / name)
        kinds = dict(zip(column(rows, "ops", "op_id"), column(rows, "ops", "category"), strict=True))
        roles = dict(zip(column(rows, "ops", "op_id"), column(rows, "ops", "role"), strict=True))
        devices = column(rows, "op_events", "device")
        events = zip(column(rows, "op_events", "op_id"), devices, column(rows, "op_events", "dur_ps"), strict=True)
        work = [d for o, device, d in events if device is not None and roles[o] == "compute"]
        assert len(work) >= of["kernel_count"] and sum(work) / 1e6 >= of["kernel_sum_us"] - 1e-6
        assert sum(k == "collective" for k in kinds.values()) > 0 or of["nccl_kernels"] == 0
        graphs = [item for item in lost if "graphs" in item.reason]
        assert bool(graphs) == (of["graph_launches"] > 0)
        steps_told = {f"ProfilerStep#{n}" for n in column(rows, "steps", "step")}
        assert steps_told == set(of["profiler_steps"])


@pytest.fixture(scope="module")
def breakdown(tmp_path_factory):
    """Rows of Overlap over all operations of a folder of traces."""

    @functools.cache
    def of(name):
        run = stored([DATA / "kineto" / name], tmp_path_factory.mktemp("store"))
        options = parse_options(overlap.OPTIONS, {"window": "operations"})
        return overlap.analyze(run.tables, run.manifest.facts, options).devices

    return of


# HTA cuts fractions of a microsecond off both ends, counts waits for events as busy, and leaves out kernels of which it
# sees no launch: on these three files that is more than a thousandth.
OTHERWISE = {"hta_amd_trace", "hta_cp_event_sync_multi", "hta_trace_diff_test"}


@pytest.mark.parametrize("name", sorted(FOLDERS - OTHERWISE))
def test_temporal_breakdown_is_that_of_hta(breakdown, name):
    with (ORACLES / "hta" / name / "temporal_breakdown.csv").open() as f:
        told = list(csv.DictReader(f))
    with (ORACLES / "hta" / name / "comm_comp_overlap.csv").open() as f:
        shares = [r["comp_comm_overlap_pctg"] for r in csv.DictReader(f)]
    mine = breakdown(name)
    assert len(mine) == len(told)
    for row, hta, share in zip(mine.itertuples(), told, shares, strict=True):
        assert row.window_s * 1e6 == pytest.approx(float(hta["kernel_time(us)"]), rel=1e-3)
        assert row.compute_s * 1e6 == pytest.approx(float(hta["compute_time(us)"]), rel=1e-3)
        assert row.idle_s * 1e6 == pytest.approx(float(hta["idle_time(us)"]), rel=1e-3)
        assert (row.exposed_s + row.copies_s) * 1e6 == pytest.approx(float(hta["non_compute_time(us)"]), rel=1e-3)
        if share:
            assert 100 * row.overlap_share == pytest.approx(float(share), abs=0.01)


def test_products_are_those_of_tracelens():
    folder = next((DATA / "kineto").glob("tracelens_h100*"))
    rows, _ = found(next(folder.glob("*.json.gz")))
    columns = ("op", "shape", "count", "total_ns", "flops")
    mine: dict = {}
    for op, shape, count, total, flops in zip(*(column(rows, "ops", c) for c in columns), strict=True):
        if flops:
            mine.setdefault((op, shape), []).append((count, total, flops))
    csvs = next(folder.glob("*_csvs")) / "GEMM.csv"
    told = list(csv.DictReader(csvs.open()))
    assert told
    for row in told:
        m, n, k = (int(row[f"param: {d}"]) for d in "MNK")
        times = int(row["name_count"])
        ours = [
            (op, sum(c for c, *_ in of), of[0][2])
            for (op, shape), of in mine.items()
            if op == row["name"] and re.search(rf"\b{m},{k}\]", shape) and re.search(rf"\b{k},{n}\]", shape)
        ]
        assert [(row["name"], times, pytest.approx(float(row["GFLOPS_first"]) * 1e9, rel=1e-3))] == ours


def test_attention_is_that_of_tracelens():
    folder = next((DATA / "kineto").glob("tracelens_h100*"))
    rows, _ = found(next(folder.glob("*.json.gz")))
    (told,) = csv.DictReader((next(folder.glob("*_csvs")) / "SDPA_fwd.csv").open())
    columns = (column(rows, "ops", c) for c in ("op", "count", "flops"))
    mine = [(count, flops) for op, count, flops in zip(*columns, strict=True) if flops and "attention" in op]
    assert sum(count for count, _ in mine) == int(told["name_count"])
    assert [flops for _, flops in mine] == [pytest.approx(float(told["GFLOPS_first"]) * 1e9, rel=1e-9)] * len(mine)


def test_convolutions_of_a_resnet_are_counted_though_its_trace_tells_no_strides():
    rows, _ = found(next((DATA / "kineto" / "kineto_tb_resnet50_num_workers_0").glob("*.json*")))
    columns = (column(rows, "ops", c) for c in ("op", "count", "flops"))
    done: dict = {}
    for op, count, flops in zip(*columns, strict=True):
        done[op] = done.get(op, 0.0) + (flops or 0.0) * count
    images = 6 * 32
    first = 2 * 112 * 112 * 64 * 3 * 7 * 7  # its input needs no gradient
    forward = done["aten::cudnn_convolution"] / images
    assert forward == pytest.approx(2 * 4.087e9, rel=2e-3)  # 4.09 GMAC an image, published, its last layer left out
    assert done["aten::cudnn_convolution_backward_input"] / images == pytest.approx(forward - first, rel=1e-9)


@pytest.mark.parametrize("together", [True, False])
def test_kernels_of_a_graph_are_of_the_operators_that_its_capture_tells(tmp_path, together):
    """One launch executes 421 kernels; the trace of the capture holds as many launches, which tell the same names."""
    folder = DATA / "more" / "kineto" / "cudagraph_vllm_decode"
    files = [folder / "graph_execution.json.gz", *([folder / "capture.pt.trace.json.gz"] if together else [])]
    run = Store(tmp_path).get(ingest(files, Store(tmp_path)).run_id)
    assert run is not None
    rows = run.tables.arrow("ops").to_pylist()
    ran = {r["event"] for r in run.tables.arrow("launches").to_pylist() if r["graph"]}
    assert len(ran) == 421
    events = run.tables.arrow("op_events").to_pylist()
    replay = max(e["capture"] for e in events if e["event"] in ran and e["device"] is not None)
    scopes = {(o["capture"], o["op_id"]): o["scope"] for o in rows}
    told = [scopes[replay, e["op_id"]] for e in events if e["capture"] == replay and e["event"] in ran]
    model = Counter((scope or "").split("/")[0] for scope in told if scope or together)
    assert model == ({"GptOssForCausalLM_0": 421} if together else {})
    counted = sum((o["flops"] or 0) * o["count"] for o in rows if o["capture"] == replay)
    # Three products a layer, of 24 layers and 32 tokens; that of the logits is no part of the graph.
    sides = ((2880, 5120), (4096, 2880), (2880, 32))
    layers = sum(2 * 32 * k * n for k, n in sides) * 24
    assert counted == pytest.approx(2 * 32 * 2880 * 201_088 + (layers if together else 0))


def test_ranks_of_a_job_are_one_run_and_nobody_is_accused_without_knowing_groups(tmp_path):
    run = stored([DATA / "kineto" / "hta_sampled_2rank"], tmp_path)
    assert run.manifest.facts["chips"].value == 128
    answer = stragglers.analyze(run.tables, run.manifest.facts, parse_options(stragglers.OPTIONS, {}))
    assert answer.verdict == "unknown"
    groups = run.tables.arrow("collectives", ["group"])["group"].to_pylist()
    assert set(groups) == {"?"} and len(groups) == 20


def test_waiting_for_the_loader_is_found(tmp_path):
    run = stored([DATA / "kineto" / "kineto_tb_resnet50_num_workers_0"], tmp_path)
    answer = ledger.analyze(run.tables, run.manifest.facts, parse_options(ledger.OPTIONS, {}))
    waited, kept = answer.ledger.find("input_wait"), answer.ledger.find("productive")
    assert (
        waited and kept and 0.25 < waited.chip_seconds / kept.chip_seconds < 0.4
    )  # one process loads the images, and the device idles 37 % of a step
