"""Programs that were compiled and never run: what `chipledger compile` writes, and XLA's own dumps.

A `*.compiled.json` holds what was asked (model, mesh, topology), the compiler's answer, and each program with its
optimised HLO. A dump (`*.hlo.pb`, or HLO text) holds one program and nothing of what it was compiled for, so the axes
of its collectives have no names. Only what recognising a file needs is imported here.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source

NAME = "compiled"
TITLE = "compiled program"
HELP = (
    "Programs compiled and not run: what `chipledger compile` writes (`*.compiled.json`), and XLA's dumps of one "
    "program (`*.hlo.pb`, or HLO text where jaxlib is installed; of its stages in a folder the last): memory, "
    "collectives, layouts, estimated cycles."
)
_FORMAT = re.compile(rb'"format"\s*:\s*"chipledger\.compiled"')
_DUMPS = (".hlo.pb", ".hlo_proto.pb", ".hlo_module.pb", ".hlo.pb.gz", ".hlo_proto.pb.gz", ".hlo_module.pb.gz")


def sniff(source: Source) -> float:
    """1 for the format's own mark and for HLO text; 0.9 by name."""
    head = source.head
    if head.lstrip()[:1] == b"{":
        return 1.0 if _FORMAT.search(head) else 0.9 if source.name.endswith(".compiled.json") else 0.0
    if head.startswith(b"HloModule "):
        return 1.0
    return 0.9 if source.name.endswith(_DUMPS) and head[:1] == b"\x0a" else 0.0


def read(source: Source) -> Iterator[Item]:
    """The programs as rows, facts and blobs. Raises InputError for what is no such file or goes beyond the limits."""
    from collectors.device.compiled.items import items

    yield from items(source)
