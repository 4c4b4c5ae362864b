"""Numba with its cache on disk, and never a stale one.

Numba looks for a cached function by that function's own file; what it calls is compiled into it. A change of one file
would leave the others as they were, so the text of all of them is part of the key here.
"""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

_FILES = ("kernel", "pages", "scheduling", "state", "step")
_TEXT = b"".join((Path(__file__).parent / f"{name}.py").read_bytes() for name in _FILES)
VERSION = hashlib.sha256(_TEXT).hexdigest()


class _Cache(FunctionCache):
    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        return (*super()._index_key(sig, codegen), VERSION)


def _compiler(**options: bool) -> Callable[[Callable], Callable]:
    def decorate(function: Callable) -> Callable:
        dispatcher = njit(nogil=True, **options)(function)
        with contextlib.suppress(RuntimeError):  # no folder may be written: it is compiled in each process
            dispatcher._cache = _Cache(function)
        return dispatcher

    return decorate


allocating = _compiler()
"""Compiles a function when it is first called, without the interpreter's lock, and keeps the code on disk."""
compiled = _compiler(_nrt=False)
"""The same for functions that make no array: without reference counts, which cost more than small functions do."""
