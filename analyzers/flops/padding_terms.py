"""What the figures of `padding` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Padding tax",
        "Padded FLOPs over useful FLOPs, less one. Useful: 2 m k n for every product that is needed.",
        formula="padded FLOPs / useful FLOPs - 1",
        unit="1",
    ),
    Term(
        "As printed (A)",
        "ceil8(m) x ceilS(k) x ceilS(n) on a matrix unit of S x S, with the product as the program or "
        "the model states it. The headline.",
        formula="2 x ceil8(m) x ceilS(k) x ceilS(n)",
        unit="FLOPs",
    ),
    Term(
        "At best (B)",
        "The same with the two operands swapped where that pads less; k, the contracted dimension, always "
        "pads. On a GPU: A the worst, B the best of the output tiles 128 x 128, 128 x 256 and 256 x 128.",
        formula="2 x ceilS(k) x min(ceil8(m) ceilS(n), ceil8(n) ceilS(m))",
        unit="FLOPs",
    ),
    Term(
        "Matmul efficiency",
        "Useful over padded FLOPs, 1 / (1 + tax).",
        formula="useful FLOPs / padded FLOPs = 1 / (1 + tax)",
        unit="1",
    ),
    Term(
        "HBM padding",
        "A separate tax: arrays in device memory are rounded up to tiles of 8 x 128, whatever multiplies.",
        formula="bytes as placed / bytes of the elements - 1",
        unit="1",
    ),
    Term(
        "Gain",
        "Padded FLOPs that a change saves for the same useful maths. It is time only where products are bound by "
        "compute.",
        formula="padded FLOPs before - padded FLOPs after",
        unit="FLOPs",
    ),
)
