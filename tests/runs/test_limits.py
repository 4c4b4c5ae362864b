"""What a process is held to: tried from inside, each by the thing that it must not do."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from app.serve.process_tree import seen
from runs import limits
from runs.limits import Limits, landlock_abi
from tests.app.serving import environment

TRIES = """
import json, os, socket, sys
def outcome(what):
    try:
        what()
        return "did"
    except BaseException as e:
        return type(e).__name__
inside, outside = sys.argv[1:]
def write(path, size=1):
    with open(path, "wb") as f:
        f.write(b"x" * size)
def move():
    os.mkdir(f"{inside}/a")
    write(f"{inside}/b")
    os.rename(f"{inside}/b", f"{inside}/a/b")
tries = {
    "memory": lambda: bytearray(3 << 30), "some memory": lambda: bytearray(100 << 20),
    "large file": lambda: write(f"{inside}/large", 3 << 20), "file": lambda: write(f"{inside}/small"), "move": move,
    "elsewhere": lambda: write(f"{outside}/made"), "read elsewhere": lambda: open(f"{outside}/secret").read(),
    "read the system": lambda: open("/etc/hosts").read(), "nowhere": lambda: write("/dev/null"),
    "socket": lambda: socket.create_connection(("127.0.0.1", 9)), "name": lambda: socket.getaddrinfo("x.example", 80),
    "pair": socket.socketpair, "session": os.setsid, "signal": lambda: os.kill(os.getppid(), 0),
    "modules": lambda: __import__("numpy").ones(1000).sum(),
    "files": lambda: [open("/etc/hosts") for _ in range(300)],
}
print(json.dumps({name: outcome(what) for name, what in tries.items()}))
"""
HELD = Limits(
    data_bytes=1 << 30, cpu_s=60, file_bytes=1 << 20, open_files=200, network=False, sealed=True, parent=os.getpid()
)


def tried(tmp_path, how):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    script = inside / "tries.py"
    script.write_text(TRIES)
    held = Limits(**{**vars(how), "writes": (str(inside),)})
    command = held.command(sys.executable, str(script), str(inside), str(outside))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def offered(how):
    done = subprocess.run(how.command(sys.executable, "--held"), capture_output=True, timeout=60, env=environment())
    return json.loads(done.stdout)


def test_a_sealed_process_does_what_readers_do_and_nothing_else(tmp_path):
    got = tried(tmp_path, HELD)
    for name in ("some memory", "file", "move", "read the system", "nowhere", "pair", "modules"):
        assert got[name] == "did", name
    assert got["memory"] == "MemoryError" and got["large file"] == "OSError" and got["files"] == "OSError"
    assert got["name"] in ("PermissionError", "gaierror") and got["socket"] == "PermissionError"
    there = offered(HELD)
    assert there["memory"] and there["processor time"] and there["file size"]
    if there["system calls"]:
        assert got["session"] == "PermissionError"
    if landlock_abi() >= 2:
        assert got["elsewhere"] == got["read elsewhere"] == "PermissionError"
        assert not (tmp_path / "outside" / "made").exists()
    if landlock_abi() >= 6:
        assert got["signal"] == "PermissionError"


def test_where_the_system_has_none_of_it_the_program_runs_all_the_same():
    code = (
        "import json; from runs import limits\n"
        "limits.platform.machine, limits.landlock_abi = lambda: 'pdp11', lambda: 0\n"
        "print(json.dumps(limits.enforce(limits.Limits(sealed=True, network=False, writes=('/',)))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, env=environment())
    held = json.loads(done.stdout)
    assert not held["files"] and not held["system calls"] and not held["network"]


def test_a_process_ends_with_the_one_that_started_it(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text("import time; print('there', flush=True); time.sleep(100)")
    code = (
        "import os, subprocess, sys, time; from runs.limits import Limits\n"
        f"c = Limits(parent=os.getpid()).command(sys.executable, {str(script)!r})\n"
        "p = subprocess.Popen(c); print(p.pid, flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment()) as parent:
        assert parent.stdout is not None
        child = next(int(word) for word in (parent.stdout.readline(), parent.stdout.readline()) if word[0].isdigit())
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 30
        while seen(child):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_one_whose_parent_was_gone_before_it_began_ends_at_once():
    done = subprocess.run(Limits(parent=1).command(sys.executable, "--held"), capture_output=True, timeout=60)
    assert done.returncode == 1 and done.stdout == b""


def test_processor_time_ends_it(tmp_path):
    script = tmp_path / "spin.py"
    script.write_text("while True: pass")
    done = subprocess.run(Limits(cpu_s=1).command(sys.executable, str(script)), timeout=60)
    assert done.returncode == -signal.SIGXCPU or done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("machine", sorted(limits._MACHINES))
def test_each_machine_has_a_number_for_each_call_that_is_refused(machine):
    numbers = limits._MACHINES[machine][1]
    refused = [numbers[name] for name in (*limits.NETWORK, *limits.SEALED)]
    assert len(set(refused)) == len(refused)


@pytest.mark.parametrize("sendto", [None, 44])
@pytest.mark.parametrize("arch", [7, 9])
def test_the_filter_refuses_what_it_names_and_passes_all_else(arch, sendto):
    """Walked here as the kernel would walk it."""
    refused = [3, 5, 250]
    code = limits.program(7, refused, sendto)
    for number in (*range(300), 0x4000_0001):
        for address in (0, 1):
            verdict = walked(code, {0: number, 4: arch, limits._SENDTO_ADDRESS: address})
            if arch != 7:
                assert verdict == limits._KILL
            elif number in refused or number >= 0x4000_0000 or (number == sendto and address):
                assert verdict == limits._REFUSE | 13
            else:
                assert verdict == limits._ALLOW


def walked(code, call):
    import struct

    steps = list(struct.iter_unpack("=HBBI", code))
    at, value = 0, 0
    while True:
        kind, true, false, given = steps[at]
        if kind == limits._RETURN:
            return given
        if kind == limits._LOAD:
            value = call[given]
            at += 1
        else:
            holds = value == given if kind == limits._IF_EQUAL else value > given
            at += 1 + (true if holds else false)
