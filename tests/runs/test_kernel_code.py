"""Kernels that are called without Numba: the same results, and never code of other sources, types or a damaged file."""

import importlib
import shutil
import subprocess
import sys
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from errors import ChipledgerError
from runs import compiled, kernel_code
from runs.compiled import Kernel, code_of
from runs.kernel_library import NotLinked, linked
from runs.kernels import KERNELS, Kernels

ROOT = Path(__file__).parents[2]
PLACE = Kernels("toy_kernels", ("sums",), "toy_kernels.sums:warm")


class Two(NamedTuple):
    first: np.ndarray
    second: np.ndarray


class Other(NamedTuple):
    second: np.ndarray
    first: np.ndarray


def sums(of, factor, share, doubled, out):
    """A kernel with each kind of argument, that gives back several numbers."""
    total = np.int64(0)
    for i in range(of.first.shape[0]):
        for j in range(of.second.shape[1]):
            total += of.first[i] * of.second[i, j]
    if doubled:
        total *= 2
    out[0] = total * factor
    return total, factor, total * share, total > 0


def powers(of, by):
    """A kernel that needs a function of C's libraries."""
    total = 0.0
    for i in range(of.shape[0]):
        total += of[i] ** by
    return total


def unsigned(of):
    return of[0] + of[1]


def copied(of, out):
    """A kernel whose code zeroes and copies by C's functions where there is much."""
    out[:] = 0
    for i in range(of.shape[0]):
        out[i] = of[i]


FUNCTIONS = (sums, powers, unsigned, copied)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(makes a kernel anew, as another process does; the folder of the code), all code once kept."""
    root = tmp_path_factory.mktemp("kernels")
    (root / "toy_kernels").mkdir()
    (root / "toy_kernels" / "sums.py").write_text("TAG = 1\n")
    (root / "toy_kernels" / "__init__.py").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "ROOT", root)
        patch.syspath_prepend(root)
        importlib.import_module("toy_kernels.sums")

        def made(function=sums):
            return Kernel(function, PLACE, code_of(PLACE), {})

        assert made()(*given()) == (50, 3, 25.0, True)
        made(powers)(np.ones(2), 0.5), made(unsigned)(np.ones(2, np.uint64)), made(copied)(np.ones(2), np.ones(2))
        folder = root / "toy_kernels" / "__pycache__"
        assert sorted(p.name.partition(".")[0] for p in folder.glob("*.so")) == sorted(f.__name__ for f in FUNCTIONS)
        yield made, folder


@pytest.fixture
def without_numba(monkeypatch):
    """Neither Numba nor LLVM can be imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("numba", "llvmlite")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "runs.numba_cache", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    kernel_code.compiler_here.cache_clear()
    yield
    kernel_code.compiler_here.cache_clear()


def given(factor=3, second=None, share=0.5, doubled=False):
    two = Two(np.arange(1, 4), np.array([[1, 2], [3, 4], [5, 6]]) if second is None else second)
    return two, factor, share, doubled, np.zeros(1, np.int64)


@contextmanager
def exchanged(file, content):
    """Another file of that name for a while: what was loaded is not changed where it lies."""
    whole = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    try:
        yield
    finally:
        file.unlink()
        file.write_bytes(whole)


def file_of(folder, name):
    (file,) = folder.glob(f"{name}.*.so")
    return file


def test_kept_code_gives_what_the_function_gives(kept, without_numba):
    for arguments in (given(), given(doubled=True), given(factor=-2, share=-1.25)):
        kernel = kept[0]()
        found, out = kernel(*arguments), arguments[-1][0]
        assert found == sums(*arguments) and out == arguments[-1][0]
        assert [type(value) for value in found] == [int, int, float, bool]


def test_what_c_has_is_found_in_its_libraries(kept, without_numba):
    of = np.random.default_rng(1).random(64) * 100
    assert kept[0](powers)(of, 0.37) == powers(of, 0.37)
    out = np.full(5_000, 7.0)
    kept[0](copied)(of, out)
    assert np.array_equal(out, np.concatenate([of, np.zeros(out.size - of.size)]))


def test_unsigned_numbers_come_back_as_they_are(kept, without_numba):
    assert kept[0](unsigned)(np.array([1 << 63, 5], np.uint64)) == (1 << 63) + 5


