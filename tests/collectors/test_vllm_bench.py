"""Results of `vllm bench serve`: the printed block, and saved JSON."""

import json
import math

import pytest

from collectors.serving import sglang_bench, vllm_bench
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.serving_files import BLOCK, SGLANG_BLOCK, detailed, percentile, result, template

S = 1_000_000_000
DATE_NS = 1_777_142_838 * S  # 2026-04-25 18:47:18 UTC


def text(tmp_path, content, name="bench.txt"):
    return read(vllm_bench, source_of(tmp_path, content, name))


def saved(tmp_path, *results, name="result.json", between="\n"):
    return read(vllm_bench, source_of(tmp_path, between.join(json.dumps(r) for r in results), name))


def stats(got):
    return {(r["stage"], r["metric"], r["statistic"]): r["value"] for r in got.rows["stage_stats"]}


def test_a_block_is_a_load(tmp_path):
    got = text(tmp_path, BLOCK)
    [stage] = got.rows["stages"]
    assert stage == {
        "stage": "bench.txt",
        "tool": "vllm_bench",
        "order": 0,
        "start_ns": None,
        "duration_s": 1202.5,
        "requested_rate_per_s": 2.5,
        "max_concurrency": 64,
        "completed": 3000,
        "failed": 2,
        "input_tokens": 2997000,
        "output_tokens": 3000000,
        "request_rate_per_s": 2.49,
        "goodput_per_s": 1.75,
        "output_tokens_per_s": 2494.8,
        "total_tokens_per_s": 4987.1,
        "peak_output_tokens_per_s": 2872.0,
        "peak_concurrency": 77.0,
        "outcome": "measured",
        "source": "bench.txt",
    }
    assert {key[1:]: value for key, value in stats(got).items()} == {
        ("ttft", "mean"): 0.25104,
        ("ttft", "p50"): 0.19881,
        ("ttft", "p99"): 2.50165,
        ("tpot", "mean"): 0.02535,
        ("tpot", "p50"): 0.0254,
        ("tpot", "p90"): 0.02542,
        ("tpot", "p99.9"): 0.02543,
        ("itl", "mean"): 0.02535,
        ("itl", "p50"): 0.02311,
        ("itl", "p99"): 0.04075,
        ("e2e", "mean"): 25.60025,
        ("e2e", "p50"): 25.5005,
        ("e2e", "p99"): 27.00075,
        ("queue", "mean"): 1.4245,
        ("queue", "p99"): 2.82051,
        ("acceptance_rate", "mean"): 0.6125,
        ("acceptance_length", "mean"): 2.84,
        ("drafts", "total"): 1000,
        ("drafted_tokens", "total"): 3000,
        ("accepted_tokens", "total"): 1838,
        ("acceptance_rate", "per_position_0"): 0.801,
        ("acceptance_rate", "per_position_1"): 0.6005,
        ("acceptance_rate", "per_position_2"): 0.4365,
    }
    assert got.lost == []


def test_prefixes_colours_case_and_the_older_spelling_do_no_harm(tmp_path):
    def disguised(i, line):
        prefix = ("[pod/bench-0/main] ", "2026-04-25 18:47:18,123 INFO bench.py:88: ", "\x1b[36m(Bench pid=7)\x1b[0m ")
        return (
            "50%|xxx|\r" * (i == 0)
            + prefix[i % 3]
            + line.replace("Total token throughput", "Total Token throughput")
            + "   "
        )

    lines = [disguised(i, line.upper() if i % 2 else line) for i, line in enumerate(BLOCK.splitlines())]
    got = text(tmp_path, "Starting main benchmark run...\n" + "\n".join(lines) + "\nDone: 7\n", "b.log")
    clean = text(tmp_path, BLOCK, "b.log")
    assert got.rows == clean.rows


