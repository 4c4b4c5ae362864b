"""A job that is started again on fewer chips, or on more, held neither number throughout: the mean over its time."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from analyzers.time import ledger
from collectors.ingest import ingest
from collectors.ingesting.chip_facts import chips_over_time
from errors.options import parse_options
from runs.run import FactValue
from runs.store import Store
from tests.collectors.test_megatron import EVERY, START, log, old

NOON = datetime(2026, 4, 25, 12, tzinfo=UTC)
TOKENS = 8192


def titan(*starts: tuple[int, int, int, int], dated: bool = True) -> str:
    """(second after noon, chips, first step, steps of a second each) of each start; the first step ends ten seconds
    behind it."""
    lines = []
    for begin, chips, first, steps in starts:

        def at(second: int) -> str:
            time = f"{NOON + timedelta(seconds=second):%Y-%m-%d %H:%M:%S},000 - " if dated else ""
            return f"[titan] {time}root - INFO - "

        lines += [
            f"{at(begin)}Building 1-D device mesh with ['dp_shard'], [{chips}]",
            f"{at(begin)}Trainer is initialized with local batch size 1, global batch size {chips}, gradient "
            f"accumulation steps 1, sequence length {TOKENS}, total steps 9000 (warmup 200)",
        ]
        lines += [
            f"{at(begin + 10 + n)}step: {first + n:2}  loss: 3.25000  memory: 66.91GiB(37.51%)  tps: {TOKENS}  "
            "tflops: 400.00  mfu: 40.44%"
            for n in range(steps)
        ]
    return "\n".join(lines) + "\n"


def stored(tmp_path, *logs: str, **options):
    folder = tmp_path / "in"
    folder.mkdir()
    for n, text in enumerate(logs):
        (folder / f"{n}.log").write_text(text)
    store = Store(tmp_path / "store")
    return store.find(ingest([folder], store, **options).run_id)


def said_of(run) -> str:
    return "; ".join(w for w in run.manifest.warnings if "chips" in w)


def test_chip_time_is_what_was_held_at_each_start(tmp_path):
    """16 chips for 400 s, 8 for 800 s: 10.7 on average. The last number counted, of 16 as of 8."""
    text = titan((0, 16, 1, 300), (400, 8, 200, 790))
    run = stored(tmp_path, text)
    assert run.manifest.fact("chips") == 11 and "job_ran" not in run.manifest.facts
    expected = (
        "the job ran on 16 at first, 8 from 2026-04-25 12:06 UTC on: 10.7 on average over its time, counted as 11"
    )
    assert expected in said_of(run)
    held = ledger.analyze(run.tables, run.manifest.facts, parse_options(ledger.OPTIONS, {})).ledger.account
    assert held.chip_seconds == pytest.approx(16 * 400 + 8 * 800, rel=0.05)
    # a step's tokens are those of the chips that it ran on
    rates = run.tables.arrow("steps", ["tokens_per_s_per_chip"])["tokens_per_s_per_chip"].to_pylist()
    assert set(rates) == {float(TOKENS)}


def test_starts_in_files_of_their_own_tell_the_same(tmp_path):
    """The later file is the first by name; and a rank's own log of the same time changes nothing."""
    first, then = titan((0, 16, 1, 300)), titan((400, 8, 200, 790))
    run = stored(tmp_path, then, first, first.replace("[titan]", "[rank1]:[titan]"))
    assert run.manifest.fact("chips") == 11 and "the larger counts" not in said_of(run)


@pytest.mark.parametrize(
    "logs, options, chips, told",
    [
        ([titan((0, 16, 1, 300), (400, 8, 200, 790))], {"chips": 16}, 16, ""),
        ([titan((0, 16, 1, 300), (400, 16, 200, 790))], {}, 16, ""),
        ([titan((0, 8, 1, 300)), titan((0, 16, 1, 300))], {}, 16, "the larger counts"),
        ([titan((0, 16, 1, 30), (400, 8, 20, 79), dated=False)], {}, 16, ""),
        ([titan((0, 16, 1, 0), (5, 8, 1, 300))], {}, 16, ""),
    ],
    ids=["declared", "as-many-again", "at-the-same-time", "not-dated", "no-step-between"],
)
def test_else_the_largest_counts(tmp_path, logs, options, chips, told):
    run = stored(tmp_path, *logs, **options)
    assert run.manifest.fact("chips") == chips
    assert told in said_of(run) and "on average" not in said_of(run)


def test_megatron_tells_of_each_of_its_starts(tmp_path):
    dated = [f" [2026-04-25 12:{m:02}:00] iteration" for m in (10, 20, 40)]
    lines = [old(n, 1000.0).replace(" iteration", when, 1) for n, when in enumerate(dated, 1)]
    fewer = START.replace("size: 8,", "size: 4,") + EVERY.replace(". 8\n", ". 4\n")
    got = log(tmp_path, START + EVERY + "".join(lines[:2]) + fewer + lines[2])
    assert [(one["chips"], (one["last_ns"] - one["first_ns"]) / 60e9) for one in got.ran] == [(8, 10), (4, 20)]
    assert got.facts["chips"] == 8 and "numbers of chips" not in got.reasons()


@pytest.mark.parametrize("zone", [0, -7], ids=["same-zone", "seven-hours-behind"])
def test_a_scheduler_whose_times_are_of_another_zone_tells_of_no_further_starts(tmp_path, zone):
    """16 chips for two hours, 8 for two: 12. Seven hours apart from the log, four starts and 10.9 were told."""

    def clock(hour: float) -> str:
        return f"{NOON + timedelta(hours=hour + zone):%Y-%m-%dT%H:%M:%S}"

    accounts = ["JobID|JobName|State|ExitCode|Start|End|AllocTRES|Restarts"]
    accounts += [f"7|train|NODE_FAIL|0:0|{clock(0)}|{clock(2)}|gres/gpu=16|0"]
    accounts += [f"7|train|COMPLETED|0:0|{clock(2)}|{clock(4)}|gres/gpu=8|1"]
    run = stored(tmp_path, titan((0, 16, 1, 7000), (7200, 8, 5000, 7100)), "\n".join(accounts) + "\n")
    assert run.manifest.fact("chips") == 12 and said_of(run).count(" from 2026") == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_is_that_of_each_second(seed):
    rng = random.Random(seed)
    told = []
    for _ in range(rng.randint(2, 6)):
        first = rng.randint(0, 60)
        told.append({"chips": rng.choice([4, 8, 16, 64]), "first_ns": first, "last_ns": first + rng.randint(1, 30)})
    seconds: list[int] = []
    for second in range(min(t["first_ns"] for t in told), max(t["last_ns"] for t in told)):
        now = [t["chips"] for t in told if t["first_ns"] <= second < t["last_ns"]]
        seconds.append(max(now) if now else seconds[-1])
    found, sentence = chips_over_time(
        [FactValue(t, "derived", "a.log") for t in told], FactValue(64, "measured", "a.log")
    )
    if len(set(seconds)) == 1:
        assert found is None
    else:
        assert found is not None and found.value == pytest.approx(sum(seconds) / len(seconds), abs=0.51)
        assert f"{seconds[0]} at first" in sentence
