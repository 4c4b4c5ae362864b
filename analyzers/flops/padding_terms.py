"""What the figures of `padding` mean."""

from catalog.terms import Term

TERMS = (
    Term("Padding tax", "Padded FLOPs over useful FLOPs, less one. Useful: 2 m k n for every product that is needed."),
    Term(
        "As printed (A)",
        "ceil8(m) x ceilS(k) x ceilS(n) on a matrix unit of S x S, with the product as the program or "
        "the model states it. The headline.",
    ),
    Term(
        "At best (B)",
        "The same with the two operands swapped where that pads less; k, the contracted dimension, always "
        "pads. On a GPU: A the worst, B the best of the output tiles 128 x 128, 128 x 256 and 256 x 128.",
    ),
    Term("Efficiency", "Useful over padded FLOPs, 1 / (1 + tax)."),
    Term(
        "HBM padding",
        "A separate tax: arrays in device memory are rounded up to tiles of 8 x 128, whatever multiplies.",
    ),
    Term(
        "Gain",
        "Padded FLOPs that a change saves for the same useful maths. It is time only where products are bound by "
        "compute.",
    ),
)
