# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# LLVM's binding states no types, and numpy not all
"""Compiled code that is called without Numba: what a call gives as words of 64 bits, and the file that holds the code.

A number is a word, and an array, as Numba's code takes it, seven or more: two that nothing here looks at, how many
items, bytes of one, the address, then sizes and strides.

The file lies beside the sources. Its name tells of which sources, which Numba and LLVM and which processor the code is;
it begins with the digest of what follows, so that what was damaged or cut off is passed over. Nothing in it is run that
was not written by this project: as with Numba's own files, whoever can write there can change the sources, too.
"""

import contextlib
import ctypes
import functools
import hashlib
import itertools
import json
import os
import platform
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from runs.durable import write_whole

Form = str  # how a value is passed; empty: in no way that is known here
Forms = tuple[Form, ...]
_DIGEST_BYTES = 32
_HARMLESS = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
NUMBER = "int64"
READ_ONLY = " to be read"  # Numba makes other code for arrays that are not to be written
_BEYOND = 1 << 63
_DONE, _NONE = 0, -2  # how a kernel says that it ended, the second where it gives nothing back
ENDING = ".kernels"


def form_of(value: Any) -> Form:
    """As Numba would type it."""
    if type(value) is int or type(value) is np.int64:
        return NUMBER if -_BEYOND <= value < _BEYOND else ""
    if type(value) is np.ndarray:
        laid = value.flags.c_contiguous and value.flags.aligned and value.ndim
        plain = laid and value.dtype.isnative and value.dtype.kind in "iufb"
        return f"{value.dtype.str}x{value.ndim}{'' if value.flags.writeable else READ_ONLY}" if plain else ""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        forms = forms_of(value)
        return f"{type(value).__module__}.{type(value).__qualname__}({','.join(forms)})" if all(forms) else ""
    return ""


def forms_of(given: tuple[Any, ...]) -> Forms:
    return tuple(map(form_of, given))


