"""`boardfly:1024`, `boardfly:1152`, `8i:1024`: a Boardfly of whole groups."""

import re
from collections.abc import Mapping

from catalog.chips import chip as find_chip
from errors import QuestionError
from simulators.topology.network import Network
from simulators.topology.spec import Spec, refuse_options, yes_no
from simulators.topology.systems import boardfly

FORMS = (
    ("boardfly:1024", "TPU 8i: whole groups of 32 chips, 1,024 active or 1,152 in all"),
    ("boardfly:1024:spare=no", "the same with the optical ports that no pair of groups needs left open"),
)
_CHIP = "TPU 8i"


def reads(name: str) -> bool:
    return name.lower() in ("boardfly", "8i", "tpu8i", "tpu-8i", "tpu 8i", "v8i")


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    refuse_options(text, options, ("spare",))
    most = boardfly.MOST_GROUPS * boardfly.GROUP
    digits = shape.replace(",", "")
    if not re.fullmatch(r"[0-9]{1,18}", digits):
        what = f"{shape!r} is no number of chips" if shape else "the number of chips is missing"
        raise QuestionError(
            f"topology {text!r}: {what}",
            expected="whole groups of 32 chips: boardfly:1024, "
            "what of a pod works at one time, or boardfly:1152, all of it",
        )
    chips = int(digits)
    if chips % boardfly.GROUP or not 0 < chips <= most:
        below = min(chips, most) // boardfly.GROUP * boardfly.GROUP
        near = sorted({max(below, boardfly.GROUP), min(below + boardfly.GROUP, most), 1024})
        rule = f"40 optical ports of a group join at most {boardfly.MOST_GROUPS} groups, {most:,} chips"
        if chips % boardfly.GROUP or not chips:
            rule = f"a group has {boardfly.GROUP} chips"
        raise QuestionError(
            f"no Boardfly has {chips:,} chips: {rule}", expected=" or ".join(f"boardfly:{n}" for n in near)
        )
    spare = yes_no(text, options, "spare", default=True)
    return Spec(
        text=f"boardfly:{chips}" + ":spare=no" * (not spare),
        kind="boardfly",
        chip=_CHIP,
        chips=chips,
        more={"spare": "yes" if spare else "no"},
    )


def build(spec: Spec) -> Network:
    rate = find_chip(_CHIP).value("link_oneway_bytes_per_s")
    return boardfly.build(spec.text, spec.chips // boardfly.GROUP, spec.more["spare"] == "yes", _CHIP, rate)
