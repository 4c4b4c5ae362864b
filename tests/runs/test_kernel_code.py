"""Kernels that are called without Numba: the same results, and never code of other sources, types or a damaged file."""

import importlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from runs import compiled, kernel_code
from runs.compiled import Kernel, keep_code, sources_of
from runs.kernel_code import forms_of
from runs.kernels import KERNELS, Kernels

ROOT = Path(__file__).parents[2]
PLACE = Kernels("toy_kernels", ("sums",), "toy_kernels.sums:warm", alone=True)


class Two(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def sums(of, factor, out):
    """A kernel with each kind of argument, that gives back several numbers."""
    total = np.int64(0)
    for i in range(of.first.shape[0]):
        for j in range(of.second.shape[1]):
            total += of.first[i] * of.second[i, j]
    out[0] = total * factor
    return total, factor


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(makes the kernel anew, as another process does; the file of its code), the code once kept."""
    root = tmp_path_factory.mktemp("kernels")
    (root / "toy_kernels").mkdir()
    (root / "toy_kernels" / "sums.py").write_text("TAG = 1\n")
    (root / "toy_kernels" / "__init__.py").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "ROOT", root)
        patch.syspath_prepend(root)
        module = importlib.import_module("toy_kernels.sums")

        def made():
            folder = compiled.folder_of(PLACE)
            return Kernel(sums, PLACE, kernel_code.kept_code(folder, sources_of(PLACE)), {"_nrt": False})

        module.sums = first = made()
        assert first(*given()) == (50, 3) and first.asked
        keep_code(PLACE)
        (file,) = (root / "toy_kernels" / "__pycache__").glob("*.kernels")
        yield made, file


@pytest.fixture
def without_numba(monkeypatch):
    def refused(kernels):
        raise AssertionError("Numba was asked")

    monkeypatch.setattr(compiled, "_by_numba", refused)


def given(factor=3, second=None):
    two = Two(np.arange(1, 4), np.array([[1, 2], [3, 4], [5, 6]]) if second is None else second)
    return two, factor, np.zeros(1, np.int64)


def test_kept_code_gives_what_numba_gives(kept, without_numba):
    arguments = given()
    assert kept[0]()(*arguments) == (50, 3) and arguments[2][0] == 150


def test_what_changes_between_calls_is_seen(kept, without_numba):
    kernel = kept[0]()
    arguments = given()
    kernel(*arguments)
    arguments[0].first[:] = 1  # the same array with other content
    assert kernel(*arguments)[0] == 21
    assert kernel(arguments[0], np.int64(-2), arguments[2]) == (21, -2) and arguments[2][0] == -42
    assert kernel(Two(np.arange(2), arguments[0].second[:2]), 5, arguments[2]) == (7, 5)


def test_threads_do_not_disturb_one_another(kept, without_numba):
    kernel, found = kept[0](), {}

    def ask(n):
        found[n] = {kernel(*given(n + i % 2)) for i in range(200)}

    threads = [threading.Thread(target=ask, args=(10 * n,)) for n in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert all({factor for _, factor in told} == {n, n + 1} for n, told in found.items()) and len(found) == 4


@pytest.mark.parametrize(
    "other",
    [
        given(second=np.ones((3, 2), np.int32)),
        given(second=np.ones((2, 3), np.int64).T),
        given(second=np.broadcast_to(np.int64(1), (3, 2))),
        given(factor=True),
        given(factor=1 << 63),
        given(factor=2.5),
        given()[:2],
    ],
    ids=["another width", "another order", "not to be written", "a truth", "64 bits do not hold it", "real", "fewer"],
)
def test_other_arguments_go_through_numba(kept, without_numba, other):
    kernel = kept[0]()
    kernel(*given())
    with pytest.raises(AssertionError, match="Numba was asked"):
        kernel(*other)


@pytest.mark.parametrize("damage", [lambda raw: b"", lambda raw: raw[:-1], lambda raw: raw[:40] + b"x" + raw[41:]])
def test_a_damaged_file_is_not_used(kept, without_numba, damage):
    made, file = kept
    whole = file.read_bytes()
    try:
        file.write_bytes(damage(whole))
        with pytest.raises(AssertionError, match="Numba was asked"):
            made()(*given())
    finally:
        file.write_bytes(whole)


def test_code_of_other_sources_or_another_processor_is_not_used(kept, without_numba, monkeypatch):
    made, file = kept
    source = compiled.folder_of(PLACE) / "sums.py"
    before = source.read_text()
    try:
        source.write_text("TAG = 2\n")
        with pytest.raises(AssertionError, match="Numba was asked"):
            made()(*given())
    finally:
        source.write_text(before)
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    with pytest.raises(AssertionError, match="Numba was asked"):
        made()(*given())


@pytest.mark.parametrize("name", ["get_host_cpu_features", "create_mcjit_compiler"])
def test_what_llvm_refuses_goes_through_numba(kept, without_numba, monkeypatch, name):
    def refused(*_):
        raise RuntimeError("not here")

    monkeypatch.setattr(f"llvmlite.binding.{name}", refused)
    with pytest.raises(AssertionError, match="Numba was asked"):
        kept[0]()(*given())


def test_who_looks_for_a_fault_gets_what_numba_gives(kept, without_numba, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(AssertionError, match="Numba was asked"):
        kept[0]()(*given())


def test_what_is_only_to_be_read_has_code_of_its_own():
    raw = np.frombuffer(bytes(4), np.uint8)
    assert forms_of((raw, raw.copy(), np.zeros(2, bool))) == ("|u1x1 to be read", "|u1x1", "|b1x1")


def test_who_calls_no_kernel_loads_no_numba():
    """What questions may call is imported with them by every command."""
    names = [f"{k.package}.{n}" for k in KERNELS if k.package.startswith("analyzers.") for n in k.files]
    load = f"import sys, {', '.join(names)}; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", load], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("package", "read"),
    [
        ("collectors.device.xplane", "from collectors.device.xplane import prepare as read"),
        ("collectors.device.kineto", "from collectors.device.kineto.warm import warm as read"),
    ],
)
def test_a_trace_is_read_without_numba(package, read):
    """In processes of their own: the first keeps the code where set-up has not."""
    (traces,) = (k for k in KERNELS if k.package == package)
    keep = f"from {traces.warm.partition(':')[0]} import warm; from runs.compiled import keep_code; warm(); "
    keep += f"from runs.kernels import KERNELS; keep_code(KERNELS[{KERNELS.index(traces)}])"
    subprocess.run([sys.executable, "-c", keep], cwd=ROOT, timeout=240, check=True)
    read = f"import sys; {read}; read(); print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", read], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
