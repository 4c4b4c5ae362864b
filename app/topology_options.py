"""What can be asked of a network of chips: flags of `chipledger topology`, parameters of `/api/topology`."""

from errors.options import Option

SPEC = Option(
    "spec",
    str,
    (),
    "such as v5p:4x4x8, torus:8x8x16:twisted, boardfly:1024, v5e:16x16:slices=199, nvl:72, fattree:1024, or graph:FILE "
    "with one link on each line; several are put side by side",
    several=True,
    form="SPEC",
)
FAIL = Option(
    "fail",
    str,
    (),
    "what failed, such as chip=5, link=12-13, cube=1 or ocs=7",
    several=True,
    form="WHAT",
)
ASKED = (SPEC, FAIL)
