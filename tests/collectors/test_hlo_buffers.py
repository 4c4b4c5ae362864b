"""Buffers at the peak: against XLA's own totals, and the replay of traces against brute force."""

import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.device.hlo.buffers import SMALLER, device_memory
from collectors.device.hlo.module import analyse
from collectors.device.hlo.shapes import HLO
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
jnp = jax.numpy


def step(ws, x):
    def loss(ws):
        y = x
        for w in ws:
            y = jnp.tanh(y @ w)
        return (y**2).sum()

    return [w - 0.1 * g for w, g in zip(ws, jax.grad(loss)(ws), strict=True)]


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + hlo_proto(data)[1:]


@pytest.fixture(scope="module")
def compiled():
    """(the analysed program with its buffers, XLA's own statistics)."""
    shapes = [jax.ShapeDtypeStruct((64, 64), "float32")] * 3
    made = jax.jit(step, donate_argnums=0).lower(shapes, jax.ShapeDtypeStruct((256, 64), "float32")).compile()
    stats = made.memory_analysis()
    module = made.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    return analyse(hlo_proto(module) + field(3, stats.serialized_buffer_assignment_proto)), stats


def test_totals_equal_xla(compiled):
    module, stats = compiled
    memory = module.memory
    assert memory.arguments == stats.argument_size_in_bytes
    assert memory.outputs == stats.output_size_in_bytes - stats.alias_size_in_bytes
    constants = sum(b.padded_bytes for b in memory.buffers if b.category == "constant")
    assert memory.temporaries - constants == stats.temp_size_in_bytes
    assert memory.arguments == sum(a.padded_bytes for a in module.arguments) == (3 * 64 * 64 + 256 * 64) * 4


def test_buffers_add_up_and_have_names(compiled):
    memory = compiled[0].memory
    assert sum(b.padded_bytes for b in memory.buffers) == memory.peak
    assert memory.peak == memory.arguments + memory.outputs + memory.temporaries
    inputs = {b.name: b for b in memory.buffers if b.category == "argument"}
    assert set(inputs) == {"ws[0]", "ws[1]", "ws[2]", "x"}
    assert inputs["x"].bytes == 256 * 64 * 4 and inputs["x"].shape.startswith("f32[256,64]")
    assert {name: b.reused for name, b in inputs.items()} == {"ws[0]": True, "ws[1]": True, "ws[2]": True, "x": False}
    assert all(b.reused is None for b in memory.buffers if b.category != "argument")
    made = [b for b in memory.buffers if b.category == "temporary" and b.bytes > 1000]
    assert any(b.name.startswith("jit(step)/") and (b.source or "").startswith(__file__) for b in made)


def test_an_input_that_a_loop_updates_in_place_is_an_input_by_its_name():
    def steps(state, x):
        return jax.lax.scan(lambda s, _: (s - 0.1 * jnp.tanh(s @ s) * x, None), state, None, length=4)[0]

    given = [jax.ShapeDtypeStruct((64, 64), "float32")] * 2
    made = jax.jit(steps, donate_argnums=0).lower(*given).compile()
    module = made.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    assigned = field(3, made.memory_analysis().serialized_buffer_assignment_proto)
    inputs = [b for b in analyse(hlo_proto(module) + assigned).memory.buffers if b.category == "argument"]
    assert {(b.name, b.reused) for b in inputs} == {("state", True), ("x", False)}


def program(sizes, events, arena, colour=0, shown=200, others=()):
    """A made-up assignment: values of some sizes in one arena, and the trace of when they live. `others`: instructions
    whose values lie elsewhere."""
    proto = HLO["HloProto"]()
    comp = proto.hlo_module.computations.add(id=1)
    given = proto.buffer_assignment
    allocation = given.buffer_allocations.add(index=4, size=arena, color=colour)
    for value, size in sizes.items():
        shape = {"element_type": 6, "dimensions": [size]}
        comp.instructions.add(id=value, name=f"v{value}".encode(), opcode=b"add", shape=shape)
        given.logical_buffers.add(id=value, size=size, defined_at={"instruction_id": value})
        allocation.assigned.add(logical_buffer_id=value, size=size)
    for other in others:
        comp.instructions.add(**other)
    trace = given.heap_simulator_traces.add(buffer_allocation_index=4)
    for kind, value, *canonical in events:
        of = {"buffer_id": value, "instruction_name": f"v{value}".encode()}
        trace.events.add(kind=kind, share_with_canonical_id=canonical[0] if canonical else 0, **of)
    return device_memory(proto, lambda i: (i.name.decode(), None), {}, shown)


