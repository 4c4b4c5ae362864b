"""What laying mesh axes over physical ones means by its names."""

from catalog.terms import Term

TERMS = (
    Term(
        "Logical and physical axes",
        "A mesh names its axes by what they do; the slice has axes of chips. “x” is all of "
        "one, “x:4” four neighbours along it, “x:2/4” two that stand four apart, so that four groups share each link.",
    ),
    Term(
        "Wrap",
        "Links that close an axis into a ring: an all-gather then comes in from both sides. Without one, the chip "
        "at the end of the line receives over one link, and takes twice as long.",
    ),
    Term(
        "Folded",
        "A block of two sides or more, with an even number of chips, has a closed walk through it: a ring "
        "without a wrap, where the devices are put in that order.",
    ),
    Term(
        "Step",
        "Maths at the chip's peak, and what waits for communication under the overlap chosen. The range runs from "
        "everything overlapped to nothing. All of it is modelled: compare ways with it, do not predict a job.",
        unit="s",
    ),
)
