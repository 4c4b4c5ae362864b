"""Operations of traces and programs of JAX know their scopes, their pass, and what they are called."""

from collectors.device.hlo.module import analyse
from collectors.device.hlo.rows import compiled_rows
from collectors.device.hlo.shapes import HLO
from tests.collectors.traces import PlaneBuilder, XSpace, environment, got

MLP = "%fusion.7 = bf16[8,8]{1,0} fusion(bf16[8,8]{1,0} %p)"
AGAIN = "%fusion.9.remat = bf16[8,8]{1,0} fusion(bf16[8,8]{1,0} %q)"
PLAIN = "%copy.1 = bf16[8]{0} copy(bf16[8]{0} %c)"


def stats_of(read, op):
    (row,) = read.ops(op=op)
    return {s["name"]: s["text_value"] for s in read.rows["op_stats"] if s["op_id"] == row["op_id"]}


def test_a_tpu_tells_scopes_by_the_framework_s_name(tmp_path):
    space = XSpace()
    plane = PlaneBuilder(space, "/device:TPU:0").stats(device_type_string="TPU v5")
    plane.metadata(MLP, tf_op="jit(step)/transpose(jvp(Decoder))/while/body/mlp/dot_general:", program_id=9)
    plane.metadata(AGAIN, tf_op="jit(step)/transpose(jvp(Decoder))/mlp/add:", program_id=9)
    plane.metadata(PLAIN, program_id=9)
    plane.line("XLA Ops", [(MLP, 0, 10), (AGAIN, 20, 10), (PLAIN, 40, 10)])
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    told = {o["op"]: (o["scope"], o["direction"]) for o in read.ops()}
    assert told == {
        "fusion.7": ("Decoder/mlp", "backward"),
        "fusion.9.remat": ("Decoder/mlp", "recompute"),
        "copy.1": (None, None),
    }
    assert stats_of(read, "fusion.7")["hlo"] == MLP
    assert "op_name" not in stats_of(read, "fusion.7")  # the trace tells it as tf_op


def test_a_program_that_was_compiled_tells_them_too():
    shape = {"element_type": 11, "dimensions": [8]}
    made = HLO["HloProto"]()
    made.hlo_module.name = b"jit_step"
    comp = made.hlo_module.computations.add(id=1, name=b"main", root_id=3)
    comp.instructions.add(id=2, name=b"x", opcode=b"parameter", shape=shape)
    names = (b"jit(step)/jvp(Decoder)/attention/add", b"jit(step)/optimizer/add", b"")
    for n, name in enumerate(names):
        comp.instructions.add(
            id=3 + n, name=b"add.%d" % n, opcode=b"add", shape=shape, operand_ids=[2, 2], metadata={"op_name": name}
        )
    made.hlo_module.entry_computation_id = 1
    found = analyse(made.SerializeToString())
    rows = next(r for r in compiled_rows(0, 0, "step", found, 1, None) if r.table == "ops")
    told = dict(zip(rows.batch["op"].to_pylist(), rows.batch["scope"].to_pylist(), strict=True))
    assert told == {"add.0": "Decoder/attention", "add.1": "optimizer", "add.2": None}
    assert rows.batch["direction"].to_pylist() == ["forward", None, None]
