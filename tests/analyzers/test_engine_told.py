"""What an engine's inputs do not tell is not made up of what they do: passes without levels, engines told together."""

import pytest

from analyzers.serving import engine
from app.questions.engine.words import verdict
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store
from tests.analyzers.load_tests import EPOCH_NS, ask
from tests.analyzers.test_engine import S, iterated, sampled
from tests.app.metrics_server import exposition


def passes(waiting=None, **more):
    """A second of passes of 50 ms, a second without any, and another of passes."""
    at = [*range(0, 1000, 50), *range(2000, 3000, 50)]
    rows = [
        {
            "start_ns": EPOCH_NS + ms * S // 1000,
            "dur_ns": 50 * S // 1000,
            "prefill_requests": 1,
            "decode_requests": 32,
            "prefill_tokens": 512,
            "decode_tokens": 32,
            "waiting": waiting,
        }
        for ms in at
    ]
    return iterated(rows), more


def test_passes_that_do_not_tell_of_waiting_say_what_runs_and_accuse_nothing():
    tables, _ = passes()
    result = ask(engine, tables)
    assert result.figures["running"]["max"] == 33 and result.figures["waiting"] == {"mean": None, "max": None}
    assert result.figures["waiting_share"] is None
    assert result.bound["untold"] == pytest.approx(2 / 3, abs=0.02) and result.bound["unknown"] == 0
    assert result.bound["idle"] == pytest.approx(1 / 3, abs=0.02)  # of the pause it is told that nothing ran
    assert verdict(result).startswith("How many requests waited is not recorded")


@pytest.mark.parametrize("waiting, share", [(0, 0.0), (7, 1.0)])
def test_what_waits_is_taken_from_the_engines_own_samples(waiting, share):
    tables, _ = passes()
    of_log = sampled([33] * 4, [waiting] * 4, every_s=1)
    both = type(tables)({})
    both._tables = {**tables._tables, **of_log._tables}
    result = ask(engine, both, {"max_num_seqs": 64})
    assert result.figures["waiting_share"] == pytest.approx(share)
    assert result.source == "iterations" and result.figures["running"]["max"] == 33
    assert ("waited" in verdict(result) and "hardly" not in verdict(result)) == bool(waiting)


def test_passes_that_tell_of_waiting_are_believed():
    tables, _ = passes(waiting=3)
    result = ask(engine, tables, {"max_num_seqs": 33})
    assert result.bound["seats"] > 0.6 and result.bound["untold"] == 0


@pytest.mark.parametrize("running, bound, most", [(400, "unknown", 1024), (1024, "seats", 1024)])
def test_of_engines_that_are_told_together_seats_are_those_of_all_and_one_may_be_full(running, bound, most):
    tables = sampled([running] * 6, [12] * 6, kv=[0.3] * 6)
    result = ask(engine, tables, {"max_num_seqs": 128, "engines_aggregated": 8})
    assert result.bound[bound] == 1 and result.seats == most
    assert any("128 on each of 8 engines" in note for note in result.notes)


def test_engines_that_are_told_one_by_one_have_seats_of_their_own():
    tables = sampled([128] * 6, [12] * 6, kv=[0.3] * 6, replica=["0", "1"] * 3)
    assert ask(engine, tables, {"max_num_seqs": 128, "engines_aggregated": 8}).bound["seats"] == 1


def test_where_part_of_the_time_is_told_no_more_is_said_than_of_that_part():
    told = verdict(ask(engine, sampled([4] * 10, [0] * 4 + [None] * 6)))
    assert told.startswith("Requests hardly ever waited in the 40 % of the time of which that is told")
    assert "not the limit" not in told
    assert "not the limit" in verdict(ask(engine, sampled([4] * 10, [0] * 10)))


def log(seats: int, running: int, waiting: int) -> str:
    rate = 20 if seats == 16 else 90
    told = (
        f"INFO 04-25 12:{n // 6:02}:{n % 6}0 [x.py:1] Engine 000: Avg prompt throughput: 9.0 tokens/s, "
        f"Avg generation throughput: {rate}.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
        "GPU KV cache usage: 25.0%"
        for n in range(30)
    )
    begins = f"INFO 04-25 12:00:00 [x.py:1] Initializing a V1 LLM engine (v0.11.0) with config: max_num_seqs={seats}"
    return "\n".join((begins, *told)) + "\n"


@pytest.mark.parametrize("first", [(16, 16, 3), (64, 64, 0)])
def test_seats_are_those_of_each_replica_where_their_logs_differ(tmp_path, first):
    """Two servers of which one lets 16 and the other 64 run, in either order of their files; one is scraped too."""
    other = (64, 64, 0) if first[0] == 16 else (16, 16, 3)
    scrapes = "".join(f"# scraped_at {1777118400 + 10 * n}\n{exposition(10 * n, running=16)}" for n in range(30))
    scrapes = scrapes.replace("1.0\nvllm:kv", "3.0\nvllm:kv").replace("vllm:num_preemptions", "preempted")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0-2026-04-25.log").write_text(log(*first))
    (tmp_path / "in" / "1-2026-04-25.log").write_text(log(*other))
    (tmp_path / "in" / "m.prom").write_text(scrapes)
    store = Store(tmp_path / "store")
    run = store.get(ingest([tmp_path / "in"], store).run_id)

    def asked(**options):
        return engine.analyze(run.tables, run.manifest.facts, parse_options(engine.OPTIONS, options))

    result = asked()
    assert len(result.replicas) == 2 and result.seats is None and "for a seat." in verdict(result)
    assert result.bound["seats"] == pytest.approx(0.5, abs=0.02) and result.bound["tokens"] == 0
    assert sorted(asked(replica=name).seats for name in result.replicas) == [16, 64]
    assert asked(max_running=100).bound["tokens"] == pytest.approx(0.5, abs=0.02)
    assert any("16 by " in note and "64 by " in note for note in result.notes)
