"""Where ports are kept, a server takes the one that another has left, if nobody else took it meanwhile."""

import socket

from tests.app import serving


def test_a_port_that_was_left_is_taken_over_once(monkeypatch):
    port = serving.free_port()
    monkeypatch.setattr(serving, "left", [port])
    assert serving._next_port() == port
    assert serving.left == []
    assert serving._next_port() > 0


def test_one_that_somebody_else_took_meanwhile_is_not(monkeypatch):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        taken = s.getsockname()[1]
        monkeypatch.setattr(serving, "left", [taken])
        assert serving._next_port() != taken
