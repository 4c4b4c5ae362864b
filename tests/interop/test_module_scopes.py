"""Scopes of real traces from beside the project against a plain walk over their events."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from analyzers.device.modules import modules
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data beside the project")


def told(path, tmp_path):
    """The answer's rows by path, nothing folded."""
    store = Store(tmp_path / "store")
    run = store.get(ingest([path], store).run_id)
    options = parse_options(modules.OPTIONS, {"fold": "none"})
    result = modules.analyze(run.tables, run.manifest.facts, options)
    return {r["path"]: r for r in result.rows.to_dict("records")}


def events_of(path):
    with gzip.open(path) as file:
        return [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]


def around(events, launch):
    """What encloses a launch on its thread, outermost first."""
    end = launch["ts"] + launch["dur"]
    found = [e for e in events if e["tid"] == launch["tid"] and e["pid"] == launch["pid"]]
    found = [e for e in found if e["ts"] <= launch["ts"] and end <= e["ts"] + e["dur"]]
    return [e["name"] for e in sorted(found, key=lambda e: (e["ts"], -e["dur"]))]


def seconds_by_scope(path, is_scope):
    """Device seconds by chain of enclosing scopes of the launch, "" for none."""
    events = events_of(path)
    scopes = [e for e in events if is_scope(e)]
    calls = {e["args"].get("correlation"): e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    sums: Counter[str] = Counter()
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            launch = calls.get(e["args"].get("correlation"))
            names = around(scopes, launch) if launch else []
            sums["/".join(n.removeprefix("nn.Module: ") for n in names)] += e["dur"] * 1e-6
    return sums


def test_each_module_of_an_inference_takes_what_its_launches_take(tmp_path):
    folder = DATA / "kineto" / "tracelens_h100_Qwen_Qwen1.5-0.5B-Chat_"
    path = folder / "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
    by_hand = seconds_by_scope(path, lambda e: e["name"].startswith("nn.Module: "))
    rows = told(path, tmp_path)
    for scope, seconds in by_hand.items():
        if scope:
            assert rows[scope]["own_seconds"] == pytest.approx(seconds, rel=1e-6)
    assert rows["no module told"]["seconds"] == pytest.approx(by_hand[""], rel=1e-6)


def test_the_optimiser_takes_what_is_launched_in_it_and_no_gradients(tmp_path):
    path = DATA / "kineto" / "hta_df_index_resolver" / "df_index_resolver.json.gz"
    by_hand = seconds_by_scope(path, lambda e: e["name"].startswith("Optimizer.") and e["cat"] == "user_annotation")
    rows = told(path, tmp_path)
    for scope, seconds in by_hand.items():
        assert rows[scope or "no module told"]["seconds"] == pytest.approx(seconds, rel=1e-6)
