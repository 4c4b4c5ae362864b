"""HLO text, as compilers dump it, made a module again by jaxlib, which holds XLA's own parser.

The parser is C++ that trusts its input, so it runs in a process of its own, with limits of time and memory.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from collectors.device.hlo.module import as_hlo_proto
from errors import InputError

SECONDS = 120
_MEMORY_BYTES = 8 << 30
_NO_JAXLIB = 7
_PARSE = f"""
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES}, {_MEMORY_BYTES}))
except (ImportError, ValueError, OSError):
    pass
try:
    try:
        from jaxlib._hlo import hlo_module_from_text
    except ImportError:
        from jax._src.lib import xla_client
        hlo_module_from_text = xla_client._xla.hlo_module_from_text
except (ImportError, AttributeError):
    sys.exit({_NO_JAXLIB})
with open(sys.argv[1], "rb") as f:
    text = f.read().decode("utf-8", "replace")
with open(sys.argv[2], "wb") as f:
    f.write(hlo_module_from_text(text).as_serialized_hlo_module_proto())
"""


def hlo_proto_of_text(text: bytes, where: str) -> bytes:
    """The serialised HloProto of a module printed as text.

    Raises InputError where the text is none, where reading it takes too long, and where jaxlib is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="chipledger-") as folder:
        given, made = Path(folder) / "module.txt", Path(folder) / "module.pb"
        given.write_bytes(text)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PARSE, str(given), str(made)], capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"the HLO text took more than {SECONDS} s to parse",
                where=where,
                advice="Dump the module as a proto (--xla_dump_hlo_as_proto) and add the .hlo.pb instead.",
            ) from None
        if done.returncode == _NO_JAXLIB:
            raise InputError(
                "HLO text can only be read where jaxlib is installed",
                where=where,
                advice="Install jax, or dump the module as a proto (--xla_dump_hlo_as_proto) and add the .hlo.pb.",
            )
        if done.returncode or not made.exists():
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise InputError(
                f"not HLO text that XLA can parse ({' '.join(lines[-1:])[:300] or 'the parser gave up'})",
                where=where,
                expected="a module that begins with `HloModule`",
            )
        module = made.read_bytes()
    return as_hlo_proto(module)
