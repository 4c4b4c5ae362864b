# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy states not all types
"""Compiled code that is called without Numba and LLVM: what a call gives as words of 64 bits, and the files of code.

A number is a word, and an array, as Numba's code takes it, seven or more: two that nothing here looks at, how many
items, bytes of one, the address, then sizes and strides.

A file holds a kernel for arguments of some types, as a library that the system loads (`kernel_library.py`), and lies
beside the sources. Its name tells of which sources it is, who compiled it, for which arguments and processor, and the
digest of its content: what was damaged, cut off or exchanged is passed over. Nothing in it is run that was not written
by this project: as with Numba's own files, whoever can write there can change the sources, too.
"""

import contextlib
import ctypes
import functools
import hashlib
import itertools
import json
import os
import platform
import struct
import sys
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from runs.durable import write_whole
from runs.kernel_library import ENTRY, GIVES, NotLinked, linked

Form = str  # how a value is passed; empty: in no way that is known here
Forms = tuple[Form, ...]
_HARMLESS = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
NUMBER, REAL, TRUTH = "int64", "float64", "bool"
WORDS = {NUMBER: "i", "uint64": "u", REAL: "f", TRUTH: "b"}  # the letter of each in what a kernel gives back
_BEYOND = 1 << 63
_DONE, _NONE = 0, -2  # how a kernel says that it ended, the second where it gives nothing back
ENDING = ".so"
_SMALL_BYTES = 16 << 20
_DIGITS = 32  # of the digest of a file's content, in its name
# what a processor has at the least of a level, as Linux names it
_V2 = {"cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
_LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}


def form_of(value: Any) -> Form:
    """As Numba would type it; narrower whole numbers of numpy's are passed as one of 64 bits."""
    kind = type(value)
    if kind is np.ndarray:
        return _array_form(value)
    if kind is int or kind is np.int64:
        return NUMBER if -_BEYOND <= value < _BEYOND else ""
    if kind is float or kind is np.float64:
        return REAL
    if kind is bool or kind is np.bool_:
        return TRUTH
    if isinstance(value, tuple):
        forms = forms_of(value)
        name = f"{kind.__module__}.{kind.__qualname__}" if hasattr(value, "_fields") else ""
        return f"{name}({','.join(forms)})" if all(forms) else ""
    return NUMBER if isinstance(value, np.integer) and value.dtype != np.uint64 else ""


def _array_form(array: np.ndarray) -> Form:
    """An array that cannot be written to is another type to Numba."""
    flags = array.flags
    plain = flags.c_contiguous and flags.aligned and array.ndim and array.dtype.isnative and array.dtype.kind in "iufb"
    return f"{array.dtype.str}x{array.ndim}{'' if flags.writeable else 'r'}" if plain else ""


def forms_of(given: tuple[Any, ...]) -> Forms:
    return tuple(map(form_of, given))


