"""The answer about placements in words: what the panel's head and a terminal say, and why one way is slower."""

from typing import TYPE_CHECKING, Any

from app.whatif.base import Words
from app.whatif.placement.code import mesh_code
from app.words import Table, Verdict, headline
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.placement.answers import Answer
    from simulators.placement.search import Placement

FORMS = {"dcn": "data-centre network", "core": "chip"}
ALIKE = 1.005  # a step within half a per cent is no slower


def verdict(answer: "Answer") -> Verdict:
    """Where the axes go, which lack a wrap, what a step takes, and how much the usual order loses."""
    best = answer.best
    held = "; ".join(f"{name} on {_on(parts)}" for name, parts in answer.held(best).items() if parts)
    text = f"A step takes {fmt.duration(best.step_s)}"
    if answer.compute_s:
        text += f", {fmt.whole_share(answer.compute_s / best.step_s)} of it maths at peak"
    where = f"{'Best: ' + held if held else 'One device: nothing is sent'}."
    return headline(where, f"{text}.", _jax(answer), *_rings(answer))


def _rings(answer: "Answer") -> tuple[str, str]:
    """Which axes do not close by a wrap."""
    rings = answer.ring(answer.best)
    folded, opened = ([n for n, how in rings.items() if how == wanted] for wanted in ("fold", "open"))
    return (
        f"No wrap: {_and(opened)}." if opened else "",
        f"No wrap, but can be folded into {_ring(folded)}: {_and(folded)}." if folded else "",
    )


def _ring(names: list[str]) -> str:
    return "a ring" if len(names) == 1 else "rings"


def _jax(answer: "Answer") -> str:
    jax = answer.found.jax
    if jax is None or answer.machine.devices == 1:
        return ""  # the notes say why
    if jax is answer.best:
        return "mesh_utils of JAX lays it so" + (" where it may split axes." if answer.found.jax_splits else ".")
    slower = jax.step_s / answer.best.step_s
    if slower < ALIKE:
        return "mesh_utils of JAX lays it otherwise, as quick."
    allowed = ", where it may split axes," if answer.found.jax_splits else ""
    return (
        f"mesh_utils of JAX{allowed} puts {_held(answer, jax)}: {fmt.duration(jax.step_s - answer.best.step_s)} "
        f"({fmt.change(slower - 1)}) more a step."
    )


def reason(answer: "Answer", placement: "Placement") -> str:
    """Why this way takes longer than the best, or what makes the best the best."""
    best, mine, theirs = answer.best, answer.by_axis_s(placement), answer.by_axis_s(answer.best)
    if placement is best:
        lacking = [_name(answer, placement, n) for n, closed in answer.wrapped(best).items() if closed is False]
        whole = "" if answer.machine.levels else " Every axis closes to a ring."
        return "The best." + (f" Without a wrap: {'; '.join(lacking)}." if lacking else whole)
    more = {name: s - theirs[name] for name, s in mine.items()}
    worst = max(more, key=more.__getitem__)
    if more[worst] <= 1e-9 * best.step_s:
        return "As quick as the best."
    times = mine[worst] / theirs[worst] if theirs[worst] else None
    hidden = placement.step_s <= best.step_s * (1 + 1e-6)
    text = f"{_name(answer, placement, worst)}: its collectives take "
    text += f"{fmt.number(times)} times as long as in the best" if times else fmt.duration(mine[worst])
    if hidden:
        return f"As quick as the best: what takes longer is hidden. {text}."
    return f"{text}, {fmt.duration(more[worst])} more a step."


def _name(answer: "Answer", placement: "Placement", name: str) -> str:
    """`tensor on a line of 8 (x:8): no wrap`, `fsdp on x of 4 steps, links shared by 2`."""
    q = [a.name for a in answer.axes].index(name)
    pieces = placement.pieces[q]
    parts = []
    for piece in pieces:
        axis = answer.machine.axes[piece.axis]
        ring = piece.wrapped(answer.machine, [p.axis for p in pieces if p.whole(answer.machine)])
        form = ("ring" if ring else "line") if axis.kind == "link" else FORMS.get(axis.kind, "level")
        shared = f", links shared by {piece.stride}" if piece.stride > 1 and axis.kind == "link" else ""
        parts.append(f"a {form} of {piece.count} ({piece.text(answer.machine)}{shared})")
    return f"{name} on {_and(parts)}"


def _held(answer: "Answer", placement: "Placement") -> str:
    return ", ".join(f"{name} on {_on(parts)}" for name, parts in answer.held(placement).items() if parts)


def _on(parts: list[str]) -> str:
    return " × ".join(parts)


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def told(answer: "Answer") -> dict[str, Any]:
    """The JSON contract: the answer, why each way is slower, and the Python that lays the best."""

    def way(placement: "Placement | None") -> dict[str, Any] | None:
        if placement is None:
            return None
        return {**answer.placement_dict(placement), "reason": reason(answer, placement)}

    return {
        **answer.to_dict(),
        "placements": [way(p) for p in answer.shown],
        "best_whole": way(answer.best_whole),
        "jax": way(answer.found.jax),
        "code": mesh_code(answer, answer.best),
    }


def words(answer: "Answer") -> Words:
    """The best ways with their cost, and what each axis adds."""
    names = [a.name for a in answer.axes]
    rows = []
    for p in answer.shown:
        held, wrapped, cost = answer.held(p), answer.wrapped(p), answer.by_axis_s(p)
        cells = [_on(held[n]) + ("" if wrapped[n] is not False else " (no wrap)") for n in names]
        rows.append(
            (
                *cells,
                fmt.duration(p.step_s),
                f"{fmt.duration(p.low_s)} to {fmt.duration(p.high_s)}",
                *(fmt.duration(cost[n]) for n in names),
                "yes" if answer.found.jax is p else "",
            )
        )
    head = (*names, "step", "full overlap to none", *(f"sent by {n}" for n in names), "JAX's own")
    table = Table(head, tuple(rows), right=tuple(range(len(names), 2 * len(names) + 2)))
    return Words(verdict(answer), table, answer.notes)
