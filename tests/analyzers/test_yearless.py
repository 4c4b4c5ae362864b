"""Logs that name month and day alone, beside scrapes that tell the year."""

from datetime import UTC, datetime

import numpy as np
import pytest

from analyzers.serving import engine
from analyzers.serving.recorded import recorded
from analyzers.serving.yearless import in_their_year
from analyzers.time import ledger
from runs.tables import MemoryTables
from tests.analyzers.load_tests import ask

S, DAY = 10**9, 86_400 * 10**9


def ns(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * S


def of_a_log(*moment: int) -> int:
    """As a log without a year tells it: since the start of a year that has a 29th of February."""
    return ns(2000, *moment) - ns(2000, 1, 1)


def tables(begin: int, first: int | None) -> MemoryTables:
    """A log in lines of 10 s from `begin` on and, from `first` on, scrapes of its server: 100 tokens/s, 4 at a time."""
    log, scraped = list(range(0, 320, 10)), list(range(5, 310, 15)) if first is not None else []
    sizes = len(log), len(scraped)
    rows = {
        "ts_ns": [begin + t * S for t in log] + [(first or 0) + t * S for t in scraped],
        "order": [*range(sizes[0]), *range(sizes[1])],
        "running": [4] * sum(sizes),
        "waiting": [0] * sum(sizes),
        "output_tokens": [None] * sizes[0] + [100 * t for t in scraped],
        "output_tokens_per_s": [100.0] * sizes[0] + [None] * sizes[1],
        "source": ["vllm.log"] * sizes[0] + ["m.prom"] * sizes[1],
    }
    passes = {"start_ns": [begin], "dur_ns": [S], "order": [0], "source": ["vllm.log"]}
    return MemoryTables({"engine": rows, "iterations": passes})


@pytest.mark.parametrize("moment", [(2026, 5, 28, 20), (2026, 12, 31, 23, 58), (2026, 2, 28, 23, 58), (2028, 3, 1)])
def test_such_a_log_lies_in_the_year_of_the_scrapes(moment):
    first = ns(*moment)
    both = tables(of_a_log(*moment[1:]), first)
    if moment[1:3] == (2, 28):  # the log's clock goes on over a day that the year did not have
        rows = both.arrow("engine").to_pydict()
        midnight = of_a_log(2, 29)
        rows["ts_ns"] = [t + DAY if midnight <= t < ns(1998, 1, 1) else t for t in rows["ts_ns"]]
        both = MemoryTables({"engine": rows})
    else:
        assert recorded(both, ())[0]["start_ns"].tolist() == [first]
        both = MemoryTables({"engine": both.arrow("engine").to_pydict()})
    result = ask(engine, both, {"engine_times": "since start"})
    assert result.replicas == ("m.prom",) and result.span_s == pytest.approx(325) and result.origin_ns is not None
    assert result.figures["generated_tokens_per_s"] == pytest.approx(100, rel=0.06)
    held = ledger.analyze(both, {}, {**{o.name: o.default for o in ledger.OPTIONS}, "chips": 1})
    assert held.to_dict()["chip_seconds"] == pytest.approx(310, abs=10)


def test_the_year_is_that_in_which_it_lies_nearest():
    begins = {(2027, 1, 1): 2026, (2026, 12, 30): 2026}
    for first, year in begins.items():
        told = tables(of_a_log(12, 31), ns(*first))
        rows = in_their_year(told, told.arrow("engine").to_pandas())
        assert int(rows["ts_ns"].min()) in (ns(year, 12, 31), ns(*first) + 5 * S)
        assert ns(year, 12, 31) in rows["ts_ns"].tolist()


def test_times_that_count_from_a_start_and_runs_without_a_year_stay():
    started = tables(0, ns(2026, 5, 28))
    alone = tables(of_a_log(5, 28), None)
    for told in (started, alone):
        rows = told.arrow("engine").to_pandas()
        assert np.array_equal(in_their_year(told, rows)["ts_ns"], rows["ts_ns"])


def test_passes_that_count_from_their_start_for_hours_stay_together():
    """Those after the first hour were put into the year of the scrapes: of two hours 56 years were told as held."""
    dated = tables(of_a_log(5, 28), ns(2026, 5, 28)).arrow("engine").to_pydict()
    dated = {name: cells[32:] for name, cells in dated.items()}
    passes = {
        "start_ns": [t * S for t in range(7200)],
        "dur_ns": [S // 2] * 7200,
        "order": range(7200),
        "decode_requests": [4] * 7200,
        "decode_tokens": [4] * 7200,
        "source": ["passes.parquet"] * 7200,
    }
    told = MemoryTables({"engine": dated, "iterations": passes})
    assert recorded(told, ())[0]["start_ns"].tolist() == passes["start_ns"]
    held = ledger.analyze(told, {}, {**{o.name: o.default for o in ledger.OPTIONS}, "chips": 1})
    assert held.to_dict()["chip_seconds"] == pytest.approx(7199.5)
