"""The connection to Cloud Logging: credentials, pages of entries, and what is wrong in a sentence."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import google.auth
import requests
from google.api_core import exceptions as api
from google.auth import _cloud_sdk, environment_vars
from google.auth import exceptions as auth
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.transport.requests import AuthorizedSession

from collectors.cloud_logging.pace import Limiter, Patience, Wait, pause
from errors import InputError

if TYPE_CHECKING:
    from google.cloud.logging import Client

SCOPES = ("https://www.googleapis.com/auth/logging.read",)
PAGE_ENTRIES = 1000  # the most that the service gives at a time
ROLE = "roles/logging.viewer"
LOGIN = (
    "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service "
    f"account that has {ROLE}."
)
_AGAIN = (408, 429, 500, 502, 503, 504)  # refusals that pass
_LOST = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
    auth.TransportError,
    auth.TimeoutError,
)


class Denied(InputError):
    """The service will go on refusing until a person changes something."""


class Unreachable(InputError):
    """The service did not answer in spite of patience; later it may."""


@dataclass(frozen=True)
class Door:
    """How to reach a project's logs. `endpoint`: another address than Google's, such as a private proxy's.

    `anonymous`: go without credentials (None: where there is an endpoint). `limiter` is shared by all that read logs
    of this project; `wait` waits, and returns true where the person stops.
    """

    project: str
    endpoint: str | None = None
    anonymous: bool | None = None
    limiter: Limiter = field(default_factory=Limiter)
    patience: Patience = Patience()
    wait: Wait = field(default_factory=lambda: threading.Event().wait)

    def open(self) -> "Service":
        """Raises Denied without credentials."""
        from google.cloud.logging import Client

        anonymous = bool(self.endpoint) if self.anonymous is None else self.anonymous
        credentials = AnonymousCredentials() if anonymous else _default()[0]
        options = {"api_endpoint": self.endpoint.rstrip("/")} if self.endpoint else None
        session = _Session(credentials, self.limiter, self.patience, self.wait)
        client = Client(
            project=self.project, credentials=credentials, _http=session, _use_grpc=False, client_options=options
        )
        return Service(self.project, client)


@dataclass
class Service:
    """A project's logs."""

    project: str
    client: "Client"

    def pages(self, filter_text: str) -> Iterator[list[dict[str, Any]]]:
        """The entries that fit, by timestamp, page by page, each as the service's JSON.

        They are asked for below the client's own list of `LogEntry`, which rounds times to microseconds, leaves out
        fields, and stops at an entry that it does not understand. Raises Denied, Unreachable or Cancelled.
        """
        asked: dict[str, Any] = {
            "resourceNames": [f"projects/{self.project}"],
            "filter": filter_text,
            "orderBy": "timestamp asc",
            "pageSize": PAGE_ENTRIES,
        }
        while True:
            page = self._ask(asked)
            entries = page.get("entries", [])
            yield [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
            token = page.get("nextPageToken")
            if not token:  # a page without entries but with a token means: not done searching yet
                return
            asked["pageToken"] = token

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            page = self.client._connection.api_request(method="POST", path="/entries:list", data=asked)
        except api.GoogleAPICallError as e:
            raise _refused(e, self.project) from e
        except auth.RefreshError as e:
            raise Denied(
                f"the credentials for Google Cloud are not valid any more, or were revoked ({_short(e)})", advice=LOGIN
            ) from e
        except (*_LOST, requests.RequestException, json.JSONDecodeError) as e:
            raise Unreachable(
                f"Cloud Logging cannot be read ({_short(e)})",
                where=f"project {self.project}",
                advice="Is this machine's network up? With a proxy or a private endpoint, is its address right?",
            ) from e
        except auth.GoogleAuthError as e:
            raise _unusable(e) from e
        if not isinstance(page, dict):
            raise Unreachable(
                "Cloud Logging answered with something else than a list of entries", where=f"project {self.project}"
            )
        return page


class _Session(AuthorizedSession):
    """Requests that keep to the quota and are tried again: a read can be repeated without harm.

    The client itself does not repeat what is refused with 429. Repeated here, a page keeps its token.
    """

    def __init__(self, credentials: Credentials, limiter: Limiter, patience: Patience, wait: Wait):
        if isinstance(credentials, AnonymousCredentials):  # there is nothing to renew
            super().__init__(credentials, refresh_status_codes=())
        else:
            super().__init__(credentials)
        self._limiter, self._patience, self._wait = limiter, patience, wait

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        for attempt in range(self._patience.tries):
            last = attempt + 1 == self._patience.tries
            self._limiter.take(self._wait)
            after = None
            try:
                answer = super().request(*args, **kwargs)
                if answer.status_code not in _AGAIN or last:
                    return answer
                after = answer.headers.get("Retry-After")
                if answer.status_code == 429:
                    self._limiter.hold(self._patience.delay_s(attempt, after))
                    continue
            except _LOST:
                if last:
                    raise
            pause(self._patience.delay_s(attempt, after), self._wait)
        raise AssertionError("a Patience of no tries")


def credentials_kind() -> tuple[str | None, str]:
    """(what credentials were found on this machine, what is wrong); looks at files only, never at the network."""
    named = os.environ.get(environment_vars.CREDENTIALS)
    path = named or _cloud_sdk.get_application_default_credentials_path()
    if not os.path.isfile(path):
        return None, f"${environment_vars.CREDENTIALS} names {path}, which is no file" if named else ""
    try:
        found, _ = google.auth.load_credentials_from_file(path, scopes=list(SCOPES))
    except auth.GoogleAuthError as e:
        return None, f"{path}: {_short(e)}"
    return getattr(found, "service_account_email", None) or "application default credentials", ""


def default_project() -> str | None:
    """The project that the environment or the credentials name, if any. Raises Denied without credentials."""
    return _default()[1]


def _default() -> tuple[Credentials, str | None]:
    try:
        return google.auth.default(scopes=list(SCOPES))
    except auth.DefaultCredentialsError as e:
        said = _short(e).partition(". ")[0]
        raise Denied(f"no credentials for Google Cloud on this machine ({said})", advice=LOGIN) from e
    except auth.GoogleAuthError as e:
        raise _unusable(e) from e


def _unusable(error: auth.GoogleAuthError) -> Denied:
    return Denied(f"the credentials for Google Cloud cannot be used ({_short(error)})", advice=LOGIN)


def _refused(error: api.GoogleAPICallError, project: str) -> InputError:
    """What a refusal means for the person."""
    said, where = _said(error), f"project {project}"
    code = int(error.code) if error.code else 0
    if code == 401:
        return Denied(f"Cloud Logging does not accept the credentials ({said})", where=where, advice=LOGIN)
    if code == 403:
        return Denied(
            f"these credentials may not read its logs ({said})",
            where=where,
            advice=f"Somebody who owns the project can grant {ROLE}: `gcloud projects add-iam-policy-binding {project} "
            f"--member=user:YOU --role={ROLE}`. Is the project's id right, and its Cloud Logging API enabled?",
        )
    if code == 404:
        return Denied(
            f"Cloud Logging knows no such project ({said})", where=where, advice="`gcloud projects list` shows the ids."
        )
    if code == 400:
        return Denied(
            f"Cloud Logging does not understand what was asked ({said})",
            where=where,
            advice="Is the filter given with --also right, and the project's id?",
        )
    if code == 429:
        return Unreachable(
            f"the quota for reading logs is used up, by whoever reads this project's logs ({said})",
            where=where,
            advice="Watch less often with --every.",
        )
    return Unreachable(f"Cloud Logging refuses ({code}: {said})", where=where)


def _said(error: api.GoogleAPICallError) -> str:
    """The service's own words; the client puts method and address before them."""
    if error.response is None:
        return _short(error.message)
    try:
        return _short(error.response.json()["error"]["message"])
    except (AttributeError, ValueError, KeyError, TypeError):
        return _short(error.message)


def _short(error: object) -> str:
    return " ".join(str(error).split())[:300].rstrip(". ")