def test_several_blocks_and_what_is_printed_ahead_of_each(tmp_path):
    old = BLOCK.replace("Maximum request concurrency:             64\n", "").replace(
        "Request rate configured (RPS):           2.50\n", ""
    )
    log = (
        "Namespace(backend='vllm', model='Qwen/Qwen3-32B', seed=0)\nTraffic request rate: 4.0\n"
        f"Maximum request concurrency: 32\n{old}"
        f"Traffic request rate: inf\nMaximum request concurrency: None\n{old}{old}"
    )
    got = text(tmp_path, log, "sweep/all.log")
    assert got.column("stages", "stage") == ["sweep/all.log", "sweep/all.log #2", "sweep/all.log #3"]
    assert got.column("stages", "requested_rate_per_s") == [4.0, math.inf, None]
    assert got.column("stages", "max_concurrency") == [32, None, None]
    assert got.column("stages", "order") == [0, 1, 2]
    assert got.facts == {"model": "Qwen/Qwen3-32B"}


def test_templates_are_refused_and_named_beside_results(tmp_path):
    with pytest.raises(InputError, match="template"):
        text(tmp_path, template())
    with pytest.raises(InputError, match="template"):  # as a guide has it: some real numbers, the rest placeholders
        text(tmp_path, BLOCK.replace("251.04", "xxx"))
    got = text(tmp_path, template() + "\n" + BLOCK)
    assert len(got.rows["stages"]) == 1
    assert "results (1): they are templates" in got.reasons()
    with pytest.raises(InputError, match="no result"):
        text(tmp_path, "nothing\n")


def test_a_block_cut_off_keeps_what_came_before(tmp_path):
    cut = BLOCK[: BLOCK.index("P99 TTFT")]
    got = text(tmp_path, cut)
    assert got.column("stages", "completed") == [3000] and len(got.rows["stage_stats"]) == 2
    assert "the input ends in the middle of it" in got.reasons()
    got = text(tmp_path, cut + BLOCK)
    assert len(got.rows["stages"]) == 2 and "another begins in them" in got.reasons()


def test_diffusion_rows_are_scalars_and_unknown_rows_are_named(tmp_path):
    more = (
        "----------------Diffusion Decoding----------------\nCommitted throughput (tok/s):            512.25\n"
        "Denoising steps per canvas:              8.50\nFlux capacity (GW):                      1.21\n"
    )
    got = text(tmp_path, BLOCK.replace("-------------- Client", more + "-------------- Client"))
    assert [(r["name"], r["value"], r["unit"]) for r in got.rows["scalars"]] == [
        ("bench.txt/diffusion_committed_throughput", 512.25, "tokens/s"),
        ("bench.txt/diffusion_steps_per_canvas", 8.5, None),
    ]
    assert "'Flux capacity (GW)'" in got.reasons()


def test_a_run_in_which_all_failed_has_no_latency(tmp_path):
    zeros = "\n".join(
        f"{line.partition(':')[0]}: 0.00" if "(ms)" in line or "throughput" in line else line
        for line in BLOCK.replace("3000\n", "0\n", 1).splitlines()
    )
    got = text(tmp_path, zeros)
    assert got.column("stages", "outcome") == ["failed"] and got.column("stages", "failed") == [2]
    assert got.column("stages", "output_tokens_per_s") == [None]
    assert "stage_stats" not in got.rows and "no measurement" in got.reasons()


def test_a_block_with_times_that_cannot_be(tmp_path):
    got = text(tmp_path, BLOCK.replace("1202.50", "0.00").replace("251.04", "-3.00").replace("198.81", "nan"))
    assert got.column("stages", "duration_s") == [None]
    assert ("bench.txt", "ttft", "mean") not in stats(got) and ("bench.txt", "ttft", "p50") not in stats(got)
    assert "durations (1)" in got.reasons() and "times in results (2)" in got.reasons()


def test_a_plain_saved_result(tmp_path):
    got = saved(tmp_path, result())
    [stage] = got.rows["stages"]
    assert (stage["stage"], stage["requested_rate_per_s"], stage["max_concurrency"]) == ("result", math.inf, None)
    assert (stage["completed"], stage["failed"], stage["goodput_per_s"]) == (3, 1, 0.2)
    assert stage["start_ns"] == DATE_NS - 10 * S
    assert stats(got)["result", "ttft", "mean"] == 0.2510417
    assert got.facts == {"model": "meta-llama/Llama-3.1-8B"}
    assert "requests" not in got.rows


