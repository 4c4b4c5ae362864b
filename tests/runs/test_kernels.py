"""The registry of compiled kernels names all there are, every file that they are built from, and what runs them."""

import ast
import importlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from runs.compiled import Kernel, compiler, sources_of
from runs.kernels import KERNELS

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "collectors", "analyzers", "simulators", "runs", "catalog", "errors")


@cache
def tree(path):
    return ast.parse(path.read_text())


@cache
def file_of(module):
    """The project's file of a module's name; None where it is no module of the project."""
    path = ROOT.joinpath(*module.split("."))
    found = [f for f in (path.with_suffix(".py"), path / "__init__.py") if f.exists()]
    return found[0] if found and module.split(".")[0] in PACKAGES else None


def bound(statement):
    """The names that a statement at the top of a file binds."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return {n.id for t in targets if t is not None for n in ast.walk(t) if isinstance(n, ast.Name)}


@cache
def imports(path):
    """Name in `path` -> (file of the project that it comes from, name there; None for a whole module)."""
    found = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for a in node.names:
                if module := file_of(f"{node.module}.{a.name}"):
                    found[a.asname or a.name] = (module, None)
                elif module := file_of(node.module):
                    found[a.asname or a.name] = (module, a.name)
    return found


@cache
def used(path):
    """By each name that the file binds at its top: (names, (name, attribute) pairs) that its statements are made of."""
    found = {}
    for statement in tree(path).body:
        nodes = list(compiled_parts(statement)) if (names := bound(statement)) else []
        for name in names:
            plain, parts = found.setdefault(name, (set(), set()))
            plain |= {n.id for n in nodes if isinstance(n, ast.Name)}
            parts |= {
                (n.value.id, n.attr) for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            }
    return found


def sources(path, name, seen):
    """Adds (file, name) of all that the value of `name` in `path` is made from, through constants, types, functions and
    modules, to `seen`."""
    if (path, name) in seen:
        return seen
    seen.add((path, name))
    taken = imports(path)
    if name in taken:
        file, there = taken[name]
        return sources(file, there, seen) if there else seen
    names, parts = used(path).get(name, ((), ()))
    for other in names:
        sources(path, other, seen)
    for module, attribute in parts:
        file, there = taken.get(module, (None, ""))
        if there is None:
            sources(file, attribute, seen)
    return seen


def compiled_parts(statement):
    """Nodes of a statement, without what its names are annotated with, and of a class without its methods: no kernel
    calls these. An argument's type is compiled in."""
    for field, value in ast.iter_fields(statement):
        if isinstance(statement, ast.AnnAssign) and field == "annotation":
            continue
        for node in value if isinstance(value, list) else [value]:
            method = isinstance(statement, ast.ClassDef) and isinstance(node, ast.FunctionDef)
            if isinstance(node, ast.AST) and not method:
                yield node
                yield from compiled_parts(node)


def kernels(module):
    found = (k for k in vars(module).values() if isinstance(k, Kernel))
    return [k for k in found if k.__module__ == module.__name__]


def modules_with_kernels():
    """Every module with a function whose decorator comes, through whatever files, from numba's one door."""
    door, found = ROOT / "runs" / "compiled.py", set()
    for path in (p for package in PACKAGES for p in (ROOT / package).rglob("*.py") if "\n@" in p.read_text()):
        for function in (s for s in tree(path).body if isinstance(s, ast.FunctionDef)):
            names = {n.id for d in function.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
            if any(file == door for name in names for file, _ in sources(path, name, set())):
                found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


def test_set_up_looks_at_every_package_with_kernels():
    asked = ["make", "--no-print-directory", "-f", "Makefile", "-f", "-", "told"]
    told = "told:\n\t@echo $(COMPILED)\n"
    files = subprocess.run(asked, cwd=ROOT, input=told, capture_output=True, text=True, check=True).stdout.split()
    folders = {p.parent for p in map(Path, files)}
    assert folders == {Path(k.package.replace(".", "/")) for k in KERNELS} | {Path("runs")}


def test_nobody_goes_round_the_cache_that_is_never_stale():
    using = {p for package in PACKAGES for p in (ROOT / package).rglob("*.py") if "njit" in p.read_text()}
    assert using == {ROOT / "runs" / "numba_cache.py"}


def test_every_module_with_kernels_is_listed():
    listed = {name for name in listed_modules() if kernels(importlib.import_module(name))}
    assert listed == modules_with_kernels()


def listed_modules():
    return [f"{k.package}.{name}" for k in KERNELS for name in k.files]


@pytest.mark.parametrize("name", listed_modules())
def test_the_key_of_a_kernel_holds_every_file_that_it_is_built_from(name):
    module = importlib.import_module(name)
    path = Path(module.__file__)
    for kernel in kernels(module):
        seen = sources(path, kernel.py_func.__name__, set())
        files = {file for file, _ in seen if file.parts[len(ROOT.parts)] != "runs"}
        files |= {ROOT / "runs" / "numba_cache.py"}  # which sets options of compilation
        assert len(files) > 1 and path in files
        assert files <= set(kernel._cache.built_from), kernel
        assert files <= set(sources_of(kernel.kernels)), kernel


def test_a_package_that_is_not_listed_compiles_nothing():
    with pytest.raises(ValueError, match="not listed"):
        compiler("simulators.nowhere")


WARMED = """
import importlib
import json
from app.kernels import warm
from tests.runs.test_kernels import called, kernels, listed_modules

warm()
every = [k for name in listed_modules() for k in kernels(importlib.import_module(name))]
there = [k for k in every if k.forms]
for kernel in there:  # what a kernel calls is compiled with it, or kept within its code
    there += [k for k in called(kernel) if k not in there]
print(json.dumps([k.__qualname__ for k in every if k not in there]))
"""


def called(kernel):
    """The kernels that a kernel calls by their names, or as parts of a module."""
    names, known = set(kernel.py_func.__code__.co_names), kernel.py_func.__globals__
    values = [known[name] for name in names & known.keys()]
    values += [vars(m)[name] for m in values if isinstance(m, ModuleType) for name in names & vars(m).keys()]
    return [v for v in values if isinstance(v, Kernel)]


def test_set_up_compiles_every_kernel():
    """A process of its own: in this one other tests have compiled some."""
    run = subprocess.run(
        [sys.executable, "-c", WARMED], cwd=ROOT, capture_output=True, text=True, timeout=540, check=True
    )
    assert json.loads(run.stdout) == []
