"""How the categories of operations look on every page: a colour and, where points are drawn, a symbol of their own.

Kinds that are an account of the ledger have its colour (collectives that of exposed communication, transfers with the
host that of input wait); the others are told apart among themselves. Colour never stands alone.
"""

from dataclasses import dataclass

from app.theme import COLOURS


@dataclass(frozen=True)
class CategoryLook:
    """`symbol`: of plotly's markers."""

    colour: str
    symbol: str


LOOKS: dict[str, CategoryLook] = {  # in the order of legends
    "matmul": CategoryLook("#0B7A75", "circle"),
    "convolution": CategoryLook("#3E938B", "diamond"),
    "fusion": CategoryLook("#7A6FB0", "square"),
    "elementwise": CategoryLook("#999933", "triangle-up"),
    "custom-call": CategoryLook("#B0527A", "star"),
    "data-movement": CategoryLook("#C98B6B", "triangle-left"),
    "copy": CategoryLook("#D98032", "triangle-right"),
    "collective": CategoryLook(COLOURS["exposed_communication"], "hexagon"),
    "infeed": CategoryLook(COLOURS["input_wait"], "cross"),
    "outfeed": CategoryLook(COLOURS["input_wait"], "x"),
    "host": CategoryLook(COLOURS["input_wait"], "bowtie"),
    "control": CategoryLook(COLOURS["device_idle"], "hourglass"),
    "annotation": CategoryLook(COLOURS["other"], "pentagon"),
    "other": CategoryLook(COLOURS["other"], "star-square"),
}


def look(category: object) -> CategoryLook:
    """That of a category; several or unknown ones look like `other`."""
    return LOOKS.get(str(category), LOOKS["other"])
