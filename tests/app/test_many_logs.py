"""Several logs of one job, from the text to the sentence: hosts are no restarts, and restarts are no hosts."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from app.questions import QUESTIONS
from app.questions import question as named
from app.questions.asking import ask
from collectors.ingest import ingest
from runs.registry import Registry
from runs.store import Store

SAID = {q.name: q.verdict for q in QUESTIONS}
BEGUN = datetime(2026, 1, 5, tzinfo=UTC)


def stamp(at_s: float) -> str:
    return (BEGUN + timedelta(seconds=at_s)).strftime("%Y-%m-%d %H:%M:%S.%f")


def maxtext(first: int, last: int, at_s: float, *, step_s=5.0, zone_h=0, late_s=0.0, pod=None, timed=True) -> list[str]:
    """Step lines, each written when its step was done."""
    lines = []
    for n in range(first, last + 1):
        when = f"{stamp(at_s + (n - first + 1) * step_s + late_s + zone_h * 3600)} " if timed else ""
        head = f"[pod/{pod}/main] " if pod else ""
        lines.append(
            f"{head}{when}completed step: {n}, seconds: {step_s + late_s / 100:.3f}, TFLOP/s/device: 200.000, "
            f"Tokens/s/device: 1000.000, total_weights: 100, loss: {10 - n / 100:.3f}"
        )
    return lines


def megatron(rank: int) -> list[str]:
    return [
        f" [{stamp(5 * (n + 1) + rank / 50)[:19]}] iteration {n + 1:8d}/     200 | consumed samples: {32 * (n + 1)}"
        f" | elapsed time per iteration (ms): {5000 + rank}.0 | throughput per GPU (TFLOP/s/GPU): 100.0 | global "
        f"batch size:    32 | lm loss: 5.0E+00 |"
        for n in range(200)
    ]


@pytest.fixture
def told(tmp_path):
    def of(files: dict[str, list[str]], **options):
        folder = tmp_path / "job"
        for name, lines in files.items():
            folder.mkdir(exist_ok=True)
            (folder / name).write_text("\n".join(lines) + "\n")
        store = Store(tmp_path / "store")
        run = store.get(ingest([folder], store, chip="v5p", chips=4, **options).run_id)
        registry = Registry(tmp_path / "registry.db")
        return lambda question, **asked: ask(named(question), run, asked, registry)

    return of


def said(ask, question: str) -> str:
    return SAID[question](ask(question))


CLEAN = {
    "two hosts": {"host0.log": maxtext(0, 199, 0), "host1.log": maxtext(0, 199, 0, late_s=0.3)},
    "merged without a prefix": {"all.log": sorted(maxtext(0, 199, 0) + maxtext(0, 199, 0, late_s=0.3))},
    "behind prefixes": {"all.log": maxtext(0, 199, 0, pod="a-0") + maxtext(0, 199, 0, late_s=0.3, pod="a-1")},
    "four ranks of Megatron": {f"rank{r}.log": megatron(r) for r in range(4)},
    "rotated": {"job.log": maxtext(140, 199, 700), "job.log.1": maxtext(70, 139, 350), "job.log.2": maxtext(0, 69, 0)},
    "newest first": {"job.log": maxtext(0, 199, 0)[::-1]},
    "seven hours west": {
        "a.log": maxtext(0, 199, 0),
        "b.log": maxtext(0, 199, 0, late_s=0.2),
        "c.log": maxtext(0, 199, 0, zone_h=-7),
    },
    "a clock that goes back": {"a.log": maxtext(0, 99, 7200) + maxtext(100, 199, 4000)},
}


@pytest.mark.parametrize("files", CLEAN.values(), ids=CLEAN)
def test_a_clean_run_is_told_as_one(told, files):
    ask = told(files)
    assert said(ask, "interruptions").startswith("No interruption in 16 min 40 s")
    assert said(ask, "goodput") == "100 % of 16 min 40 s went into steps that were kept."
    assert ask("goodput").disruptions == 0
    assert ask("steps").steps == 200 and ask("steps").rows["kept"].all()
    assert ask("ledger").ledger.chip_seconds == pytest.approx(4 * 1000, abs=8)


def test_a_restart_under_another_pod_name_keeps_both_parts(told):
    ask = told({"pods.log": maxtext(0, 99, 0, pod="job-aaa") + maxtext(90, 149, 1000, pod="job-bbb")})
    (row,) = ask("interruptions").rows.to_dict("records")
    assert (row["last_step"], row["resumed_step"], row["lost_steps"]) == (99, 90, 10)
    assert ask("steps").steps == 150
    assert said(ask, "goodput").startswith("58 % of 21 min 40 s went into steps that were kept. Waiting to be ")


def test_ranks_without_times_are_one_attempt_and_that_is_said(told):
    ask = told(
        {f"rank{r}.log": maxtext(0, 199, 0, timed=False) for r in "01"}
        | {"rank2.log": [line.replace("5.000", "5.001") for line in maxtext(0, 199, 0, timed=False)]}
    )
    assert said(ask, "goodput").startswith("100 % of 16 min 40 s")
    for question in ("ledger", "goodput", "interruptions", "steps", "mfu"):
        assert any("taken for hosts of one attempt" in note for note in ask(question).notes), question


def test_a_goodput_log_beside_a_text_log_by_local_time(told):
    entry = {"job_name": "j"}
    events = [
        {"job_start_time": 0},
        *({"step_count": n, "step_start_time": 10 * n + 10} for n in range(300)),
        {"job_end_time": 3010},
    ]
    first = BEGUN.timestamp()
    entries = [
        json.dumps(
            {
                "timestamp": (BEGUN + timedelta(seconds=at)).isoformat(),
                "jsonPayload": {**entry, **{k: v if k == "step_count" else v + first for k, v in e.items()}},
            }
        )
        for e in events
        for at in [next(v for k, v in e.items() if k.endswith("time"))]
    ]
    local = [
        *maxtext(0, 299, 10, step_s=10.0, zone_h=-7),
        f"{stamp(3020 - 7 * 3600)} Completed eval after train step 299: eval loss=2.000, total_weights=10.0",
    ]
    ask = told({"goodput.jsonl": entries, "train.log": local})
    assert said(ask, "goodput").startswith("More than 99 % of 50 min 10 s went into steps")
    assert ask("mfu").mfu == pytest.approx(200 / 459)
    assert any("train.log: its clock is 7 h behind" in note for note in ask("ledger").notes)


def test_a_log_of_no_step_claims_no_0_per_cent(told):
    def mark(at_s: float, kind: str, key: str) -> str:
        ms = round((BEGUN.timestamp() + at_s) * 1000)
        return (
            f':::MLLOG {{"namespace": "", "time_ms": {ms}, "event_type": "{kind}", "key": "{key}", "value": null, '
            f'"metadata": {{"file": "x.py", "lineno": 1, "status": "success"}}}}'
        )

    ask = told(
        {
            "result_0.txt": [
                mark(0, "INTERVAL_START", "init_start"),
                mark(300, "INTERVAL_END", "init_stop"),
                mark(300, "INTERVAL_START", "run_start"),
                mark(1500, "INTERVAL_END", "run_stop"),
            ]
        }
    )
    for question in ("ledger", "goodput"):
        text = said(ask, question)
        assert "cannot be told" in text and "no step was read" in text
        assert not text.startswith("0 %") and "None of" not in text
    assert ask("goodput").goodput_share is None
