"""llm.c's standard output; every line here was written for these tests."""

import pytest

from collectors.ingest import ingest
from collectors.training import llm_c
from errors import InputError
from tests.collectors.reading import read, source_of

TABLE = {
    "train data pattern": "data/train_*.bin",
    "micro batch size B": "16",
    "sequence length T": "1024",
    "total batch size": "65536",
    "device": "NVIDIA A100-SXM4-80GB",
    "peak TFlops": "312.0",
    "precision": "BF16",
    "num_layers L": "12",
    "num_heads NH": "12",
    "channels C": "768",
    "padded_vocab_size Vp": "50304",
    "num_parameters": "124475904",
    "train_num_batches": "1000",
    "num_processes": "4",
}
HEAD = "+---+---+\n" + "".join(f"| {name:21} | {value:50} |\n" for name, value in TABLE.items())


def step(n, ms, loss="10.25", mfu="30.0% bf16 MFU"):
    numbers = f"loss {loss} (+nanz)| norm 1.5000 (+0.12z)| lr 6.00e-04"
    return f"step {n:4}/1000 | {numbers} | {ms:.2f} ms | {mfu} | 113446 tok/s\n"


RUN = HEAD + "val loss 11.008742\n" + step(1, 200.0) + step(2, 100.0, "nan") + "val loss 9.5\n"


def log(tmp_path, text, name="train.log"):
    return read(llm_c, source_of(tmp_path, text, name))


def test_a_run(tmp_path):
    assert llm_c.sniff(source_of(tmp_path, RUN)) == 0.9
    assert llm_c.sniff(source_of(tmp_path, HEAD)) == 0.8
    got = log(tmp_path, RUN)
    assert got.column("steps", "step") == [1, 2] and got.column("steps", "dur_ns") == [200_000_000, 100_000_000]
    assert got.column("steps", "tokens_per_s_per_chip") == [65536 / 0.2 / 4, 65536 / 0.1 / 4]
    assert got.column("steps", "model_flops_per_chip") == pytest.approx([0.3 * 312e12 * 0.2, 0.3 * 312e12 * 0.1])
    losses = got.column("steps", "loss")
    assert losses[0] == 10.25 and losses[1] != losses[1]
    evals = [(r["step"], r["value"]) for r in got.rows["scalars"] if r["name"] == "eval/loss"]
    assert evals == [(None, 11.008742), (2, 9.5)]
    assert got.facts == {
        "micro_batch": 16,
        "sequence_length": 1024,
        "global_batch": 64,
        "chip": "NVIDIA A100-SXM4-80GB",
        "precision": "bf16",
        "model": {
            "layers": 12,
            "heads": 12,
            "d_model": 768,
            "vocab": 50304,
            "d_ff": 3072,
            "gated": False,
            "tied_embeddings": True,
        },
        "parameters": 124475904,
        "planned_steps": 1000,
        "chips": 4,
    }


def test_lines_of_the_first_versions_and_of_chips_without_a_known_peak(tmp_path):
    old = "step    1/74 | train loss 4.367631 | norm 5.1 | lr 1.00e-04 | (80.639 ms | 50788 tok/s)\n"
    unknown = step(2, 90, mfu="n/a MFU") + step(3, 90, mfu="-100.0% bf16 MFU")
    got = log(tmp_path, old + unknown)
    assert got.column("steps", "dur_ns") == [80_639_000, 90_000_000, 90_000_000]
    assert got.column("steps", "model_flops_per_chip") == [None] * 3


def test_dated_lines_and_a_restart(tmp_path):
    at = "2026-03-04T05:06:{:02}.000000000Z "
    text = at.format(10) + step(1, 1000) + at.format(11) + step(2, 1000) + at.format(30) + step(1, 2000)
    got = log(tmp_path, text)
    starts = [ns // 10**9 % 60 for ns in got.column("steps", "start_ns")]
    assert starts == [9, 10, 28] and got.column("steps", "attempt") == [0, 0, 1]


def test_what_ended_the_job_stands_behind_a_progress_bar(tmp_path):
    bar = "".join(f"evaluating HellaSwag: {n}/1256\r" for n in range(10, 1256, 10))
    told = "slurmstepd: error: *** JOB 7 ON g093 CANCELLED AT 2024-10-10T00:43:56 DUE TO TIME LIMIT ***"
    assert log(tmp_path, f"{step(1, 200)}{bar}{told}\n").column("evidence", "cause") == ["time_limit"]


def test_an_error_of_a_kernel(tmp_path):
    got = log(tmp_path, f"{HEAD}[CUDA ERROR] at file train_gpt2.cu:754:\nmisaligned address\n")
    assert got.column("evidence", "cause") == ["software"]


def test_a_line_without_a_time_and_a_log_without_steps(tmp_path):
    got = log(tmp_path, step(1, 10) + "step 2/1000 | loss 3.25 (+nanz)| no\n")
    assert got.column("steps", "step") == [1] and "step lines (1)" in got.reasons()
    with pytest.raises(InputError, match="no training step in it"):
        log(tmp_path, "allocated 237 MiB\n")


MAIN = "s:0 tel:11.0087\ns:0 eval:0.2477\n" + "".join(
    f"s:{n} trl:{11 - n / 4:.4f} lr:0.000600 norm:1.50\n" for n in range(1, 5)
)


def test_a_main_log(tmp_path):
    assert llm_c.sniff(source_of(tmp_path, MAIN)) == 0.9
    old = "s:0 tel:5.2897\ns:0 trl:4.6783\ns:1 trl:4.4316\n"
    assert llm_c.sniff(source_of(tmp_path, old)) == 0.9 and llm_c.sniff(source_of(tmp_path, "s:0 tel:5\n")) == 0
    got = log(tmp_path, MAIN + "s:4 tel:9.5\ns:3 trl:10.25 lr:0.000600 norm:1.50\ns:4 trl:nan lr:0.", "main.log")
    assert [(r["step"], r["dur_ns"], r["start_ns"], r["attempt"]) for r in got.rows["steps"]] == [
        *((n, None, None, 0) for n in range(1, 5)),
        (3, None, None, 1),
    ]
    assert got.column("steps", "loss") == [10.75, 10.5, 10.25, 10.0, 10.25]
    told = {(r["name"], r["step"]): r["value"] for r in got.rows["scalars"]}
    assert (told["eval/loss", 0], told["eval/loss", 4], told["eval/hellaswag", 0]) == (11.0087, 9.5, 0.2477)
    assert told["lr", 2] == 0.0006 and told["norm", 2] == 1.5 and "no time of a step" in got.reasons()


def test_a_main_log_beside_the_standard_output(tmp_path, store):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "out.log").write_text(RUN)
    (folder / "main.log").write_text("s:0 tel:11.0087\ns:1 trl:10.2500 lr:0.000600 norm:1.50\n")
    told = ingest([folder], store)
    assert told.tables["steps"] == 2 and [f.name for f in told.files if f.state == "left_out"] == ["main.log"]
