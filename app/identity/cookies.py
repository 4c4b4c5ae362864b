"""The cookies of a login: signed, not readable by scripts, sent by no form of another site, over TLS alone where there
is TLS."""

from collections.abc import Mapping

from itsdangerous import Signer, URLSafeTimedSerializer
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

from app.identity.settings import Oidc

SESSION, LOGIN = "chipledger_session", "chipledger_login"
LOGIN_PATH = "/login"
LOGIN_S = 600  # to come back from the provider
LONGEST = 300  # characters of a session cookie


def session_name(oidc: Oidc) -> str:
    """Over TLS with the prefix that lets a browser take it from this very host alone."""
    return f"__Host-{SESSION}" if oidc.https else SESSION


def session_signer(key: bytes) -> Signer:
    return Signer(key, salt="chipledger.session")


def login_signer(key: bytes) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(key, salt="chipledger.login")


def cookies_in(headers: Headers) -> Mapping[str, str]:
    return cookie_parser("; ".join(headers.getlist("cookie")))


def session_in(headers: Headers, oidc: Oidc) -> str | None:
    """The session cookie as it was sent; None where there is none, or what can be none."""
    if not any(SESSION in text for text in headers.getlist("cookie")):
        return None
    found = cookies_in(headers).get(session_name(oidc), "")
    return found if 0 < len(found) <= LONGEST else None


def login_name(state: str) -> str:
    """Of the cookie of one try to sign in: several tabs may try at once."""
    return f"{LOGIN}_{state[:12]}"


def set_cookie(answer: Response, oidc: Oidc, name: str, value: str, *, seconds: int, path: str = "/") -> None:
    answer.set_cookie(name, value, max_age=seconds, path=path, secure=oidc.https, httponly=True, samesite="lax")


def drop_cookie(answer: Response, oidc: Oidc, name: str, *, path: str = "/") -> None:
    answer.delete_cookie(name, path=path, secure=oidc.https, httponly=True, samesite="lax")
