"""What a process that reads what strangers made may do: one place for jobs, for SQL of a person and for XProf.

Used in two ways. As a script, with nothing but the standard library, it limits its own process and then becomes the
program that is named: `python -P limits.py LIMITS -m MODULE ARGUMENTS ...`, or the path of a file in place of `-m
MODULE`; LIMITS is the JSON of a `Limits`. As a module, `close_in` keeps a process that runs already from opening any
connection.

What is enforced, where the system has it; what it lacks is left out, and `offered` says which that is:

* `resource`: memory that a process may write to (`RLIMIT_DATA`; address space is no measure, since pyarrow, numba and
  JAX map far more than they use), processor time, bytes of a file, open files, no core file.
* The kernel's filter of system calls (seccomp; Linux, x86-64 and ARM64): no socket is made or connected, no io_uring;
  of a process that is `sealed` also no mount, no name space, no tracing of others, no leaving of its session, no
  module, key, clock or BPF program. It cannot be taken off again, and holds for all that the process starts.
* Landlock (Linux 5.19 and later): files are written below `writes` alone and read below `reads`, no TCP is bound or
  dialled, and no signal reaches a process outside.
* No new privileges, first to go where memory ends, and ended when its parent is.
* Python's own sockets refuse to connect, to send to an address and to look up names (an audit hook): all there is where
  the kernel has no filter.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

NO_NETWORK_VARIABLE = "CHIPLEDGER_NO_NETWORK"  # set for a process that can open no connection, and for all it starts
NO_MEMORY = ("bad_alloc", "MemoryError", "Cannot allocate memory", "failed to map", "can't start new thread")
"""What a program says that could not have the memory that it asked for."""
FIRST_TO_GO = 1000  # of -1000 to 1000: where memory ends, the system ends this process before any other
_NO_NEW_PRIVS, _DEATH_SIGNAL = 38, 1  # of prctl
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_LOAD, _IF_EQUAL, _IF_ABOVE, _RETURN = 0x20, 0x15, 0x25, 0x06  # instructions of a BPF program
_KILL, _ALLOW, _REFUSE = 0x8000_0000, 0x7FFF_0000, 0x0005_0000
_NUMBER, _ARCH, _SENDTO_ADDRESS = 0, 4, 16 + 8 * 4  # offsets in the kernel's description of a call
_X32 = 0x4000_0000  # calls of x86-64 in 32-bit guise have numbers from here on
_DIALS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname")
_SINCE_5 = {"open_tree": 428, "move_mount": 429, "fsopen": 430, "pidfd_getfd": 438, "mount_setattr": 442}  # everywhere
NETWORK = ("socket", "connect", "sendmsg", "sendmmsg", "io_uring_setup")
SEALED = (
    *("setsid", "setpgid", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "userfaultfd"),
    *("mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "mount_setattr"),
    *("unshare", "setns", "bpf", "perf_event_open", "add_key", "request_key", "keyctl", "open_by_handle_at"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon"),
    *("settimeofday", "clock_settime", "adjtimex", "acct"),
)
"""What a reader of files never asks of a kernel. `setsid` and `setpgid`: whatever it starts stays in its session, and
is ended with it."""
_MACHINES: dict[str, tuple[int, dict[str, int]]] = {  # the kernel's name for the machine, and the numbers of its calls
    "x86_64": (
        0xC000_003E,
        _SINCE_5
        | {"seccomp": 317, "sendto": 44, "socket": 41, "connect": 42, "sendmsg": 46, "sendmmsg": 307}
        | {"io_uring_setup": 425, "setsid": 112, "setpgid": 109, "ptrace": 101, "process_vm_readv": 310}
        | {"process_vm_writev": 311, "kcmp": 312, "userfaultfd": 323, "mount": 165, "umount2": 166, "pivot_root": 155}
        | {"chroot": 161, "unshare": 272, "setns": 308, "bpf": 321, "perf_event_open": 298, "add_key": 248}
        | {"request_key": 249, "keyctl": 250, "open_by_handle_at": 304, "init_module": 175, "finit_module": 313}
        | {"delete_module": 176, "kexec_load": 246, "kexec_file_load": 320, "reboot": 169, "swapon": 167}
        | {"settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "acct": 163},
    ),
    "aarch64": (
        0xC000_00B7,
        _SINCE_5
        | {"seccomp": 277, "sendto": 206, "socket": 198, "connect": 203, "sendmsg": 211, "sendmmsg": 269}
        | {"io_uring_setup": 425, "setsid": 157, "setpgid": 154, "ptrace": 117, "process_vm_readv": 270}
        | {"process_vm_writev": 271, "kcmp": 272, "userfaultfd": 282, "mount": 40, "umount2": 39, "pivot_root": 41}
        | {"chroot": 51, "unshare": 97, "setns": 268, "bpf": 280, "perf_event_open": 241, "add_key": 217}
        | {"request_key": 218, "keyctl": 219, "open_by_handle_at": 265, "init_module": 105, "finit_module": 273}
        | {"delete_module": 106, "kexec_load": 104, "kexec_file_load": 294, "reboot": 142, "swapon": 224}
        | {"settimeofday": 170, "clock_settime": 112, "adjtimex": 171, "acct": 89},
    ),
}
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # Landlock's calls, everywhere
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_MAKE_AND_REMOVE = sum(1 << n for n in range(4, 14))  # of files and folders of any kind, and moving them
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_LEAST_ABI, _TRUNCATE_ABI, _TCP_ABI, _SIGNAL_ABI = 2, 3, 4, 6  # before 2 no file could be moved to another folder
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", "/nix")
"""Where programs and what they need of the system lie."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a process may do; None: as the one that starts it. `data_bytes`: memory that it may write to; `cpu_s`: of
    each process that it starts, its own included; `file_bytes`: the largest file that it writes. `network`: whether it
    may open connections. `sealed`: whether it only reads files, so that it can do without most of the system.
    `writes`: where it may change files; `reads`: where it may read besides, beyond the system, Python and Chipledger.
    `parent`: its process id; without it this one is ended. `first_to_go`: for the kernel where memory ends."""

    data_bytes: int | None = None
    cpu_s: int | None = None
    file_bytes: int | None = None
    open_files: int | None = None
    network: bool = True
    sealed: bool = False
    writes: tuple[str, ...] | None = None
    reads: tuple[str, ...] = ()
    parent: int | None = None
    first_to_go: int | None = None

    def command(self, python: str, *program: str) -> list[str]:
        """The words that start a program under these limits: `-m MODULE ARGUMENTS`, or a file and its arguments."""
        return [python, "-P", __file__, json.dumps(asdict(self)), *program]


def enforce(limits: Limits) -> dict[str, bool]:
    """Hold this process to them from now on. What the system does not have is left out: which of them hold."""
    held = {"parent": _with_parent(limits.parent), "first to go": _first_to_go(limits.first_to_go)}
    held["memory"] = _limit(resource.RLIMIT_DATA, limits.data_bytes)
    held["processor time"] = _limit(resource.RLIMIT_CPU, limits.cpu_s)
    held["file size"] = _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    held["open files"] = _limit(resource.RLIMIT_NOFILE, limits.open_files)
    _limit(resource.RLIMIT_CORE, 0)
    held["no new privileges"] = _prctl(_NO_NEW_PRIVS, 1)
    held["files"] = limits.writes is not None and _fenced(limits)
    if not limits.network:
        sys.addaudithook(_refuse)
    refused = (*(() if limits.network else NETWORK), *(SEALED if limits.sealed else ()))
    held["system calls"] = bool(refused) and _filtered(refused)
    held["network"] = not limits.network and held["system calls"]
    return held


def close_in() -> bool:
    """Refuse every connection from now on; whether the kernel does so too. A socket that listens goes on to accept."""
    sys.addaudithook(_refuse)
    return by_kernel()


def by_kernel() -> bool:
    return _prctl(_NO_NEW_PRIVS, 1) and _filtered(NETWORK)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _DIALS:
        raise PermissionError(errno.EACCES, "this process opens no connection")


def _tried(what: Callable[[], Any]) -> bool:
    try:
        what()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _limit(which: int, most: int | None) -> bool:
    """A limit that is lower already stays."""
    if most is None:
        return False
    _, hard = resource.getrlimit(which)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    return _tried(lambda: resource.setrlimit(which, (least, least)))


def _first_to_go(score: int | None) -> bool:
    def write() -> None:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write(str(score))

    return score is not None and _tried(write)


def _with_parent(parent: int | None) -> bool:
    """End with the parent, in order where that can be: SIGTERM is how a job is told to."""
    if parent is None or not _prctl(_DEATH_SIGNAL, 15):
        return False
    if os.getppid() != parent:  # it was gone before
        os._exit(1)
    return True


def _prctl(what: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0) == 0


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _filtered(refused: Sequence[str]) -> bool:
    """Have the kernel refuse these calls; whether it does."""
    machine = _MACHINES.get(platform.machine())
    if not sys.platform.startswith("linux") or machine is None:
        return False
    arch, numbers = machine
    sendto = numbers["sendto"] if "socket" in refused else None
    code = program(arch, [numbers[name] for name in refused], sendto)
    held = ctypes.create_string_buffer(code)
    given = _Program(len(code) // 8, ctypes.cast(held, ctypes.c_void_p).value)
    system = ctypes.CDLL(None, use_errno=True)
    return system.syscall(numbers["seccomp"], _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(given)) == 0


def program(arch: int, refused: Sequence[int], sendto: int | None) -> bytes:
    """The filter: calls of another architecture end the process, those refused fail with EACCES, others pass; so does
    `sendto` without an address."""
    tail = [] if sendto is None else [(_IF_EQUAL, sendto, 0, 2), (_LOAD, _SENDTO_ADDRESS), (_IF_EQUAL, 0, 0, 1)]
    steps = len(tail) + 1  # from the last check to the refusal
    checks = [(_IF_EQUAL, number, len(refused) - i + steps - 1, 0) for i, number in enumerate(refused)]
    return b"".join(
        _step(*one)
        for one in (
            (_LOAD, _ARCH),
            (_IF_EQUAL, arch, 1, 0),
            (_RETURN, _KILL),
            (_LOAD, _NUMBER),
            (_IF_ABOVE, _X32 - 1, len(refused) + steps, 0),
            *checks,
            *tail,
            (_RETURN, _ALLOW),
            (_RETURN, _REFUSE | errno.EACCES),
        )
    )


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def landlock_abi() -> int:
    """The version of Landlock that the kernel has; 0: none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, 1))


