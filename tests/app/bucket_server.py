"""A bucket of Google Cloud Storage as its JSON API tells it, on loopback: enough of it to list and to read."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


@contextlib.contextmanager
def bucket(name: str, objects: dict[str, bytes]) -> Iterator[str]:
    """The address of a server that has one bucket."""

    def about(key: str) -> dict:
        return {
            "kind": "storage#object",
            "name": key,
            "bucket": name,
            "size": str(len(objects[key])),
            "generation": "1",
        }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):  # noqa: N802 - as the library names it
            split = urlsplit(self.path)
            asked = {key: values[0] for key, values in parse_qs(split.query).items()}
            place, _, key = split.path.partition(f"/b/{name}/o")
            key = unquote(key.removeprefix("/"))
            if not place:
                return self.tell(404, {})
            if not key:
                return self.tell(200, self.listed(asked.get("prefix", ""), asked.get("delimiter", "")))
            if key not in objects:
                return self.tell(404, {"error": {"code": 404, "message": "No such object"}})
            if asked.get("alt") != "media":
                return self.tell(200, about(key))
            return self.content(objects[key])

        def listed(self, prefix, delimiter):
            found = [key for key in objects if key.startswith(prefix)]
            cut = [key[len(prefix) :].partition(delimiter) for key in found] if delimiter else []
            folders = sorted({prefix + head + delimiter for head, slash, _ in cut if slash})
            items = [key for key in found if not delimiter or delimiter not in key[len(prefix) :]]
            return {"kind": "storage#objects", "items": [about(key) for key in items], "prefixes": folders}

        def content(self, data):
            first, last = 0, len(data) - 1
            if asked := self.headers.get("Range"):
                begin, _, end = asked.removeprefix("bytes=").partition("-")
                first, last = int(begin), min(int(end or last), last)
            part = data[first : last + 1]
            self.send_response(206 if asked else 200)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)

        def tell(self, status, told):
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
