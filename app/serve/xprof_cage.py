"""Keeps a process from opening any connection: XProf holds a gRPC client that would dial whatever host it is told.

What is enforced, from the moment `close_in` returns, in all threads of the process and all that it starts:

* On Linux (x86-64, ARM64) the kernel refuses to make a socket, to connect one, to send to an address and to set up an
  io_uring (a seccomp filter, which cannot be taken off again): no TCP, no UDP, no name look-up, in Python and C++
  alike. A socket that listens already goes on to accept.
* Everywhere Python's own sockets refuse to connect, to send to an address and to look up names (an audit hook). Where
  the kernel has no such filter, this is all: C++ is then held by the list of routes alone (`xprof_routes`).
"""

import ctypes
import errno
import platform
import struct
import sys
from typing import Any

_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _ALL_THREADS = 38, 1, 1
_LOAD, _IF_EQUAL, _IF_ABOVE, _RETURN = 0x20, 0x15, 0x25, 0x06  # instructions of a BPF program
_KILL, _ALLOW, _REFUSE = 0x8000_0000, 0x7FFF_0000, 0x0005_0000
_NUMBER, _ARCH, _SENDTO_ADDRESS = 0, 4, 16 + 8 * 4  # offsets in the kernel's description of a call
_X32 = 0x4000_0000  # calls of x86-64 in 32-bit guise have numbers from here on
# machine: its name for the kernel, then its numbers of seccomp, sendto, and of what is refused: socket, connect,
# sendmsg, sendmmsg, io_uring_setup
_MACHINES = {
    "x86_64": (0xC000_003E, 317, 44, (41, 42, 46, 307, 425)),
    "aarch64": (0xC000_00B7, 277, 206, (198, 203, 211, 269, 425)),
}
_DIALS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def close_in() -> bool:
    """Refuse every connection from now on; whether the kernel does so too."""
    sys.addaudithook(_refuse)
    return _by_kernel()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _DIALS:
        raise PermissionError(errno.EACCES, "this process opens no connection")


def _by_kernel() -> bool:
    machine = _MACHINES.get(platform.machine())
    if not sys.platform.startswith("linux") or machine is None:
        return False
    code = program(*machine)
    held = ctypes.create_string_buffer(code)
    given = _Program(len(code) // 8, ctypes.cast(held, ctypes.c_void_p).value)
    system = ctypes.CDLL(None, use_errno=True)
    if system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return system.syscall(machine[1], _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(given)) == 0


def program(arch: int, seccomp: int, sendto: int, refused: tuple[int, ...]) -> bytes:
    """The filter: calls of another architecture end the process, those refused fail with EACCES, others pass."""
    checks = [_step(_IF_EQUAL, number, len(refused) - i + 3, 0) for i, number in enumerate(refused)]
    return b"".join(
        (
            _step(_LOAD, _ARCH),
            _step(_IF_EQUAL, arch, 1, 0),
            _step(_RETURN, _KILL),
            _step(_LOAD, _NUMBER),
            _step(_IF_ABOVE, _X32 - 1, len(refused) + 4, 0),
            *checks,
            _step(_IF_EQUAL, sendto, 0, 2),
            _step(_LOAD, _SENDTO_ADDRESS),
            _step(_IF_EQUAL, 0, 0, 1),
            _step(_RETURN, _ALLOW),
            _step(_RETURN, _REFUSE | errno.EACCES),
        )
    )


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