def _fenced(limits: Limits) -> bool:
    """Have the kernel refuse files beyond `writes` and `reads`; whether it does."""
    abi = landlock_abi()
    if abi < _LEAST_ABI:
        return False
    changing = _WRITE_FILE | _MAKE_AND_REMOVE | (_TRUNCATE if abi >= _TRUNCATE_ABI else 0)
    tcp = 3 if abi >= _TCP_ABI and not limits.network else 0  # to bind, and to dial
    scoped = 2 if abi >= _SIGNAL_ABI else 0  # signals
    asked = struct.pack("=QQQ", _READING | changing, tcp, scoped)
    asked = asked[: 24 if abi >= _SIGNAL_ABI else 16 if abi >= _TCP_ABI else 8]
    system = ctypes.CDLL(None, use_errno=True)
    ruleset = system.syscall(_CREATE_RULESET, asked, len(asked), 0)
    if ruleset < 0:
        return False
    try:
        for path in {*SYSTEM, *_of_python(), *limits.reads}:
            _allow(system, ruleset, path, _READING)
        for path in {*DEVICES, *(limits.writes or ())}:
            _allow(system, ruleset, path, _READING | changing)
        return system.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _of_python() -> set[str]:
    """Where Python, what is installed for it, and Chipledger lie."""
    project = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    there = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.executable, project, *sys.path}
    there.update(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return {os.path.realpath(path) for path in there if path}


def _allow(system: Any, ruleset: int, path: str, rights: int) -> None:
    """Of what is not there nothing is allowed."""
    try:
        where = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = struct.pack("=Qi", rights if os.path.isdir(path) else rights & _OF_A_FILE, where)
        system.syscall(_ADD_RULE, ruleset, 1, rule, 0)
    finally:
        os.close(where)


def main() -> None:
    import runpy

    limits = Limits(**json.loads(sys.argv[1]))
    held = enforce(limits)
    if sys.argv[2:] == ["--held"]:
        print(json.dumps(held))
        return
    module, sys.argv[:] = sys.argv[2] == "-m", sys.argv[3:] if sys.argv[2] == "-m" else sys.argv[2:]
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
