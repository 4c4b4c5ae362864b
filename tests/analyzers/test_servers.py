"""Several servers: each by its input and its name for itself, in any order of scraping; what a silence of a log is."""

import numpy as np
import pytest

from analyzers.serving import engine
from analyzers.serving.servers import samples_of_servers, servers
from runs.tables import MemoryTables, frame
from tests.analyzers.load_tests import EPOCH_NS, ask

S = 10**9


def scrapes(*servers_: dict, began: dict | None = None) -> MemoryTables:
    """Rows of `engine`: of each server its `source`, times `at` (s) and lists of columns. All call themselves "0"."""
    rows: dict[str, list] = {}
    columns = dict.fromkeys(c for one in servers_ for c in one if c not in ("source", "at", "replica"))
    for one in servers_:
        count = len(one["at"])
        cells = {c: one.get(c, [None] * count) for c in columns}
        cells |= {
            "ts_ns": [EPOCH_NS + round(t * S) for t in one["at"]],
            "order": list(range(count)),
            "replica": [one.get("replica", "0")] * count,
            "source": [one["source"]] * count,
        }
        for column, values in cells.items():
            rows.setdefault(column, []).extend(values)
    tables: dict[str, dict] = {"engine": rows}
    if began:
        tables["scalars"] = {
            "name": ["process_start_time_seconds"] * len(began),
            "value": list(began.values()),
            "source": list(began),
        }
    return MemoryTables(tables)


def counted(source: str, at: list[float], per_s: float, start: int, running: int, **more) -> dict:
    n = len(at)
    tokens = [start + round(per_s * (t - at[0])) for t in at]
    return {"source": source, "at": at, "output_tokens": tokens, "running": [running] * n, "waiting": [0] * n, **more}


def test_counters_of_two_servers_are_not_one():
    at = list(range(0, 60, 5))
    tables = scrapes(counted("a.prom", at, 100, 10, 4), counted("b.prom", [t + 2 for t in at], 100, 5_000_000, 6))
    result = ask(engine, tables)
    assert result.replicas == ("a.prom 0", "b.prom 0")
    assert result.figures["generated_tokens_per_s"] == pytest.approx(200)
    assert result.figures["running"]["mean"] == pytest.approx(10)
    assert result.windows["output_tokens_per_s"].dropna().max() < 201
    assert ask(engine, tables, replica="b.prom 0").figures["generated_tokens_per_s"] == pytest.approx(100)


def test_logs_of_two_servers_add_up():
    line = {"output_tokens_per_s": [100.0] * 12, "running": [4] * 12, "waiting": [0] * 12}
    at = np.arange(0, 120, 10)
    tables = scrapes({"source": "a.log", "at": at, **line}, {"source": "b.log", "at": at, **line})
    assert ask(engine, tables).figures["generated_tokens_per_s"] == pytest.approx(200)


def test_two_scrapes_are_a_rate_over_the_time_between():
    f = ask(engine, scrapes(counted("a", [0, 10], 50, 7, 1))).figures
    assert f["generated_tokens_per_s"] == pytest.approx(50)


def test_unequal_uptimes_are_weighted_by_time():
    short, long = counted("a", [0, 10, 20], 1, 0, 100), counted("b", list(range(0, 1001, 10)), 1, 0, 10)
    mean = ask(engine, scrapes(short, long)).figures["running"]["mean"]
    assert mean == pytest.approx((100 * 30 + 10 * 1010) / 1010)


def test_a_log_that_goes_on_in_another_file_is_of_one_server():
    first, second = counted("a.1", [0, 10, 20], 10, 0, 1), counted("a.2", [30, 40, 50], 10, 300, 1)
    assert ask(engine, scrapes(first, second)).replicas == ("0",)
    assert ask(engine, scrapes(second, first)).figures["generated_tokens_per_s"] == pytest.approx(10)
    beside = scrapes(first, second, began={"a.1": 5.0, "a.2": 9.0})  # it ran before the other ended
    assert ask(engine, beside).replicas == ("a.1 0", "a.2 0")
    began = EPOCH_NS / S
    assert ask(engine, scrapes(first, second, began={"a.1": began - 9, "a.2": began + 25})).replicas == ("0",)


