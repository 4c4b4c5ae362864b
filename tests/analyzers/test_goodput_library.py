"""Our rules of the library's name against the library itself, on random logs; and what they make of odd ones."""

import logging
from datetime import timedelta

import numpy as np
import pytest

from analyzers.lost import goodput
from analyzers.lost.goodput.entries import entries
from analyzers.lost.goodput.ml_goodput import by_library
from analyzers.lost.goodput.query import query
from collectors.ingest import ingest
from errors import QuestionError
from runs.store import Store
from tests.analyzers.goodput_logs import START_S, Log, random_log
from tests.analyzers.library import Library, installed

needs_library = pytest.mark.skipif(not installed(), reason="ml-goodput-measurement is not installed (extra `bench`)")
SEEDS = 60


def run_of(log, folder):
    (folder / "entries.jsonl").write_text(log.lines())
    store = Store(folder / "store")
    return store.get(ingest([folder / "entries.jsonl"], store).run_id)


def same(ours, theirs, where):
    """Every number that the library gives, within 1e-6 of its size (at least of 1)."""
    for name, value in theirs.items():
        name = name.name.lower() if hasattr(name, "name") else name
        if isinstance(value, dict):
            same(ours.get(name, {}), value, f"{where} {name}")
        else:
            assert ours[name] == pytest.approx(value, rel=1e-6, abs=1e-6), f"{where} {name}"


def percent(shares):
    return {k: percent(v) if isinstance(v, dict) else 100 * v for k, v in shares.items()}


def both(ours, theirs, compare):
    """Either both give numbers, which are compared, or both give an error."""
    try:
        answer = ours()
    except QuestionError as e:
        answer = e
    try:
        expected = theirs()
    except ValueError as e:
        assert isinstance(answer, QuestionError), e
        return
    assert not isinstance(answer, QuestionError), answer
    compare(answer, expected)


def cumulative(answer, expected):
    share, badput, details = expected
    where = "cumulative"
    same({"share": 100 * answer.goodput_share}, {"share": share}, where)
    same(percent(answer.badput_share), badput, where)
    same(answer.badput_s, details["badput_time"], where)
    same(
        {
            "productive": answer.productive_s,
            "total": answer.total_s,
            "step": answer.max_step,
            "disruptions": answer.disruptions,
            "ideal": answer.ideal_step_s,
        },
        {
            "productive": next(iter(details["goodput_time"].values())),
            "total": details["total_elapsed_time"],
            "step": details["max_productive_step"],
            "disruptions": details["disruption_count"],
            "ideal": details["ideal_step_time"],
        },
        where,
    )
    deviation = details["step_time_deviation"]
    assert answer.steps["step"].tolist() == list(deviation)
    assert answer.steps["deviation_s"].tolist() == pytest.approx(list(deviation.values()), abs=1e-6)
    efficiency(answer, details, where)


def efficiency(answer, details, where):
    if "stepping_slice_efficiency" in details:
        same(
            {"stepping": answer.slice_efficiency.stepping, "available": answer.slice_efficiency.available},
            {"stepping": details["stepping_slice_efficiency"], "available": details["available_slice_efficiency"]},
            where,
        )


def window(answer, expected):
    share, badput, step, total, disruptions = expected
    same(
        {
            "share": 100 * answer.goodput_share,
            "step": answer.max_step,
            "total": answer.total_s,
            "disruptions": answer.disruptions,
        },
        {"share": share, "step": step, "total": total, "disruptions": disruptions},
        "window",
    )
    same(percent(answer.badput_share), badput, "window")


def excluding(answer, expected):
    (share, badput, step, left_out), details = expected
    same(
        {"share": 100 * answer.goodput_share, "step": answer.max_step, "excluded": answer.excluded_s},
        {"share": share, "step": step, "excluded": left_out},
        "excluding",
    )
    same(percent(answer.badput_share), badput, "excluding")
    same(answer.badput_s, details["badput_time"], "excluding")
    assert (answer.ideal_step_s or 0.0) == pytest.approx(details["ideal_step_time"], abs=1e-6)
    same(
        dict(zip(answer.steps["step"].tolist(), answer.steps["deviation_s"].tolist(), strict=True)),
        details["step_time_deviation"],
        "excluding",
    )


