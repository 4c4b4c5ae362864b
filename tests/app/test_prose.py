"""Sentences of ours set as Markdown: commands as code, and whatever else stands in them as it is."""

import pytest
from markdown_it import MarkdownIt

from app.components.text import md, prose

SENTENCES = [
    "Run `chipledger compile --on v5p:4x4x8 | tee a@b.txt` now, or *not*.",
    "two `a``b` beside each other, ``twice``, and one ` alone",
    "`a\\` <script>alert(1)</script> [x](http://evil)",
    "a`b`c \\`d\\` :red[no] $x$ `$y$ :blue[z]`",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_what_stands_between_backticks_is_code_and_nothing_else_is_more_than_text(text):
    (_, inline, _) = MarkdownIt("commonmark").parse(prose(text))
    kinds = {t.type for t in inline.children}
    assert kinds <= {"text", "text_special", "code_inline"} and "code_inline" in kinds
    shown = "".join(t.content for t in inline.children).replace("\u2060", "")
    assert shown.replace("`", "") == text.replace("`", "")


def test_a_command_is_shown_as_it_is_typed():
    (_, inline, _) = MarkdownIt("commonmark").parse(prose(SENTENCES[0]))
    assert [t.content for t in inline.children if t.type == "code_inline"] == [SENTENCES[0].split("`")[1]]


def test_without_backticks_it_is_plain_text():
    assert prose("a <b> *c* http://x") == md("a <b> *c* http://x")
