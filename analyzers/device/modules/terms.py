"""What the figures of `modules` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Module",
        "A module of PyTorch (nn.Module), a name scope of JAX or TensorFlow, or an NVTX range: whatever "
        "the program calls the part of the model that an operation came from. Kernels of the backward pass belong to "
        "the module whose forward call they are the gradient of.",
    ),
    Term(
        "Time of a module",
        "Self time on the devices of the operations in it and in the modules within it, added over devices.",
        formula="own time + time of the modules in it",
        unit="s",
    ),
    Term(
        "Own time",
        "Time of the operations in a module that are in none of the modules within it.",
        unit="s",
    ),
    Term(
        "Wasted below the roof",
        "Time beyond the least that the FLOPs and bytes of an operation need at the device's peaks, over operations of "
        "which these are known. Collectives, waiting and what nobody counts are no part of it.",
        formula="time - max(FLOPs / peak FLOP/s, bytes / peak bytes/s)",
        unit="s",
    ),
    Term(
        "Waste not known",
        "Time of operations whose FLOPs or bytes nobody counts, or that show more than their roof allows.",
        unit="s",
    ),
    Term(
        "Computed again",
        "Operations of the forward pass that the backward pass repeats, to save memory.",
        unit="s",
    ),
    Term(
        "Exposed in a module",
        "Collectives of the module run, and nothing computes on the device.",
        unit="s",
    ),
    Term(
        "Folded modules",
        "Modules that repeat are one row. It stands for all its copies; times are those of all together.",
    ),
)
