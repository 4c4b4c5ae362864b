"""Findings: no chip-second is given twice, causes have cures, and bundled runs are told what was done to them."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.findings import FindingsResult
from analyzers.findings.base import Band, Finding, Steps
from analyzers.findings.rank import MOST, joint, settled
from analyzers.findings.rules import RULES
from app.frameworks import BY_COLLECTOR
from app.questions import question
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.workspace import Workspace
from catalog.cures import ANY, EFFORTS, FRAMEWORKS, WRONGS, parse_cures
from collectors import COLLECTORS
from runs.ledger import Account, Ledger
from tests.bundled import RUNS, bundled

LEAVES = ("useful_maths", "straggler_wait", "input_wait", "device_idle", "checkpoint_save")


def ledger(amounts: list[float]) -> Ledger:
    parts = [Account(name=n, chip_seconds=s, basis="measured") for n, s in zip(LEAVES, amounts, strict=True)]
    return Ledger(chips=4, account=Account.total("held", parts))


def finding(cause: str, draws: dict[str, float]) -> Finding:
    likely = math.fsum(draws.values())
    return Finding(cause=cause, title="", gain=Band.within(likely, 0.2), draws=draws, question="ledger", confidence=0.9)


amounts = st.lists(st.floats(0.5, 1e6), min_size=len(LEAVES), max_size=len(LEAVES))
drawn = st.dictionaries(st.sampled_from(LEAVES[1:]), st.floats(0.0, 2e6), min_size=1)
some = st.lists(st.tuples(st.sampled_from(sorted(WRONGS)), drawn), max_size=8)


@given(amounts, some)
def test_no_chip_second_is_given_twice_and_the_largest_gain_stands_first(held, found):
    books = ledger(held)
    stand, explained = settled([finding(cause, draws) for cause, draws in found], books, 0.02)
    for name in LEAVES:
        taken = math.fsum(f.draws.get(name, 0.0) for f in stand)
        assert taken <= books.amount(name) * (1 + 1e-9)
    assert [f.likely for f in stand] == sorted((f.likely for f in stand), reverse=True)
    assert all(f.likely >= 0.02 * books.chip_seconds for f in stand)
    assert all(f.gain.high <= books.chip_seconds * (1 + 1e-9) for f in stand)
    assert len(stand) + len(explained) <= len(found)
    together = joint(stand, books.chip_seconds)
    assert not together or together[-1] <= math.fsum(held) * (1 + 1e-9)


def test_what_a_late_rank_explains_is_not_told_again_as_overhead_of_its_host():
    books = ledger([40.0, 30.0, 0.5, 29.0, 0.5])
    rank = finding("slow_rank", {"straggler_wait": 30.0, "device_idle": 27.0})
    stand, explained = settled([rank, finding("host_overhead", {"device_idle": 29.0})], books, 0.02)
    assert [f.cause for f in stand] == ["slow_rank"] and [f.cause for f in explained] == ["host_overhead"]
    alone, _ = settled([finding("host_overhead", {"device_idle": 29.0})], books, 0.02)
    assert [f.cause for f in alone] == ["host_overhead"]


def test_what_others_give_back_of_a_finding_is_said_beside_what_was_found():
    books = ledger([40.0, 30.0, 0.5, 29.0, 0.5])
    rank = finding("slow_rank", {"straggler_wait": 30.0, "device_idle": 6.0})
    stand, _ = settled([rank, finding("host_overhead", {"device_idle": 29.0})], books, 0.02)
    titles = {f.cause: f.title for f in stand}
    assert titles == {"slow_rank": "", "host_overhead": " Of that, 6.00 % of the chip time is another finding's."}


@pytest.mark.parametrize(("least", "told"), [(0.0, True), (22.9, True), (23.1, False), (29.5, False)])
def test_what_others_leave_of_a_finding_must_be_worth_telling_for_itself(least, told):
    books = ledger([40.0, 30.0, 0.5, 29.0, 0.5])
    rank = finding("slow_rank", {"straggler_wait": 30.0, "device_idle": 6.0})
    code = dataclasses.replace(finding("host_overhead", {"device_idle": 29.0}), least=least)
    stand, explained = settled([rank, code], books, 0.02)
    assert ("host_overhead" in {f.cause for f in stand}) is told
    assert ("host_overhead" in {f.cause for f in explained}) is (least == 23.1)


def test_a_band_out_of_order_and_a_cause_of_no_vocabulary_are_defects():
    with pytest.raises(ValueError):
        Band(2.0, 1.0, 3.0)
    with pytest.raises(ValueError):
        finding("gremlins", {"device_idle": 1.0})


def test_every_cause_of_a_rule_has_a_cure_and_every_cure_a_rule():
    told = {cause for rule in RULES for cause in rule.causes}
    assert told <= set(WRONGS)
    for wrong in WRONGS.values():
        assert wrong.title[0].isupper() and not wrong.title.endswith(".")
        assert wrong.effort in EFFORTS and set(wrong.cures) <= set(FRAMEWORKS)
        assert all(text[0].isupper() and text.endswith(".") for text in wrong.cures.values())
    assert WRONGS["slow_loader"].cure(["maxtext", "jax"]).startswith("Raise grain_worker_count")
    assert WRONGS["slow_rank"].cure(["maxtext"]) == WRONGS["slow_rank"].cures[ANY]


@pytest.mark.parametrize(
    "change", [{"effort": "prayer"}, {"cures": {"jax": "Do it."}}, {"cures": {ANY: "Do.", "cobol": "Do."}}]
)
def test_a_cure_that_cannot_be_is_refused(change):
    good = {"name": "slow_rank", "title": "A", "effort": "code", "cures": {ANY: "Do it."}}
    data = {"efforts": EFFORTS, "frameworks": FRAMEWORKS}
    assert parse_cures({**data, "causes": [good]})["slow_rank"].title == "A"
    with pytest.raises(ValueError):
        parse_cures({**data, "causes": [{**good, **change}]})
    with pytest.raises(ValueError):
        parse_cures({**data, "causes": [good, good]})


def test_frameworks_are_those_of_cures_and_of_collectors():
    named = {c.NAME for c in COLLECTORS}
    assert set(BY_COLLECTOR) <= named
    assert {f for known in BY_COLLECTOR.values() for f in known} <= set(FRAMEWORKS)


def of_bundled(folders: pytest.TempPathFactory, place: Workspace, name: str) -> FindingsResult:
    return ask(FINDINGS, bundled(folders, name), {}, place.registry)


def test_the_reference_run_is_told_what_was_done_to_it(place, tmp_path_factory):
    result = of_bundled(tmp_path_factory, place, "training")
    truth = json.loads((RUNS / "training.truth.json").read_text())
    by_cause = {f.cause: f for f in result.findings}
    late = next(i for i in truth["injections"] if i["what"] == "straggler")
    rank = by_cause["slow_rank"]
    assert rank.where.ranks == (late["process"],)
    assert rank.where.steps == Steps(late["first_step"], late["last_step"])
    assert rank.gain and rank.gain.low <= late["total_s"] * 4 <= rank.gain.high
    stalls = by_cause["loader_stalls"]
    stall = next(i for i in truth["injections"] if i["what"] == "input_stall")
    assert stalls.where.steps == Steps(stall["first_step"], stall["last_step"])
    assert stalls.gain and stalls.gain.low <= stall["total_s"] * 4 <= stalls.gain.high
    stops = by_cause["interruption"]
    kills = [i for i in truth["injections"] if i["what"] == "kill"]
    assert len(kills) == 2 and stops.gain
    assert stops.gain.likely >= sum(k["downtime_s"] + k["wasted_span_s"] for k in kills) * 4
    assert "TraceAnnotation" in result.cure(stalls) or "grain" in result.cure(stalls)
    assert list(by_cause) == ["interruption", "slow_rank", "loader_stalls"], "nothing else was done to it"


def test_a_lower_floor_tells_more_and_none_at_all_is_a_floor_too(place, tmp_path_factory):
    run = bundled(tmp_path_factory, "training")
    told = [{f.cause for f in ask(FINDINGS, run, {"floor": str(f)}, place.registry).findings} for f in (0.5, 0.02, 0.0)]
    assert told[0] < told[1] <= told[2] or len(told[2]) == MOST
    assert not told[0] and ask(FINDINGS, run, {"floor": "0"}, place.registry).floor == 0.0


def test_what_requests_wait_for_is_told_of_what_was_measured(place, tmp_path_factory):
    whole = {f.cause: f for f in of_bundled(tmp_path_factory, place, "serving").findings}["queueing"]
    client = {f.cause: f for f in of_bundled(tmp_path_factory, place, "serving-client").findings}["queueing"]
    assert "of the wait for first tokens" in whole.title and "of the time some request waited" in client.title
    for finding in (whole, client):
        (told,) = finding.evidence
        assert f"{float(told.value):.0%}".replace("%", " %") in finding.title


def test_an_answer_is_of_one_piece_with_the_ledger(place, tmp_path_factory):
    for name in ("training", "serving", "fleet-54-days-simulated"):
        result = of_bundled(tmp_path_factory, place, name)
        said = result.to_dict()
        gap = math.fsum(row["chip_seconds"] for row in said["grade"]["gap"])
        useful = (result.useful_share or 0.0) * result.whole
        assert gap + useful == pytest.approx(result.whole, rel=1e-9)
        assert all(f["gain_share"] is None or f["gain_share"] <= 1 for f in said["findings"])
        assert all(question(f["question"]) for f in said["findings"])
