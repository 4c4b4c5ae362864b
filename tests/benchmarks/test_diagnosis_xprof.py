"""XProf's rules as a tool of the benchmark of diagnosis: what its sentences accuse, and that it reads our profiles."""

import gzip
import shutil
from pathlib import Path

import pytest

from benchmarks.diagnosis.faults import BY_CAUSE
from benchmarks.diagnosis.tools import xprof

INPUT = (
    "Your program is HIGHLY input-bound because 41.5% of the total step time sampled is waiting for input. Therefore, "
    "you should first focus on reducing the input time."
)
EITHER = (
    "Your program is POTENTIALLY input-bound because 80.0% of the total step time sampled is spent on 'All Others' "
    "time (which could be due to I/O or Python execution or both)."
)
SOUND = "Your program is NOT input-bound because only 0.0% of the total step time sampled is waiting for input."
PYTHON = (
    "30.0 % of the total step time sampled is spent on 'All Others' time. This could be due to Python execution "
    "overhead."
)
WINDOW = Path(__file__).parents[2] / "reference" / "runs" / "training" / "profiles" / "attempt_0" / "window_0"


def capture(*sentences: str, chip_seconds: float = 10.0) -> xprof.Capture:
    return xprof.Capture(sentences, chip_seconds)


def test_a_sentence_that_names_one_cause_names_it_with_its_share_of_the_steps():
    (named,) = xprof.answer([capture(INPUT)])["causes"]
    assert named == {"cause": "slow_loader", "chip_seconds": {"low": None, "likely": pytest.approx(4.15), "high": None}}


def test_a_sentence_that_blames_one_of_several_accuses_them_and_names_none():
    said = xprof.answer([capture(EITHER)])
    (headline,) = said["headlines"]
    assert said["causes"] == []
    assert headline["chip_seconds"] == pytest.approx(8.0)
    assert {"slow_loader", "python_overhead"} <= set(headline["accuses"])
    assert "slow_network" not in headline["accuses"]


def test_not_input_bound_accuses_nobody():
    said = xprof.answer([capture(SOUND)])
    assert said["causes"] == [] and said["headlines"] == []


def test_what_is_blamed_in_several_captures_is_added_up_and_the_largest_is_named_first():
    said = xprof.answer([capture(INPUT, chip_seconds=1.0), capture(PYTHON, INPUT, chip_seconds=10.0)])
    assert [c["cause"] for c in said["causes"]] == ["slow_loader", "python_overhead"]
    assert said["causes"][0]["chip_seconds"]["likely"] == pytest.approx(0.415 + 4.15)
    assert said["causes"][1]["chip_seconds"]["likely"] == pytest.approx(3.0)


def test_a_cause_that_two_sentences_name_is_named_once_with_the_larger_share():
    other = "50.0 % of the total step time sampled is due to host overhead that is not input-related."
    (named,) = xprof.answer([capture(PYTHON, other)])["causes"]
    assert (named["cause"], named["chip_seconds"]["likely"]) == ("python_overhead", pytest.approx(5.0))


def test_without_a_profile_nothing_can_be_told_and_with_one_nothing_that_no_rule_speaks_of():
    assert set(xprof.answer([])["not_told"]) == set(BY_CAUSE)
    told = set(xprof.answer([capture(SOUND)])["not_told"])
    assert {"restart_loop", "recompile_shape", "queueing"} <= told
    assert not told & {"slow_loader", "python_overhead", "slow_network"}


def test_every_cause_of_a_rule_is_of_the_vocabulary():
    assert {c for rule in xprof.RULES for c in (*rule.accuses, *((rule.names,) if rule.names else ()))} <= set(BY_CAUSE)


@pytest.mark.slow
def test_it_reads_a_capture_of_all_ranks_of_a_real_job(tmp_path: Path):
    pytest.importorskip("xprof", reason="needs XProf: pip install 'chipledger[xprof]'")
    shutil.copytree(WINDOW, tmp_path / "profiles" / "attempt_0" / "window_0")
    (found,) = xprof.captures(tmp_path)
    assert any("input-bound" in sentence for sentence in found.sentences)
    assert found.chip_seconds > 1.0


@pytest.mark.slow
def test_of_a_capture_without_steps_nothing_can_be_told(tmp_path: Path):
    pytest.importorskip("xprof", reason="needs XProf: pip install 'chipledger[xprof]'")
    profile = tmp_path / "cases" / "case-000" / "profiles" / "attempt_0" / "window_0" / "process_0" / "vm.xplane.pb.gz"
    profile.parent.mkdir(parents=True)
    profile.write_bytes(gzip.compress(b""))
    assert xprof.answers(tmp_path)["case-000"] == xprof.answer([])
