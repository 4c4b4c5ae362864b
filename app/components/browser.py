"""What runs in the browser: a component's HTML, CSS and JavaScript stand in files of these names beside its Python.

Streamlit serves a component's own files only where its package is installed under its import name with a
`pyproject.toml` inside; otherwise it takes one text of JavaScript, which a browser loads from a blob. From there no
`import "./other.js"` can be resolved, so the modules that a script imports are put before it here.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[\w./-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
_MAIN = re.compile(r"^export default function\b", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)  # what the forms above leave over


def component(name: str, files: Path) -> ComponentRenderer:
    """The Streamlit component of `files`.html, `files`.css and `files`.js, whose default export draws it."""
    html, css = (files.with_suffix(kind).read_text(encoding="utf-8") for kind in (".html", ".css"))
    return st.components.v2.component(name, html=html, css=css, js=script(files.with_suffix(".js")))


def script(path: Path) -> str:
    """A module and all that it imports as one text: each imported module once, a function that returns its exports.

    Raises ValueError where modules import each other in a circle, name what another does not export, or import or
    export in another form than `import { a, b } from "./file.js";` and `export` before one function, class or const.
    """
    done: dict[Path, _Module] = {}
    own = _joined(path.resolve(), done, ())
    if rest := [line for line in _OTHER.findall(own) if not _MAIN.match(line)]:
        raise ValueError(f"{path}: a component's script exports a default function alone: {rest[0]}")
    return "\n".join([*(module.text for module in done.values()), own])


@dataclass(frozen=True)
class _Module:
    variable: str
    exports: frozenset[str]
    text: str


def _joined(path: Path, done: dict[Path, _Module], above: tuple[Path, ...]) -> str:
    """The text of a module that reads its imports from the modules before it; these are added to `done` first."""
    if path in above:
        raise ValueError(f"{path}: imports itself by way of {', '.join(p.name for p in above[above.index(path) :])}")

    def read_from(found: re.Match[str]) -> str:
        other = (path.parent / found[2]).resolve()
        if other not in done:
            text = _joined(other, done, (*above, path))
            done[other] = _module(other, f"module{len(done)}", text)
        names = [name.strip() for name in found[1].split(",") if name.strip()]
        if unknown := [name for name in names if name not in done[other].exports]:
            raise ValueError(f"{path}: {other.name} exports no {unknown[0]}")
        return f"const {{ {', '.join(names)} }} = {done[other].variable};"

    return _IMPORT.sub(read_from, path.read_text(encoding="utf-8"))


def _module(path: Path, variable: str, text: str) -> _Module:
    names = [name for _, name in _EXPORT.findall(text)]
    text = _EXPORT.sub(r"\1", text)
    if rest := _OTHER.findall(text):
        raise ValueError(f"{path}: this form of import or export is not known: {rest[0]}")
    wrapped = f"const {variable} = (() => {{\n{text}\nreturn {{ {', '.join(names)} }};\n}})();"
    return _Module(variable, frozenset(names), wrapped)
