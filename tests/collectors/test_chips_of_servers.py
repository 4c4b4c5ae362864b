"""Chips of servers that ran side by side add up; of one that was told twice, or took over from another, they do not."""

from datetime import UTC, datetime, timedelta

import pytest

from analyzers.serving import load
from analyzers.time import ledger
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

NOON = datetime(2026, 4, 25, 12, tzinfo=UTC)
BENCH = """============ Serving Benchmark Result ============
Successful requests:                     3000
Benchmark duration (s):                  600.00
Total input tokens:                      600000
Total generated tokens:                  600000
Request throughput (req/s):              5.00
==================================================
"""


def vllm(begin_s: int = 0, last_s: int = 600, tensor: int = 4, data: int = 1, engines: tuple[int, ...] = (0,)) -> str:
    """The log of a server that starts `begin_s` after noon, and in which each of its engines writes a line each ten
    seconds until `last_s`."""

    def at(second: int) -> str:
        return f"INFO {NOON + timedelta(seconds=second):%m-%d %H:%M:%S} [x.py:1]"

    sizes = f"tensor_parallel_size={tensor}, pipeline_parallel_size=1, data_parallel_size={data}"
    lines = [f"{at(begin_s)} Initializing a V1 LLM engine (v0.11.0) with config: model='llama3.1-8b', {sizes}"]
    lines += [
        f"{at(s)} Engine {engine:03}: Avg prompt throughput: {1000 + s}.0 tokens/s, "
        f"Avg generation throughput: {500 + s}.0 tokens/s, Running: 10 reqs, "
        "Waiting: 0 reqs, GPU KV cache usage: 10.0%, Prefix cache hit rate: 0.0%"
        for s in range(begin_s, last_s + 1, 10)
        for engine in engines
    ]
    return "\n".join(lines) + "\n"


def sglang(begin_s: int = 0, last_s: int = 600) -> str:
    lines = [
        f"[{NOON + timedelta(seconds=begin_s):%Y-%m-%d %H:%M:%S}] server_args=ServerArgs(model_path='m', tp_size=2)"
    ]
    lines += [
        f"[{NOON + timedelta(seconds=s):%Y-%m-%d %H:%M:%S}] Decode batch. #running-req: 4, #token: 90, "
        f"token usage: 0.10, gen throughput (token/s): {100 + s}.0, #queue-req: 0"
        for s in range(begin_s, last_s + 1, 10)
    ]
    return "\n".join(lines) + "\n"


def stored(tmp_path, *logs: str, **options):
    folder = tmp_path / "in"
    folder.mkdir()
    for n, text in enumerate(logs):
        (folder / f"{n}-2026-04-25.log").write_text(text)
    (folder / "bench.txt").write_text(BENCH)
    store = Store(tmp_path / "store")
    return store.find(ingest([folder], store, **options).run_id)


def test_what_servers_side_by_side_cost_is_of_all_their_chips(tmp_path):
    run = stored(tmp_path, vllm(), vllm(3, 603))
    assert run.manifest.fact("chips") == 8 and "server_ran" not in run.manifest.facts
    assert any("logs of 2 servers" in w and "counted as 8" in w for w in run.manifest.warnings)
    asked = parse_options(load.OPTIONS, {"usd_per_chip_hour": 2.0})
    row = load.analyze(run.tables, run.manifest.facts, asked).rows.iloc[0]
    assert row["tokens_per_s_per_chip"] == pytest.approx(1000 / 8)
    assert row["usd_per_m_output_tokens"] == pytest.approx(8 * 2 / 3600 / 1000 * 1e6)
    held = ledger.analyze(run.tables, run.manifest.facts, parse_options(ledger.OPTIONS, {})).ledger
    assert held.chips == 8 and held.chip_seconds == pytest.approx(8 * 603)


def of_pods(*logs: str) -> str:
    """The same as kubectl prints them with prefixes, line by line in turns."""
    turns = zip(*(log.splitlines() for log in logs), strict=True)
    return "".join(f"[pod/s-{n}/server] {line}\n" for turn in turns for n, line in enumerate(turn))


@pytest.mark.parametrize(
    ("logs", "chips"),
    [
        ((vllm(), vllm(last_s=300)), 4),  # fetched while it ran, and at its end
        ((vllm(), vllm(700, 1300)), 4),  # one after the other
        ((vllm(), vllm(580, 1200)), 4),  # the second was up before the first was gone
        ((vllm(), vllm(3, 603, tensor=2, data=2, engines=(0, 1)), vllm(5, 605, tensor=8)), 16),
        ((vllm(data=2), vllm(3, 603, data=2, engines=(1,))), 8),  # two hosts of one service, an engine on each
        ((sglang(), sglang(4, 604), sglang(7, 607)), 6),
        ((vllm(),), 4),
        ((vllm(), of_pods(vllm())), 4),  # once more, with what kubectl puts before its lines
        ((of_pods(vllm(), vllm(3, 603)),), 8),  # two pods in one log
        ((of_pods(vllm(), vllm(3, 603)), of_pods(vllm(), vllm(3, 603))), 8),
        ((of_pods(sglang(), sglang(4, 604)), sglang(7, 607)), 6),
        ((of_pods(vllm(data=2), vllm(3, 603, data=2, engines=(1,))),), 8),
    ],
)
def test_logs_of_one_server_or_of_several(tmp_path, logs, chips):
    run = stored(tmp_path, *logs)
    assert run.manifest.fact("chips") == chips
    assert not any("the larger counts" in w for w in run.manifest.warnings)


def test_what_a_person_says_of_chips_counts(tmp_path):
    run = stored(tmp_path, vllm(), vllm(3, 603), chips=6)
    assert run.manifest.fact("chips") == 6 and not any(w.startswith("chips:") for w in run.manifest.warnings)
