"""Modules that a library looks for, and that are not worth their time here."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec


class _Absent:
    """Finds none of these modules for this thread."""

    def __init__(self, names: tuple[str, ...]):
        self._names, self._thread = names, threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"no module {name} is wanted here", name=name)
        return None


@contextmanager
def absent(*names: str) -> Generator[None]:
    """Within it what imports one of these modules is told that there is none, unless it was imported before. Other
    threads find them as ever."""
    finder = _Absent(names)
    sys.meta_path.insert(0, finder)  # pyright: ignore[reportArgumentType]  # all that is asked of a finder is here
    try:
        yield
    finally:
        sys.meta_path.remove(finder)  # pyright: ignore[reportArgumentType]


def arrow_alone() -> None:
    """Have pyarrow make arrays without pandas, until something asks for that.

    `pyarrow.array` looks whether its argument is a pandas object, and to know imports pandas: a fifth of a second. It
    looks once; here it is told then that there is none. What wants pandas from it later (`to_pandas`) imports it as
    ever. To be called where no pandas object is given to Arrow before that: it would be taken for a sequence.
    """
    if "pandas" not in sys.modules:
        import pyarrow as pa

        with absent("pandas"):
            pa.array([0])
