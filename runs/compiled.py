"""The decorators of compiled kernels: the one door to them.

Numba takes a quarter of a second to load. A package for which `runs.kernels` says so goes without: set-up keeps the
code of its kernels in one file, and here it is called with nothing but LLVM's loader. What is called with other types
than set-up saw, or finds no such file that is of these sources, goes through Numba as ever, with the same results.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from runs.kernel_code import Call, Code, Made, forms_of, kept_code, results_of
from runs.kernels import KERNELS, Kernels

Decorator = Callable[[Callable[..., Any]], Any]  # a function, and what is called in its place
ROOT = Path(__file__).parents[1]
OPTIONS = (Path(__file__), Path(__file__).with_name("numba_cache.py"), Path(__file__).with_name("kernel_code.py"))


def compiler(package: str | None) -> Callable[..., Decorator]:
    """The decorators of a package that `runs.kernels` lists. Raises ValueError for one that it does not: its kernels
    would neither be compiled at set-up nor held to their files."""
    for kernels in KERNELS:
        if kernels.package == package:
            return _alone(kernels) if kernels.alone else _by_numba(kernels)
    raise ValueError(f"{package} is not listed in runs/kernels.py")


def keep_code(kernels: Kernels) -> None:
    """Keep the code of what was called in this process and had none. To be called where all kernels were run."""
    if not kernels.alone:
        return
    modules = [import_module(f"{kernels.package}.{name}") for name in kernels.files]
    called = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, Kernel)}
    made = [made for one in called.values() if (made := one.made()) is not None]
    if made:
        next(iter(called.values())).code.keep(made)


def folder_of(kernels: Kernels) -> Path:
    return ROOT.joinpath(*kernels.package.split("."))


def sources_of(kernels: Kernels) -> Sequence[Path]:
    """All files whose text the code of a package depends on."""
    return (*OPTIONS, *(folder_of(kernels) / f"{name}.py" for name in kernels.files))


def _by_numba(kernels: Kernels) -> Callable[..., Decorator]:
    from runs.numba_cache import calls, kept

    calls(Kernel)
    return kept(folder_of(kernels), kernels.files)


def _alone(kernels: Kernels) -> Callable[..., Decorator]:
    code = kept_code(folder_of(kernels), sources_of(kernels))

    def options(**given: bool) -> Decorator:
        return lambda function: Kernel(function, kernels, code, given)

    return options


class Kernel:
    """A function that is run as kept code where there is some for its arguments, else by Numba."""

    def __init__(self, function: Callable[..., Any], kernels: Kernels, code: Code, options: dict[str, bool]):
        self.py_func, self.kernels, self.code, self.options = function, kernels, code, options
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.asked: tuple[Any, ...] | None = None  # the arguments for which there was no code
        self._thread = threading.local()  # its `call`

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The same function as Numba calls it."""
        return _by_numba(self.kernels)(**self.options)(self.py_func)

    @property
    def called(self) -> bool:
        """Whether it was run in this thread, or in any by Numba."""
        return self.asked is not None or hasattr(self._thread, "call")

    def __call__(self, *given: Any) -> Any:
        if self.asked is None:
            call: Call | None = getattr(self._thread, "call", None)
            if call is not None and call.takes(given):
                return call.run()
            if (made := self.code.of(self.name, forms_of(given))) is not None:
                call = self._thread.call = Call(made, given)
                return call.run()
            self.asked = given
        return self.dispatcher(*given)

    def made(self) -> Made | None:
        """Code for what it was called with here and had none, as far as that needs nothing but itself."""
        from runs.numba_cache import code_alone

        if self.asked is None or not all(forms := forms_of(self.asked)):
            return None
        told = code_alone(self.py_func, self.options, self.asked)
        if told is None or (gives := results_of(told.result)) is None:
            return None
        return Made(self.name, forms, gives, told.symbol, told.code)

    def __getattr__(self, name: str) -> Any:
        """Whatever else Numba's own has."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)
