"""TensorBoard's event files (`events.out.tfevents.*`), as PyTorch, TensorFlow, JAX and others write them.

A file is a sequence of records, each with its length, and checksums (CRC-32C) of that and of its data: an event, which
has a time and a step and mostly a summary, which has values by name. What becomes of it:

    one number      (`simple_value`, or a tensor of one number, however it is written) a row of `scalars`: `ts_ns` its
                    event's time, when it was written, `step`, and the unit that its name tells. What was logged again
                    for a step stands there again
    steps           where a name tells how long they took: see `tracked_steps`
    texts           what MaxText, Megatron-LM and Hugging Face's Trainer write of themselves: facts (see `arguments`)
    histograms, images, sounds, graphs, tensors of several numbers: counted and passed over
A record that is damaged is passed over, and so is what follows up to the next whose length is as its checksum says; the
last may be written in part. Of several files in a folder each is read by itself: a job that is started again writes
another.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source

NAME = "tensorboard"
TITLE = "TensorBoard event file"
HELP = (
    "TensorBoard event files (events.out.tfevents.*) of PyTorch, TensorFlow, JAX, MaxText, torchtitan, Megatron, NeMo: "
    "every scalar, and steps where one tells how long they took."
)

_NAME = re.compile(r"(?:^|[./\\])tfevents[.\d]")
_HEADER = 12  # bytes before the data of a record
_TIME = 0x09  # how an event begins: its time


def sniff(source: Source) -> float:
    """0.97 for a first record whose checksum is right and that is an event; 0.6 for the name alone."""
    head = source.head
    if len(head) >= _HEADER and head[4:8] == bytes(4):
        from collectors.training.tensorboard.codes import masked_crc

        if masked_crc(head[:8]) == int.from_bytes(head[8:12], "little"):
            return 0.97 if head[_HEADER : _HEADER + 1] == bytes([_TIME]) else 0.0
    return 0.6 if _NAME.search(source.name) and (not head or b"\0" in head[:64]) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Scalars, and steps where they tell of them. Raises InputError where the file tells nothing."""
    from collectors.training.tensorboard.reader import Reader

    yield from Reader(source, NAME).items()
