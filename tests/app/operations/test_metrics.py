"""Figures for a monitor: read back by the parser of OpenMetrics, with independent counts."""

import shutil
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from app.operations.metrics import BUCKETS_S, STATES, WHATS, Figures, Looked, figures_of
from app.operations.readiness import Readiness
from runs.job_book import JobBook, Wanted
from runs.run import SCHEMA_VERSION
from tests.app import made_runs


def read(figures):
    """{name: {labels: value}} of all samples; the parser raises for what is no OpenMetrics."""
    found = {}
    for family in text_string_to_metric_families(figures.text().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def of(place, jobs=None):
    return figures_of(place, lambda: Counter(jobs or {}), Readiness(place))


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["GET", "POST"]),
        st.sampled_from(["/api/runs", "/api/runs/{run_id}"]),
        st.sampled_from([200, 404, 500]),
        st.floats(0, 1000),
        st.integers(0, 10**9),
    ),
    max_size=30,
)


@given(REQUESTS)
def test_every_request_is_counted_once_and_its_duration_and_bytes_add_up(requests):
    figures = Figures()
    for one in requests:
        figures.answered(*one)
    found = read(figures)
    by = Counter((m, r, str(s)) for m, r, s, _, _ in requests)
    told = found.get("chipledger_http_requests_total", {})
    assert {tuple(dict(k)[n] for n in ("method", "route", "status")): v for k, v in told.items()} == by
    took = found.get("chipledger_http_request_duration_seconds_sum", {})
    assert sum(took.values()) == pytest.approx(sum(r[3] for r in requests))
    assert sum(found.get("chipledger_http_response_bytes_total", {}).values()) == sum(r[4] for r in requests)
    for labels, value in found.get("chipledger_http_request_duration_seconds_bucket", {}).items():
        named = dict(labels)
        same = [r for r in requests if (r[0], r[1]) == (named["method"], named["route"])]
        assert value == sum(r[3] <= float(named["le"]) for r in same)
    assert list(BUCKETS_S) == sorted(set(BUCKETS_S))


def test_a_server_tells_its_jobs_runs_disk_registry_process_and_version(place):
    made_runs.interrupted(place.store)
    found = read(of(place, {("ingest", "running"): 2, ("compile", "failed"): 1, ("odd", "running"): 9}))
    jobs = {(dict(k)["what"], dict(k)["state"]): v for k, v in found["chipledger_jobs"].items()}
    assert set(jobs) == {(w, s) for w in WHATS for s in STATES}
    assert {k: v for k, v in jobs.items() if v} == {("ingest", "running"): 2, ("compile", "failed"): 1}
    assert found["chipledger_runs"] == {(): 1}
    assert found["chipledger_registry_bytes"][()] >= place.registry.path.stat().st_size
    free, disk = found["chipledger_store_free_bytes"][()], found["chipledger_store_disk_bytes"][()]
    assert 0 < free <= disk == shutil.disk_usage(place.store.root).total
    assert found["process_resident_memory_bytes"][()] > 10_000_000
    (build,) = found["chipledger_build_info"]
    assert dict(build)["schema"] == str(SCHEMA_VERSION)
    assert {dict(k)["check"]: v for k, v in found["chipledger_ready"].items()}["store"] == 1


def test_a_job_that_its_server_put_back_is_counted(place):
    book, job_id = JobBook(place.registry.at), "a" * 32
    book.ask(Wanted(job_id=job_id, what="ingest", arguments=["ingest"]), 10)
    assert book.claim("one", ("ingest",), lambda _: True)
    book.park("one", job_id)
    told = read(figures_of(place, book.by_state, Readiness(place)))["chipledger_jobs"]
    assert [dict(labels) for labels, n in told.items() if n] == [{"what": "ingest", "state": "parked"}]


def test_what_cannot_be_read_is_left_out_and_never_none(place):
    figures = of(place)
    shutil.rmtree(place.store.root)
    found = read(figures)
    assert "chipledger_runs" not in found and "chipledger_registry_bytes" not in found
    assert "chipledger_store_free_bytes" not in found
    assert {dict(k)["check"]: v for k, v in found["chipledger_ready"].items()}["store"] == 0


def test_sessions_uploads_and_refusals():
    figures = Figures()
    for _ in range(3):
        figures.session_opened()
    figures.session_closed()
    figures.session_refused()
    figures.uploaded(10)
    figures.uploaded(5)
    figures.limited("query")
    found = read(figures)
    names = ("sessions", "sessions_opened_total", "sessions_refused_total", "upload_bytes_total")
    assert [found[f"chipledger_{n}"][()] for n in names] == [2, 3, 1, 15]
    assert found["chipledger_rate_limited_total"] == {(("kind", "query"),): 1}


def test_the_store_is_looked_at_now_and_then_however_often_is_asked(place, monkeypatch):
    now, looks = [0.0], []
    looked = Looked(place, Counter, Readiness(place), clock=lambda: now[0])
    ids = place.store.ids
    monkeypatch.setattr(type(place.store), "ids", lambda _: (looks.append(1), ids())[1])
    for now[0] in (0.0, 1.0, 9.0, 11.0, 12.0):
        list(looked.collect())
    assert len(looks) == 2
