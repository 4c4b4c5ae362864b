"""The decorators of compiled kernels: the one door to them.

Numba and LLVM are there to compile, never to run. What a kernel is called with says which code it needs; that is kept
beside its sources (`kernel_code.py`) and loaded by the system alone, so that a server needs neither of them. Where none
is kept that is of these sources, it is compiled and kept. What cannot be (arguments of a kind that no word is, another
system than Linux on x86-64, a folder that nothing can be written to, a debugger's settings) goes through Numba as ever,
with the same results.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from errors import ChipledgerError
from runs.kernel_code import Call, Code, Forms, Loaded, copied, forms_of, lacking, names
from runs.kernels import KERNELS, Kernels

Decorator = Callable[[Callable[..., Any]], Any]  # a function, and what is called in its place
ROOT = Path(__file__).parents[1]
OPTIONS = tuple(
    Path(__file__).with_name(f"{name}.py") for name in ("compiled", "numba_cache", "kernel_code", "kernel_library")
)


def compiler(package: str | None) -> Callable[..., Decorator]:
    """The decorators of a package that `runs.kernels` lists. Raises ValueError for one that it does not: its kernels
    would neither be compiled at set-up nor held to their files."""
    listed = [one for one in KERNELS if one.package == package]
    if not listed:
        raise ValueError(f"{package} is not listed in runs/kernels.py")
    code = code_of(listed[0])

    def options(**given: Any) -> Decorator:
        return lambda function: Kernel(function, listed[0], code, given)

    return options


def code_of(kernels: Kernels) -> Code:
    return Code(folder_of(kernels), sources_of(kernels))


def folder_of(kernels: Kernels) -> Path:
    return ROOT.joinpath(*kernels.package.split("."))


def sources_of(kernels: Kernels) -> Sequence[Path]:
    """All files whose text the code of a package depends on."""
    return (*OPTIONS, *(folder_of(kernels) / f"{name}.py" for name in kernels.files))


class Kernel:
    """A function that is run as kept code for the arguments that it is given. It makes no arrays: who calls it does."""

    def __init__(self, function: Callable[..., Any], kernels: Kernels, code: Code, options: dict[str, Any]):
        self.py_func, self.kernels, self.code, self.options = function, kernels, code, {"_nrt": False} | options
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.forms = set[Forms]()  # of what it was called with
        self._by_numba = set[Forms]()  # those for which no code can be kept
        self._compiling = threading.Lock()
        self._thread = threading.local()  # its `call`

    @functools.cached_property
    def part(self) -> Any:
        """The function as other kernels call it, and as it is kept: without what Python calls."""
        from runs.numba_cache import part

        return part(self.py_func, self.options)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The function as Numba alone calls and keeps it."""
        from runs.numba_cache import calls, kept

        calls(Kernel)
        return kept(folder_of(self.kernels), self.kernels.files)(**self.options)(self.py_func)

    def __call__(self, *given: Any) -> Any:
        call: Call | None = getattr(self._thread, "call", None)
        if call is not None and call.takes(given):
            return call.run()
        forms = forms_of(given)
        self.forms.add(forms)
        loaded = self.code.of(self.name, forms) or self._compiled(forms, given)
        if loaded is None:
            plain = copied(given)
            if (loaded := self.code.of(self.name, forms_of(plain))) is None:
                return self._numba(forms)(*given)
            return Call(loaded, plain).run()
        call = self._thread.call = Call(loaded, given)
        return call.run()

    def _compiled(self, forms: Forms, given: tuple[Any, ...]) -> Loaded | None:
        if forms in self._by_numba:
            return None
        with self._compiling:
            if (loaded := self.code.of(self.name, forms)) is not None:
                return loaded
            if all(forms) and self.code.takes():
                loaded = self._keep(forms, given)
            if loaded is None:
                self._by_numba.add(forms)
            return loaded

    def _keep(self, forms: Forms, given: tuple[Any, ...]) -> Loaded | None:
        try:
            from runs.numba_cache import calls, code_alone
        except ImportError:  # it is not installed
            return None
        calls(Kernel)
        told = code_alone(self.part, given)
        return self.code.keep(self.name, forms, told.code, told.symbol, told.gives) if told else None

    def _numba(self, forms: Forms) -> Any:
        try:
            return self.dispatcher
        except ImportError as e:
            raise _no_code(self.name, forms) from e

    def __getattr__(self, name: str) -> Any:
        """Whatever else Numba's own has."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def _no_code(kernel: str, forms: Forms) -> ChipledgerError:
    if (less := lacking()) is not None:
        what = f"the compiled code is for {less.level}, of which this processor lacks {', '.join(less.parts)}"
        return ChipledgerError(what, advice="Build the image with --build-arg CPU=generic.")
    what = f"no code is kept for its arguments ({names(forms)}), and Numba is not installed to compile it"
    return ChipledgerError(what, where=kernel, advice="`pip install numba` brings it.")
