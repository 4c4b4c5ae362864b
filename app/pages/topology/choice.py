"""Which topology the lab is about: chosen by system and shape, or written as a name."""

from math import prod

import streamlit as st

from app.components.option import amount
from app.pages.topology.lab import asked, choose_specs
from catalog.slices import SliceFamily, families
from errors import ChipledgerError
from errors.numbers import Number
from errors.options import Option
from simulators import topology
from simulators.topology.lattice import twist_of
from simulators.topology.spec import MOST_SLICES, Spec
from simulators.topology.systems.tpu_slice import SHORT

UNLISTED = ("4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "8x16x16", "16x16x16", "16x16x24", "20x20x24")
FREE = ("4x4", "8x8", "16x16", "4x4x4", "4x4x8", "8x8x8", "8x8x16", "8x16x16", "16x16x16")
OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {  # name: what it is called, and sizes to choose from
    "boardfly": ("Boardfly (TPU 8i)", ("32", "64", "128", "256", "512", "1024", "1152")),
    "torus": ("Torus", FREE),
    "mesh": ("Mesh", ("2x2x1", "2x2x2", "2x2x4", "2x4x4", *FREE)),
    "nvl": ("NVLink rack (GB200)", ("8", "36", "72")),
    "h100": ("H100 node", ("8",)),
    "b200": ("B200 node", ("8",)),
    "mi300x": ("MI300X node", ("8",)),
    "fattree": ("GPU fat tree", ("256", "512", "1024", "2048", "4096", "8192", "16384")),
    "rail": ("GPU rails", ("256", "512", "1024", "2048", "4096", "8192", "16384")),
}
SLICES = Option(
    "slices", Number(1, MOST_SLICES, whole=True), 1, "equal slices, joined by the data-centre network alone"
)
HELP = "A name such as {}. It replaces what is shown; failures and the route go."


def chooser() -> None:
    """System, shape, twist and slices side by side, and a field that takes any name.

    Each has the topology in its key: a browser that has not drawn the new one yet tells what its fields held before,
    and a field of the same key would take that for a choice and go back.
    """
    text = asked()[0]
    spec = _known(text)
    written = (spec.text if spec else text).partition(":")[0].strip().lower()
    system = written if written in _systems() else None
    columns = st.columns([1.3, 1.1, 0.75, 0.75, 2.1], vertical_alignment="bottom")
    with columns[0]:
        names = list(_systems())
        _select("System", names, system, lambda s: _systems()[s][0], lambda s: _show(s, _near(s, spec)))
    shape = spec.text.split(":")[1] if spec and system else None
    with columns[1]:
        shapes = _systems()[system][1] if system else ()
        listed = sorted({*shapes, *filter(None, [shape])}, key=lambda s: (_size(s), s))
        _select(
            "Shape" if listed and "x" in listed[0] else "Chips",
            listed,
            shape,
            lambda s: f"{s} ({_size(s):,})" if "x" in s else f"{int(s):,}",
            lambda s: _show(system, s, bool(spec and spec.twisted), spec.slices if spec else 1),
        )
    tpu = shape is not None and system in SHORT.values()
    with columns[2]:
        twistable = shape is not None and _may_twist(system, spec)
        twisted, slices = f"lab_twist {text}", f"lab_slices {text}"
        st.toggle(
            "Twisted",
            bool(spec and spec.twisted),
            key=twisted,
            disabled=not twistable,
            help="Wraps of the short axes shift along the long ones: k x k x 2k and k x 2k x 2k.",
            on_change=lambda: _vary(spec, twisted=st.session_state[twisted]),
        )
    with columns[3]:
        amount(
            SLICES,
            spec.slices if spec else 1,
            key=slices,
            always=True,
            disabled=not tpu,
            changed=lambda: _vary(spec, slices=st.session_state[slices]),
        )
    with columns[4]:
        forms = "; ".join(f"`{example}`" for s in topology.SYSTEMS for example, _ in s.FORMS)
        name = f"lab_spec {text}"
        st.text_input(
            "or any topology by name",
            text,
            key=name,
            help=HELP.format(forms),
            on_change=lambda: _write(st.session_state[name]),
        )


def _systems() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name in a topology -> (what it is called, sizes to choose from)."""
    return {short: (name, _shapes(families()[name])) for name, short in SHORT.items() if families()[name].axes} | OTHERS


def _shapes(family: SliceFamily) -> tuple[str, ...]:
    listed = dict.fromkeys((*family.small_topologies, *(t.shape for t in family.topologies)))
    return tuple(listed if family.topologies else (*listed, *UNLISTED))


def _known(text: str) -> Spec | None:
    """The topology of this name where it can be read without a store; else none of the lists shows it."""
    try:
        return topology.parse(text)
    except ChipledgerError:
        return None


def _may_twist(system: str, spec: Spec) -> bool:
    if twist_of(spec.dims) is None:
        return False
    return system == "torus" or (spec.chip in families() and families()[spec.chip].twistable is not False)


def _near(system: str, now: Spec | None) -> str:
    """The size of another system nearest in chips to what is shown now."""
    chips = now.chips // now.slices if now else 128
    return min(_systems()[system][1], key=lambda s: abs(_size(s) - chips))


def _size(shape: str) -> int:
    return prod(int(n) for n in shape.split("x"))


def _show(system: str, shape: str, twisted: bool = False, slices: int = 1) -> None:
    """Shows it; a twist or slices that the new shape cannot have are left out."""
    plain = f"{system}:{shape}"
    for text in (plain + ":twisted" * twisted + f":slices={slices}" * (slices > 1), plain):
        if _known(text) is not None:
            break
    _write(text)


def _vary(spec: Spec | None, twisted: bool | None = None, slices: int | None = None) -> None:
    """What is shown, twisted or in slices otherwise; of a topology that cannot be read there is nothing to vary."""
    if spec is None:
        return
    system, shape = (part.strip().lower() for part in spec.text.split(":")[:2])
    _show(system, shape, spec.twisted if twisted is None else twisted, slices or spec.slices)


def _write(text: str) -> None:
    if text.strip():
        choose_specs(text.strip(), *asked()[1:])


def _select(label: str, options: list[str], now: str | None, shown, chosen) -> None:
    key = f"lab_{label} {asked()[0]}"
    st.selectbox(
        label,
        options,
        index=None if now is None else options.index(now),
        format_func=shown,
        key=key,
        disabled=not options,
        placeholder="by its name" if now is None else None,
        on_change=lambda: st.session_state[key] and chosen(st.session_state[key]),
    )
