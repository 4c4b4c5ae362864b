"""What whoever asks just now may: the one question of pages, of functions that change something, and of agents."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from app.identity.asking import who
from app.identity.base import Identity, Role
from errors import QuestionError
from runs.audit_book import Outcome

P = ParamSpec("P")
R = TypeVar("R")
_NEEDED = {
    Role.VIEWER: "a viewer's role",
    Role.UPLOADER: "an uploader's role",
    Role.ADMIN: "an admin's role",
}
HELP = "Your role does not allow it: an admin can give you another."
Note = Callable[[Identity, str, str, Outcome, str], None]
_noting: list[Note] = []
_NOTED = ContextVar[list[str] | None]("noted", default=None)
_NAMED = 3  # names that are told of several: whole ids of more would leave no room for what was done to them


class NotAllowed(QuestionError):
    """Whoever asks may not do this."""


def may(least: Role) -> bool:
    """Whether whoever asks has this role, or a higher one."""
    return who().role >= least


def need(least: Role, what: str) -> None:
    """Raises NotAllowed where they have not. `what`: what they want to do, such as `rename a run`."""
    if not may(least):
        asks = who()
        called = f"{asks.name[:80]}, whose role is {asks.role.word}," if asks.name else "whoever is not known"
        raise NotAllowed(f"{called} may not {what}", expected=_NEEDED[least], advice="An admin can give it.")


def noted_by(note: Note) -> None:
    """From now on `note` keeps what pages change: (who, what, about what, outcome, why) goes to the audit log."""
    _noting[:] = [note]


@contextlib.contextmanager
def already_noted() -> Iterator[list[str]]:
    """Within it, the guard keeps what is done: it is not told twice. Yields what was changed until then, each with what
    it was about, which the address of a request often does not say."""
    told = list[str]()
    token = _NOTED.set(told)
    try:
        yield told
    finally:
        _NOTED.reset(token)


def changing(what: str, least: Role = Role.UPLOADER) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that changes what is kept: it is refused to those who may not, and told to the audit log where a
    page calls it. What a request does, the guard tells."""

    def made(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def held(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                need(least, what)
                done = function(*args, **kwargs)
            except Exception as e:
                _tell(what, _about(args, kwargs), "refused" if isinstance(e, NotAllowed) else "failed", str(e))
                raise
            _tell(what, _about(args, kwargs), "done")
            return done

        return held

    return made


def _tell(what: str, about: str, outcome: Outcome, more: str = "") -> None:
    asks, told = who(), _NOTED.get()
    if told is not None:
        told += [f"{what}: {about}"] if outcome == "done" else []
    elif _noting and asks.how not in ("open", "server"):
        _noting[0](asks, what, about, outcome, more)


def _about(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """What a function was called about: whether what it did away with can be brought back (not with `now`), and the
    runs and names among what it was given; of several the first."""
    said: list[str] = []
    for value in args:
        if isinstance(value, str):
            said.append(value)
        elif isinstance(run_id := getattr(value, "run_id", None), str):
            said.append(run_id)
        elif isinstance(value, list | tuple | set | frozenset | Mapping):
            names = [v for v in value if isinstance(v, str)]
            said += names[:_NAMED]
            said += [f"and {len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    first = ["for good"] if kwargs.get("now") is True else []
    return ", ".join([*first, *(s[:64] for s in said)])
