"""Turns a finished job's folder into the two bundled runs: the engine's own records, and the client's view."""

import gzip
import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from errors import InputError
from reference.serve import client
from reference.serve.model import parameters
from reference.serve.plan import Plan
from reference.serve.truth import truth_of
from reference.train.bundle import SIDECAR, compact, truth_path
from runs.schema import SCHEMAS


def client_folder(out: Path) -> Path:
    return out.with_name(f"{out.name}-client")


def check_replaceable(out: Path) -> None:
    """Raises InputError unless `out` and the client's folder are absent, empty or former runs of this program."""
    for folder in (out, client_folder(out)):
        former = (folder / SIDECAR).exists() and truth_path(out).exists()
        if folder.exists() and not former and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(
                "something else is there",
                where=str(folder),
                expected="no folder, or a run of this program with its truth",
                advice="Choose another --out",
            )


def write(plan: Plan, job: Path, answers: list[client.Answer], span_s: tuple[float, float], out: Path) -> Path:
    """Bundles `job` into `out` and the client's folder (built beside, then moved in place); returns the truth file.

    `span_s`: when the plan began and ended, seconds since the epoch.
    """
    requests, iterations = (json.loads((job / f"{name}.json").read_text()) for name in ("requests", "iterations"))
    said = json.loads((job / "events.json").read_text())
    truth = truth_of(plan, said, requests, iterations, answers, span_s)
    staged = out.parent / f".{out.name}.partial"
    shutil.rmtree(staged, ignore_errors=True)
    engine, outside = staged / "engine", staged / "client"
    for folder in (engine / "profile", outside):
        folder.mkdir(parents=True)
    for name, rows in (("requests", requests), ("iterations", iterations), ("lifecycle", _lifecycle(said))):
        _parquet(engine / f"{name}.parquet", name, rows)
    _pack(job / "metrics.prom", engine / "metrics.prom.gz")
    for trace in sorted((job / "profile").glob("plugins/profile/*/*.xplane.pb")):
        _pack(trace, engine / "profile" / f"{trace.name}.gz")
    day = time.strftime("%Y%m%d", time.gmtime(said["events"][0]["ns"] // 10**9))
    shutil.copyfile(job / "engine.log", outside / f"engine_{day}.log")  # its lines give no year: the name does
    (job / "bench.json").write_text(json.dumps(client.summary(plan, answers)))
    _pack(job / "bench.json", outside / "bench.json.gz")
    for folder, name in ((engine, plan.name), (outside, f"{plan.name}-client")):
        (folder / SIDECAR).write_text(json.dumps(_sidecar(plan, name, truth), indent=1) + "\n")
    for folder, place in ((engine, out), (outside, client_folder(out))):
        shutil.rmtree(place, ignore_errors=True)
        folder.rename(place)
    staged.rmdir()
    path = truth_path(out)
    path.write_text(compact(truth))
    return path


def _lifecycle(said: dict) -> list[dict]:
    """The engine's life: all of it, and what came before it could serve."""
    events = {e["event"]: e for e in said["events"]}
    start, programs = events["start"], events["warm"]["programs"]
    loaded_ns, ready_ns = programs[0]["start_ns"], programs[-1]["end_ns"]
    spans = (
        ("job", start["started_ns"], events["stop"]["ns"], None),
        ("accelerator_initialization", start["started_ns"], start["loading_ns"], "measuring the peak"),
        ("training_preparation", start["loading_ns"], loaded_ns, "loading weights"),
        ("training_preparation", loaded_ns, ready_ns, f"compiling {len(programs)} programs"),
    )
    return [dict(zip(("kind", "start_ns", "end_ns", "detail"), span, strict=True)) for span in spans]


def _parquet(path: Path, table: str, rows: list[dict]) -> None:
    """Rows of a table of this project; columns that no row knows are left out."""
    names = [n for n in SCHEMAS[table].arrow.names if n in rows[0]]
    fields = [SCHEMAS[table].arrow.field(n) for n in names]
    arrays = [pa.array([r[f.name] for r in rows], f.type) for f in fields]
    whole = [f.name for f in fields if f.type == pa.int64()]
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=pa.schema(fields)),
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=[f.name for f in fields if pa.types.is_dictionary(f.type)],
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    )


def _pack(source: Path, target: Path) -> None:
    with target.open("wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as packed:
        packed.write(source.read_bytes())


def _sidecar(plan: Plan, name: str, truth: dict) -> dict:
    dims = plan.dims
    return {
        "name": name,
        "kind": "serving",
        "chip": "cpu-process",
        "chips": 1,
        "model": {
            "layers": dims.layers,
            "d_model": dims.d_model,
            "heads": dims.heads,
            "kv_heads": dims.kv_heads,
            "head_dim": dims.head_dim,
            "d_ff": dims.d_ff,
            "vocab": dims.vocab,
            "gated": True,
            "tied_embeddings": False,
            "parameters": parameters(dims),
        },
        "precision": "float32",
        "peak_flops_per_s": truth["peak"]["flops_per_s"],
        "peak_basis": "measured",
        "simulated": False,
        "usd_per_chip_hour": None,
        "note": (
            "One chip is one process that computes on one core of a CPU. peak_flops_per_s: float32 matmuls by that "
            "process, the best of several sizes, before any program of the engine was compiled. A draft model of one "
            f"layer proposes {plan.engine.row - 1} tokens at a time; its keys and values lie in the same pages."
        ),
    }


def describe(path: Path) -> str:
    """The take in a few lines, to judge whether the machine was quiet enough to keep it."""
    truth = json.loads(path.read_text())
    totals, chip = truth["totals"], truth["chip_seconds"]
    lines = [
        f"peak {truth['peak']['flops_per_s'] / 1e9:.1f} GFLOP/s; engine started in {chip['start_up']:.1f} s",
        f"{totals['completed']} completed, {totals['aborted']} aborted, {totals['failed']} failed; "
        f"{totals['iterations']} iterations, {totals['preemptions']} preemptions",
        f"prefix hits {totals['cached_tokens']} of {totals['prompt_tokens_looked_up']} tokens; accepted by position "
        + ", ".join(f"{n / truth['speculation']['drafts']:.2f}" for n in truth["speculation"]["accepted_at_position"]),
        f"sent late: median {truth['lateness_s']['median']:.4f} s, most {truth['lateness_s']['max']:.3f} s",
    ]
    for p in truth["phases"]:
        lines.append(
            f"{p['phase']}: {p['requests']} requests, {p['pages_allowed']} pages, {p['preemptions']} preemptions, "
            f"most waiting {p['most_waiting']}, TTFT median {p['ttft_median_s']:.3f} s, most {p['ttft_max_s']:.2f} s, "
            f"decode iteration median {p['decode_iteration_median_s'] * 1e3:.1f} ms, "
            f"MAD {p['decode_iteration_mad_s'] * 1e3:.1f} ms"
        )
    return "\n".join(lines)
