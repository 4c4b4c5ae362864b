"""What goes wrong between here and a bucket: which of it is tried again, and what a person is told of the rest.

Libraries of clouds raise errors of their own, each with a code or a status of HTTP somewhere in its chain. What they
say is never repeated: it may hold what is secret, such as a signed address.
"""

import errno
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from errors import ChipledgerError, InputError
from runs.objects.base import DifferentError, MissingError

A = TypeVar("A")
TRIES = 6
FIRST_S, MOST_S = 0.2, 5.0  # between two tries: twice as long each time, and at random up to that
WITHIN_S = 45.0  # no try is begun later than that after the first

_NO_BUCKET = frozenset(("NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"))
_MISSING = frozenset(("NoSuchKey", "BlobNotFound", "404", "NotFound", "ResourceNotFound"))
_EXISTS = frozenset(("PreconditionFailed", "BlobAlreadyExists", "412", "ConditionNotMet"))
_MET = frozenset(("ConditionalRequestConflict", "OperationAborted"))  # another writes it at this moment
_BEYOND = frozenset(("InvalidRange", "416"))  # what is asked for begins where the object ends
_CLOCK = frozenset(("RequestTimeTooSkewed", "RequestExpired", "AuthenticationFailedTime"))
_EXPIRED = frozenset(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"))
_DENIED = frozenset(
    (
        "AccessDenied",
        "AllAccessDisabled",
        "AuthorizationFailure",
        "AuthorizationPermissionMismatch",
        "AuthenticationFailed",
        "InsufficientAccountPermissions",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "Unauthorized",
        "401",
        "403",
    )
)
_WRONG_KEY = frozenset(("InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed", "Unauthorized", "401"))
_BUSY = frozenset(
    (
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "RequestLimitExceeded",
        "ServerBusy",
        "429",
        "rateLimitExceeded",
        "userRateLimitExceeded",
    )
)
_NO_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "DefaultCredentialsError",
    "ClientAuthenticationError",
    "CredentialRetrievalError",
    "ProfileNotFound",
    "NoAuthTokenError",
    "RefreshError",
)
_NETWORK = (
    "ClientConnectionError",
    "ClientConnectorError",
    "ClientOSError",
    "ClientPayloadError",
    "ConnectionClosedError",
    "ConnectTimeoutError",
    "EndpointConnectionError",
    "HTTPClientError",
    "IncompleteRead",
    "IncompleteReadError",
    "ProxyConnectionError",
    "ProxyError",
    "ReadTimeoutError",
    "ResponseStreamingError",
    "ServerDisconnectedError",
    "ServerTimeoutError",
    "ServiceRequestError",
    "ServiceResponseError",
    "TransportError",
)


@dataclass(frozen=True)
class Trouble:
    """What is wrong. `again`: it may pass; `what` and `advice`: for a person; `kind` as below."""

    kind: str  # missing, exists, met, bucket, credentials, expired, denied, clock, busy, network, other
    what: str = ""
    advice: str = ""
    again: bool = False


_MEET = "Give the credentials of this machine's own way: environment, profile, role or service account."
_SORTS = {
    "missing": Trouble("missing"),
    "exists": Trouble("exists"),
    "beyond": Trouble("beyond"),
    "met": Trouble("met", "others write the same object at this moment", "Ask again.", again=True),
    "bucket": Trouble("bucket", "no such bucket", "Is its name right, and does it still exist?"),
    "credentials": Trouble("credentials", "no credentials for it were found", _MEET),
    "wrong key": Trouble("credentials", "it does not know these credentials", _MEET),
    "expired": Trouble("expired", "the credentials have expired", "Log in to the cloud again, then ask again."),
    "denied": Trouble(
        "denied", "these credentials may not do that", "They need to read, write, list and delete objects there."
    ),
    "clock": Trouble(
        "clock",
        "the clock of this machine is too far from that of the cloud, which refuses its signatures",
        "Set the clock, for instance with chrony, then ask again.",
    ),
    "busy": Trouble("busy", "it asks for fewer requests", "Ask again later.", again=True),
    "network": Trouble("network", "it does not answer", "Is the network there, and the address right?", again=True),
}


