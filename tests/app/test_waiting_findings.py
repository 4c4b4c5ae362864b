"""What is said of requests that wait: by a client alone, of few requests, and only where they truly did."""

import pytest

from analyzers.findings.base import Seen
from analyzers.findings.rules.waiting import _requests, waiting
from analyzers.serving import engine
from analyzers.serving.first_tokens import ahead
from errors import QuestionError
from runs.ledger import Account, Ledger
from runs.tables import MemoryTables
from tests.analyzers.served_worlds import world

SHORT_AND_LONG = (100,) * 11 + (9000,)
OURS = ("id", "arrival_ns", "first_token_ns", "last_token_ns", "prompt_tokens", "output_tokens", "gaps_ns", "status")


class Asked:
    """Answers about tables: of the engine, where they hold any of it."""

    frameworks = ()

    def __init__(self, tables):
        self.tables = tables

    def get(self, question):
        options = {o.name: o.default for o in engine.OPTIONS}
        try:
            return engine.analyze(self.tables, {}, options) if question == "engine" else None
        except QuestionError:
            return None

    def why(self, question):
        return ""


class Sampled(engine.EngineResult):
    """What an engine's samples tell, and nothing else."""

    def __init__(self, waiting_share):
        object.__setattr__(self, "figures", {"waiting_share": waiting_share})


def seen_of(requests):
    tables = MemoryTables({"requests": requests})
    books = Ledger(chips=1, account=Account(name="unattributed", chip_seconds=60.0, basis="unattributed"))
    return Seen(tables=tables, facts={}, answers=Asked(tables), ledger=books)


def told_of(requests):
    """What the rule says of requests."""
    return waiting(seen_of(requests))


def client(made):
    """What a client records of them."""
    return {name: made.requests[name] for name in OURS}


def named(told):
    return [f.cause for f in told.findings]


@pytest.mark.parametrize("seed", range(3))
def test_a_client_alone_tells_that_thirty_requests_queue(seed):
    made = world(n=30, rate=8, slots=2, seed=seed)
    told = told_of(client(made))
    assert named(told) == ["queueing"] and "of those that find others ahead" in told.findings[0].title
    assert told.findings[0].gain is None and "cold_start" in {r.cause for r in told.ruled_out}
    assert [n.causes for n in told.not_told] == [("long_prompts",)]


def test_an_answer_that_broke_off_is_ahead_of_nobody_for_good():
    requests = client(world(n=40, rate=2, slots=64, chunk=2048, prompts=(100,)))
    whole = ahead(_requests(seen_of(requests)))
    requests["last_token_ns"][0] = None
    broken = ahead(_requests(seen_of(requests)))
    assert whole is not None and broken is not None and (broken <= whole).all() and 0 in broken[1:]


@pytest.mark.parametrize("seed", range(3))
def test_an_engine_that_keeps_up_is_accused_of_nothing(seed):
    told = told_of(client(world(n=40, rate=2, slots=64, chunk=2048, seed=seed)))
    assert not told.findings and {r.cause for r in told.ruled_out} == {"queueing", "cold_start"}


def test_without_arrivals_nobody_is_cleared():
    requests = client(world(n=30, rate=8, slots=2))
    count = len(requests["id"])
    waits = [b - a for a, b in zip(requests["arrival_ns"], requests["first_token_ns"], strict=True)]
    told = told_of({**requests, "arrival_ns": [None] * count, "ttft_ns": waits})
    assert not told.findings and not told.ruled_out
    assert {c for gap in told.not_told for c in gap.causes} == {"queueing", "long_prompts", "cold_start"}


def test_of_a_test_of_several_loads_it_is_not_told_that_requests_queue():
    """Nor that they wait for the long prompts among them, which wait in the same queue."""
    requests = client(world(n=60, rate=8, slots=2, prompts=SHORT_AND_LONG))
    told = told_of({**requests, "stage": ["one"] * 30 + ["two"] * 30})
    assert not told.findings and ("queueing",) in [gap.causes for gap in told.not_told]


