"""Which of several runs can be part of a scaling series, out of what is read of each."""

from dataclasses import replace

from analyzers.several.scaling import Grown, Scaling, scaling
from app.comparing.several.answer import Several
from app.comparing.several.reading import accounts_of, steps_of, tokens_of
from app.menu import kind_of
from runs.run import Run

BATCHES = ("global_batch", "global_batch_size")


def grown(found: Several) -> Scaling:
    """The series of the runs whose steps are read. Profiles are read of those alone that are in one."""
    some, others = dict[str, Grown](), list[tuple[str, str]]()
    runs = {r.run_id: r for r in found.chosen.runs}
    for n, (member, run) in enumerate(zip(found.members, found.chosen.runs, strict=True)):
        one = _grown(found, n, run) if n in found.read else "its steps are not read: there are too many runs"
        if isinstance(one, str):
            others.append((member.name, one))
        else:
            some[member.run_id] = one
    some = _of_one_measure(found, some)
    first = scaling(list(some.values()), others)
    used = {p.run_id for s in first.series for p in s.points}
    profiled = {i: told for i in used if (told := accounts_of(runs[i])) is not None}
    some |= {i: replace(some[i], accounts=told.mean, may_be=told.may_be) for i, told in profiled.items()}
    return scaling(list(some.values()), others) if used else first


def _grown(found: Several, n: int, run: Run) -> Grown | str:
    """A text: why it cannot be part of one."""
    if kind_of(run) != "job":
        return f"it is {run.manifest.kind}, and takes no training steps"
    chips, times = run.manifest.fact("chips"), steps_of(run)
    if times is None:
        return "it tells of no settled step"
    if not chips:
        return "its number of chips is not known"
    return Grown(member=found.members[n], chips=int(chips), times=times, batch=batch_of(run))


def _of_one_measure(found: Several, some: dict[str, Grown]) -> dict[str, Grown]:
    """Batches in sequences, where all tell them; else in tokens, where all tell those: the two are never compared."""
    if all(g.batch is not None for g in some.values()):
        return some
    runs = {r.run_id: r for r in found.chosen.runs}
    tokens = {i: tokens_of(runs[i], found.place) for i in some}
    if all(t is not None for t in tokens.values()):
        return {i: replace(g, batch=tokens[i]) for i, g in some.items()}
    return some


def batch_of(run: Run) -> float | None:
    """Sequences of a step of all chips, as the run states them; None where it does not."""
    fact = run.manifest.fact
    model = fact("model")
    told = [fact(name) for name in BATCHES]
    told += [model.get(name) for name in BATCHES] if isinstance(model, dict) else []
    if given := next((float(v) for v in told if _positive(v)), None):
        return given
    own, devices = fact("per_device_batch_size"), fact("devices")
    return float(own) * float(devices) if _positive(own) and _positive(devices) else None


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
