"""Goodput logs with a seed: jobs that restart, save, load, wait, and log late, as payloads in the order of writing."""

import json
from datetime import UTC, datetime

import numpy as np

START_S = 1_767_571_200.0
JOB = "made"


class Log:
    """Entries as (time of writing, payload), both in s since the epoch; `lines()` is the file that is exported."""

    def __init__(self) -> None:
        self.entries: list[tuple[float, dict]] = []

    def add(self, at: float, delay: float = 0.01, **payload: object) -> None:
        self.entries.append((at + delay, {"job_name": JOB, **payload}))

    def pair(self, name: str, start: float, end: float | None, delay: float = 0.01, **more: object) -> None:
        self.add(start, delay, **more, **{f"{name}_start_time": start})
        if end is not None:
            self.add(end, delay, **more, **{f"{name}_end_time": end})

    def save(self, step: int, start: float, took: float | None, where: str = "gs://b/c", delay: float = 0.01) -> None:
        self.add(
            start + (took or 0),
            delay,
            step=step,
            event_type="save",
            directory=where,
            synchronous=True,
            wait_for_prev_start_time=start,
            wait_for_prev_duration_secs=0.0,
            checkpointer_blocking_start_time=start,
            checkpointer_blocking_duration_secs=took,
            get_old_steps_start_time=start,
            get_old_steps_duration_secs=0.0,
            checkpoint_manager_blocking_start_time=start,
            checkpoint_manager_blocking_duration_secs=took,
        )

    def restore(self, step: int, start: float, took: float) -> None:
        self.add(
            start + took,
            step=step,
            event_type="restore",
            directory="gs://b/c",
            checkpointer_start_time=start,
            checkpointer_duration_secs=took,
            checkpoint_manager_start_time=start,
            checkpoint_manager_duration_secs=took,
        )

    def written(self) -> list[tuple[datetime, dict]]:
        """In the order in which a log service hands them out."""
        return [(datetime.fromtimestamp(at, UTC), p) for at, p in sorted(self.entries, key=lambda e: e[0])]

    def lines(self) -> str:
        rows = []
        for i, (at, payload) in enumerate(self.written()):
            rows.append(
                json.dumps(
                    {
                        "logName": f"projects/p/logs/goodput_{JOB}",
                        "timestamp": at.isoformat().replace("+00:00", "Z"),
                        "severity": "INFO",
                        "insertId": f"{i:08d}",
                        "jsonPayload": payload,
                    }
                )
            )
        return "\n".join(rows) + "\n"


def random_log(seed: int) -> Log:
    """A job of a few attempts with everything that such logs hold, at random."""
    rng = np.random.default_rng(seed)
    log, now, step, last = Log(), START_S + float(rng.uniform(0, 9)), 0, 0

    def chance(p: float) -> bool:
        return bool(rng.random() < p)

    def took(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), int(rng.integers(0, 4)))

    def late() -> float:
        return 0.01 if not chance(0.05) else float(rng.uniform(0.5, 12))

    attempts = int(rng.integers(1, 5))
    usual = float(rng.choice([0.4, 1.3, 3.0, 20.0]))
    for attempt in range(attempts):
        if attempt == 0 or chance(0.85):
            log.add(now, job_start_time=now)
        for name, low, high in (("tpu_init", 5, 40), ("training_prep", 3, 20), ("data_loading", 1, 9)):
            if chance(0.85):
                start = now + took(0.1, 2)
                now = start + took(low, high)
                log.pair(name, start, now if chance(0.9) else None, late())
        if attempt and chance(0.5):
            spent = took(1, 8)
            log.restore(step, now, spent)
            now += spent
        if chance(0.3):
            log.pair("custom_badput_event", now, now + took(1, 20), custom_badput_event_type="Warmup")
        log.add(
            now,
            active_slices=int(rng.integers(0, 5)),
            total_slices=4,
            available_slices=int(rng.integers(0, 5)),
            elastic_slice_counts_timestamp=now,
        )
        for k in range(int(rng.integers(0, 40))):
            log.add(now, late(), step_count=step, step_start_time=now)
            spent = usual * float(rng.lognormal(0, 0.1)) + (took(5, 30) if k == 0 else 0)
            if chance(0.3):
                start = now + spent * float(rng.uniform(0, 0.5))
                log.pair("data_loading", start, start + spent * 0.2, late())
            if chance(0.12):
                start = now + spent
                end = start + took(0.5, 15)
                name = str(rng.choice(["eval_step", "EVAL_step", "sdc"]))
                log.pair("custom_badput_event", start, end if chance(0.9) else None, custom_badput_event_type=name)
                spent += (end - start) * float(rng.choice([1.0, 1.0, 0.5]))  # some go on into the next step
            if chance(0.15):
                blocked = took(0.5, 6)
                for host in range(int(rng.integers(1, 3))):
                    log.save(step, now + spent + host * 0.1, blocked, str(rng.choice(["gs://b/c", "/local/c"])))
                spent += blocked
            if chance(0.05):
                start = now + spent
                kind = str(rng.choice(["elastic_slice_down", "elastic_scale_up", "other_wait"]))
                waited, again = took(2, 30), took(2, 20)
                log.pair("elastic_wait", start, start + waited, elastic_wait_event_type=kind)
                log.pair("elastic_reinit", start + waited, start + waited + again)
                log.pair("tpu_init", start + waited + 0.2, start + waited + again * 0.7)
                spent += waited + again
            now += spent
            last, step = step, step + (2 if chance(0.02) else 1)
        if attempt < attempts - 1:
            step = int(rng.choice([last + 1, last + 1, max(last - int(rng.integers(0, 12)), 0), 0, last]))
            if chance(0.15):
                log.add(now, job_end_time=now)
            now += took(1, 300)
    if chance(0.7):
        log.add(now, job_end_time=now)
    return log
