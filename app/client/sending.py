"""Files on their way to a server, by tus 1.0.0: in pieces with sums, on from what is there after any cut."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from app.client.door import Answer, Door, Refused
from app.client.local import Local, hashed
from errors import InputError

PIECE_BYTES = 8 << 20
SMALL_BYTES = 256 << 10  # a file that goes with the request that begins it
STUCK = 10  # pieces one after another that were taken and are not there: whatever takes them is no such server
TRIES = 3  # of a whole file whose hash did not come out, though it is the same here
VERSION = {"Tus-Resumable": "1.0.0"}
OCTETS = {**VERSION, "Content-Type": "application/offset+octet-stream"}
_FILE_ID = re.compile(r"[0-9a-f]{32}")
_WRONG_OFFSET, _WRONG_SUM, _GONE = 409, 460, (404, 410)


@dataclass(frozen=True)
class _There:
    """How far a file is at the server. `whole`: checked, and in its place."""

    path: str
    offset: int
    whole: bool


def send(door: Door, upload_id: str, file: Local, tell: Callable[[int], None]) -> int:
    """Send what is missing of a file, until the server says its hash. Returns the bytes that had to be sent; `tell`
    hears how far it is. Raises InputError where the file changed meanwhile, or the server refuses it."""
    sent = stuck = 0
    for _ in range(TRIES):
        at = _begun(door, upload_id, file)
        if at.whole and 0 < file.n_bytes <= SMALL_BYTES:
            tell(file.n_bytes)
            return file.n_bytes
        try:
            with file.path.open("rb") as f:
                while not at.whole:
                    tell(at.offset)
                    f.seek(at.offset)
                    piece = f.read(min(PIECE_BYTES, file.n_bytes - at.offset))
                    if not piece:
                        raise _changed(file)
                    before, at = at, _given(door, upload_id, at, piece)
                    sent += len(piece)
                    stuck = 0 if at.whole or at.offset > before.offset else stuck + 1
                    if stuck > STUCK:
                        raise door.stranger()
        except Refused as e:
            if e.status not in (_WRONG_SUM, *_GONE):
                raise
            if hashed(file, lambda _: None).sha256 != file.sha256:
                raise _changed(file) from e
            continue
        except OSError as e:
            raise InputError(f"cannot be read ({e.strerror})", where=str(file.path)) from e
        tell(file.n_bytes)
        return sent
    raise InputError("did not arrive as it is here", where=str(file.path), advice="Is the network at fault?")


def _begun(door: Door, upload_id: str, file: Local) -> _There:
    """The file at the server, begun now or before; a small one with all that is in it."""
    data = {"filename": file.name.encode("utf-8", "backslashreplace"), "sha256": file.sha256.encode()}
    told = ",".join(f"{key} {base64.b64encode(value).decode()}" for key, value in data.items())
    path = f"/api/uploads/{upload_id}/files"
    small = 0 < file.n_bytes <= SMALL_BYTES
    try:
        body = file.path.read_bytes() if small else None
    except OSError as e:
        raise _changed(file) from e
    if body is not None and len(body) != file.n_bytes:
        raise _changed(file)
    headers = {**(OCTETS if small else VERSION), "Upload-Length": str(file.n_bytes), "Upload-Metadata": told}
    answer = door.patiently(lambda: door.once("POST", path, body, headers))
    file_id = answer.headers.get("location", "").rpartition("/")[2]
    if not _FILE_ID.fullmatch(file_id):
        raise door.stranger()
    return _told(f"{path}/{file_id}", answer)


def _given(door: Door, upload_id: str, at: _There, piece: bytes) -> _There:
    """After a piece; where it was cut off, or begins elsewhere, from what is there."""
    digest = base64.b64encode(hashlib.sha256(piece).digest()).decode()
    headers = {**OCTETS, "Upload-Offset": str(at.offset), "Upload-Checksum": f"sha256 {digest}"}
    first = True

    def act() -> Answer:
        nonlocal first
        if not first:  # it may have arrived though no answer did
            now = door.once("HEAD", at.path, None, VERSION)
            if now.headers.get("upload-offset") != str(at.offset):
                return now
            _unless_refused(door, upload_id)
        first = False
        try:
            return door.once("PATCH", at.path, piece, headers)
        except Refused as e:
            if e.status != _WRONG_OFFSET:
                raise
            return door.once("HEAD", at.path, None, VERSION)

    return _told(at.path, door.patiently(act))


def _unless_refused(door: Door, upload_id: str) -> None:
    """A server reads no further than it must, and the answer that says why may be lost with the connection."""
    answer = door.once("GET", f"/api/uploads/{upload_id}")
    with door.understanding():
        said = json.loads(answer.data).get("refused")
    if said:
        raise InputError(str(said))


def _told(path: str, answer: Answer) -> _There:
    offset = answer.headers.get("upload-offset", "0")
    return _There(path, int(offset) if offset.isascii() and offset.isdigit() else 0, "repr-digest" in answer.headers)


def _changed(file: Local) -> InputError:
    return InputError("changed while it was sent", where=str(file.path), advice="Push it once nothing writes to it.")
