"""Dumps of PyTorch's flight recorder: what each rank's host handed to NCCL, Gloo or their like, and how far it came.

A dump is a pickle of plain data, or the same as JSON; `collectors/reading/plain_pickle/` reads it without running
anything. Which rank wrote it stands in the file's name alone (`nccl_trace_rank_12`, `_dump_12`).

    enqueued         what the dump lists: the last operations of the rank, or of these the unfinished ones alone
    group_progress   the last operation that was enqueued, started and completed, group by group
    evidence         an operation that had not completed when its watchdog let go of it

When a recorder noticed that something started or completed is later than it did: no durations are made of it, and
nothing goes into `collectives`.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source

NAME = "flight_recorder"
TITLE = "PyTorch flight recorder dump"
HELP = (
    "Dumps of PyTorch's flight recorder (`nccl_trace_rank_<N>`, pickle or JSON, one a rank): which collectives each "
    "rank entered, for jobs that hang."
)
_KEYS = (
    b"pg_config",
    b"pg_status",
    b"nccl_version",
    b"comm_lib_version",
    b"nccl_comm_state",
    b"entries",
    b"record_id",
    b"collective_seq_id",
    b"profiling_name",
    b"time_created_ns",
    b"last_enqueued_collective",
)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_GROUPS = (b"pg_config", b"desc", b"ranks")  # one key more: a list of 16,384 ranks leaves no room for others
_USUAL = re.compile(
    r"(?:^|[/\\_.-])(?:"
    r"(?:comm_traces/rank_|(?:nccl|comm_lib)_trace_rank_(?:[A-Za-z][\w.-]{0,252}_)?|torchcomm_fr_trace_)\d{1,9}"
    r"(?:\.(?:gz|pkl|pickle|json|bin|dump|trace|pt|txt|log)){0,3}"
    r"|_?dump_\d{1,9}(?:\.gz)?)$"
)


def sniff(source: Source) -> float:
    """0.95 for a pickle or JSON with the recorder's keys. A file that is empty, or ends before it tells, is one where
    its name is what recorders give: that a rank left nothing is worth knowing."""
    head = source.head
    usual = bool(_USUAL.search(source.name))
    if not head:
        return 0.6 if usual else 0.0
    if _PICKLE.match(head):
        known = sum(key in head for key in _KEYS) + all(_told(key, head) for key in (b"version", *_GROUPS))
        return 0.95 if known >= 2 else 0.6 if usual else 0.0
    if head.lstrip()[:1] != b"{":
        return 0.0
    known = sum(_quoted(key) in head for key in _KEYS) + all(_quoted(key) in head for key in _GROUPS)
    return 0.95 if known >= 3 or (known == 2 and usual) else 0.0


def _told(key: bytes, head: bytes) -> bool:
    """Whether a pickle holds the key as a text of its own, and not within another."""
    size = len(key)
    return any(mark + key in head for mark in (b"X" + size.to_bytes(4, "little"), b"\x8c" + bytes([size])))


def _quoted(key: bytes) -> bytes:
    return b'"' + key + b'"'


def apart(name: str) -> int | None:
    """The rank that a file's name tells: dumps of two ranks may have the same bytes."""
    from collectors.device.flight_recorder.ranks import rank_told

    return rank_told(name)


def read(source: Source) -> Iterator[Item]:
    """Operations and progress of one rank. Raises InputError where it is no dump, or nothing tells whose it is."""
    from collectors.device.flight_recorder.reader import items

    yield from items(source)
