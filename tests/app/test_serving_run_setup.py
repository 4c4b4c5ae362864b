"""The setup of a run that is calibrated on, and that of what is asked beside it: what of the one is of the other."""

from types import SimpleNamespace

import pytest

from app.whatif.serving import SERVING
from app.whatif.serving.inputs import run_setup, setup
from errors import QuestionError
from runs.tables import MemoryTables
from simulators.serving.setup import Speculation
from tests.app.commands import asked_by

FACTS = {
    "model": "qwen3-30b-a3b",
    "chip": "h100",
    "chips": 8,
    "tensor_parallel_size": 4,
    "data_parallel_size": 2,
    "max_num_seqs": 64,
    "kv_cache_tokens": 123_456,
}


def made(facts, tables=None):
    return SimpleNamespace(
        tables=MemoryTables(tables or {}),
        manifest=SimpleNamespace(name="made", facts={k: SimpleNamespace(value=v) for k, v in facts.items()}),
    )


def args(*more):
    return asked_by(SERVING, "--calibrate", "made", *more)


@pytest.mark.parametrize(
    "said",
    [
        ("--chips", 8),
        ("--chip", "H100 SXM"),
        ("--model", "Qwen/Qwen3-30B-A3B"),
        ("--max-sequences", 64),
        ("--tensor", 4),
        ("--replicas", 2, "--chips", 8),
        ("--memory-utilization", 0.9),
        ("--token-budget", 8192),
        ("--precision", "bf16"),
        ("--kv-precision", "bf16"),
    ],
)
def test_saying_what_is_so_changes_nothing(said):
    """`--chips 8` of a run on 8 chips made one group of eight out of two of four, and forgot the size of its cache."""
    run = made(FACTS)
    assert setup(args(*said), run) == setup(args(), run) == run_setup(args(*said), run)


@pytest.mark.parametrize(("chips", "data", "replicas"), [(8, 2, 2), (16, 2, 4), (16, 1, 4), (12, 1, 3)])
def test_servers_side_by_side_are_replicas_as_one_of_them_is_split(chips, data, replicas):
    """What a log says of its split is of one server; chips are those of all."""
    found = run_setup(args(), made(FACTS | {"chips": chips, "data_parallel_size": data}))
    assert (found.chips, found.tensor, found.replicas) == (chips, 4, replicas)


