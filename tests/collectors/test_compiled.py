"""Compiled programs become runs: the file of `chipledger compile`, and dumps of one program."""

import base64
import json
import re

import pytest

from collectors import ingest
from collectors.base import Blob
from collectors.device import compiled
from collectors.device.compiled.contract import HLO_LIMIT_BYTES
from collectors.device.hlo.module import analyse
from errors import InputError
from runs.store import Store
from runs.tables import frame
from tests.collectors import compiled_files as files
from tests.collectors.reading import Read, source_of
from tests.collectors.traces import hlo_proto

NAME = "step.compiled.json"
PROGRAM = re.compile(r"hlo/[0-9a-f]{32}\.pb\.zst")


def read(folder, data, name=NAME) -> Read:
    """Rows, facts and losses; blobs are left out."""
    result = Read()
    for item in compiled.read(source_of(folder, data, name)):
        if isinstance(item, Blob):
            continue
        if hasattr(item, "batch"):
            item.batch.validate(full=True)
            result.rows.setdefault(item.table, []).extend(item.batch.to_pylist())
        elif hasattr(item, "value"):
            result.facts[item.name] = item.value
        else:
            result.lost.append(item)
    return result


def test_a_file_becomes_facts_and_rows(tmp_path):
    got = read(tmp_path, files.text())
    assert got.facts["kind"] == "compiled" and got.facts["fits"] is True and got.facts["chips"] == 4
    assert got.facts["parallelism"] == {"data": 2, "model": 2} and got.facts["model_flops_per_step"] == 8e9
    assert "message" not in got.facts and "function" not in got.facts
    (module,) = got.rows["modules"]
    assert (module["program"], module["name"]) == (0, "train_step") and PROGRAM.fullmatch(module["file"])
    (gather,) = got.rows["program_collectives"]
    assert (gather["kind"], gather["axis"], gather["groups"], gather["group_size"]) == ("all-gather", "model", 2, 2)
    assert (gather["bytes"], gather["count"], gather["dtype"]) == (12800.0, 3 * 8, "bf16")
    ops = {row["op"]: row for row in got.rows["ops"]}
    assert set(ops) == {"all-gather.1", "dot.1", "add.1"}
    (module,) = got.rows["modules"]
    assert module["runs_per_step"] == 8
    assert 8 * module["flops"] == sum(o["flops"] * o["count"] for o in got.rows["ops"])
    assert (ops["dot.1"]["cycles"], ops["dot.1"]["count"]) == (1200.0, 24)
    assert ops["dot.1"]["flops"] == 2 * 64 * 100 * 100 and ops["dot.1"]["total_ns"] is None
    assert ops["add.1"]["line"] == "program" and ops["add.1"]["shape"] == "bf16[64,100]{1,0:T(8,128)(2,1)}"
    (product,) = got.rows["matmuls"]
    assert (product["m"], product["k"], product["n"], product["count"]) == (100, 64, 100, 24)
    memory = {row["kind"]: row for row in got.rows["memory"]}
    held = {kind: row["padded_bytes"] for kind, row in memory.items() if kind != "bytes_limit"}
    assert held == {
        "arguments": 16384,
        "outputs": 384,
        "temporaries": 5000,
        "code": 700,
        "peak": 21000,
        "argument": 64 * 128 * 2,
    }
    assert memory["bytes_limit"]["bytes"] == 32 << 30
    assert (memory["argument"]["name"], memory["argument"]["bytes"]) == ("params/w", 12800)
    assert memory["argument"]["copies"] == 2  # cut in two along its first dimension, on four devices


def test_a_peak_is_at_most_what_is_laid_out_in_main_memory(tmp_path):
    programs = files.compiled()["programs"]
    programs[0]["memory"] |= {"temporaries": 0, "peak": 30_000}  # values that lie on the chip are no temporaries there
    rows = read(tmp_path, files.text(programs=programs)).rows["memory"]
    assert {row["padded_bytes"] for row in rows if row["kind"] == "peak"} == {16384 + 384}


def test_what_the_file_says_of_products_replaces_the_programs(tmp_path):
    programs = files.compiled()["programs"]
    programs[0]["matmuls"] = [{"name": "qkv", "m": 8192, "k": 64, "n": 100, "count": 3}]
    got = read(tmp_path, files.text(programs=programs))
    (row,) = got.rows["matmuls"]
    assert (row["op"], row["m"], row["batch"], row["count"]) == ("qkv", 8192, 1, 24)


def test_what_does_not_fit_is_an_answer(tmp_path):
    got = read(tmp_path, files.text(outcome="out_of_memory", message="exceeds HBM", needed_bytes=40 << 30, programs=[]))
    assert got.facts["fits"] is False and got.facts["outcome"] == "out_of_memory"
    assert (got.facts["message"], got.facts["needed_bytes"]) == ("exceeds HBM", 40 << 30)
    assert list(got.rows) == ["memory"]
    programs = files.compiled()["programs"]
    programs[0]["hlo"] = None
    got = read(tmp_path, files.text(outcome="out_of_memory", programs=programs))
    argument = next(r for r in got.rows["memory"] if r["kind"] == "argument")
    assert (argument["bytes"], argument["padded_bytes"], argument["shape"]) == (12800, None, "bf16[64,100]")


