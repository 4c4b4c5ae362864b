"""What public scripts say of published runs whose table prints neither shape, batch nor layout.

The table stands beside the scripts that made it: MaxText's `src/maxtext/configs/tpu/{v5e,v5p}/*.sh` and
`gpu/a3/llama_2_7b/*.sh`, tpu-recipes' and gpu-recipes' READMEs, whose one printed step tells the tokens of a batch. Of
MaxText's default models the dimensions follow from `global_parameter_scale` (2,048 wide, 16 heads of 128, 7,168 hidden
and gated, 16 layers, times powers of two) and 32,000 tokens of vocabulary. Policies between keeping nothing and all
(`minimal`, or offloading some) are left open: as much is computed again as the memory asks for. So is what versions of
a script disagree in: tensor parallelism of the 512B and 1024B models (8 or 16), and what the former computes again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.published import PublishedRun

GATED: Mapping[str, tuple[int, int, int, int]] = {  # width, layers, heads of 128, hidden width; 32,000 tokens
    "MaxText default 16B": (4096, 32, 64, 28_672),
    "MaxText default 32B": (8192, 32, 64, 28_672),
    "MaxText default 64B": (8192, 64, 64, 28_672),
    "MaxText default 128B": (8192, 64, 128, 57_344),
    "MaxText default 256B": (16_384, 64, 128, 57_344),
    "MaxText default 512B": (16_384, 128, 128, 57_344),
    "MaxText default 1024B": (16_384, 128, 256, 114_688),
}


# In how many slices a run's chips lay; v5e's are of 256 chips each. Where none is told, in one.
SLICES: Mapping[str, int] = {"r0026": 2, "r0028": 2, "r0032": 2, "r0038": 2, "r0040": 2}


@dataclass(frozen=True, kw_only=True)
class Script:
    """`batch`: sequences a step for each chip. `tensor`, `fsdp`: ways; copies of the model lie over slices. `remat`: of
    layout.REMATS. None: not told."""

    batch: int
    seq: int
    tensor: int | None = None
    fsdp: int | None = None
    remat: str | None = None


SCRIPTS: Mapping[tuple[str, str], Script] = {  # (chip, model)
    ("TPU v5e", "MaxText default 16B"): Script(batch=6, seq=2048, tensor=1, fsdp=256, remat="full"),
    ("TPU v5e", "MaxText default 32B"): Script(batch=4, seq=2048, tensor=1, fsdp=256, remat="full"),
    ("TPU v5e", "MaxText default 64B"): Script(batch=2, seq=2048, tensor=1, fsdp=256, remat="full"),
    ("TPU v5e", "MaxText default 128B"): Script(batch=1, seq=2048, tensor=16, fsdp=16),
    ("TPU v5p", "MaxText default 32B"): Script(batch=6, seq=2048, tensor=4),
    ("TPU v5p", "MaxText default 64B"): Script(batch=3, seq=2048, tensor=4),
    ("TPU v5p", "MaxText default 128B"): Script(batch=1, seq=2048, tensor=8),
    ("TPU v5p", "MaxText default 256B"): Script(batch=1, seq=2048, tensor=8),
    ("TPU v5p", "MaxText default 512B"): Script(batch=2, seq=2048),
    ("TPU v5p", "MaxText default 1024B"): Script(batch=2, seq=2048, remat="full"),
    ("H100 SXM", "llama2-7b"): Script(batch=4, seq=4096, tensor=1, fsdp=8),
    ("TPU v6e", "gpt3-175b"): Script(batch=3, seq=2048, tensor=1, fsdp=256, remat="full"),
    ("B200", "llama3.1-405b"): Script(batch=2, seq=8192),
    ("B200", "llama3.1-70b"): Script(batch=8, seq=8192),
    ("H200 SXM", "llama3.1-70b"): Script(batch=2, seq=8192),
}
SOURCES = ("AI-Hypercomputer/maxtext", "AI-Hypercomputer/gpu-recipes", "AI-Hypercomputer/tpu-recipes")


def script(run: PublishedRun) -> Script | None:
    """The script of a published run that tells no batch, where one is known."""
    told = run.seq is not None and run.global_batch_tokens is not None
    known = run.source.startswith(SOURCES) and "tiering" not in run.source
    return SCRIPTS.get((run.chip, run.model)) if known and not told else None
