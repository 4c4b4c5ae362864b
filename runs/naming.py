"""Which runs a name may mean that is not written whole, and what is said where that is none or several."""

from collections.abc import Iterable, Sequence

from errors import QuestionError
from errors.nearest import nearest
from runs.live import Live
from runs.run import Run

ELSEWHERE = ("live:", "model:", "baseline:")  # what begins so is looked for elsewhere: no run is called so
LEAST_OF_ID, LEAST_OF_NAME = 4, 3  # characters: fewer fit too much
CANDIDATES = 5
_SHOWN = 80  # characters of a name that a message repeats


def elsewhere(name: str) -> str:
    """With what a name begins that would lead elsewhere than to a run; empty where it does not."""
    return next((word for word in ELSEWHERE if name.startswith(word)), "")


def begun(name: str, runs: Iterable[Run]) -> Run | None:
    """The one run whose id, or whose name, begins so; of several with one name the newest. `runs`: newest first.

    Raises QuestionError where it fits several names and ids.
    """
    fitting: dict[tuple[bool, str], Run] = {}  # by name or by id: one may be written like another
    for run in runs:
        if len(name) >= LEAST_OF_NAME and run.manifest.name.startswith(name):
            fitting.setdefault((True, run.manifest.name), run)
        elif len(name) >= LEAST_OF_ID and run.run_id.startswith(name):
            fitting[False, run.run_id] = run
    if len(fitting) > 1:
        raise QuestionError(
            f"{shown(name)} is the beginning of {len(fitting)} names and ids of runs",
            expected=f"one of {_some([(title, run) for (_, title), run in fitting.items()])}",
            advice="Give more characters.",
        )
    return next(iter(fitting.values()), None)


def unknown(name: str, runs: Sequence[Run], live: Iterable[Live], where: str) -> QuestionError:
    """There is no such run: what was probably meant, among names, ids and live runs."""
    names = dict.fromkeys([*(r.manifest.name for r in runs), *(v.address for v in live)])
    started = [n for n in names if name and n.casefold().startswith(name.casefold())][:CANDIDATES]
    near = started or nearest(name, names, 3)
    meant = f"Did you mean {' or '.join(repr(n[:_SHOWN]) for n in near)}? " if near else ""
    return QuestionError(
        f"no run {shown(name)} in this store",
        where=where,
        advice=f"{meant}`chipledger runs` lists what is there.",
    )


def shown(name: str) -> str:
    return repr(name[:_SHOWN])


def _some(fitting: Sequence[tuple[str, Run]]) -> str:
    """At most five, each as a name with its id, so that either can be given."""
    told = [f"{title[:_SHOWN]!r} ({run.run_id[:12]})" for title, run in fitting[:CANDIDATES]]
    return ", ".join(told) + (f" and {len(fitting) - CANDIDATES:,} more" if len(fitting) > CANDIDATES else "")
