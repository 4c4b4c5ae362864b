"""`python deploy/image/without_numba.py`, by the image's own Python, takes Numba and LLVM out of its environment: they
compile kernels, and the image holds those compiled.

It runs every kernel with both out of reach first. Where one does not run so, as on processors that no library is made
for (`runs/kernel_library.py`), they stay, and why is said.
"""

import re
import shutil
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

COMPILERS = ("numba", "llvmlite")
KEPT_BY_NUMBA = ("*.nbc", "*.nbi")


def why_not() -> str:
    """Why kernels do not run without what compiles them; empty where they do."""
    for name in COMPILERS:
        sys.modules[name] = None  # type: ignore[assignment]  # what is imported as None is not found
    from app.kernels import warm
    from errors import ChipledgerError

    try:
        warm()
    except ChipledgerError as e:
        return str(e)
    return ""


def parts(one: Distribution) -> set[Path]:
    """The folders and files at the top of an environment that a distribution brought."""
    top = Path(str(one.locate_file("")))
    names = [file for file in one.files or () if file.parts]
    within = {top / file.parts[0] for file in names if file.parts[0] != ".."}
    return within | {Path(str(file.locate())) for file in names if file.parts[0] == ".."}


def weight(path: Path) -> int:
    below = [path] if path.is_file() else path.rglob("*")
    return sum(p.stat().st_size for p in below if p.is_file() and not p.is_symlink())


def taken(paths: set[Path]) -> int:
    """Bytes of what was there and is no more."""
    there = [path for path in paths if path.exists()]
    n_bytes = sum(map(weight, there))
    for path in there:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return n_bytes


def no_longer_asked_for(one: Distribution) -> None:
    """Take them from what a distribution says that it needs, or the next that is installed would bring them back."""
    (file,) = [f for f in one.files or () if f.match("*.dist-info/METADATA")]
    path = Path(str(file.locate()))
    asked = rf"^Requires-Dist: (?:{'|'.join(COMPILERS)})\b.*\n"
    path.write_text(re.sub(asked, "", path.read_text(), flags=re.MULTILINE))


def main() -> int:
    if why := why_not():
        print(f"Numba and LLVM stay, for a kernel does not run without them: {why}")
        return 0
    own = distribution("chipledger")
    top = Path(str(own.locate_file("")))
    kept = {path for pattern in KEPT_BY_NUMBA for path in top.rglob(pattern)}
    n_bytes = taken(kept.union(*(parts(distribution(name)) for name in COMPILERS)))
    no_longer_asked_for(own)
    print(f"{n_bytes / 1e6:8.1f} MB  of Numba and LLVM, without which every kernel runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