def trouble(error: BaseException) -> Trouble:
    """What an error of a library of a cloud means."""
    codes, statuses, names = [], [], []
    for one in _chain(error):
        codes += list(_codes(one))
        statuses += list(_statuses(one))
        names += [kind.__name__ for kind in type(one).__mro__]
    for sort, known in (
        ("clock", _CLOCK),
        ("expired", _EXPIRED),
        ("bucket", _NO_BUCKET),
        ("wrong key", _WRONG_KEY),
        ("denied", _DENIED),
        ("busy", _BUSY),
        ("met", _MET),
        ("exists", _EXISTS),
        ("missing", _MISSING),
        ("beyond", _BEYOND),
    ):
        if any(code in known for code in codes):
            return _SORTS[sort]
    if any(name in _NO_CREDENTIALS for name in names):
        return _SORTS["credentials"]
    return _by_status(statuses) or _by_kind(error, names)


def _by_status(statuses: list[int]) -> Trouble | None:
    for status in statuses:
        if status >= 500 or status == 408:
            said = f"it answers with the status {status}"
            return Trouble("busy", said, "The cloud has a fault or is too busy: ask again later.", again=True)
    return None


def _by_kind(error: BaseException, names: list[str]) -> Trouble:
    if isinstance(error, FileNotFoundError):
        return _SORTS["missing"]
    if isinstance(error, FileExistsError):
        return _SORTS["exists"]
    if isinstance(error, PermissionError):
        return _SORTS["denied"]
    if isinstance(error, TimeoutError | ConnectionError) or any(name in _NETWORK for name in names):
        return _SORTS["network"]
    if isinstance(error, OSError):
        if str(error).startswith("Forbidden"):  # gcsfs, of a status of 403
            return _SORTS["denied"]
        if error.errno in (errno.EIO, errno.ENETUNREACH, errno.EHOSTUNREACH, None):
            return Trouble("other", f"it failed ({type(error).__name__})", "Ask again.", again=True)
        return Trouble("other", f"it failed ({error.strerror})", "Is the disk full?")
    return Trouble("other", f"it failed ({type(error).__name__})", "Ask again; is the address right?")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _codes(error: BaseException) -> Iterator[str]:
    """As botocore, Google and Azure give them."""
    told: Any = getattr(error, "response", None)
    if isinstance(told, dict):
        yield str(told.get("Error", {}).get("Code", ""))
    for name in ("code", "error_code"):
        if (code := getattr(error, name, None)) is not None:
            yield str(getattr(code, "value", code))


def _statuses(error: BaseException) -> Iterator[int]:
    told: Any = getattr(error, "response", None)
    found: list[Any] = [getattr(error, name, None) for name in ("code", "status", "status_code")]
    if isinstance(told, dict):
        found.append(told.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    for one in found:
        if isinstance(one, int) and 100 <= one < 600:
            yield one


def patiently(
    act: Callable[[], A],
    where: str,
    *,
    within_s: float = WITHIN_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> A:
    """What `act` gives, tried again where that may help. Raises MissingError, FileExistsError, or InputError."""
    until = clock() + within_s
    for attempt in range(TRIES):
        try:
            return act()
        except (ChipledgerError, MissingError, DifferentError):
            raise
        except Exception as e:
            found = trouble(e)
            if found.kind == "missing":
                raise MissingError(where) from e
            if found.kind == "exists":
                raise FileExistsError(where) from e
            wait_s = random.uniform(0, min(FIRST_S * 2**attempt, MOST_S))
            if not found.again or attempt + 1 == TRIES or clock() + wait_s > until:
                tried = f", asked {attempt + 1} times" if attempt else ""
                raise InputError(f"{found.what}{tried}", where=where, advice=found.advice) from e
        sleep(wait_s)
    raise AssertionError("the last try returns or raises")
