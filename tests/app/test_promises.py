"""Promises and receipts, on real runs of which it is known what was planted in them and what that cost."""

import json
import shutil
from pathlib import Path

import pytest

from app import promises
from app.cli import main
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.workspace import workspace
from errors import QuestionError
from tests.benchmarks.test_diagnosis_cases import SELECTION

JOB = "small model"
README = Path(__file__).parents[2] / "README.md"


def planted(case):
    """What was planted, as shares of the chip time."""
    said = json.loads((SELECTION / "truth" / f"{case}.json").read_text())
    return {c["cause"]: c["chip_seconds"] / said["chip_seconds"] for c in said["causes"]}


@pytest.fixture
def store(tmp_path):
    """A store, and how a case of the selection comes into it: under one name for all, with facts replaced."""
    place = workspace(str(tmp_path / "store"))

    def take(case, name=JOB, **facts):
        folder = tmp_path / f"{case} {name[:8]} {len(facts)}"
        shutil.copytree(SELECTION / "cases" / case, folder)
        said = json.loads((folder / "chipledger.json").read_text())
        (folder / "chipledger.json").write_text(json.dumps({**said, "name": name, **facts}))
        assert main(["--store", str(place.store.root), "ingest", str(folder)]) == 0
        return max(place.store.runs(), key=lambda run: run.manifest.created_ns)

    return place, take


def keep(place, run, *causes):
    result = ask(FINDINGS, run, {}, place.registry)
    mine = [f for f in result.findings if f.gain and (not causes or f.cause in causes)]
    promises.promise(run, result, mine, place)
    return result


def test_what_was_mended_is_credited_and_what_else_happened_is_not(store):
    """Garbage is collected no more; the later run is held up by a loader and slower steps instead, for as long."""
    place, take = store
    before = take("case-006")
    result = keep(place, before, "garbage_collection")
    after = take("case-008")
    (kept,) = promises.promises_about(before, place)
    truth = planted("case-006")["garbage_collection"]
    assert kept.state == promises.KEPT and kept.receipt.by == "accounts"
    assert kept.receipt.gave == pytest.approx(truth, rel=0.1)
    assert kept.receipt.gave == pytest.approx(result.findings[0].likely / result.whole, rel=0.1)
    assert kept.receipt.within and kept.still_there is False
    assert kept.receipt.whole < 0.2 * kept.receipt.gave  # all in all little was won
    assert kept.sentence.startswith("said 5") and ", gave 5" in kept.sentence
    assert [k.promise.id for k in promises.promises_about(after, place)] == [kept.promise.id]
    done = promises.record([kept])
    assert (done.kept, done.within, done.pending) == (1, 1, 0) and done.ratio == pytest.approx(1, rel=0.1)


def test_two_promises_of_one_run_are_each_held_against_their_own_accounts(store):
    place, take = store
    before = take("case-008")
    keep(place, before)
    take("case-045")
    kept = {k.promise.cause: k for k in promises.promises_about(before, place)}
    told = {cause: k.receipt for cause, k in kept.items()}
    truth = planted("case-008")
    assert told["loader_stalls"].gave == pytest.approx(truth["loader_spikes"], rel=0.15)
    assert told["step_change"].gave == pytest.approx(truth["step_up"], rel=0.15)
    sentence = kept["loader_stalls"].sentence.rstrip(".")
    assert sentence == "said 44.0 %, gave 44.2 %"
    assert sentence in README.read_text()


def test_nothing_is_credited_where_the_same_happens_again(store):
    place, take = store
    before = take("case-000")
    result = ask(FINDINGS, take("case-006", name="another"), {}, place.registry)
    promises.promise(before, result, result.findings[:1], place)
    take("case-006")
    (kept,) = promises.promises_about(before, place)
    assert kept.receipt.gave < 0 and not kept.receipt.within and kept.still_there
    assert "gave −" in kept.sentence and "still found there" in kept.sentence


