"""`python deploy/image/compiled.py`, by the image's own Python, compiles what a server loads: all of Chipledger, and of
its libraries what its code imports, with all that this imports. The rest stays as sources alone: compiled it would be
as large once more, and whoever should need a module of it waits for some milliseconds.
"""

import ast
import compileall
import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path

# what serves pages loads its parts when the first page is asked for
SERVES = ("anyio", "h11", "narwhals", "plotly.io", "starlette", "streamlit", "uvicorn", "websockets")


def own(distribution: str = "chipledger") -> list[Path]:
    """The modules of an installed distribution."""
    return [Path(str(file.locate())) for file in files(distribution) or () if file.suffix == ".py"]


def named(source: str) -> Iterator[str]:
    """What a module's text imports, wherever that stands in it; a name from a module may be a module too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def load(names: set[str]) -> int:
    """Import each, by which Python keeps it compiled; how many there are."""
    there = 0
    for name in sorted(names):
        with contextlib.suppress(Exception):  # no module, or one that lacks something here: it stays as sources
            import_module(name)
            there += 1
    return there


def compile_all(package: str) -> None:
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=2)


def main() -> int:
    modules = own()
    if not modules:
        print("error: Chipledger is not installed; expected its wheel in this environment", file=sys.stderr)
        return 2
    compiled = all([compileall.compile_file(path, quiet=1) for path in modules])
    there = load({name for path in modules for name in named(path.read_text())})
    for package in SERVES:
        compile_all(package)
    print(f"{len(modules)} modules and what they import ({there} names, {len(sys.modules)} modules) are compiled")
    return 0 if compiled else 1


if __name__ == "__main__":
    sys.exit(main())
