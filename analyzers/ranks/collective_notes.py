"""What has to be known beside the figures of collectives."""

import pandas as pd

from analyzers.ranks.mesh import Links
from errors import format as fmt


def notes_on(rows: pd.DataFrame, links: Links, measured: bool) -> tuple[str, ...]:
    """`rows`: network, count and axis of each kind of collective. `measured`: whether they ran."""
    notes = []
    if not measured:
        notes.append(
            "Nothing ran: counts and bytes are of one run of the program on one device, and times are what "
            "the link needs at least."
        )
    if links.of(()) is None:
        name = links.chip.name if links.chip else "this chip"
        notes.append(f"The catalogue does not know the links of {name}, so rates are held against nothing.")
    elif links.chip and "torus" in links.chip.scaleup:
        notes.append("A group along one axis of the torus can use two links of a chip at most, along two axes four.")
    if links.of(()) and (unplaced := int(rows.loc[rows["network"].isna(), "count"].sum())):
        notes.append(
            f"Whether {fmt.count(unplaced, 'execution')} stayed within one network is not known, since nothing names "
            "the ranks of their groups: they are held against no link."
        )
    if not rows["axis"].notna().any():
        notes.append(
            "Which mesh axis a group runs along is not known: declare parallelism in chipledger.json, such as "
            '{"data": 4, "model": 2} in mesh order.'
        )
    return tuple(notes)


def unseen(rows: pd.DataFrame) -> tuple[str, ...]:
    """Of how many executions nothing tells what was computed beside them."""
    count = int((~rows["seen"]).sum())
    if not count:
        return ()
    beside = fmt.count(count, "execution")
    return (f"What was computed beside {beside} is not known: no profile tells of their devices.",)
