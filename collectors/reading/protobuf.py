"""Small protobuf message types from a literal, for the few messages that are read whole.

Text fields are declared as bytes: a library that refuses a whole message over one bad letter helps nobody, so the
caller decodes names itself, replacing what is not UTF-8.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _FIELD.TYPE_DOUBLE,
    "float": _FIELD.TYPE_FLOAT,
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
    "int32": _FIELD.TYPE_INT32,
    "bool": _FIELD.TYPE_BOOL,
    "bytes": _FIELD.TYPE_BYTES,
    "enum": _FIELD.TYPE_INT32,
}
_MESSAGE, _ONE, _MANY = _FIELD.TYPE_MESSAGE, _FIELD.LABEL_OPTIONAL, _FIELD.LABEL_REPEATED


def message_types(package: str, spec: str) -> dict[str, type]:
    """Message classes by name from lines such as `XStat: int64 metadata_id=1, XStat* stats=4`.

    `*` marks a repeated field and `?` one whose presence can be asked (`HasField`); any type that is not a scalar
    is another message of the same literal. Fields that are not named are skipped by the parser.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for line in filter(None, (raw.strip() for raw in spec.splitlines())):
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for field in filter(None, (f.strip() for f in fields.split(","))):
            kind, rest = field.split()
            field_name, number = rest.split("=")
            entry = message.field.add(name=field_name, number=int(number), label=_MANY if kind.endswith("*") else _ONE)
            if kind.endswith("?"):
                entry.proto3_optional = True
                entry.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field_name}")
            kind = kind.rstrip("*?")
            if kind in _SCALARS:
                entry.type = _SCALARS[kind]
            else:
                entry.type, entry.type_name = _MESSAGE, f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{m.name}"))
        for m in file.message_type
    }
