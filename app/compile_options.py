"""What can be asked of `chipledger compile`; a request over HTTP has the same options but for those of a terminal."""

from dataclasses import dataclass

from errors.numbers import COUNT, Number
from errors.options import Option

LIMIT = Number(0, 1e9, above=True)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; None: the default that they tell."""

    topology: str | None = None
    mesh: str | None = None
    slices: int = 1
    seq: int | None = None
    batch: int | None = None
    remat: str = "full"
    optimizer: str = "adamw"
    attention: str = "blockwise"
    weights: str = "f32"
    timeout: float = 600.0
    memory_gb: float | None = None
    name: str | None = None


OPTIONS: tuple[Option, ...] = (
    Option(
        "topology",
        str,
        None,
        "such as v6e:4x4, v5p:4x4x8, tpu7x:2x2x1 or v5p-128",
        form="SPEC",
    ),
    Option(
        "mesh",
        str,
        None,
        "mesh axes and their sizes over the slice's JAX devices, outermost first: data, fsdp, model (tensor), expert, "
        "context; such as data=4,model=4 (default: all on fsdp)",
        form="AXES",
    ),
    Option("slices", COUNT, 1, "equal slices, joined by the data-centre network"),
    Option("seq", COUNT, None, "tokens in a sequence (default: 4096)", label="Sequence length"),
    Option("batch", COUNT, None, "sequences in a step over all chips (default: one a data part)", label="Global batch"),
    Option("remat", ("full", "dots", "none"), "full", "what the backward pass makes again", label="Recomputation"),
    Option("optimizer", ("adamw", "sgd"), "adamw", "optimiser", local=True),
    Option("attention", ("blockwise", "full"), "blockwise", "blocks of queries, or all at once", local=True),
    Option(
        "weights",
        ("f32", "bf16"),
        "f32",
        "type of weights, gradients and optimiser state; activations are bf16",
        local=True,
    ),
    Option("timeout", LIMIT, 600.0, "give up after so many seconds", "s", local=True),
    Option("memory_gb", LIMIT, None, "memory the compiler may take on this machine (default: 17.2)", "GB", local=True),
    Option("name", str, None, "name of the run (default: model, topology and mesh)", local=True),
)
