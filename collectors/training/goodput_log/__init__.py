"""Goodput logs: Cloud Logging entries as exported by `gcloud logging read --format=json`, a sink, or the API.

The entries are those that ml-goodput-measurement and Orbax write: `jsonPayload` with `job_name` and a time. Only
entries of severity INFO count, as in that library. One file is one run: the job that the log is named after
(`goodput_<job_name>`), else the one with the most events; other jobs are named and left out.

Rows are made by walking the entries in log order: by `timestamp`, ties in file order. An interval is a start entry and
the next end entry of its kind; a start without an end keeps a null end, an end without a start a null start, so that no
entry is merged away. `logged_ns` and `order` are those of the start entry (of the end entry where that is all there
is), `end_logged_ns` and `end_order` those of the end entry. `order` is the position in the file, counted from its end
if the file lists the newest first. `attempt` counts the job starts seen before, less one.

Other entries (text, messages, audit records) that tell why something failed become `evidence`.

`stream` cuts a file into batches of entries, `events` finds what they tell, `log` joins and orders it, `rows` pairs it.
All of it is columns: a million entries take one to two seconds.
"""

import re
from collections.abc import Iterable, Iterator

from collectors.base import Fact, Item, Source
from collectors.reading.textlog import Tally
from collectors.training.goodput_log.events import Events, events_of
from collectors.training.goodput_log.evidence import Evidence
from collectors.training.goodput_log.keys import IN_HEAD
from collectors.training.goodput_log.log import Log
from collectors.training.goodput_log.rows import rows_of
from collectors.training.goodput_log.stream import batches
from errors import InputError

NAME = "goodput_log"
TITLE = "goodput log"
HELP = "Goodput log of ml-goodput-measurement, exported from Cloud Logging as JSON: steps, badput, checkpoints, slices."

_PAYLOAD = re.compile(rb'"(?:json|text|proto)Payload"')


def sniff(source: Source) -> float:
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] not in (b"{", b"["):
        return 0.0
    if b'"jsonPayload"' in head and IN_HEAD.search(head):
        return 0.95
    # Any other Cloud Logging export: its goodput entries may begin later, and if not, `read` says what is missing.
    return 0.5 if b'"logName"' in head and _PAYLOAD.search(head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, lifecycle, evidence and the job's name. Raises InputError where no entry brings any of them."""
    tally = Tally()
    yield from _items(batches(source, tally, events_of), source.name, tally)


def _items(found: Iterable[Events], name: str, tally: Tally) -> Iterator[Item]:
    log, evidence = Log(tally), Evidence(tally)
    for some in found:
        evidence.add(some.said, log.entries)
        log.add(some)
    job = log.main_job()
    if job is None and not evidence:
        raise InputError(
            "no goodput entry in it",
            where=name,
            expected="Cloud Logging entries with jsonPayload.job_name and step_start_time, job_start_time, ...",
            advice="Export the log that ml-goodput-measurement writes (MaxText: goodput_<run_name>).",
        )
    ordered = None
    if job is not None:
        ordered = log.ordered(job)
        yield Fact("job_name", job)
        yield from rows_of(ordered, name, NAME)
    yield from evidence.rows(ordered, name)
    yield from tally.lost()
