"""XLA's dumps of one program at several stages and in two forms, as text and as a proto: of each program the last stage
is read, or it would count several times."""

import re
from pathlib import PurePath

_DUMP = re.compile(r"(.*?module_\d+(?:\.[^.]+)?)\.(.+?)((?:\.hlo|\.hlo_proto|\.hlo_module)\.pb|\.hlo|\.txt)(?:\.gz)?$")
_FINAL, _FIRST = "after_optimizations", "before_optimizations"
_STAGE = "an earlier stage of a program, left out: a later one lies beside it"
_FORM = "a program as text, left out: its proto lies beside it"

Program = tuple[str, str]  # folder, and the number and name of the module
Rank = tuple[bool, bool, str, bool]


def program_of(name: str) -> Program | None:
    """Which program a file is a dump of, as XLA names them: `module_0006.jit_step.gpu_after_optimizations.hlo.pb`; None
    for other files."""
    path = PurePath(name)
    found = _DUMP.match(path.name)
    return (str(path.parent), found[1]) if found else None


def rank(name: str) -> Rank:
    """The higher, the nearer to the program as it runs; of one stage a proto, which tells of its buffers as well."""
    found = _DUMP.match(PurePath(name).name)
    stage, form = (found[2], found[3]) if found else ("", "")
    return stage.endswith(_FINAL), not stage.endswith(_FIRST), stage, form.endswith(".pb")


def reason(name: str, better: str) -> str:
    """Why a dump is left out beside a better one of the same program."""
    return _FORM if rank(name)[:3] == rank(better)[:3] else _STAGE
