"""The process that compiles: a request as one JSON line on stdin, progress as JSON lines on stdout, one file out.

Lines are `{"stage", "fraction", "elapsed_s"}` while it works; the last is `{"done": true}` or `{"error"}`. It ends when
its stdin closes, so it never outlives who started it.
"""

import contextlib
import importlib.metadata
import json
import math
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

from errors import ChipledgerError, InputError
from simulators.tpu_compile.launch import flags
from simulators.tpu_compile.request import CompileRequest

# where each stage begins, and about how long it takes: fractions are estimates, for nobody can know
STAGES: dict[str, tuple[float, float]] = {
    "starting the compiler": (0.0, 2.0),
    "tracing": (0.04, 2.0),
    "compiling": (0.1, 40.0),
    "writing": (0.97, 1.0),
}
TELL_SECONDS = 0.5
SOURCES = r"^.*/(?=simulators/tpu_compile/|site-packages/)"  # paths of source files that programs keep start here


class Teller:
    """Tells where the work stands, twice a second, on a stream of its own."""

    def __init__(self, stream: Any):
        self._stream, self._began = stream, time.monotonic()
        self._stage, self._since = "starting the compiler", time.monotonic()
        self._lock = threading.Lock()
        threading.Thread(target=self._beat, daemon=True).start()

    def stage(self, name: str) -> None:
        self._stage, self._since = name, time.monotonic()
        self._progress()

    def say(self, **line: Any) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            print(json.dumps(line), file=self._stream, flush=True)

    def _progress(self) -> None:
        starts = [start for start, _ in STAGES.values()] + [1.0]
        begin, usual = STAGES[self._stage]
        after = next(s for s in starts if s > begin)
        part = begin + (after - begin) * (1 - math.exp(-(time.monotonic() - self._since) / usual))
        elapsed = time.monotonic() - self._began
        self.say(stage=self._stage, fraction=round(part, 4), elapsed_s=round(elapsed, 2))

    def _beat(self) -> None:
        while True:
            time.sleep(TELL_SECONDS)
            self._progress()


def main() -> int:
    with os.fdopen(os.dup(1), "w") as stream:
        os.dup2(2, 1)  # whatever libraries and users print goes to stderr
        teller = Teller(stream)
        given = json.loads(sys.stdin.readline())
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            run(CompileRequest.from_dict(given["request"]), Path(given["out"]), teller)
        except ChipledgerError as e:
            teller.say(error=str(e))
            return 2
        teller.say(done=True)
        sys.stderr.flush()
        stream.flush()
        os._exit(0)  # tearing the compiler down takes seconds and is of no use


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(3)


def run(request: CompileRequest, out: Path, teller: Teller) -> None:
    """Compile and write. Raises InputError where the compiler rejects the topology or the user's function raises."""
    import jax

    from simulators.tpu_compile import artifact, user
    from simulators.tpu_compile.matmuls import matmuls

    own = f"|^{re.escape(str(Path(request.function).parent))}/" if request.function else ""
    jax.config.update("jax_hlo_source_file_canonicalization_regex", SOURCES + own)
    mesh = make_mesh(request)
    teller.stage("tracing")
    if request.function:
        name = request.function.rpartition(":")[2]
        traced, named = user.trace(request.function, mesh)
    else:
        name = "train_step"
        traced, named = _train_step(request, mesh)
    program: dict[str, Any] = {
        "name": name,
        "runs_per_step": 1,
        "memory": None,
        "hlo": None,
        "arguments": artifact.arguments(named),
        "matmuls": matmuls(traced.jaxpr),
        "model_flops": _model_flops(request),
    }
    lowered = traced.lower()
    teller.stage("compiling")
    began = time.monotonic()
    outcome: dict[str, Any] = {"outcome": "compiled", "message": "", "needed_bytes": None, "limit_bytes": None}
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as e:
        if (answer := artifact.out_of_memory(e)) is None:
            raise InputError(f"the TPU compiler refused the program: {artifact.short(str(e))}") from e
        outcome |= {"outcome": "out_of_memory", **answer}
        compiled = None
    seconds = time.monotonic() - began
    teller.stage("writing")
    if compiled is not None:
        program |= artifact.of_compiled(name, compiled)
    facts = {**_facts(request), "compile_s": round(seconds, 3)}
    artifact.write(out, {"facts": facts, **outcome, "devices": artifact.devices(mesh), "programs": [program]})