def words_of(value: Any) -> tuple[int, ...]:
    """The words of a value that has a form."""
    if isinstance(value, np.ndarray):
        return (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
    if isinstance(value, tuple):
        return tuple(word for one in value for word in words_of(one))
    return (int(value),)


def results_of(kind: str) -> int | None:
    """How many words are given back by a kernel of this result, as Numba prints its type; None: in another way."""
    if kind == "none":
        return 0
    if kind == "int64":
        return 1
    whole, _, number = kind.removesuffix(")").partition("int64 x ")
    return int(number) if whole == "UniTuple(" and number.isdigit() else None


class Made(NamedTuple):
    """The code of a kernel for some arguments, that needs nothing but itself. `gives`: how many words it gives back;
    `symbol`: its name in the code."""

    kernel: str
    forms: Forms
    gives: int
    symbol: str
    code: bytes


class Code:
    """The kept code of a package's kernels, loaded when it is first asked for. `path`: None where none may be used."""

    def __init__(self, path: Callable[[], Path | None]):
        self._path = path
        self._loading = threading.Lock()
        self._loaded: dict[tuple[str, Forms], Loaded] | None = None

    def of(self, kernel: str, forms: Forms) -> "Loaded | None":
        """The code of a kernel for such arguments, if there is some."""
        if self._loaded is None:
            with self._loading:
                if self._loaded is None:
                    try:
                        self._loaded = _load(self._made())
                    except RuntimeError:  # LLVM does not take it here: Numba compiles anew
                        self._loaded = {}
        return self._loaded.get((kernel, forms))

    def keep(self, more: Iterable[Made]) -> None:
        """Keep code beside what is kept already, for processes that come."""
        if (path := self._path()) is None:
            return
        made = [*self._made(), *more]
        head = json.dumps([[*one[:-1], len(one.code)] for one in made]).encode() + b"\n"
        body = head + b"".join(one.code for one in made)
        with contextlib.suppress(OSError):  # nothing may be written there: Numba's own files serve
            path.parent.mkdir(exist_ok=True)
            write_whole(path, hashlib.sha256(body).digest() + body)
            for other in path.parent.glob(f"*{ENDING}"):
                if other != path:
                    other.unlink()

    def _made(self) -> list[Made]:
        """What the file holds; nothing where it is not whole."""
        raw = b""
        if (path := self._path()) is not None:
            with contextlib.suppress(OSError):
                raw = path.read_bytes()
        body = raw[_DIGEST_BYTES:]
        if not body or hashlib.sha256(body).digest() != raw[:_DIGEST_BYTES]:
            return []
        head, _, code = body.partition(b"\n")
        made, at = list[Made](), 0
        for kernel, forms, gives, symbol, size in json.loads(head):
            made.append(Made(kernel, tuple(forms), gives, symbol, code[at : at + size]))
            at += size
        return made


@dataclass(frozen=True)
class Loaded:
    """`engine`: holds the memory in which the code lies."""

    made: Made
    engine: Any

    @property
    def function(self) -> Any:
        """It takes where the words lie and where to put what it gives; other threads run meanwhile."""
        address = self.engine.get_function_address(self.made.symbol)
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(address)


def _load(made: Sequence[Made]) -> dict[tuple[str, Forms], Loaded]:
    if not made:
        return {}
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for one in made:
        engine.add_object_file(llvm.ObjectFileRef.from_data(one.code))
    engine.finalize_object()
    return {(one.kernel, one.forms): Loaded(one, engine) for one in made}


class Call:
    """A kernel with arguments as it was called with last, of one thread: most are arrays that a reader fills call after
    call, and one that is the very object it was before is not looked at again."""

    def __init__(self, code: Loaded, given: tuple[Any, ...]):
        self.code, self._given = code, list(given)
        words = [words_of(value) for value in given]
        self._at = list(itertools.accumulate(map(len, words), initial=0))
        self._words = (ctypes.c_int64 * self._at[-1])(*itertools.chain(*words))
        self._gives = code.made.gives
        self._given_back = (ctypes.c_int64 * max(self._gives, 1))()
        self._run = partial(code.function, ctypes.addressof(self._words), ctypes.addressof(self._given_back))

    def takes(self, given: tuple[Any, ...]) -> bool:
        """Whether it can be run with these, and is about to be."""
        before, words, at = self._given, self._words, self._at
        if len(given) != len(before):
            return False
        for n, value in enumerate(given):
            if value is before[n]:
                continue
            if (form := form_of(value)) != self.code.made.forms[n]:
                return False
            if form == NUMBER:
                words[at[n]] = value
            else:
                words[at[n] : at[n + 1]] = words_of(value)
            before[n] = value
        return True

    def run(self) -> Any:
        status = self._run()
        if status not in (_DONE, _NONE):
            raise RuntimeError(f"{self.code.made.kernel} ended with {status}, which its code never does")
        if self._gives == 1:
            return self._given_back[0]
        return tuple(self._given_back) if self._gives else None


def kept_code(folder: Path, sources: Sequence[Path]) -> Code:
    """The code of the kernels in a folder that are built from these sources."""
    return Code(functools.cache(lambda: _path(folder, sources)))


def _path(folder: Path, sources: Sequence[Path]) -> Path | None:
    asked = {name for name in os.environ if name.startswith("NUMBA_")}
    numba = find_spec("numba")
    if asked - _HARMLESS or numba is None or numba.origin is None:
        return None  # somebody looks for a fault, or counts lines
    digest = hashlib.sha256()
    for path in (*sources, Path(numba.origin).with_name("_version.py")):
        digest.update(path.read_bytes())
    digest.update(json.dumps([*_processor(), platform.machine()]).encode())
    return folder / "__pycache__" / f"{digest.hexdigest()[:32]}{ENDING}"


def _processor() -> list[str]:
    """For which processor code is made, as Numba is told."""
    from llvmlite import __version__
    from llvmlite import binding as llvm

    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        with contextlib.suppress(RuntimeError):  # LLVM cannot tell on every platform
            features = llvm.get_host_cpu_features().flatten()
    return [__version__, name, features or ""]
