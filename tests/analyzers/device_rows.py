"""Tables of one capture per host, laid down by hand: what runs on which device, from when to when."""

from runs.tables import MemoryTables

EPOCH = 1_767_571_200_000_000_000


def device_tables(work, *, steps=(), extra=None, stop_ns=None):
    """`work`: (host, device, role, category, [(start ns, end ns), ...]); `steps`: (host, step, start ns, end ns)."""
    hosts = list(dict.fromkeys(w[0] for w in work))
    ops = {n: [] for n in ("capture", "op_id", "host", "device", "role", "category")}
    events = {n: [] for n in ("capture", "device", "op_id", "start_ps", "dur_ps")}
    for number, (host, device, role, category, spans) in enumerate(work):
        capture = hosts.index(host)
        row = (capture, number, host, device, role, category)
        for name, value in zip(ops, row, strict=True):
            ops[name].append(value)
        for start, end in spans:
            for name, value in zip(events, (capture, device, number, start * 1000, (end - start) * 1000), strict=True):
                events[name].append(value)
    tables = {
        "captures": {
            "capture": list(range(len(hosts))),
            "host": hosts,
            "start_ns": [EPOCH] * len(hosts),
            "stop_ns": [None if stop_ns is None else EPOCH + stop_ns] * len(hosts),
        },
        "ops": ops,
        "op_events": events,
        "steps": {
            "step": [s[1] for s in steps],
            "host": [s[0] for s in steps],
            "start_ns": [EPOCH + s[2] for s in steps],
            "dur_ns": [s[3] - s[2] for s in steps],
            "capture": [hosts.index(s[0]) for s in steps],
        },
    }
    return MemoryTables(tables | (extra or {}))


def collective_rows(rows):
    """`collectives` from (capture, host, device, kind, group, bytes, start ns, end ns[, op, step]) rows."""
    names = ("capture", "host", "device", "kind", "group", "bytes", "start_ns", "end_ns", "op", "step")
    full = [
        (*r[:6], EPOCH + r[6], EPOCH + r[7], r[8] if len(r) > 8 else "op.1", r[9] if len(r) > 9 else None) for r in rows
    ]
    return {"collectives": {n: [r[i] for r in full] for i, n in enumerate(names)}}
