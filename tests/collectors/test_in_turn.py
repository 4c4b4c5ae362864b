"""Scrapes of several servers behind one address, each of which reached one of them."""

import pytest

from analyzers.serving import engine
from analyzers.serving.engine.samples import engine_samples
from analyzers.serving.exposed import exposed
from collectors.ingest import ingest
from collectors.serving.in_turn import apart, returns
from runs.store import Store
from tests.analyzers.load_tests import ask
from tests.app.metrics_server import exposition
from tests.collectors.scrapes import metrics

FIRST, SECOND, AT = 1_700_000_000.25, 1_700_000_400.5, 1_700_001_000


def scrapes(*told: tuple[float, int]) -> str:
    """One a second, of a process as when it was started, after so many requests."""
    return "".join(f"# scraped_at {AT + n}\n{exposition(r, began)}" for n, (began, r) in enumerate(told))


def test_servers_that_answer_in_turn_at_one_address_are_told_apart(tmp_path):
    """Two pods of a Service with 50,000 and 40,000 requests behind them, each of which serves two a second."""
    told = [(FIRST, 50_000 + 2 * n) if n % 2 else (SECOND, 40_000 + 2 * n) for n in range(10)]
    got = metrics(tmp_path, scrapes(*told))
    one, other = "0 started 2023-11-14 22:13:20.25", "0 started 2023-11-14 22:20:00.50"
    assert got.column("engine", "replica") == [other, one] * 5
    assert "answer in turn at one address" in got.reasons()
    store = Store(tmp_path / "store")
    tables = store.get(ingest([tmp_path / "input"], store).run_id).tables
    assert engine_samples(tables).rows["output"].sum() == 20 * (16 + 16), "two a second for eight seconds, of each"
    found = exposed(tables)
    assert found is not None and (found.prompt_tokens, found.output_tokens) == (3200, 640)
    assert found.latencies["ttft_s"].observations == 32
    names = {n for n in got.column("scalars", "name")}
    assert names == {f'process_start_time_seconds{{server="{n[2:]}"}}' for n in (one, other)}


@pytest.mark.parametrize(
    "told",
    [
        [(FIRST, 5), (FIRST, 9), (SECOND, 2), (SECOND, 4)],  # it started again
        [(FIRST, 5), (FIRST + 1, 6), (FIRST, 7)],  # a clock that was set: the same process
        [(SECOND, 5), (FIRST, 2), (FIRST - 9, 1)],  # and one that was set back while it started again, twice
    ],
)
def test_a_server_that_starts_again_is_one(tmp_path, told):
    got = metrics(tmp_path, scrapes(*told))
    assert set(got.column("engine", "replica")) == {"0"} and not got.lost


def test_processes_are_looked_for_in_all_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("collectors.serving.in_turn._PIECE", 7)
    text = scrapes((FIRST, 1), (SECOND, 1), (FIRST, 2))
    got = metrics(tmp_path, text)
    assert len(set(got.column("engine", "replica"))) == 2
    assert not returns(()) and not returns([1.0]) and returns([1.0, 9.0, 20.0, 9.0])


def counted(*requests: int) -> str:
    """Scrapes that do not tell a process, as of servers of several."""
    told = (line for r in requests for line in (f"# scraped_at {AT}", *exposition(r).splitlines()))
    at, lines = AT - 1, []
    for line in told:
        at += line.startswith("# scraped_at")
        lines += [] if "process_start" in line else [f"# scraped_at {at}" if line.startswith("# scraped_at") else line]
    return "\n".join(lines) + "\n"


def test_servers_in_turn_that_do_not_tell_their_start_are_told_apart_by_what_they_counted(tmp_path):
    told = [50_000 + 2 * n if n % 3 else 40_000 + 2 * n for n in range(18)]  # of two pods, one asked twice as often
    got = metrics(tmp_path, counted(*told))
    assert got.column("engine", "replica") == [f"0 server {1 if n % 3 == 0 else 2}" for n in range(18)]
    assert "how many tokens each had generated" in got.reasons()
    store = Store(tmp_path / "store")
    tables = store.get(ingest([tmp_path / "input"], store).run_id).tables
    assert engine_samples(tables).rows["output"].sum() == 20 * (30 + 32)


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [5.0],
        [1, 2, 3, 4],
        [100, 200, 0, 90, 180, 250, 0, 80, 160, 240, 0, 70, 140, 220, 300, 0, 60, 120, 200, 0],  # again and again
        [30, 5000, 10, 5200, 50, 4900, 20, 5100, 40, 4800, 25, 5150, 5],  # within two scrapes
        [50, 40, 54, 44],  # too few to tell
    ],
)
def test_a_server_that_starts_again_and_again_is_one(tmp_path, counts):
    assert apart(counts) is None
    assert set(metrics(tmp_path, counted(*map(int, counts or [1]))).column("engine", "replica")) == {"0"}