@pytest.mark.parametrize(
    ("facts", "why"), [({"precision": "bfloat16"}, "precision was float32 and is bfloat16"), ({"chips": 4}, "chips")]
)
def test_other_work_is_no_receipt(store, facts, why):
    place, take = store
    before = take("case-006")
    keep(place, before)
    take("case-008", **facts)
    (kept,) = promises.promises_about(before, place)
    assert kept.state == promises.NOT_TOLD and why in kept.sentence


def test_an_earlier_run_and_one_of_another_name_answer_nothing(store):
    place, take = store
    before = take("case-006")
    keep(place, before)
    take("case-000")  # which ran before it
    take("case-008", name="another job")
    (kept,) = promises.promises_about(before, place)
    assert kept.state == promises.PENDING and "no later run" in kept.sentence
    assert promises.record([kept]).sentence == "1 promise waits for a later run."


def test_the_newest_later_run_answers_and_a_removed_one_answers_no_more(store):
    place, take = store
    before = take("case-006")
    keep(place, before)
    take("case-008")
    newest = take("case-045")
    (kept,) = promises.promises_about(before, place)
    assert kept.later.run_id == newest.run_id and kept.later_runs == 2
    place.store.remove(newest.run_id)
    place.store.remove(before.run_id)
    (kept,) = promises.outcomes(promises.book(place).standing(), place)
    assert kept.state == promises.NOT_TOLD and "no longer in the store" in kept.sentence


def test_the_next_snapshot_of_a_live_run_answers_nothing_and_takes_its_promises_over(store):
    place, take = store
    first = take("case-006")
    place.registry.stand_for(first.run_id, "live:night")
    keep(place, first)
    second = take("case-008")
    place.registry.stand_for(second.run_id, "live:night")
    place.store.remove(first.run_id)
    (kept,) = promises.promises_about(second, place)
    assert kept.state == promises.PENDING and kept.before.run_id == second.run_id


def test_the_same_promise_is_kept_once_and_can_be_withdrawn(store, capsys):
    place, take = store
    before = take("case-006", name="<img src=x onerror=alert(1)>")
    root = ["--store", str(place.store.root)]
    for _ in range(2):
        assert main([*root, "promise", before.run_id, "--keep", "all", "--part", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    (one,) = promises.book(place).standing()
    result = ask(FINDINGS, before, {}, place.registry)
    assert one.likely_share == pytest.approx(result.findings[0].likely / result.whole / 2)
    assert main([*root, "promise", "--withdraw", str(one.id), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["promises"] == []
    assert main([*root, "promise", "--withdraw", str(one.id)]) == 2
    assert "no promise" in capsys.readouterr().err


def test_a_promise_of_another_part_takes_the_place_of_the_one_before(store, capsys):
    place, take = store
    before = take("case-006")
    root = ["--store", str(place.store.root)]
    result = ask(FINDINGS, before, {}, place.registry)
    whole = result.findings[0].likely / result.whole
    numbers = []
    for part in ("1", "0.5", "0.5"):
        assert main([*root, "promise", before.run_id, "--keep", "all", "--part", part]) == 0
        (one,) = promises.book(place).standing()
        assert one.likely_share == pytest.approx(float(part) * whole)
        numbers.append(one.id)
    assert numbers[0] < numbers[1] == numbers[2]
    assert main([*root, "promise", before.run_id, "--keep", "all", "--part", "0"]) == 2
    assert "a share above 0 and up to 1" in capsys.readouterr().err


def test_what_is_not_found_cannot_be_promised(store, capsys):
    place, take = store
    run = take("case-000")
    root = ["--store", str(place.store.root)]
    for args in (["promise", run.run_id, "--keep", "slow_rank"], ["promise", "--keep", "all"]):
        assert main([*root, *args]) == 2
        assert capsys.readouterr().err.startswith("error: ")
    with pytest.raises(QuestionError, match="no promise"):
        promises.book(place).withdraw(1 << 40)


def test_a_registry_of_an_earlier_version_gets_the_table(tmp_path):
    from runs.promise_book import PromiseBook
    from runs.registry import Registry

    Registry(tmp_path / "registry.db").tag("a" * 12, "k", "v")
    assert PromiseBook(Path(tmp_path / "registry.db")).standing() == []
