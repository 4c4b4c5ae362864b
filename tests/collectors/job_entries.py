"""Goodput entries of made-up jobs, as the service holds them: written to the nanosecond, received a little later."""

import random
from typing import Any
from urllib.parse import quote

from tests.collectors.logging_server import stamp_of

S = 1_000_000_000
PROJECT = "chip-tests"


def entry(at_ns: int, payload: dict[str, Any], job: str, number: int, received_ns: int | None = None, **more) -> dict:
    return {
        "logName": f"projects/{PROJECT}/logs/goodput_{quote(job, safe='')}",
        "resource": {"type": "global", "labels": {"project_id": PROJECT}},
        "timestamp": stamp_of(at_ns),
        "receiveTimestamp": stamp_of(at_ns + S // 5 if received_ns is None else received_ns),
        "severity": "INFO",
        "insertId": f"{number:08x}",
        "jsonPayload": {"job_name": job, **payload},
        **more,
    }


def job(
    begin_ns: int,
    steps: int,
    step_s: float = 10.0,
    name: str = "night-run",
    ends: bool = True,
    first: int = 0,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One start of a job: initialisation, `steps` steps, its end. Ids ascend from `first`, no two entries alike."""
    chance = random.Random(seed)
    at, entries = begin_ns, []

    def write(key: str, **more: Any) -> None:
        late = chance.randrange(1, 900_000_000)  # written after the event
        stamp = at + late
        entries.append(entry(stamp, {**more, key: at / S}, name, first + len(entries)))

    write("job_start_time")
    at += S
    write("tpu_init_start_time")
    at += 30 * S
    write("tpu_init_end_time")
    at += S
    for step in range(steps):
        write("step_start_time", step_count=step)
        at += int(step_s * S) + (60 * S if step == 0 else 0)
    if ends:
        write("job_end_time")
    return entries
