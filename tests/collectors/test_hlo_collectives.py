"""Collectives of programs in the forms in which compilers hide them."""

import pytest

from collectors.device.hlo.analysed import Module
from collectors.device.hlo.module import analyse
from collectors.device.hlo.texts import hlo_proto_of_text

pytest.importorskip("jaxlib")

SYNC = """
HloModule m, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[8,16] parameter(0)
  r = (f32[8,16], f32[8,16]) all-reduce(x, x), replica_groups={{0,1},{2,3}}, to_apply=add
  y = f32[8,16] get-tuple-element(r), index=0
  g = f32[16,16] all-gather(y), replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}
  p = f32[16,16] collective-permute-start(g), source_target_pairs={{0,1},{1,0}}
  d = f32[16,16] collective-permute-done(p)
  ROOT t = f32[8,16] reduce-scatter(d), replica_groups={}, dimensions={0}, to_apply=add
}
"""
LOOP = """
HloModule m, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
body { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  r = f32[8] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add
  ROOT t = (s32[], f32[8]) tuple(n, r) }
cond { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  t = (s32[], f32[8]) tuple(z, x)
  w = (s32[], f32[8]) while(t), condition=cond, body=body
  ROOT y = f32[8] get-tuple-element(w), index=1
}
"""
RAGGED = """
HloModule m, num_partitions=4
ENTRY e {
  x = bf16[64,32] parameter(0)
  into = bf16[64,32] parameter(1)
  n = s32[4] parameter(2)
  ROOT r = bf16[64,32] ragged-all-to-all(x, into, n, n, n, n), channel_id=1, replica_groups={{0,1,2,3}}
}
"""
# One all-gather that a fusion starts, another goes on with beside a product, and a third ends.
ASYNC_FUSIONS = """
HloModule m, num_partitions=4
start { p = f32[4,8] parameter(0)
  g = f32[16,8] all-gather(p), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT c = (f32[4,8], f32[16,8]) custom-call(g), custom_call_target="AsyncCollectiveStart" }
async_collective_fusion.1 { p = f32[4,8] parameter(0)
  q = f32[16,8] parameter(1)
  k = f32[8,8] parameter(2)
  g = f32[16,8] all-gather(p), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={0}
  d = f32[16,8] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[16,8], f32[16,8]) tuple(d, g) }
done { p = f32[4,8] parameter(0)
  q = f32[16,8] parameter(1)
  g = f32[16,8] all-gather(p), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT c = f32[16,8] custom-call(p, q, g), custom_call_target="AsyncCollectiveDone" }
ENTRY e {
  x = f32[4,8] parameter(0)
  q = f32[16,8] parameter(1)
  k = f32[8,8] parameter(2)
  async-collective-start = (f32[4,8], f32[16,8]) fusion(x), kind=kCustom, calls=start
  a = f32[4,8] get-tuple-element(async-collective-start), index=0
  fusion.2 = (f32[16,8], f32[16,8]) fusion(a, q, k), kind=kOutput, calls=async_collective_fusion.1
  b = f32[16,8] get-tuple-element(fusion.2), index=1
  ROOT async-collective-done = f32[16,8] fusion(a, b), kind=kCustom, calls=done
}
"""
# A reduce-scatter as a TPU's compiler makes it, and a collective that the SparseCore carries out.
HIDDEN = """
HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
all-reduce-scatter { p = f32[16,8] parameter(0)
  i = s32[] constant(0)
  r = f32[16,8] all-reduce(p), replica_groups={{0,1}}, to_apply=add
  ROOT s = f32[8,8] dynamic-slice(r, i, i), dynamic_slice_sizes={8,8} }
called { p = f32[8,8] parameter(0)
  ROOT g = f32[16,8] all-gather(p), replica_groups={{0,1}}, dimensions={0} }
wrapped { p = f32[8,8] parameter(0)
  ROOT c = f32[16,8] call(p), to_apply=called }
ENTRY e {
  x = f32[16,8] parameter(0)
  fusion.1 = f32[8,8] fusion(x), kind=kCustom, calls=all-reduce-scatter
  all-gather.call-start = ((f32[8,8]), f32[16,8], s32[]) async-start(fusion.1), calls=wrapped
  ROOT all-gather.call-done = f32[16,8] async-done(all-gather.call-start)
}
"""
SLICES = """
HloModule m, num_partitions=4
ENTRY e {
  x = f32[4,8] parameter(0)
  o = token[] after-all()
  send.1 = (f32[4,8], u32[], token[]) send(x, o), channel_id=1, is_host_transfer=true, frontend_attributes={_xla_megascale_target={{100000,200000},{100001,200001}},_xla_megascale_transfer_type="ALL_REDUCE"}
  sent = token[] send-done(send.1), channel_id=1, is_host_transfer=true
  recv.1 = (f32[4,8], u32[], token[]) recv(sent), channel_id=2, is_host_transfer=true, frontend_attributes={_xla_megascale_target={{100000,200000},{100001,200001}},_xla_megascale_transfer_type="ALL_REDUCE"}
  got = (f32[4,8], token[]) recv-done(recv.1), channel_id=2, is_host_transfer=true
  send.2 = (f32[4,8], u32[], token[]) send(x, o), channel_id=3, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="callback"}
  gone = token[] send-done(send.2), channel_id=3, is_host_transfer=true
  ROOT y = f32[4,8] get-tuple-element(got), index=0
}
"""  # noqa: E501

