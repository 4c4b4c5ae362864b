"""Makes the bundled compiled runs again: `python -m reference.compiled` (or `make reference-compiled`).

Each is a real training step through the real TPU compiler, in a folder of its own below reference/runs/.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from catalog import model
from errors import ChipledgerError
from simulators.tpu_compile.launch import Limits, compiled_file
from simulators.tpu_compile.request import CompileRequest, make_request

RUNS = Path(__file__).parent / "runs"
LIMITS = Limits(seconds=1800)
# The same step on two chips, under a mesh that does not fit, and a mixture of experts.
ASKED: dict[str, dict] = {
    "compiled-llama3.1-8b-v6e": {"model": "llama3.1-8b", "topology": "v6e:4x4", "mesh": "fsdp=4,model=4"},
    "compiled-llama3.1-8b-v5p": {"model": "llama3.1-8b", "topology": "v5p:2x2x4", "mesh": "fsdp=4,model=4"},
    "compiled-llama3.1-8b-v6e-too-large": {"model": "llama3.1-8b", "topology": "v6e:4x4", "mesh": "data=4,model=4"},
    "compiled-gpt-oss-20b-v6e": {"model": "gpt-oss-20b", "topology": "v6e:4x4", "mesh": "fsdp=4,expert=4"},
}
BATCH = 16  # sequences of 4,096 tokens: one a chip


def request(name: str) -> CompileRequest:
    asked = dict(ASKED[name])
    subject = asked.pop("model")
    return make_request(model=model(subject), subject=subject, batch=BATCH, **asked)


def main() -> int:
    for name in ASKED:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                made = compiled_file(request(name), Path(scratch), LIMITS, _tell)
            except ChipledgerError as e:
                print(f"error: {name}: {e}", file=sys.stderr)
                return 2
            said = json.loads(made.read_text())
            folder = RUNS / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            shutil.copyfile(made, folder / "train_step.compiled.json")
        facts = said["facts"]
        size = (folder / "train_step.compiled.json").stat().st_size
        versions = f"{facts['compiler']}, jax {facts['jax']}"
        print(f"{name}: {said['outcome']}, {versions}, {facts['compile_s']} s, {size:,} bytes")
    return 0


def _tell(part: float, doing: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{part:4.0%} {doing}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
