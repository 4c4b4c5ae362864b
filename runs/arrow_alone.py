"""Arrow without pandas, in a process that needs none."""

import sys
from importlib.machinery import ModuleSpec


class _None:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return None


def arrow_alone() -> None:
    """Have pyarrow make arrays without pandas, until something asks for that.

    `pyarrow.array` looks whether its argument is a pandas object, and to know imports pandas: a fifth of a second. It
    looks once; here it is told then that there is none. What wants pandas from it later (`to_pandas`) imports it as
    ever. To be called where no pandas object is given to Arrow before that: it would be taken for a sequence.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _None)  # pyright: ignore[reportArgumentType]  # a class does as well as an object of it
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_None)  # pyright: ignore[reportArgumentType]
