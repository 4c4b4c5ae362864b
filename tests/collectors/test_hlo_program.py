"""A program as columns: against the analysis that ingest makes of it, against XLA's own text, and its heap."""

import os
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.program.text import Text
from collectors.device.hlo.heap import heap_of, lifetimes
from collectors.device.hlo.module import analyse
from collectors.device.hlo.program import program_of
from collectors.device.hlo.shapes import HLO
from collectors.device.hlo.texts import hlo_proto_of_text
from errors import InputError
from tests import hlo_programs as made
from tests.collectors.compiled_files import program as looped
from tests.collectors.traces import hlo_proto

ALLOC, FREE, SHARE = 0, 1, 2


def test_the_columns_of_a_small_program():
    program = program_of(hlo_proto(looped()))
    rows = program.frame("instructions").set_index("name")
    assert program.name == "jit_step" and not program.scheduled and program.memory_bytes is None
    assert rows.loc["while.1", "trip_count"] == 3 and rows["count"].to_dict()["dot.1"] == 3
    assert rows.loc["x", "op_name"] == "params['w']" and rows.loc["x", "given"] == "0"
    assert rows.loc["all-gather.1", "attributes"] == "replica_groups={{0,1},{2,3}}"
    assert rows.loc["all-gather.1", "shape"] == "bf16[64,100]{1,0:T(8,128)(2,1)}"
    assert "lhs_contracting_dims={0}" in rows.loc["dot.1", "attributes"]
    kinds = program.frame("computations")["kind"].to_list()
    assert kinds == ["body", "entry"] and program.entry == 1
    numbers = {name: n for n, name in enumerate(rows.index)}
    edges = set(zip(*(program.tables["operands"][c].to_pylist() for c in ("instruction", "operand")), strict=True))
    assert (numbers["dot.1"], numbers["all-gather.1"]) in edges and (numbers["while.1"], numbers["x"]) in edges


@settings(max_examples=60, deadline=None)
@given(made.plans())
def test_what_is_executed_adds_up_to_the_program(plan):
    data = made.module(plan)
    program, told = program_of(data), analyse(data)
    rows = program.frame("instructions")
    ran = rows[rows["executed"]]
    assert len(rows) == told.instructions
    assert (ran["flops"] * ran["count"]).sum() == told.flops
    assert (ran["bytes"] * ran["count"]).sum() == told.bytes
    assert rows["bytes"][~rows["executed"]].isna().all()
    assert set(ran["name"]) == set(told.operations)
    assert rows.groupby("computation")["root"].sum().eq(1).all()


@pytest.mark.parametrize("data", [b"", b"\xff\xff\xff", b"\x0a\x02\x08", hlo_proto(b"")])
def test_what_is_no_program_is_refused_in_one_sentence(data):
    with pytest.raises(InputError) as e:
        program_of(data)
    assert "\n" not in str(e.value)


@settings(max_examples=80, deadline=None)
@given(made.plans(), st.data())
def test_a_damaged_program_is_read_or_refused(plan, data):
    raw = bytearray(made.module(plan))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(1, len(raw)))])
    try:
        program = program_of(cut)
    except InputError:
        return
    text = Text(program)
    assert len(list(text.whole())) == text.lines


