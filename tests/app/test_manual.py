"""The docs as a site: it builds without a warning, loads nothing from elsewhere, and every link leads somewhere."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from analyzers.flops.mxu import padded_flops
from app.manual import AT, SCRIPTS, address
from app.manual.api_routes import routes
from app.manual.pictures import FOLDER, seen
from app.manual.site_files import build, script_hashes
from app.pages.all import every_page
from app.serve.guard import Guard
from app.serve.manual import Manual
from simulators.topology import parse
from tests.app.serving import PROJECT

DOCS = PROJECT / "docs"
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href", "object": "data"}
MOST_BYTES = 8_000_000
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)


class Links(HTMLParser):
    """What a page loads, where it leads, and which anchors it has."""

    def __init__(self, text: str):
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.anchors |= {told[key] for key in ("id", "name") if told.get(key)}
        if tag == "a" and "href" in told:
            self.leads.append(told["href"])
        if (key := LOADED.get(tag)) and told.get(key) and told.get("rel") not in ("next", "prev"):
            self.loads.append(told[key])
        if srcset := told.get("srcset"):
            self.loads += [part.split()[0] for part in srcset.split(",")]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("manual") / "site"
    assert build(folder) == 0, "a page, a link or an anchor of the docs is wrong"
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Links]:
    """By the address of each page."""
    found = site.rglob("*.html")
    return {f"/{p.relative_to(site).as_posix()}": Links(p.read_text(encoding="utf-8")) for p in found}


@pytest.fixture(scope="module")
def client(site):
    return TestClient(serving(site), base_url="http://127.0.0.1:8501")


def serving(site: Path) -> Starlette:
    return Starlette(routes=Manual(site).routes(), middleware=[Middleware(Guard, loopback=True)])


def test_it_is_small(site):
    assert sum(p.stat().st_size for p in site.rglob("*") if p.is_file()) < MOST_BYTES


def test_every_page_of_the_product_has_its_page_of_the_docs(site):
    for page in every_page():
        assert (site / address(page).removeprefix(AT).strip("/") / "index.html").is_file()


def test_nothing_is_loaded_from_elsewhere(site, pages):
    strangers = {(at, what) for at, links in pages.items() for what in links.loads if ELSEWHERE.match(what)}
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        loads = re.findall(r"url\(\s*[\"']?([^)\"']+)|@import\s+[\"']([^\"']+)", text)
        strangers |= {(path.name, what) for found in loads for what in found if ELSEWHERE.match(what)}
    assert strangers == set()


def test_no_link_leads_out_of_the_server(pages):
    assert {(at, to) for at, links in pages.items() for to in links.leads if urlsplit(to).scheme} == set()
    assert {to for links in pages.values() for to in links.leads if to.startswith("//")} == set()


def test_scripts_name_no_host_that_they_would_ask(site):
    """What a script of the theme could fetch by an address of its own; only the search of this site may be."""
    named = set()
    for path in site.rglob("*.js"):
        named |= set(re.findall(r"https?://([\w.-]+)", path.read_text(encoding="utf-8")))
    assert named <= SPOKEN_OF, named - SPOKEN_OF


SPOKEN_OF = {  # in the theme's scripts: names of formats and authors, and what only options that are not set would ask
    "www.w3.org",
    "api.github.com",
    "gitlab.com",
    "clipboardjs.com",
    "lunrjs.com",
    "bit.ly",
    "tartarus.org",
}


def test_every_anchor_that_a_page_names_on_itself_is_there(pages):
    missing = {
        (at, to)
        for at, links in pages.items()
        for to in links.leads
        if to.startswith("#") and to != "#" and to[1:] not in links.anchors
    }
    assert missing == set()


def test_every_address_of_the_product_that_is_named_exists(pages):
    paths = {f"/{page.path}" for page in every_page()} | {"/"}
    named = {to for links in pages.values() for to in links.leads if to.startswith("/")}
    assert named and {urlsplit(to).path for to in named} <= paths
    specs = {to.split("spec=")[1] for to in named if "spec=" in to}
    assert len(specs) >= 5 and all(parse(spec).text for spec in specs)


def test_the_search_finds_a_question(site):
    told = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    assert any(entry["location"].startswith("questions/mfu/") for entry in told)


def test_only_its_own_scripts_may_run(site, client):
    answer = client.get(f"{AT}/questions/mfu/")
    assert answer.status_code == 200 and "<h1" in answer.text
    policy = answer.headers["content-security-policy"]
    scripts = re.search(r"script-src ([^;]+)", policy)[1].split()
    assert "'self'" in scripts and not {"'unsafe-inline'", "'unsafe-eval'"} & set(scripts)
    assert {f"'{h}'" for h in script_hashes(answer.text)} <= set(scripts)
    assert "default-src 'none'" in policy and "frame-ancestors 'self'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert json.loads((site / SCRIPTS).read_text()) == sorted(h.strip("'") for h in scripts if "sha256" in h)


def test_a_script_that_was_put_into_a_page_is_not_among_them(site):
    told = (site / "index.html").read_text(encoding="utf-8") + "<script>alert(1)</script>"
    assert not script_hashes(told) <= set(json.loads((site / SCRIPTS).read_text()))


@pytest.mark.parametrize("path", ["no-such-page", "../main.py", "..%2f..%2fmain.py", "%2e%2e/%2e%2e/pyproject.toml"])
def test_what_is_no_page_is_one_sentence(client, path):
    answer = client.get(f"{AT}/{path}")
    assert answer.status_code == 404 and "\n" not in answer.text


def test_where_it_begins(client):
    assert client.get(AT, follow_redirects=False).headers["location"] == f"{AT}/"
    assert client.get(f"{AT}/").status_code == 200
    assert client.post(f"{AT}/").status_code == 405
    assert client.get(f"{AT}/", headers={"host": "evil.example"}).status_code == 403


def test_without_a_site_one_sentence_says_how_it_is_built(tmp_path):
    answer = TestClient(serving(tmp_path / "none"), base_url="http://127.0.0.1").get(f"{AT}/")
    assert (answer.status_code, answer.text) == (404, Manual.missing[0])


def test_a_link_that_leads_nowhere_is_no_site(tmp_path, monkeypatch):
    from app.manual import site_files as building

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# A\n\n[gone](gone.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: a\nstrict: true\n")
    monkeypatch.setattr(building, "ROOT", tmp_path)
    assert build(tmp_path / "site") == 1 and not (tmp_path / "site").exists()


def test_every_page_has_its_picture_and_none_is_left_over():
    names = {page.name for page in every_page()}
    assert {p.stem for p in FOLDER.glob("*.webp")} == names == set(seen())
    assert all(p.stat().st_size <= 60_000 for p in FOLDER.glob("*.webp"))
    assert sum(p.stat().st_size for p in FOLDER.iterdir()) <= 2_500_000


def test_the_table_of_paddings_is_right():
    text = (DOCS / "explained/matrix-unit.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]+\| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.MULTILINE)
    assert len(rows) >= 5
    for *dims, at_128, at_256 in rows:
        m, k, n = map(int, dims)
        for side, told in ((128, at_128), (256, at_256)):
            padding = 1 - 2 * m * k * n / float(padded_flops(m, k, n, side).headline)
            assert f"{padding * 100:.3g}" == told


def test_curl_in_the_docs_asks_routes_that_exist():
    known = [re.sub(r"\\\{\w+(?::path)?\\\}", r"[^/?]+", re.escape(r.path)) for r in routes()]
    for path in DOCS.rglob("*.md"):
        for asked in re.findall(r"curl [^\n]*?http://127\.0\.0\.1:8501(/[^\s\"?]*)", path.read_text(encoding="utf-8")):
            assert any(re.fullmatch(k, asked) for k in known), asked


def test_no_file_beside_the_hook_hides_one_of_pythons_own():
    """While it is loaded, its folder is looked through first: whatever imports such a module then gets ours."""
    beside = {path.stem for path in (PROJECT / "app" / "manual").iterdir()}
    assert "hook" in beside and not beside & set(sys.stdlib_module_names)
