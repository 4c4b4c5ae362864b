"""Where the text of an entry of Cloud Logging stands, beside `textPayload`, and what an event of Kubernetes tells."""

from typing import Any

# of jsonPayload: what the service itself shows, then what a node's journal (kubelet, containerd, kernel) and loggers
# that write JSON call the same
PAYLOAD_KEYS = ("message", "MESSAGE", "msg", "log")
EVENT_TIMES = ("lastTimestamp", "eventTime", "firstTimestamp")  # of an event of Kubernetes, as far as it has them


def payload_text(payload: dict[str, Any]) -> str | None:
    """The text in a jsonPayload, if there is one."""
    return next((payload[key] for key in PAYLOAD_KEYS if isinstance(payload.get(key), str)), None)


def audit_text(proto: dict[str, Any]) -> str:
    """Method and status of an audit record, which is what it tells; empty where it tells neither."""
    status = proto.get("status")
    audit = (proto.get("methodName"), status.get("message") if isinstance(status, dict) else None)
    return ": ".join(part for part in audit if isinstance(part, str))


def event_text(entry: dict[str, Any]) -> str | None:
    """An event of Kubernetes as `kubectl get events` prints it, without its age; None of what is none."""
    about, message = entry.get("involvedObject") or entry.get("regarding"), entry.get("message") or entry.get("note")
    if not isinstance(about, dict) or not isinstance(message, str):
        return None
    kind, name = (str(about.get(key) or "-") for key in ("kind", "name"))
    return f"{entry.get('type') or 'Normal'} {entry.get('reason') or '-'} {kind.lower()}/{name} {message}"


def audited_host(proto: dict[str, Any]) -> str | None:
    """The machine that an audit record is about, by its name."""
    about = proto.get("resourceName")
    return about.rpartition("/instances/")[2] if isinstance(about, str) and "/instances/" in about else None
