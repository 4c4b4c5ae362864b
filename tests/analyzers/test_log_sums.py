"""Sums that are made of a log's lines begin at zero in each file; counters of /metrics began before they were read."""

from collections.abc import Sequence

import pytest

from analyzers.serving import engine
from analyzers.serving.prefix_cache.measured import measured_prefix
from analyzers.serving.servers import samples_of_servers
from analyzers.serving.speculation.data import observed
from tests.analyzers.load_tests import ask
from tests.analyzers.test_servers import counted, scrapes


def lines(source: str, at: Sequence[float], **sums: list[int]) -> dict:
    n = len(at)
    more = {"running": [2] * n, "waiting": [0] * n, "output_tokens_per_s": [100.0 + t for t in range(n)]}
    return {"source": source, "at": at, **more, **sums}


LOG = lines("a.log", [0, 10, 20], preemptions=[40, 40, 41], prefix_hits=[0, 10, 20], prefix_queries=[80, 90, 100])


def test_the_first_line_of_a_log_counts():
    tables = scrapes(LOG)
    assert ask(engine, tables).figures["preemptions"] == 41
    found = measured_prefix(tables)
    assert (found.hit_rate, found.tokens, len(found.over_time)) == (0.2, 100, 3)


def test_the_first_scrape_counts_nothing():
    """What it tells may be of days before."""
    tables = scrapes({**LOG, "output_tokens": [0, 1000, 2000]})
    assert ask(engine, tables).figures["preemptions"] == 1
    assert measured_prefix(tables).hit_rate == pytest.approx(1.0)


def test_a_log_that_goes_on_in_another_file_begins_anew():
    """Also where the sums of the second file are larger than those of the first at once."""
    tables = scrapes(LOG, lines("b.log", [30, 40], preemptions=[50, 51]))
    assert ask(engine, tables).replicas == ("0",)
    assert ask(engine, tables).figures["preemptions"] == 41 + 51


def test_lines_that_are_in_two_files_count_once():
    """The second file holds the end of the first and goes on, with sums of its own."""
    at, drafted = list(range(0, 60, 10)), [10, 30, 60, 100, 150, 210]
    whole = lines("a.log", at[:5], drafted=drafted[:5], accepted=[n // 2 for n in drafted[:5]])
    later = lines("b.log", at[2:], drafted=[n - 30 for n in drafted[2:]], accepted=[n // 2 - 15 for n in drafted[2:]])
    later["output_tokens_per_s"] = [102.0 + t for t in range(4)]
    tables = scrapes(whole, later)
    rows, notes = samples_of_servers(tables)
    assert len(rows) == 6 and len(notes) == 1
    found = observed(tables, None, None)
    assert found is not None and (found.drafted, found.accepted) == (210, 105)


def test_scrapes_between_lines_of_a_log_are_no_restart():
    scraped = counted("m.prom", list(range(100, 200, 10)), 100, 10**6, 2, preemptions=[9000 + n for n in range(10)])
    at = list(range(0, 300, 10))
    log = lines("a.log", at, preemptions=[n + 1 for n in range(30)]) | {"output_tokens_per_s": [100.0] * 30}
    assert len(ask(engine, scrapes(log, scraped)).replicas) == 1
    assert ask(engine, scrapes(log, scraped)).figures["preemptions"] == 10 + 9 + 10
