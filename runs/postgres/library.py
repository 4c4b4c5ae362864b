"""psycopg, which talks to PostgreSQL: imported where a registry is there, and asked for where it lacks."""

from typing import Any

from errors import InputError


def library() -> Any:
    """The module. Raises InputError where it is not installed."""
    try:
        import psycopg
    except ImportError as e:
        raise InputError(
            f"a registry on PostgreSQL takes psycopg, which cannot be imported here ({e})",
            advice="`pip install 'chipledger[postgres]'` brings it.",
        ) from e
    return psycopg


def conninfo_to_dict(text: str) -> dict[str, Any]:
    library()
    from psycopg import conninfo

    return dict(conninfo.conninfo_to_dict(text))


def is_refusal(error: BaseException) -> bool:
    """Whether the library or the server said no: all else is a defect."""
    return isinstance(error, library().Error)
