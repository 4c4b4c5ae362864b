"""Pairs of programs that the TPU compiler made, with one known change: nothing scatters, and no machine is needed."""

import json
import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from catalog.configs import from_config
from simulators.tpu_compile.launch import compiled_file
from simulators.tpu_compile.request import make_request

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 8192,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
BASE = {"topology": "v6e:2x2", "seq": 1024, "batch": 8}
FLAG = "--xla_tpu_scoped_vmem_limit_kib=4096"
IDLE_FLAG = (
    "--xla_tpu_enable_latency_hiding_scheduler=false --xla_enable_async_all_gather=false"  # changes no operation
)


@dataclass(frozen=True)
class Program:
    config: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    flags: str = ""
    again: bool = False  # compiled anew, though another is the same


@dataclass(frozen=True)
class CompiledChange:
    """`says`: what the sentence has to name, in lower case, any of these; empty where nothing differs."""

    kind: str
    b: Program
    says: tuple[str, ...]
    a: Program = Program()


CHANGES = (
    CompiledChange("nothing", Program(again=True), ()),
    CompiledChange("nothing_flag", Program(flags=IDLE_FLAG), ()),
    CompiledChange("mesh", Program(asked={"mesh": "data=2,model=2"}), ("the mesh is",)),
    CompiledChange("batch", Program(asked={"batch": 16}), ("the batch is",)),
    CompiledChange("remat", Program(asked={"remat": "dots"}), ("remat is",)),
    CompiledChange("dtype", Program(asked={"weights": "bf16"}), ("the type of weights is",)),
    CompiledChange("flag", Program(flags=FLAG), ("the compiler's flags",)),
    CompiledChange("shape", Program(asked={"seq": 2048}), ("the sequence length is",)),
    CompiledChange(
        "hidden",
        Program({"hidden_size": 1024}),
        ("hidden size", "the model"),
        Program({"hidden_size": 1000}),
    ),
)


def make(out: Path, change: CompiledChange) -> None:
    """Both programs below `pairs/compiled-<kind>/`, and what was changed in `truth/`."""
    name = f"compiled-{change.kind}"
    told = out / "truth" / f"{name}.json"
    if told.exists():
        return
    began = time.monotonic()
    for side, program in (("a", change.a), ("b", change.b)):
        folder = out / "pairs" / name / side
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_compiled(out, program), folder / "step.compiled.json")
    said = {"family": "compiled", "kind": change.kind, "says": change.says}
    told.write_text(json.dumps(said | {"a": asdict(change.a), "b": asdict(change.b)}) + "\n")
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def _compiled(out: Path, program: Program) -> Path:
    config = LLAMA | program.config
    plain = {key: value for key, value in config.items() if not isinstance(value, list)}
    request = make_request(model=from_config(config), subject=plain, **(BASE | program.asked))
    cache = out / (".again" if program.again else ".compiled")
    with _flags(program.flags):
        return compiled_file(request, cache)


@contextmanager
def _flags(text: str):
    """The compiler's flags, for the process that is started meanwhile."""
    before = os.environ.get("LIBTPU_INIT_ARGS")
    if text:
        os.environ["LIBTPU_INIT_ARGS"] = text
    try:
        yield
    finally:
        if text:
            os.environ.pop("LIBTPU_INIT_ARGS")
        if before is not None:
            os.environ["LIBTPU_INIT_ARGS"] = before