@pytest.mark.parametrize("seed", range(3))
def test_requests_that_wait_while_a_long_prompt_is_read_are_told(seed):
    told = told_of(client(world(n=120, rate=2, slots=64, seed=seed, prompts=SHORT_AND_LONG)))
    assert named(told) == ["long_prompts"] and told.findings[0].question == "latency"
    assert told.findings[0].title.startswith("10 prompts of 120 are more than 3 times as long as a usual one")


def test_long_prompts_that_nobody_waits_for_are_no_finding():
    assert not told_of(client(world(n=120, rate=0.1, slots=64, prompts=SHORT_AND_LONG))).findings


def test_requests_whose_engine_says_that_they_wait_but_for_passes_alone_do_not_queue():
    made = world(n=60, rate=1.5, slots=64, seed=3, prompts=(100,))
    late = [a + round(0.8 * (f - a)) for a, f in zip(*(made.requests[n] for n in OURS[1:3]), strict=True)]
    told = told_of({**client(made), "scheduled_ns": late})
    assert "queueing" in {r.cause for r in told.ruled_out} and not told.findings
    queued = world(n=60, rate=8, slots=3, seed=3)
    told = told_of({**client(queued), "scheduled_ns": queued.requests["scheduled_ns"]})
    assert named(told) == ["queueing"] and "before the engine takes them up" in told.findings[0].title


def test_where_all_find_others_ahead_the_engine_is_believed():
    """Eight clients, each of which asks again when it is answered: all wait alike."""
    at = [round((c / 8 + k) * 1e9) for k in range(6) for c in range(8)]
    requests = {
        "arrival_ns": at,
        "scheduled_ns": [a + 800_000_000 for a in at],
        "first_token_ns": [a + 900_000_000 for a in at],
        "last_token_ns": [a + 999_999_999 for a in at],
        "output_tokens": [10] * len(at),
        "status": ["completed"] * len(at),
    }
    assert named(told_of(requests)) == ["queueing"]
    for waited, told in ((0.05, []), (0.15, ["queueing"])):  # of the time, in which some request waited by its samples
        seen = seen_of(requests)
        seen.answers.get = lambda question, of=waited: Sampled(of) if question == "engine" else None
        assert named(waiting(seen)) == told


def test_an_engine_that_stands_still_from_the_first_request_on_compiles():
    made = world(n=60, rate=8, slots=64, seed=1, prompts=(100,))
    requests = client(made)
    stop = 2_000_000_000
    first = requests["arrival_ns"][0]
    for name in ("first_token_ns", "last_token_ns"):
        requests[name] = [max(t, first + 2 * stop) for t in requests[name]]
    requests["first_token_ns"][0] = first + stop
    requests["gaps_ns"][0] = [stop]
    told = told_of(requests)
    (finding,) = told.findings
    assert finding.cause == "cold_start" and "stood still 2 times" in finding.title
    assert finding.gain.low <= 4.0 <= finding.gain.high and sum(finding.draws.values()) == pytest.approx(4.0, rel=0.05)


def test_requests_that_failed_tell_nothing_of_first_tokens():
    """A server that is gone refuses at once, and a client writes its time-out for the first token that never came."""
    made = client(world(n=60, rate=2, slots=64, chunk=2048, prompts=(100,)))
    at, first = (made[name] for name in ("arrival_ns", "first_token_ns"))
    slow = [a + 5 * (f - a) + 300_000_000 for a, f in zip(at, first, strict=True)]
    each = {"first_token_ns": slow, "last_token_ns": [s + 900_000_000 for s in slow], "gaps_ns": [None] * 60}
    for refused, took_ns in ((range(24, 60), 0), (range(6), 30_000_000_000)):
        lost = {n: [at[i] + took_ns if i in refused else t for i, t in enumerate(each[n])] for n in OURS[2:4]}
        status = ["failed" if i in refused else "completed" for i in range(60)]
        told = told_of({**made, **each, **lost, "status": status})
        assert not told.findings and "cold_start" in {r.cause for r in told.ruled_out}
    served = told_of({**made, **each, **lost, "status": ["completed"] * 60})
    assert named(served) == ["cold_start"]  # had they been answered after 30 s
