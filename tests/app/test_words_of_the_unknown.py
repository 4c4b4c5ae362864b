"""Sentences where something is not known: what is told is told of what is known, and of nothing else."""

import re

import numpy as np
import pytest

from analyzers.device import input
from analyzers.findings import FindingsResult
from analyzers.serving import latency, load
from app.comparing.answer import Compared
from app.questions import question
from app.questions.asking import ask
from app.questions.findings import words as findings_words
from app.questions.findings.figure import on_paper
from app.questions.input import words as input_words
from app.questions.latency import words as latency_words
from app.questions.ledger.icicle import icicle
from app.questions.ledger.waterfall import waterfall
from app.questions.load import words as load_words
from errors import format as fmt
from errors.options import parse_options
from runs.ledger import Account, Ledger
from runs.run import facts_of
from runs.schema import SCHEMAS
from runs.tables import MemoryTables
from tests.analyzers.load_tests import open_loop, requests, summaries
from tests.analyzers.pipelines import Pipelines
from tests.analyzers.served_worlds import world
from tests.analyzers.stopped_jobs import Attempt, Job, S
from tests.analyzers.worlds import World
from tests.app import ledgers, made_runs
from tests.app.headlines import jumbled


def found(ledger: Ledger, **more) -> FindingsResult:
    """Nothing, of this ledger."""
    told = {"told_share": 1 - ledger.unknown / ledger.chip_seconds, "useful_share": None, "kept_share": None, **more}
    return FindingsResult(
        findings=(), beyond=0, joint=(), explained=(), ruled_out=(), not_told=(), ledger=ledger, floor=0.02, **told
    )


def held(*parts: Account, **more) -> Ledger:
    return Ledger(chips=1, account=Account.total("held", list(parts)), **more)


def test_what_nothing_tells_of_is_none_of_what_can_be_told():
    dark = ledgers.leaf("not_profiled", 43, "unattributed")
    kept = Account.total("productive", [ledgers.leaf("useful_maths", 35), dark])
    lost = Account.total("badput", [ledgers.leaf("program_startup", 14), ledgers.leaf("checkpoint_save", 8)])
    said = findings_words.verdict(found(held(kept, lost), useful_share=0.35))
    assert said == (
        "Nothing stands out: of the 57 % that can be told, 35 % is useful maths; the largest of the rest are "
        "14 % startup and compilation, 8 % checkpoint save."
    )
    served = held(ledgers.leaf("no_requests", 56), ledgers.leaf("unattributed", 44, "unattributed"))
    assert findings_words.verdict(found(served, serving=True)) == (
        "Nothing stands out: of the 56 % that can be told, the largest of the rest is 56 % no requests."
    )


def stopped(place, name: str, **facts):
    """A run of 400 steps with two failures, saves and a price."""
    attempts = [Attempt(100, 20, 5000, [(3.0, "nic", "h7", "error", "h7: link down")]), Attempt(100, 20, 900)]
    columns = Job([*attempts, Attempt(200)]).columns()
    life, steps = columns["lifecycle"], columns["steps"]
    for start, attempt in list(zip(steps["start_ns"], steps["attempt"], strict=True))[40::40]:
        row = ("checkpoint_save", start + S, start + 3 * S, attempt, len(life["kind"]))
        for column, value in zip(life, row, strict=True):
            life[column].append(value)
    facts = {"chip": "TPU v5p", "usd_per_chip_hour": 3.0, **facts}
    return made_runs.write(place.store, name, columns, facts)


def test_of_chips_that_nobody_counts_no_hosts_no_chip_hours_and_no_dollars_are_told(place):
    run, same = stopped(place, "uncounted"), stopped(place, "counted", chips=256)
    asked = ask(question("interruptions"), run, {}, place.registry)
    said = question("interruptions").verdict(asked).whole
    assert "of each chip)" in said and "chip-hour" not in said and "$" not in said
    answer = asked.to_dict()
    assert answer["nodes"] is None and answer["per_1000_node_days"]["mean"] is None
    assert all(row["chip_hours"] is None and row["usd"] is None for row in answer["by_cause"])
    assert "1 host: 4 chips a host, as is usual for TPU v5p." not in asked.notes
    counted = ask(question("interruptions"), same, {}, place.registry)
    assert counted.nodes.count == 64 and "chip-hours, about $" in question("interruptions").verdict(counted)
    saves = question("checkpoints")
    found = ask(saves, run, {}, place.registry)
    assert "would give back" in saves.verdict(found).whole and "chip-" not in saves.verdict(found).whole
    assert found.to_dict()["lost"]["saves"]["usd"] is None


