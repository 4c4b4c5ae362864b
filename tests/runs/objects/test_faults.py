"""What libraries of clouds raise: what may pass is tried again, within bounds; the rest is one plain sentence."""

import pytest

from errors import InputError
from runs.objects.base import MissingError
from runs.objects.faults import MOST_S, TRIES, WITHIN_S, patiently, trouble

SECRET = "AKIASECRET https://x?X-Amz-Signature=abcdef"


def boto(code, status=400):
    from botocore.exceptions import ClientError

    told = {"Error": {"Code": code, "Message": SECRET}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(told, "PutObject")


def translated(kind, cause):
    """As s3fs raises it."""
    error = kind(SECRET)
    error.__cause__ = cause
    return error


def google(code, message=SECRET):
    from gcsfs.retry import HttpError

    return HttpError({"code": code, "message": message})


SORTS = [
    (lambda: boto("NoSuchBucket", 404), "bucket", False),
    (lambda: translated(FileNotFoundError, boto("NoSuchBucket", 404)), "bucket", False),
    (lambda: translated(FileNotFoundError, boto("NoSuchKey", 404)), "missing", False),
    (lambda: FileNotFoundError(SECRET), "missing", False),
    (lambda: translated(FileExistsError, boto("PreconditionFailed", 412)), "exists", False),
    (lambda: boto("ConditionalRequestConflict", 409), "met", True),
    (lambda: translated(PermissionError, boto("AccessDenied", 403)), "denied", False),
    (lambda: translated(PermissionError, boto("InvalidAccessKeyId", 403)), "credentials", False),
    (lambda: translated(PermissionError, boto("RequestTimeTooSkewed", 403)), "clock", False),
    (lambda: translated(TimeoutError, boto("ExpiredToken", 400)), "expired", False),
    (lambda: translated(OSError, boto("SlowDown", 503)), "busy", True),
    (lambda: boto("InternalError", 500), "busy", True),
    (lambda: google(429), "busy", True),
    (lambda: google(503), "busy", True),
    (lambda: google(401), "credentials", False),
    (lambda: OSError(f"Forbidden: {SECRET}"), "denied", False),
    (lambda: ConnectionResetError(104, "reset"), "network", True),
    (lambda: TimeoutError(), "network", True),
    (lambda: ValueError(SECRET), "other", False),
    (lambda: OSError(28, "No space left on device"), "other", False),
]


@pytest.mark.parametrize(("made", "kind", "again"), SORTS)
def test_an_error_of_a_cloud_is_told_for_what_it_is(made, kind, again):
    found = trouble(made())
    assert (found.kind, found.again) == (kind, again)
    assert "AKIA" not in f"{found.what} {found.advice}" and "Signature" not in f"{found.what} {found.advice}"


def test_no_credentials_are_told():
    from botocore.exceptions import NoCredentialsError

    assert trouble(NoCredentialsError()).kind == "credentials"


def failing(times, error, then="done"):
    left = [times]

    def act():
        if left[0]:
            left[0] -= 1
            raise error
        return then

    return act


@pytest.mark.parametrize("times", range(TRIES))
def test_what_passes_is_waited_for(times):
    slept = []
    assert patiently(failing(times, ConnectionResetError()), "s3://b/k", sleep=slept.append) == "done"
    assert len(slept) == times and all(0 <= s <= MOST_S for s in slept)


def test_what_does_not_pass_ends_in_one_sentence_without_secrets():
    with pytest.raises(InputError) as error:
        patiently(failing(TRIES, boto("SlowDown", 503)), "s3://b/k", sleep=lambda s: None)
    said = str(error.value)
    assert said.startswith("s3://b/k: it asks for fewer requests, asked 6 times") and "AKIA" not in said


def test_waiting_ends():
    now = [0.0]

    def sleep(seconds):
        now[0] += WITHIN_S  # as if each wait took so long

    slept = []
    with pytest.raises(InputError):
        patiently(
            failing(TRIES, TimeoutError()),
            "s3://b/k",
            sleep=lambda s: (slept.append(s), sleep(s)),
            clock=lambda: now[0],
        )
    assert len(slept) <= 1


@pytest.mark.parametrize("error", [boto("AccessDenied", 403), boto("NoSuchBucket", 404), ValueError(SECRET)])
def test_what_does_not_pass_by_itself_is_asked_once(error):
    asked = []

    def act():
        asked.append(1)
        raise error

    with pytest.raises(InputError):
        patiently(act, "s3://b/k", sleep=lambda s: pytest.fail("waited"))
    assert asked == [1]


def test_what_is_not_there_is_no_fault():
    with pytest.raises(MissingError):
        patiently(failing(1, FileNotFoundError()), "s3://b/k")
