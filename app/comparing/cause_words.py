"""Why a step takes longer, in words: the setting that can have done it, else what program and collectives show."""

from analyzers.difference import DifferenceResult
from analyzers.difference.causes import SENT, WORK, Because, Setting, mesh_of
from app.words import listed, short
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
    more = len(cause.among) - MOST_AMONG
    return f"which {' or '.join(names)}{f' or {more} more settings' if more > 0 else ''} may make"


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
    verb = "are" if setting.kind.plural else "is"
    a, b = values(setting)
    return f"{_name(setting)} {verb} {b}, not {a}"


def called(setting: Setting) -> str:
    """`the batch (8, then 16)`."""
    a, b = values(setting)
    return f"{_name(setting)} ({a}, then {b})"


def _name(setting: Setting) -> str:
    first, kind = setting.parts[0], setting.kind
    head, _, tail = first.name.partition(".")
    if kind.name == "model" and tail:
        return f"the model's {short(tail.replace('_', ' '))}"
    if kind.name == "versions":
        return f"the version of {short(head.removesuffix('_version'))}"
    return kind.called


def values(setting: Setting) -> tuple[str, str]:
    """What A and B have, of the part that says most."""
    if setting.kind.name == "mesh" and (axes := (mesh_of(setting, "a"), mesh_of(setting, "b"))) != ({}, {}):
        one, two = (
            ", ".join(f"{short(k, 20)}={n}" for k, n in side.items() if n != 1) or "one device" for side in axes
        )
        return one, two
    first = setting.parts[0]
    return value(first.a), value(first.b)


def value(of: object) -> str:
    return fmt.number(of) if isinstance(of, float) else f"{of:,}" if isinstance(of, int) else short(of, 40)


def evidence(result: DifferenceResult) -> str:
    """What programs and collectives show of the account that changed most, where no setting tells."""
    if not result.makers:
        return ""
    account = result.makers[0].account
    moved = result.figure("collective_bytes")
    if account in SENT and moved is not None:
        if moved.same:
            return "though collectives move the same bytes"
        return f"as collectives move {fmt.size(moved.b)} a step, not {fmt.size(moved.a)}"
    parts = [f for n in ("program_operations", "program_flops", "program_bytes") if (f := result.figure(n))]
    if account not in WORK or len(parts) < 3:
        return ""
    if all(f.a == f.b for f in parts):
        return "though the program is the same"
    others = [f"{_SHOWN[f.name](f.b)}, not {_SHOWN[f.name](f.a)}" for f in parts if f.a and not f.same][:1]
    if not others:  # hardly more or less of anything
        others = [f"{_SHOWN[f.name](f.b)}, not {_SHOWN[f.name](f.a)}" for f in parts if f.a != f.b][:1]
    return f"as the program is another: {listed(others)}" if others else ""


_SHOWN = {
    "program_operations": lambda v: f"{v:,.0f} operations",
    "program_flops": fmt.flops,
    "program_bytes": lambda v: f"{fmt.size(v)} read and written",
}
