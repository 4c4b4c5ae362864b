"""The page that a browser is given first: what it is told before it connects."""

import json
import re
import urllib.request
from pathlib import Path

import streamlit

from app.pages.all import every_page
from app.serve.front import HOST, LATER, front_page
from tests.app.serving import serving

STATIC = Path(streamlit.__file__).parent / "static"


def test_what_draws_figures_and_tables_is_found_where_streamlit_has_it():
    page = front_page(STATIC)
    [said] = re.findall(r"read\((\[.*?\])\)", page)
    found = json.loads(said)
    assert len(found) == len(LATER) and all((STATIC / path).is_file() for path in found)
    assert [
        path for path in found if f'<link rel="modulepreload" crossorigin fetchpriority="low" href="{path}">' in page
    ]
    assert (
        page.index("window.__streamlit") < page.index("</head>")
        and 'type="module" crossorigin src="./static/js/' in page
    )
    assert "<title>Chipledger</title>" in page


def test_what_a_module_imports_at_once_is_told_with_it_and_nothing_twice(tmp_path):
    (tmp_path / "index.html").write_text("<head></head>")
    js = tmp_path / "static/js"
    js.mkdir(parents=True)
    made = {
        "PlotlyChart.a.js": 'import{a as b}from"./one.js";import"./two.js";const later=()=>import("./never.js");',
        "one.js": 'import"./two.js";export{x}from"./three.js";import"./gone.js";',
        "two.js": 'import"./one.js";',
        "three.js": "1",
        "never.js": "1",
    }
    for name, text in made.items():
        (js / name).write_text(text)
    told = re.findall(r'href="\./static/js/([^"]+)"', front_page(tmp_path))
    assert told == ["PlotlyChart.a.js", "one.js", "two.js", "three.js"]


def test_a_page_whose_libraries_have_other_names_is_given_without_them(tmp_path):
    (tmp_path / "index.html").write_text("<head><title>Streamlit</title></head><body></body>")
    page = front_page(tmp_path)
    assert "modulepreload" not in page and "read([])" in page and page.endswith("</head><body></body>")


def test_every_page_begins_so_and_is_told_what_streamlits_own_answer_says(tmp_path):
    with serving(tmp_path / "store") as address:

        def got(path: str) -> bytes:
            with urllib.request.urlopen(f"{address}/{path}", timeout=30) as answer:
                return answer.read()

        page_of_all = front_page(STATIC).encode()
        for path in ("", *(page.path for page in every_page() if page.file)):
            assert got(path) == page_of_all, path
        told = json.loads(got("_stcore/host-config"))
        assert {name: told[name] for name in HOST} == HOST
        assert set(told) - set(HOST) == {"allowedOrigins", "resourceCrossOriginMode"}
