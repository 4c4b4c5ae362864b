"""Traces for a viewer, made of profiles as JAX and TensorFlow make them, by the published rules of that."""

import gzip
import json

INTERNAL = {
    b"_r",
    b"_pt",
    b"_p",
    b"_ct",
    b"_c",
    b"kernel_details",
    b"flops",
    b"bytes_accessed",
    b"program_id",
    b"symbol_id",
}


def _value(stat, names: dict) -> str:
    if stat.HasField("ref_value"):
        return names[stat.ref_value].decode()
    for kind in ("int64_value", "uint64_value", "double_value"):
        if stat.HasField(kind):
            return str(getattr(stat, kind))
    return (stat.str_value or stat.bytes_value).decode("latin-1")


def viewer_events(space) -> list[dict]:
    """The list of events: names of processes and threads first."""
    names, events = [], []
    for pid, plane in enumerate(space.planes, 1):
        stats = {e.key: e.value.name for e in plane.stat_metadata}
        metadata = {e.key: e.value for e in plane.event_metadata}
        if not plane.lines:
            continue
        names.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": plane.name.decode()}})
        for line in plane.lines:
            if line.name == b"Async XLA Ops":
                continue
            of = {"pid": pid, "tid": line.id & 0xFFFFFFFF}
            names.append({"ph": "M", **of, "name": "thread_name", "args": {"name": line.name.decode()}})
            for event in line.events:
                what = metadata[event.metadata_id]
                shown = (what.display_name or what.name).decode()
                args = {"long_name": what.name.decode()} if what.display_name else {}
                for stat in (*what.stats, *event.stats):
                    if stats[stat.metadata_id] not in INTERNAL:
                        args[stats[stat.metadata_id].decode()] = _value(stat, stats)
                ts = (line.timestamp_ns * 1000 + event.offset_ps) / 1e6
                told = {"ph": "X", **of, "ts": ts, "dur": max(event.duration_ps, 1) / 1e6, "name": shown}
                events.append(told | ({"args": args} if args else {}))
    return [*names, *events, {}]


def as_json(events: list[dict]) -> bytes:
    head = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}
    return json.dumps(head, separators=(",", ":")).encode()


def viewer_file(space) -> bytes:
    return gzip.compress(as_json(viewer_events(space)))
