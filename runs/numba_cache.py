# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
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
import functools
import hashlib
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding as llvm
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, InTreeCacheLocator
from numba.core.registry import cpu_target
from numba.extending import typeof_impl

from runs.kernel_code import WORDS

Decorator = Callable[[Callable[..., Any]], Any]  # a function, and what numba makes of it
_DIGEST_BYTES = 32
_ENTRY = ".words"


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


@functools.cache
def calls(kind: type) -> None:
    """Kernels may call objects of this kind: each has the `part` of the function that it stands for."""

    def type_of(value: Any, context: Any) -> Any:
        return typeof_impl(value.part, context)

    typeof_impl.register(kind, type_of)


def part(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """A function as other compiled code calls it: without what Python calls, and not kept."""
    make: Any = njit
    return make(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)


class Alone(NamedTuple):
    """An object that needs nothing but C's libraries. `gives`: a letter for each word that it gives back."""

    gives: str
    symbol: str
    code: bytes


def code_alone(function: Any, given: Sequence[Any]) -> Alone | None:
    """The code of a `part` for arguments like those given; None where it needs what only Numba has, or takes or gives
    what no word is."""
    types = tuple(map(_type_of, given))
    function.compile(types)
    made = function.overloads[types]
    gives = _letters(made.signature.return_type)
    module = made.library._final_module.clone()
    if gives is None or any(f.is_declaration and not f.name.startswith("llvm.") for f in module.functions):
        return None
    name = made.fndesc.llvm_func_name
    entry = _entry(name, [str(a.type) for a in module.get_function(name).arguments])
    if entry is None:
        return None
    module.link_in(llvm.parse_assembly(entry))
    symbol = f"{name}{_ENTRY}"
    machine = _machine()
    _leave_private(module, symbol, machine)
    return Alone(gives, symbol, machine.emit_object(module))


def _type_of(value: Any) -> Any:
    """All whole numbers are passed as one of 64 bits (`kernel_code.form_of`)."""
    return numba.int64 if isinstance(value, int | np.integer) and not isinstance(value, bool) else numba.typeof(value)


def _letters(kind: Any) -> str | None:
    if isinstance(kind, numba.types.BaseTuple):
        parts: Any = kind
        letters = [WORDS.get(str(one), "") for one in parts]
        return f"({''.join(letters)})" if letters and all(letters) else None
    return "" if str(kind) == "none" else WORDS.get(str(kind))


def _machine() -> Any:
    """As Numba compiles for, but for code that may lie anywhere."""
    context: Any = cpu_target.target_context
    target = context.codegen()
    triple = llvm.Target.from_triple(llvm.get_process_triple())
    return triple.create_target_machine(
        cpu=target._get_host_cpu_name(), features=target._tm_features, opt=3, reloc="pic", codemodel="small"
    )


def _leave_private(module: Any, but: str, machine: Any) -> None:
    """Make private all that is told there but one function, and leave out what that does not need."""
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration and one.name != but:
            one.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))


def _entry(name: str, types: Sequence[str]) -> str | None:
    """A function, in LLVM's language, that takes words where they lie and calls the one of this name with them; None
    where it takes what no word is. Its own first two are where to put what it gives, and what was wrong."""
    lines = [f'declare i32 @"{name}"({", ".join(types)})', f'define i32 @"{name}{_ENTRY}"(ptr %words, ptr %gives) {{']
    lines += ["%fault = alloca ptr"]
    passed = ["ptr %gives", "ptr %fault"]
    for n, kind in enumerate(types[2:]):
        if kind not in ("ptr", "i64", "double", "i8"):
            return None
        lines += [f"%at{n} = getelementptr i64, ptr %words, i64 {n}", f"%word{n} = load {kind}, ptr %at{n}"]
        passed.append(f"{kind} %word{n}")
    lines += [f'%how = call i32 @"{name}"({", ".join(passed)})', "ret i32 %how", "}"]
    return "\n".join(lines)


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
