"""Whatever bytes an event file of TensorBoard holds, its reader hands back rows or says what is wrong."""

import gzip
import struct

from collectors.training import tensorboard
from tests.collectors import event_files as files
from tests.collectors.event_files import BEGUN, event, part, record, simple, tensor, version
from tests.fuzz.damage import checks_of, survive

ARGUMENTS = {"world_size": "8", "seq_length": "4096", "micro_batch_size": "1", "global_batch_size": "64"}
TENSORS = event(
    BEGUN,
    1,
    tensor("epoch_loss", 1, part(4, struct.pack("<f", 0.25))),
    tensor("steps_per_second", 2, part(6, struct.pack("<d", 2.5))),
    tensor("weights", 2, part(4, bytes(72)), shape=(3, 3)),
)
VALID = {
    tensorboard: [
        files.maxtext(range(6)),
        files.torchtitan([(1, 30, 9.0), (10, 18, 8.0), (20, 20, 7.0)], 10),
        version() + b"".join(record(event(BEGUN, 0, files.text(n, said))) for n, said in ARGUMENTS.items())
        + files.logged([(BEGUN + n, n, {"iteration-time": 2.0, "lm loss": 3.0}) for n in (10, 20, 30)], None),
        version() + record(TENSORS),
    ],
}  # fmt: skip
NAME = "events.out.tfevents.1772600000.node-7"  # of the input
LONG = record(part(5, part(1, part(1, b"x" * 50_000) + part(8, b"\x12\x7f" * 20_000))))
MANY = record(part(5, part(1, simple("", 1)) * 30_000))  # values of one event
NOISE = (
    version() + MANY,
    LONG * 20,
    files.masked(bytes(8)) * 50_000,
    record(b"") * 20_000,
    record(b"\xff" * 2_000) * 20,
    record(part(5, b"\x0a" * 50_000)),
    record(part(5, part(1, part(8, b"\x08\x01\x12\x80")))),
    record(event(BEGUN, (1 << 64) - 1, simple("iteration-time", 1e9)))
    + record(event(BEGUN, 1 << 62, simple("iteration-time", 1e9)))
    + record(event(1e300, 5, simple("iteration-time", float("nan")))),
    b"".join(record(event(BEGUN, 9_000 * n, simple("iteration-time", 1))) for n in range(8)),
    struct.pack("<Q", 1 << 63) + files.masked(struct.pack("<Q", 1 << 63)) + bytes(100),
    struct.pack("<Q", 1 << 40) + files.masked(struct.pack("<Q", 1 << 40)) + bytes(100),
)
test_the_undamaged_originals_are_known_and_read, test_damage, test_noise, test_every_cut = checks_of(
    VALID, NAME, NOISE, cuts=200, noises=100
)


def test_a_file_of_zeros_is_refused_in_bounded_memory(tmp_path):
    survive(tensorboard, tmp_path, gzip.compress(VALID[tensorboard][0] + bytes(20 << 20), 1), NAME)
