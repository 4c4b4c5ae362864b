"""A server that was started again between two scrapes, and counted beyond where it had stood: it fell nowhere."""

import numpy as np
import pytest

from analyzers.serving import engine
from analyzers.serving.counters import increments
from analyzers.serving.histograms import observed
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

T0 = 1_777_142_838
LABELS = 'engine="0",model_name="m"'


def scrape(at, started, tokens, requests):
    name = "vllm:e2e_request_latency_seconds"
    return f"""# scraped_at {at}
process_start_time_seconds {started}
vllm:num_requests_running{{{LABELS}}} 1
vllm:generation_tokens_total{{{LABELS}}} {tokens}
{name}_bucket{{{LABELS},le="1.0"}} {requests}
{name}_bucket{{{LABELS},le="+Inf"}} {requests}
{name}_count{{{LABELS}}} {requests}
{name}_sum{{{LABELS}}} {requests / 2}
"""


@pytest.fixture
def told(tmp_path):
    def of(*scrapes):
        (tmp_path / "engine.prom").write_text("".join(scrapes))
        store = Store(tmp_path / "store")
        return store.get(ingest([tmp_path / "engine.prom"], store).run_id)

    return of


@pytest.mark.parametrize(("again", "tokens", "requests"), [(True, 9000, 90), (False, 8000, 80)])
def test_what_a_later_process_counted_is_its_own(told, again, tokens, requests):
    old, new = T0 - 1000, T0 + 60 if again else T0 - 1000.004
    run = told(scrape(T0, old, 1000, 10), scrape(T0 + 600, new, 5000, 50), scrape(T0 + 1200, new, 9000, 90))
    asked = engine.analyze(run.tables, run.manifest.facts, parse_options(engine.OPTIONS, {})).to_dict()
    assert asked["generated_tokens_per_s"] == pytest.approx(tokens / 1200)
    found = observed(run.tables, "vllm:e2e_request_latency_seconds")
    assert found.observations == requests and found.total == pytest.approx(requests / 2)
    assert any("started again" in note for note in found.notes) is again


def test_a_scrape_that_does_not_tell_its_process_is_of_that_before_it():
    grew = increments([1.0, 2.0, 5.0, 9.0], process=np.array([10.0, np.nan, 40.0, np.nan]))
    np.testing.assert_array_equal(grew, [np.nan, 1, 5, 4])
    grew = increments([1.0, 2.0, 5.0], begun=True, process=np.array([np.nan, 10.0, 40.0]))
    np.testing.assert_array_equal(grew, [1, 1, 5])