@needs_library
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_number_of_the_library_on_a_random_log(seed, tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    log = random_log(seed)
    written, told = log.written(), entries(run_of(log, tmp_path).tables)
    first, now = written[0][0], written[-1][0] + timedelta(seconds=5)
    library = Library(written, now, tmp_path)
    span = (now - first).total_seconds()
    rng = np.random.default_rng(seed + 1_000_000)

    def at(parts):
        return [first + timedelta(seconds=float(p)) for p in parts * span]

    def ours(**options):
        return lambda: by_library(told, query({"now": now.isoformat(), **options}))

    both(ours(), library.cumulative, cumulative)
    for start, end in (at(np.sort(rng.uniform(-0.1, 1.1, 2))) for _ in range(3)):
        options = {"start": start.isoformat(), "end": end.isoformat()}
        both(ours(**options), lambda a=start, b=end: library.window(a, b), window)
        both(
            ours(**options),
            lambda a=start, b=end: (library.window(a, b), library.slices(a, b))[1],
            lambda answer, details: efficiency(answer, details, "window"),
        )
    times = [tuple(at(rng.uniform(-0.1, 1.1, 2))) for _ in range(3)]
    text = ",".join(f"{a.isoformat()}/{b.isoformat()}" for a, b in times)
    both(ours(exclude=text), lambda: library.excluding(times), excluding)


def plain(**more):
    log = Log()
    log.add(START_S, job_start_time=START_S)
    for i in range(10):
        log.add(START_S + 5 + 2 * i, step_count=i, step_start_time=START_S + 5 + 2 * i)
    log.add(START_S + 25, job_end_time=START_S + 25, **more)
    return log


def ask(log, folder, **options):
    run = run_of(log, folder)
    return goodput.analyze(run.tables, run.manifest.facts, {"rules": "ml-goodput", **options})


def test_a_save_without_a_duration_stops_the_library_and_only_is_named_here(tmp_path):
    log = plain()
    log.save(4, START_S + 14, None)
    log.save(6, START_S + 18, 1.0)
    result = ask(log, tmp_path)
    assert result.badput_s["unproductive_checkpoint_save_time"] == 1.0
    assert any("1 checkpoint entry lacks a duration" in note for note in result.notes)


@needs_library
def test_the_library_itself_stops_there(tmp_path):
    log = plain()
    log.save(4, START_S + 14, None)
    with pytest.raises(TypeError):
        Library(log.written(), log.written()[-1][0], tmp_path).cumulative()


def test_saves_of_one_step_are_averaged_there_and_their_union_here(tmp_path):
    log = plain()
    log.save(4, START_S + 15, 1.0)
    log.save(4, START_S + 16, 2.0)
    result = ask(log, tmp_path)
    assert result.badput_s["unproductive_checkpoint_save_time"] == pytest.approx(1.5)
    run = run_of(log, tmp_path)
    exact = goodput.analyze(run.tables, {}, {})
    assert exact.badput_s["unproductive_checkpoint_save_time"] == pytest.approx(3.0)
    assert any("averages them" in text for text in exact.differences)


def test_where_the_library_has_no_answer_it_is_said_and_the_exact_rules_still_have_one(tmp_path):
    log = Log()
    for i in range(4):
        log.add(START_S + 2 * i, step_count=i, step_start_time=START_S + 2 * i)
    with pytest.raises(QuestionError, match="no start of the job"):
        ask(log, tmp_path)
    run = run_of(log, tmp_path)
    exact = goodput.analyze(run.tables, {}, {})
    assert exact.productive_s == 6
    assert any("there is no answer" in text for text in exact.differences)


def test_more_productive_time_than_there_was_is_told_as_such(tmp_path):
    log = Log()
    log.add(START_S + 100, job_start_time=START_S + 100)
    for i in range(60):
        log.add(START_S + 2 * i, step_count=i, step_start_time=START_S + 2 * i)
    log.add(START_S + 125, job_end_time=START_S + 125)
    with pytest.raises(QuestionError, match="125.000 s productive of 25.000 s"):
        ask(log, tmp_path)


def test_excluded_times_in_a_window_are_none_of_its_questions(tmp_path):
    with pytest.raises(QuestionError, match="no times out of a window"):
        ask(plain(), tmp_path, window_s=10.0, exclude="2026-01-05T00:00:00Z/2026-01-05T00:00:05Z")


def test_one_attempt_is_asked_as_if_it_were_the_whole_log(tmp_path):
    log = plain()
    log.add(START_S + 100, job_start_time=START_S + 100)
    log.add(START_S + 103, step_count=10, step_start_time=START_S + 103)
    log.add(START_S + 105, job_end_time=START_S + 105)
    assert ask(log, tmp_path, attempt=0).total_s == 25
    assert ask(log, tmp_path, attempt=1).productive_s == 2
    with pytest.raises(QuestionError, match="no attempt 2 here; expected 0 to 1"):
        ask(log, tmp_path, attempt=2)
