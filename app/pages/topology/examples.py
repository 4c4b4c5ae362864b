"""Worked examples of the topology lab: each one click, and each an address."""

from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True)
class Example:
    """`specs`: shown and compared; `show`: the panel that is open, empty for the first; `says`: what it shows."""

    title: str
    specs: tuple[str, ...]
    show: str
    says: str


EXAMPLES = (
    Example(
        "1,024 chips: 16 against 7 hops",
        ("torus:8x8x16", "torus:8x8x16:twisted", "boardfly:1024"),
        "compare",
        "A torus, the same torus twisted, and Boardfly at equal chips and ports: what the 16 hops are, and what "
        "the 7 bring.",
    ),
    Example(
        "16x8x4: 512 chips in 8 cubes",
        ("v5p:16x8x4",),
        "",
        "The same slice as 4x8x16: axes are written in ascending order. Every axis is a ring.",
    ),
    Example("An Ironwood pod: 9,216 chips", ("7x:16x24x24",), "", "144 cubes of 4x4x4 chips, all of them."),
    Example(
        "A 2x2x4 job",
        ("v5p:2x2x4",),
        "create",
        "Sixteen chips are a mesh, not a torus: a dimension under 4 has no optical wrap. With the manifest that "
        "creates it.",
    ),
    Example(
        "50,944 chips in 199 pods", ("v5e:16x16:slices=199",), "", "199 whole v5e pods over the data-centre network."
    ),
)


def examples() -> None:
    """A row of buttons; a click replaces everything in the address."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Worked examples", width="content")
        for number, example in enumerate(EXAMPLES):
            st.button(example.title, key=f"example_{number}", help=example.says, on_click=open_example, args=(example,))


def open_example(example: Example) -> None:
    st.query_params.from_dict({"spec": list(example.specs)} | ({"show": example.show} if example.show else {}))
