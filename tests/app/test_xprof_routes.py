"""What may be asked of XProf, and that nothing asked of it makes it dial anybody."""

import gzip
import http.client
import importlib.util
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from app.serve.xprof import APP
from app.serve.xprof_child import SECRET_HEADER
from app.serve.xprof_routes import FILES, PAGES, PARAMETERS, REFUSED, target
from tests.app.serving import environment
from tests.app.test_xprof import needs_xprof, profiled, served  # noqa: F401

HERE = {"s"}
SPELLINGS = (
    "/capture_profile",
    "/capture_profile/",
    "//capture_profile",
    "/capture_profile//",
    "/./capture_profile",
    "/capture_profile/.",
    "/capture%5Fprofile",
    "/capture%255Fprofile",
    "/CAPTURE_PROFILE",
    "/runs/../capture_profile",
    "/data/%2e%2e/capture_profile",
    "/capture_profile%2F",
    "/capture_profile%00",
    "/capture_profile;x",
    "/overview_page/../capture_profile",
    "/capture_profile%3Fx",
    "/\\capture_profile",
    "/capture_profile/x",
)


@pytest.mark.parametrize(
    "path",
    [
        *SPELLINGS,
        "/local",
        "/local/",
        "/generate_cache",
        "/data/",
        "//data",
        "/Data",
        "/data/.",
        "/runs/",
        "x",
        "x/data",
        "/static/../index.html",
        "/server.py",
        "/bundle.js/",
        "/index.html/..",
    ],
)
def test_a_route_that_the_front_end_does_not_ask_is_not_asked(path):
    assert target(path, [], HERE) is None


@pytest.mark.parametrize(
    "query",
    [
        [("session_path", "/etc")],
        [("run_path", "/")],
        [("service_addr", "h:1")],
        [("run", "s"), ("run", "/etc/s")],
        [("run", "/etc/s")],
        [("run", "../s")],
        [("run", "other")],
        [("host", "../x")],
        [("hosts", "a,/b")],
        [("tag", "a\nb")],
        [("module_name", "\\\\h\\x")],
        [("run", "s"), ("tag", "x" * 3000)],
        [("worker_list", "")],
        [("event_name", "../../x")],
        [("session_path", "")],
        [("tag", "a"), ("tag", "b")],
    ],
)
def test_a_parameter_that_is_unknown_repeated_or_leads_elsewhere_is_refused(query):
    assert target("/data", query, HERE) is None


@pytest.mark.parametrize("path", ["/data", "/data_csv", "/hosts", "/run_tools", "/module_list"])
def test_what_is_asked_of_no_run_is_refused(path):
    for query in ([], [("tag", "overview_page")], [("run", ""), ("tag", "overview_page")]):
        assert target(path, query, HERE) is None
    assert target(path, [("run", "s")], HERE) == f"{path}?run=s"


def test_what_the_front_end_asks_is_put_together_anew():
    assert target("", [("x", "y")], HERE) == target("/", [], HERE) == "/"
    assert target("/overview_page", [("run", "anything")], HERE) == "/", "the browser reads the query, XProf does not"
    assert target("/kernel_viewer/s.1", [], HERE) == "/"
    assert target("/trace_viewer_index.html", [("trace_data_url", "/x")], HERE) == "/trace_viewer_index.html"
    asked = [
        ("run", "s"),
        ("tag", "trace_viewer@"),
        ("event_name", "a/b&run=x"),
        ("session_id", "/s"),
        ("host", ""),
        ("new_backend", "false"),
        ("Run", "../x"),
        ("new_backend", "true"),
    ]
    assert target("/data", asked, HERE) == "/data?run=s&tag=trace_viewer%40&event_name=a%2Fb%26run%3Dx"


@needs_xprof
def test_the_list_is_that_of_the_installed_front_end():
    static = Path(importlib.util.find_spec("xprof").origin).parent / "static"
    assert {f"/{p.name}" for p in static.iterdir()} == FILES
    bundle = (static / "bundle.js").read_text()
    routes = set(re.findall(r'[A-Za-z]+\+"(/[a-z_]+)"', bundle[bundle.index('"/data/plugin/"') :][:800]))
    assert routes - {"/capture_profile"} == PARAMETERS.keys()
    pages = set(re.findall(r'\{path:"([^"*]+)"', bundle)) - {"empty"}
    assert {p.partition("/")[0] for p in pages} == PAGES
    plugin = (static.parent / "profile_plugin.py").read_text()
    read = set(re.findall(r"args\.get\(\s*'(\w+)'", plugin)) | set(re.findall(r"request\.args, '(\w+)'", plugin))
    read |= set(re.findall(r"params\.get\('(\w+)'", plugin))
    assert PARAMETERS["/data"] | REFUSED == read and not REFUSED & PARAMETERS["/data"]


