"""Real TPU programs: collectives counted in their text, layouts, the compiler's cycles."""

import gzip
import re
from collections import Counter
from math import prod
from pathlib import Path

import pytest

from collectors.device.hlo.axes import axis_of
from collectors.device.hlo.module import analyse
from collectors.device.hlo.texts import hlo_proto_of_text

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "tpu_hlo"
FILES = sorted(FOLDER.glob("*.hlo.txt.gz"))
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute-start", "send")
FOUR = {"data": 2, "model": 2}
MESHES = {"tpu7x_2x2x1": {"data": 4, "model": 2}, "v5p_2x2x1": FOUR, "v6e_2x2": FOUR}
CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
needs_programs = pytest.mark.skipif(not FILES, reason="no TPU programs beside the project")


@pytest.fixture(scope="module")
def programs():
    pytest.importorskip("jaxlib")
    read = {}
    for path in FILES:
        text = gzip.decompress(path.read_bytes())
        proto = hlo_proto_of_text(text, path.name)
        read[path.name.partition(".")[0]] = (text.decode(), analyse(proto))
    return read


def printed(text: str) -> Counter:
    """Collectives by the opcode that each line of the text carries."""
    found = re.findall(rf"^\s*(?:ROOT )?%\S+ = .*? ({'|'.join(KINDS)})\(%", text, re.MULTILINE)
    return Counter(found)


@needs_programs
def test_every_printed_collective_is_one(programs):
    for name, (text, module) in programs.items():
        seen = printed(text)
        kinds = Counter(c.kind for c in module.collectives)
        dcn = Counter(re.findall(r" send\(%.*_xla_megascale_transfer_type=\"(\w+)\"", text))
        expected = Counter(
            {
                "all-reduce": seen["all-reduce"] + dcn["ALL_REDUCE"],
                "all-gather": seen["all-gather"] + dcn["ALL_GATHER"],
                "reduce-scatter": seen["reduce-scatter"] + dcn["REDUCE_SCATTER"],
                "all-to-all": seen["all-to-all"] + dcn["ALL_TO_ALL"],
                "permute": seen["collective-permute-start"] + dcn["ONE_TO_ONE"],
            }
        )
        assert kinds == +expected, name
        assert sum(dcn.values()) == seen["send"]


@needs_programs
def test_counts_and_axes_as_read_by_hand(programs):
    found = {
        name: Counter(
            (c.kind, axis_of(c.groups, mesh, paired=c.kind == "permute")) for c in programs[name][1].collectives
        )
        for name, mesh in MESHES.items()
    }
    by_hand = {
        ("all-gather", "model"): 16,
        ("all-reduce", "model"): 22,
        ("all-reduce", "data"): 2,
        ("all-to-all", "model"): 8,
        ("permute", "model"): 4,
    }
    assert found == dict.fromkeys(MESHES, by_hand)
    gradients = [c for c in programs["v6e_2x2"][1].collectives if axis_of(c.groups, MESHES["v6e_2x2"]) == "data"]
    weights = programs["v6e_2x2"][1].arguments[:-1]  # the last argument is the batch
    assert max(c.bytes for c in gradients) == sum(a.bytes for a in weights) == 88_000_000


@needs_programs
def test_ironwood_leaves_collectives_to_its_sparsecores(programs):
    text, module = programs["tpu7x_2x2x1"]
    starts = [c for c in module.collectives if c.op.endswith("call-start")]
    assert len(starts) == len(re.findall(r" call-start\(", text)) == 26
    assert all(c.asynchronous for c in starts)


@needs_programs
def test_slices_talk_by_transfers(programs):
    _, module = programs["v5e_2x2_num_slices2"]
    between = [c for c in module.collectives if c.across_slices]
    assert len(between) == 34 and all(c.asynchronous for c in between)
    assert all({i // 100000 for i in g} == {1, 2} for c in between for g in c.groups)
    assert {c.kind for c in between} == {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "permute"}


@needs_programs
def test_cycles_are_the_texts(programs):
    """Compared by value: XLA's parser gives some instructions other numbers behind their names."""
    for text, module in programs.values():
        inner = set(re.findall(r" (?:fusion\(.*calls|\w.*to_apply)=%([\w.\-]+)", text))  # fusions and reductions
        said, within = Counter(), ""
        for line in text.splitlines():
            if header := re.match(r"(?:ENTRY )?%(\S+) \(", line):
                within = header[1]
            elif (found := CYCLES.search(line)) and within not in inner:
                said[float(found[1])] += 1
        kept = Counter(o.cycles for o in module.operations.values() if o.count and o.cycles)
        del said[0.0]
        assert kept == said and kept.total() > 100


@needs_programs
def test_layouts_pad_the_arguments(programs):
    for _, module in programs.values():
        for a in module.arguments:
            assert a.padded_bytes >= a.bytes
            dims = [int(n) for n in re.search(r"\[([\d,]*)\]", a.shape)[1].split(",")]
            order, tile = re.search(r"\{([\d,]+):T\((\d+,\d+)\)", a.shape).groups()
            sizes = [dims[int(d)] for d in reversed(order.split(","))]
            rows, lanes = (int(n) for n in tile.split(","))
            width = a.bytes // prod(dims)
            assert a.padded_bytes == -(-sizes[-2] // rows) * rows * -(-sizes[-1] // lanes) * lanes * width
            assert a.copies and a.copies > 1  # data parallelism repeats weights, tensor parallelism the batch
