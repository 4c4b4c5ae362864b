"""Objectives where nobody kept single requests, or only a sample of them: ranges, and whose requests they are of."""

import json

import pytest

from analyzers.serving import objectives as slo
from app.pages.all import pages_of
from app.questions.objectives import words as said
from collectors.ingest import ingest
from tests.analyzers.load_tests import ask
from tests.analyzers.test_triton import scrape
from tests.app import made_runs
from tests.app.commands import out
from tests.app.metrics_server import exposition
from tests.app.test_pages import opened, words

PAGE = "questions/objectives/page.py"
S = 1_000_000_000
START_NS = 1_767_571_200 * S


@pytest.fixture
def scraped(place, tmp_path):
    """100 requests between two scrapes, 50 of them within 0.1 s, all within 1 s."""
    path = tmp_path / "metrics.prom"
    path.write_text("".join(f"# scraped_at {1_767_571_300 + at}\n{exposition(n)}" for at, n in ((0, 100), (10, 200))))
    return place.store.find(ingest([path], place.store).run_id)


def test_the_page_opens_with_a_suggestion_and_tells_ranges(place, scraped):
    at = opened(PAGE, run=scraped.run_id)
    assert not at.exception and not at.warning and "These are a suggestion" in words(at)
    assert "100 % of 100 requests kept TTFT within 1.00 s, by the server's own histograms" in words(at)
    at = opened(PAGE, run=scraped.run_id, ttft_s="0.5")
    assert not at.exception and "Between 50 % and 100 % of 100 requests" in words(at)
    assert at.metric[0].value == "50.0 % to 100 %" and "unknown" not in at.metric[3].value
    assert "objectives" in {p.name for p in pages_of(scraped)}


def test_the_latency_page_tells_what_the_histograms_do(place, scraped):
    at = opened("questions/latency/page.py", run=scraped.run_id)
    first = next(m for m in at.metric if m.label.startswith("TTFT"))
    assert not at.exception and first.value == "10.0 ms to 100 ms · 100 ms to 1.00 s"


def test_the_command_line_tells_at_least_and_at_most(place, scraped, capsys):
    code, text, _ = out(capsys, "show", scraped.run_id, "slo", "--option", "ttft_s=0.5", "--json")
    told = json.loads(text)
    assert code == 0 and (told["attainment"], told["attainment_high"], told["requests"]) == (0.5, 1.0, 100)
    assert (told["attainment_of_each"], told["attainment_of_each_high"]) == ({"ttft_s": 0.5}, {"ttft_s": 1.0})
    code, text, _ = out(capsys, "show", scraped.run_id, "slo", "--option", "ttft_s=0.5")
    assert code == 0 and "at most" in text and "50.0 %" in text and "100 %" in text


def test_histograms_answer_where_a_load_test_printed_its_summary_alone(place, scraped):
    tables = {t: scraped.tables.arrow(t).to_pydict() for t in ("histograms", "engine", "scalars")}
    tables["stages"] = {"stage": ["one"], "tool": ["vllm_bench"], "order": [0], "completed": [100], "source": ["a"]}
    run = made_runs.write(place.store, "both", tables, {}, kind="serving")
    result = ask(slo, run.tables, ttft_s=0.5)
    assert (result.attainment, result.attainment_high) == (0.5, 1.0)
    assert not opened(PAGE, run=run.run_id, ttft_s="0.5").exception


def test_the_page_of_latency_opens_for_triton(place, tmp_path):
    path = tmp_path / "triton.prom"
    path.write_text(scrape(0, 100) + scrape(10, 500))
    run = place.store.find(ingest([path], place.store).run_id)
    assert "latency" in {p.name for p in pages_of(run)}
    at = opened("questions/latency/page.py", run=run.run_id)
    assert not at.exception and "400 requests to ensemble took 80.0 ms on average" in words(at)


def sampled(loads: list[tuple[str, int, int]]) -> dict:
    """Loads of (name, requests that the tool counts, good ones of four kept), each of 100 s."""
    arrival = [START_NS + (1000 * n + i) * S for n in range(len(loads)) for i in range(4)]
    late = [i >= good for _, _, good in loads for i in range(4)]
    return {
        "stages": {
            "stage": [n for n, *_ in loads],
            "tool": ["guidellm"] * len(loads),
            "order": [*range(len(loads))],
            "completed": [c for _, c, _ in loads],
            "failed": [0] * len(loads),
            "duration_s": [100.0] * len(loads),
            "source": ["a"] * len(loads),
        },
        "requests": {
            "stage": [n for n, *_ in loads for _ in range(4)],
            "id": [f"r{i}" for i in range(len(arrival))],
            "arrival_ns": arrival,
            "ttft_ns": [2 * S if x else S // 10 for x in late],
            "e2e_ns": [3 * S] * len(arrival),
            "status": ["completed"] * len(arrival),
            "output_tokens": [10] * len(arrival),
        },
    }


def test_of_a_sample_the_kept_are_judged_and_rates_are_for_all(place):
    run = made_runs.write(place.store, "sampled", sampled([("a", 400, 3)]), {}, kind="serving")
    result = ask(slo, run.tables, ttft_s=0.5)
    assert (result.attainment, result.judged, result.load.requests) == (0.75, 4, 400)
    assert result.goodput_per_s == pytest.approx(3.0) and result.best_goodput_per_s == pytest.approx(4.0)
    assert any("counts 400 requests and keeps 4" in n for n in result.notes)
    assert said.verdict(result).startswith("75 % of 4 requests, a sample of 400, kept TTFT")
    assert said.table(result).rows[0][2:] == ("75.0 %", "3") and said.table(result).head[2] == "share of kept"
    assert result.to_dict()["requests_judged"] == 4
    assert "Every request that is kept" in words(opened(PAGE, run=run.run_id, ttft_s="0.5"))


def test_of_several_sampled_loads_each_weighs_by_what_its_tool_counted(place):
    run = made_runs.write(place.store, "two", sampled([("a", 400, 4), ("b", 100, 0)]), {}, kind="serving")
    result = ask(slo, run.tables, ttft_s=0.5)
    assert (result.judged, result.load.requests, result.load.duration_s) == (8, 500, 200.0)
    assert result.goodput_per_s == pytest.approx(2.0) and result.best_goodput_per_s == pytest.approx(2.5)
    only = ask(slo, run.tables, ttft_s=0.5, stage="b")
    assert only.goodput_per_s == 0 and only.load.requests == 100
