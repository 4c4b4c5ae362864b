"""A log that is added again counts once, whatever was said of it in `chipledger.json`."""

import json

import pytest

from app.fleet.asking import ask_fleet
from app.workspace import workspace
from collectors.ingest import ingest
from runs.run import Run
from tests.app import made_runs


@pytest.fixture
def place(tmp_path):
    return workspace(str(tmp_path / "store"))


def lines(count: int, hour: int) -> str:
    text = "2026-01-05 {:02d}:{:02d}:00,000 completed step: {}, seconds: 60.000, TFLOP/s/device: 200.000, loss: 1.0"
    return "\n".join(text.format(hour, n, n) for n in range(count)) + "\n"


def added(place, folder, *, log: str, usd: float, profile: bytes = b"") -> Run:
    folder.mkdir()
    files = {"train.log": log.encode(), "more.jsonl": profile}
    files["chipledger.json"] = json.dumps({"chips": 64, "chip": "TPU v5p", "usd_per_chip_hour": usd}).encode()
    for name, content in files.items():
        if content:
            (folder / name).write_bytes(content)
    return place.store.get(ingest([folder], place.store).run_id)


def counted(place) -> list[str]:
    return [told.run.run_id for told in ask_fleet(place, {}, "now").runs]


def test_of_a_log_whose_price_was_put_right_the_later_run_counts_alone(place, tmp_path):
    added(place, tmp_path / "wrong", log=lines(40, 0), usd=4.2)
    right = added(place, tmp_path / "right", log=lines(40, 0), usd=3.9)
    found = ask_fleet(place, {}, "now")
    assert counted(place) == [right.run_id] and found.left_out == {"told_again": 1}
    assert found.total.usd == pytest.approx(found.total.chip_s / 3600 * 3.9)


def test_the_same_log_with_more_beside_it_and_another_sidecar_counts_alone(place, tmp_path):
    added(place, tmp_path / "log", log=lines(40, 0), usd=4.2)
    more = made_runs.goodput_log()
    wider = added(place, tmp_path / "more", log=lines(40, 0), usd=3.9, profile=more)
    assert counted(place) == [wider.run_id]


def test_other_logs_of_which_the_same_was_said_all_count(place, tmp_path):
    both = [added(place, tmp_path / str(n), log=lines(40, n), usd=4.2) for n in range(2)]
    assert sorted(counted(place)) == sorted(run.run_id for run in both)
