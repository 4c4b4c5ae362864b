# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numba states no types of what a cache is made of
"""Numba with its cache on disk, and never a stale one.

Numba looks for a cached function by that function's own file; what it calls, and the constants it takes from
elsewhere, are compiled into it. A change of one file would leave the others as they were, so the text of all files that
a kernel is built from is part of the key here.

Numba numbers its files of code, so that two processes that compile at once may give one number to two kernels, and it
runs what lies there. Here a file is named after its key and holds it, with a checksum: what was damaged, cut off or is
of something else is compiled anew.
"""

import contextlib
import hashlib
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, InTreeCacheLocator

from runs.kernels import KERNELS

Decorator = Callable[[Callable[..., Any]], Any]  # a function, and what numba makes of it
_DIGEST_BYTES = 32
_ROOT = Path(__file__).parents[1]


class CodeFiles(IndexDataCacheFile):
    """The compiled code of one function, a file for each key: the digest of what follows, then key and code."""

    def save(self, key: Any, data: Any) -> None:
        body = self._dump((self._whole(key), data))
        with self._open_for_write(self._path(key)) as f:
            f.write(hashlib.sha256(body).digest() + body)

    def load(self, key: Any) -> Any:
        """The code; None where there is none of this key that is whole."""
        try:
            raw = Path(self._path(key)).read_bytes()
        except OSError:
            return None
        body = raw[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() != raw[:_DIGEST_BYTES]:
            return None
        there, data = pickle.loads(body)
        return data if there == self._whole(key) else None

    def _whole(self, key: Any) -> tuple[Any, ...]:
        return numba.__version__, self._source_stamp, key

    def _path(self, key: Any) -> str:
        number = int.from_bytes(hashlib.sha256(repr(self._whole(key)).encode()).digest()[:6])
        return self._data_path(self._data_name(number))


class BesideSource(InTreeCacheLocator):
    """Beside the source, also where nothing can be written: code that was put there, such as into an image whose files
    cannot be changed, is read. Numba alone would pass it over."""

    def ensure_cache_path(self) -> None:
        try:
            super().ensure_cache_path()
        except OSError:
            if not any(Path(self.get_cache_path()).glob("*.nbc")):
                raise


class _Where(CompileResultCacheImpl):
    _locator_classes = [
        BesideSource if known is InTreeCacheLocator else known for known in CompileResultCacheImpl._locator_classes
    ]


def compiler(package: str | None) -> Callable[..., Decorator]:
    """The decorators of a package that `runs.kernels` lists. Raises ValueError for one that it does not: its kernels
    would neither be compiled at set-up nor held to their files."""
    for kernels in KERNELS:
        if kernels.package == package:
            return kept(_ROOT.joinpath(*kernels.package.split(".")), kernels.files)
    raise ValueError(f"{package} is not listed in runs/kernels.py")


def kept(folder: Path, files: Sequence[str]) -> Callable[..., Decorator]:
    """Makes decorators that compile a function when it is first called, without the interpreter's lock, and keep the
    code on disk until one of `files` (names without .py) of `folder` changes. Takes numba's own options.
    """
    paths = (Path(__file__), *(folder / f"{name}.py" for name in files))  # this one sets options of compilation
    version = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()

    class Cache(FunctionCache):
        built_from = paths
        _impl_class = _Where

        def __init__(self, function: Callable[..., Any]):
            super().__init__(function)
            self._cache_file = CodeFiles(
                self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
            )

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (*super()._index_key(sig, codegen), version)

        def save_overload(self, sig: Any, data: Any) -> None:
            with contextlib.suppress(OSError):  # a disk that is full: this process has its code
                super().save_overload(sig, data)

    make: Any = njit  # whose options are of many types

    def options(**given: bool) -> Decorator:
        def decorate(function: Callable[..., Any]) -> Any:
            dispatcher = make(nogil=True, **given)(function)
            with contextlib.suppress(RuntimeError):  # no folder may be written: it is compiled in each process
                dispatcher._cache = Cache(function)
            return dispatcher

        return decorate

    return options
