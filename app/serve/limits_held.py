"""Which limits this system can hold a job to: tried by a process that is held to all of them."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace

from runs.limits import Limits

SECONDS = 20.0


def limits_held() -> dict[str, bool]:
    """By name; empty where no process could be started."""
    asked = Limits(data_bytes=1 << 32, cpu_s=60, file_bytes=1 << 30, network=False, sealed=True, first_to_go=500)
    asked = replace(asked, writes=(tempfile.gettempdir(),), parent=os.getpid())
    try:
        done = subprocess.run(asked.command(sys.executable, "--held"), capture_output=True, timeout=SECONDS)
        held = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {name: held[name] for name in held if name != "open files"}


def words(held: dict[str, bool]) -> tuple[str, str]:
    """(what holds, what does not and what that means)."""
    if not held:
        return "no process could be started", "no upload can be read"
    lacks = [name for name in held if not held[name]]
    said = ", ".join(name for name in held if held[name])
    return said, f"uploads are read without limits of: {', '.join(lacks)}" if lacks else ""
