"""What a number of chips is called in its cloud, and what is to be known of one that is no slice."""

from catalog.chips import Chip
from catalog.slices import families, slice_
from errors import QuestionError


def slice_name(chip_name: str, chips: int) -> str | None:
    """What its cloud calls a slice of so many chips; None where there is none, or no such names."""
    family = families().get(chip_name)
    name = family.accelerator_type(chips) if family else None
    try:
        return slice_(name).name if name else None
    except QuestionError:
        return None


def no_slice(one: Chip, number: int) -> str:
    """What a number of chips means that is no slice; empty for one that is, and for chips that do not come so."""
    family = families().get(one.name)
    if family is None or not family.count_per_chip or slice_name(one.name, number):
        return ""
    if number > (pod := family.count("pod_chips")):
        meet = "groups of chips beyond it meet over the data-centre network"
        return f"{number:,} {one.name} are more than a pod, which has {pod:,}: {meet}."
    near = [max((t.chips for t in family.topologies if t.chips < number), default=0)]
    near += [min((t.chips for t in family.topologies if t.chips > number), default=0)]
    told = " and ".join(f"{n:,}" for n in near if n)
    return f"{number:,} {one.name} are no slice that is offered; the nearest that are listed have {told} chips."
