"""`python deploy/image/slim.py VENV` takes out of an environment what no server runs, and says what each kind weighed.
Of compiled libraries it takes the names of what nobody calls from elsewhere, which only a debugger reads.

Each entry says why it is not needed. What a package needs to be imported is left; `chipledger doctor` and the tests of
the image say whether it is.
"""

import shutil
import struct
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Needless:
    """Files and folders below site-packages that match one of `patterns`."""

    why: str
    patterns: tuple[str, ...]


# of `plotly.graph_objs`, where each is imported when it is first asked for; none that a template styles
UNDRAWN = (
    "box",
    "choroplethmap",
    "cone",
    "densitymap",
    "funnel",
    "funnelarea",
    "image",
    "indicator",
    "isosurface",
    "ohlc",
    "parcats",
    "quiver",
    "scattersmith",
    "splom",
    "streamtube",
    "sunburst",
    "violin",
    "volume",
)

NEEDLESS = (
    Needless(why="tests of libraries", patterns=("**/tests", "**/_tests", "**/testing/tests")),
    Needless(
        why="headers, sources in C, static libraries and types, for who compiles or checks against them",
        patterns=(
            "pyarrow/include",
            "pyarrow/src",
            "numpy/_core/include",
            "**/*.a",
            "**/*.lib",
            "**/*.pxd",
            "**/*.pyx",
            "**/*.[ch]",
            "**/*.hpp",
            "**/*.pyi",
        ),
    ),
    Needless(
        why="extensions of notebooks",
        patterns=(
            "plotly/labextension",
            "plotly/package_data/widgetbundle.js",
            "../../../share/jupyter",
        ),
    ),
    Needless(
        why="further copies of Arrow's libraries, under names by which no other asks for them",
        patterns=("pyarrow/libarrow_python*.so", "pyarrow/libarrow_python*.so.*.*.*", "pyarrow/_pyarrow_cpp_tests*"),
    ),
    Needless(
        why="a service of Arrow that nothing here speaks (its other libraries are linked to one another)",
        patterns=(
            "pyarrow/libarrow_flight*",
            "pyarrow/libarrow_python_flight*",
            "pyarrow/_flight*",
        ),
    ),
    Needless(
        why="file systems and formats of Arrow's own (stores in a bucket are read by fsspec)",
        patterns=("pyarrow/libarrow_s3*", *(f"pyarrow/_{n}.*" for n in ("s3fs", "gcsfs", "azurefs", "hdfs", "orc"))),
    ),
    Needless(
        why="what draws what no page has: maps, graphs, diagrams, charts other than Plotly's",
        patterns=(
            "altair",
            "pydeck",
            *(
                f"streamlit/static/static/js/{name}.*.js"
                for name in (
                    "DeckGlJsonChart",
                    "EChartsChart",
                    "GraphVizChart",
                    "embed",
                    "cytoscape.esm",
                    "elk-*",
                    "*Diagram-*",
                )
            ),
        ),
    ),
    Needless(
        why="kinds of charts that none is drawn as",
        patterns=tuple(
            f"plotly/graph_objs/{form}{kind}{end}" for kind in UNDRAWN for form, end in (("", ""), ("_", ".py"))
        ),
    ),
    Needless(
        why="kinds of pictures that none is, and text in pictures",
        patterns=(
            *(f"PIL/{name}.*" for name in ("_avif", "_webp", "_imagingft", "_imagingcms", "_imagingtk")),
            *(
                f"pillow.libs/lib{name}*"
                for name in ("avif", "webp", "sharpyuv", "freetype", "harfbuzz", "brotli", "png", "lcms")
            ),
        ),
    ),
    Needless(
        why="parts of libraries that nothing here calls",
        patterns=(
            *(f"scipy/{name}" for name in ("cluster", "datasets", "io", "odr")),
            "scipy/ndimage/_cytest.*",
            "scipy/special/_test_internal.*",
            "numpy/distutils",
            "numpy/_core/_simd.*",
            "numpy/_core/_*_tests.*",
            "numba/cuda",
            "numba/np/ufunc/omppool.*",
            "numba/np/ufunc/tbbpool.*",
            "duckdb/experimental",
            "streamlit/.agents",
            "streamlit/hello",
        ),
    ),
    Needless(why="data sets for examples", patterns=("plotly/package_data/datasets",)),
    Needless(
        why="what installs packages: the image is made anew instead",
        patterns=(
            "pip",
            "pip-*.dist-info",
            "setuptools",
            "setuptools-*.dist-info",
            "pkg_resources",
            "_distutils_hack",
            "distutils-*.pth",
        ),
    ),
    Needless(why="maps from compiled scripts to their sources", patterns=("**/*.js.map", "**/*.css.map")),
)


def matches(packages: Path, what: Needless) -> list[Path]:
    """What is there, without what lies within another match."""
    found = sorted({p for pattern in what.patterns for p in packages.glob(pattern)})
    return [p for p in found if not any(q in found for q in p.parents)]


def weight(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    below = [path] if path.is_file() else path.rglob("*")
    return sum(p.stat().st_size for p in below if p.is_file() and not p.is_symlink())


_ELF64 = b"\x7fELF\x02\x01"
_PROGRAM_HEADERS, _SECTIONS = 32, 40  # where a library says that they begin, as 8 bytes
_COUNTS = 54  # and how large and how many they are


def without_names(path: Path) -> int:
    """Cut off a library what lies behind all that is ever loaded: tables of sections and of names, for debuggers and
    linkers. Returns the bytes that it took; 0 for what is no library of 64 bits."""
    with path.open("r+b") as file:
        head = file.read(64)
        if len(head) < 64 or not head.startswith(_ELF64):
            return 0
        (at,) = struct.unpack_from("<Q", head, _PROGRAM_HEADERS)
        size, count = struct.unpack_from("<HH", head, _COUNTS)
        file.seek(at)
        table = file.read(size * count)
        parts = (struct.unpack_from("<8xQ16xQ", table, size * n) for n in range(count))
        end = max((offset + length for offset, length in parts), default=0)
        taken = file.seek(0, 2) - max(end, at + size * count)
        if not end or taken <= 0:
            return 0
        file.seek(_SECTIONS)
        file.write(bytes(8))
        file.seek(_COUNTS + 4)
        file.write(bytes(6))
        file.truncate(max(end, at + size * count))
        return taken


def slim(packages: Path) -> dict[str, int]:
    """Take it out; bytes by why."""
    taken = {}
    for what in NEEDLESS:
        paths = matches(packages, what)
        taken[what.why] = sum(map(weight, paths))
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    libraries = (p for p in packages.rglob("*.so*") if p.is_file() and not p.is_symlink())
    return taken | {"names in libraries, for debuggers": sum(map(without_names, libraries))}


def main(environment: str) -> int:
    found = sorted(Path(environment).glob("lib/python3*/site-packages"))
    if len(found) != 1:
        print(f"error: {environment}: no environment; expected one lib/python3*/site-packages", file=sys.stderr)
        return 2
    for why, n_bytes in slim(found[0]).items():
        print(f"{n_bytes / 1e6:8.1f} MB  {why}")
    print(f"{weight(found[0]) / 1e6:8.1f} MB  are left")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
