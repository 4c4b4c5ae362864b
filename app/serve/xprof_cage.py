"""Keeps a process from opening any connection: XProf holds a gRPC client that would dial whatever host it is told.

What is enforced, from the moment `close_in` returns, in all threads of the process and all that it starts, stands in
`runs/limits.py`; where the kernel has no filter of system calls, C++ is held by the list of routes alone
(`xprof_routes`).
"""

from runs.limits import by_kernel as _by_kernel
from runs.limits import close_in

__all__ = ["_by_kernel", "close_in"]
