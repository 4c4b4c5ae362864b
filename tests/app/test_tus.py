"""The protocol tus 1.0.0 as a server speaks it: its statuses and headers, and clients that lie, repeat and vanish."""

import base64
import hashlib
import http.client
import os
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from app.serve.upload_room import LIMIT_VARIABLE
from tests.app.serving import get, request, serving
from tests.app.test_jobs import ended
from tests.collectors.ingesting import LOG

VERSION = {"Tus-Resumable": "1.0.0"}
OCTETS = {**VERSION, "Content-Type": "application/offset+octet-stream"}
LIMIT = 40_000_000


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def server(store):
    with serving(store, **{LIMIT_VARIABLE: str(LIMIT)}) as address:
        yield address


@pytest.fixture
def upload(server):
    return request("POST", f"{server}/api/uploads")[1]["upload_id"]


def asked(server, method, path, headers=VERSION, body=None):
    """(status, headers with small names, text) of one request."""
    to = urlsplit(server)
    connection = http.client.HTTPConnection(to.hostname, to.port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers))
        got = connection.getresponse()
        return got.status, {k.lower(): v for k, v in got.getheaders()}, got.read().decode()
    finally:
        connection.close()


def in_base64(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def begun(server, upload, name, n_bytes, **more):
    metadata = ",".join(f"{k} {in_base64(v)}" for k, v in {"filename": name, **more}.items())
    headers = {**VERSION, "Upload-Length": str(n_bytes), "Upload-Metadata": metadata}
    status, told, text = asked(server, "POST", f"/api/uploads/{upload}/files", headers)
    assert status == 201, text
    return told["location"]


def patch(server, at, offset, body, **more):
    return asked(server, "PATCH", at, {**OCTETS, "Upload-Offset": str(offset), **more}, body)


def head(server, at):
    return asked(server, "HEAD", at)


def test_a_file_in_pieces_becomes_a_run(server, upload):
    data, name = LOG.encode(), "logs/train.log"
    at = begun(server, upload, name, len(data), sha256=hashlib.sha256(data).hexdigest())
    status, told, text = patch(
        server, at, 0, data[:10], **{"Upload-Checksum": f"sha1 {in_base64(hashlib.sha1(data[:10]).digest())}"}
    )
    assert (status, text, told["upload-offset"], told["tus-resumable"]) == (204, "", "10", "1.0.0")
    status, told, _ = head(server, at)
    assert (status, told["upload-offset"], told["upload-length"]) == (200, "10", str(len(data)))
    assert told["cache-control"] == "no-store" and "repr-digest" not in told
    status, told = request("POST", f"{server}/api/ingest", {"upload_id": upload})
    assert status == 400 and "1 file of the upload did not arrive whole, such as 'logs/train.log'" in told["error"]
    status, told, _ = patch(server, at, 10, data[10:])
    digest = f"sha-256=:{in_base64(hashlib.sha256(data).digest())}:"
    assert (status, told["upload-offset"], told["repr-digest"]) == (204, str(len(data)), digest)
    assert head(server, at)[1]["repr-digest"] == digest
    [file] = get(f"{server}/api/uploads/{upload}/files")[1]["files"]
    assert (file["name"], file["whole"], file["sha256"]) == (name, True, hashlib.sha256(data).hexdigest())
    assert ended(server, {"upload_id": upload})["state"] == "done"
    assert begun(server, upload, name, len(data), sha256=hashlib.sha256(data).hexdigest()) == at


def test_what_is_spoken_is_told(server, upload):
    status, told, _ = asked(server, "OPTIONS", f"/api/uploads/{upload}/files", {})
    assert status == 204 and told["tus-version"] == "1.0.0" and told["tus-max-size"] == str(LIMIT)
    assert told["tus-extension"].split(",") == ["creation", "creation-with-upload", "checksum", "termination"]
    assert told["tus-checksum-algorithm"].split(",") == ["sha256", "sha1"]


def test_a_small_file_comes_with_its_beginning_and_an_empty_one_is_whole_at_once(server, upload):
    metadata = f"filename {in_base64('a.log')}"
    headers = {**OCTETS, "Upload-Length": "3", "Upload-Metadata": metadata}
    status, told, _ = asked(server, "POST", f"/api/uploads/{upload}/files", headers, b"abc")
    assert (status, told["upload-offset"]) == (201, "3") and "repr-digest" in told
    status, told, _ = head(server, begun(server, upload, "empty", 0))
    assert (status, told["upload-offset"], told["upload-length"]) == (200, "0", "0") and "repr-digest" in told


BEGIN = {**VERSION, "Upload-Length": "3", "Upload-Metadata": f"filename {in_base64('a')}"}


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ({"Upload-Length": "-1"}, 400, "expected a whole number from 0"),
        ({"Upload-Length": "1e9"}, 400, "upload-length is '1e9'"),
        ({"Upload-Length": "9" * 19}, 400, "upload-length"),
        ({"Upload-Length": "9" * 5000}, 400, "upload-length"),
        ({"Upload-Length": str(1 << 62)}, 413, "more than"),
        ({"Upload-Length": str(LIMIT + 1)}, 413, "more than 40.0 MB in one upload"),
        ({"Upload-Length": ""}, 400, "upload-length is ''"),
        ({"Upload-Defer-Length": "1"}, 400, "no header 'upload-defer-length' here; expected one of tus-resumable"),
        ({"Upload-Concat": "partial"}, 400, "no header 'upload-concat'"),
        ({"X-HTTP-Method-Override": "DELETE"}, 400, "no header 'x-http-method-override'"),
        ({"Tus-Resumable": "0.2.2"}, 412, "expected 1.0.0"),
        ({"Tus-Resumable": ""}, 412, "expected 1.0.0"),
        ({"Upload-Metadata": ""}, 400, "no file's name"),
        ({"Upload-Metadata": "filename"}, 400, "no file's name"),
        ({"Upload-Metadata": "filename !!"}, 400, "expected UTF-8 in Base64"),
        ({"Upload-Metadata": f"filename {in_base64(bytes([255]))}"}, 400, "expected UTF-8 in Base64"),
        ({"Upload-Metadata": f"filename {in_base64('a')},chips {in_base64('4')}"}, 400, "no metadata 'chips' here"),
        ({"Upload-Metadata": f"filename {in_base64('a')},filename {in_base64('b')}"}, 400, "given twice"),
        ({"Upload-Metadata": f"filename {in_base64('a')},sha256 {in_base64('abc')}"}, 400, "is no SHA-256"),
        ({"Upload-Metadata": f"filename {in_base64('..')}"}, 400, "cannot be a file's name"),
        ({"Upload-Metadata": f"filename {in_base64('a' * 9000)}"}, 400, "no file's name"),
    ],
)
def test_a_beginning_that_cannot_be_is_refused_in_a_sentence(server, upload, more, status, said):
    got, _, text = asked(server, "POST", f"/api/uploads/{upload}/files", {**BEGIN, **more})
    assert (got, said in text) == (status, True), text
    assert get(f"{server}/api/uploads/{upload}/files")[1]["files"] == []


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ({"Upload-Offset": "1"}, 409, "0 bytes of the file are there"),
        ({"Upload-Offset": "-1"}, 400, "upload-offset is '-1'"),
        ({"Upload-Offset": "x"}, 400, "upload-offset"),
        ({"Upload-Offset": "9" * 30}, 400, "upload-offset"),
        ({"Content-Type": "text/plain"}, 415, "expected application/offset+octet-stream"),
        ({"Upload-Checksum": "md5 " + in_base64(b"0" * 16)}, 400, "expected sha256 or sha1"),
        ({"Upload-Checksum": "sha256 x"}, 400, "is no sum"),
        ({"Upload-Checksum": "sha256 " + in_base64(b"0" * 32)}, 460, "does not have the sum"),
        ({"Upload-Length": "3"}, 400, "no header 'upload-length' here"),
        ({"Tus-Resumable": "2.0.0"}, 412, "Tus-Resumable"),
    ],
)
def test_a_piece_that_cannot_be_is_refused_and_nothing_of_it_is_kept(server, upload, more, status, said):
    at = begun(server, upload, "a", 3)
    got, _, text = asked(server, "PATCH", at, {**OCTETS, "Upload-Offset": "0", **more}, b"abc")
    assert (got, said in text) == (status, True), text
    assert head(server, at)[1]["upload-offset"] == "0"
    assert patch(server, at, 0, b"abc")[0] == 204


