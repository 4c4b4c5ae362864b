"""Two jobs compared: the command and its gates, the page, the API's answer, and steps whose accounts sum to them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from analyzers.difference import Side, difference
from analyzers.difference.step_time import FLOOR, settled, step_times
from analyzers.flops.executed import Extra
from analyzers.time.step_accounts import _may_be, step_accounts
from app.cli import main
from app.comparing import job_words
from app.comparing.answer import Compared
from app.comparing.gates import FAILED, NOT_TOLD, PASSED, gate
from app.comparing.sides import compare_jobs
from app.mcp.calling import call
from app.mcp.tools import tool
from app.pages.compare.jobs_figure import by_account, pale
from collectors.ingest import ingest
from errors import QuestionError
from tests.app.made_runs import step_columns, write
from tests.app.serving import get, serving
from tests.app.test_pages import opened, words
from tests.bundled import RUNS, bundled

PAGE = "pages/compare/page.py"
ODD = "b <img src=x onerror=alert(1)> *x*"


def job(store, name, step_s=1.0, steps=120, seed=1, **facts):
    """A job whose steps scatter by 1 %."""
    took = (step_s * 1e9 * (1 + 0.01 * np.random.default_rng(seed).normal(size=steps))).astype(int)
    return write(store, name, {"steps": step_columns(took)}, {"chip": "TPU v5p", "chips": 4, **facts})


@pytest.fixture
def two(place):
    return job(place.store, "a", batch=8), job(place.store, ODD, 1.06, seed=2, batch=16)


def test_the_command_tells_the_change_its_range_and_what_was_changed(two, capsys):
    assert main(["compare", "a", two[1].run_id, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    step = told["step_time"]
    assert told["told"] and step["low"] < 0.06 < step["high"] and abs(step["change"] - 0.06) < 0.01
    assert told["differs"] == [{"name": "batch", "a": 8, "b": 16}]
    assert told["ledger"] == [] and told["explained_share"] is None and "no profile" in told["why"][0]
    assert main(["compare", "a", two[1].run_id]) == 0
    said = capsys.readouterr().out
    assert "% slower a step than a (" in said and "They differ in batch (8, then 16)." in said


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["step_time>+1%"], 3),
        (["step_time>+10%"], 0),
        (["step_time<-1%"], 0),
        (["input_wait>+1%"], 4),
        (["step_time>+10%", "step_time>5%"], 3),
        (["step_time>+10%", "padding>0%"], 4),
    ],
)
def test_a_gate_ends_with_what_it_found(two, capsys, gates, code):
    flags = [part for g in gates for part in ("--fail-if", g)]
    assert main(["compare", "a", two[1].run_id, *flags, "--json"]) == code
    told = json.loads(capsys.readouterr().out)["gates"]
    assert [g["gate"] for g in told] == gates


def test_a_gate_passes_only_where_a_change_of_its_size_could_have_been_seen(place):
    quiet, loud = (job(place.store, f"n{n}", steps=n, seed=n) for n in (400, 22))
    same = compare_jobs(quiet, job(place.store, "again", steps=400, seed=9), place)
    assert gate("step_time>+1%").judge(same) == PASSED
    few = compare_jobs(quiet, loud, place)
    assert not few.told and gate("step_time>+0.1%").judge(few) == NOT_TOLD
    slower = compare_jobs(quiet, job(place.store, "slower", 1.2, steps=400, seed=5), place)
    assert gate("step_time>+1%").judge(slower) == FAILED and gate("step_time>+50%").judge(slower) == PASSED


@pytest.mark.parametrize(
    "text", ["", "step_time", "step_time>1%%", "steptime>1%", "step_time>1e9", "step_time=1%", "x" * 9999]
)
def test_what_is_no_gate_is_refused(two, capsys, text):
    assert main(["compare", "a", two[1].run_id, "--fail-if", text]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_cannot_be_compared_is_said(place, two, capsys):
    assert main(["compare", "a", "a"]) == 2
    assert "is both runs" in capsys.readouterr().err
    stepless = write(place.store, "stepless", {}, {"chip": "TPU v5p"})
    with pytest.raises(QuestionError, match="cannot be compared"):
        compare_jobs(two[0], stepless, place)
    short = compare_jobs(two[0], job(place.store, "short", steps=3), place)
    assert not short.told and "too few" in short.step.why
    assert job_words.verdict(short).startswith("Whether a step of short takes longer than one of a cannot be told")


def test_the_page_tells_what_the_command_tells(place, two):
    at = opened(PAGE, run=two[0].run_id, **{"with": two[1].run_id})
    assert not at.exception
    assert job_words.verdict(compare_jobs(*two, place)) in words(at)
    assert "Choose B" in words(opened(PAGE, run=two[0].run_id))


def test_the_api_and_agents_are_told_the_same(place, two):
    with serving(place.store.root) as address:
        code, told = get(f"{address}/api/compare?a=a&b={two[1].run_id}")
        assert code == 200, told
        assert told["told"] and told["verdict"].startswith(ODD[:10])
        assert get(f"{address}/api/compare?a=a")[0] == 400
        assert get(f"{address}/api/compare?a=a&b=nobody")[0] == 404
        assert get(f"{address}/api/compare?a=a&b=a&c=1")[0] == 400
        code, told = get(f"{address}/api/compare?a=a&whatif=same")
        assert code == 400 and "model" in told["error"], told
        assert get(f"{address}/api/compare?a=nobody&whatif=same")[0] == 404
        for odd in ("whatif=same", "a=a&b=a&whatif=same", "a=a&load_a=x&whatif=same"):
            assert get(f"{address}/api/compare?{odd}")[0] == 400, odd
    assert json.loads(call(tool("compare"), {"a": "a", "b": two[1].run_id}, place))["answer"]["told"]


def test_accounts_of_bundled_steps_sum_to_them_and_to_the_ledger(tmp_path_factory):
    run = bundled(tmp_path_factory, "pytorch")
    times = step_times(run.tables, run.manifest.facts)
    every, some = (step_accounts(run.tables, run.manifest.facts, only) for only in (None, times.step[:5]))
    assert some.steps.sum() == 5 and every.steps.sum() >= len(times.step)
    rows = run.tables.arrow("steps", ["step", "dur_ns", "capture"]).to_pandas().dropna()
    took = rows[rows["step"].isin(times.step[:5])]["dur_ns"].mean() / 1e9
    assert sum(some.mean.values()) == pytest.approx(took, rel=1e-6)
    assert (every.seconds >= 0).all().all()


def test_the_trace_of_one_rank_of_a_job_fails_and_passes_no_gate_on_what_ranks_wait(place, tmp_path):
    alone = tmp_path / "alone"
    shutil.copytree(RUNS / "pytorch", alone, ignore=shutil.ignore_patterns("rank-1*"))
    whole, one = (place.store.get(ingest([p], place.store).run_id) for p in (RUNS / "pytorch", alone))
    told = step_accounts(one.tables, one.manifest.facts)
    assert told.may_be["exposed_communication"] == pytest.approx(told.mean["unattributed"])
    assert told.may_be["padding"] == pytest.approx(told.mean["below_roofline"]), "no trace of PyTorch tells it"
    for a, b in ((whole, one), (one, whole)):
        sides = Compared(a, b, place).sides
        for name in ("exposed_communication", "straggler_wait", "padding", "recomputation"):
            assert gate(f"{name}>+1%").look(sides).outcome == NOT_TOLD, name


def test_the_trace_of_devices_alone_beside_one_with_hosts_makes_no_host_slow(tmp_path_factory):
    run = bundled(tmp_path_factory, "pytorch")
    hosts = step_accounts(run.tables, run.manifest.facts)
    idle = {n: s for n, s in hosts.seconds.items() if n.startswith("idle_") or n == "input_wait"}
    rows = hosts.seconds.drop(columns=list(idle)).assign(device_idle=sum(idle.values()))
    extra = Extra(untold=("recomputation", "padding"))
    none = {"compute_unsplit": 0.0, "communication_or_wait": 0.0}
    alone = replace(hosts, seconds=rows, may_be=_may_be(none, extra, replace(hosts, seconds=rows).mean))
    assert hosts.may_be["device_idle"] == pytest.approx(alone.mean["device_idle"]) == alone.may_be["idle_host_code"]
    assert alone.may_be["input_wait"] == alone.may_be["compilation"] == alone.may_be["idle_host_code"]
    took = settled(np.arange(100), 1 + 0.001 * np.arange(100) % 0.004, np.zeros(100, bool), np.zeros(100, bool))
    sides = [
        Side(name=name, kind="training", facts={}, steps=replace(took, seconds=took.seconds * times), profiled=of)
        for name, times, of in (("alone", 1.0, alone), ("hosts", 1.1, hosts))
    ]
    for a, b in (sides, sides[::-1]):
        found = difference(a, b, FLOOR)
        assert found.told and found.makers == () and "on the host" not in job_words.verdict(found).whole
        for name in ("idle_host_code", "input_wait", "device_idle"):
            assert gate(f"{name}>+1%").judge(found) == NOT_TOLD, name
        bar = by_account(found).data[0]
        said = dict(zip(bar.y, bar.hovertext, strict=True))
        assert set(bar.marker.opacity) == {0.4} and "may be chance" in said["Input wait"]
        assert all("one of them tells less of it" in said[title] for title in ("Device idle", "Launching"))
        assert pale(found).endswith("or one of the two tells less of them.")


def test_compiled_programs_differ_by_account_and_nearly_all_of_their_time_is_matched(place):
    given = (RUNS / f"compiled-llama3.1-8b-{chip}" for chip in ("v5p", "v6e"))
    a, b = (place.store.get(ingest([folder], place.store).run_id) for folder in given)
    found = compare_jobs(a, b, place)
    assert found.told and found.explained_share == pytest.approx(1.0) and found.matched_share > 0.99
    assert found.makers[0].account == "useful_maths"
    assert found.step.a / found.step.b > 1.5