@pytest.mark.parametrize(
    ("chips", "split"),
    [
        (8, {"data_parallel_size": 1, "expert_parallel_size": 8}),
        (8, {"tensor_parallel_size": 2, "data_parallel_size": 1, "expert_parallel_size": 8}),
        (8, {"parallelism": {"data": 1, "expert": 8}}),
        (16, {"tensor_parallel_size": 2, "data_parallel_size": 1, "expert_parallel_size": 8}),
    ],
)
def test_a_replica_over_which_experts_are_spread_is_one(chips, split):
    """Chips that hold the experts of one server are no servers beside it."""
    facts = {k: v for k, v in FACTS.items() if not k.endswith("parallel_size")}
    found = run_setup(args(), made(facts | {"chips": chips} | split))
    assert (found.chips, found.expert, found.replicas) == (chips, 8, chips // 8)


@pytest.mark.parametrize(
    ("split", "replicas"),
    [
        ({"data_parallel_size": 1}, 1),
        ({"data_parallel_size": 2}, 2),
        ({"parallelism": {"data": 2, "model": 4}}, 2),
    ],
)
def test_replicas_that_are_said_alone_share_the_chips(split, replicas):
    """Where nothing tells how each is split, it is over its part of the chips."""
    facts = {k: v for k, v in FACTS.items() if not k.endswith("parallel_size")}
    found = run_setup(args(), made(facts | split))
    assert (found.chips, found.tensor, found.replicas) == (8, 8 // replicas, replicas)


@pytest.mark.parametrize("axis", ["pipeline", "context"])
def test_axes_that_are_not_simulated_make_no_replicas(axis):
    facts = {k: v for k, v in FACTS.items() if not k.endswith("parallel_size")}
    with pytest.raises(QuestionError, match="1 replicas of 4 chips are not 8 chips"):
        run_setup(args(), made(facts | {"parallelism": {"data": 1, "tensor": 4, axis: 2}}))


@pytest.mark.parametrize("lacking", ["chip", "chips", "model"])
def test_what_only_an_option_says_is_the_runs_too(lacking):
    run = made({k: v for k, v in FACTS.items() if k != lacking})
    said = args(f"--{lacking}", FACTS[lacking])
    assert setup(said, run) == run_setup(said, run) and setup(said, run).cache_tokens == 123_456


@pytest.mark.parametrize("said", [("--chips", 4), ("--chip", "h200"), ("--tensor", 8), ("--token-budget", 2048)])
def test_saying_something_else_forgets_the_size_of_the_cache(said):
    assert setup(args(*said), made(FACTS)).cache_tokens is None


def test_a_peak_is_of_the_chip_that_is_asked_about():
    """1e15 for another chip was the run's as well, so that its share of the peak came out wrong."""
    run = made(FACTS)
    asked = args("--chip", "h200", "--peak-flops-per-s", "1e15")
    assert (run_setup(asked, run).peak_flops_per_s, setup(asked, run).peak_flops_per_s) == (None, 1e15)
    asked = args("--peak-flops-per-s", "1e15")
    assert run_setup(asked, run).peak_flops_per_s == setup(asked, run).peak_flops_per_s == 1e15
    asked = args("--chip", "h200", "--ran", "peak-flops-per-s=9e14")
    assert (run_setup(asked, run).peak_flops_per_s, setup(asked, run).peak_flops_per_s) == (9e14, None)


@pytest.mark.parametrize(
    ("tokens", "longest", "sequences", "expected"), [(123_456, 8192, 15.07, 8192), (60_000, 8192, 15.07, 0)]
)
def test_for_which_sequences_the_cache_is_stated_goes_with_it(tokens, longest, sequences, expected):
    run = made(FACTS | {"kv_cache_tokens": tokens, "max_concurrency_at": {"tokens": longest, "sequences": sequences}})
    assert setup(args(), run).cache_length == run_setup(args(), run).cache_length == expected
    assert setup(args("--chips", 4), run).cache_length is None
    assert run_setup(args("--ran", "cache-tokens=9000"), run).cache_length is None


def requests(drafted, accepted):
    return {"requests": {"id": ["a", "b"], "drafted": drafted, "accepted": accepted}}


def test_a_run_that_speculates_is_fitted_as_one():
    """Three tokens ahead, 70 % kept each given those before: 0.7 + 0.49 + 0.343 of three. Fitted as if every token took
    a step, times per token were 48 % off, and the memory had 99 % of its peak."""
    tables = requests([3000, 3000], [1533, 1533])
    run = made(FACTS | {"num_speculative_tokens": 3}, tables)
    found = run_setup(args(), run).speculation
    assert (found.draft, found.cost) == (3, 0.0) and found.acceptance == pytest.approx(0.7)
    assert setup(args(), run).speculation == found
    assert setup(args("--acceptance", 0.5), run).speculation == Speculation(3, 0.5)
    assert setup(args("--model", "qwen3-8b"), run).speculation is None
    asked = args("--draft", 2, "--acceptance", 0.9, "--ran", "cost=0.1")
    assert setup(asked, run).speculation == Speculation(2, 0.9, 0.1)
    assert run_setup(asked, run).speculation.cost == 0.1
    assert run_setup(args(), made(FACTS, requests([0, 0], [0, 0]))).speculation is None


def test_drafting_of_which_too_little_is_known_is_refused_with_what_to_say():
    run = made(FACTS | {"num_speculative_tokens": 3})
    with pytest.raises(QuestionError, match="what share of them was kept.*acceptance="):
        run_setup(args(), run)
    assert run_setup(args("--ran", "acceptance=0.6"), run).speculation == Speculation(3, 0.6)
    with pytest.raises(QuestionError, match="how many tokens ahead.*draft=3"):
        run_setup(args(), made(FACTS, requests([3000, 3000], [1533, 1533])))
    for unsaid in ("--acceptance", "--cost"):
        with pytest.raises(QuestionError, match="where no tokens are proposed"):
            setup(args(unsaid, 0.5), made(FACTS))
