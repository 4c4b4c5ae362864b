"""Who may read figures."""

import pytest

from app.operations.routes import TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, may_read_metrics, metrics_token
from errors import InputError

TOKEN = "0123456789abcdef-of-a-monitor"
HERE = {"host": "127.0.0.1:8501"}


def scope(client, **headers):
    return {
        "type": "http",
        "client": (client, 5) if client else None,
        "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()],
    }


@pytest.mark.parametrize(
    ("client", "headers", "may"),
    [
        ("127.0.0.1", HERE, True),
        ("::1", {"host": "[::1]:8501"}, True),
        ("192.0.2.1", HERE, False),
        (None, HERE, False),
        ("127.0.0.1", {"host": "chipledger.example"}, False),  # a proxy on this machine
        ("127.0.0.1", {**HERE, "x_forwarded_for": "192.0.2.1"}, False),
        ("127.0.0.1", {**HERE, "forwarded": "for=192.0.2.1"}, False),
        ("127.0.0.1", {**HERE, "via": "1.1 proxy"}, False),
        ("127.0.0.1", {}, False),
        ("192.0.2.1", {"host": "x", "authorization": f"Bearer {TOKEN}"}, True),
        ("192.0.2.1", {"host": "x", "authorization": f"bearer {TOKEN}"}, True),
        ("192.0.2.1", {"host": "x", "authorization": f"Basic {TOKEN}"}, False),
        ("192.0.2.1", {"host": "x", "authorization": f"Bearer {TOKEN[:-1]}"}, False),
        ("192.0.2.1", {"host": "x", "authorization": "Bearer "}, False),
        ("192.0.2.1", {"host": "x", "authorization": "Bearer \u00e9"}, False),
    ],
)
def test_this_machine_itself_and_who_shows_the_token(client, headers, may):
    assert may_read_metrics(scope(client, **headers), TOKEN) is may


def test_without_a_token_none_opens():
    assert not may_read_metrics(scope("192.0.2.1", host="x", authorization="Bearer "), "")


def test_the_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    assert metrics_token() == ""
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert metrics_token() == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN}-in-a-file\n")
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(tmp_path / "token"))
    assert metrics_token() == f"{TOKEN}-in-a-file"


@pytest.mark.parametrize("text", ["short", "x" * 15, "\u00e9" * 30, "two\nlines of some length", b"\xff" * 40])
def test_what_is_no_token_is_refused_and_not_repeated(tmp_path, monkeypatch, text):
    path = tmp_path / "token"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(path))
    with pytest.raises(InputError) as refused:
        metrics_token()
    assert TOKEN_FILE_VARIABLE in str(refused.value) and str(text) not in str(refused.value)
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        metrics_token()
