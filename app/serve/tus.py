"""Uploads that go on where they were cut off, over HTTP: the protocol tus 1.0.0 (tus.io/protocols/resumable-upload).

Its core with the extensions creation, creation-with-upload, checksum and termination. A file belongs to an upload; its
`filename` and, if the sender knows it, `sha256` are metadata. A file that arrived whole is told with `Repr-Digest`
(RFC 9530). Headers of the protocol that are not known here are refused, not passed over.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.serve.answering import answering
from app.serve.coming import SHA256, Coming
from app.serve.requests import json_object, only
from app.serve.resuming import Piece, Refused, Resuming
from app.serve.upload_room import limit_bytes
from app.serve.uploads import Uploads
from app.workspace import Workspace
from errors import InputError
from errors.nearest import did_you_mean
from errors.numbers import Number

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,checksum,termination"
SUMS = {"sha256": 32, "sha1": 20}  # bytes of a sum; the protocol asks for the second
OCTETS = "application/offset+octet-stream"
METADATA = ("filename", "sha256")
METADATA_BYTES = 8192
OURS = ("tus-", "upload-", "x-http-method")  # how headers begin that mean something in the protocol
BYTES = Number(0, 1 << 62, whole=True)
KEY = "key"  # of an upload
AT = "/api/uploads/{upload_id}/files"


class Version(Refused):
    """Another version of the protocol."""

    status = 412


class Media(Refused):
    """The body is of another kind."""

    status = 415


class Tus:
    """The handlers. `unread`: the upload of a request, where no job reads it; raises InputError. `taking`: raises
    Stopping where nothing new is taken."""

    def __init__(
        self,
        place: Workspace,
        uploads: Uploads,
        resuming: Resuming,
        unread: Callable[[Request], Awaitable[str]],
        taking: Callable[[], None],
    ):
        self._place, self._uploads, self._files, self._unread, self._taking = place, uploads, resuming, unread, taking

    def routes(self) -> list[Route]:
        one = AT + "/{file_id}"
        return [
            Route("/api/uploads", self.begin, methods=["POST"]),
            Route(AT, self.files, methods=["GET"]),
            Route(AT, self.create, methods=["POST"]),
            Route(AT, self.able, methods=["OPTIONS"]),
            Route(one, self.offset, methods=["GET"]),
            Route(one, self.append, methods=["PATCH"]),
            Route(one, self.drop, methods=["DELETE"]),
        ]

    @answering
    async def begin(self, request: Request) -> Any:
        """Begin an upload: `upload_id` for what follows. A JSON object may come with it: with `key`, 64 hexadecimal
        digits that a sender makes of all that it sends, it is the one that this sender began with it before."""
        self._taking()
        asked = only(await json_object(request, or_nothing=True), (KEY,))
        return {"upload_id": await run_in_threadpool(self._uploads.begin, _key(asked.get(KEY)))}

    @answering
    async def files(self, request: Request) -> Any:
        """The files of an upload that come in pieces: how much of each is there, and the SHA-256 of those that are
        whole."""
        told = await run_in_threadpool(self._files.listed, request.path_params["upload_id"])
        return {"files": [_told(coming, offset) for coming, offset in told]}

    @answering
    async def able(self, request: Request) -> Any:
        """What of tus is spoken here, in headers."""
        headers = {"Tus-Version": VERSION, "Tus-Extension": EXTENSIONS, "Tus-Checksum-Algorithm": ",".join(SUMS)}
        return Response(status_code=204, headers={**headers, "Tus-Max-Size": str(limit_bytes())})

    @answering
    async def create(self, request: Request) -> Any:
        """Begin a file that comes in pieces, with the headers of tus 1.0.0: `Upload-Length`, and `Upload-Metadata` with
        `filename` and, if known, `sha256` in hexadecimal, both in Base64. The same file begun again is the one that is
        there; one whose content the asker sent before is whole at once, as `Upload-Offset` tells."""
        self._taking()
        headers = _headers(request, ("tus-resumable", "upload-length", "upload-metadata", "upload-checksum"))
        n_bytes, (name, sha256) = _whole(headers, "upload-length"), _metadata(headers.get("upload-metadata", ""))
        upload_id = request.path_params["upload_id"]
        coming = await run_in_threadpool(self._files.create, upload_id, name, n_bytes, sha256)
        if not coming.is_whole(self._files.upload(upload_id)):
            await self._unread(request)
        coming, offset = await self._files.state(upload_id, coming)
        if request.headers.get("content-type") == OCTETS and not offset:
            piece = Piece(0, _checksum(headers.get("upload-checksum")))
            coming = await self._files.write(upload_id, coming, piece, request.stream())
            coming, offset = await self._files.state(upload_id, coming)
        address = request.url.path.rstrip("/") + "/" + coming.file_id
        return Response(status_code=201, headers={"Location": address, **_state(coming, offset)})

    @answering
    async def offset(self, request: Request) -> Any:
        """How much of a file is there, with its SHA-256 once it is whole. HEAD tells the same in headers, as tus has
        it: `Upload-Offset`, and once it is whole `Repr-Digest`. 423: another request sends the file."""
        if request.method == "HEAD":
            _headers(request, ("tus-resumable",))
        coming, offset = await self._files.state(*self._named(request))
        return JSONResponse(_told(coming, offset), headers={"Cache-Control": "no-store", **_state(coming, offset)})

    @answering
    async def append(self, request: Request) -> Any:
        """A piece of a file from `Upload-Offset` on, as the body of the request, with `Upload-Checksum` if wanted. The
        last one puts the file in its place, once its SHA-256 is what it should be. 409: it does not begin where the
        file ends; 423: another request sends the file; 460: the sum is another, and nothing of it was kept."""
        self._taking()
        headers = _headers(request, ("tus-resumable", "upload-offset", "upload-checksum"))
        if request.headers.get("content-type") != OCTETS:
            raise Media(f"a piece of {request.headers.get('content-type', 'no kind')[:60]!r}", expected=OCTETS)
        piece = Piece(_whole(headers, "upload-offset"), _checksum(headers.get("upload-checksum")))
        upload_id, coming = self._named(request)
        await self._unread(request)
        done = await self._files.write(upload_id, coming, piece, request.stream())
        state = _state(done, done.offset(self._files.upload(upload_id)))
        return Response(status_code=204, headers=state)

    @answering
    async def drop(self, request: Request) -> Any:
        """Give up a file that did not arrive whole."""
        _headers(request, ("tus-resumable",))
        upload_id, coming = self._named(request)
        await self._unread(request)
        await run_in_threadpool(self._files.drop, coming, upload_id)
        return Response(status_code=204, headers={"Tus-Resumable": VERSION})

    def _named(self, request: Request) -> tuple[str, Coming]:
        upload_id = request.path_params["upload_id"]
        return upload_id, self._files.find(upload_id, request.path_params["file_id"])


def _key(given: Any) -> str:
    """Raises InputError for what is no key."""
    if given is None or (isinstance(given, str) and SHA256.fullmatch(given)):
        return given or ""
    raise InputError(f"{str(given)[:40]!r} is no key", where="request", expected="64 hexadecimal digits, small letters")


def _told(coming: Coming, offset: int) -> dict[str, Any]:
    whole = offset == coming.n_bytes and bool(coming.placed_ns)
    sha256 = coming.sha256 if whole else None
    there = {"bytes": coming.n_bytes, "offset": offset, "whole": whole, "sha256": sha256}
    return {"file_id": coming.file_id, "name": coming.name, **there}


def _state(coming: Coming, offset: int) -> dict[str, str]:
    there = {"Tus-Resumable": VERSION, "Upload-Offset": str(offset), "Upload-Length": str(coming.n_bytes)}
    if offset == coming.n_bytes and coming.placed_ns:
        there["Repr-Digest"] = f"sha-256=:{base64.b64encode(bytes.fromhex(coming.sha256)).decode()}:"
    return there


def _headers(request: Request, taken: tuple[str, ...]) -> dict[str, str]:
    """The headers of the protocol, each once. Raises Refused for another version, InputError for one that is not taken
    here."""
    found: dict[str, str] = {}
    for name, value in request.headers.items():
        if not name.startswith(OURS):
            continue
        if name not in taken:
            expected, advice = f"one of {', '.join(taken)}", did_you_mean(name, taken)
            raise InputError(f"no header {name[:40]!r} here", expected=expected, advice=advice)
        if name in found:
            raise InputError(f"the header {name!r} is given twice", expected="once")
        found[name] = value
    if found.get("tus-resumable") != VERSION:
        said = repr(found.get("tus-resumable", "")[:20])
        raise Version(f"Tus-Resumable is {said}", expected=VERSION)
    return found


def _whole(headers: dict[str, str], name: str) -> int:
    """Raises InputError."""
    text = headers.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= 1 << 62):
        raise InputError(f"{name} is {text[:40]!r}", expected=f"{BYTES.expected}, in bytes")
    return int(text)


def _metadata(text: str) -> tuple[str, str]:
    """(name, SHA-256 or empty) of a file. Raises InputError for anything else."""
    found: dict[str, str] = {}
    for pair in filter(None, text[: METADATA_BYTES + 1].split(",")):
        key, _, value = pair.strip().partition(" ")
        if key not in METADATA or key in found:
            what = f"{key[:40]!r} is given twice" if key in found else f"no metadata {key[:40]!r} here"
            raise InputError(what, where="upload-metadata", expected=f"each of {', '.join(METADATA)} once at most")
        found[key] = _decoded(value, key)
    if len(text) > METADATA_BYTES or not found.get("filename"):
        raise InputError("no file's name", where="upload-metadata", expected="`filename` and its name in Base64")
    sha256 = found.get("sha256", "").lower()
    if "sha256" in found and not SHA256.fullmatch(sha256):
        raise InputError(f"{sha256[:80]!r} is no SHA-256", where="upload-metadata", expected="64 hexadecimal digits")
    return found["filename"], sha256


def _decoded(value: str, key: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as e:
        raise InputError(f"{key!r} is not understood", where="upload-metadata", expected="UTF-8 in Base64") from e


def _checksum(text: str | None) -> tuple[str, bytes] | None:
    """The algorithm and the sum. Raises InputError."""
    if text is None:
        return None
    name, _, value = text.strip().partition(" ")
    try:
        told = base64.b64decode(value.strip(), validate=True)
    except (binascii.Error, ValueError):
        told = b""
    if SUMS.get(name) != len(told):
        raise InputError(f"{text[:80]!r} is no sum", where="upload-checksum", expected=f"{' or '.join(SUMS)} in Base64")
    return name, told
