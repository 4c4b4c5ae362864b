"""What `whatif placement` can be asked."""

from dataclasses import dataclass

from errors.numbers import HOP, PER_SECOND, Number
from errors.options import Option

MODEL, EXPERT_MODEL = "llama3.1-8b", "qwen3-30b-a3b"  # where none is named: a dense one; for expert axes one with them
SEQ = 4096
SHOWN, MOST_SHOWN = 20, 500
BATCH = Number(1, 10_000_000, whole=True)
TOKENS = Number(1, 100_000_000, whole=True)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS. topology and mesh must be given; of the rest None: the default that OPTIONS tell."""

    topology: str | None = None
    mesh: str | None = None
    model: str | None = None
    batch: int | None = None
    seq: int | None = None
    dtype: str = "bf16"
    overlap: str = "weights"
    microbatches: int | None = None
    chip: str | None = None
    link_bytes_per_s: float | None = None
    dcn_bytes_per_s: float | None = None
    hop_s: float | None = None
    peak_flops_per_s: float | None = None
    limit: int = SHOWN


OPTIONS: tuple[Option, ...] = (
    Option("topology", str, None, "such as v5p:4x4x8, v6e:8x16, v5e:16x16:slices=4, rail:1024", form="SPEC"),
    Option(
        "mesh",
        str,
        None,
        "such as data=8,model=16; data, fsdp, tensor, expert, context, pipeline; axes that talk most last",
        label="Mesh: axes that talk most last",
        form="AXES",
    ),
    Option(
        "model",
        str,
        None,
        f"a model of the catalogue (default: {MODEL}, with an expert axis {EXPERT_MODEL})",
        form="NAME",
    ),
    Option(
        "batch",
        BATCH,
        None,
        "sequences of a step (default: one for each chip, or part that the mesh cuts it into)",
        label="Sequences of a step",
    ),
    Option("seq", TOKENS, None, f"tokens of a sequence (default: {SEQ})", label="Tokens of a sequence", form="TOKENS"),
    Option("dtype", ("bf16", "fp8", "fp32"), "bf16", "of weights and activations"),
    Option(
        "overlap",
        ("weights", "full", "none"),
        "weights",
        "what runs beside the maths: weights (weights and gradients), full or none",
    ),
    Option(
        "microbatches",
        BATCH,
        None,
        "of a pipeline (default: 4 a stage, or as many sequences as there are)",
    ),
    Option("chip", str, None, "whose links and peak count, for a topology of none", form="NAME"),
    Option("link_bytes_per_s", PER_SECOND, None, "a link, one way, instead of the catalogue's", "bytes/s"),
    Option(
        "dcn_bytes_per_s", PER_SECOND, None, "the data-centre network, a chip, instead of the catalogue's", "bytes/s"
    ),
    Option("hop_s", HOP, None, "across a link, instead of the catalogue's", "s"),
    Option("peak_flops_per_s", PER_SECOND, None, "the peak of a chip, instead of the catalogue's", "FLOP/s"),
    Option("limit", Number(1, MOST_SHOWN, whole=True), SHOWN, "placements told"),
)