def test_more_than_announced_and_the_same_again_are_refused(server, upload):
    at = begun(server, upload, "a", 3)
    assert patch(server, at, 0, b"abcd")[0] == 400
    assert "more than the 3 bytes announced" in get(f"{server}/api/uploads/{upload}")[1]["refused"]
    assert patch(server, at, 0, b"ab")[0] == 204 and patch(server, at, 0, b"ab")[0] == 409
    assert patch(server, at, 2, b"c")[0] == 204 and patch(server, at, 2, b"c")[0] == 409
    assert patch(server, at, 3, b"")[0] == 204


def test_a_file_that_is_given_up_is_gone_and_one_that_is_whole_stays(server, upload, store):
    at = begun(server, upload, "a", 3)
    patch(server, at, 0, b"ab")
    assert asked(server, "DELETE", at)[0] == 204 and head(server, at)[0] == 404 and patch(server, at, 2, b"c")[0] == 404
    at = begun(server, upload, "a", 3)
    patch(server, at, 0, b"abc")
    assert asked(server, "DELETE", at)[0] == 400
    assert request("DELETE", f"{server}/api/uploads/{upload}")[0] == 200 and head(server, at)[0] == 404
    assert not (store / "uploads" / upload).exists()


@pytest.mark.parametrize("sent", [0, 1, 65_535, 65_536, 1_048_575, 1_048_577, 2_999_999])
def test_a_sender_that_promises_more_than_it_sends_goes_on_from_what_is_there(server, upload, sent):
    data = os.urandom(3_000_000)
    at, to = begun(server, upload, "a", len(data), sha256=hashlib.sha256(data).hexdigest()), urlsplit(server)
    with socket.create_connection((to.hostname, to.port)) as half:
        lines = [f"PATCH {at} HTTP/1.1", f"Host: {to.netloc}", f"Content-Length: {len(data)}", "Upload-Offset: 0"]
        lines += [f"{name}: {value}" for name, value in OCTETS.items()]
        half.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + data[:sent])
    deadline = time.monotonic() + 30
    least, status = max(0, sent - (1 << 20)), 423
    while status in (423, 409) and time.monotonic() < deadline:  # the first may still be on its way, or not yet begun
        now = head(server, at)
        there = int(now[1]["upload-offset"]) if now[0] == 200 else -1
        if there >= least:
            status = patch(server, at, there, data[there:])[0]
        time.sleep(0.05)
    assert status == 204 and least <= there <= sent
    assert "repr-digest" in head(server, at)[1]


