"""What colours mean where events have those of their kinds: one colour each, that of the operation's category on every
other page; collectives, of one colour there, are told apart by shades of it."""

from dataclasses import dataclass

from app.figures.op_categories import LOOKS
from app.theme import COLOURS


@dataclass(frozen=True)
class Category:
    """`name`: of `analyzers.timeline.kinds.KINDS`."""

    name: str
    title: str
    colour: str
    meaning: str


CATEGORIES = (
    Category("matmul", "Matrix products", LOOKS["matmul"].colour, "Matrix products, and fusions that hold one."),
    Category("convolution", "Convolutions", LOOKS["convolution"].colour, "Convolutions, and fusions that hold one."),
    Category("fusion", "Fusions", LOOKS["fusion"].colour, "Several operations that the compiler made one."),
    Category("elementwise", "Elementwise", LOOKS["elementwise"].colour, "The same for each element, and reductions."),
    Category("custom-call", "Custom calls", LOOKS["custom-call"].colour, "Kernels that the compiler was handed."),
    Category(
        "data-movement", "Data moved", LOOKS["data-movement"].colour, "Values that are put elsewhere, on one chip."
    ),
    Category("copy", "Copies", LOOKS["copy"].colour, "Copies on a device, and between it and its host."),
    Category("all-reduce", "All-reduce", "#0072B2", "A sum that every rank has afterwards."),
    Category("all-gather", "All-gather", "#3C9BD6", "Parts of all ranks that every rank has afterwards."),
    Category("reduce-scatter", "Reduce-scatter", "#1F6FA3", "A sum of which every rank has a part afterwards."),
    Category("all-to-all", "All-to-all", "#5E7FD1", "A part of every rank for every other."),
    Category("permute", "Permutes and sends", "#249595", "From one rank to one other."),
    Category("broadcast", "Broadcast", "#5E97BF", "From one rank to all."),
    Category("collective", "Other collectives", "#4A7CA8", "Collectives of another kind, or of which none is told."),
    Category("transfer", "Infeed and outfeed", COLOURS["input_wait"], "Transfers between a host and its devices."),
    Category("control", "Loops and calls", LOOKS["control"].colour, "What holds other operations, or orders them."),
    Category("whole", "Programs and steps", "#6A8F5A", "Programs and steps as devices tell of them."),
    Category("host", "Host", "#7C8894", "What threads of hosts did."),
    Category("annotation", "Annotations", "#A87CA0", "Ranges that the program marked."),
    Category("other", "Other", LOOKS["other"].colour, "Operations of no category."),
)
