"""A JAX function in a user's own file, for the command line only: the server never runs anyone's code.

The file defines the function and `arguments(mesh)`, which returns a tuple of what the function is called with: pytrees
of `jax.ShapeDtypeStruct`, with `sharding=` where they are sharded over the axes of `mesh`:

    def step(x, w):
        return jax.nn.relu(x @ w)

    def arguments(mesh):
        rows = NamedSharding(mesh, PartitionSpec("data", None))
        return jax.ShapeDtypeStruct((8192, 4096), jnp.bfloat16, sharding=rows), ...

A function that is already `jax.jit`-ed (to donate arguments, say) is taken as it is. Imported by the worker only.
"""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from errors import InputError

ARGUMENTS = "arguments"
LONGEST = 300


def trace(function: str, mesh: jax.sharding.Mesh) -> tuple[Any, dict[str, Any]]:
    """(the traced function, shapes of its arguments by name, in its own order).

    Raises InputError, with the line, where the user's code raises or breaks the contract above.
    """
    path, _, name = function.rpartition(":")
    file = Path(path)
    module = _guarded(file, f"{file.name} cannot be imported", lambda: _load(file))
    for wanted in (name, ARGUMENTS):
        if not callable(getattr(module, wanted, None)):
            raise InputError(
                f"defines no function {wanted}", where=file.name, expected=f"{name}(...) and {ARGUMENTS}(mesh)"
            )
    shapes = _guarded(file, f"{ARGUMENTS}(mesh) failed", lambda: getattr(module, ARGUMENTS)(mesh))
    leaves = jax.tree.leaves(shapes)
    if not isinstance(shapes, tuple | list) or not all(isinstance(s, jax.ShapeDtypeStruct) for s in leaves):
        raise InputError(
            f"{ARGUMENTS}(mesh) returned {type(shapes).__name__}",
            where=file.name,
            expected="a tuple of jax.ShapeDtypeStruct, or of pytrees of them",
        )
    step = getattr(module, name)
    jitted = step if hasattr(step, "trace") else jax.jit(step)
    traced = _guarded(file, f"{name} failed", lambda: jitted.trace(*shapes))
    return traced, dict(inspect.signature(step).bind(*shapes).arguments)


def _load(file: Path) -> ModuleType:
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None, "a file that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def _guarded(file: Path, what: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except InputError:
        raise
    except (Exception, SystemExit) as e:
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == str(file)]
        line = lines[-1] if lines else getattr(e, "lineno", None)
        said = " ".join(str(e).split())[:LONGEST]
        where = f"{file.name}, line {line}" if line else file.name
        raise InputError(f"{what} with {type(e).__name__}: {said}", where=where) from e
