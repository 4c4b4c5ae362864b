"""Records of `sacct --json`, `{"jobs": [...]}`: each job, and its steps behind it (tables: `slurm_records`).

Times are seconds since 1970, bare or as {"set", "infinite", "number"}.
"""

from collections.abc import Iterator
from typing import Any

from collectors.base import Source
from collectors.reading.documents import document, part, text
from collectors.reading.textlog import NS_PER_S, Tally, whole
from collectors.training.slurm_records import EXPECTED, MOST_TEXT, Record, gpus_of, nodes_of, put_right, state_of


def of_json(source: Source, tally: Tally) -> Iterator[Record]:
    """The records of `sacct --json`: jobs, and their steps behind each."""
    found = part(document(source, EXPECTED, hook=_lighter), "jobs")
    for job in found if isinstance(found, list) else []:
        if not isinstance(job, dict) or (number := _number(job.get("job_id"))) is None:
            tally.add("jobs", "they have no number")
            continue
        yield (mine := _of_job(job, number, tally))
        steps = job.get("steps")
        for step in steps if isinstance(steps, list) else []:
            yield _of_step(step, mine)


def _lighter(found: dict[str, Any]) -> dict[str, Any]:
    """An object without what no record needs, which is most of it."""
    for name in (
        "environment",
        "script",
        "association",
        "container",
        "stdout_expanded",
        "stderr_expanded",
        "statistics",
    ):
        found.pop(name, None)
    return found


def _of_job(job: dict[str, Any], number: int, tally: Tally) -> Record:
    array, task = _number(part(job, "array", "job_id")), _number(part(job, "array", "task_id"))
    waiting = text(part(job, "array", "task"))  # of an array: tasks that have not begun
    het, place = _number(part(job, "het", "job_id")), _number(part(job, "het", "job_offset"))
    name = str(het or number)
    if array and (task is not None or waiting):
        name = f"{array}_{task if task is not None else f'[{waiting}]'}"
    times = {key: _number(part(job, "time", key)) for key in ("submission", "eligible", "start", "end")}
    at = {key: s * NS_PER_S for key, s in times.items() if s and s < 1 << 33}
    counts: dict[str, int | None] = {}
    tres = part(job, "tres", "allocated")
    for one in tres if isinstance(tres, list) else []:
        kind = str(part(one, "name"))
        if part(one, "type") == "gres" and kind.partition(":")[0] == "gpu":
            counts[kind.partition(":")[2]] = _number(part(one, "count"))
    gpus, gpu = gpus_of(counts, tally, None)
    record = Record(
        job=name,
        part=str(place or 0) if het else "",
        step="",
        state=_current(job),
        offset=None,
        name=text(job.get("name"), MOST_TEXT),
        user=text(job.get("user"), MOST_TEXT),
        folder=text(job.get("working_directory"), MOST_TEXT),
        submit_ns=max((at[key] for key in ("submission", "eligible") if key in at), default=None),
        start_ns=at.get("start"),
        end_ns=at.get("end"),
        gpus=gpus,
        gpu=gpu,
        nodes=nodes_of(job.get("nodes")),
        failed_node=nodes_of(job.get("failed_node")),
        restarts=_number(job.get("restart_cnt")) or 0,
    )
    put_right(record, _number(part(job, "time", "elapsed")), _number(part(job, "time", "suspended")) or 0, tally)
    record.told = {"State": record.state, "ExitCode": _exit(job), "Reason": text(part(job, "state", "reason")) or ""}
    return record


def _of_step(step: Any, job: Record) -> Record:
    at = [s * NS_PER_S if (s := _number(part(step, "time", key))) and s < 1 << 33 else None for key in ("start", "end")]
    name = str(part(step, "step", "id") or part(step, "step", "name") or "?")[:60]
    told = {"State": _current(step), "ExitCode": _exit(step)}
    return Record(job.job, job.part, name, _current(step), None, start_ns=at[0], end_ns=at[1], told=told)


def _number(value: Any) -> int | None:
    """A number from 0, bare or as {"set": true, "infinite": false, "number": 5}; None where it is not set."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    found = whole(value)
    return found if found is not None and found >= 0 else None


def _current(job: Any) -> str:
    """The state of a job or step: text, or a list whose first is its state and what follows flags of it."""
    said = part(job, "state", "current") if isinstance(part(job, "state"), dict) else part(job, "state")
    said = said[0] if isinstance(said, list) and said else said
    return state_of(said[:100]) if isinstance(said, str) else ""


def _exit(job: Any) -> str:
    code = _number(part(job, "exit_code", "return_code"))
    signal = _number(part(job, "exit_code", "signal", "id") or part(job, "exit_code", "signal", "signal_id"))
    return "" if code is None and signal is None else f"{code or 0}:{signal or 0}"
