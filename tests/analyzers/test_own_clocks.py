"""Loads in files of their own, whose times count from zero in each, or from 1970."""

import pytest

from analyzers.serving import latency as serving
from analyzers.serving import load, traffic
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask

S = 1_000_000_000
RATES = (1, 2, 4)  # requests a second of three files, for 100 s each
NOTE = "count from zero in each"


def sweep(starts, e2e=0.45, names=("one", "three", "two"), tenants=False):
    rows = [
        (name, f"{name}.csv", int(start + n * S / rate))
        for name, rate, start in zip(names, RATES, starts, strict=True)
        for n in range(100 * rate)
    ]
    stage, source, arrival = (list(column) for column in zip(*rows, strict=True))
    n = len(rows)
    requests = {
        "id": [str(i) for i in range(n)],
        "stage": stage,
        "tenant": ["ab"[i % 2] if tenants else None for i in range(n)],
        "source": source,
        "arrival_ns": arrival,
        "ttft_ns": [S // 10] * n,
        "e2e_ns": [int(e2e * S)] * n,
        "prompt_tokens": [100] * n,
        "output_tokens": [50] * n,
        "status": ["completed"] * n,
    }
    return MemoryTables({"requests": requests})


@pytest.mark.parametrize("starts", [(0, 0, 0), (0, 5 * S, 7 * S), (EPOCH_NS, EPOCH_NS + 3600 * S, EPOCH_NS + 7200 * S)])
def test_loads_one_after_another_have_the_rates_of_each(starts):
    """Read as one they answered 7 a second where they count from zero, and 0.1 where they lie an hour apart."""
    tables = sweep(starts)
    said = ask(serving, tables)
    assert said.load.request_rate_per_s == pytest.approx(700 / 300, rel=0.01)
    assert said.load.duration_s == pytest.approx(300, rel=0.01)
    assert any(NOTE in note for note in said.notes) == (starts[0] == 0)
    rows = ask(load, tables).rows.set_index("stage")
    for name, rate in zip(("one", "three", "two"), RATES, strict=True):
        assert rows["request_rate_per_s"][name] == pytest.approx(rate, rel=0.01)
        assert rows["in_flight"][name] == pytest.approx(0.45 * rate, rel=0.01)
    came = ask(traffic, tables)
    assert came.loads == 3 and came.shape == "unknown" and came.concurrency["peak"] == 2
    assert any(NOTE in note for note in came.notes) == (starts[0] == 0)
    alone = ask(traffic, tables, stage="two")
    assert alone.request_rate_per_s == pytest.approx(4) and not any(NOTE in note for note in alone.notes)


@pytest.mark.parametrize("starts", [(0, 0, 0), (EPOCH_NS, EPOCH_NS + 3600 * S, EPOCH_NS + 7200 * S)])
def test_pauses_between_loads_are_no_traffic(starts):
    """Nor of a tenant, and nothing is in flight on average for them."""
    came = ask(traffic, sweep(starts, tenants=True))
    assert came.concurrency["mean"] == pytest.approx(700 * 0.45 / 300, rel=0.01)
    assert came.tenants["request_rate_per_s"].isna().all() and came.tenants["cv"].isna().all()
    alone = ask(traffic, sweep(starts, tenants=True), stage="two")
    assert alone.tenants["request_rate_per_s"].tolist() == pytest.approx([2, 2])
    assert alone.concurrency["mean"] == pytest.approx(4 * 0.45, rel=0.01)


def test_stages_on_one_clock_keep_their_times():
    said = ask(serving, sweep((0, 200 * S, 400 * S)))
    assert not any(NOTE in note for note in said.notes) and said.rows["arrival_s"].max() == pytest.approx(499.75)


def test_clients_of_one_server_at_the_same_time_are_one_load_together():
    tables = sweep((EPOCH_NS, EPOCH_NS + S, EPOCH_NS))
    assert ask(serving, tables).load.request_rate_per_s == pytest.approx(700 / 101.5, rel=0.01)
    assert any("Sent while another load was" in note for note in ask(load, tables).notes)
    assert not any("Sent while" in note for note in ask(load, sweep((0, 0, 0))).notes)


def test_clients_on_one_machine_whose_clock_counts_since_it_started_keep_their_times():
    """They were told to count from zero in each, and put one after another: 2.3 requests a second for 6.9."""
    booted = 123_456 * S
    tables = sweep((booted, booted + S, booted))
    said, came = ask(serving, tables), ask(traffic, tables)
    assert said.load.request_rate_per_s == pytest.approx(700 / 101.5, rel=0.01)
    assert not any(NOTE in note for note in (*said.notes, *came.notes))
    assert came.concurrency is not None and came.concurrency["peak"] > 2
    assert any("Sent while another load was" in note for note in ask(load, tables).notes)
    beside = ask(serving, sweep((0, booted, 0)))  # two of three count from zero
    assert any("2 inputs count from zero in each" in note for note in beside.notes)
    assert beside.rows["arrival_s"].max() == pytest.approx(123_556, abs=1)
