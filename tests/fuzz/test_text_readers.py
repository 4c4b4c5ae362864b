"""Whatever bytes a text reader meets, it hands back rows of its tables or says what is wrong: never anything else."""

import gzip
import json

import pytest

from collectors.own import sidecar
from collectors.training import goodput_log, maxtext, maxtext_metrics, wandb_files, wandb_history
from tests.collectors import test_wandb_exports as exports
from tests.collectors.test_goodput_log import A_JOB, save
from tests.collectors.test_maxtext import ERAS
from tests.collectors.test_maxtext_metrics import record
from tests.collectors.test_sidecar import EVERYTHING
from tests.fuzz.damage import checks_of, survive

VALID = {
    maxtext: [
        "".join(f"{line}\n" for line, _, _ in ERAS.values()).encode(),
        b"2026-12-31T23:59:59.5Z completed step: 1, seconds: 2.000, loss: 1.000\n"
        b"I0101 00:00:01.25 7 metric_logger.py:226] completed step: 2, seconds: 2.000, loss: 1.000\n"
        b"[pod/a-0/c] Completed eval step: 0, seconds: 1.250, running loss=3.000\n"
        b"2027-01-01 00:00:09,5 Completed eval after train step 2, loss=3.125, total_weights=64.0\n"
        b"Config param model_name: llama2-7b\nElastic attempt 2 out of 10\nNum_devices: 32, shape (1)\n",
    ],
    maxtext_metrics: ["".join(json.dumps(record(n)) + "\n" for n in (0, 1, 1, 0)).encode()],
    goodput_log: [
        "".join(json.dumps(e) + "\n" for e in [*A_JOB, save()]).encode(),
        json.dumps([*A_JOB, save()], indent=1).encode(),
        json.dumps([save(directory="é"), *A_JOB], ensure_ascii=False, separators=(",", ":")).encode(),
    ],
    sidecar: [json.dumps(EVERYTHING).encode()],
    wandb_history: [exports.API.encode(), exports.CHART.encode(), exports.LINES.encode(), exports.PARQUET],
    wandb_files: [exports.SUMMARY.encode(), exports.METADATA.encode(), exports.CONFIG.encode()],
}
NAME = "chipledger.json"  # of the input
READERS = pytest.mark.parametrize("reader", VALID, ids=lambda reader: reader.NAME)
NOISE = (b"\x1f\x8b",)
test_the_undamaged_originals_are_known_and_read, test_damage, test_noise, test_every_cut = checks_of(
    VALID, NAME, NOISE, cuts=200, noises=100, facts_alone=(sidecar, wandb_files)
)


@READERS
def test_a_line_without_end_is_refused_in_bounded_memory(reader, tmp_path):
    survive(reader, tmp_path, gzip.compress(VALID[reader][0] + b" " * (80 << 20), 1), NAME)
