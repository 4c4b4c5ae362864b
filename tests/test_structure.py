"""No module imports itself, through whatever others: neither when it is loaded, nor for its types, nor late."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("errors", "runs", "catalog", "collectors", "analyzers", "simulators", "app", "reference", "benchmarks")
LATE_BUT_MEANT: dict[frozenset[str], str] = {}
"""Circles of which a link is an import inside a function, with the reason why each must stay. There are none."""


@cache
def modules() -> dict[str, Path]:
    """Every module of the project by name."""
    paths = (p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
    return {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in paths}


def imports(source: str, module: str, package: str, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(module of the project, when) of each import in `source`: `loaded`, for `types` alone, or `late`."""

    def walk(node: ast.AST, when: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            inside = when
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inside = "late"
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                inside = "types"
            elif isinstance(child, ast.Import):
                yield from ((a.name, when) for a in child.names)
            elif isinstance(child, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - child.level + 1] if child.level else []
                base = ".".join([*above, *filter(None, [child.module])])
                for a in child.names:
                    yield (f"{base}.{a.name}" if f"{base}.{a.name}" in known else base, when)
            yield from walk(child, inside)

    yield from ((name, when) for name, when in walk(ast.parse(source), "loaded") if name in known and name != module)


@cache
def graph() -> dict[str, frozenset[tuple[str, str]]]:
    known = modules()
    return {
        name: frozenset(
            imports(path.read_text(), name, name if path.name == "__init__.py" else name.rpartition(".")[0], known)
        )
        for name, path in known.items()
    }


def circles(links: Mapping[str, Iterable[str]]) -> set[frozenset[str]]:
    """The groups in which each reaches each other (Tarjan, with a stack of its own)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found = set()
    for root in links:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_.append(root)
        walk = [(root, iter(links[root]))]
        while walk:
            at, rest = walk[-1]
            for to in rest:
                if to not in number:
                    number[to] = low[to] = len(number)
                    open_.append(to)
                    walk.append((to, iter(links[to])))
                    break
                if to in open_:
                    low[at] = min(low[at], number[to])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[at])
                if low[at] == number[at]:
                    cut = open_.index(at)
                    group, open_[cut:] = frozenset(open_[cut:]), []
                    if len(group) > 1:
                        found.add(group)
    return found


def among(*when: str) -> dict[str, set[str]]:
    return {name: {to for to, how in links if how in when} for name, links in graph().items()}


def shown(found: Iterable[frozenset[str]]) -> list[list[str]]:
    return sorted(sorted(group) for group in found)


def test_no_module_needs_itself_to_be_loaded():
    """Python runs the packages above a module first, so these count as imported too."""
    links = among("loaded")
    for name, to in links.items():
        above = {".".join(t.split(".")[:i]) for t in to for i in range(1, t.count(".") + 1)}
        to |= {a for a in above if a in links and not f"{name}.".startswith(f"{a}.")}
    assert shown(circles(links)) == []


def test_no_module_needs_its_own_type():
    assert shown(circles(among("loaded", "types"))) == []


def test_late_imports_hide_no_circle_but_those_with_a_reason():
    assert shown(circles(among("loaded", "types", "late"))) == shown(LATE_BUT_MEANT)


MADE = {
    "a": "from app import b",
    "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from app import c",
    "c": "def f():\n    from . import a\n",
    "d": "import app.a",
}


@pytest.mark.parametrize(
    ("when", "found"), [(("loaded",), []), (("loaded", "types"), []), (("loaded", "types", "late"), [["a", "b", "c"]])]
)
def test_a_circle_is_found_however_its_links_are_hidden(when, found):
    known = {f"app.{name}" for name in MADE}
    links = {
        f"app.{name}": {to for to, how in imports(source, f"app.{name}", "app", known) if how in when}
        for name, source in MADE.items()
    }
    assert shown(circles(links)) == [[f"app.{name}" for name in group] for group in found]
    assert links["app.d"] == {"app.a"}
