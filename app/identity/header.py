"""How a page's script is told who asks: one header, set by the guard at each connection and taken from all that comes
in. Streamlit hands the headers of its websocket on, and nothing else."""

import base64
import functools
import json
import sys
from collections.abc import Iterable

from app.identity.base import NOBODY, Identity, Role

NAME = "x-chipledger-identity"
RAW = NAME.encode()
Raw = list[tuple[bytes, bytes]]


def with_identity(headers: Iterable[tuple[bytes, bytes]], identity: Identity, strip: Iterable[bytes] = ()) -> Raw:
    """The headers of a request with who asks, and without what anybody else said of that."""
    gone = {RAW, *strip}
    return [(name, value) for name, value in headers if name.lower() not in gone] + [(RAW, _written(identity))]


@functools.lru_cache(1024)
def _written(identity: Identity) -> bytes:
    said = [identity.name, int(identity.role), sorted(identity.groups), identity.how, identity.token_id]
    return base64.urlsafe_b64encode(json.dumps(said).encode())


@functools.lru_cache(1024)
def read(text: str) -> Identity:
    """What the guard wrote."""
    name, role, groups, how, token_id = json.loads(base64.urlsafe_b64decode(text))
    return Identity(name=name, role=Role(role), groups=frozenset(groups), how=how, token_id=token_id)


def identity_of_script() -> Identity | None:
    """Whoever the script, part of a page or callback of this thread runs for; None in a thread of none. A session whose
    browser went away, and one without the guard's header, is nobody's."""
    running = sys.modules.get("streamlit.runtime.scriptrunner")
    if running is None or running.get_script_run_ctx(suppress_warning=True) is None:
        return None
    import streamlit as st

    said = st.context.headers.get(NAME)
    return NOBODY if said is None else read(said)
