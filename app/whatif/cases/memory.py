"""Gemma 4 31B on 4 or 8 chips: twice the chips hold more than three times the sequences, and why not quite."""

from app.whatif.cases.base import Case, Row
from app.words import headline
from catalog import chip, model
from catalog.inference import kv_bytes, spans, weights_bytes
from catalog.serving_figures import figures

NAME = "gemma"
TITLE = "Gemma 4 31B on 4 or 8 chips"
QUESTION = "How many sequences of 1,500 tokens does Gemma 4 31B hold at a time on 4 and on 8 TPU v6e?"
TOKENS, SHARE, PRINTED_BYTES = 1500, 0.9, 32e9  # vLLM's default share of the memory; the chip's size as printed


def sequences(chips: int, memory_bytes: float, repeated: bool) -> float:
    """Room for caches by the cache of one sequence, all chips together; `repeated`: key heads that do not divide over
    the chips are kept on several, as tensor parallelism does."""
    known = model("gemma4-31b")
    one = kv_bytes(known, TOKENS, "bf16", chips) * chips if repeated else kv_bytes(known, TOKENS)
    return (chips * memory_bytes * SHARE - weights_bytes(known)) / one


def answer() -> Case:
    """The plain arithmetic beside our count: the memory that a program can use, and key heads kept twice."""
    f, usable, known = figures(), chip("v6e").need("hbm_usable_bytes"), model("gemma4-31b")
    rows = []
    for chips in (4, 8):
        stated = f[f"gemma.sequences.{chips}"]
        rows += [
            Row(
                f"{chips} chips, as the arithmetic goes",
                "sequences",
                stated.value,
                stated.source,
                sequences(chips, PRINTED_BYTES, False),
                "derived",
                note="32 GB a chip, every key head kept once",
            ),
            Row(
                f"{chips} chips, as tensor parallelism keeps it",
                "sequences",
                stated.value,
                stated.source,
                sequences(chips, usable, True),
                "modelled",
                note="31.2 GiB a chip that a program can use; key heads repeated where chips outnumber them",
            ),
        ]
    four, eight = (sequences(n, usable, True) for n in (4, 8))
    copies = max(s.copies for s in spans(known, "bf16", 8))
    verdict = headline(
        f"{rows[0].computed:.0f} on 4 chips and {rows[2].computed:.0f} on 8 by plain arithmetic: the weights are paid "
        f"for once, so twice the chips hold {rows[2].computed / rows[0].computed:.1f} times as much.",
        "With tensor parallelism over 8, the 10 layers that see everything have 4 key heads and keep each "
        f"{copies:.0f} times: {four:.0f} and {eight:.0f}.",
    )
    notes = (
        "Nothing is set aside for activations in either count; an engine reserves some, and rounds up to pages.",
        f"Weights {weights_bytes(known) / 1e9:.1f} GB in BF16; one sequence of 1,500 tokens takes "
        f"{kv_bytes(known, TOKENS) / 1e9:.3f} GB: 50 layers look back 1,024 tokens, 10 keep all.",
        "The published arithmetic rounds the weights up (about 62.6 GB fits both its numbers): hence 56 and 176 here.",
    )
    return Case(NAME, TITLE, QUESTION, verdict, tuple(rows), notes, {"four": four, "eight": eight})
