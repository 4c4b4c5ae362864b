"""Both rule sets on the scenarios that were computed with the library itself: its own numbers to 1e-6 by its rules;
by the exact rules shares that sum to the whole, and the same amounts where the library is right."""

import json
import math
from datetime import datetime
from pathlib import Path

import pytest

from analyzers.lost import goodput
from analyzers.lost.goodput.buckets import BUCKETS, amount, leaves
from collectors.ingest import ingest
from runs.store import Store

ORACLES = Path(__file__).parents[2].parent / "shared" / "oracles" / "goodput"
SCENARIOS = sorted(p.parent.name for p in ORACLES.glob("*/entries.jsonl"))
pytestmark = pytest.mark.skipif(not SCENARIOS, reason="no goodput oracles beside the project")

# Amounts in which the exact rules differ from the library's, and what they are: why stands in the comment.
EXACT: dict[str, dict[str, float]] = {
    "clean_run": {},
    "crash_in_init": {},
    "crash_no_end": {},
    "shared_log_noise": {},
    # the start-up is told against the median step, which saves do not stretch
    "ckpt_sync_saves": {"productive": 60, "program_startup": 12},
    "step_deviation_300": {"productive": 750, "program_startup": 22.5},
    # events in the last step and across steps are events too, and two at once are one time
    "custom_badput": {"productive": 69, "program_startup": 12, "custom_badput_events": 80.5},
    # a load inside the last step before the crash is not a blocking one; that it was read proves the step ran 1 s
    # (0.2 s); the stalled step does not lengthen the usual one
    "data_loading_badput": {
        "productive": 115,
        "program_startup": 21,
        "data_loading_sync": 70,
        "wasted_progress_from_disruption": 13,
        "infrastructure_recovery_from_disruption": 32,
        "other": 8,
    },
    "restart_wasted_steps": {"data_loading_sync": 11, "other": 8},
    # the wait for slices to join lies between two steps; the last lost step is lost as well; one load blocked
    "elastic_slice_loss": {
        "productive": 209,
        "program_startup": 20,
        "data_loading_sync": 5,
        "wasted_progress_from_disruption": 12,
        "other": 1,
    },
    # an evaluation inside a lost step is an evaluation
    "exclusions": {"wasted_progress_from_disruption": 9, "custom_badput_events": 6},
    # steps in the order of their own times: none is missing
    "out_of_order_timestamps": {"productive": 45, "other": 4},
    # a restart at the next step: 200 s of downtime and a second start-up
    "restart_without_repeat": {
        "productive": 60,
        "program_startup": 24,
        "data_loading_sync": 10,
        "other": 8,
        "infrastructure_recovery_from_disruption": 200,
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    return {n: store.get(ingest([ORACLES / n / "entries.jsonl"], store, chips=1).run_id) for n in SCENARIOS}


def ask(run, rules, **options):
    return goodput.analyze(run.tables, run.manifest.facts, {"rules": rules, **options})


def expected(scenario):
    told = json.loads((ORACLES / scenario / "expected.json").read_text())
    return told["query_time"], told["expected"]


def lower(badput):
    return {k.lower(): v for k, v in badput.items()}


def near(ours, theirs, what):
    assert ours == pytest.approx(theirs, abs=1e-6), what


def same_badput(ours, theirs, what, scale=1.0):
    for bucket, value in lower(theirs).items():
        if isinstance(value, dict):
            assert ours[bucket].keys() == value.keys(), what
            for name, v in value.items():
                near(ours[bucket][name] * scale, v, (what, bucket, name))
        else:
            near(ours[bucket] * scale, value, (what, bucket))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_librarys_own_numbers(scenario, runs):
    now, told = expected(scenario)
    theirs = told["cumulative"]
    answer = ask(runs[scenario], "ml-goodput", now=now).to_dict()
    near(100 * answer["goodput_share"], theirs["goodput_pct"], "share")
    same_badput(answer["badput_share"], theirs["badput_pct"], "share", 100)
    same_badput(answer["badput_s"], theirs["unproductive_s"], "seconds")
    unsaid = {b: v for b, v in answer["badput_s"].items() if b not in lower(theirs["unproductive_s"])}
    assert not any(unsaid.values())
    for ours, name in (
        ("productive_s", None),
        ("total_s", "total_elapsed_s"),
        ("disruptions", "disruptions"),
        ("max_step", "max_productive_step"),
        ("ideal_step_s", "ideal_step_time_s"),
        ("spike_cumulative_s", "spike_cumulative_s"),
        ("spike_interval_s", "spike_interval_s"),
    ):
        near(answer[ours], theirs["productive_s"]["TOTAL"] if name is None else theirs[name], ours)
    assert list(answer["step_deviation_s"]) == list(theirs["step_time_deviation_s"])
    for step, deviation in theirs["step_time_deviation_s"].items():
        near(answer["step_deviation_s"][step], deviation, step)
    call = told["step_deviation_call"]
    if "error" in call:
        assert answer["step_deviation_s"] == {}
    else:
        assert answer["step_deviation_s"] == pytest.approx(call, abs=1e-6)
    if "stepping_slice_efficiency" in theirs:
        near(answer["slice_efficiency"]["stepping"], theirs["stepping_slice_efficiency"], "stepping")
        near(answer["slice_efficiency"]["available"], theirs["available_slice_efficiency"], "available")


WINDOWS = [(s, i) for s in SCENARIOS for i in range(len(expected(s)[1]["windows"]))]
EXCLUSIONS = [(s, i) for s in SCENARIOS for i in range(len(expected(s)[1]["exclusions"]))]


@pytest.mark.parametrize(("scenario", "number"), WINDOWS)
def test_the_librarys_own_windows(scenario, number, runs):
    now, told = expected(scenario)
    theirs = told["windows"][number]
    answer = ask(runs[scenario], "ml-goodput", now=now, start=theirs["start"], end=theirs["end"]).to_dict()
    near(100 * answer["goodput_share"], theirs["goodput_pct"], "share")
    same_badput(answer["badput_share"], theirs["badput_pct"], "share", 100)
    near(answer["max_step"], theirs["max_productive_step"], "step")
    near(answer["total_s"], theirs["total_job_time_s"], "total")
    near(answer["disruptions"], theirs["disruptions"], "disruptions")
    if "slice_eff" in theirs:
        slices = answer["slice_efficiency"]
        near(slices["stepping"], theirs["slice_eff"][0], "stepping")
        near(slices["available"], theirs["slice_eff"][1], "available")


@pytest.mark.parametrize(("scenario", "number"), EXCLUSIONS)
def test_the_librarys_own_exclusions(scenario, number, runs):
    now, told = expected(scenario)
    theirs = told["exclusions"][number]
    text = ",".join("/".join(pair) for pair in theirs["intervals"])
    answer = ask(runs[scenario], "ml-goodput", now=now, exclude=text).to_dict()
    near(100 * answer["goodput_share"], theirs["goodput_pct"], "share")
    same_badput(answer["badput_share"], theirs["badput_pct"], "share", 100)
    near(answer["max_step"], theirs["max_productive_step"], "step")
    near(answer["excluded_s"], theirs["total_excluded_s"], "excluded")
    if theirs["ideal_step_time_s"] is None:
        assert answer["ideal_step_s"] is None
    else:
        near(answer["ideal_step_s"], theirs["ideal_step_time_s"], "ideal")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_exact_rules_close_and_agree_where_the_library_is_right(scenario, runs):
    now, told = expected(scenario)
    exact, theirs = ask(runs[scenario], "exact", now=now), told["cumulative"]
    assert exact.productive_s + math.fsum(leaves(exact.badput_s).values()) == pytest.approx(exact.total_s, abs=1e-9)
    near(exact.total_s, theirs["total_elapsed_s"], "total")
    theirs = {"productive": theirs["productive_s"]["TOTAL"], **lower(theirs["unproductive_s"])}
    other = EXACT[scenario]
    for name in ("productive", *(b for b in BUCKETS if b != "data_loading_async")):
        ours = exact.productive_s if name == "productive" else amount(exact.badput_s, name)
        right = other.get(name, amount(theirs, name))
        assert ours == pytest.approx(right, abs=1e-5), name
    agreed = any("agree" in text for text in exact.differences)
    assert agreed == (not other)


@pytest.mark.parametrize(("scenario", "number"), WINDOWS)
def test_exact_windows_close_and_lie_inside_the_window(scenario, number, runs):
    now, told = expected(scenario)
    asked = told["windows"][number]
    exact = ask(runs[scenario], "exact", now=now, start=asked["start"], end=asked["end"])
    assert exact.productive_s + math.fsum(leaves(exact.badput_s).values()) == pytest.approx(exact.total_s, abs=1e-9)
    length = (datetime.fromisoformat(asked["end"]) - datetime.fromisoformat(asked["start"])).total_seconds()
    assert exact.total_s <= length + 1e-9


def test_exact_slice_efficiency_is_the_librarys_where_counts_begin_with_the_job(runs):
    scenario = "elastic_slice_loss"
    theirs = expected(scenario)[1]["cumulative"]
    exact = ask(runs[scenario], "exact", usd_per_chip_hour=2.0)
    assert exact.slice_efficiency.stepping == pytest.approx(theirs["stepping_slice_efficiency"])
    assert exact.usd_per_chip_hour == 2.0 and exact.chips == 1