def test_speculation_of_a_saved_result(tmp_path):
    got = saved(
        tmp_path,
        result(
            spec_decode_acceptance_rate=61.5,
            spec_decode_acceptance_length=2.84,
            spec_decode_num_drafts=10,
            spec_decode_draft_tokens=30,
            spec_decode_accepted_tokens=18,
            spec_decode_per_position_acceptance_rates=[0.8, 0.6, 0.4],
            p99_client_queue_time_ms=1500.0,
        ),
    )
    assert {k[1:]: v for k, v in stats(got).items() if k[1] not in ("ttft", "tpot")} == {
        ("acceptance_rate", "mean"): 0.615,
        ("acceptance_length", "mean"): 2.84,
        ("drafts", "total"): 10,
        ("drafted_tokens", "total"): 30,
        ("accepted_tokens", "total"): 18,
        ("queue", "p99"): 1.5,
        ("acceptance_rate", "per_position_0"): 0.8,
        ("acceptance_rate", "per_position_1"): 0.6,
        ("acceptance_rate", "per_position_2"): 0.4,
    }


def test_a_detailed_result_has_its_requests(tmp_path):
    got = saved(tmp_path, detailed())
    rows = got.rows["requests"]
    assert [r["status"] for r in rows] == ["completed", "completed", "failed", "completed"]
    assert [r["ttft_ns"] for r in rows] == [S // 2, S // 4, None, 3 * S // 4]
    assert [r["e2e_ns"] for r in rows] == [3 * S // 4, S // 2, None, 3 * S // 4 + 3 * S // 16]
    assert rows[0]["gaps_ns"] == [S // 8, S // 8] and rows[2]["gaps_ns"] is None
    assert [r["output_tokens"] for r in rows] == [3, 2, 0, 4] and rows[2]["error"] == "Traceback: refused"
    # A monotonic clock: the last answer (the fourth, sent 3 s after the first) ends at the result's date.
    assert rows[3]["arrival_ns"] == DATE_NS - rows[3]["e2e_ns"]
    assert rows[0]["arrival_ns"] == rows[3]["arrival_ns"] - 3 * S == got.column("stages", "start_ns")[0]
    assert set(got.column("requests", "stage")) == {"result"}
    assert "the last answer is taken to end at the result's date" in got.reasons()
    assert "the summary says" not in got.reasons()  # and so the statistics agree with the requests


def test_start_times_that_are_times_of_day_stay(tmp_path):
    got = saved(tmp_path, detailed(monotonic=False))
    assert got.column("requests", "arrival_ns")[0] == 1_777_142_838 * S + S // 4
    without = saved(tmp_path, detailed(date=None))
    assert without.column("requests", "arrival_ns") == [0, S, 2 * S, 3 * S]
    assert without.facts["request_times"] == "since start"


@pytest.mark.parametrize("date", ["99991231-235959", "22630101-000000", "00010101-000000"])
def test_a_date_that_64_bits_of_nanoseconds_do_not_hold_is_none(tmp_path, date):
    assert saved(tmp_path, detailed(date=date)).rows == saved(tmp_path, detailed(date=None)).rows


@pytest.mark.parametrize("monotonic", [True, False])
def test_a_load_that_lasted_eight_thousand_years_has_no_start(tmp_path, monotonic):
    got = saved(tmp_path, detailed(monotonic=monotonic, duration=253_402_300_799))
    usual = saved(tmp_path, detailed(monotonic=monotonic))
    assert got.column("stages", "duration_s") == [253_402_300_799]
    assert got.column("requests", "arrival_ns") == usual.column("requests", "arrival_ns")


def test_every_number_that_its_requests_contradict_is_named(tmp_path):
    right = detailed()
    wrong = right | {"median_ttft_ms": right["median_ttft_ms"] + 1, "total_output_tokens": 12, "p99_itl_ms": 1.0}
    named = {lost.what: lost.reason for lost in saved(tmp_path, wrong).lost if "the summary says" in lost.reason}
    assert named.keys() == {f"result: {k} (1)" for k in ("total_output_tokens", "p99_itl_ms", "median_ttft_ms")}
    assert named["result: total_output_tokens (1)"] == "the summary says 12, its requests give 9"
    rounded = right | {k: round(v, 2) for k, v in right.items() if k.endswith("_ms")}
    assert "the summary says" not in saved(tmp_path, rounded).reasons()


def test_with_speculation_pieces_are_fewer_than_tokens(tmp_path):
    right = detailed()
    right |= {
        "output_lens": [9, 5, 0, 4],
        "total_output_tokens": 18,
        "output_throughput": 1.8,
        "total_token_throughput": 61.8,
    }
    tpots = [0.25 / 8, 0.25 / 4, 0.1875 / 3]
    right |= {
        "mean_tpot_ms": 1e3 * sum(tpots) / 3,
        "median_tpot_ms": 1e3 * percentile(tpots, 50),
        "p99_tpot_ms": 1e3 * percentile(tpots, 99),
        "std_tpot_ms": None,
    }
    got = saved(tmp_path, right)
    assert got.column("requests", "output_tokens") == [9, 5, 0, 4]
    assert [len(g) if g is not None else None for g in got.column("requests", "gaps_ns")] == [2, 1, None, 3]
    assert "the summary says" not in got.reasons()


def test_failures_that_the_summary_does_not_count_are_those_of_its_requests(tmp_path):
    assert saved(tmp_path, detailed(failed=None)).column("stages", "failed") == [1]
    plain = saved(tmp_path, result(failed=None))  # of four that were to be sent three were answered
    assert plain.column("stages", "failed") == [None] and stats(plain)["result", "to_send", "total"] == 4
    assert ("result", "to_send", "total") not in stats(saved(tmp_path, result(failed=None, num_prompts=3)))
    assert ("result", "to_send", "total") not in stats(saved(tmp_path, result()))


def test_all_failed_in_json(tmp_path):
    got = saved(
        tmp_path,
        detailed(
            completed=0,
            failed=4,
            output_lens=[0] * 4,
            ttfts=[0.0] * 4,
            itls=[[]] * 4,
            errors=["refused"] * 4,
            mean_ttft_ms=0.0,
            total_input_tokens=0,
            total_output_tokens=0,
            request_throughput=0.0,
            output_throughput=0.0,
        ),
    )
    assert got.column("stages", "outcome") == ["failed"]
    assert set(got.column("requests", "status")) == {"failed"} and set(got.column("requests", "ttft_ns")) == {None}
    assert "stage_stats" not in got.rows


def test_statistics_of_an_endpoint_that_does_not_stream_are_none(tmp_path):
    zeros = {f"{w}_{m}_ms": 0.0 for w in ("mean", "median", "std", "p99") for m in ("ttft", "itl")}
    got = saved(tmp_path, result(**zeros))
    assert {k[1] for k in stats(got)} == {"tpot"}
    assert "statistics of ttft" in got.reasons()


@pytest.mark.parametrize("between", ["\n", "", ",\n", "\n\n"])
def test_appended_results_and_lists(tmp_path, between):
    got = saved(tmp_path, *(result(request_rate=r) for r in (1.0, 2.0, "inf")), between=between)
    assert got.column("stages", "requested_rate_per_s") == [1.0, 2.0, math.inf]
    assert got.column("stages", "stage") == ["result", "result #2", "result #3"]
    listed = read(vllm_bench, source_of(tmp_path, json.dumps([result(), result()], indent=2), "sweep/summary.json"))
    assert listed.column("stages", "stage") == ["sweep/summary", "sweep/summary #2"]


def test_a_half_written_last_result_is_named_with_its_place(tmp_path):
    whole = json.dumps(result(note="é")) + "\n"
    data = (whole + json.dumps(detailed())[:400]).encode()
    got = read(vllm_bench, source_of(tmp_path, data, "r.json"))
    assert len(got.rows["stages"]) == 1
    [lost] = [lost for lost in got.lost if lost.what.startswith("the last object")]
    assert lost.offset == len(whole.encode())
    with pytest.raises(InputError, match="ends in the middle"):
        read(vllm_bench, source_of(tmp_path, whole[:-200], "r.json"))


def test_numbers_that_are_none(tmp_path):
    bad = result(
        duration=0,
        completed="3",
        mean_ttft_ms=math.nan,
        median_ttft_ms="fast",
        p99_ttft_ms=-1.0,
        request_throughput=10**400,
        failed=-1,
        max_concurrency=2.5,
    )
    got = saved(tmp_path, bad)
    [stage] = got.rows["stages"]
    assert (stage["duration_s"], stage["completed"], stage["request_rate_per_s"]) == (None, 3, None)
    assert (stage["failed"], stage["max_concurrency"], stage["start_ns"]) == (None, None, None)
    assert set(stats(got)) == {("result", "tpot", "mean"), ("result", "to_send", "total")}
    assert "durations (1)" in got.reasons() and "statistics (1)" in got.reasons()


def test_details_that_are_damaged(tmp_path):
    bad = detailed(
        itls=[[0.125, "x"], [0.25], [], [-1.0]],
        ttfts=[math.nan, -0.25, 0.0, 0.75],
        start_times=[None, 1.0, 2.0, "now"],
        input_lens=[100, "200", None],
    )
    got = saved(tmp_path, bad)
    assert len(got.rows["requests"]) == 3  # cut to the shortest array
    assert got.column("requests", "ttft_ns") == [None, None, None]
    assert got.column("requests", "gaps_ns") == [None, [S // 4], None]
    for what in ("arrays of different lengths", "lists of gaps (1)", "times to first token"):
        assert what in got.reasons()


def test_metadata_of_a_person_is_declared(tmp_path):
    source = source_of(tmp_path, json.dumps(result(tensor_parallel_size="8", chips="16")), "r.json")
    facts = {i.name: (i.value, i.basis) for i in vllm_bench.read(source) if hasattr(i, "basis")}
    assert facts == {"model": ("meta-llama/Llama-3.1-8B", "measured"), "tensor_parallel_size": (8, "declared")}


def test_each_tool_knows_its_own(tmp_path):
    own = [
        BLOCK.encode(),
        b"log\n" * 40_000 + BLOCK.encode(),
        json.dumps(result()).encode(),
        json.dumps([detailed()], indent=1).encode(),
    ]
    for data in own:
        source = source_of(tmp_path, data)
        assert vllm_bench.sniff(source) >= 0.9 and sglang_bench.sniff(source) == 0
    for data in (SGLANG_BLOCK.encode(), b"{}", b'{"a": 1}\n', b"", b"\0" + BLOCK.encode()):
        assert vllm_bench.sniff(source_of(tmp_path, data)) == 0


def test_blocks_without_their_first_line_are_read(tmp_path):
    whole = stats(text(tmp_path, BLOCK))
    rows = BLOCK[BLOCK.index("Successful requests") :]
    bare = source_of(tmp_path, "bash-5.1$ cat out\n" + rows + rows, "bench.txt")
    assert vllm_bench.sniff(bare) > 0.5
    got = stats(read(vllm_bench, bare))
    assert got == whole | {(f"{stage} #2", *rest): value for (stage, *rest), value in whole.items()}
    cut = "\n".join(line for line in (rows + rows).splitlines() if "====" not in line)
    assert stats(text(tmp_path, cut)) == got


def test_numbers_that_read_alike_are_no_difference(tmp_path):
    """Sums in another order or of rounded times: 10.5247 beside 10.5247 tells nobody anything."""
    said = detailed()
    key = "mean_ttft_ms"
    near, far = {**said, key: said[key] * (1 + 4e-6)}, {**said, key: said[key] * 1.01}
    assert not any("its requests give" in lost.reason for lost in saved(tmp_path, near).lost)
    assert sum("its requests give" in lost.reason for lost in saved(tmp_path, far).lost) == 1
