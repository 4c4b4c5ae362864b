"""Traces for tests: messages to build them and to check against, a reader that knows blobs, and real ones from JAX."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from collectors.base import Blob, Fact, Lost, Rows, Source
from collectors.device import xplane
from collectors.device.hlo.shapes import HLO
from collectors.reading.protobuf import message_types
from runs.schema import SCHEMAS

MESSAGES = message_types(
    "chipledger.tests",
    """
    XSpace: XPlane* planes=1, bytes* errors=2, bytes* warnings=3, bytes* hostnames=4
    XPlane: int64 id=1, bytes name=2, XLine* lines=3, EventEntry* event_metadata=4, StatEntry* stat_metadata=5, XStat* stats=6
    XLine: int64 id=1, bytes name=2, int64 timestamp_ns=3, XEvent* events=4, int64 duration_ps=9, int64 display_id=10, bytes display_name=11
    XEvent: int64 metadata_id=1, int64 offset_ps=2, int64 duration_ps=3, XStat* stats=4
    XStat: int64 metadata_id=1, double? double_value=2, uint64? uint64_value=3, int64? int64_value=4, bytes? str_value=5, bytes? bytes_value=6, uint64? ref_value=7
    EventEntry: int64 key=1, XEventMetadata value=2
    XEventMetadata: int64 id=1, bytes name=2, bytes metadata=3, bytes display_name=4, XStat* stats=5
    StatEntry: int64 key=1, XStatMetadata value=2
    XStatMetadata: int64 id=1, bytes name=2, bytes description=3
    """,  # noqa: E501
)
XSpace = MESSAGES["XSpace"]
START_NS = 1_700_000_000_000_000_000


class Got:
    """What a reader handed back, every batch checked against the seam."""

    def __init__(self, source: Source):
        self.rows: dict[str, list[dict]] = defaultdict(list)
        self.facts: dict[str, object] = {}
        self.blobs: dict[str, bytes] = {}
        self.lost: list[Lost] = []
        for item in xplane.read(source):
            match item:
                case Rows(table, batch):
                    assert batch.schema.equals(SCHEMAS[table].arrow) and batch.num_rows
                    batch.validate(full=True)
                    self.rows[table] += batch.to_pylist()
                case Fact(name, value):
                    self.facts[name] = value
                case Blob(name, data):
                    assert self.blobs.get(name, data) == data  # a program that comes again is the same file
                    self.blobs[name] = data
                case Lost():
                    self.lost.append(item)
                case _:
                    raise AssertionError(item)

    def events(self) -> list[dict]:
        """Each event with its operation and its stats, in the order of the trace."""
        ops = {o["op_id"]: o for o in self.rows["ops"]}
        stats = defaultdict(list)
        for s in self.rows["event_stats"]:
            stats[s["event"]].append((s["name"], s["int_value"], s["float_value"], s["text_value"]))
        assert set(stats) <= {e["event"] for e in self.rows["op_events"]}
        return [ops[e["op_id"]] | e | {"stats": stats[e["event"]]} for e in self.rows["op_events"]]

    def ops(self, **where) -> list[dict]:
        return [o for o in self.rows["ops"] if all(o[k] == v for k, v in where.items())]


def got(folder: Path, data: bytes, name: str = "host.xplane.pb", index: int = 0) -> Got:
    path = folder / "trace"
    path.write_bytes(data)
    return Got(Source(path, name, index))


class PlaneBuilder:
    """Builds one plane by names instead of identifiers."""

    def __init__(self, space, name: str):
        self.plane = space.planes.add(name=name.encode())
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}

    def _stat_id(self, name: str) -> int:
        if name not in self._stats:
            self._stats[name] = len(self._stats) + 1
            entry = self.plane.stat_metadata.add(key=self._stats[name])
            entry.value.id, entry.value.name = self._stats[name], name.encode()
        return self._stats[name]

    def _put(self, holder, stats: dict) -> None:
        for name, value in stats.items():
            stat = holder.add(metadata_id=self._stat_id(name))
            match value:
                case bool() | int() if value >= 1 << 63:
                    stat.uint64_value = value
                case int():
                    stat.int64_value = value
                case float():
                    stat.double_value = value
                case str():
                    stat.ref_value = self._stat_id(value)
                case bytes():
                    stat.bytes_value = value
                case [str() as inline]:
                    stat.str_value = inline.encode()

    def metadata(self, name: str, display: str = "", **stats) -> int:
        if name not in self._events:
            self._events[name] = len(self._events) + 1
            entry = self.plane.event_metadata.add(key=self._events[name])
            entry.value.id, entry.value.name = self._events[name], name.encode()
            entry.value.display_name = display.encode()
            self._put(entry.value.stats, stats)
        return self._events[name]

    def stats(self, **stats) -> "PlaneBuilder":
        self._put(self.plane.stats, stats)
        return self

    def line(self, name: str, events: list, timestamp_ns: int = 0) -> "PlaneBuilder":
        """`events`: (name, start ns, duration ns[, stats])."""
        line = self.plane.lines.add(id=len(self.plane.lines) + 1, name=name.encode(), timestamp_ns=timestamp_ns)
        for event_name, start, dur, *stats in events:
            event = line.events.add(
                metadata_id=self.metadata(event_name), offset_ps=round(start * 1000), duration_ps=round(dur * 1000)
            )
            self._put(event.stats, stats[0] if stats else {})
        return self


def environment(space, start_ns: int = START_NS, stop_ns: int = START_NS + 10**9) -> None:
    PlaneBuilder(space, "Task Environment").stats(profile_start_time=start_ns, profile_stop_time=stop_ns)


def hlo_proto(module: bytes) -> bytes:
    """An HloProto around a serialised HloModuleProto: field 1."""
    size, head = len(module), bytearray(b"\x0a")
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + module


def sharded_program(
    groups: list[list[int]],
    assignment: list[list[int]] | None,
    opcode: str = "all-reduce",
    channel: int = 1,
    everywhere: bool = True,
) -> bytes:
    """The HloProto of a program with one collective, `<opcode>.1`, over `groups` of its own numbers.

    `assignment`: device identifiers by partition, then replica; None leaves it out. `channel`, `everywhere`: see
    `collectors.device.hlo.assignment`.
    """
    proto = HLO["HloProto"]()
    module = proto.hlo_module
    module.name, module.entry_computation_id = b"jit_step", 1
    shape = {"element_type": 11, "dimensions": [8]}
    entry = module.computations.add(id=1, root_id=2)
    entry.instructions.add(id=1, name=b"x", opcode=b"parameter", shape=shape)
    found = entry.instructions.add(
        id=2,
        name=f"{opcode}.1".encode(),
        opcode=opcode.encode(),
        shape=shape,
        operand_ids=[1],
        channel_id=channel,
        use_global_device_ids=everywhere,
    )
    for group in groups:
        if opcode == "collective-permute":
            found.source_target_pairs.add(source=group[0], target=group[1])
        else:
            found.replica_groups.add(replica_ids=group)
    if assignment is not None:
        module.device_assignment.replica_count = len(assignment[0])
        module.device_assignment.computation_count = len(assignment)
        for part in assignment:
            module.device_assignment.computation_devices.add(replica_device_ids=part)
    return proto.SerializeToString()


def tpu_steps(
    program: bytes,
    meets: list[list[int]],
    busy_ms: dict[int, list[float]],
    host: int = 0,
    per_host: int = 4,
    cores: list[int] | None = None,
    op: str = "all-reduce.1",
) -> bytes:
    """A trace of one TPU host: in each step a device works `busy_ms[device][step]`, then meets the devices of its group
    in `meets` (global numbers), which all leave together a millisecond after the last of them came."""
    space = XSpace(hostnames=[f"host{host}".encode()])
    environment(space)
    PlaneBuilder(space, "/host:metadata").metadata("jit_step(9)", **{"Hlo Proto": program, "program_id": 9})
    steps, ms, long = len(next(iter(busy_ms.values()))), 1_000_000, 100
    for local in range(per_host):
        device = host * per_host + local
        core = device if cores is None else cores[local]
        plane = PlaneBuilder(space, f"/device:TPU:{local}").stats(
            device_type_string="TPU v5 lite", core_details=bytes([0x20, local, 0x28, core, 0x30, core])
        )
        text = f"%{op} = f32[8]{{0}} {op.split('.')[0]}(f32[8]{{0}} %x)"
        plane.metadata(text, hlo_category=op.split(".")[0], program_id=9)
        plane.metadata("%fusion.2 = f32[8]{0} fusion(f32[8]{0} %x)", hlo_category="loop fusion", program_id=9)
        group = next(g for g in meets if device in g)
        events = []
        for step in range(steps):
            begin, came = step * long * ms, [busy_ms[d][step] for d in group]
            mine = busy_ms[device][step]
            events.append(("%fusion.2 = f32[8]{0} fusion(f32[8]{0} %x)", begin, mine * ms))
            events.append((text, begin + mine * ms, (max(came) + 1 - mine) * ms))
        plane.line("Steps", [(str(i), i * long * ms, 90 * ms) for i in range(steps)])
        plane.line("XLA Modules", [("jit_step(9)", i * long * ms, 90 * ms) for i in range(steps)])
        plane.line("XLA Ops", events)
    return space.SerializeToString()


_JAX_PROGRAM = """
import json, os, sys, time
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
layer = jax.checkpoint(lambda x, w: (jnp.tanh(x @ w), None))
def loss(ws, x):
    y, _ = jax.lax.scan(layer, x, ws)
    return (y**2).mean()
