"""What is counted of a network of chips."""

from catalog.terms import Term

CHIPS = Term("Chips", "Those that live, with the parts they stand in and the links that join them.")
DIAMETER = Term(
    "Diameter",
    "Hops between the two chips that are farthest apart, each pair by a shortest path.",
    formula="max over pairs of their hops",
    unit="hops",
)
MEAN = Term(
    "Mean",
    "Hops over all ordered pairs of different chips that have a path.",
    formula="sum of hops / ordered pairs with a path",
    unit="hops",
)
BISECTION = Term(
    "Bisection",
    "Links that join two halves of the chips where they are fewest. Exact where that is known, else the "
    "best cut found, with a proved lower bound.",
    unit="links",
)
BUSIEST_LINK = Term(
    "Busiest link",
    "Under all-to-all: ordered pairs of chips whose traffic crosses one direction of the busiest "
    "link; of a mesh or torus axis by axis, elsewhere with all shortest paths used alike.",
    unit="pairs",
)
FIGURES = (CHIPS, DIAMETER, MEAN, BISECTION, BUSIEST_LINK)
TERMS = (
    *FIGURES,
    Term(
        "Hop",
        "One link crossed. Optical circuit switches are light paths and count nothing; packet switches are nodes, "
        "so GPU, switch, GPU are two hops.",
        unit="hops",
    ),
    Term("Wrap, twist", "A link that closes an axis into a ring; a twist shifts it along other axes as well."),
)
