"""What the front end is made of: sent from memory, compressed once, kept by browsers for good."""

import asyncio
import gzip
from pathlib import Path

import pytest
import streamlit
from starlette.requests import Request

from app.serve.assets import Assets, front_end

TEXT = b"let figures = 1;\n" * 500


@pytest.fixture
def folder(tmp_path):
    made = {"js/a.1.js": TEXT, "js/small.js": b"1", "media/f.woff2": bytes(range(256)) * 8}
    for name, data in made.items():
        (tmp_path / "static" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "static" / name).write_bytes(data)
    (tmp_path / "secret").write_text("s")
    return tmp_path / "static"


def asked(assets: Assets, name: str, encodings: str = "gzip, deflate, br"):
    headers = [(b"accept-encoding", encodings.encode())]
    scope = {"type": "http", "method": "GET", "headers": headers, "path_params": {"name": name}}
    return asyncio.run(assets.file(Request(scope)))


def test_a_file_comes_compressed_and_is_the_same_file(folder):
    answer = asked(Assets(folder), "js/a.1.js")
    assert answer.status_code == 200 and answer.headers["content-encoding"] == "gzip"
    assert len(answer.body) < len(TEXT) / 10 and gzip.decompress(answer.body) == TEXT
    assert answer.headers["content-length"] == str(len(answer.body))
    assert "immutable" in answer.headers["cache-control"] and answer.headers["vary"] == "Accept-Encoding"
    assert "javascript" in answer.headers["content-type"]


@pytest.mark.parametrize("encodings", ["", "br", "gzip;q=0", "gzip; q=0.0", "deflate, GZIP;q=0.000", "xgzip"])
def test_who_takes_no_gzip_is_given_the_file_as_it_is(folder, encodings):
    answer = asked(Assets(folder), "js/a.1.js", encodings)
    assert answer.body == TEXT and "content-encoding" not in answer.headers


@pytest.mark.parametrize("encodings", ["GZIP", "br;q=1.0, gzip;q=0.8", " gzip "])
def test_it_is_compressed_for_whoever_says_so_in_any_way(folder, encodings):
    assert asked(Assets(folder), "js/a.1.js", encodings).headers["content-encoding"] == "gzip"


def test_what_is_small_or_compressed_already_is_sent_as_it_is(folder):
    for name in ("js/small.js", "media/f.woff2"):
        answer = asked(Assets(folder), name)
        assert answer.body == (folder / name).read_bytes() and "content-encoding" not in answer.headers


@pytest.mark.parametrize(
    "name", ["", "..", "../secret", "js/../../secret", "/etc/passwd", "js", "js/b.js", "js/a.1.js/", "a\0b", "x" * 9999]
)
def test_only_files_that_lay_there_are_there(folder, name):
    answer = asked(Assets(folder), name)
    assert (
        answer.status_code == 404 and b"no such file" in answer.body and "no-cache" in answer.headers["cache-control"]
    )


def test_a_file_is_read_and_compressed_once(folder, monkeypatch):
    assets, packed = Assets(folder), []
    compress = gzip.compress
    monkeypatch.setattr("gzip.compress", lambda *a, **k: packed.append(1) or compress(*a, **k))
    first = asked(assets, "js/a.1.js").body
    (folder / "js/a.1.js").write_bytes(b"other")
    assert asked(assets, "js/a.1.js").body == first and packed == [1]


def test_every_file_that_the_first_page_names_is_among_them():
    static = Path(streamlit.__file__).parent / "static"
    named = [part.split('"')[0] for part in (static / "index.html").read_text().split("./static/")[1:]]
    assets = front_end()
    assert named and all(name in assets._files for name in named)
