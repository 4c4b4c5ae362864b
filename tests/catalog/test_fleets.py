"""Published fleets: their tables add up, and their numbers are those of the sources."""

import re

import pytest

from catalog import MARKS, chips
from catalog.causes import CAUSES
from catalog.fleets import fleets

BY_ID = {f.id: f for f in fleets()}


def test_every_fleet_has_a_source_a_mark_and_a_note():
    for fleet in fleets():
        assert fleet.mark in MARKS and fleet.note and fleet.chip in chips()
        assert re.search(r"arXiv:\d{4}\.\d{5}", fleet.source), fleet.source
        assert fleet.per_1000_node_days > 0


def test_the_llama_3_table():
    fleet = BY_ID["llama3-405b"]
    counts = fleet.counts()
    assert sum(counts.values()) == fleet.unplanned == 419 and fleet.planned == 47
    assert (counts["accelerator"], counts["hbm"], counts["software"], counts["network"]) == (148, 72, 54, 35)
    assert counts["maintenance"] == 32 and counts["chassis"] == 4  # chassis and I/O board, two each
    assert fleet.nodes == 2048 and fleet.node_days == 2048 * 54
    assert fleet.per_1000_node_days == pytest.approx(3.788700810185185)
    assert fleet.mean_time_s / 3600 == pytest.approx(2.781115879828326)


def test_the_printed_share_that_contradicts_its_count_is_the_only_one():
    fleet = BY_ID["llama3-405b"]
    wrong = [
        c.cause
        for c in fleet.causes
        if c.printed_percent and abs(c.count / fleet.unplanned * 100 - float(c.printed_percent)) > 0.06
    ]
    assert wrong == ["accelerator"]
    assert fleet.counts()["accelerator"] / fleet.unplanned == pytest.approx(0.353, abs=5e-4)
    assert "30.1 %" in fleet.note


def test_derived_rates_follow_from_what_their_note_says():
    assert BY_ID["opt-175b"].per_1000_node_days == pytest.approx(2 / 124 * 1000, rel=1e-3)
    assert BY_ID["opt-175b"].nodes == 124
    assert BY_ID["bloom-176b"].per_1000_node_days == pytest.approx(1 / (48 * 7) * 1000, rel=1e-3)
    assert BY_ID["bloom-176b"].nodes == 48
    assert {f.mark for f in fleets() if not f.causes and f.id.startswith("rsc")} == {"published"}


def test_causes_are_those_of_the_catalogue():
    assert {c.cause for f in fleets() for c in f.causes} <= set(CAUSES)
