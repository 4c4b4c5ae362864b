"""Editing a run's tags."""

from collections.abc import Mapping

import streamlit as st

from app.components.held import held
from app.components.text import md
from app.identity.may import changing
from app.summary import tags_of
from errors import InputError
from runs.registry import Registry
from runs.run import Run


def edit_tags(run: Run, registry: Registry) -> None:
    """One tag a line, `key=value`. Tags that came with the run stay; those added here can be changed and removed.
    Raises where a line is no tag."""
    extras = registry.extras(run.run_id)
    # a name with = in it, of a store written before that was refused, could not be told from its value here
    before = {k: v for k, v in tags_of(run, extras).items() if "=" not in k}
    st.markdown(f"**{md(run.manifest.name)}**")
    text = st.text_area(
        "One tag a line: key=value", "\n".join(f"{k}={v}" for k, v in before.items()), key=f"tags {run.run_id}"
    )
    if st.button("Save", type="primary", **held()):
        after = parse(text)
        gone: dict[str, str | None] = dict.fromkeys(extras.tags.keys() & before.keys() - after.keys())
        _keep(run, gone | {key: value for key, value in after.items() if before.get(key) != value}, registry)
        st.rerun()


@changing("tag a run")
def _keep(run: Run, tags: Mapping[str, str | None], registry: Registry) -> None:
    for key, value in tags.items():
        registry.tag(run.run_id, key, value)


def parse(text: str) -> dict[str, str]:
    """Tags from lines of `key=value`. Raises InputError for a line that is none."""
    tags = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not key or not value:
            raise InputError(f"the line {line[:80]!r} is no tag", expected="key=value")
        tags[key] = value
    return tags


def parse_changes(text: str) -> dict[str, str | None]:
    """Tags to set, and those to take away (None), from lines of `key=value` and `-key`."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    away = [line[1:].strip() for line in lines if line.startswith("-") and "=" not in line]
    kept = [line for line in lines if not (line.startswith("-") and "=" not in line)]
    return {**dict.fromkeys(away), **parse("\n".join(kept))}