# Neither branch computes anything: one makes zeros, the other gathers.
BRANCHES = """
HloModule m, num_partitions=4
nothing { p = f32[4,8] parameter(0)
  z = f32[] constant(0)
  ROOT b = f32[16,8] broadcast(z), dimensions={} }
gathers { p = f32[4,8] parameter(0)
  ROOT g = f32[16,8] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0} }
ENTRY e {
  i = pred[] parameter(0)
  x = f32[4,8] parameter(1)
  ROOT c = f32[16,8] conditional(i, x, x), true_computation=FIRST, false_computation=SECOND
}
"""


def module(text: str) -> Module:
    return analyse(hlo_proto_of_text(text.strip().encode(), "module"))


def told(text: str) -> list[tuple]:
    return [(c.op, c.kind, c.groups, c.bytes, c.count, c.asynchronous) for c in module(text).collectives]


def test_collectives_as_printed():
    assert told(SYNC) == [
        ("r", "all-reduce", ((0, 1), (2, 3)), 1024.0, 1, False),
        ("g", "all-gather", ((0, 2), (1, 3)), 512.0, 1, False),
        ("p", "permute", ((0, 1),), 1024.0, 1, True),
        ("t", "reduce-scatter", None, 1024.0, 1, False),
    ]


def test_a_loop_multiplies():
    assert told(LOOP) == [("r", "all-reduce", ((0, 1, 2, 3),), 32.0, 7, False)]


@pytest.mark.parametrize("order", [("nothing", "gathers"), ("gathers", "nothing")])
def test_of_branches_that_compute_alike_the_one_that_moves_more_counts(order):
    text = BRANCHES.replace("FIRST", order[0]).replace("SECOND", order[1])
    assert told(text) == [("g", "all-gather", ((0, 1, 2, 3),), 128.0, 1, False)]
    assert module(text).bytes == (4 * 8 + 16 * 8) * 4


def test_a_chain_of_fusions_is_one_collective():
    assert told(ASYNC_FUSIONS) == [("async-collective-start", "all-gather", ((0, 1, 2, 3),), 128.0, 1, True)]
    found = module(ASYNC_FUSIONS).operations
    assert found["async-collective-done"].collective.part == "done"
    assert found["async-collective-done"].category == "collective"
    assert found["fusion.2"].collective is None and found["fusion.2"].category == "matmul"


def test_collectives_in_fusions_and_calls():
    assert told(HIDDEN) == [
        ("fusion.1", "reduce-scatter", ((0, 1),), 512.0, 1, False),
        ("all-gather.call-start", "all-gather", ((0, 1),), 256.0, 1, True),
    ]
    found = module(HIDDEN)
    assert found.operations["all-gather.call-done"].collective.part == "done"
    assert found.operations["g"].count == 0  # it is the call-start that runs
    assert found.operations["all-gather.call-start"].bytes == (8 * 8 + 16 * 8) * 4


def test_where_a_ragged_exchange_puts_what_comes_is_not_sent():
    found = module(RAGGED)
    assert told(RAGGED) == [("r", "all-to-all", ((0, 1, 2, 3),), 64 * 32 * 2.0, 1, False)]
    assert found.operations["r"].bytes == 2 * 64 * 32 * 2 + 4 * 4 * 4  # read, written; four lists of four numbers


def test_transfers_between_slices():
    (found,) = module(SLICES).collectives
    assert (found.op, found.kind, found.bytes, found.asynchronous) == ("send.1", "all-reduce", 128.0, True)
    assert found.across_slices and found.groups == ((100000, 200000), (100001, 200001))


def test_transfers_to_the_host_are_none_between_slices():
    found = module(SLICES).operations
    assert {name: found[name].category for name in ("send.1", "sent", "recv.1", "got", "send.2", "gone")} == {
        "send.1": "collective",
        "sent": "collective",
        "recv.1": "collective",
        "got": "collective",
        "send.2": "host",
        "gone": "host",
    }


@pytest.mark.parametrize("text", [SYNC, LOOP, ASYNC_FUSIONS, HIDDEN, SLICES], ids=range(5))
def test_operations_add_up_to_the_module(text):
    found = module(text)
    assert sum(o.count * (o.flops or 0) for o in found.operations.values()) == pytest.approx(found.flops)