@jax.jit
def step(ws, x):
    value, grads = jax.value_and_grad(loss)(ws, x)
    return value, ws - 0.1 * grads
put = lambda value, *spec: jax.device_put(value, NamedSharding(mesh, P(*spec)))
ws, x = put(jnp.ones((3, 64, 64)) * 0.01, None, None, "model"), put(jnp.ones((32, 64)), "data", None)
jax.block_until_ready(step(ws, x))
marks = []
jax.profiler.start_trace(sys.argv[1])
before = time.time_ns()
for i in range(4):
    with jax.profiler.StepTraceAnnotation("train", step_num=10 + i):
        with jax.profiler.TraceAnnotation("data_loading"):
            marks.append(time.time_ns())
            time.sleep(0.003)
        value, ws = step(ws, x)
        jax.block_until_ready(ws)
after = time.time_ns()
jax.profiler.stop_trace()
print(json.dumps({"before": before, "after": after, "marks": marks}))
"""


def jax_trace(folder: Path) -> tuple[Path, dict]:
    """A real trace of four CPU devices doing four sharded training steps, and what the clock said meanwhile."""
    pytest.importorskip("jax")
    run = subprocess.run(
        [sys.executable, "-c", _JAX_PROGRAM, str(folder)], capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    (path,) = folder.rglob("*.xplane.pb")
    return path, json.loads(run.stdout.splitlines()[-1])