def copied(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same with a copy of each array that cannot be written to: it lies in one piece, and can. No kernel writes to
    what it copies."""
    return tuple(map(_copied, given))


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        within = copied(value)
        return type(value)(*within) if hasattr(value, "_fields") else within
    return np.array(value, order="C") if isinstance(value, np.ndarray) and not value.flags.writeable else value


def words_of(value: Any) -> tuple[int, ...]:
    """The words of a value that has a form; of a type, none."""
    if isinstance(value, np.ndarray):
        return (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
    if isinstance(value, tuple):
        return tuple(word for one in value for word in words_of(one))
    if isinstance(value, type):
        return ()
    return (struct.unpack("<q", struct.pack("<d", value))[0] if isinstance(value, float) else int(value),)


class Code:
    """The kept code of a package's kernels: each is loaded when it is first asked for."""

    def __init__(self, folder: Path, sources: Sequence[Path]):
        self.folder, self._sources = folder / "__pycache__", sources
        self._loaded = dict[tuple[str, Forms], Loaded]()

    def of(self, kernel: str, forms: Forms) -> "Loaded | None":
        """The code of a kernel for such arguments, if there is some."""
        found = self._loaded.get((kernel, forms))
        if found is None and (name := self._name(kernel, forms)) and (path := self._there.get(name)) is not None:
            found = self._load(kernel, forms, path)
        return found

    def takes(self) -> bool:
        """Whether code that is compiled can be kept and loaded here."""
        if self._about is None or not can_load():
            return False
        with contextlib.suppress(OSError):
            self.folder.mkdir(exist_ok=True)
        return os.access(self.folder, os.W_OK)

    def keep(self, kernel: str, forms: Forms, code: bytes, entry: str, gives: str) -> "Loaded | None":
        """Keep what LLVM made for the processes that come, and load it; None where it is of a kind that is not loaded
        without LLVM, or nothing can be written."""
        if not (name := self._name(kernel, forms)):
            return None
        with contextlib.suppress(OSError, NotLinked):
            content = linked(code, entry, gives)
            path = self.folder / f"{name}.{_digest(content)[:_DIGITS]}{ENDING}"
            write_whole(path, content)
            self._drop_stale()
            return self._load(kernel, forms, path)
        return None

    def _load(self, kernel: str, forms: Forms, path: Path) -> "Loaded | None":
        loaded = load(kernel, forms, path)
        if loaded is not None:
            self._loaded[kernel, forms] = loaded
        return loaded

    def _drop_stale(self) -> None:
        """Take away what is of other sources or another compiler."""
        for path in self.folder.glob(f"*{ENDING}"):
            if self._about is not None and self._about not in path.name:
                path.unlink(missing_ok=True)

    def _name(self, kernel: str, forms: Forms) -> str:
        """A file's name without the digest of its content; empty where none may be used."""
        if (about := self._about) is None or (processor := told_processor()) is None:
            return ""
        return f"{kernel.rpartition('.')[2]}{about}{_digest(json.dumps([kernel, forms, processor]).encode())[:16]}"

    @functools.cached_property
    def _there(self) -> dict[str, Path]:
        """What lies here, by name without the digest of its content, and without its compiler where there is none."""
        found = dict[str, Path]()
        with contextlib.suppress(OSError):
            for path in self.folder.glob(f"*{ENDING}"):
                parts = path.name.split(".")
                if len(parts) == 6:
                    found[".".join(parts[:4])] = path
                    if not compiler_here():
                        found[".".join([*parts[:2], "", parts[3]])] = path
        return found

    @functools.cached_property
    def _about(self) -> str | None:
        """Of which sources the code is and who compiled it; None where somebody looks for a fault, or counts lines."""
        if {name for name in os.environ if name.startswith("NUMBA_")} - _HARMLESS:
            return None
        return f".{_digest(b''.join(path.read_bytes() for path in self._sources))[:16]}.{compiler_here()}."


class Loaded(NamedTuple):
    """Code of a kernel for some arguments. `gives`: a letter for each word that it gives back, in brackets where they
    are a tuple; `function` takes where the words lie and where to put what it gives; other threads run meanwhile."""

    kernel: str
    forms: Forms
    gives: str
    function: Any


def load(kernel: str, forms: Forms, path: Path) -> Loaded | None:
    """None where the file is not whole, or the system does not load it."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        if not path.name.endswith(f".{_digest(path.read_bytes())[:_DIGITS]}{ENDING}"):
            return None
        library = ctypes.CDLL(str(path))
        function = getattr(library, ENTRY)
        function.restype, function.argtypes = ctypes.c_int32, (ctypes.c_void_p, ctypes.c_void_p)
        gives = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, GIVES))).decode()
        return Loaded(kernel, forms, gives, function)
    return None


class Call:
    """A kernel with arguments as it was called with last, of one thread. What is the very object that it was is not
    looked at again: an array of its own memory, or a tuple, is kept alive for that, unless it is large; a part of
    another array is not."""

    def __init__(self, code: Loaded, given: tuple[Any, ...]):
        each = [_leaves(value) for value in given]
        leaves = list(itertools.chain(*each))
        words = [words_of(leaf) for leaf in leaves]
        self._code, self._seen, self._forms = code, list(map(_seen, leaves)), list(map(form_of, leaves))
        self._sizes = list(map(_size, leaves))
        self._first = list(itertools.accumulate(map(len, each), initial=0))  # leaf of each argument
        self._whole = [_whole(value, some) for value, some in zip(given, each, strict=True)]
        self._at = list(itertools.accumulate(map(len, words), initial=0))
        self._words = (ctypes.c_int64 * self._at[-1])(*itertools.chain(*words))
        self._reals = (ctypes.c_double * self._at[-1]).from_buffer(self._words)
        self._gives = code.gives.strip("()")
        self._given_back = (ctypes.c_int64 * max(len(self._gives), 1))()
        self._run = partial(code.function, ctypes.addressof(self._words), ctypes.addressof(self._given_back))

    def takes(self, given: tuple[Any, ...]) -> bool:
        """Whether it can be run with these, and is about to be. Readers call this for each line of a trace."""
        if len(given) != len(self._whole):
            return False
        for k, value in enumerate(given):
            if isinstance(value, tuple):
                if not (_as_it_was(self._whole[k], value) or self._takes_tuple(k, value)):
                    return False
            elif not self._takes_leaf(self._first[k], value):
                return False
        return True

    def _takes_tuple(self, k: int, value: tuple[Any, ...]) -> bool:
        leaves, first = _leaves(value), self._first[k]
        if first + len(leaves) != self._first[k + 1] or not all(map(self._takes_leaf, itertools.count(first), leaves)):
            return False
        self._whole[k] = _whole(value, leaves)
        return True

    def _takes_leaf(self, n: int, leaf: Any) -> bool:
        before = self._seen[n]
        if leaf is before:
            if self._sizes[n] < 0 or leaf.size == self._sizes[n]:
                return True
        elif before.__class__ is weakref.ref:
            if before() is leaf:
                return True
        elif leaf.__class__ is int and before.__class__ is int and -_BEYOND <= leaf < _BEYOND:
            self._words[self._at[n]] = self._seen[n] = leaf
            return True
        if not (form := form_of(leaf)) or form != self._forms[n]:
            return False
        self._put(self._at[n], form, leaf)
        self._seen[n], self._sizes[n] = _seen(leaf), _size(leaf)
        return True

    def _put(self, at: int, form: Form, value: Any) -> None:
        if form == REAL:
            self._reals[at] = value
        elif form in (NUMBER, TRUTH):
            self._words[at] = int(value)
        else:
            words = words_of(value)
            self._words[at : at + len(words)] = words

    def run(self) -> Any:
        status = self._run()
        if status not in (_DONE, _NONE):
            raise RuntimeError(f"{self._code.kernel} ended with {status}, which its code never does")
        gives = self._gives
        if not gives:
            return None
        back = self._given_back
        if self._code.gives[0] != "(":
            return back[0] if gives == "i" else _value(back[0], gives)
        return tuple(_value(word, letter) for word, letter in zip(back, gives, strict=True))


def _leaves(value: Any) -> list[Any]:
    """What is passed, and the type of each tuple before what that holds: a tuple of another type is other code."""
    if not isinstance(value, tuple):
        return [value]
    return [value.__class__, *itertools.chain.from_iterable(map(_leaves, value))]


_Whole = tuple[tuple[Any, ...], list[tuple[np.ndarray, int]]]


def _whole(value: Any, leaves: list[Any]) -> _Whole | None:
    """A tuple that is known again, with its arrays that may be made larger where they are; None of anything else, and
    where it holds large ones or parts of others, which would be kept alive."""
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
    small = all(array.flags.owndata and array.nbytes <= _SMALL_BYTES for array in arrays)
    return (value, [(array, array.size) for array in arrays]) if isinstance(value, tuple) and small else None


def _as_it_was(known: _Whole | None, value: tuple[Any, ...]) -> bool:
    return known is not None and known[0] is value and all([array.size == size for array, size in known[1]])


def _seen(leaf: Any) -> Any:
    """What is known again. An array of which there are weak references cannot be made larger where it is; one of memory
    that is not its own cannot in any case."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    if not leaf.flags.owndata:
        return weakref.ref(leaf)
    return leaf if leaf.nbytes <= _SMALL_BYTES else None


def _size(leaf: Any) -> int:
    """Of an array, which may have been made larger where it is; -1 of anything else."""
    return leaf.size if isinstance(leaf, np.ndarray) else -1


def _value(word: int, letter: str) -> Any:
    if letter == "f":
        return struct.unpack("<d", struct.pack("<q", word))[0]
    if letter == "u":
        return word % (1 << 64)
    return bool(word & 1) if letter == "b" else word


@functools.cache
def can_load() -> bool:
    """Whether this is a system whose libraries are made here."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


@functools.cache
def compiler_here() -> str:
    """Which Numba and LLVM are installed; empty where none are: then whoever compiled code is taken."""
    versions = b""
    for package in ("numba", "llvmlite"):
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            return ""
        versions += Path(spec.origin).with_name("_version.py").read_bytes()
    return _digest(versions)[:8]


class Lacking(NamedTuple):
    """What this processor lacks of the level that code is for."""

    level: str
    parts: tuple[str, ...]


def told_processor() -> str | None:
    """For which processor code is: the one that Numba is told, else this one; None where this one cannot run it."""
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if name is None and features is None:
        return _parts_here()
    return None if lacking() else f"{name} {features}"


def lacking() -> Lacking | None:
    """What this processor lacks of the level that Numba is told; None where it has all, or does not tell."""
    level = os.environ.get("NUMBA_CPU_NAME", "")
    here = set(_parts_here().split())
    parts = _LEVELS.get(level, set[str]()) - here
    return Lacking(level, tuple(sorted(parts))) if parts and here else None


@functools.cache
def _parts_here() -> str:
    """What this processor can do, as Linux names it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("flags"):
                return " ".join(sorted(line.partition(":")[2].split()))
    return ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def names(forms: Iterable[Form]) -> str:
    """Forms as a person reads them."""
    return ", ".join(form or "something else" for form in forms)