def test_what_changes_between_calls_is_seen(kept, without_numba):
    kernel = kept[0]()
    arguments = given()
    kernel(*arguments)
    arguments[0].first[:] = 1  # the same array with other content
    assert kernel(*arguments)[0] == 21
    out = arguments[-1]
    assert kernel(arguments[0], np.int64(-2), 2.0, True, out) == (42, -2, 84.0, True) and out[0] == -84
    assert kernel(arguments[0], np.int32(4), np.float64(0.5), np.bool_(False), out) == (21, 4, 10.5, True)
    assert kernel(Two(np.arange(2), arguments[0].second[:2]), 5, 0.0, False, out) == (7, 5, 0.0, True)


def test_an_array_that_was_made_larger_where_it_is_is_looked_at_anew(kept, without_numba):
    kernel, of = kept[0](powers), np.ones(2)
    assert kernel(of, 2.0) == 2
    of.resize(1 << 20, refcheck=False)  # which moves it
    of[:] = 1
    assert kernel(of, 2.0) == 1 << 20


@pytest.mark.parametrize("of", [lambda: np.ones((1 << 21) + 1), lambda: np.ones(9)[:3]], ids=["large", "a part"])
def test_what_was_given_is_not_kept_alive(kept, without_numba, of):
    kernel, given = kept[0](powers), of()
    assert kernel(given, 2.0) == given.size
    gone = weakref.ref(given)
    del given
    assert gone() is None and kernel(np.full(3, 2.0), 2.0) == 12


def test_threads_do_not_disturb_one_another(kept, without_numba):
    kernel, found = kept[0](), {}

    def ask(n):
        found[n] = {kernel(*given(n + i % 2))[:2] for i in range(200)}

    threads = [threading.Thread(target=ask, args=(10 * n,)) for n in range(4)]
    [t.start() for t in threads], [t.join(60) for t in threads]
    assert all({factor for _, factor in told} == {n, n + 1} for n, told in found.items()) and len(found) == 4


