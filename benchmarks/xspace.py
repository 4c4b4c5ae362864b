"""XSpace for protobuf's C runtime, from a descriptor built here: no package ships one without TensorFlow."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_INT64, _UINT64, _DOUBLE, _BYTES, _MESSAGE = 3, 4, 1, 12, 11
_MESSAGES: dict[str, list[tuple]] = {
    "XSpace": [("planes", 1, "XPlane*")],
    "XPlane": [
        ("id", 1, _INT64),
        ("name", 2, _BYTES),
        ("lines", 3, "XLine*"),
        ("event_metadata", 4, "EventEntry*"),
        ("stat_metadata", 5, "StatEntry*"),
        ("stats", 6, "XStat*"),
    ],
    "XLine": [
        ("id", 1, _INT64),
        ("name", 2, _BYTES),
        ("timestamp_ns", 3, _INT64),
        ("events", 4, "XEvent*"),
        ("duration_ps", 9, _INT64),
    ],
    "XEvent": [
        ("metadata_id", 1, _INT64),
        ("offset_ps", 2, _INT64),
        ("duration_ps", 3, _INT64),
        ("stats", 4, "XStat*"),
    ],
    "XStat": [
        ("metadata_id", 1, _INT64),
        ("double_value", 2, _DOUBLE),
        ("uint64_value", 3, _UINT64),
        ("int64_value", 4, _INT64),
        ("str_value", 5, _BYTES),
        ("bytes_value", 6, _BYTES),
        ("ref_value", 7, _UINT64),
    ],
    "EventEntry": [("key", 1, _INT64), ("value", 2, "XEventMetadata")],
    "XEventMetadata": [
        ("id", 1, _INT64),
        ("name", 2, _BYTES),
        ("metadata", 3, _BYTES),
        ("display_name", 4, _BYTES),
        ("stats", 5, "XStat*"),
    ],
    "StatEntry": [("key", 1, _INT64), ("value", 2, "XStatMetadata")],
    "XStatMetadata": [("id", 1, _INT64), ("name", 2, _BYTES)],
}


def _build() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="xspace.proto", package="benchmarks", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "XStat":
            message.oneof_decl.add(name="value")
        for field_name, number, kind in fields:
            field = message.field.add(name=field_name, number=number, label=1)
            if name == "XStat" and field_name != "metadata_id":
                field.oneof_index = 0  # a value of 0 is written again, else the first device would be lost
            if isinstance(kind, int):
                field.type = kind
            else:
                field.type, field.type_name = _MESSAGE, ".benchmarks." + kind.rstrip("*")
                field.label = 3 if kind.endswith("*") else 1
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("benchmarks.XSpace"))


XSpace = _build()