def make_mesh(request: CompileRequest) -> Any:
    """The devices of the topology as a mesh, laid along the torus as JAX does it. Raises InputError where rejected."""
    import jax
    from jax.experimental import mesh_utils, topologies

    from simulators.tpu_compile import artifact

    topology, axes = request.topology, request.mesh
    try:
        description = topologies.get_topology_desc(
            topology_name=topology.text, platform="tpu", **topology.compiler_options()
        )
    except Exception as e:
        raise InputError(f"the TPU compiler rejects {topology.text}: {artifact.short(str(e))}") from e
    try:
        if topology.slices == 1:
            grid = mesh_utils.create_device_mesh(axes.shape, description.devices, allow_split_physical_axes=True)
        else:
            across = axes.across_slices(topology.slices)
            within = tuple(n // s for n, s in zip(axes.shape, across, strict=True))
            grid = mesh_utils.create_hybrid_device_mesh(
                within, across, description.devices, allow_split_physical_axes=True
            )
    except (NotImplementedError, ValueError, AssertionError) as e:
        raise InputError(f"mesh {axes.text} cannot be laid over {topology.text}: {artifact.short(str(e))}") from e
    return jax.sharding.Mesh(grid, axes.names)


def _train_step(request: CompileRequest, mesh: Any) -> tuple[Any, dict[str, Any]]:
    import jax

    from simulators.tpu_compile.layers import Placement
    from simulators.tpu_compile.program import Program

    program = Program(
        request.trained,
        Placement(request.mesh, mesh),
        remat=request.remat,
        blockwise=request.attention == "blockwise",
        weights=request.weights,
        optimizer=request.optimizer,
    )
    state, tokens = program.state_shapes(), program.batch_shapes(request.batch, request.seq)
    out = (jax.tree.map(lambda s: s.sharding, state), None)
    traced = jax.jit(program.step, donate_argnums=0, out_shardings=out).trace(state, tokens)
    return traced, {**dict(sorted(state.items())), "tokens": tokens}  # JAX flattens a dict in the order of its keys


def _model_flops(request: CompileRequest) -> float | None:
    """FLOPs of one step over all chips by the causal convention."""
    if request.model is None:
        return None
    from catalog.flops import flops_per_token

    return flops_per_token(request.model, request.seq, "causal").total * request.batch * request.seq


def _facts(request: CompileRequest) -> dict[str, Any]:
    versions = {name: importlib.metadata.version(name) for name in ("jax", "libtpu")}
    topology = request.topology
    facts = {
        "model": request.subject,
        "function": None,
        "chip": topology.text.partition(":")[0],
        "chips": topology.chips,
        "slices": topology.slices,
        "devices_per_chip": topology.devices_per_chip,
        "topology": topology.text,
        "parallelism": dict(request.mesh.axes),
        "compiler": f"libtpu {versions['libtpu']}",
        "jax": versions["jax"],
        "compiler_flags": " ".join(flags().values()) or "none",
        "rule": rule(request),
    }
    if request.function:
        path, _, name = request.function.rpartition(":")
        return facts | {"function": f"{Path(path).name}:{name}"}
    return facts | {
        "precision": "bf16",
        "weights": request.weights,
        "seq": request.seq,
        "global_batch": request.batch,
        "remat": request.remat,
        "attention": request.attention,
        "optimizer": request.optimizer,
        "layers": request.trained.layers,
    }


def rule(request: CompileRequest) -> str:
    """What was compiled, what is multiplied with what, and what was left out."""
    if request.function:
        return "One call of the function was compiled; loop bodies count as often as their loops run."
    from simulators.tpu_compile.weights import kinds

    model, found = request.trained, kinds(request.trained)
    each = ", ".join(f"{k.name} x {k.layers}" for k in found)
    parts = [
        f"One training step (forward, backward, {request.optimizer}). Each kind of layer was compiled once, inside a "
        f"loop over its stacked weights, and counts as often as the loop runs: {each}; memory is that of all layers."
    ]
    if len(found) > 1:
        parts.append("Layers run kind after kind, not in the model's own order.")
    if any(k.feedforward.experts for k in found):
        parts.append("Experts have equally many slots, as if the router were balanced.")
    if any(k.attention.kv_heads % request.mesh.ways("heads") for k in found):
        parts.append("Key-value heads do not divide over the tensor axis: every device of it holds them all.")
    if request.attention == "blockwise":
        parts.append("Attention takes blocks of queries in turn, in plain XLA, without a hand-written kernel.")
    if model.mtp_layers:
        parts.append("Multi-token prediction is left out.")
    return " ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