def test_names_that_differ_need_no_source():
    tables = scrapes(counted("a", [0, 10], 1, 0, 1, replica="pod-1"), counted("b", [0, 10], 1, 0, 1, replica="pod-2"))
    assert sorted(set(servers(tables, frame(tables, "engine")))) == ["pod-1", "pod-2"]


def test_a_log_and_scrapes_of_one_server_are_counted_once():
    at = list(range(0, 300, 10))
    log = {
        "source": "server.log",
        "at": [t + 1 for t in at],
        "running": [5] * 30,
        "waiting": [0] * 30,
        "output_tokens_per_s": [100.0] * 30,
    }
    scraped = counted("m.prom", at, 100, 0, 5)
    rows, notes = samples_of_servers(scrapes(log, scraped))
    assert len(notes) == 1 and rows["replica"].nunique() == 1
    result = ask(engine, scrapes(log, scraped))
    assert result.figures["running"]["mean"] == pytest.approx(5)
    assert result.figures["generated_tokens_per_s"] == pytest.approx(100, rel=0.01)
    other = counted("m.prom", at, 900, 0, 5)
    assert ask(engine, scrapes(log, other)).figures["generated_tokens_per_s"] == pytest.approx(1000)


@pytest.mark.parametrize(("engine_of_log", "running"), [(None, 9), ("7", 18)])
def test_a_log_of_engines_together_and_scrapes_of_each_are_counted_once(engine_of_log, running):
    """As a vLLM of two engines may print; not of a third server that is as busy as both."""
    at = list(range(0, 300, 10))
    log = {"source": "server.log", "at": [t + 1 for t in at], "running": [9] * 30, "output_tokens_per_s": [250.0] * 30}
    each = [counted("m.prom", at, per_s, 7, n, replica=str(e)) for e, per_s, n in ((0, 100, 4), (1, 150, 5))]
    tables = scrapes({**log, "replica": engine_of_log}, *each)
    result = ask(engine, tables)
    assert len(result.replicas) == running // 9 + 1
    assert result.figures["running"]["mean"] == pytest.approx(running, rel=0.02)
    assert result.figures["generated_tokens_per_s"] == pytest.approx(250 * running / 9, rel=0.02)
    told = [note for note in result.notes if "m.prom together" in note]
    assert len(told) == (running == 9)


def test_a_log_of_a_server_as_busy_as_a_scraped_one_is_of_another_where_more_requests_run():
    """Two replicas behind a balancer that generate as many tokens, on chips of different speed."""
    at = list(range(0, 300, 10))
    logs = {
        n: {"source": f"{n}.log", "at": [t + 1 for t in at], "running": [n] * 30, "output_tokens_per_s": [100.0] * 30}
        for n in (4, 7)
    }
    one = ask(engine, scrapes(logs[7], counted("m.prom", at, 100, 0, 4)))
    assert one.replicas == ("7.log 0", "m.prom 0") and one.figures["running"]["mean"] == pytest.approx(11)
    assert one.figures["generated_tokens_per_s"] == pytest.approx(200, rel=0.01)
    pods = [counted(f"pod-{n}.prom", at, 100, 0, n) for n in (7, 4)]
    both = ask(engine, scrapes(logs[4], logs[7], *pods))
    assert both.replicas == ("pod-4.prom 0", "pod-7.prom 0")
    for n in (4, 7):
        assert any(f"The log {n}.log and the scrapes pod-{n}.prom" in note for note in both.notes)
    idle = {"source": "server.log", "at": at, "kv_usage": [0.0] * 30, "output_tokens_per_s": [100.0] * 30}
    little = scrapes(idle, counted("m.prom", at, 100, 0, 4, kv_usage=[0.004] * 30))
    assert ask(engine, little).replicas == ("m.prom 0",)  # what a log rounds away


def test_lines_of_a_log_that_print_no_rate_do_not_hide_whose_it_is():
    """SGLang writes a line for each batch of prompts, and its rate of output behind some of them."""
    at = [t for t in range(300) for _ in range(2 if t % 10 == 0 else 1)]
    log = {
        "source": "sglang.log",
        "at": at,
        "running": [5] * len(at),
        "output_tokens_per_s": [100.0 if a == b else None for a, b in zip(at, [-1, *at], strict=False)],
    }
    result = ask(engine, scrapes(log, counted("m.prom", list(range(0, 300, 5)), 100, 0, 5)))
    assert result.replicas == ("m.prom 0",) and result.figures["running"]["mean"] == pytest.approx(5)


