"""What PostgreSQL refuses, in one sentence with what to do. No text of ours or of the server's tells a password."""

from typing import Any

from errors import InputError
from runs.postgres.address import EXTRA
from runs.postgres.library import library


class Unkept(InputError):
    """What was to be kept is nothing that PostgreSQL can keep: to say it again is of no use."""


NEWER = "the registry was made by a newer version of Chipledger (its schema is {}, this one knows {})"
_PASSING = (
    *("refused", "starting up", "not yet accepting", "shutting down", "no such file", "timeout", "timed out"),
    *("closed the connection", "unreachable", "reset by peer", "in recovery"),
)
_FULL = ("too many", "connection slots")
_CONNECTING = (
    ("password", "the password is wrong, or none was given", "Put it into the file of `--registry-file`, or where "
     "libpq looks for it (PGPASSWORD, PGPASSFILE)."),
    ("authentication failed", "this user may not connect so", "Look at the user in its address and at pg_hba.conf."),
    ("pg_hba", "this user may not connect from here", "A line of pg_hba.conf lets it, and TLS may be asked for "
     "(`?sslmode=require`)."),
    ("role", "there is no such user", "Make it (`create role NAME login password ...`), or name another."),
    ("translate host", "no such host is known", "Look at the host in its address."),
    ("name or service", "no such host is known", "Look at the host in its address."),
    ("certificate", "its certificate is not trusted", "`sslrootcert` in its address names whom to trust."),
    ("ssl", "TLS could not be agreed on", "Look at `sslmode` in its address."),
)  # fmt: skip
_NO_MORE = ("it takes no more connections", "Raise max_connections, or run fewer servers and workers: each takes up to "
            "9.")  # fmt: skip
_BY_STATE = {
    "42501": ("the registry cannot be changed: this user may not do that", "Let it make tables: `grant create, usage "
              "on schema public to USER`, or have it own the database."),
    "25006": ("the registry cannot be written: its server only reads", "Name the one that writes, such as with "
              "`target_session_attrs=read-write` in its address."),
    "53100": ("the registry cannot be written: the disk of its server is full", "Make room there; it is whole."),
    "55P03": ("the registry cannot be used now: another has been writing for long", "Try again."),
    "57014": ("the registry cannot be used now: it took too long to answer", "Try again."),
    "42P01": ("the registry is damaged: a table is gone", "Bring the database back from a backup."),
    "42703": ("the registry is damaged: a column is gone", "Bring the database back from a backup."),
    "3F000": ("the registry's schema of tables is not there", "Look at `search_path` in its address."),
}  # fmt: skip


def is_passing(error: BaseException) -> bool:
    """Whether a server that could not be reached may be there in a moment."""
    text = str(error).lower()
    return any(word in text for word in _PASSING) and "password" not in text


def is_full(error: BaseException) -> bool:
    """Whether the server, the database or the user has as many connections as may be; one may end at any moment."""
    text = str(error).lower()
    return any(word in text for word in _FULL)


def unreached(error: Any, name: str) -> InputError:
    """No connection could be made."""
    text = _first_line(error)
    low = text.lower()
    if is_full(error):
        return _refusal(_NO_MORE[0], name, _NO_MORE[1])
    if "database" in low and "does not exist" in low:
        return _refusal("there is no such database", name, "Make it (`createdb NAME`), or name another.")
    for word, what, advice in _CONNECTING:
        if word in low:
            return _refusal(what, name, advice)
    return _refusal(f"it cannot be reached ({text})", name, "Does PostgreSQL run there? It is tried again.")


def refused(error: Any, name: str) -> InputError:
    """A statement was refused, or the connection was lost under it: nothing of its transaction is kept."""
    state = getattr(error, "sqlstate", None) or ""
    if state in _BY_STATE:
        what, advice = _BY_STATE[state]
        return InputError(what, where=name, advice=advice)
    if state.startswith("22") or isinstance(error, library().DataError):
        what = f"the registry cannot keep this text or number ({_first_line(error)})"
        return Unkept(what, expected="text without NUL, numbers of 64 bits")
    if state.startswith("54"):
        return Unkept("the registry cannot keep this: it is too long to be kept", expected="something shorter")
    if not state or state.startswith(("08", "57P")):
        what = "the registry cannot be used now: the connection to its server was lost"
        return InputError(what, where=name, advice="Try again.")
    return InputError(f"the registry cannot be used now ({_first_line(error)})", where=name, advice="Try again.")


def unreadable(error: Any) -> InputError:
    """A text that is none (half a surrogate pair), or holds NUL."""
    return Unkept(f"the registry cannot keep this text ({_first_line(error)})", expected="text")


def newer(there: int, known: int, name: str) -> InputError:
    advice = f"Use the version that made it, or newer: `pip install --upgrade '{EXTRA}'`."
    return InputError(NEWER.format(there, known), where=name, advice=advice)


def left(name: str) -> InputError:
    """What is kept in the registry is in a file now."""
    advice = (
        "Start this anew: it then finds where it is, the file registry.db (registry.db.part where that was cut short)."
    )
    return InputError("the registry was moved back", where=name, advice=advice)


def undone(name: str) -> InputError:
    """A statement of a transaction was refused, and whoever asked went on."""
    what = "the registry cannot keep this: part of it was refused, and nothing of it was kept"
    return InputError(what, where=name, advice="Try again.")


def other_letters(kept_as: str | None, name: str) -> InputError:
    advice = "`createdb --encoding UTF8 --template template0 NAME` makes one that keeps every text."
    return _refusal(f"its database keeps texts as {kept_as or 'unknown'}, not as UTF8", name, advice)


def _refusal(what: str, name: str, advice: str) -> InputError:
    return InputError(f"the registry cannot be used: {what}", where=name, advice=advice)


def _first_line(error: Any) -> str:
    """Of what PostgreSQL or libpq said: further lines quote rows and statements."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__
