"""The benchmark of goodput on a small log: what it times gives the answer that is known."""

import json

import pytest

from benchmarks.goodput import in_one_process, ingest_and_show, payloads, write_log


def test_both_ways_of_ours_give_the_share_of_the_log(tmp_path):
    log = tmp_path / "goodput.json"
    write_log(log, 600, 2, "grpc")
    told = [(at, entry) for at, entry in payloads(600, 2, True) if "step_start_time" in entry]
    [once] = in_one_process("exact")(log, tmp_path)
    *_, shown = ingest_and_show(log, tmp_path)
    share = json.loads(once.output)["share"]
    assert share == pytest.approx(json.loads(shown.output)["goodput_share"])
    kept = {entry["step_count"] for _, entry in told}
    held_s = told[-1][0] - told[0][0]
    assert share == pytest.approx(14 * len(kept) / held_s, rel=0.1)
