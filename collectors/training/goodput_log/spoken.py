"""What entries say of failures: their text, message or audit record, and the cause that it tells of."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.causes import causes_of, device_of, host_of
from collectors.reading.entry_text import PAYLOAD_KEYS, audit_text, audited_host, payload_text
from collectors.reading.line_prefix import plain, severity
from collectors.reading.textlog import clean
from collectors.training.goodput_log.batch import Batch, columns_of, whole_column
from collectors.training.goodput_log.keys import NONE

TEXT_LIMIT = 500  # characters of a text that are kept
_FEW = 200  # entries that are looked at one by one rather than read again as columns
_SCHEMA = pa.schema(
    [
        ("textPayload", pa.string()),
        ("jsonPayload", pa.struct([(key, pa.string()) for key in PAYLOAD_KEYS])),
        ("protoPayload", pa.struct([("methodName", pa.string()), ("status", pa.struct([("message", pa.string())]))])),
    ]
)
_SEVERITIES = {
    "EMERGENCY": "fatal",
    "ALERT": "fatal",
    "CRITICAL": "fatal",
    "ERROR": "error",
    "WARNING": "warning",
    "NOTICE": "info",
    "INFO": "info",
    "DEBUG": "info",
}
_LABELS = ("compute.googleapis.com/resource_name", "instance_name", "node_name")  # of the entry, names of hosts first
_RESOURCE_LABELS = ("node_name", "instance_name", "pod_name", "node_id", "instance_id")


@dataclass(frozen=True)
class Said:
    """An entry that tells of a cause (a key of catalog.causes.CAUSES). `entry`: its number in the batch."""

    entry: int
    ts_ns: int | None
    cause: str
    severity: str | None
    host: str | None
    device: int | None
    text: str
    offset: int


def said(batch: Batch, which: np.ndarray) -> list[Said]:
    """What those of the entries `which` say that tell of a cause."""
    if not which.size:
        return []
    lines = [plain(line) for line in _lines(batch, which)]
    found = []
    for i, line, cause in zip(which.tolist(), lines, causes_of(lines), strict=True):
        if cause is not None:
            entry = batch.entry(i)
            ts_ns = int(batch.logged[i])
            told = _SEVERITIES.get(str(entry.get("severity"))) or severity(line)
            found.append(
                Said(
                    i,
                    None if ts_ns == NONE else ts_ns,
                    cause,
                    told,
                    _host(entry, line),
                    device_of(line),
                    clean(line[:TEXT_LIMIT]),
                    batch.offset(i),
                )
            )
    return found


def _lines(batch: Batch, which: np.ndarray) -> list[str]:
    columns = None if batch.data is None or which.size <= _FEW else _columns(batch.data)
    if columns is None:
        return [_line(batch.entry(i)) for i in which.tolist()]
    return cast("list[str]", columns.take(pa.array(which, pa.int64())).to_pylist())  # none is null


def _columns(data: memoryview) -> pa.StringArray | None:
    """The text of every entry; None where they do not fit columns."""
    table = columns_of(data, _SCHEMA)
    if table is None:
        return None
    method, status = whole_column(table["protoPayload"], pa.StructArray).flatten()
    message = cast(pa.StructArray, status).flatten()[0]  # as the schema has it
    both = pc.binary_join_element_wise(method, message, ": ")  # pyright: ignore[reportCallIssue, reportArgumentType]  # a text goes
    own = (
        whole_column(table["textPayload"], pa.StringArray),
        *whole_column(table["jsonPayload"], pa.StructArray).flatten(),
    )
    return cast(pa.StringArray, pc.coalesce(*own, both, method, message, pa.scalar("")))  # arrays give an array


def _line(entry: dict) -> str:
    """The text of an entry: its own, or its payload's, or method and status of an audit record."""
    own = entry.get("textPayload")
    text = own if isinstance(own, str) else payload_text(_object(entry.get("jsonPayload")))
    return audit_text(_object(entry.get("protoPayload"))) if text is None else text


def _object(value: object) -> dict:
    return value if isinstance(value, dict) else {}


def _host(entry: dict, line: str) -> str | None:
    """The host that the line names, else the one that the entry says it is of."""
    labels, resource = _object(entry.get("labels")), _object(_object(entry.get("resource")).get("labels"))
    named = audited_host(_object(entry.get("protoPayload")))
    known = (host_of(line), named, *(labels.get(k) for k in _LABELS), *(resource.get(k) for k in _RESOURCE_LABELS))
    return next((clean(name[:200]) for name in known if isinstance(name, str) and name), None)