def test_it_is_stored_as_a_run_of_its_kind(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(files.text())
    store = Store(tmp_path / "store")
    done = ingest.ingest([path], store)
    run = store.get(done.run_id)
    assert run.manifest.kind == "compiled" and run.manifest.facts["compiler"].basis == "measured"
    assert run.manifest.facts["topology"].basis == "declared"
    assert frame(run.tables, "ops", ["cycles"])["cycles"].max() == 1200
    assert run.blob(frame(run.tables, "modules", ["file"])["file"][0]).exists()
    assert ingest.ingest([path], store).existed


@pytest.mark.parametrize("wrap", [lambda m: m, hlo_proto], ids=["module", "proto"])
def test_a_dump_of_one_program(tmp_path, wrap):
    source = source_of(tmp_path, wrap(files.program()), "module_0001.after_optimizations.hlo.pb")
    assert compiled.sniff(source) >= 0.5
    got = read(tmp_path, wrap(files.program()), source.name)
    assert got.facts == {"kind": "compiled", "outcome": "compiled"}
    assert got.rows["program_collectives"][0]["axis"] is None and got.rows["modules"][0]["name"] == "jit_step"
    assert [r["name"] for r in got.rows["memory"] if r["kind"] == "argument"] == ["params['w']"]


def test_a_dump_as_text(tmp_path):
    pytest.importorskip("jaxlib")
    text = b"HloModule jit_f\n\nENTRY main {\n  x = f32[8,128] parameter(0)\n  ROOT y = f32[8,128] add(x, x)\n}\n"
    source = source_of(tmp_path, text, "jit_f.txt")
    assert compiled.sniff(source) == 1.0
    got = read(tmp_path, text, "jit_f.txt")
    assert got.rows["modules"][0]["flops"] == 1024
    with pytest.raises(InputError, match="XLA can parse"):
        read(tmp_path, text.replace(b"add(", b"frobnicate("), "jit_f.txt")


def test_text_needs_jaxlib(tmp_path, monkeypatch):
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib" / "__init__.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(InputError, match="jaxlib is installed.*Install jax"):
        read(tmp_path, b"HloModule m\n", "m.hlo.txt")


def broken(**changes):
    return json.dumps(files.compiled() | changes).encode()


def with_program(**changes):
    return broken(programs=[files.compiled()["programs"][0] | changes])


BAD = {
    "not JSON": (b'{"format": "chipledger.compiled",', "not JSON"),
    "another format": (b'{"format": "other"}', "no compiled program"),
    "a newer version": (broken(version=2), "version 2"),
    "no facts": (broken(facts=None), "facts is not an object"),
    "an odd outcome": (broken(outcome="perhaps"), "outcome is 'perhaps'"),
    "chips of no chip": (broken(facts={"chips": -4}), "chips is -4"),
    "a mesh of nothing": (broken(facts={"parallelism": {"data": 0}}), "parallelism"),
    "fewer devices than the mesh": (broken(devices=[{"id": 0}]), "1 devices for a mesh of 4"),
    "devices twice": (broken(devices=[{"id": 0}] * 4), "devices is not"),
    "a negative limit": (broken(limit_bytes=-1), "limit_bytes is not a whole number"),
    "a limit that is no number": (broken(limit_bytes=float("nan")), "limit_bytes"),
    "programs of no kind": (broken(programs={}), "programs is not a list"),
    "a program that is text": (broken(programs=["x"]), r"programs\[0\] is not an object"),
    "too many programs": (broken(programs=[{}] * 65), "at most 64"),
    "memory as text": (with_program(memory={"peak": "much"}), "memory.peak"),
    "HLO that is no base64": (with_program(hlo="%%%"), "cannot be unpacked"),
    "HLO that is no zstd": (with_program(hlo=base64.b64encode(b"hello").decode()), "cannot be unpacked"),
    "HLO of another kind": (with_program(hlo=7), "hlo is not text"),
    "a product without sizes": (with_program(matmuls=[{"m": 1}]), r"matmuls\[0\]"),
    "a shape of words": (with_program(arguments=[{"name": "x", "shape": ["a"], "dtype": "f32"}]), "shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_sentence(tmp_path, case):
    data, said = BAD[case]
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path, data)
    assert NAME in str(caught.value) and "\n" not in str(caught.value)


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    import pyarrow as pa

    bomb = base64.b64encode(pa.Codec("zstd").compress(bytes(HLO_LIMIT_BYTES + 2), asbytes=True)).decode()
    with pytest.raises(InputError, match="unpacks to more than"):
        read(tmp_path, with_program(hlo=bomb))


def test_a_module_without_instructions_is_refused(tmp_path):
    with pytest.raises(InputError, match="no HLO module"):
        read(tmp_path, b"\n\x02hi", "x.hlo.pb")


def test_sniff_leaves_others_alone(tmp_path):
    for data, name in ((b'{"chip": "v5e"}', "chipledger.json"), (b"\x0a\x04", "host.xplane.pb"), (b"hello", "a.txt")):
        assert compiled.sniff(source_of(tmp_path, data, name)) == 0.0


def test_operations_inside_what_is_wrapped_do_not_count_twice():
    found = analyse(hlo_proto(files.program()))
    assert sum((o.flops or 0) * o.count for o in found.operations.values()) == found.flops