def test_what_each_chip_lost_is_no_chip_time_and_no_dollars_of_a_job(place):
    run, same = stopped(place, "uncounted"), stopped(place, "counted", chips=256)
    for name in ("ledger", "findings"):
        asked = question(name)
        said = asked.verdict(ask(asked, run, {}, place.registry)).whole
        assert "of each chip" in said and not re.search(r"chip-hour|chip-second|\$", said), said
        counted = asked.verdict(ask(asked, same, {}, place.registry)).whole
        assert "chip-hours" in counted and "$" in counted and "of each chip" not in counted
    found = ask(question("findings"), run, {}, place.registry)
    assert found.findings and all(f["gain_usd"] is None for f in found.to_dict()["findings"])
    assert all("chip-" not in cell for row in question("findings").table(found).rows for cell in row[1:4])
    ledger = question("ledger")
    found = ask(ledger, run, {}, place.registry)
    assert all(row[3] == fmt.NO_VALUE for row in ledger.table(found).rows)
    assert found.to_dict()["usd"] is None and found.to_dict()["account"]["children"][0]["usd"] is None
    assert ask(ledger, same, {}, place.registry).to_dict()["usd"] > 0


def test_pictures_and_tables_of_what_each_chip_lost_tell_no_chip_time(place):
    ledger = question("ledger")
    found = ask(ledger, stopped(place, "uncounted"), {}, place.registry)
    counted = ask(ledger, stopped(place, "counted", chips=256), {}, place.registry)
    assert "hours of each chip" in ledger.table(found).head and "chip-hours" in ledger.table(counted).head
    drawn = [
        waterfall(found.ledger).to_json(),
        icicle(found.ledger).to_json(),
        on_paper(found.ledger, found.ledger).to_json(),
        findings_words.value(100.0, "chip-seconds", chips_known=False),
    ]
    assert all("of each chip" in one and not re.search(r"\d chip-|\"chip-", one) for one in drawn)
    assert "chip-hours" in waterfall(counted.ledger).to_json()


@pytest.mark.parametrize(
    ("value", "said"),
    [(32, "32"), (32.114, "32.11"), (9999.7, "10,000"), (131_072.4, "131,072"), (0.5, "0.5"), (6.14e-5, "0.00006140")],
)
def test_a_number_of_few_digits_has_no_exponent(value, said):
    assert fmt.at_most(value, 4) == said


def test_prompts_of_long_contexts_are_told_whole():
    loads = [one | {"input_tokens": 32_768 * 60 * 4**n} for n, one in enumerate(open_loop([1, 2], 100))]
    found = load.analyze(summaries(loads), {}, parse_options(load.OPTIONS, {}))
    assert load_words.verdict(found) == (
        "Loads differ in the length of their prompts (32,768 to 65,536 tokens): no one curve, and no knee is told."
    )


def test_chip_seconds_of_padding_have_no_exponent():
    products = {"m": [4096], "k": [4096], "n": [65], "count": [1], "op": ["dot.1"]}
    for flops, ms in ((3e12, 60), (2e17, 1e6)):
        job = World(executed_flops=flops, compute_ms=ms, matmuls=products)
        options = parse_options(question("ledger").options, {})
        found = question("ledger").analyze(job.tables(), facts_of({"chip": "TPU v5p", "chips": 4}), options)
        notes = [note for note in found.notes if "Padding is modelled" in note]
        assert notes and not any(jumbled(note) for note in notes), notes