def test_two_senders_of_one_file_at_once_make_one_file(server, upload, store):
    data = os.urandom(4_000_000)
    at = begun(server, upload, "a", len(data), sha256=hashlib.sha256(data).hexdigest())

    def sender():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status, told, _ = head(server, at)
            if status == 200 and "repr-digest" in told:
                return
            if status == 200:
                offset = int(told["upload-offset"])
                part = data[offset : offset + 300_000]
                total = f"sha256 {in_base64(hashlib.sha256(part).digest())}"
                assert patch(server, at, offset, part, **{"Upload-Checksum": total})[0] in (204, 409, 423)

    threads = [threading.Thread(target=sender) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert (store / "uploads" / upload / "files/a").read_bytes() == data
    [file] = get(f"{server}/api/uploads/{upload}/files")[1]["files"]
    assert file["whole"]


@pytest.mark.parametrize("key", ["", "x", "0" * 63, "0" * 65, "G" * 64, 1, [], {}, True, "\u0660" * 64])
def test_a_key_that_is_none_is_refused(server, key):
    status, told = request("POST", f"{server}/api/uploads", {"key": key})
    assert status == 400 and "is no key; expected 64 hexadecimal digits" in told["error"]


def test_the_same_key_is_the_same_upload_and_after_it_was_discarded_a_new_one(server):
    key = {"key": "a" * 64}
    upload_id = request("POST", f"{server}/api/uploads", key)[1]["upload_id"]
    begun(server, upload_id, "a", 3)
    assert request("POST", f"{server}/api/uploads", key)[1]["upload_id"] == upload_id
    assert request("DELETE", f"{server}/api/uploads/{upload_id}")[0] == 200
    assert request("POST", f"{server}/api/uploads", key)[1]["upload_id"] == upload_id
    assert get(f"{server}/api/uploads/{upload_id}/files")[1] == {"files": []}
    status, told = request("POST", f"{server}/api/uploads", {"kye": "a" * 64})
    assert status == 400 and "no field 'kye' here; expected one of key" in told["error"]


@pytest.mark.parametrize("upload_id", ["x", "0" * 32, "..", "%2e%2e%2f", "a" * 300])
def test_an_upload_that_was_not_begun_takes_nothing(server, upload_id):
    path = f"/api/uploads/{upload_id}/files"
    assert asked(server, "POST", path, BEGIN)[0] in (400, 404)
    assert asked(server, "PATCH", f"{path}/{'0' * 32}", {**OCTETS, "Upload-Offset": "0"}, b"a")[0] in (400, 404)
    assert asked(server, "HEAD", f"{path}/{'0' * 32}")[0] in (400, 404)