class Listener:
    """A port of the loopback address that counts who connects to it."""

    def __enter__(self):
        self.seen = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count)
        self._thread.start()
        return self

    @property
    def address(self):
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _count(self):
        while not self._over.is_set():
            try:
                self._socket.accept()[0].close()
                self.seen += 1
            except TimeoutError:
                pass

    def __exit__(self, *_):
        self._over.wait(0.3)  # who still dials is seen
        self._over.set()
        self._thread.join()
        self._socket.close()


@needs_xprof
def test_nothing_that_is_asked_makes_it_dial(place, tmp_path, served):  # noqa: F811
    client, mounted = served
    run = profiled(place, tmp_path / "in", ["s/vm.xplane.pb"])
    at = f"/xprof/{run.run_id}{APP}"
    with Listener() as heard:
        capture = f"service_addr={heard.address}&duration=50&worker_list={heard.address}&num_retry=0"
        for path in SPELLINGS:
            assert client.get(f"{at}{path}?{capture}").status_code in (403, 404), path
        assert not mounted.servers._children, "nothing is started for what is refused"
        for path in ("/data?run=s&tag=overview_page&", "/runs?", "/run_tools?run=s&", "/hosts?"):
            for dial in (capture, f"session_path=http://{heard.address}/x", f"run_path=gs://{heard.address}/x"):
                assert client.get(f"{at}{path}{dial}").status_code == 403
        for outside in (f"//{heard.address}/x", str(tmp_path / "in" / "s"), f"http://{heard.address}/x"):
            assert client.get(f"{at}/run_tools?run={quote(outside, safe='')}").status_code == 403
        child = mounted.servers.child(run)
        for path in ("/capture_profile", "/capture_profile/"):  # the second wall: as if it had been let through
            connection = http.client.HTTPConnection("127.0.0.1", child.port, timeout=60)
            connection.request("GET", f"{APP}{path}?{capture}", headers={SECRET_HEADER: child.secret})
            assert b"error" in gzip.decompress(connection.getresponse().read())
            connection.close()
        assert client.get(f"{at}/runs").json() == ["s"], "and it goes on"
    assert heard.seen == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Referer": "http://evil.example/x"},
        {"Origin": "null"},
        {"Referer": "http://["},
    ],
)
def test_a_page_of_another_site_starts_nothing(place, tmp_path, served, headers):  # noqa: F811
    client, mounted = served
    run = profiled(place, tmp_path / "in", ["s/vm.xplane.pb"])
    for path in (f"/xprof/{run.run_id}", f"/xprof/{run.run_id}{APP}/data?run=s&tag=overview_page"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 403 and f"href='{path.partition('?')[0]}'" in answer.text
    assert not mounted.servers._children


def test_a_process_that_is_closed_in_opens_no_connection():
    code = """
import socket, sys
from app.serve.xprof_cage import _by_kernel, close_in
held = socket.create_server(("127.0.0.1", 0))
ours, theirs = socket.socket(), socket.create_connection(held.getsockname())
by_kernel = (_by_kernel if sys.argv[1] == "kernel" else close_in)()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM) if not by_kernel else None
tries = [lambda: socket.create_connection(held.getsockname()), lambda: ours.connect(held.getsockname()),
         lambda: socket.getaddrinfo("localhost.example", 80)]
tries += [] if udp is None else [lambda: udp.sendto(b"x", held.getsockname())]
for number, attempt in enumerate(tries):
    try:
        attempt()
        print("opened", number)
    except OSError:
        pass
taken, _ = held.accept()
theirs.sendall(b"on")
print(taken.recv(2).decode(), by_kernel)
"""
    for how in ("kernel", "both"):
        done = subprocess.run(
            [sys.executable, "-c", code, how], capture_output=True, text=True, timeout=60, env=environment()
        )
        assert done.stderr == "" and done.stdout.endswith(("on True\n", "on False\n"))
        if how == "both" or done.stdout.endswith("on True\n"):  # a kernel may not have it, or a container forbid it
            assert "opened" not in done.stdout
