"""Which entries are a job's, in the Logging query language, and times as that language writes them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from collectors.reading.textlog import DATED, NS_PER_S, moment_ns
from errors import InputError

FILTER_CHARACTERS = 20_000  # the service's own limit
_ROOM = 400  # characters that the time window adds
_PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z0-9][a-z0-9-]{3,61}[a-z0-9]|\d{6,20}")


@dataclass(frozen=True)
class Wanted:
    """Whose entries: `log_names` default to `goodput_<job>`, as MaxText names them; `also`: further filters.

    Entries that a further filter finds need not be goodput entries: their text may tell why the job stopped.
    """

    project: str
    job: str
    log_names: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    def filter(self) -> str:
        """The filter without times. Raises InputError for what cannot be asked for."""
        check_project(self.project)
        if not self.job or not self.job.isprintable():
            raise InputError(f"{self.job[:80]!r} is no job's name", expected="the job_name of its goodput entries")
        names = self.log_names or (f"goodput_{self.job}",)
        logs = " OR ".join(f"logName={literal(log_path(self.project, name))}" for name in names)
        # AND binds looser than OR in this language, so every part has brackets of its own
        parts = [f"(({logs}) AND severity=INFO AND jsonPayload.job_name={literal(self.job)})"]
        text = " OR ".join(parts + [f"({_balanced(extra)})" for extra in self.also])
        if len(text) > FILTER_CHARACTERS - _ROOM:
            raise InputError(f"a filter of {len(text):,} characters", expected=f"at most {FILTER_CHARACTERS - _ROOM:,}")
        return f"({text})"


def between(filter_text: str, begin_ns: int, end_ns: int | None = None, received_from_ns: int | None = None) -> str:
    """The same entries, with `begin <= timestamp < end`, and received no earlier than a moment."""
    parts = [filter_text, f'timestamp>="{stamp(begin_ns)}"']
    if end_ns is not None:
        parts.append(f'timestamp<"{stamp(end_ns)}"')
    if received_from_ns is not None:
        parts.append(f'receiveTimestamp>="{stamp(received_from_ns)}"')
    return " AND ".join(parts)


def check_project(project: str) -> str:
    """Raises InputError for what cannot be the id or number of a project."""
    if not _PROJECT.fullmatch(project):
        raise InputError(
            f"{project[:80]!r} is no project id",
            expected="such as my-project-123, or its number",
            advice="`gcloud projects list` shows the ids.",
        )
    return project


def log_path(project: str, name: str) -> str:
    """`projects/P/logs/NAME`, the name encoded as the service stores it; a whole path stays as it is."""
    return name if "/logs/" in name else f"projects/{project}/logs/{quote(name, safe='')}"


def literal(text: str) -> str:
    """A string of the query language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _balanced(text: str) -> str:
    """A filter that a person wrote, if it can stand inside brackets. Raises InputError where it cannot."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    depth = 0
    for c in bare:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            break
    if depth or bare.count('"') % 2 or not text.strip() or "--" in bare:
        raise InputError(
            f"the filter {text[:80]!r} is not understood",
            expected="the Logging query language, without comments, brackets and quotes closed",
        )
    return text


def stamp(ns: int) -> str:
    """RFC 3339 in UTC, to the nanosecond."""
    seconds, fraction = divmod(ns, NS_PER_S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def stamp_ns(text: object) -> int | None:
    """Nanoseconds since the epoch of an RFC 3339 time; None for anything else."""
    match = DATED.match(text) if isinstance(text, str) else None
    return moment_ns(match) if match else None
