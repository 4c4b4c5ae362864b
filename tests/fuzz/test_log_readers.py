"""Whatever bytes a log reader meets, it hands back rows of its tables or says what is wrong: never anything else."""

import gzip

import pytest

from collectors.training import (
    deepspeed,
    dllogger,
    hf_trainer,
    job_log,
    llm_c,
    megatron,
    mllog,
    nanogpt,
    nanotron,
    nvrx,
    resiliency,
    slurm_sacct,
    torchtitan,
    verl,
    wandb_log,
)
from tests.catalog.test_causes import ORDINARY, TELLING
from tests.collectors import (
    test_deepspeed,
    test_dllogger,
    test_hf_trainer,
    test_job_log,
    test_llm_c,
    test_megatron,
    test_mllog,
    test_nanogpt,
    test_nanotron,
    test_nemo,
    test_nvrx,
    test_resiliency,
    test_slurm_sacct,
    test_torchtitan,
    test_verl,
    test_wandb_log,
)
from tests.fuzz.damage import checks_of, survive

OLD, NEW = test_megatron.old, test_megatron.new
VALID = {
    megatron: [
        (
            test_megatron.START
            + test_megatron.DUMP
            + NEW(0, 10, 1000.0)
            + test_megatron.timer("evaluate", 2000)
            + " validation loss at iteration 10 | lm loss value: 2.25E+00 |\n"
            + " saving checkpoint at iteration 10 to /c\n"
            + test_megatron.timer("save-checkpoint", 4000)
            + NEW(16, 20, 1600.0)
            + "[after training is done] datetime: 2026-03-04 05:06:30 \n"
        ).encode(),
        (
            "time to initialize megatron (seconds): 20\n[after megatron is initialized] datetime: 2026-03-04 05:05:00\n"
            + OLD(1, 1500.5)
            + "time (ms) | forward-compute: 1500.25 | backward-compute: 400\n"
            + OLD(2, 1000.0, "nan")
            + "Epoch 0, global_step=3.0, train_step_timing in s=2.5]\r, global_step=4.0, train_step_timing in s=2]\n"
        ).encode(),
        (test_nemo.TWO.format(0, 4, 4) + test_nemo.SAVED.format("12:00:04", "1772625600.1")).encode(),
    ],
    torchtitan: [
        test_torchtitan.RUN.encode(),
        test_torchtitan.coloured(test_torchtitan.RUN).encode(),
        (test_torchtitan.pairs("05:06:30", 1, 3.0) + test_torchtitan.pairs("05:06:48", 10, 1.8)).encode(),
    ],
    llm_c: [test_llm_c.RUN.encode()],
    deepspeed: [test_deepspeed.RUN.encode()],
    dllogger: [test_dllogger.RUN.encode(), test_dllogger.PRINTED.encode()],
    hf_trainer: [test_hf_trainer.RUN.encode()],
    nanogpt: [test_nanogpt.PLAIN.encode(), test_nanogpt.MODDED.encode()],
    nanotron: [test_nanotron.RUN.encode()],
    verl: [test_verl.RUN.encode(), test_verl.EARLY.encode(), test_verl.RECORDS.encode()],
    mllog: [(test_mllog.SUBMITTED + test_mllog.STEPPED + test_mllog.EVALUATED + test_mllog.END).encode()],
    resiliency: [test_resiliency.text_of(test_resiliency.A_JOB).encode()],
    nvrx: [test_nvrx.TWO.encode()],
    wandb_log: [test_wandb_log.framed(*test_wandb_log.RUN)],
    slurm_sacct: [
        test_slurm_sacct.RUN.encode(),
        test_slurm_sacct.document(test_slurm_sacct.entry(state="FAILED")).encode(),
        test_slurm_sacct.fixed(*test_slurm_sacct.REQUEUED).encode(),
    ],
    job_log: [
        (test_job_log.DMESG + test_job_log.JOURNAL + test_job_log.EVENTS + test_job_log.SLURM).encode(),
        "\n".join([*TELLING, *ORDINARY]).encode(),
    ],
}
NAME = "train-2026-03-04.log"  # of the input
READERS = pytest.mark.parametrize("reader", VALID, ids=lambda reader: reader.NAME)
NOISE = (
    b":::MLLOG " + b'{"a":' * 100_000,
    b"s3 403 " * 20_000,
    b"global_step=1 " * 10_000
    + b"train_step_timing in s\n"
    + b"global_step=1, train_step_timing in s=2, lr="
    + b"1" * 100_000
    + b"-\n"
    + b"loading checkpoint from " * 5_000,
    b"using world size: 1, data.parallel.size: 1" * 5_000,
    b"a" + b"-1.a" * 30_000 + b" ..: (",  # is it a host?
    b"error" + b" " * 1_900 + b"\n" + (b"uncorrected" + b" " * 1_900 + b"\n") * 20,
)
test_the_undamaged_originals_are_known_and_read, test_damage, test_noise, test_every_cut = checks_of(
    VALID, NAME, NOISE, cuts=200, noises=100
)


@READERS
def test_a_line_without_end_is_refused_in_bounded_memory(reader, tmp_path):
    survive(reader, tmp_path, gzip.compress(VALID[reader][0] + b" " * (80 << 20), 1), NAME)
