"""What the figures of `memory` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Peak",
        "The most that one device holds at once, layout padding included: by the allocators' samples where the "
        "profile has them, else what the largest program needs by its compiler. Of a memory snapshot: the most bytes "
        "that were asked for and in use at one moment of its history.",
        unit="bytes",
    ),
    Term(
        "Limit",
        "What the device lets programs use: said by its allocator, by the compiler, or by the catalogue.",
        unit="bytes",
    ),
    Term(
        "Inputs",
        "Arguments of a program: parameters, optimiser state, batch. Those it overwrites in place count here.",
        unit="bytes",
    ),
    Term(
        "Temporaries",
        "Values between operations at the fullest moment: saved activations, gradients, copies.",
        unit="bytes",
    ),
    Term(
        "Layout padding",
        "Bytes as placed less bytes of the elements: layouts round up to tiles, such as 8 x 128.",
        formula="bytes as placed - bytes of the elements",
        unit="bytes",
    ),
    Term(
        "Fragmentation", "Room between temporaries that the compiler's packing leaves unused at the peak.", unit="bytes"
    ),
    Term(
        "Copies", "Devices that hold the same piece of an input, by its sharding; 1: sharded over all.", unit="devices"
    ),
    Term(
        "Reserved",
        "What PyTorch's allocator had from the device at the peak, in use or not.",
        unit="bytes",
    ),
    Term(
        "Reserved, not in use",
        "Fragmentation, cache and rounding at the peak: room that a program could not, or did not yet, use.",
        formula="reserved - in use, both at the peak",
        unit="bytes",
    ),
    Term(
        "Calls not recorded",
        "In use at the peak by blocks without a stack of calls: most were given before the recorded history begins.",
        unit="bytes",
    ),
    Term("Gives back", "What one device would hold less; an upper bound where it says up to.", unit="bytes"),
)
