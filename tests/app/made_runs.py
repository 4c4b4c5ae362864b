"""Small honest runs, written straight into a store: what the pages are shown in tests without reading any file."""

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import accumulate

from runs.run import Run, facts_of
from runs.schema import SCHEMAS
from runs.store import Store

START_NS = 1_767_571_200_000_000_000
S = 1_000_000_000
STEP_S, CHIPS, PEAK = 20, 256, 459e12


def write(store: Store, name: str, tables: dict, facts: dict, *, kind="training", tags=None, warnings=()) -> Run:
    """A run from columns; its id is the hash of them, as an ingest's is of its files."""
    text = json.dumps([name, tables, facts], sort_keys=True)
    with store.writer() as writer:
        for table, columns in tables.items():
            writer.rows(table, SCHEMAS[table].batch(columns))
        return writer.commit(
            run_id=hashlib.sha256(text.encode()).hexdigest(),
            name=name,
            kind=kind,
            facts=facts_of(facts),
            sources=[{"name": "made.jsonl", "sha256": "0" * 64, "bytes": 0, "collector": "test"}],
            tags=tags,
            warnings=warnings,
        )


def step_columns(took_ns: Iterable[int], start_ns: int = START_NS, **more: list) -> dict:
    """Columns of `steps`: steps of one attempt, one after the other; `more`: further columns."""
    took = [int(t) for t in took_ns]
    starts = list(accumulate(took[:-1], initial=start_ns))
    columns = {"step": list(range(len(took))), "start_ns": starts, "dur_ns": took, "attempt": [0] * len(took)}
    return {**columns, "order": list(range(len(took))), "source": ["train.log"] * len(took), **more}


def interrupted(store: Store, name: str = "llama-70b v5p", **more) -> Run:
    """256 chips, two attempts: 100 steps of 20 s, a failure after step 99 that loses 9 steps, 15 min down, 160 more.

    Kept: steps 0 to 90 of the first attempt, 91 to 250 of the second.
    """
    starts, steps, attempts, kinds, begins, ends = [], [], [], [], [], []
    now = START_NS + 300 * S
    kinds += ["accelerator_initialization", "training_preparation"]
    begins += [START_NS + 5 * S, START_NS + 65 * S]
    ends += [START_NS + 65 * S, START_NS + 200 * S]
    for step in range(100):
        steps.append(step), starts.append(now), attempts.append(0)
        now += (80 if step == 0 else STEP_S) * S
    lost = now
    again = lost + 900 * S
    now = again + 240 * S
    kinds += ["accelerator_initialization", "checkpoint_restore"]
    begins += [again + 5 * S, again + 100 * S]
    ends += [again + 65 * S, again + 160 * S]
    for step in range(91, 251):
        steps.append(step), starts.append(now), attempts.append(1)
        now += (70 if step == 91 else STEP_S) * S
        if step % 50 == 0:
            kinds.append("checkpoint_save"), begins.append(now), ends.append(now + 6 * S)
            now += 6 * S
    kinds += ["job", "job"]
    begins += [START_NS, again]
    ends += [None, now + 30 * S]
    tables = {
        "steps": {
            "step": steps,
            "start_ns": starts,
            "attempt": attempts,
            "order": list(range(len(steps))),
            "model_flops_per_chip": [0.45 * PEAK * STEP_S] * len(steps),
            "loss": [3.0 - 0.001 * s for s in steps],
            "source": ["goodput.jsonl"] * len(steps),
        },
        "lifecycle": {
            "kind": kinds,
            "start_ns": begins,
            "end_ns": ends,
            "order": list(range(len(kinds))),
            "source": ["goodput.jsonl"] * len(kinds),
        },
    }
    facts = {"chip": "TPU v5p", "chips": CHIPS, "model": "llama-70b", "topology": "4x8x8", "peak_flops_per_s": PEAK}
    return write(store, name, tables, facts, **{"tags": {"team": "pretraining"}, **more})


def goodput_log(steps: int = 60, job: str = "upload-me") -> bytes:
    """A goodput log as Cloud Logging exports it: one attempt, started, initialised, `steps` steps of 10 s, ended."""

    def entry(at_s: float, **payload) -> dict:
        stamp = datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
        return {
            "logName": f"projects/p/logs/goodput_{job}",
            "timestamp": stamp,
            "severity": "INFO",
            "jsonPayload": {"job_name": job, **payload},
        }

    begin = START_NS / S
    entries = [
        entry(begin, job_start_time=begin),
        entry(begin + 1, tpu_init_start_time=begin + 1),
        entry(begin + 31, tpu_init_end_time=begin + 31),
    ]
    at = begin + 40
    for step in range(steps):
        entries.append(entry(at, step_count=step, step_start_time=at))
        at += 45 if step == 0 else 10
    entries.append(entry(at, job_end_time=at))
    return "".join(json.dumps(e) + "\n" for e in entries).encode()
