"""Numba with its cache on disk, and never a stale one.

Numba looks for a cached function by that function's own file; what it calls is compiled into it. A change of one file
would leave the others as they were, so the text of all files of a folder that are compiled is part of the key here.
"""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

Decorator = Callable[[Callable], Callable]


def compiler(folder: Path, files: Sequence[str]) -> Callable[..., Decorator]:
    """Makes decorators that compile a function when it is first called, without the interpreter's lock, and keep the
    code on disk until one of `files` (names without .py) of `folder` changes. Takes numba's own options.
    """
    version = hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in files)).hexdigest()

    class Cache(FunctionCache):
        def _index_key(self, sig: Any, codegen: Any) -> tuple:
            return (*super()._index_key(sig, codegen), version)

    def options(**given: bool) -> Decorator:
        def decorate(function: Callable) -> Callable:
            dispatcher = njit(nogil=True, **given)(function)
            with contextlib.suppress(RuntimeError):  # no folder may be written: it is compiled in each process
                dispatcher._cache = Cache(function)
            return dispatcher

        return decorate

    return options
