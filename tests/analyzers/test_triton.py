"""What Triton counts of any model: requests, failures, queue and computing, by model and without counting twice."""

import json

import pytest

from analyzers.serving import engine
from analyzers.serving import latency as serving
from analyzers.serving import objectives as slo
from analyzers.serving.triton import triton
from analyzers.serving.untimed import SINCE_START
from app.questions.latency import words
from collectors.ingest import ingest
from errors import QuestionError
from runs.store import Store
from tests.analyzers.load_tests import ask


def scrape(at: int, requests: int, failed: int = 0, models=("ensemble", "bert"), typed: bool = True) -> str:
    """Each request 80 ms, of which 30 ms in the queue; a step of the ensemble half of it; four of a batch."""
    lines = [f"# scraped_at {1_767_571_200 + at}"]
    for n, model in enumerate(models):
        who, part = f'{{model="{model}",version="1"}}', 1 if n == 0 else 2
        told = {
            "request_success": requests,
            "count": requests,
            "exec_count": requests // 4,
            "request_duration_us": 80_000 * requests // part,
            "queue_duration_us": 30_000 * requests // part,
            "compute_input_duration_us": 1_000 * requests // part,
            "compute_infer_duration_us": 45_000 * requests // part,
            "compute_output_duration_us": 4_000 * requests // part,
            "pending_request_count": 3,
        }
        lines += [f"# TYPE nv_inference_{k} counter" for k in told] * typed
        lines += [f"nv_inference_{k}{who} {v}" for k, v in told.items()]
        lines += [
            f'nv_inference_request_failure{{model="{model}",version="1",reason="{r}"}} {v}'
            for r, v in (("BACKEND", failed), ("OTHER", 1))
        ]
    lines += [f'nv_gpu_utilization{{gpu_uuid="GPU-{n}"}} {0.5 + 0.25 * n}' for n in range(2)]
    return "\n".join(lines) + "\n"


def stored(tmp_path, text: str):
    path = tmp_path / "triton.prom"
    path.write_text(text)
    store = Store(tmp_path / "store")
    return store.find(ingest([path], store).run_id)


def test_serving_answers_from_triton(tmp_path):
    run = stored(tmp_path, scrape(0, 100) + scrape(10, 500, failed=6))
    assert run.manifest.kind == "serving" and run.manifest.fact("engine") == "triton"
    assert any("requests, failures, queue and computing of each model" in w for w in run.manifest.warnings)
    result = ask(serving, run.tables)
    said = result.to_dict()
    assert (said["requests"], said["failed"], said["duration_s"]) == (406, 6, 10.0)
    assert said["request_rate_per_s"] == pytest.approx(40) and said["e2e_s"]["mean"] == pytest.approx(0.08)
    assert said["queue_s"]["mean"] == pytest.approx(0.03) and said["e2e_s"]["p99"] is None
    first, second = said["metrics"]["triton"]["models"]
    assert (first["name"], second["name"]) == ("ensemble", "bert") and second["e2e_s"] == pytest.approx(0.04)
    assert first["compute_s"] == pytest.approx(0.05) and (first["batch"], first["waiting"]) == (4, 3)
    assert said["metrics"]["triton"]["gpu_busy"] == pytest.approx(0.625)
    assert any("those of ensemble" in n for n in said["notes"])
    text = words.verdict(result)
    assert "400 requests to ensemble took 80.0 ms on average: 30.0 ms in the queue, 45.0 ms in the model" in text
    assert "6 requests failed" in text and any("bert: 400 requests" in r[0] for r in words.table(result).rows)
    json.dumps(said, allow_nan=False)


def test_one_scrape_tells_since_the_start(tmp_path):
    run = stored(tmp_path, scrape(0, 100, models=("bert",), typed=False).partition("\n")[2])
    told = triton(run.tables)
    assert (told.span_s, told.models[0].requests, told.models[0].failed) == (None, 100, 1)
    result = ask(serving, run.tables)
    assert result.load.request_rate_per_s is None and SINCE_START in result.notes
    assert "cannot" not in words.verdict(result)


