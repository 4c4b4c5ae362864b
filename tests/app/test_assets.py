"""What the front end is made of: sent from memory, compressed once, kept by browsers for good."""

import asyncio
import gzip
from pathlib import Path

import pytest
import streamlit
from starlette.responses import Response

from app.serve.assets import Assets

TEXT = b"let figures = 1;\n" * 500


@pytest.fixture
def folder(tmp_path):
    made = {"js/a.1.js": TEXT, "js/small.js": b"1", "media/f.woff2": bytes(range(256)) * 8}
    for name, data in made.items():
        (tmp_path / "static" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "static" / name).write_bytes(data)
    (tmp_path / "secret").write_text("s")
    return tmp_path / "static"


async def streamlit_itself(scope, receive, send):
    await Response("passed on", status_code=418)(scope, receive, send)


def asked(assets: Assets, name: str, encodings: str = "gzip, deflate, br", method: str = "GET"):
    """(status, headers, body)"""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": f"/static/{name}"}
    asyncio.run(assets({**scope, "headers": [(b"accept-encoding", encodings.encode())]}, None, send))
    headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message["body"] for message in sent[1:])


@pytest.fixture
def assets(folder):
    return Assets(streamlit_itself, folder)


def test_a_file_comes_compressed_and_is_the_same_file(assets):
    status, headers, body = asked(assets, "js/a.1.js")
    assert status == 200 and headers["content-encoding"] == "gzip"
    assert len(body) < len(TEXT) / 10 and gzip.decompress(body) == TEXT
    assert headers["content-length"] == str(len(body))
    assert "immutable" in headers["cache-control"] and headers["vary"] == "Accept-Encoding"
    assert "javascript" in headers["content-type"]


@pytest.mark.parametrize("encodings", ["", "br", "gzip;q=0", "gzip; q=0.0", "deflate, GZIP;q=0.000", "xgzip"])
def test_who_takes_no_gzip_is_given_the_file_as_it_is(assets, encodings):
    _, headers, body = asked(assets, "js/a.1.js", encodings)
    assert body == TEXT and "content-encoding" not in headers


@pytest.mark.parametrize("encodings", ["GZIP", "br;q=1.0, gzip;q=0.8", " gzip "])
def test_it_is_compressed_for_whoever_says_so_in_any_way(assets, encodings):
    assert asked(assets, "js/a.1.js", encodings)[1]["content-encoding"] == "gzip"


def test_what_is_small_or_compressed_already_is_sent_as_it_is(assets, folder):
    for name in ("js/small.js", "media/f.woff2"):
        _, headers, body = asked(assets, name)
        assert body == (folder / name).read_bytes() and "content-encoding" not in headers


@pytest.mark.parametrize(
    "name", ["", "..", "../secret", "js/../../secret", "/etc/passwd", "js", "js/b.js", "js/a.1.js/", "a\0b", "x" * 9999]
)
def test_whatever_lay_not_there_is_streamlits_to_answer(assets, name):
    assert asked(assets, name)[0] == 418


def test_who_writes_is_passed_on_too(assets):
    assert [asked(assets, "js/a.1.js", method=m)[0] for m in ("POST", "PUT", "DELETE", "HEAD")] == [418, 418, 418, 200]


def test_a_file_is_read_and_compressed_once(assets, folder, monkeypatch):
    compress, packed = gzip.compress, []
    monkeypatch.setattr("gzip.compress", lambda *a, **k: packed.append(1) or compress(*a, **k))
    first = asked(assets, "js/a.1.js")
    (folder / "js/a.1.js").write_bytes(b"other")
    assert asked(assets, "js/a.1.js") == first and packed == [1]


def test_every_file_that_the_first_page_names_is_among_them():
    static = Path(streamlit.__file__).parent / "static"
    named = [part.split('"')[0] for part in (static / "index.html").read_text().split("./static/")[1:]]
    assert named and {asked(Assets(streamlit_itself), name)[0] for name in named} == {200}