STARTS = FIRST, SECOND
ANSWERS = range(20)  # of each of two pods, one each 15 s: of 1 and 2 requests a second


def answer(pod: int, n: float, starts: bool = True) -> str:
    told = exposition(round((50_000, 7)[pod] + 15 * n * (pod + 1)), STARTS[pod])
    return "".join(x for x in told.splitlines(keepends=True) if starts or "process_start" not in x)


def under(pod: int, n: int, *more: str, starts: bool = True) -> str:
    """A scrape of a pod, and what else lies under its time."""
    return f"# scraped_at {AT + 15 * n + (0 if more else pod)}\n{answer(pod, n, starts)}{''.join(more)}"


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("how", ["joined", "one time each", "one time for both", "one at times", "rotated"])
def test_servers_whose_scrapes_lie_in_one_file_are_told_apart(tmp_path, how, starts):
    files = ["".join(under(pod, n, starts=starts) for n in ANSWERS) for pod in (0, 1)]
    if how == "joined":
        text = "".join(files)
    elif how == "one time each":
        text = "".join(under(0, n, under(1, n, "", starts=starts), starts=starts) for n in ANSWERS)
    elif how == "rotated":  # the newer log of each first
        halves = ANSWERS[10:], ANSWERS[:10]
        text = "".join(under(pod, n, starts=starts) for half in halves for pod in (0, 1) for n in half)
    else:
        silent = 12 if how == "one at times" and starts else None  # who does not tell a start answers always
        both = (under(0, n, *([answer(1, n, starts)] if n != silent else [""]), starts=starts) for n in ANSWERS)
        text = "".join(both)
    got = metrics(tmp_path, text)
    assert "lie in one file" in got.reasons() and "in turn" not in got.reasons()
    store = Store(tmp_path / "store")
    tables = store.get(ingest([tmp_path / "input"], store).run_id).tables
    assert engine_samples(tables).rows["output"].sum() == pytest.approx(20 * 15 * 19 * (1 + 2))
    found = ask(engine, tables)
    assert len(found.replicas) == 2 and found.figures["running"]["mean"] == pytest.approx(6, rel=0.01)
    told = exposed(tables)
    assert told is not None and told.latencies["ttft_s"].observations == 15 * 19 * (1 + 2)


@pytest.mark.parametrize(
    "text",
    [
        "".join(under(1, n, starts=s) for part in (ANSWERS[10:], ANSWERS[:10]) for n in part) for s in (True, False)
    ]  # a file that was rotated, the newer first
    + ["".join(under(1, n, starts=s) for part in (ANSWERS, ANSWERS[5:]) for n in part) for s in (True, False)]  # copied
    + ["".join(f"# scraped_at {AT + 15 * n - 40 * (n > 9)}\n{answer(1, n, False)}" for n in ANSWERS)]  # set back
    + ["".join(f"# scraped_at {AT + n // 2}\n{answer(1, n, False)}" for n in ANSWERS)]  # twice a second
    + [  # by two who captured it: one after the other began, and one within the time of the other; behind summer time
        "".join(f"# scraped_at {AT + k - back}\n{answer(1, k / 15, False)}" for k, back in told)
        for told in (
            [(k, 0) for k in (*range(0, 600, 10), *range(303, 900, 10))],
            [(k, 0) for k in (*range(0, 600, 10), *range(203, 400, 10))],
            [(k, 3600 * (k >= 3600)) for k in range(0, 7200, 60)],
        )
    ],
)
def test_a_server_whose_scrapes_are_in_no_order_is_one(tmp_path, text):
    got = metrics(tmp_path, text)
    assert set(got.column("engine", "replica")) == {"0"} and not got.lost