GRADIENT = {"op_name": b"jit(step)/transpose(jvp())/dot_general"}


def test_what_waits_for_the_backward_pass_is_told_from_what_is_gone_before_it():
    """1 lives on into it, 2 is used by it through a bitcast, 3 is gone before, as soon as 2 is made of it."""
    events = [(0, 1), (0, 3), (0, 2), (1, 3), (1, 2), (0, 4), (1, 1), (1, 4)]
    others = [
        {"id": 4, "name": b"v4", "opcode": b"add", "metadata": GRADIENT},
        {"id": 5, "name": b"b", "opcode": b"bitcast", "operand_ids": [2]},
        {"id": 6, "name": b"g", "opcode": b"add", "operand_ids": [5], "metadata": GRADIENT},
    ]
    sizes = {1: 10, 2: 20, 3: 30}
    memory = program(sizes, events, 60, others=others)
    waiting = {b.op: b.awaits_backward for b in memory.buffers if b.category == "temporary"}
    assert waiting == {"v1": True, "v2": True, "v3": False}
    assert program(sizes, [], 60).buffers[0].awaits_backward is None  # no trace tells


@st.composite
def lives(draw):
    """Sizes of values and an order in which each is made, perhaps shared, and freed."""
    sizes = {v: draw(st.integers(1, 50)) for v in range(1, draw(st.integers(2, 12)))}
    alive, fresh, events = [], sorted(sizes), []
    while fresh or alive:
        if fresh and (not alive or draw(st.booleans())):
            value = fresh.pop(0)
            events.append((0, value))
            alive.append(value)
        else:
            events.append((1, alive.pop(draw(st.integers(0, len(alive) - 1)))))
    return sizes, events


@settings(deadline=None)
@given(lives())
def test_the_fullest_moment_is_found(made):
    sizes, events = made
    now, moments = set(), []
    for kind, value in events:
        now = now | {value} if kind == 0 else now - {value}
        moments.append(frozenset(now))
    top = max(sum(sizes[v] for v in m) for m in moments)
    memory = program(sizes, events, sum(sizes.values()) + 7)
    alive = {b.op for b in memory.buffers if b.category == "temporary"}
    assert sum(b.padded_bytes for b in memory.buffers if b.category == "temporary") == top
    assert alive in [{f"v{v}" for v in m} for m in moments if sum(sizes[v] for v in m) == top]
    assert memory.peak == sum(b.padded_bytes for b in memory.buffers) == sum(sizes.values()) + 7
    (room,) = [b for b in memory.buffers if b.category == "fragmentation"]
    assert room.padded_bytes == memory.peak - top and room.bytes == 0


def test_a_shared_buffer_counts_once_and_lives_as_long_as_either():
    events = [(0, 1), (2, 2, 1), (1, 1), (0, 3), (1, 2), (1, 3)]
    memory = program({1: 100, 2: 100, 3: 10}, events, 110)
    assert Counter(b.op for b in memory.buffers) == {"v1": 1, "v3": 1}
    assert memory.peak == 110


def test_without_a_trace_each_place_counts_once():
    proto = HLO["HloProto"]()
    allocation = proto.buffer_assignment.buffer_allocations.add(index=0, size=100)
    for value, offset, size in ((1, 0, 60), (2, 0, 30), (3, 30, 30), (4, 60, 40), (5, 90, 20)):
        allocation.assigned.add(logical_buffer_id=value, offset=offset, size=size)  # the last reaches beyond the end
    memory = device_memory(proto, lambda i: ("", None), {})
    assert [(b.name, b.padded_bytes) for b in memory.buffers] == [("buffer 1", 60), ("buffer 4", 40)]


def test_host_and_on_chip_memory_are_no_device_memory():
    events = [(0, 1), (1, 1), (0, 2), (1, 2)]
    host = program({1: 100, 2: 7}, events, 100, colour=5)
    assert host.peak == 0 and host.host == 100
    assert program({1: 100, 2: 7}, events, 100, colour=1).peak == 100  # of a GPU: without tiles, no TPU


def test_many_buffers_are_summed():
    sizes = {v: 1 + v for v in range(1, 50)}
    memory = program(sizes, [(0, v) for v in sizes], sum(sizes.values()), shown=10)
    assert len(memory.buffers) == 11 and memory.buffers[-1].name == SMALLER
    assert sum(b.padded_bytes for b in memory.buffers) == memory.peak == sum(sizes.values())


def test_a_module_alone_tells_nothing():
    assert device_memory(HLO["HloProto"](), lambda i: ("", None), {}) is None