def test_one_answer_has_no_hundredth():
    of = world(n=2, fail_every=2).without_passes
    said = latency_words.verdict(latency.analyze(of, {}, parse_options(latency.OPTIONS, {}))).whole
    assert "The one request that completed had its first token within 59.0 ms." in said and "hundred" not in said


def test_no_more_is_answered_than_was_asked():
    at = np.arange(4) * 2.0
    of = requests(at, at + 0.1, at + 0.5, np.full(4, 9))
    said = load_words.verdict(load.analyze(of, {}, parse_options(load.OPTIONS, {})))
    assert said.startswith("One load: 0.615 requests/s answered, as fast as they were asked, 5.54 tokens/s")


def test_far_more_answers_than_were_asked_are_not_as_many():
    """As of a tool that was told a rate of conversations, each of several requests."""
    of = summaries([{**open_loop([10], 100)[0], "duration_s": 20.0}])
    said = load_words.verdict(load.analyze(of, {}, parse_options(load.OPTIONS, {})))
    assert said.startswith("One load: 30.0 requests/s answered, though 10.0 were asked, 3,000 tokens/s")


@pytest.mark.parametrize(("steps", "said"), [(1, "the step that was profiled is no usual one"), (2, "a usual step")])
def test_a_fetch_in_each_step_is_not_in_few_of_them_only(steps, said):
    of = World(steps=steps, fetch_ms=50).tables(goodput=False)
    told = input_words.verdict(input.analyze(of, facts_of({"chips": 4}), parse_options(input.OPTIONS, {}))).whole
    assert said in told and "40 % of" in told and "only" not in told


def test_one_is_one_in_notes(place):
    job = Job([Attempt(60, 1), Attempt(60)]).columns()
    run = made_runs.write(place.store, "one", {k: v for k, v in job.items() if k != "evidence"}, {"chips": 4})
    assert "1 step was taken again after a restart; it is not in the figures." in notes_of(run, "steps", place)
    run = made_runs.write(place.store, "replayed", {"pipeline": Pipelines(1, 1, steps=1).rows()}, {"chips": 1})
    assert any(n.startswith("1 step of 1 rank was replayed;") for n in notes_of(run, "slowdown", place))
    tables = World(steps=2).tables(goodput=False)
    asked = question("ledger")
    found = asked.analyze(tables, facts_of({"chips": 1, "chip": "TPU v5p"}), parse_options(asked.options, {}))
    assert "1 chip was stated, but the profile shows 4: counted as 4." in found.notes


def notes_of(run, name: str, place) -> tuple[str, ...]:
    return tuple(ask(question(name), run, {}, place.registry).notes)


def columns(job: World) -> dict:
    """What profiles of this job tell, as columns of tables."""
    told = job.tables(goodput=False)
    return {name: told.arrow(name).to_pydict() for name in SCHEMAS if told.rows(name)}


def test_a_host_that_marked_no_steps_leaves_those_of_the_others_told():
    tables = columns(World(executed_flops=3e12))
    marked = [k for k, host in enumerate(tables["steps"]["host"]) if host != "host 2"]
    tables["steps"] = {c: [values[k] for k in marked] for c, values in tables["steps"].items()}
    asked = question("mfu")
    facts, options = facts_of({"chip": "TPU v5p", "chips": 4}), parse_options(asked.options, {})
    found = asked.analyze(MemoryTables(tables), facts, options)
    assert found.mfu == pytest.approx(3e12 / 77e-3 / 459e12, rel=0.01)


def test_a_device_that_did_nothing_in_a_capture_without_an_end_took_no_step(place):
    runs = []
    for name, idle in (("all", None), ("one idle", 2)):
        tables = columns(World(steps=40, jitter_ms=1))
        del tables["captures"]["stop_ns"]
        events = tables["op_events"]
        kept = [k for k, capture in enumerate(events["capture"]) if capture != idle]
        tables["op_events"] = {c: [values[k] for k in kept] for c, values in events.items()}
        runs.append(made_runs.write(place.store, name, tables, {"chips": 4, "chip": "TPU v5p"}))
    assert Compared(*runs, place).verdict.startswith("No difference of a step between all and one idle")