OTHERS = {
    "another width": given(second=np.ones((3, 2), np.int32)),
    "another order": given(second=np.ones((2, 3), np.int64).T),
    "a truth": given(factor=True),
    "64 bits do not hold it": given(factor=1 << 63),
    "real": given(factor=2.5),
    "whole": given(share=2),
    "another tuple": (Other(*given()[0]), *given()[1:]),
    "fewer": given()[:2],
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_arguments_are_never_given_to_that_code(kept, without_numba, other):
    kernel = kept[0]()
    kernel(*given())
    with pytest.raises(ChipledgerError, match="sums: no code is kept for its arguments .* Numba is not installed"):
        kernel(*other)
    assert kernel(*given())[0] == 50


@pytest.mark.parametrize("columns", [[0, 1], [0]], ids=["in one piece", "in several"])
def test_what_cannot_be_written_to_is_copied_for_code_that_takes_what_can(kept, without_numba, columns):
    second = np.frombuffer(np.arange(6, dtype=np.int64).tobytes(), np.int64).reshape(3, 2)[:, : len(columns)]
    assert not second.flags.writeable
    for arguments in (given(second=second), given(second=second, factor=2)):
        assert kept[0]()(*arguments) == sums(*arguments)


@pytest.mark.parametrize("damage", [lambda raw: b"", lambda raw: raw[:-1], lambda raw: raw[:400] + b"x" + raw[401:]])
def test_a_damaged_file_is_not_used(kept, without_numba, damage):
    made, folder = kept
    file = file_of(folder, "sums")
    with exchanged(file, damage(file.read_bytes())), pytest.raises(ChipledgerError):
        made()(*given())
    assert made()(*given())[0] == 50


def test_code_under_the_name_of_another_is_not_used(kept, without_numba):
    """Of a library under another's name the digest of its content tells."""
    made, folder = kept
    with exchanged(file_of(folder, "sums"), file_of(folder, "powers").read_bytes()), pytest.raises(ChipledgerError):
        made()(*given())


def test_code_of_other_sources_is_not_used(kept, without_numba):
    source = compiled.folder_of(PLACE) / "sums.py"
    before = source.read_text()
    try:
        source.write_text("TAG = 2\n")
        with pytest.raises(ChipledgerError):
            kept[0]()(*given())
    finally:
        source.write_text(before)


def test_code_of_another_processor_is_not_used(kept, without_numba, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    with pytest.raises(ChipledgerError, match="no code is kept"):
        kept[0]()(*given())


def test_code_for_more_than_this_processor_has_is_not_used(kept, without_numba, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "x86-64-v3")
    monkeypatch.setattr(kernel_code, "_parts_here", lambda: " ".join(kernel_code._V3 - {"fma", "avx2"}))
    with pytest.raises(ChipledgerError, match="for x86-64-v3, of which this processor lacks avx2, fma"):
        kept[0]()(*given())
    monkeypatch.setattr(kernel_code, "_parts_here", lambda: " ".join(kernel_code._V4))
    assert kernel_code.told_processor() == "x86-64-v3 None"


def test_code_of_another_numba_is_not_used_where_there_is_one(kept, monkeypatch):
    monkeypatch.setattr(kernel_code, "compiler_here", lambda: "0" * 8)
    code = code_of(PLACE)
    assert code.of(f"{__name__}.sums", kernel_code.forms_of(given())) is None
    monkeypatch.setattr(kernel_code, "compiler_here", lambda: "")
    assert code_of(PLACE).of(f"{__name__}.sums", kernel_code.forms_of(given())) is not None


@pytest.fixture
def anew(kept, tmp_path, monkeypatch):
    """Makes the kernel anew in a folder of its own, where nothing is kept."""
    shutil.copytree(kept[1].parent, tmp_path / "toy_kernels", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiled, "ROOT", tmp_path)
    return kept[0]


def libraries(tmp_path):
    return sorted((tmp_path / "toy_kernels" / "__pycache__").glob("*.so"))


def test_code_of_sources_that_are_no_more_goes_when_new_is_kept(anew, tmp_path):
    anew(unsigned)(np.ones(2, np.uint64))
    (old,) = libraries(tmp_path)
    (tmp_path / "toy_kernels" / "sums.py").write_text("TAG = 3\n")
    anew(unsigned)(np.ones(2, np.uint64))
    (new,) = libraries(tmp_path)
    assert new != old


def by_numba(monkeypatch):
    """What goes through Numba's own dispatcher is noted."""
    asked = []
    monkeypatch.setattr(Kernel, "dispatcher", property(lambda self: asked.append(self.name) or self.py_func))
    return asked


def test_where_nothing_can_be_kept_numba_is_asked(anew, tmp_path, monkeypatch):
    asked = by_numba(monkeypatch)
    monkeypatch.setattr(kernel_code.os, "access", lambda path, mode: False)
    assert anew(unsigned)(np.ones(2, np.uint64)) == 2 and len(asked) == 1 and not libraries(tmp_path)


@pytest.mark.parametrize("system", [("platform.machine", "aarch64"), ("sys.platform", "darwin")], ids=str)
def test_where_no_library_is_made_numba_is_asked(anew, tmp_path, monkeypatch, system):
    asked = by_numba(monkeypatch)
    name, told = system
    monkeypatch.setattr(f"runs.kernel_code.{name}", (lambda: told) if name == "platform.machine" else told)
    kernel_code.can_load.cache_clear()
    try:
        assert anew(unsigned)(np.ones(2, np.uint64)) == 2 and len(asked) == 1 and not libraries(tmp_path)
    finally:
        monkeypatch.undo()
        kernel_code.can_load.cache_clear()


def test_what_is_no_object_of_this_system_goes_through_numba(anew, tmp_path, monkeypatch):
    with pytest.raises(NotLinked, match="no object"):
        linked(b"\xcf\xfa\xed\xfe" + bytes(60), "entry", "i")
    asked = by_numba(monkeypatch)
    monkeypatch.setattr(kernel_code, "linked", lambda *_: linked(b"", "entry", "i"))
    assert anew(unsigned)(np.ones(2, np.uint64)) == 2 and len(asked) == 1 and not libraries(tmp_path)


def test_who_looks_for_a_fault_gets_what_numba_gives(kept, monkeypatch):
    asked = by_numba(monkeypatch)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert kept[0](unsigned)(np.ones(2, np.uint64)) == 2 and len(asked) == 1


def test_what_no_word_is_goes_through_numba(kept, monkeypatch):
    asked = by_numba(monkeypatch)
    of = np.ones((2, 2), np.uint64)[:, 0]  # not in one piece
    assert kept[0](unsigned)(of) == 2 and kept[0](unsigned)(of) == 2 and len(asked) == 2


def test_every_package_keeps_its_code_apart():
    assert len({kernels.package for kernels in KERNELS}) == len(KERNELS)


def test_who_calls_no_kernel_loads_no_numba():
    """What questions may call is imported with them by every command."""
    names = [f"{k.package}.{n}" for k in KERNELS if k.package.startswith("analyzers.") for n in k.files]
    load = f"import sys, {', '.join(names)}; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", load], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
