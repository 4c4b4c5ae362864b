"""Hostile notes as a browser shows them: all of it is text, nothing runs, nothing is asked of anybody else."""

import pytest
from playwright.sync_api import expect

from runs.registry import MAX_TEXT
from runs.store import Store
from tests.app import made_runs
from tests.app.serving import request, serving

SHOWN = {"P", "H4", "UL", "OL", "LI", "BLOCKQUOTE", "PRE", "CODE", "STRONG", "EM", "DEL", "BR", "SPAN"}
RUNS = "window.ran = (window.ran || 0) + 1"
ELSEWHERE = "http://127.0.0.1:9"
NOTES = {
    "script": f"<script>{RUNS}</script><svg onload='{RUNS}'><iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "image": f"<img src=x onerror='{RUNS}'> ![pic]({ELSEWHERE}/p.png) ![pic](data:image/svg+xml,<svg/onload={RUNS}>)",
    "links": f"[a](javascript:{RUNS.replace(' ', '')}) [b](data:text/html,<script>alert(1)</script>) [c]({ELSEWHERE}/c)"
    f" <{ELSEWHERE}/d> {ELSEWHERE}/e [f]: {ELSEWHERE}/f",
    "entities": "&lt;b&gt; &#60;script&#62; &#x202e; &amp;amp; &nbsp;",
    "style": f"<style>@import '{ELSEWHERE}/s.css'; *{{background:url({ELSEWHERE}/b)}}</style><base href='{ELSEWHERE}/'>"
    f"<meta http-equiv=refresh content='0;url={ELSEWHERE}/m'><form action='{ELSEWHERE}/f'><input autofocus></form>",
    "nested": ("> " * 2000 + "quoted\n\n") + "[" * 500 + "**" * 500 + "*_~~`" * 300 + "in marks",
    "table": "|a|b|\n|-|-|\n" + "|1|2|\n" * 1600 + "after the table",
    "right to left": "\u202eedoc\u202c \u2066isolated \u200f\u200e end",
    "fence": "```html\n<script>alert(1)</script>\n" + "line\n" * 900 + "never closed",
    "long": "x" * MAX_TEXT,
}
AS_TEXT = {  # of notes whose marks are read
    "links": "(data:text/html,<script>alert(1)</script>)",
    "image": f"![pic]({ELSEWHERE}/p.png)",
    "nested": "in marks",
    "table": "after the table",
    "fence": "<script>alert(1)</script>\nline",
}


@pytest.fixture
def noted(tmp_path):
    run = made_runs.interrupted(Store(tmp_path), "noted").run_id
    with serving(tmp_path) as address:
        for text in NOTES.values():
            status, told = request("POST", f"{address}/api/runs/{run}/notes", {"text": text, "who": "<b>ann</b>"})
            assert status == 200, told
        status, told = request("POST", f"{address}/api/runs/{run}/notes", {"text": "y" * (MAX_TEXT + 1)})
        assert status == 400 and "a note of 10,001 characters; expected 1 to 10,000" in told["error"]
        yield address, run


def test_no_note_runs_loads_or_becomes_html(visit, noted):
    server, run = noted
    page = visit(server)
    asked, dialogs = [], []
    page.on("request", lambda r: None if r.url.startswith((server, "data:", "blob:")) else asked.append(r.url))
    page.on("dialog", lambda d: (dialogs.append(d.message), d.dismiss()))
    page.goto(f"{server}/findings?run={run}")
    page.get_by_role("button", name=f"Notes ({len(NOTES)})").click()
    bodies = page.locator(".notes").first.locator(".note .body")
    expect(bodies).to_have_count(len(NOTES))
    expect(bodies.nth(list(NOTES).index("fence"))).to_contain_text("never closed")
    found = bodies.evaluate_all(
        "all => all.map(body => ({text: body.textContent, wide: body.scrollWidth - body.clientWidth,"
        " kinds: [...body.querySelectorAll('*')].map(e => e.tagName),"
        " attributes: [...body.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name))}))"
    )
    for (name, typed), shown in zip(NOTES.items(), found, strict=True):
        assert set(shown["kinds"]) <= SHOWN and set(shown["attributes"]) <= {"class"}, name
        assert AS_TEXT.get(name, typed) in shown["text"], name
        assert shown["wide"] <= 1, f"{name} stands beyond its box"
    page.wait_for_timeout(500)
    assert page.evaluate("window.ran") is None and dialogs == [] and asked == []
