"""Servers on loopback that speak as clouds do: moto as S3, Azurite as Azure. A missing one fails in CI, and skips
elsewhere with a sentence."""

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from http.server import ThreadingHTTPServer

from tests.app.serving import free_port

AZURITE = "devstoreaccount1"  # the account that every Azurite has, with a key that its documentation tells
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


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


@functools.cache
def google_server() -> Server | str:
    """The emulator of Google Cloud Storage from PyPI, and before it the one condition that it does not know: an object
    is created only where none is (`ifGenerationMatch=0`)."""
    try:
        import gcsfs  # noqa: F401
        from gcp_storage_emulator import server as emulator
        from gcp_storage_emulator.handlers import objects
        from gcp_storage_emulator.storage import Storage
    except ImportError as e:
        return missing(
            f"`pip install gcp-storage-emulator gcsfs` for tests of stores in Google's ({e.name} is missing)"
        )
    alone = threading.Lock()

    def insert(request, response, storage, *given, **named):
        name = request.query.get("name", [None])[0] or request.data["meta"]["name"]
        if request.query.get("ifGenerationMatch") == ["0"] and _is(storage, request.params["bucket_name"], name):
            response.status = HTTPStatus.PRECONDITION_FAILED
            response.json({"error": {"code": 412, "message": "conditionNotMet"}})
            return
        objects.insert(request, response, storage, *given, **named)

    class OneByOne(emulator.Router):
        """It looks and writes in two steps."""

        def handle(self, method):
            with alone:
                super().handle(method)

    for _, methods in emulator.HANDLERS:
        if methods.get("POST") is objects.insert:
            methods["POST"] = insert
    emulator.Router = OneByOne
    storage = Storage(use_memory_fs=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(emulator.RequestHandler, storage))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    atexit.register(server.shutdown)
    address = f"http://127.0.0.1:{server.server_port}"
    environment = {"STORAGE_EMULATOR_HOST": address, "GOOGLE_CLOUD_PROJECT": "test"}

    def make(name: str) -> None:
        told = json.dumps({"name": name}).encode()
        head = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{address}/storage/v1/b", told, head), timeout=10).close()

    return Server(address, environment, make)


def _is(storage, bucket: str, name: str) -> bool:
    from gcp_storage_emulator.exceptions import NotFound

    try:
        storage.get_file_obj(bucket, name)
    except NotFound:
        return False
    return True


@functools.cache
def azure_server() -> Server | str:
    """Azurite, Microsoft's own, where `azurite-blob` is on the search path: it takes 240 MB of Node.js, so that nothing
    here installs it."""
    found = shutil.which("azurite-blob")
    if found is None or importlib.util.find_spec("adlfs") is None:
        return "`npm install --global azurite` and `pip install adlfs` for tests of stores in Azure"
    folder, port = tempfile.mkdtemp(prefix="azurite-"), free_port()
    words = [found, "--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(port)]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(lambda: (process.terminate(), process.wait(10), shutil.rmtree(folder, ignore_errors=True)))
    address = f"http://127.0.0.1:{port}/{AZURITE}"
    told = f"DefaultEndpointsProtocol=http;AccountName={AZURITE};AccountKey={AZURITE_KEY};BlobEndpoint={address};"

    def make(name: str) -> None:
        from azure.storage.blob import BlobServiceClient

        BlobServiceClient.from_connection_string(told).create_container(name)

    until = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        assert process.poll() is None and time.monotonic() < until, "Azurite does not start"
        time.sleep(0.1)
    return Server(address, {"AZURE_STORAGE_CONNECTION_STRING": told}, make)
