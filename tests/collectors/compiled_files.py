"""What `chipledger compile` writes, made by hand around a small program."""

import base64
import json
from typing import Any

import pyarrow as pa

from collectors.device.hlo.shapes import HLO

BF16 = 16


def program(devices: int = 4) -> bytes:
    """A HloModuleProto: a loop of three all-gathers along the last axis of a 2 x 2 mesh, each beside a product."""
    m = HLO["Module"](name=b"jit_step", entry_computation_id=2)
    layout = {"minor_to_major": [1, 0], "tiles": [{"dimensions": [8, 128]}, {"dimensions": [2, 1]}]}
    shape = {"element_type": BF16, "dimensions": [64, 100], "layout": layout}
    body, entry = m.computations.add(id=1, root_id=5), m.computations.add(id=2, root_id=7)
    body.instructions.add(id=1, name=b"arg", opcode=b"parameter", shape=shape)
    body.instructions.add(
        id=2,
        name=b"all-gather.1",
        opcode=b"all-gather",
        shape=shape,
        operand_ids=[1],
        replica_groups=[{"replica_ids": [0, 1]}, {"replica_ids": [2, 3]}],
    )
    body.instructions.add(
        id=3,
        name=b"dot.1",
        opcode=b"dot",
        shape={**shape, "dimensions": [100, 100]},
        operand_ids=[1, 2],
        backend_config=b'{"window_config":{"estimated_cycles":"1200"}}',
        dot_dimension_numbers={"lhs_contracting": [0], "rhs_contracting": [0]},
    )
    body.instructions.add(id=5, name=b"add.1", opcode=b"add", shape=shape, operand_ids=[1, 2])
    cut = {"type": 3, "dimensions": [2, 1, devices // 2], "replicate_on_last_tile_dim": True}
    entry.instructions.add(
        id=6, name=b"x", opcode=b"parameter", shape=shape, sharding=cut, metadata={"op_name": b"params['w']"}
    )
    entry.instructions.add(
        id=7,
        name=b"while.1",
        opcode=b"while",
        shape=shape,
        operand_ids=[6],
        called_computation_ids=[1],
        backend_config=b'{"known_trip_count":{"n":"3"}}',
    )
    return m.SerializeToString()


def compiled(**changes: Any) -> dict[str, Any]:
    """The content of a file, with parts of it changed."""
    packed = pa.Codec("zstd").compress(program(), asbytes=True)
    return {
        "format": "chipledger.compiled",
        "version": 1,
        "facts": {
            "model": "llama3.1-8b",
            "function": None,
            "chip": "v6e",
            "chips": 4,
            "slices": 1,
            "devices_per_chip": 1,
            "topology": "v6e:2x2",
            "parallelism": {"data": 2, "model": 2},
            "precision": "bf16",
            "seq": 8192,
            "rule": "one layer, times 32",
            "compiler": "libtpu 1",
            "compile_s": 3.5,
        },
        "outcome": "compiled",
        "message": "",
        "needed_bytes": None,
        "limit_bytes": 32 << 30,
        "devices": [{"id": i, "coords": [i, 0, 0], "core": 0, "process": 0, "slice": 0} for i in range(4)],
        "programs": [
            {
                "name": "train_step",
                "runs_per_step": 8,
                "memory": {
                    "arguments": 16384,
                    "outputs": 16384,
                    "temporaries": 5000,
                    "aliased": 16000,
                    "code": 700,
                    "peak": 21000,
                },
                "arguments": [
                    {
                        "name": "params/w",
                        "shape": [64, 100],
                        "global_shape": [128, 100],
                        "dtype": "bf16",
                        "bytes": 12800,
                    }
                ],
                "model_flops": 1e9,
                "matmuls": None,
                "hlo": base64.b64encode(packed).decode(),
            }
        ],
    } | changes


def text(**changes: Any) -> bytes:
    return json.dumps(compiled(**changes)).encode()
