"""A provider of OpenID Connect, asked through Authlib: where people are sent to sign in, and who they are by what they
bring back. Authorization code with PKCE (S256), state and nonce; the ID token's signature, issuer, audience, nonce and
times are checked.
"""

from dataclasses import dataclass
from typing import Any

from app.identity.settings import Oidc
from errors import ChipledgerError

SIGNED_BY = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"))
LEEWAY_S = 60  # by which clocks may differ
TIMEOUT_S = 10.0
LONGEST, MOST_GROUPS = 320, 1000


class NoLogin(ChipledgerError):
    """Somebody could not be signed in."""


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A login that was begun: where the browser is sent, and what is needed when it comes back."""

    url: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, kw_only=True)
class Person:
    """Whoever signed in."""

    name: str
    groups: tuple[str, ...]


class Provider:
    """The provider of the settings. What it says of itself is read when it is first needed."""

    def __init__(self, oidc: Oidc):
        from authlib.integrations.starlette_client import OAuth

        self._oidc = oidc
        self._back = f"{oidc.url}/login/callback"
        self._client: Any = OAuth().register(
            "chipledger",
            client_id=oidc.client_id,
            client_secret=oidc.client_secret,
            server_metadata_url=f"{oidc.issuer}/.well-known/openid-configuration",
            client_kwargs={"scope": oidc.scopes, "code_challenge_method": "S256", "timeout": TIMEOUT_S},
        )

    async def begin(self) -> Begun:
        """Raises NoLogin where the provider cannot be asked."""
        await self._about()
        made = await self._asking(self._client.create_authorization_url(self._back))
        return Begun(url=made["url"], state=made["state"], nonce=made["nonce"], verifier=made["code_verifier"])

    async def person(self, code: str, nonce: str, verifier: str) -> Person:
        """Whoever the provider says brought this code. Raises NoLogin."""
        about = await self._about()
        token = await self._asking(
            self._client.fetch_access_token(redirect_uri=self._back, code=code, code_verifier=verifier)
        )
        if not isinstance(token, dict) or "id_token" not in token:
            raise NoLogin("the provider told nobody", expected="an ID token")
        options = {
            "iss": {"essential": True, "values": [about["issuer"]]},
            "aud": {"essential": True, "values": [self._oidc.client_id]},
            "nonce": {"essential": True, "value": nonce},
        }
        claims = await self._asking(
            self._client.parse_id_token(token, nonce=nonce, claims_options=options, leeway=LEEWAY_S)
        )
        return _person(self._oidc, dict(claims))

    async def leave(self) -> str:
        """Where one signs out of the provider itself; empty where it does not say."""
        try:
            found = str((await self._about()).get("end_session_endpoint") or "")
        except NoLogin:
            return ""
        return found if found.startswith(("https://", "http://")) else ""

    async def _about(self) -> dict[str, Any]:
        """What the provider says of itself, once it is the one that the settings name."""
        about = await self._asking(self._client.load_server_metadata())
        said = str(about.get("issuer", "")).rstrip("/")
        if said != self._oidc.issuer:
            raise NoLogin(f"the provider calls itself {said[:80]!r}", expected=self._oidc.issuer)
        signed = [a for a in about.get("id_token_signing_alg_values_supported") or ["RS256"] if a in SIGNED_BY]
        about["id_token_signing_alg_values_supported"] = signed or ["RS256"]
        return about

    async def _asking(self, answer: Any) -> Any:
        """What the provider answers. Of its own words one alone is repeated: they may be anybody's."""
        from authlib.common.errors import AuthlibBaseError
        from httpx2 import HTTPError
        from joserfc.errors import JoseError

        try:
            return await answer
        except HTTPError as e:
            raise NoLogin(f"the provider cannot be asked ({type(e).__name__})", advice="Try again.") from e
        except (AuthlibBaseError, JoseError) as e:
            raise NoLogin(f"the provider's answer is not accepted ({word(e.error)})", advice="Sign in again.") from e
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as e:
            raise NoLogin(f"the provider's answer is not understood ({type(e).__name__})") from e


def word(said: Any) -> str:
    """A code of an error as a provider writes them, such as `invalid_grant`."""
    return "".join(c for c in str(said)[:40] if c.isascii() and (c.isalnum() or c == "_")) or "it says not why"


def _person(oidc: Oidc, claims: dict[str, Any]) -> Person:
    name = claims.get(oidc.name_claim)
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= LONGEST or not name.isprintable():
        advice = "name_claim in the settings of identity says which claim is the name."
        raise NoLogin(f"the provider tells no {oidc.name_claim}", advice=advice)
    if oidc.name_claim == "email" and claims.get("email_verified") is not True and not oidc.unverified_email:
        advice = "unverified_email in the settings of identity takes it as it is told."
        raise NoLogin("the provider has not verified this address of mail", advice=advice)
    told = claims.get(oidc.groups_claim) or []
    groups = [told] if isinstance(told, str) else told if isinstance(told, list) else []
    kept = [g for g in groups if isinstance(g, str) and 1 <= len(g) <= LONGEST and g.isprintable()]
    if len(kept) > MOST_GROUPS:
        raise NoLogin(f"{len(kept):,} groups", expected=f"at most {MOST_GROUPS:,}")
    return Person(name=name.strip(), groups=tuple(sorted(set(kept))))