def test_what_counters_do_not_tell_is_said(tmp_path):
    run = stored(tmp_path, scrape(0, 100) + scrape(10, 500))
    with pytest.raises(QuestionError, match="nothing of what ran at a time"):
        ask(engine, run.tables)
    with pytest.raises(QuestionError, match="single requests"):
        ask(slo, run.tables, ttft_s=1.0)


def test_counters_that_began_anew_and_servers_side_by_side(tmp_path):
    again = scrape(0, 100, models=("bert",)) + scrape(10, 500, models=("bert",)) + scrape(20, 40, models=("bert",))
    assert triton(stored(tmp_path, again).tables).models[0].requests == 440


def of_files(tmp_path, *texts: str):
    folder = tmp_path / "scrapes"
    folder.mkdir(parents=True)
    for n, text in enumerate(texts):
        (folder / f"{n}.prom").write_text(text)
    store = Store(tmp_path / "store")
    told = triton(store.find(ingest([folder], store).run_id).tables)
    assert told is not None
    return told


def at(second: int, requests: int) -> str:
    return scrape(second, requests, models=("bert",))


def untimed(text: str) -> str:
    return text.partition("\n")[2]


def test_files_of_one_server_are_what_it_counted_from_the_first_to_the_last(tmp_path):
    """What each had counted since its start was added up, and what lay between two files was lost."""
    told = of_files(tmp_path / "one", at(600, 1500), at(0, 1000))
    assert (told.models[0].requests, told.span_s, told.since_start) == (500, 600, False)
    told = of_files(tmp_path / "two", at(0, 1000) + at(10, 1500), at(20, 2000) + at(30, 2500))
    assert (told.models[0].requests, told.span_s) == (1500, 30)
    told = of_files(tmp_path / "untimed", untimed(at(9, 1500)), untimed(at(0, 1000)))
    assert (told.models[0].requests, told.span_s, told.since_start) == (500, None, False)


def test_files_of_other_gpus_are_of_other_servers(tmp_path):
    other = at(600, 1500).replace("GPU-", "GPU-of-another-")
    for name, texts in {"timed": (at(0, 1000), other), "not": (untimed(at(0, 1000)), untimed(other))}.items():
        told = of_files(tmp_path / name, *texts)
        assert told.since_start and told.models[0].requests == 2500


def test_servers_side_by_side_wait_together_and_one_that_was_scraped_once_is_left_out(tmp_path):
    told = of_files(tmp_path, at(0, 100) + at(10, 500), at(1, 100) + at(11, 500), at(5, 9000))
    assert (told.models[0].requests, told.models[0].waiting) == (800, 9)
    assert any("2.prom" in note and "left out" in note for note in told.notes)


def test_all_counters_begin_anew_with_one(tmp_path):
    """After the restart 60 requests waited for half a second each: longer in all than the 500 before."""
    queue = 'queue_duration_us{model="bert",version="1"}'
    slow = at(20, 60).replace(f"{queue} 1800000", f"{queue} 30000000")
    told = of_files(tmp_path, at(0, 100) + at(10, 500) + slow)
    assert told.models[0].requests == 460
    assert told.models[0].queue_s == pytest.approx((400 * 0.03 + 60 * 0.5) / 460)
    assert any("began anew once" in note for note in told.notes)


def test_quantiles_of_summaries_fall_and_begin_nothing_anew(tmp_path):
    def with_summary(text: str, us: int, requests: int) -> str:
        name = "nv_inference_request_summary_us"
        return (
            f'{text}{name}{{model="ensemble",version="1",quantile="0.5"}} {us}\n'
            f'{name}_count{{model="ensemble",version="1"}} {requests}\n'
        )

    each = [(0, 100, 80_500), (10, 200, 79_500), (20, 300, 81_000), (30, 500, 78_000)]
    run = stored(tmp_path, "".join(with_summary(scrape(at, n), us, n) for at, n, us in each))
    said = ask(serving, run.tables).to_dict()
    assert said["requests"] == 400 and said["request_rate_per_s"] == pytest.approx(400 / 30)
    assert not any("anew" in note for note in said["notes"])
    first, second = (untimed(with_summary(scrape(at, n), us, n)) for at, n, us in (each[0], each[3]))
    told = of_files(tmp_path / "two", first, second)  # nor do they keep two files of one server apart
    assert told.models[0].requests == 400 and not told.since_start
