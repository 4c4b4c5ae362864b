"""How the dashboard is started: Streamlit's pages and the HTTP API in one process, on the loopback address."""

import contextlib
import hmac
import os
import resource
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.serve.bounds import Working
from errors import InputError
from errors import format as fmt

if TYPE_CHECKING:
    from app.workspace import Workspace

DEFAULT_PORT = 8501
PORTS_TRIED = 50
MOST_FILES = 1 << 16
COOKIE_VARIABLE = "STREAMLIT_SERVER_COOKIE_SECRET"
STANDARD = 2  # the last of the descriptors that every process is given

SETTINGS: dict[str, Any] = {  # the same stand in .streamlit/config.toml for who starts Streamlit by hand
    "browser.gatherUsageStats": False,
    "client.disableDataExport": True,  # its CSV has cells that a spreadsheet runs; `components/downloads.py` has ours
    "client.showErrorDetails": "none",
    "client.toolbarMode": "minimal",
    "runner.postScriptGC": False,  # `settled.py` says what is done instead
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.maxUploadSize": 1,
    "theme.metricValueFontSize": "1.6rem",
    "theme.paddingTop": "1rem",
    "theme.light.primaryColor": "#0B7A75",
    "theme.dark.primaryColor": "#3DB8AF",
}


def serve(
    host: str,
    port: int | None,
    *,
    open_browser: bool = False,
    page: str = "",
    rate_limits: str = "auto",
    with_demo: bool = False,
    work: Working | None = None,
) -> None:
    """Serve until stopped. Without a port the first free one from 8501 on is taken. `page`: the path that is opened.
    `rate_limits`: `on`, `off`, or `auto`, which is on where other machines can ask. `with_demo`: load the bundled runs
    meanwhile. `work`: what jobs may take, and whether this process runs them.

    Raises InputError where the address or the port cannot be used.
    """
    from app.workspace import workspace

    port = _free_port(host, port)
    _many_files()
    one_cookie_key(workspace())
    import streamlit as st
    from starlette.middleware import Middleware
    from streamlit.runtime.pages_manager import PagesManager

    from app.capture.addresses import allowed
    from app.identity.login import Signing
    from app.identity.open_to_all import SAID
    from app.library.upkeep import upkeep
    from app.mcp.mounted import Mounted
    from app.operations import logs
    from app.operations.limits import Limits
    from app.operations.metrics import figures_of
    from app.operations.policies import Policies
    from app.operations.readiness import Readiness
    from app.operations.routes import Operations, metrics_token
    from app.operations.watching import Watched
    from app.operations.with_demo import loading_demo
    from app.serve.api import Api
    from app.serve.assets import Assets
    from app.serve.front import front_routes
    from app.serve.guard import Guard, is_loopback
    from app.serve.here import announced
    from app.serve.identifying import Identifying
    from app.serve.identity import door_of_this_server
    from app.serve.jobs import Jobs
    from app.serve.manual import Manual
    from app.serve.older import older_routes
    from app.serve.perfetto_viewer import PerfettoViewer
    from app.serve.settled import few_arenas, settled
    from app.serve.stopping import heard
    from app.serve.xprof import Xprof

    few_arenas()
    work = work or Working()
    jobs, xprof, agents = Jobs(workspace(), **work.of_jobs()), Xprof(workspace()), Mounted(workspace())
    door = door_of_this_server(workspace())
    readiness = Readiness(workspace())
    figures, token = figures_of(workspace(), jobs.by_state, readiness), metrics_token()
    limited = rate_limits == "on" or (rate_limits == "auto" and (door is not None or not is_loopback(host)))

    beside = [
        *Identifying(workspace(), door).routes(),
        *Operations(workspace(), figures, readiness, token).routes(),
    ]

    url = f"http://{'localhost' if host in ('0.0.0.0', '::') else f'[{host}]' if ':' in host else host}:{port}"

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        _keep_port()
        print(f"Chipledger is at {url}{page}", flush=True)
        if not is_loopback(host) and door is None:
            print(f"{SAID}.", flush=True)
        if named := allowed():
            print(
                f"Whoever can reach it can record jobs at {fmt.count(len(named), 'address', 'addresses')}.", flush=True
            )
        if open_browser:
            with contextlib.suppress(Exception):  # no browser is no reason to stop serving
                webbrowser.open(url + page)
        jobs.open()
        async with agents.running():
            demo = loading_demo(workspace().store.root) if with_demo else contextlib.nullcontext()
            root, stopped = workspace().store.root, heard(jobs.stop, work.grace_s)
            with announced(root, url), upkeep(workspace()), demo, settled(), stopped:
                yield
        await jobs.close()
        await xprof.close()

    # Streamlit takes a folder named `pages` for its older kind of app until st.navigation has run once: the first
    # visitor of a permalink would get the page without the dashboard around it
    PagesManager.uses_pages_directory = False
    application = st.App(
        Path(__file__).parents[1] / "main.py",
        routes=[
            *Signing(door).routes(),
            *beside,
            *Api(workspace(), jobs, beside).routes(),
            *xprof.routes(),
            *agents.routes(),
            *Manual().routes(),
            *PerfettoViewer().routes(),
            *older_routes(),
            *front_routes(),
        ],
        middleware=[
            Middleware(Watched, figures=figures, all_told=logs.kind_asked() == logs.AS_JSON),
            Middleware(Guard, loopback=is_loopback(host), door=door),
            Middleware(Limits, figures=figures, on=limited),
            Middleware(Policies),
            Middleware(Assets),
        ],
        lifespan=lifespan,
    )
    # browser.serverAddress is named so that Streamlit never asks the network for this machine's address
    with logs.logging_to(sys.stderr, logs.kind_asked()):
        application.run(
            config={
                **SETTINGS,
                "server.address": host,
                "server.port": port,
                "browser.serverAddress": urlsplit(url).hostname,
            }
        )


def one_cookie_key(place: "Workspace") -> None:
    """Have Streamlit sign its cookies with one key at all servers of a store, where that may have several: a browser
    may come to another. It takes it from the environment alone."""
    from app.identity.key import key_of

    if isinstance(place.registry.at, Path) or COOKIE_VARIABLE in os.environ:
        return
    with contextlib.suppress(InputError):  # a store that cannot be written: each server has its own
        key = key_of(place.store.root)
        os.environ[COOKIE_VARIABLE] = hmac.new(key, b"cookies of pages", "sha256").hexdigest()


def _many_files() -> None:
    """Each connection is an open file: as many as the system lets this process have. A few hundred browsers that are
    left open would else keep everybody else out."""
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _keep_port() -> None:
    """Nothing that is open here is handed on to jobs. One that outlives a killed server would else hold its port, where
    no server could be started again."""
    for name in os.listdir("/dev/fd"):
        if int(name) > STANDARD:
            with contextlib.suppress(OSError):  # it was closed meanwhile
                os.set_inheritable(int(name), False)


def _free_port(host: str, port: int | None) -> int:
    """The port asked for (0: any that is free), else the first free one from the default on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (port,) if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED):
        try:
            with socket.create_server((host, candidate), family=family) as held:
                return held.getsockname()[1]
        except OSError as e:
            reason = e.strerror or str(e)
    where = f"{host}:{DEFAULT_PORT if port is None else port}"
    raise InputError(f"cannot listen there ({reason})", where=where, advice="Give another --port or --host.")
