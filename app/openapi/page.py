"""The document as one page of HTML: no script, nothing from elsewhere, by what stands in it alone."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_suffix(".css")
DEEP = 12  # levels of an answer that are drawn; a schema may hold itself
GROUPS = (  # how the paths of a group begin, and what it is called
    ("/api/runs/{run_id}/show/", "Questions about a run"),
    ("/api/runs/{run_id}/timeline", "The timeline of a run"),
    ("/api/runs", "Runs"),
    ("/api/models", "Questions about a model alone"),
    ("/api/whatif", "What would be"),
    ("/api/upload", "Uploads"),
    ("/upload", "Uploads"),
    ("/api/jobs", "Jobs"),
    ("/api/ingest", "Jobs"),
    ("/api/c", "Compare, compile, capture, catalogue"),
)
OTHER = "All else"


def page(document: Mapping[str, Any]) -> str:
    """The whole page."""
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        drawn = [_operation(document, method, path, told) for method, told in methods.items()]
        groups.setdefault(_group(path), []).extend(drawn)
    order = sorted(groups, key=lambda g: (g == OTHER, [name for _, name in GROUPS].index(g) if g != OTHER else 0))
    links = "".join(f'<li><a href="#{_anchor(g)}">{escape(g)}</a></li>' for g in order)
    parts = "".join(f'<section id="{_anchor(g)}"><h2>{escape(g)}</h2>{"".join(groups[g])}</section>' for g in order)
    head = f"<p>{escape(document['info']['description'])} The same as <a href='openapi.json'>OpenAPI 3.1</a>.</p>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>HTTP API - Chipledger</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE.read_text(encoding='utf-8')}</style></head><body><main><h1>HTTP API</h1>{head}"
        f"<nav><ul>{links}</ul></nav>{parts}</main></body></html>"
    )


def _words(text: str) -> str:
    """Text with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _group(path: str) -> str:
    return next((name for begin, name in GROUPS if path.startswith(begin)), OTHER)


def _anchor(group: str) -> str:
    return group.lower().replace(",", "").replace(" ", "-")


def _operation(document: Mapping[str, Any], method: str, path: str, told: Mapping[str, Any]) -> str:
    asks = f"<span>{_words(told['summary'])}</span>"
    line = f"<summary><b>{method.upper()}</b> <code>{escape(path)}</code> {asks}</summary>"
    parts = [f"<p>{_words(told['description'])}</p>", _parameters(told["parameters"])]
    for media, one in told.get("requestBody", {}).get("content", {}).items():
        fields = _fields(document, one.get("schema", {}))
        parts.append(f"<h3>Body <code>{escape(media)}</code></h3>{fields}")
    for status, answer in told["responses"].items():
        if status != "default":
            parts.append(_answer(document, status, answer))
    return f'<details id="{escape(told["operationId"])}">{line}{"".join(parts)}</details>'


def _parameters(parameters: list[Mapping[str, Any]]) -> str:
    given = [p for p in parameters if p["in"] != "path"]
    rows = "".join(
        f"<tr><td><code>{escape(p['name'])}</code>{' <i>needed</i>' if p['required'] else ''}</td>"
        f"<td>{escape(_kind(p['schema']))}</td><td>{_words(p.get('description', ''))}</td></tr>"
        for p in given
    )
    if not given:
        return ""
    return f"<h3>Takes</h3><table><tr><th>name</th><th>what it may be</th><th>meaning</th></tr>{rows}</table>"


def _answer(document: Mapping[str, Any], status: str, answer: Mapping[str, Any]) -> str:
    if "content" not in answer:
        return f"<h3>Answers {status}</h3><p>{escape(answer['description'])}.</p>"
    kinds = ", ".join(f"<code>{escape(m)}</code>" for m in answer["content"])
    schema = answer["content"].get("application/json", {}).get("schema", {})
    return f"<h3>Answers {status} {kinds}</h3>{_fields(document, schema)}"


def _fields(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    rows = "".join(_rows(document, schema, 0, ()))
    return f'<ul class="fields">{rows}</ul>' if rows else ""


def _rows(document: Mapping[str, Any], schema: Mapping[str, Any], depth: int, seen: tuple[str, ...]) -> Iterator[str]:
    """A line for each key of an object, with those below it."""
    schema, seen = _resolved(document, schema, seen)
    if depth > DEEP or not schema:
        return
    if isinstance(items := schema.get("items"), dict):
        yield from _rows(document, items, depth + 1, seen)
    named = dict(schema.get("properties", {}))
    if isinstance(any_name := schema.get("additionalProperties"), dict):
        named["(any name)"] = any_name
    for name, one in named.items():
        whole, _ = _resolved(document, one, seen)
        below = "".join(_rows(document, one, depth + 1, seen))
        said = escape(" ".join(filter(None, (_kind(whole), _unit(whole), str(whole.get("description", ""))))))
        yield f"<li><code>{escape(name)}</code> <span>{said}</span>{f'<ul>{below}</ul>' if below else ''}</li>"


def _resolved(
    document: Mapping[str, Any], schema: Mapping[str, Any], seen: tuple[str, ...]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """What a reference means; nothing where it leads into itself."""
    while "$ref" in schema:
        ref = str(schema["$ref"])
        if ref in seen:
            return {}, seen
        seen, schema = (*seen, ref), _at(document, ref)
    return schema, seen


def _at(document: Mapping[str, Any], ref: str) -> Mapping[str, Any]:
    found: Any = document
    for part in ref.removeprefix("#/").split("/"):
        found = found[part]
    return found


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(filter(None, map(_kind, schema["anyOf"]))))
    kind = schema.get("type", "")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    bounds = [
        f"from {schema['minimum']:,}" if "minimum" in schema else "",
        f"to {schema['maximum']:,}" if "maximum" in schema else "",
    ]
    return " ".join(filter(None, (words, *bounds)))


def _unit(schema: Mapping[str, Any]) -> str:
    return f"[{schema['unit']}]" if schema.get("unit") else ""
