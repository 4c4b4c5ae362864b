"""XProf for one run, in a process of its own: `python -m app.serve.xprof_child LOGDIR` with a secret on stdin.

It listens on a free port of the loopback address and prints it; who does not send the secret is refused, and from then
on it opens no connection of its own. XProf's own server would listen on all addresses. These are internal functions of
XProf, which may change: tests/app/test_xprof.py holds them against the version that is installed.
"""

import hmac
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from runs.limits import FIRST_TO_GO, Limits, close_in, enforce

SECRET_HEADER = "X-Chipledger-Xprof"


def application(logdir: str) -> Callable:
    """XProf's WSGI application over the traces below `logdir`."""
    from xprof.server import DataProvider, ProfilePluginLoader, TBContext, make_wsgi_app

    context = TBContext(logdir, DataProvider(logdir), TBContext.Flags(False))
    context.hide_capture_profile_button = True
    context.enable_tab_name_label = False
    context.src_prefix = None
    return make_wsgi_app(ProfilePluginLoader().load(context))


def guarded(app: Callable, secret: str) -> Callable:
    """The application for those who know the secret."""
    name = "HTTP_" + SECRET_HEADER.upper().replace("-", "_")

    def wrapped(environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        if not hmac.compare_digest(environ.get(name, "").encode(), secret.encode()):
            start_response("403 Forbidden", [("Content-Type", "text/plain")])
            return [b"Forbidden"]
        return app(environ, start_response)

    return wrapped


def _end_with_parent() -> None:
    """The parent keeps our stdin open for as long as it lives."""
    sys.stdin.read()
    os._exit(0)


def main(logdir: str) -> None:
    enforce(Limits(first_to_go=FIRST_TO_GO))
    secret = sys.stdin.readline().strip()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from cheroot import wsgi

    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    server = wsgi.Server(("127.0.0.1", port), guarded(application(logdir), secret), numthreads=4)
    server.prepare()
    close_in()
    print(port, flush=True)
    server.serve()


if __name__ == "__main__":
    main(sys.argv[1])