def test_a_rank_of_a_log_that_prints_no_rate_is_held_against_no_scrapes():
    """Of two data-parallel ranks of SGLang one may have come to batches of prompts alone."""
    at = list(range(0, 300, 10))
    prompts = {"running": [5] * 30, "prompt_tokens": [100 * (n + 1) for n in range(30)]}
    log = {"running": [5] * 30, "output_tokens_per_s": [100.0] * 30}
    ranks = (
        {"source": "sglang.log", "at": at, "replica": "1", **prompts},
        {"source": "sglang.log", "at": [t + 1 for t in at], "replica": "0", **log},
    )
    result = ask(engine, scrapes(*ranks, counted("m.prom", list(range(0, 300, 5)), 100, 0, 5, replica="m")))
    assert result.replicas == ("1", "m") and result.figures["running"]["mean"] == pytest.approx(10)


@pytest.mark.parametrize("lines", [199, 200, 201])
def test_a_log_fetched_while_it_is_written_may_be_cut_within_a_second(lines):
    """Two lines a second, of which one prints a rate: of the last second the copy may hold one line alone."""
    at = [n // 2 for n in range(600)]
    log = {
        "at": at,
        "running": [5] * 600,
        "prompt_tokens": [100 * (n // 2 + 1) for n in range(600)],
        "output_tokens_per_s": [90.0 + n % 7 if n % 2 else None for n in range(600)],
    }
    whole = ask(engine, scrapes({"source": "end.log", **log}))
    cut = {"source": "begun.log", **{c: v[:lines] for c, v in log.items()}}
    both = ask(engine, scrapes({"source": "end.log", **log}, cut))
    assert both.replicas == whole.replicas and both.figures["running"]["mean"] == pytest.approx(5)
    for rate in ("generated_tokens_per_s", "prefilled_tokens_per_s"):
        assert both.figures[rate] == pytest.approx(whole.figures[rate], rel=0.01)


def test_a_line_after_a_silence_is_not_stretched_over_it():
    """vLLM prints each 10 s, one line with zeros, then nothing until there is traffic again."""
    at = [10, 20, 30, 40, 75, 85, 95, 600, 610]
    rate = [100.0, 100.0, 50.0, 0.0, 80.0, 20.0, 0.0, 60.0, 60.0]
    running = [4, 4, 2, 0, 3, 1, 0, 2, 2]
    log = {
        "source": "a.log",
        "at": at,
        "output_tokens_per_s": rate,
        "prompt_tokens_per_s": rate,
        "running": running,
        "waiting": [0] * 9,
        "kv_usage": [r / 10 for r in running],
    }
    result = ask(engine, scrapes(log))
    tokens, span = 10 * sum(rate), 610
    assert result.figures["generated_tokens_per_s"] == pytest.approx(tokens / span)
    assert result.figures["prefilled_tokens_per_s"] == pytest.approx(tokens / span)
    assert result.figures["running"]["mean"] == pytest.approx(10 * sum(running) / span)
    assert result.figures["kv_usage"]["mean"] == pytest.approx(sum(running) / span)
    assert result.bound["idle"] == pytest.approx(1 - 70 / span)
    assert result.samples == 9 and result.span_s == pytest.approx(span)
    assert not any("gaps between samples" in n for n in result.notes)


def test_a_gap_in_scrapes_keeps_its_tokens_and_its_time():
    found = counted("a", [0, 10, 20, 30, 1030, 1040], 10, 0, 1)
    result = ask(engine, scrapes(found))
    assert result.figures["generated_tokens_per_s"] == pytest.approx(10)
    assert result.windows["output_tokens_per_s"].dropna().max() == pytest.approx(10)


def printed(source: str, at: np.ndarray, *numbers: float) -> dict:
    n = len(at)
    return {
        "source": source,
        "at": at,
        "output_tokens_per_s": [100.0 + x for x in numbers],
        "running": [4] * n,
        "waiting": [0] * n,
    }


def test_a_log_that_was_copied_earlier_too_is_of_one_server():
    at, rates = np.arange(0, 600, 10), [float(n % 7) for n in range(60)]
    tables = scrapes(printed("a.log", at, *rates), printed("b.log", at[:40], *rates[:40]))
    result = ask(engine, tables)
    assert result.figures["generated_tokens_per_s"] == pytest.approx(100 + np.mean(rates), rel=1e-6)
    assert result.figures["running"]["mean"] == pytest.approx(4) and result.replicas == ("0",)
    assert any("40 lines" in n and "count once" in n for n in result.notes)
    other = scrapes(printed("a.log", at, *rates), printed("b.log", at[:40], *rates[1:41]))
    assert len(ask(engine, other).replicas) == 2


@pytest.mark.parametrize(("began", "servers_there"), [(1000.0, 1), (2000.0, 2)])
def test_two_pollers_of_one_process_are_of_one_server(began, servers_there):
    at = list(range(0, 300, 10))
    tables = scrapes(
        counted("a.prom", at, 100, 777, 5),
        counted("b.prom", [t + 4 for t in at], 100, 1177, 5),
        began={"a.prom": 1000.0, "b.prom": began},
    )
    result = ask(engine, tables)
    assert len(result.replicas) == servers_there
    assert result.figures["generated_tokens_per_s"] == pytest.approx(100 * servers_there, rel=0.01)


def test_a_server_that_prometheus_names_more_fully_is_one():
    """A scrape of it calls it "0", an answer of Prometheus "10.0.0.1:8000 vllm-0 0": its tokens counted twice."""
    at, later = list(range(0, 60, 5)), list(range(2, 60, 5))
    direct = counted("a.prom", at, 100, 10, 4)
    asked = counted("b.json", later, 100, 210, 4, replica="10.0.0.1:8000 vllm-0 0")
    other = counted("b.json", later, 100, 7_000, 6, replica="10.0.0.2:8000 vllm-1 0")
    tables = scrapes(direct, asked, other)
    result = ask(engine, tables)
    assert result.replicas == ("10.0.0.1:8000 vllm-0 0", "10.0.0.2:8000 vllm-1 0")
    assert result.figures["generated_tokens_per_s"] == pytest.approx(200, rel=0.1)
    assert result.figures["running"]["mean"] == pytest.approx(10, rel=0.05)
    apart = scrapes(direct, other)  # of another server: it counts far above
    assert len(ask(engine, apart).replicas) == 2
    alike = scrapes(direct, asked, counted("b.json", later, 100, 211, 6, replica="10.0.0.2:8000 vllm-1 0"))
    assert len(ask(engine, alike).replicas) == 3  # which of two it is nobody knows


def test_one_that_starts_again_is_known_by_its_fuller_name_too():
    at, later = list(range(0, 100, 5)), list(range(2, 100, 5))

    def tokens(times):
        return [100 * t if t < 50 else 100 * (t - 50) for t in times]

    direct = counted("a.prom", at, 0, 0, 4) | {"output_tokens": tokens(at)}
    asked = counted("b.json", later, 0, 0, 4, replica="vllm-0 0") | {"output_tokens": tokens(later)}
    assert ask(engine, scrapes(direct, asked)).replicas == ("vllm-0 0",)
    few = [{**one, **{k: one[k][:3] for k in ("at", "output_tokens", "running", "waiting")}} for one in (direct, asked)]
    assert len(ask(engine, scrapes(*few)).replicas) == 2
    began = {"a.prom": 17.25, "b.json": 17.25}
    assert ask(engine, scrapes(*few, began=began)).replicas == ("vllm-0 0",)


def test_a_server_whose_next_version_calls_it_by_a_longer_name_is_one():
    """vLLM's scrapes name the engine since some version: the same address, before and after an update."""
    old = counted("a.prom", list(range(0, 100, 5)), 100, 10, 4, replica=None)
    new = counted("a.prom", list(range(160, 260, 5)), 100, 0, 4)
    rows, _ = samples_of_servers(scrapes(old, new))
    assert set(rows["replica"]) == {"0"}
    assert ask(engine, scrapes(old, new)).replicas == ("0",)
    beside = counted("a.prom", list(range(50, 150, 5)), 100, 0, 4)
    assert set(samples_of_servers(scrapes(old, beside))[0]["replica"]) == {"engine", "0"}
    ranks = [counted("a.prom", list(range(160, 260, 5)), 100, 0, 4, replica=name) for name in "01"]
    assert set(samples_of_servers(scrapes(old, *ranks))[0]["replica"]) == {"engine", "0", "1"}
