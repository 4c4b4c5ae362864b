"""Notes as they are shown: a small Markdown, read into a tree of a few kinds of nodes whose text is text.

Paragraphs, headings, lists, quotes, code, **bold**, *italic* and ~~struck out~~. A link stands with its address, and
nothing leads or loads anywhere: HTML and pictures are shown as they were typed.

A node is a text, or [kind, nodes within it]; `KINDS` are all there are.
"""

import re
from collections.abc import Iterator
from typing import Any

Node = Any  # a text, or [kind, [Node ...]]
KINDS = ("p", "h", "ul", "ol", "li", "blockquote", "pre", "code", "strong", "em", "del", "br", "address")
DEEPEST = 4  # quotes and marks inside one another; what lies deeper is text
_INLINE = re.compile(
    r"(?P<picture>!\[[^\]\n]{0,300}\]\([^)\n]{0,1000}\))"
    r"|\[(?P<link>[^\]\n]{1,300})\]\((?P<to>[^()\s]{1,1000})\)"
    r"|`(?P<code>[^`\n]{1,500})`"
    r"|\*\*(?=\S)(?P<strong>[^\n]{1,500}?)(?<=\S)\*\*"
    r"|~~(?=\S)(?P<del>[^~\n]{1,500}?)(?<=\S)~~"
    r"|(?<![\w*])\*(?=[^\s*])(?P<em>[^*\n]{1,500}?)(?<=\S)\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_])(?P<em2>[^_\n]{1,500}?)(?<=\S)_(?!\w)"
    r"|(?P<br>\n)"
)
_HEAD = re.compile(r" {0,3}#{1,6} +(\S.*)")
_ITEM = re.compile(r"\s{0,8}(?:[-*+]|(\d{1,9})[.)]) +(\S.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_QUOTE = re.compile(r" {0,3}> ?(.*)")


def tree(text: str, depth: int = 0) -> list[Node]:
    """The nodes of a note."""
    return list(_blocks(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), depth))


def _blocks(lines: list[str], depth: int) -> Iterator[Node]:
    at = 0
    while at < len(lines):
        line, start = lines[at], at
        at += 1
        if not line.strip():
            continue
        if fence := _FENCE.match(line):
            while at < len(lines) and not lines[at].lstrip().startswith(fence[1]):
                at += 1
            yield ["pre", ["\n".join(lines[start + 1 : at])]]
            at += 1
        elif head := _HEAD.fullmatch(line):
            yield ["h", inline(head[1].rstrip(" #") or head[1])]
        elif (item := _ITEM.fullmatch(line)) is not None:
            while at < len(lines) and (more := _ITEM.fullmatch(lines[at])) and bool(more[1]) == bool(item[1]):
                at += 1
            found = [_ITEM.fullmatch(one) for one in lines[start:at]]
            yield ["ol" if item[1] else "ul", [["li", inline(one[2])] for one in found if one]]
        elif depth < DEEPEST and _QUOTE.fullmatch(line):
            while at < len(lines) and _QUOTE.fullmatch(lines[at]):
                at += 1
            inner = [found[1] for one in lines[start:at] if (found := _QUOTE.fullmatch(one))]
            yield ["blockquote", list(_blocks(inner, depth + 1))]
        else:
            while at < len(lines) and lines[at].strip() and not _begins(lines[at]):
                at += 1
            yield ["p", inline("\n".join(one.strip() for one in lines[start:at]))]


def _begins(line: str) -> bool:
    """Whether a line begins another block than the paragraph before it."""
    return any(kind.match(line) for kind in (_FENCE, _HEAD, _ITEM, _QUOTE))


def inline(text: str, depth: int = 0) -> list[Node]:
    """The nodes of a line."""
    nodes: list[Node] = []
    at = 0
    for found in _INLINE.finditer(text) if depth < DEEPEST else ():
        if found.start() > at:
            nodes.append(text[at : found.start()])
        nodes += _marked(found, depth)
        at = found.end()
    return [*nodes, text[at:]] if at < len(text) else nodes


def _marked(found: re.Match[str], depth: int) -> list[Node]:
    kind = found.lastgroup
    if kind == "picture":
        return [found[0]]
    if kind == "br":
        return [["br", []]]
    if kind == "to":
        said = inline(found["link"], depth + 1)
        return said if found["link"] == found["to"] else [*said, " ", ["address", [f"({found['to']})"]]]
    if kind == "code":
        return [["code", [found["code"]]]]
    name = str(kind)
    return [["em" if name == "em2" else name, inline(found[name], depth + 1)]]


def first_line(text: str, most: int = 160) -> str:
    """What a note begins with, without its marks."""
    blocks = tree(text)
    words = " ".join(_text(blocks[0]).split()) if blocks else ""
    return words if len(words) <= most else words[: most - 1] + "…"


def _text(node: Node) -> str:
    if isinstance(node, str):
        return node
    return " " if node[0] == "br" else "".join(_text(n) for n in node[1]) + (" " if node[0] == "li" else "")
