"""Scrapes of /metrics from beside the project, with the figures that they print."""

from pathlib import Path

import pytest

from analyzers.serving import engine
from analyzers.serving import latency as serving
from analyzers.serving import objectives as slo
from analyzers.serving import prefix_cache as prefix
from collectors.ingest import ingest
from collectors.serving import prometheus, prometheus_json
from errors.options import parse_options
from runs.store import Store
from tests.collectors.reading import read, source_of
from tests.collectors.test_prometheus_json import answer, exported, made_of, printed

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
SGLANG = SHARED / "more" / "corrections" / "inferencex" / "sglang_metrics_doc_llama31_8b.txt"


@pytest.mark.skipif(not SGLANG.exists(), reason="no scrape of SGLang beside the project")
def test_sglang_s_own_example(tmp_path):
    text = tmp_path / "metrics.prom"
    labels = 'cluster="eu",prometheus_replica="p-0",priority="",model_name='
    text.write_text(SGLANG.read_text().replace("model_name=", labels))
    for number, file in enumerate((SGLANG, text)):
        store = Store(tmp_path / str(number))
        run = store.find(ingest([file], store, name="sglang").run_id)

        def asked(question, run=run, **options):
            return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))

        figures = asked(engine).figures
        assert (figures["running"]["mean"], figures["waiting"]["mean"]) == (162, 2826)
        assert figures["kv_usage"]["mean"] == 0.28
        assert asked(prefix).measured.hit_rate == pytest.approx(0.0075, abs=1e-4)
        told = asked(serving).exposed.latencies["ttft_s"]
        assert told.observations == 11_008 and told.mean == pytest.approx(2351897.947 / 11008)
        assert (told.quantile(0.5).low, told.quantile(0.5).high) == (30.0, None)
        assert asked(slo, ttft_s=5.0).attainment == pytest.approx(314 / 11_008)


@pytest.mark.skipif(not SGLANG.exists(), reason="no scrape of SGLang beside the project")
def test_an_answer_of_prometheus_tells_what_real_scrapes_tell(tmp_path):
    """Of SGLang's example and of scrapes of GPUs, as a query of all their series at two times answers."""
    scrapes = sorted((SHARED / "more" / "dcgm").glob("*.prom"))
    for number, file in enumerate((SGLANG, *scrapes)):
        lines = dict.fromkeys(line.strip() for line in file.read_text().splitlines() if line.strip())
        once = "\n".join(line for line in lines if not line.startswith("#")) + "\n"
        told = [(1_767_571_200 + 15 * n, once) for n in range(2)]
        text = "".join(f"# scraped_at {at}\n{scrape}" for at, scrape in told)
        (tmp_path / str(number)).mkdir()
        expected = read(prometheus, source_of(tmp_path / str(number), text, "metrics"))
        for written in (answer(*made_of(told)), printed(made_of(told)), exported(made_of(told))):
            got = read(prometheus_json, source_of(tmp_path / str(number), written, "metrics"))
            assert got.rows == expected.rows and got.facts == expected.facts, file.name
