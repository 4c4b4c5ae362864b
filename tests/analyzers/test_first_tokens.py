"""What first tokens wait for: against engines whose queue, seats and chunks are known, and against counting by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from analyzers.serving.first_tokens import FEW, ahead, chance_of, held_up, queue
from analyzers.serving.standstills import at_the_start
from runs.tables import MemoryTables
from tests.analyzers.served_worlds import World, world

QUIET, TTFT_S, E2E_S, PASS_S = 30, 0.005, 0.1, 0.003


def rows_of(made: World) -> pd.DataFrame:
    """Requests as the rule has them; a pass as their answers alone tell it."""
    table = pd.DataFrame({n: made.requests[n] for n in ("arrival_ns", "first_token_ns", "last_token_ns")})
    pieces = np.array([max(len(g), 1) for g in made.requests["gaps_ns"]])
    apart = table["last_token_ns"] - table["first_token_ns"]
    return pd.DataFrame(
        {
            "arrival_ns": table["arrival_ns"].astype("Float64"),
            "ttft_s": (table["first_token_ns"] - table["arrival_ns"]) / 1e9,
            "e2e_s": (table["last_token_ns"] - table["arrival_ns"]) / 1e9,
            "pass_s": apart / pieces / 1e9,
            "replica": None,
        }
    )


def pairs(second_s: list[float]) -> pd.DataFrame:
    """Requests every second that find nothing ahead; the first ones are each followed by another 10 ms later, which
    waits so long for its first token."""
    quiet = [(float(n), TTFT_S, E2E_S) for n in range(QUIET)]
    late = [(n + 0.01, wait, wait + 0.02) for n, wait in enumerate(second_s)]
    table = pd.DataFrame(sorted(quiet + late), columns=["at_s", "ttft_s", "e2e_s"])
    arrival = (table["at_s"] * 1e9).round().astype("Float64")
    return table.assign(arrival_ns=arrival, pass_s=PASS_S, replica=None)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "rate", "slots"), [(30, 8, 2), (60, 8, 4), (200, 12, 16)])
def test_a_queue_for_seats_is_told_by_what_requests_take_that_find_others_ahead(n, rate, slots, seed):
    made = world(n=n, rate=rate, slots=slots, seed=seed)
    rows = rows_of(made)
    truth = np.nansum(made.truth["scheduled"] - made.truth["arrival"]) / rows["ttft_s"].sum()
    told = queue(rows)
    assert told is not None and told.chance < 0.001
    assert truth > 0.9 and truth - 0.2 < told.share <= truth + 0.02


@pytest.mark.parametrize("seed", range(3))
def test_requests_that_wait_for_no_more_than_passes_queue_nowhere(seed):
    told = queue(rows_of(world(n=40, rate=2, slots=64, chunk=2048, seed=seed)))
    assert told is not None and told.chance > 0.2


def test_a_wait_is_what_is_beyond_two_passes_and_what_a_request_takes_alone():
    waits = [0.04, 0.05, 0.06, 0.05, 0.04, 0.05]
    told = queue(pairs(waits))
    beyond = sum(w - 2 * PASS_S - TTFT_S for w in waits)
    assert told is not None and told.requests == len(waits) and told.usual_s == pytest.approx(TTFT_S)
    assert told.share == pytest.approx(beyond / (sum(waits) + QUIET * TTFT_S)) and told.chance < 0.001


def test_an_engine_that_stood_still_once_is_no_queue():
    told = queue(pairs([0.5, 0.4, 0.3] + [0.011] * 9))
    assert told is not None and told.share > 0.5 and told.chance > 0.05


def test_where_too_few_wait_or_nothing_varies_no_queue_is_told_nor_ruled_out():
    assert queue(pairs([0.05] * (FEW - 1))) is None
    assert queue(pairs([0.05] * 9).assign(arrival_ns=pd.NA)) is None
    steady = pd.DataFrame({"arrival_ns": np.arange(40) * 1e7, "ttft_s": 0.3, "e2e_s": 0.4, "pass_s": 0.01})
    told = queue(steady.assign(replica=None))
    assert told is not None and told.share == 0 and told.chance > 0.2


def test_one_replica_is_not_ahead_of_another():
    rows = pairs([0.005] * 9)
    assert (ahead(rows) == np.where(rows["at_s"] % 1 > 0, 1, 0)).all()
    apart = rows.assign(replica=np.where(rows["at_s"] % 1 > 0, "b", "a"))
    assert queue(apart) is None


@pytest.mark.parametrize("seed", range(4))
def test_chance_is_that_of_mann_and_whitney(seed):
    rng = np.random.default_rng(seed)
    late, others = rng.integers(2, 14, 9).astype(float), rng.integers(0, 12, 30).astype(float)
    expected = mannwhitneyu(late, others, alternative="greater", method="asymptotic").pvalue
    assert chance_of(late, others) == pytest.approx(expected, rel=1e-9)
    assert chance_of(np.ones(5), np.ones(7)) == 1.0


def test_what_others_wait_while_a_long_prompt_is_read_is_told_and_no_more():
    rows = pairs([0.08] * 8 + [0.005] * 10)
    long = (rows["at_s"] % 1 == 0).to_numpy() & (rows["at_s"] < 8).to_numpy()
    rows["ttft_s"] = np.where(long, 0.06, rows["ttft_s"])
    told = held_up(rows, long)
    assert told is not None and told.requests == 8 and told.chance < 0.001
    assert told.share == pytest.approx(8 * 0.05 / rows["ttft_s"][~long].sum())  # until the long one was read
    assert held_up(rows, np.zeros(len(rows), dtype=bool)) is None


def started(stops_s: list[float], after: int = 20) -> tuple[MemoryTables, np.ndarray, np.ndarray, np.ndarray]:
    """A request at once whose pieces come after these stops, then others of quick pieces when they are over."""
    over = sum(stops_s)
    arrival = np.array([0.0, *(over + 0.05 * n for n in range(after))])
    ttft = np.array([stops_s[0], *[0.01] * after])
    gaps = [stops_s[1:], *[[0.005] * 5] * after]
    e2e = ttft + [sum(g) for g in gaps]
    tables = MemoryTables({"requests": {"gaps_ns": [[round(g * 1e9) for g in of] for of in gaps]}})
    return tables, arrival, ttft, e2e


def test_standstills_from_the_first_request_on_are_counted_and_timed():
    told = at_the_start(*started([1.0, 0.6, 0.9]))
    assert told is not None and (told.count, told.requests) == (3, 1)
    assert told.lost_s == pytest.approx(2.5, rel=0.02) and told.longest_s == pytest.approx(1.0)


def test_one_standstill_or_a_late_one_or_none_is_no_start():
    assert at_the_start(*started([0.6])) is None
    assert at_the_start(*started([0.01, 0.6, 0.9])) is None
    assert at_the_start(*started([0.2, 0.2, 0.2])) is None
    tables, arrival, ttft, e2e = started([1.0, 0.6])
    ttft[-5], e2e[-5] = 0.9, 0.925
    assert at_the_start(tables, arrival, ttft, e2e) is None


def test_time_without_requests_is_no_standstill():
    tables, arrival, ttft, e2e = started([1.0, 0.6])
    told = at_the_start(tables, np.where(arrival > 0, arrival + 7.0, 0.0), ttft, e2e)
    assert told is not None and told.count == 2 and told.lost_s == pytest.approx(1.6, rel=0.03)
