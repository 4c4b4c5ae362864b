"""What a rule of alerts finds: an alert that closes does so clearly, and a job that began anew has not ended."""

from types import SimpleNamespace

import numpy as np
import pytest

from app.follow.alerts import rules
from app.workspace import workspace
from tests.app import made_runs
from tests.app.alerting import S, followed


def answering(monkeypatch, **answer):
    monkeypatch.setattr(rules, "ask", lambda *_: SimpleNamespace(to_dict=lambda: answer))


def test_a_rank_whose_share_goes_to_and_fro_about_the_threshold_is_told_once(monkeypatch):
    told, is_open = 0, False
    for share in 0.6 + 0.02 * np.random.default_rng(1).normal(size=100):
        ranks = [{"rank": 3, "share_of_steps": float(share), "cause": "unknown"}]
        answering(monkeypatch, verdict="persistent", ranks=ranks, cost_chip_seconds=1.0)
        found = rules.rule("straggler").check(None, None, 0.6, None)
        before, is_open = is_open, found.open or (is_open and not found.over)
        told += before != is_open
    assert told == 1
    answering(monkeypatch, verdict="persistent", ranks=[ranks[0] | {"share_of_steps": 0.3}], cost_chip_seconds=1.0)
    assert rules.rule("straggler").check(None, None, 0.6, None).over


@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.99, 0.995, 0.9999])
def test_an_alert_on_goodput_is_over_whatever_its_threshold_once_nothing_is_lost(monkeypatch, threshold):
    answering(monkeypatch, goodput_share=1.0, badput_s={})
    assert rules.rule("goodput").check(None, None, threshold, None).over
    answering(monkeypatch, goodput_share=threshold + 1e-6, badput_s={})
    found = rules.rule("goodput").check(None, None, threshold, None)
    assert not found.open and not found.over, "above the threshold, but not clearly"


def test_what_goodput_was_lost_to_is_the_largest_part_of_it_whoever_named_it(monkeypatch):
    lost = {"training_prep": 130.0, "custom_badput_events": {"EVAL_STEP": 1000.0, "warmup": 5.0}, "other": 20.0}
    for badput, said in (
        (lost, "mostly eval step (16 min 40 s)"),
        (lost | {"other": 900.0}, "most of all eval step (16 min 40 s)"),
        ({"training_prep": 130.0, "custom_badput_events": {}}, "mostly training prep (2 min 10 s)"),
    ):
        answering(monkeypatch, goodput_share=0.45, badput_s=badput)
        sentence = rules.rule("goodput").check(None, None, 0.9, None).sentence
        assert sentence == f"goodput is 45.0 %, below 90.0 %, {said}."


@pytest.mark.parametrize(("begun_after_s", "is_open"), [(None, False), (-5, False), (60, True)])
def test_a_job_that_began_anew_after_it_ended_hangs_as_any_other(tmp_path, begun_after_s, is_open):
    place, last = workspace(str(tmp_path / "store")), made_runs.START_NS + 1000 * S
    starts, ended = [last - 10 * S * (99 - n) for n in range(100)], last + 10 * S
    again = [] if begun_after_s is None else [ended + begun_after_s * S]
    tables = {
        "steps": {"step": list(range(100)), "start_ns": starts, "order": list(range(100))},
        "lifecycle": {
            "kind": ["job"] * (1 + len(again)),
            "start_ns": [starts[0] - S, *again],
            "end_ns": [ended, *(None for _ in again)],
            "order": list(range(1 + len(again))),
        },
    }
    run = made_runs.write(place.store, "again", tables, {"chips": 1})
    found = rules.rule("hang").check(run, place.registry, 20, followed(last + 7200 * S, active_ns=last + 90 * S))
    assert found.open == is_open
    assert found.sentence.startswith("nothing came from the job for 1 h 58 min" if is_open else "the job has ended.")