jax = pytest.importorskip("jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def many_operations(x, w, i):
    """A function whose program holds as many kinds of instructions as a CPU's compiler leaves apart."""
    jnp, lax = jax.numpy, jax.lax
    y = lax.conv_general_dilated(x, w, (2, 1), ((1, 1), (0, 2)), rhs_dilation=(1, 2))
    y = jnp.pad(y, ((0, 0), (0, 0), (1, 2), (0, 0)), constant_values=1.5)[:, :, ::2, 1:]
    z = jnp.take(y.reshape(y.shape[0], -1), i, axis=1)
    z = z.at[:, i[:2]].add(0.25) @ jnp.arange(z.shape[1] * 3, dtype=jnp.float32).reshape(-1, 3)
    z = lax.fori_loop(0, 7, lambda n, s: jnp.tanh(s) + n, z)
    z = jnp.sort(z, axis=0) + lax.reduce_window(z, 0.1, lax.max, (2, 2), (1, 1), "SAME")
    return lax.cond(z.sum() > 1e-3, lambda s: s.T.sum(0), lambda s: jnp.cumsum(s, 1).max(1), z)


@pytest.fixture(scope="module")
def compiled() -> bytes:
    numpy = [np.ones((2, 3, 16, 16), "f4"), np.ones((4, 3, 3, 3), "f4"), np.array([1, 5, 2], "i4")]
    made = jax.jit(many_operations).lower(*numpy)
    modules = [made.compile().runtime_executable().hlo_modules()[0]]
    return modules[0].as_serialized_hlo_module_proto(), modules[0].to_string()


def bare(line: str) -> str:
    """A line without what this printer says otherwise: metadata, configuration, marks of position."""
    line = re.sub(r"/\*index=\d+\*/", "", line)
    line = re.sub(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}', "", line)
    return re.sub(r", (backend_config|frontend_attributes|origin)=.*", "", line)


def lines_by_name(text: str) -> dict[str, str]:
    found = (re.match(r"\s+(?:ROOT )?%?([^ ]+) = ", line) for line in text.splitlines())
    return {m[1]: bare(m.string).replace("%", "") for m in found if m}


def test_the_text_is_xlas_own(compiled):
    proto, theirs = compiled
    ours = lines_by_name("\n".join(Text(program_of(hlo_proto(proto))).whole()))
    wanted = lines_by_name(theirs)
    assert set(ours) == set(wanted) and len(ours) > 60
    assert {name: line for name, line in ours.items() if line != wanted[name]} == {}


def told_which(x):
    """Instructions that say which of several things they do: XLA reads none of them without."""
    jnp, lax = jax.numpy, jax.lax
    around = jnp.fft.irfft(jnp.fft.rfft(x)) + jnp.fft.ifft(jnp.fft.fft2(x)).real
    drawn = lax.rng_uniform(0.0, 1.0, (8, 8)) + jax.random.uniform(jax.random.key(0, impl="rbg"), (8, 8))
    return around + drawn + lax.top_k(x, 3)[0].sum()


@pytest.mark.parametrize("optimised", [False, True], ids=["traced", "optimised"])
def test_what_says_which_it_is_is_read_again(optimised):
    lowered = jax.jit(told_which).lower(np.ones((8, 8), "f4"))
    module = lowered.compile().runtime_executable().hlo_modules()[0] if optimised else lowered.compiler_ir("hlo")
    data = hlo_proto(module.as_serialized_hlo_module_proto())
    text = "\n".join(Text(program_of(data)).whole())
    ours, wanted = (
        {n: line for n, line in lines_by_name(t).items() if re.search(r" (fft|rng[a-z-]*|topk)\(", line)}
        for t in (text, module.to_string() if optimised else module.as_hlo_text())
    )
    assert {line.split(", ", 1)[1] for line in ours.values()} == {line.split(", ", 1)[1] for line in wanted.values()}
    assert {"FFT", "IFFT", "RFFT", "IRFFT"} == set(re.findall("fft_type=([A-Z]+)", text))
    assert analyse(hlo_proto_of_text(text.encode(), "text")).flops == analyse(data).flops


def test_a_stretch_of_lines_is_that_of_the_whole(compiled):
    text = Text(program_of(hlo_proto(compiled[0])))
    whole = list(text.whole())
    assert len(whole) == text.lines
    for start in (0, 1, 17, text.lines - 3, text.lines + 5):
        assert list(text.stretch(start, 9, None)) == whole[start : start + 9]
    rows = program_of(hlo_proto(compiled[0])).frame("instructions")
    for number, name in enumerate(rows["name"]):
        assert f"%{name} = " in whole[int(text.line_of(number))]


@st.composite
def traces(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Events of a trace that a compiler may write: what is made is freed once, and only what lives is shared."""
    events: list[tuple[int, int, int]] = []
    alive: list[int] = []
    value = 0
    for _ in range(draw(st.integers(1, 40))):
        kind = draw(st.sampled_from((ALLOC, ALLOC, FREE, SHARE)))
        if kind == ALLOC or not alive:
            value += 1
            events.append((ALLOC, value, 0))
            alive.append(value)
        elif kind == FREE:
            events.append((FREE, alive.pop(draw(st.integers(0, len(alive) - 1))), 0))
        else:
            owners = {v: v for k, v, _ in events if k == ALLOC} | {v: h for k, v, h in events if k == SHARE}
            value += 1
            events.append((SHARE, value, owners[draw(st.sampled_from(alive))]))
            alive.append(value)
    return events


def proto_of(events: list[tuple[int, int, int]], sizes: dict[int, int], arena: int, named: int = 1) -> object:
    proto = HLO["HloProto"]()
    proto.hlo_module.computations.add(id=1, root_id=1).instructions.add(id=1, name=b"op", opcode=b"add")
    held = proto.buffer_assignment
    held.buffer_allocations.add(
        index=0, size=1000, is_entry_computation_parameter=True, assigned=[{"logical_buffer_id": 900, "size": 1000}]
    )
    held.buffer_allocations.add(
        index=1, size=arena, assigned=[{"logical_buffer_id": v, "size": s} for v, s in sizes.items()]
    )
    trace = held.heap_simulator_traces.add(buffer_allocation_index=named)
    for kind, value, shared in events:
        trace.events.add(kind=kind, buffer_id=value, share_with_canonical_id=shared, instruction_name=b"op")
    return proto


def alive_after(events: list[tuple[int, int, int]], until: int) -> set[int]:
    """By brute force: places whose owner or a sharer was made and not freed yet."""
    owner, living = {}, Counter()
    for kind, value, shared in events[:until]:
        if kind == FREE:
            living[owner.pop(value)] -= 1
        else:
            owner[value] = shared if kind == SHARE else value
            living[owner[value]] += 1
    return {v for v, n in living.items() if n > 0}


@settings(max_examples=150, deadline=None)
@given(traces(), st.data())
def test_lifetimes_are_what_brute_force_finds_at_each_event(events, data):
    made_by_alloc = [v for k, v, _ in events if k == ALLOC]
    sizes = {v: data.draw(st.integers(1, 100), label=f"size {v}") for v in made_by_alloc}
    proto = proto_of(events, sizes, sum(sizes.values()))
    spans = lifetimes(proto.buffer_assignment.heap_simulator_traces[0])
    for at in range(len(events) + 1):
        assert Counter(v for v, a, b in spans if a <= at < b) == Counter(alive_after(events, at)), at


@settings(max_examples=100, deadline=None)
@given(traces(), st.integers(0, 3))
def test_what_the_heap_holds_at_its_peak_is_the_peak_of_memory(events, named):
    """Whichever allocation the trace names: it is that of its values."""
    sizes = {v: 10 * v for k, v, _ in events if k == ALLOC} | {901: 5, 902: 7}  # two that the trace does not know
    top = max(sum(sizes[v] for v in alive_after(events, n)) for n in range(len(events) + 1))
    data = proto_of(events, sizes, top + 64, named).SerializeToString()
    program = program_of(data)
    heap = program.frame("heap")
    assert program.memory_bytes == analyse(data).memory.peak == 1000 + top + 64
    assert program.arenas == {1: top + 64}
    spans = heap[heap["start"].notna()]
    held = [spans["bytes"][(spans["start"] <= n) & (spans["end"] > n)].sum() for n in range(len(events) + 1)]
    assert max(held) == top
    assert heap["bytes"][heap["start"].isna()].sum() == 1000


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(1, 6)), max_size=30))
def test_whatever_events_a_file_holds_the_heap_fits_its_arena(events):
    data = proto_of(events, dict.fromkeys(range(1, 7), 10), 40).SerializeToString()
    program = program_of(data)
    heap = program.frame("heap")
    spans = heap[heap["start"].notna()]
    held = [spans["bytes"][(spans["start"] <= n) & (spans["end"] > n)].sum() for n in range(len(events) + 2)]
    always = heap["bytes"][heap["start"].isna()].sum()
    assert max(held) <= program.arenas.get(1, 0)
    assert always + program.arenas.get(1, 0) == program.memory_bytes == 1040


def test_a_trace_that_does_not_fit_its_arena_tells_nothing():
    events = [(ALLOC, 1, 0), (ALLOC, 2, 0), (FREE, 1, 0), (FREE, 2, 0)]
    proto = proto_of(events, {1: 40, 2: 50}, 60)
    rows, arenas, told = heap_of(proto, lambda i: ("", None))
    assert arenas == {} and told == []
    assert sum(r["bytes"] for r in rows) == 1060 == program_of(proto.SerializeToString()).memory_bytes
