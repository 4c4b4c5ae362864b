"""Why a step takes longer, in words: the setting that can have done it, else what program and collectives show."""

from collections.abc import Mapping

from analyzers.difference import DifferenceResult
from analyzers.difference.accounts import AccountChange
from analyzers.difference.causes import WORK, Because, Setting, mesh_of
from analyzers.difference.differs import Differs
from analyzers.difference.figures import FigureChange
from app.words import short
from errors import format as fmt

MOST_AMONG = 3


def reason(cause: Because) -> str:
    """`because the mesh is data=8, model=2, not data=4, model=4`; of several that can: `which the batch (8, then 16) or
    remat (full, then none) may make`; empty where none can."""
    if cause.only is not None:
        return f"because {said(cause.only)}"
    if not cause.among:
        return ""
    names = [called(s) for s in cause.among[:MOST_AMONG]]
    if (more := len(cause.among) - MOST_AMONG) > 0:
        names.append(fmt.count(more, "more setting"))
    return f"which {' or '.join(names)} may make"


def alone(why: str) -> str:
    """A reason or what is evident instead, as a sentence of its own."""
    if why.startswith("which ") and why.endswith(" may make"):
        said = f"{why.removeprefix('which ').removesuffix(' may make')} may make the difference"
    elif why.startswith("because "):
        said = f"it is so {why}"
    else:
        said = why.removeprefix("as ").removeprefix("though ")
    return f"{said[:1].upper()}{said[1:]}."


def said(setting: Setting) -> str:
    """`the mesh is data=8, model=2, not data=4, model=4`."""
    verb = "are" if setting.kind.plural and not _flag(setting) else "is"
    a, b = values(setting)
    return f"{_name(setting)} {verb} {b}, not {a}"


def called(setting: Setting) -> str:
    """`the batch (8, then 16)`, `the version of jax (0.4, then 0.5, and 2 more versions)`."""
    a, b = values(setting)
    more = f", and {fmt.count(len(setting.parts) - 1, f'more {setting.kind.more}')}" if setting.several else ""
    return f"{_name(setting)} ({a}, then {b}{more})"


def unknown_called(d: Differs) -> str:
    """A setting of which it is not known what it moves."""
    head, _, tail = d.name.partition(".")
    name = f"{head}'s {tail}" if tail else head
    return f"{short(name.replace('_', ' '))} ({value(d.a)}, then {value(d.b)})"


def _flag(setting: Setting) -> str:
    """The name of a compiler's flag; empty where all of them are one text, and for all else."""
    return setting.parts[0].name.partition(".")[2] if setting.kind.name == "flags" else ""


def _name(setting: Setting) -> str:
    first, kind = setting.parts[0], setting.kind
    head, _, tail = first.name.partition(".")
    if kind.name == "model" and tail:
        return f"the model's {short(tail.replace('_', ' '))}"
    if flag := _flag(setting):
        return f"the compiler's flag {short(flag)}"
    if kind.name == "versions":
        return f"the version of {short(head.removesuffix('_version'))}"
    return kind.called


def values(setting: Setting) -> tuple[str, str]:
    """What A and B have, of the part that says most."""
    if setting.kind.name == "mesh" and (axes := (mesh_of(setting, "a"), mesh_of(setting, "b"))) != ({}, {}):
        one, two = (_axes({k: n for k, n in side.items() if n != 1} or side) for side in axes)
        return one, two
    first = setting.parts[0]
    return value(first.a), value(first.b)


def _axes(sizes: Mapping[str, object]) -> str:
    return ", ".join(f"{short(axis, 20)}={size}" for axis, size in sizes.items())


def value(of: object) -> str:
    if isinstance(of, bool):
        return "yes" if of else "no"
    return fmt.number(of) if isinstance(of, float) else f"{of:,}" if isinstance(of, int) else short(of, 40)


def evidence(result: DifferenceResult) -> str:
    """What programs and collectives show of the account that changed most, where no setting tells."""
    if not result.makers:
        return ""
    maker = result.makers[0]
    moved = result.figure("collective_bytes")
    if maker.account == "exposed_communication" and moved is not None:
        if moved.same:
            return "though collectives move the same bytes"
        word = "as" if _along(moved, maker) else "though"
        return f"{word} collectives move {fmt.size(moved.b)} a step, not {fmt.size(moved.a)}"
    parts = [f for n in ("program_operations", "program_flops", "program_bytes") if (f := result.figure(n))]
    if maker.account not in WORK or len(parts) < 3:
        return ""
    others = [f for f in parts if f.a and not f.same] or [f for f in parts if f.a != f.b]  # or hardly more of anything
    if not others:
        return "though the program is the same"
    with_it = [f for f in others if _along(f, maker)]
    f = (with_it or others)[0]
    return f"{'as' if with_it else 'though'} the program is another: {_SHOWN[f.name](f.b)}, not {_SHOWN[f.name](f.a)}"


def _along(figure: FigureChange, account: AccountChange) -> bool:
    """Whether a figure grew where the account did, or fell where it fell."""
    return (figure.b > figure.a) == (account.change > 0)


_SHOWN = {
    "program_operations": lambda v: f"{v:,.0f} operations",
    "program_flops": fmt.flops,
    "program_bytes": lambda v: f"{fmt.size(v)} read and written",
}
