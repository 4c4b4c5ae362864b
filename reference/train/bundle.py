"""Turns a finished job's folder into the bundled run, and its workers' records into the truth file."""

import gzip
import json
import os
import platform
import shutil
import time
from pathlib import Path
from statistics import median

from errors import InputError
from reference.train.facts import job_facts
from reference.train.model import parameters
from reference.train.plan import Plan

SIDECAR = "chipledger.json"


def check_replaceable(out: Path) -> None:
    """Raises InputError unless `out` is absent, empty or a former run of this program."""
    former = (out / SIDECAR).exists() and truth_path(out).exists()
    if out.exists() and not former and (not out.is_dir() or any(out.iterdir())):
        raise InputError(
            "something else is there",
            where=str(out),
            expected="no folder, or a run of this program with its truth",
            advice="Choose another --out",
        )


def truth_path(out: Path) -> Path:
    return out.parent / f"{out.name}.truth.json"


def write(plan: Plan, attempts: list[dict], job: Path, out: Path) -> Path:
    """Bundles `job` into `out` (built beside it, then moved in place); returns the truth file."""
    records = [
        [_lines(job / "truth" / f"attempt_{a}.process_{p}.jsonl") for p in range(plan.processes)]
        for a in range(len(attempts))
    ]
    truth = _truth(plan, attempts, records)
    staged = out.parent / f".{out.name}.partial"
    shutil.rmtree(staged, ignore_errors=True)
    (staged / "logs").mkdir(parents=True)
    shutil.copyfile(job / "goodput.jsonl", staged / "goodput.jsonl")
    for record in attempts:
        attempt, day = record["attempt"], time.strftime("%Y%m%d", time.gmtime(record["launched_ns"] // 10**9))
        # The lines give no year: the name does, as names of kept logs mostly do.
        shutil.copyfile(
            job / "logs" / f"attempt_{attempt}.process_0.out", staged / "logs" / f"attempt_{attempt}_{day}.log"
        )
    for trace in sorted((job / "profiles").glob("attempt_*/window_*/process_*/plugins/profile/*/*.xplane.pb")):
        folder = staged / trace.relative_to(job).parents[3]
        folder.mkdir(parents=True)
        with (folder / f"{trace.name}.gz").open("wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as packed:
            packed.write(trace.read_bytes())
    (staged / SIDECAR).write_text(json.dumps(_sidecar(plan, truth), indent=1) + "\n")
    shutil.rmtree(out, ignore_errors=True)
    staged.rename(out)
    path = truth_path(out)
    path.write_text(compact(truth))
    return path


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def compact(truth: dict) -> str:
    """JSON with a line per key or list item, down to the second level: small, and still readable in a diff."""
    parts = []
    for key, value in truth.items():
        if isinstance(value, list):
            items = ",\n  ".join(json.dumps(item) for item in value)
            parts.append(f" {json.dumps(key)}: [\n  {items}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _sidecar(plan: Plan, truth: dict) -> dict:
    told = job_facts(plan.name, plan.processes, plan.dims, plan.mesh, truth["peak"]["flops_per_s_per_chip"])
    told["model"]["parameters"] = parameters(plan.dims)
    return {
        **told,
        "note": (
            "One chip is one process on a share of a CPU. peak_flops_per_s is of one chip: float32 matmuls by all "
            f"{plan.processes} processes at the same time, the best of several sizes, mean of the processes. One "
            f"process alone reached {max(truth['peak']['alone_flops_per_s_by_process']) / 1e9:.1f} GFLOP/s, so an "
            "operation may beat the peak while other processes wait."
        ),
    }


def _truth(plan: Plan, attempts: list[dict], records: list[list[list[dict]]]) -> dict:
    """What was done, from the workers' and the launcher's own records alone."""
    spans = [_step_spans(attempt) for attempt in records]
    untouched = [_untouched_s(plan, a, workers[0]) for a, workers in enumerate(spans)]
    stories = []
    for record, workers in zip(attempts, records, strict=True):
        ready = _only(workers[0], "ready")
        stories.append(
            {
                **record,
                "cache": "warm" if record["compile_cache_entries_at_start"] else "cold",
                "job_start_ns": _only(workers[0], "job_start")["ns"],
                "job_end_ns": _only(workers[0], "job_end")["ns"] if record["finished"] else None,
                "first_step": ready["first_step"],
                "restored_step": ready["restored_step"],
                "checkpoint_steps": [e["step"] for e in workers[0] if e["event"] == "saved"],
                "last_completed_step": max(e["step"] for e in workers[0] if e["event"] == "step_end"),
                "untouched_steps": _spread(untouched[record["attempt"]]),
                "compile": [_compile(w) for w in workers],
            }
        )
    peak = _peak(records[0])
    return {
        "what": "What was truly done to the run beside this file, by the record of those who did it. "
        "All `_ns` are integer nanoseconds since 1970-01-01 UTC.",
        "plan": json.loads(plan.to_json()),
        "machine": {"cpu": cpu_model(), "cores": os.cpu_count(), "python": platform.python_version()},
        "peak": peak,
        "natural_step": _spread([d for durations in untouched for d in durations]),
        "attempts": stories,
        "injections": _injections(plan, stories, records, spans),
        "windows": [
            {"attempt": a, "process": p, "window": start["window"], "start_ns": start["ns"], "stop_ns": stop["ns"]}
            for a, workers in enumerate(records)
            for p, events in enumerate(workers)
            for start, stop in zip(
                [e for e in events if e["event"] == "profile_start"],
                [e for e in events if e["event"] == "profile_stop"],
                strict=False,  # a kill loses the last stop
            )
        ],
        "steps_columns": ["attempt", "process", "step", "start_ns", "end_ns"],
        "steps": [
            [a, p, step, start_ns, end_ns]
            for a, workers in enumerate(spans)
            for p, steps in enumerate(workers)
            for step, (start_ns, end_ns) in steps.items()
        ],
    }


def _only(events: list[dict], name: str) -> dict:
    (event,) = (e for e in events if e["event"] == name)
    return event


def _step_spans(workers: list[list[dict]]) -> list[dict[int, tuple[int, int | None]]]:
    """Per process {step: (start_ns, end_ns)}; the end of a step cut short by the kill is None."""
    result = []
    for events in workers:
        ends = {e["step"]: e["ns"] for e in events if e["event"] == "step_end"}
        result.append({e["step"]: (e["ns"], ends.get(e["step"])) for e in events if e["event"] == "step_start"})
    return result


def _compile(events: list[dict]) -> dict:
    """One process's tracing and compilation: seconds by JAX's own names, before and in its first step."""
    first = next(e["ns"] for e in events if e["event"] == "step_start")
    result: dict[str, dict] = {"before_first_step": {}, "from_first_step": {}}
    for e in events:
        part = result["before_first_step" if e["ns"] < first else "from_first_step"]
        if e["event"] == "compile":
            part[e["name"] + "_s"] = round(part.get(e["name"] + "_s", 0.0) + e["seconds"], 6)
        elif e["event"] == "compile_cache":
            part[e["name"]] = part.get(e["name"], 0) + 1
    return result


def _peak(workers: list[list[dict]]) -> dict:
    together: dict[int, list[float]] = {}
    alone = []
    for e in (e for events in workers for e in events if e["event"] == "peak_round"):
        rate = e["flops"] / ((e["end_ns"] - e["start_ns"]) / 1e9)
        (alone if e["alone"] else together.setdefault(e["size"], [])).append(rate)
    best = max(together.values(), key=sum)
    return {
        "flops_per_s_per_chip": sum(best) / len(best),
        "alone_flops_per_s_by_process": alone,
        "rounds_flops_per_s_by_process": {str(size): rates for size, rates in together.items()},
    }


def _untouched_s(plan: Plan, attempt: int, steps: dict[int, tuple[int, int | None]]) -> list[float]:
    """Seconds of one attempt's complete steps to which nothing was done, its first left out."""
    hurt = {
        step
        for harm in (*plan.stragglers, *plan.stalls)
        if harm.attempt == attempt
        for step in range(harm.first, harm.last + 1)
    }
    return [(e - s) / 1e9 for step, (s, e) in list(steps.items())[1:] if e is not None and step not in hurt]


def _spread(durations_s: list[float]) -> dict:
    if not durations_s:
        return {"steps": 0}
    middle = median(durations_s)
    return {
        "steps": len(durations_s),
        "median_s": middle,
        "mad_s": median(abs(d - middle) for d in durations_s),
        "min_s": min(durations_s),
        "max_s": max(durations_s),
    }


def _injections(plan: Plan, stories: list[dict], records: list, spans: list) -> list[dict]:
    done: list[dict] = []
    for kill in plan.kills:
        story, after = stories[kill.attempt], stories[kill.attempt + 1]
        restored = -1 if after["restored_step"] is None else after["restored_step"]
        wasted = {s: t for s, t in spans[kill.attempt][0].items() if s > restored}
        complete = {s: t for s, t in wasted.items() if t[1] is not None and t[1] <= story["kill_ns"]}
        done.append(
            {
                "what": "kill",
                "signal": "SIGKILL",
                "attempt": kill.attempt,
                "process": kill.process,
                "step": kill.step,
                "kill_ns": story["kill_ns"],
                "noticed_ns": story["noticed_ns"],
                "all_ended_ns": story["ended_ns"],
                "relaunched_ns": after["launched_ns"],
                "next_job_start_ns": after["job_start_ns"],
                "downtime_s": (after["job_start_ns"] - story["kill_ns"]) / 1e9,
                "restored_step": after["restored_step"],
                "next_first_step": after["first_step"],
                "wasted_steps": sorted(complete),
                "wasted_steps_s": sum(e - s for s, e in complete.values()) / 1e9,
                "wasted_span_s": (story["kill_ns"] - min(s for s, _ in wasted.values())) / 1e9,
            }
        )
    for straggler in plan.stragglers:
        done.append(
            {
                "what": "straggler",
                "attempt": straggler.attempt,
                "process": straggler.process,
                **_total(records[straggler.attempt][straggler.process], "straggle"),
            }
        )
    for stall in plan.stalls:
        for process, events in enumerate(records[stall.attempt]):
            done.append(
                {"what": "input_stall", "attempt": stall.attempt, "process": process, **_total(events, "stall")}
            )
    for story in stories:
        if story["compile_cache_deleted_ns"]:
            done.append(
                {
                    "what": "compile_cache_deleted",
                    "attempt": story["attempt"],
                    "deleted_ns": story["compile_cache_deleted_ns"],
                }
            )
    return done


def _total(events: list[dict], name: str) -> dict:
    hits = [e for e in events if e["event"] == name]
    return {
        "first_step": hits[0]["step"],
        "last_step": hits[-1]["step"],
        "start_ns": hits[0]["start_ns"],
        "end_ns": hits[-1]["end_ns"],
        "total_s": sum(e["end_ns"] - e["start_ns"] for e in hits) / 1e9,
        "columns": ["step", "start_ns", "end_ns"],
        "rows": [[e["step"], e["start_ns"], e["end_ns"]] for e in hits],
    }


def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def summary(truth: dict) -> str:
    """The take in a few lines, to judge whether the machine was quiet enough to keep it."""
    lines = [f"peak {truth['peak']['flops_per_s_per_chip'] / 1e9:.1f} GFLOP/s per process"]
    for a in truth["attempts"]:
        compiled = a["compile"][0]["from_first_step"].get("backend_compile_duration_s", 0.0)
        line = (
            f"attempt {a['attempt']}: steps {a['first_step']} to {a['last_completed_step']}, cache {a['cache']}, "
            f"compiled in {compiled:.2f} s"
        )
        if (calm := a["untouched_steps"])["steps"]:
            line += (
                f"; {calm['steps']} untouched steps, median {calm['median_s']:.3f} s, MAD {calm['mad_s']:.4f} s, "
                f"{calm['min_s']:.3f} to {calm['max_s']:.3f} s"
            )
        lines.append(line)
    for i in truth["injections"]:
        if i["what"] == "kill":
            lines.append(
                f"kill of process {i['process']} at step {i['step']}: {i['downtime_s']:.1f} s down, "
                f"{len(i['wasted_steps'])} steps ({i['wasted_steps_s']:.2f} s) lost"
            )
        elif "total_s" in i:
            lines.append(
                f"{i['what']} of process {i['process']}, steps {i['first_step']} to {i['last_step']}: "
                f"{i['total_s']:.3f} s"
            )
    return "\n".join(lines)
